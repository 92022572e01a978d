// What a long read sees, and how a transaction becomes one; see long_read.h.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <stele/snapshot.h>
#include <tx/attempt.h>
#include <tx/long_read.h>
#include <tx/transaction_inl.h>

#include <new>

namespace stele::detail {

namespace {

// A read that has lost two attempts is worth the two pauses of a long read when they have taken so
// long; and one that has lost many, whatever they took.
constexpr std::chrono::milliseconds long_read_after{1};
constexpr unsigned lost_before_long_read = 2, lost_before_any_long_read = 12;

}  // namespace

long_read::long_read(runtime& r) : pool_(r), home_(r.base()), reader_(r, r.locks(), 0, counts_) {
  STELE_ASSERT(r.policy() == concurrency::stm && !r.home_is_remapped());
  reader_.set_moment(this);
}

// Changes nothing before it has all memory.
result<> long_read::keep_home(std::uint64_t bytes) {
  std::unique_ptr<std::atomic<kept_page*>[], by_free> kept(static_cast<std::atomic<kept_page*>*>(
      std::calloc((bytes + page_size - 1) / page_size, sizeof(std::atomic<kept_page*>))));
  if (kept == nullptr) throw std::bad_alloc();
  // L1: no writer knows the snapshot. A pool only becomes longer.
  STELE_ASSERT(all_.load(std::memory_order_relaxed) == nullptr);
  STELE_ASSERT(bytes >= bytes_);
  resize(bytes);
  kept_ = std::move(kept);
  bytes_ = bytes;
  const std::uint64_t home = pool_.state().file.header().home_offset;
  STELE_ASSERT(bytes > home && bytes % page_size == 0);
  include_pages(home, bytes - home);
  return {};
}

long_read::~long_read() {
  STELE_ASSERT(own_ == nullptr);
  for (kept_page* k = all_.load(); k != nullptr;) {
    kept_page* const next = k->next;
    delete k;
    k = next;
  }
}

// L3. Other threads wait until the page is marked, which is after this.
void long_read::copy_before_store(std::uint64_t offset) noexcept {
  STELE_ASSERT(offset % page_size == 0 && offset < bytes_);
  STELE_ASSERT(offset >= pool_.state().file.header().home_offset);
  auto* const kept = new (std::nothrow) kept_page;
  if (kept == nullptr) return give_up();
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

// Nothing of the moment is in pages that the pool has got since.
template <class Take>
[[gnu::always_inline]] inline void long_read::at_moment(std::uint64_t offset, Take&& take) const {
  if (offset >= bytes_) [[unlikely]] {
    if (lost_.load(std::memory_order_acquire)) throw std::bad_alloc();
    return take(home_ + offset);
  }
  const std::atomic<kept_page*>& place = kept_[offset / page_size];
  const kept_page* kept = place.load(std::memory_order_acquire);
  if (kept == nullptr) {
    take(home_ + offset);
    std::atomic_thread_fence(std::memory_order_acquire);  // home before the second look
    if (!planted_in_schedule_explorer(base::mutant::long_read_one_look))
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
  STELE_ASSERT(offset % 8 == 0);
  std::uint64_t value = 0;
  at_moment(offset, [&](const std::byte* from) {
    value = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_ACQUIRE);
  });
  return value;
}

void long_read::copy(std::uint64_t offset, std::byte* to, std::size_t size) const {
  STELE_ASSERT(offset % line_size + size <= line_size);  // so it lies in one page
  at_moment(offset,
            [&](const std::byte* from) { in_place_home(from - offset).copy(offset, to, size); });
}

bool lost_enough_for_long_read() noexcept {
  if (base::schedule_explorer_build || this_attempt.ended >= lost_before_any_long_read) return true;
  return this_attempt.ended >= lost_before_long_read &&
         std::chrono::steady_clock::now() - this_attempt.first_retry >= long_read_after;
}

bool runtime::needs_long_read(const thread_context& v) const noexcept {
  if (policy() != concurrency::stm || home_is_remapped() || v.long_read != nullptr || v.runs_alone)
    return false;
  return lost_enough_for_long_read();
}

// L2, under a pause. The size that L1 took may be older than a growth before the pause; then the
// snapshot is made again.
result<> runtime::add_home_snapshot(home_snapshot& s) {
  const std::uint64_t bytes = state_->file.header().size;
  if (!s.covers(bytes))
    if (auto kept = s.keep_home(bytes); !kept) return kept;
  STELE_ASSERT(s.covers(state_->file.header().size));
  STELE_ASSERT(page_snapshots_.moments() != 0);  // reserve_moment()
  add_page_snapshot(s);
  return {};
}

// L1 and L2. The thread is between two attempts of a read. Without memory for a long read, or
// beside too many, the read goes on as it was.
void runtime::begin_long_read(thread_context& v) noexcept {
  STELE_ASSERT(v.long_read == nullptr && !v.runs_alone);
  STELE_ASSERT(this_attempt.state() == attempt_state::between && this_access.size == 0);
  if (!page_snapshots_.reserve_moment()) return;
  try {
    auto made = std::make_unique<long_read>(*this);
    if (made->keep_home(size())) v.long_read = std::move(made);
  } catch (const std::bad_alloc&) {
  }
  if (v.long_read == nullptr) {
    page_snapshots_.return_moment();
    return;
  }
  leave(v);  // a pause waits for the owner of each log; the pool stays open: moments()
  {
    const pool_pause paused = pause();
    try {
      (void)add_home_snapshot(*v.long_read);
    } catch (const std::bad_alloc&) {
      v.long_read->give_up();
      add_page_snapshot(*v.long_read);  // end_long_read() removes it
    }
  }
  v.long_read->take_over(v.tx);
  STELE_ASSERT(v.tx == &v.long_read->reader());
  v.in_transaction.announce(true);  // no thread gets the bias
}

// L5. The thread has left the transaction.
void runtime::end_long_read(thread_context& v) noexcept {
  STELE_ASSERT(v.long_read != nullptr && this_access.size == 0);
  const auto read = std::move(v.long_read);
  read->give_back(v.tx);
  {
    const pool_pause paused = pause();
    remove_page_snapshot(*read);
  }
  threads_.count_ended_read(read->counts());
  page_snapshots_.return_moment();
}

result<> runtime::begin_keeping_pages(home_snapshot& s) {
  STELE_ASSERT(this_access.size == 0);  // L2 waits for what runs
  if (!page_snapshots_.reserve_moment())
    return base::fail(errc::in_use,
                      fmt::format("{}: 15 snapshots and long reads are held, which are the most; "
                                  "destroy one that is not needed, or try again later",
                                  state_->file.path()));
  result<> begun;
  try {
    begun = s.keep_home(size_between_pauses());
    if (begun) {
      const pool_pause paused = pause();
      begun = add_home_snapshot(s);
    }
  } catch (const std::bad_alloc&) {
    page_snapshots_.return_moment();
    throw;
  }
  if (!begun) page_snapshots_.return_moment();
  return begun;
}

void runtime::end_keeping_pages(page_snapshot& s) noexcept {
  STELE_ASSERT(this_access.size == 0);  // L5 likewise
  {
    const pool_pause paused = pause();
    remove_page_snapshot(s);
  }
  page_snapshots_.return_moment();
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
  if (auto begun = r.begin_keeping_pages(*moment); !begun) return std::unexpected(begun.error());
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
