// What a long read sees, and how a transaction becomes one; see long_read.h.
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <stele/snapshot.h>
#include <tx/long_read.h>
#include <tx/transaction_inl.h>

#include <new>
#include <optional>

namespace stele::detail {

namespace {

// A read that has lost two attempts is worth the two pauses of a long read when they have taken so
// long; and one that has lost many, whatever they took.
constexpr std::chrono::milliseconds long_read_after{1};
constexpr unsigned lost_before_long_read = 2, lost_before_any_long_read = 12;

std::uint64_t pages_of(const runtime& r) {
  return (r.state().file.header().size + page_snapshot::page_size - 1) / page_snapshot::page_size;
}

}  // namespace

long_read::long_read(runtime& r)
    : page_snapshot(r.state().file.header().size),
      pool_(r),
      home_(r.base()),
      bytes_(r.state().file.header().size),
      kept_(static_cast<std::atomic<kept_page*>*>(
          std::calloc(pages_of(r), sizeof(std::atomic<kept_page*>)))),
      reader_(r, 0, counts_) {
  if (kept_ == nullptr) throw std::bad_alloc();
  reader_.set_moment(this);
  const std::uint64_t home = r.state().file.header().home_offset;
  include_pages(home, bytes_ - home);
}

long_read::~long_read() {
  for (kept_page* k = all_.load(); k != nullptr;) {
    kept_page* const next = k->next;
    delete k;
    k = next;
  }
}

// L3. Other threads wait until the page is marked, which is after this.
void long_read::copy_before_store(std::uint64_t offset) noexcept {
  auto* const kept = new (std::nothrow) kept_page;
  if (kept == nullptr) return lost_.store(true, std::memory_order_release);
  const std::uint64_t size = std::min<std::uint64_t>(page_size, bytes_ - offset);
  for (std::uint64_t at = 0; at < size; at += 8) {
    const std::uint64_t word = __atomic_load_n(
        reinterpret_cast<const std::uint64_t*>(home_ + offset + at), __ATOMIC_RELAXED);
    std::memcpy(kept->bytes + at, &word, 8);
  }
  kept->next = all_.load(std::memory_order_relaxed);
  while (!all_.compare_exchange_weak(kept->next, kept, std::memory_order_relaxed)) {
  }
  kept_[offset / page_size].store(kept, std::memory_order_release);
}

template <class Take>
[[gnu::always_inline]] inline void long_read::at_moment(std::uint64_t offset, Take&& take) const {
  const std::atomic<kept_page*>& place = kept_[offset / page_size];
  const kept_page* kept = place.load(std::memory_order_acquire);
  if (kept == nullptr) {
    take(home_ + offset);
    std::atomic_thread_fence(std::memory_order_acquire);  // home before the second look
    if (!base::planted_in_schedule_explorer(base::mutant::long_read_one_look))
      kept = place.load(std::memory_order_acquire);
    if (kept == nullptr) {
      if (lost_.load(std::memory_order_acquire)) [[unlikely]]
        throw std::bad_alloc();
      return;
    }
  }
  take(kept->bytes + offset % page_size);
}

std::uint64_t long_read::word(std::uint64_t offset) const {
  std::uint64_t value = 0;
  at_moment(offset, [&](const std::byte* from) {
    value = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_ACQUIRE);
  });
  return value;
}

void long_read::copy(std::uint64_t offset, std::byte* to, std::size_t size) const {
  at_moment(offset,
            [&](const std::byte* from) { in_place_home(from - offset).copy(offset, to, size); });
}

bool lost_enough_for_long_read(const thread_context& v) noexcept {
  if (base::schedule_explorer_build || v.tx->attempts >= lost_before_any_long_read) return true;
  return v.tx->attempts >= lost_before_long_read &&
         std::chrono::steady_clock::now() - v.retried_since >= long_read_after;
}

bool runtime::needs_long_read(const thread_context& v) const noexcept {
  if (policy() != concurrency::stm || home_is_remapped() || v.long_read != nullptr || v.runs_alone)
    return false;
  return lost_enough_for_long_read(v);
}

