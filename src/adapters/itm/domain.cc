// Opens and closes the pool that blocks work on, and makes the anonymous one; see domain.h.
#include <base/assert.h>

#include <adapters/itm/block.h>
#include <adapters/itm/domain.h>
#include <base/forks.h>
#include <base/rng.h>
#include <fmt/format.h>
#include <stele/itm.h>
#include <sys/mman.h>
#include <tx/open.h>
#include <unistd.h>

#include <base/check.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace stele::itm {

using base::fail;

constinit std::atomic<detail::runtime*> current_runtime{nullptr};  // changes while no block runs

namespace {

constinit std::mutex domain_mutex;                   // guards the variables below
constinit std::atomic<void*> current_root{nullptr};  // null: no pool is open
constinit detail::pool_handle* open_pool = nullptr;
constinit detail::runtime* anonymous = nullptr;
constinit std::atomic<failure_handler> handler{nullptr};

// Memory with the layout of a pool: 4 MiB, for the locks; little of it is ever touched.
detail::runtime* make_anonymous() {
  constexpr std::size_t size = 4u << 20, logs = 256;
  auto header = storage::pool_file::make_header({size, 4096, logs, ""});
  base::check(header.has_value(), "no random number for the locks of atomic blocks");
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  base::check(memory != MAP_FAILED, "no memory for the locks of atomic blocks");
  storage::pool_file::write_header(static_cast<std::byte*>(memory), *header);
  auto image = storage::pool_file::adopt(static_cast<std::byte*>(memory), size);
  base::check(image.has_value(), "the anonymous pool of atomic blocks is not one");
  pool_options options;
  options.engine.background = false;
  const detail::media_choice media{.what = detail::media_choice::kind::process};
  auto made = detail::open_on(std::make_unique<detail::pool_state>(std::move(*image)), media,
                              **detail::find_mechanism("none"), options);
  base::check(made.has_value(), "the anonymous pool of atomic blocks does not open");
  detail::runtime* const opened = made->release();
  STELE_ASSERT_ALWAYS(opened->base() == memory);
  STELE_ASSERT_ALWAYS(opened->policy() == concurrency::stm);
  return opened;
}

void after_fork() noexcept {
  ::new (&domain_mutex) std::mutex;  // perhaps held by a thread that this process lacks
  the_serial_lock.reset_after_fork(block::this_thread_state());
  anonymous = nullptr;  // its locks may belong to threads that this process lacks
  if (open_pool == nullptr) current_runtime.store(nullptr);
}

void watch_forks() {
  [[maybe_unused]] static const bool once = base::call_in_children(after_fork);
}

// If a thread has ended inside a block, by exit() for one, the pool stays as at a crash: the block
// is not committed, and its serial lock is never released.
void close_at_exit() {
  if (!block::has_ended_inside()) (void)close();
}

// Holds the serial lock alone, so no block of any thread runs.
class quiescent_section {
 public:
  quiescent_section() : thread_(the_serial_lock.register_thread()) {
    do the_serial_lock.enter(thread_);
    while (!the_serial_lock.acquire_serial(thread_) && (the_serial_lock.leave(thread_), true));
    // This thread is in no block: its own state is another one.
    STELE_ASSERT_ALWAYS(block::this_thread_state() != &thread_);
  }
  ~quiescent_section() {
    STELE_ASSERT_ALWAYS(the_serial_lock.is_serial(thread_));
    the_serial_lock.release_serial();
    the_serial_lock.leave(thread_);
    the_serial_lock.unregister_thread(thread_);
  }
  quiescent_section(const quiescent_section&) = delete;
  quiescent_section& operator=(const quiescent_section&) = delete;

 private:
  serial_lock::thread_state& thread_;
};

result<> check_outside_block(const char* what) {
  if (block::current() == nullptr || !block::current()->running()) return {};
  return fail(errc::invalid_argument,
              fmt::format("{} inside an atomic block; do it outside", what));
}

// Creates the pool if requested, and returns the address for its id.
result<std::uintptr_t> address_of(const std::string& path, const pool_options& options) {
  if (options.create_size != 0 && ::access(path.c_str(), F_OK) != 0) {
    const auto mechanism = detail::find_mechanism(options.engine.mechanism);
    if (!mechanism) return std::unexpected(mechanism.error());
    auto made = storage::pool_file::create(
        path, {options.create_size, options.engine.log_size, options.engine.log_count,
               options.layout, (*mechanism)->home});
    if (!made && made.error().code != errc::exists) return std::unexpected(made.error());
  }
  const auto header = storage::pool_file::peek(path);
  if (!header) return std::unexpected(header.error());
  return mapping_address(header->id);
}

}  // namespace

std::uintptr_t mapping_address(std::uint64_t pool_id) noexcept {
  constexpr std::uintptr_t lowest = std::uintptr_t{1} << 44, step = std::uintptr_t{1} << 30,
                           places = 1u << 15;  // 16 TiB to 48 TiB
  const std::uintptr_t address = lowest + base::mix(pool_id) % places * step;
  STELE_ASSERT_ALWAYS(address >= lowest && address < 3 * lowest);
  STELE_ASSERT_ALWAYS(address % step == 0);
  return address;
}