// L1 and L2. The thread is between two attempts of a read. Without memory for a long read, or
// beside too many, the read goes on as it was.
void runtime::begin_long_read(thread_context& v) noexcept {
  if (long_reads_.fetch_add(1) < max_long_reads) try {
      v.long_read = std::make_unique<long_read>(*this);
    } catch (const std::bad_alloc&) {
    }
  if (v.long_read == nullptr) {
    long_reads_.fetch_sub(1);
    return;
  }
  v.long_read->reader().attempts = std::exchange(v.tx->attempts, 0);
  leave(v);  // a pause waits for the owner of each log; the pool stays open: long_reads_
  {
    std::optional<pause> paused;
    paused.emplace(*this);
    if (base::planted_in_schedule_explorer(base::mutant::long_read_moves_on)) paused.reset();
    add_page_snapshot(*v.long_read);
  }
  v.long_read->take_over(v.tx);
  v.in_transaction.announce(true);  // no thread gets the bias
}

// L5. The thread has left the transaction.
void runtime::end_long_read(thread_context& v) noexcept {
  const auto read = std::move(v.long_read);
  read->give_back(v.tx);
  {
    const pause paused(*this);
    remove_page_snapshot(*read);
  }
  {
    const std::lock_guard hold(registry_);
    long_read_counts_.add(read->counts());
  }
  long_reads_.fetch_sub(1);
}

bool runtime::begin_keeping_pages(page_snapshot& s) noexcept {
  if (long_reads_.fetch_add(1) >= max_long_reads) {
    long_reads_.fetch_sub(1);
    return false;
  }
  std::optional<pause> paused;
  paused.emplace(*this);
  if (base::planted_in_schedule_explorer(base::mutant::long_read_moves_on)) paused.reset();
  add_page_snapshot(s);
  return true;
}

void runtime::end_keeping_pages(page_snapshot& s) noexcept {
  {
    const pause paused(*this);
    remove_page_snapshot(s);
  }
  long_reads_.fetch_sub(1);
}

// Steps L1 and L2 of a snapshot that a program holds.
result<pool_snapshot> take_snapshot(runtime& r) {
  const std::string& path = r.state().file.path();
  const auto refuse = [&](errc code, const char* why) {
    return base::fail(code, fmt::format("{}: no snapshot can be taken {}", path, why));
  };
  if (this_access.size != 0)
    return refuse(errc::nested, "inside a transaction; take it when that has ended");
  if (r.reading() != nullptr)
    return refuse(errc::unsupported,
                  "of a pool that is open for reading only; each read() sees one state");
  if (r.policy() != concurrency::stm || r.home_is_remapped())
    return refuse(errc::unsupported,
                  "of a pool of log_structured, or with another concurrency than stm");
  if (auto usable = r.check_usable(); !usable) return std::unexpected(usable.error());
  auto moment = std::make_unique<long_read>(r);
  if (!r.begin_keeping_pages(*moment))
    return refuse(errc::in_use,
                  "beside 15 other snapshots and long reads; destroy one that is not needed");
  return pool_snapshot(std::move(moment));
}

}  // namespace stele::detail

namespace stele {

pool_snapshot::pool_snapshot(std::unique_ptr<detail::long_read> moment) noexcept
    : moment_(std::move(moment)) {}
pool_snapshot::pool_snapshot(pool_snapshot&&) noexcept = default;
pool_snapshot& pool_snapshot::operator=(pool_snapshot&& other) noexcept {
  std::swap(moment_, other.moment_);
  return *this;
}
// L5.
pool_snapshot::~pool_snapshot() {
  if (moment_ == nullptr) return;
  if (moment_->pool().is_of_parent()) {
    (void)moment_.release();
    return;
  }
  base::check(detail::this_access.size == 0,
              "a pool_snapshot is destroyed inside a transaction, for whose end it would wait; "
              "destroy it outside");
  moment_->pool().end_keeping_pages(*moment_);
}

}  // namespace stele