detail::runtime& make_anonymous_current() {
  const std::lock_guard hold(domain_mutex);
  STELE_ASSERT_ALWAYS(current_root.load() == nullptr);  // an open pool would be current
  if (anonymous == nullptr) {
    watch_forks();
    anonymous = make_anonymous();
  }
  detail::runtime* nothing = nullptr;
  current_runtime.compare_exchange_strong(nothing, anonymous);
  return *current_runtime.load();
}

void report_failure(const error& why) {
  if (const failure_handler told = handler.load()) return told(why);
  std::fprintf(stderr, "stele: an atomic block cannot go on: %s\n", why.message.c_str());
  std::abort();
}

failure_handler on_failure(failure_handler next) noexcept {
  return handler.exchange(next);
}

result<void*> open_root(const std::string& path, pool_options options, std::size_t root_size) {
  if (auto fine = check_outside_block("open"); !fine) return std::unexpected(fine.error());
  if (options.policy != concurrency::stm)
    return fail(errc::invalid_argument,
                "atomic blocks are kept apart by the policy stm; leave the policy out");
  const auto another_is_open = [&] {
    return fail(
        errc::in_use,
        fmt::format(
            "cannot open {}: atomic blocks work on one pool, and one is open; close it first",
            path));
  };
  if (is_open()) return another_is_open();
  options.layout = options.layout.empty() ? "itm" : "itm " + options.layout;
  const auto address = address_of(path, options);
  if (!address) return std::unexpected(address.error());
  options.engine.map_at = *address;
  auto opened = detail::pool_handle::open(path, options, root_size);
  if (!opened) return std::unexpected(std::move(opened.error()));
  if (mapping_address(opened->core().state().file.header().id) != *address)
    return fail(
        errc::in_use,
        fmt::format("cannot open {}: another pool has taken its place meanwhile; open it again",
                    path));
  if (reinterpret_cast<std::uintptr_t>(opened->core().base()) != *address)
    return fail(
        errc::unsupported,
        fmt::format("{} holds plain pointers, so it has to be mapped at {:#x}, where it has "
                    "no room to grow; open it with a smaller max_size, or before what lies "
                    "there",
                    path, *address));
  watch_forks();
  // Registered after the objects that the pool needs at its end were made.
  [[maybe_unused]] static const int once = std::atexit(close_at_exit);
  const quiescent_section now;
  const std::lock_guard hold(domain_mutex);
  if (open_pool != nullptr) return another_is_open();  // another thread was first
  STELE_ASSERT_ALWAYS(current_root.load() == nullptr);
  STELE_ASSERT_ALWAYS(opened->root() != nullptr);
  open_pool = new detail::pool_handle(std::move(*opened));
  current_runtime.store(&open_pool->core(), std::memory_order_release);
  current_root.store(open_pool->root(), std::memory_order_release);
  return open_pool->root();
}

result<> close() {
  if (auto fine = check_outside_block("close"); !fine) return fine;
  const quiescent_section now;
  const std::lock_guard hold(domain_mutex);
  if (open_pool == nullptr) return {};
  // Blocks ran on this pool until now, or a close before has failed.
  STELE_ASSERT_ALWAYS(current_root.load() == nullptr ||
                      current_runtime.load() == &open_pool->core());
  current_root.store(nullptr, std::memory_order_release);
  current_runtime.store(anonymous, std::memory_order_release);
  auto closed = detail::close_pool(open_pool->core());
  delete std::exchange(open_pool, nullptr);
  return closed;
}

bool is_open() noexcept {
  return current_root.load(std::memory_order_acquire) != nullptr;
}

std::string mechanism() {
  const std::lock_guard hold(domain_mutex);
  return open_pool != nullptr ? detail::mechanism_of(open_pool->core()) : "";
}

durability_level durability_in_force() {
  const std::lock_guard hold(domain_mutex);
  return open_pool != nullptr ? detail::durability_of(open_pool->core()) : durability_level::none;
}

pool_counters counters() {
  const std::lock_guard hold(domain_mutex);
  return open_pool != nullptr ? detail::counters_of(open_pool->core()) : pool_counters{};
}

}  // namespace stele::itm

namespace {

thread_local std::string this_error;

}  // namespace

extern "C" {

void* stele_itm_open(const char* path, size_t create_size, size_t root_size) noexcept {
  stele::pool_options options;
  options.create_size = create_size;
  auto root = stele::itm::open_root(path, options, root_size);
  if (root) return *root;
  this_error = root.error().message;
  return nullptr;
}

int stele_itm_close() noexcept {
  const auto closed = stele::itm::close();
  if (closed) return 0;
  this_error = closed.error().message;
  return -1;
}

const char* stele_itm_error() noexcept {
  return this_error.c_str();
}
void* stele_itm_root() noexcept {
  return stele::itm::current_root.load(std::memory_order_relaxed);
}
}
