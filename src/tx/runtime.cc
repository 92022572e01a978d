// Threads, logs and policies of an open pool.
#include <base/check.h>
#include <base/mutant.h>
#include <base/reserve.h>
#include <base/rng.h>
#include <fmt/format.h>
#include <media/cpu.h>
#include <pthread.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <map>

namespace stele::detail {

using base::fail;

namespace {

// Runtimes that are open in this process, for threads that end and stores that go astray.
std::mutex open_mutex;
std::map<std::uint64_t, runtime*>& open_runtimes() {
  static std::map<std::uint64_t, runtime*> all;
  return all;
}
std::atomic<std::uint64_t> next_id{1};

constexpr unsigned long_streak = 512;  // updates by one thread before it is worth two system calls to free it of locks

// The pools that this thread has visited; gives the logs back when the thread ends.
struct visits {
  std::vector<visit> all;

  ~visits() {
    const std::lock_guard hold(open_mutex);
    for (const visit& v : all)
      if (auto found = open_runtimes().find(v.id); found != open_runtimes().end()) found->second->forget(*v.who);
  }
};
thread_local visits this_visits;

// Keeps a thread's list short when it opens and closes many pools.
void forget_closed(std::vector<visit>& all) {
  if (all.size() < 32) return;
  const std::lock_guard hold(open_mutex);
  std::erase_if(all, [](const visit& v) { return !open_runtimes().contains(v.id); });
}

// What is told to those who wait, without memory if need be.
template <class Sentence>
error told_as(errc code, Sentence&& sentence) noexcept {
  try {
    return {code, sentence()};
  } catch (const std::bad_alloc&) {
    return {code, "out of memory"};  // so short that it takes none
  }
}
result<> copy_of(const result<>& how) noexcept {
  if (how) return {};
  return std::unexpected(told_as(how.error().code, [&] { return how.error().message; }));
}

// A child of fork shares the file but not the lock's meaning, nor our threads: every open pool is out of bounds there.
void poison_in_child() noexcept {
  for (auto& [id, r] : open_runtimes()) r->state().poisoned.store(true, std::memory_order_relaxed);
}
[[maybe_unused]] const int at_fork = ::pthread_atfork(nullptr, nullptr, poison_in_child);

}  // namespace

constinit thread_local visit last_visit{0, nullptr};

runtime::runtime(std::unique_ptr<pool_state> s, std::unique_ptr<engine> e, const pool_options& options, std::string mechanism, std::string durability)
    : state_(std::move(s)),
      engine_(std::move(e)),
      options_(options),
      mechanism_name_(std::move(mechanism)),
      durability_(std::move(durability)),
      home_is_apart_(state_->file.home_delta() != 0 || state_->space != nullptr),
      in_place_(options.policy != concurrency::stm && engine_->stores_in_place() && !home_is_apart()),
      may_execute_in_log_(engine_->may_execute_in_log()),
      defers_ordered_(engine_->defers_ordered()),
      places_(state_->file.header().log_count),
      id_(next_id.fetch_add(1)) {
  state_->tell = [this] { tell_durable(engine_->durable_through(), {}); };
  if (options_.policy == concurrency::stm) {
    const std::uint64_t count = std::clamp<std::uint64_t>(std::bit_ceil(size() / line_size), 64, 1u << 20);
    locks_ = std::make_unique<line_lock[]>(count);
    lock_mask_ = count - 1;
  }
  const std::lock_guard hold(open_mutex);
  open_runtimes()[id_] = this;
}

// What cannot be closed for want of memory is left as a crash would leave it.
runtime::~runtime() {
  try {
    (void)close();
  } catch (const std::bad_alloc&) {
    tell_durable(pool_state::no_commit, std::unexpected(told_as(errc::poisoned, [this] { return state_->file.path() + " was not closed; opening it recovers it"; })));
  }
  {
    const std::lock_guard hold(open_mutex);
    open_runtimes().erase(id_);
  }
  engine_.reset();  // a pool that could not be closed has its background thread still, which works on the transactions of
                    // places_
}

void runtime::keep(std::unique_ptr<media::tape_writer> tape) { tape_ = std::move(tape); }

// The first time, or when another thread has the log or the bias.
result<visitor*> runtime::enter_anew() {
  if (state_->poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return fail(errc::poisoned, fmt::format("{} cannot be used any more: an earlier write failed, part of the file is gone (truncated, or unreadable), or this is a fork "
                                            "of the process that opened it; reopen it", state_->file.path()));
  if (last_visit.id != id_) {
    auto known = std::find_if(this_visits.all.begin(), this_visits.all.end(), [&](const visit& v) { return v.id == id_; });
    if (known == this_visits.all.end()) {
      forget_closed(this_visits.all);
      base::reserve_more(this_visits.all, 1);
      const std::scoped_lock hold(registry_, visitors_mutex_);
      visitors_.push_back(std::make_unique<visitor>());
      this_visits.all.push_back({id_, visitors_.back().get()});
      known = this_visits.all.end() - 1;
    }
    last_visit = *known;
  }
  visitor& v = *last_visit.who;
  for (;;) {
    v.inside.store(true, std::memory_order_relaxed);
    base::light_fence();
    if (v.tx == nullptr || places_[v.tx->log()].owner.load(std::memory_order_acquire) != &v) [[unlikely]] {
      v.inside.store(false, std::memory_order_release);
      auto tx = take_log(v);
      if (!tx) return std::unexpected(std::move(tx.error()));
    }
    const visitor* const other = biased_.load(std::memory_order_acquire);
    if (other == nullptr || other == &v) [[likely]]
      return &v;
    v.inside.store(false, std::memory_order_release);
    end_bias(v);  // meanwhile another thread may take the log
  }
}

// Takes the bias from another thread: it locks from now on, or is in one last transaction without locks. Until that has
// ended the bias is nobody's but not gone, so that every thread that comes waits here.
void runtime::end_bias(const visitor& v) {
  const std::lock_guard hold(bias_mutex_);
  const visitor* const other = biased_.load(std::memory_order_relaxed);
  if (other == nullptr || other == &v) return;
  biased_.store(&nobody_, std::memory_order_relaxed);
  base::heavy_fence();
  while (other->inside.load(std::memory_order_acquire)) ::sched_yield();
  biased_.store(nullptr, std::memory_order_release);
}

// A thread that has long been the only writer need not lock until another comes. Its caller holds the writer lock.
void runtime::offer_bias(visitor& v) noexcept {
  const std::unique_lock hold(bias_mutex_, std::try_to_lock);
  if (!hold.owns_lock()) return;
  biased_.store(&v, std::memory_order_relaxed);
  base::heavy_fence();  // whoever begins from here on sees the bias; whoever is inside already is seen here
  const std::lock_guard hold_visitors(visitors_mutex_);
  const bool others = std::any_of(visitors_.begin(), visitors_.end(), [&](const auto& o) { return o.get() != &v && o->inside.load(std::memory_order_acquire); });
  if (others) biased_.store(nullptr, std::memory_order_relaxed);
}

// Finds a log for a visitor: a free one, else one whose owner is between transactions, else waits for either.
result<transaction*> runtime::take_log(visitor& v) {
  std::unique_lock hold(registry_);
  for (;;) {
    if (closed_) return fail(errc::invalid_argument, fmt::format("{} has been closed", state_->file.path()));
    if (paused_) {
      log_left_.wait_for(hold, std::chrono::milliseconds(1));
      continue;
    }
    for (place& p : places_)
      if (p.owner.load(std::memory_order_relaxed) == nullptr) return settle(v, p);
    for (place& p : places_) {
      visitor* const owner = p.owner.exchange(&v, std::memory_order_relaxed);
      base::heavy_fence();  // from here on the owner sees, at its next begin, that the log is gone
      if (!owner->inside.load(std::memory_order_acquire)) return settle(v, p);
      p.owner.store(owner, std::memory_order_release);
    }
    log_left_.wait_for(hold, std::chrono::microseconds(100));
  }
}

// Makes the visitor the owner of a log that no running transaction uses. Holds registry_.
transaction* runtime::settle(visitor& v, place& p) {
  if (!p.tx) p.tx = std::make_unique<transaction>(*this, static_cast<unsigned>(&p - places_.data()));
  p.owner.store(&v, std::memory_order_relaxed);
  v.tx = p.tx.get();
  v.inside.store(true, std::memory_order_relaxed);
  if (policy() == concurrency::single_writer && visitors_.size() == 1) biased_.store(&v, std::memory_order_relaxed);
  return v.tx;
}

void runtime::forget(visitor& v) noexcept {
  const std::scoped_lock hold(bias_mutex_, registry_);
  if (biased_.load(std::memory_order_relaxed) == &v) biased_.store(nullptr, std::memory_order_relaxed);
  for (place& p : places_)
    if (p.owner.load(std::memory_order_relaxed) == &v) {
      if (p.tx) state_->heap.give_back(p.tx->cache);
      p.owner.store(nullptr, std::memory_order_release);
    }
  const std::lock_guard hold_visitors(visitors_mutex_);
  std::erase_if(visitors_, [&](const auto& known) { return known.get() == &v; });
  log_left_.notify_one();
}

void pool_state::await_announced(unsigned except) const noexcept {
  for (std::size_t i = 0; i < committing.size(); ++i) {
    if (i == except) continue;
    const std::uint64_t announced = committing[i].value.load(std::memory_order_seq_cst);
    while (announced != no_commit && committing[i].value.load(std::memory_order_acquire) == announced) media::cpu::relax();
  }
}

// A commit that announced itself before it could see the flag may have drawn its TxID without asking: it is waited for.
void runtime::first_order(unsigned log) {
  state_->orders.store(true, std::memory_order_seq_cst);
  base::heavy_fence();
  state_->await_announced(log);
}

void runtime::see_ordered_now(const visitor& v, bool writes) {
  const bool own_alone = v.tx->has_unsettled() && state_->unsettled.load(std::memory_order_acquire) == 1;
  const bool reads_as_owner = policy() == concurrency::external || biased_.load(std::memory_order_relaxed) == &v;
  if (!own_alone || !(writes || reads_as_owner)) engine_->settle();
}

// The caller runs no transaction: it is between two attempts.
void runtime::retire_idle(const visitor& v) noexcept {
  engine_->settle();
  const std::lock_guard hold(registry_);
  if (state_->poisoned.load()) return;  // what has not reached home stays locked
  for (place& p : places_) {
    visitor* const owner = p.owner.load(std::memory_order_relaxed);
    const visitor* const user = user_of(p);
    if (!p.tx || !p.tx->has_pending()) continue;
    if (user == &v) {
      p.tx->retire();
      continue;
    }
    p.owner.store(nullptr, std::memory_order_relaxed);
    base::heavy_fence();  // as in take_log
    if (user == nullptr || !user->inside.load(std::memory_order_acquire)) {
      engine_->settle();  // it may have committed since
      if (!state_->poisoned.load()) p.tx->retire();
      if (user == nullptr) state_->heap.give_back(p.tx->cache);
    }
    p.owner.store(owner, std::memory_order_release);
  }
}

// The thread that may be inside a transaction on this log: its owner, or the one that a pause took it from. Null: nobody. Under registry_.
const visitor* runtime::user_of(const place& p) const noexcept {
  if (const visitor* const owner = p.owner.load(std::memory_order_relaxed); owner != nullptr) return owner;
  if (!paused_ || base::planted(base::mutant::retire_paused)) return nullptr;
  const auto known = std::ranges::find(visitors_, p.paused, &std::unique_ptr<visitor>::get);
  return known != visitors_.end() ? p.paused : nullptr;
}

// Every log is taken from its owner, as take_log does; whoever begins then waits there.
runtime::pause::pause(runtime& r) noexcept : runtime_(r) {
  stop();
  base::heavy_fence();
  wait();
  r.engine_->settle();
  const std::lock_guard hold(r.registry_);
  for (place& p : r.places_) {
    if (!p.tx) continue;
    if (p.tx->has_pending() && !r.state_->poisoned.load()) p.tx->retire();
    r.state_->heap.give_back(p.tx->cache);
  }
}

void runtime::pause::stop() noexcept {
  const std::lock_guard hold(runtime_.registry_);
  runtime_.paused_ = true;
  for (place& p : runtime_.places_) p.paused = p.owner.exchange(nullptr, std::memory_order_relaxed);
}

void runtime::pause::wait() noexcept {
  for (place& p : runtime_.places_)
    while (p.paused != nullptr && is_inside(p.paused)) ::sched_yield();
}

// A visitor is gone when its thread has ended: it is not waited for.
bool runtime::pause::is_inside(const visitor* v) const noexcept {
  const std::lock_guard hold(runtime_.visitors_mutex_);
  const auto known = std::ranges::find(runtime_.visitors_, v, &std::unique_ptr<visitor>::get);
  return known != runtime_.visitors_.end() && v->inside.load(std::memory_order_acquire);
}

runtime::pause::~pause() {
  const std::lock_guard hold(runtime_.registry_);
  runtime_.paused_ = false;
  runtime_.log_left_.notify_all();
}

void runtime::recall_idle(const visitor& v) noexcept {
  const std::lock_guard hold(registry_);
  for (place& p : places_) {
    visitor* const owner = p.owner.load(std::memory_order_relaxed);
    if (owner == nullptr || owner == &v) continue;
    p.owner.store(nullptr, std::memory_order_relaxed);
    base::heavy_fence();  // as in take_log
    if (owner->inside.load(std::memory_order_acquire))
      p.owner.store(owner, std::memory_order_release);
    else if (p.tx)
      state_->heap.give_back(p.tx->cache);
  }
}

void runtime::lock_writer_now(visitor& v) {
  writer_.lock();
  v.holds_writer = true;
  writer_streak_ = last_writer_ == &v ? writer_streak_ + 1 : 0;
  last_writer_ = &v;
}

void runtime::unlock_writer(visitor& v) noexcept {
  v.holds_writer = false;
  if (writer_streak_ >= long_streak) [[unlikely]] {
    writer_streak_ = 0;
    offer_bias(v);
  }
  writer_.unlock();
}

void runtime::begin_read(visitor& v) {
  if (policy() != concurrency::single_writer || biased_.load(std::memory_order_relaxed) == &v) return;
  for (;;) {
    v.reading.store(true, std::memory_order_seq_cst);
    if (!gate_closed_.load(std::memory_order_seq_cst)) return;
    v.reading.store(false, std::memory_order_release);
    while (gate_closed_.load(std::memory_order_acquire)) media::cpu::relax();
  }
}

void runtime::close_gate() {
  if (policy() != concurrency::single_writer) return;
  gate_closed_.store(true, std::memory_order_seq_cst);
  const std::lock_guard hold(visitors_mutex_);  // not registry_: who holds that may be waiting for this writer to end
  for (const auto& v : visitors_)
    while (v->reading.load(std::memory_order_seq_cst)) media::cpu::relax();
}

void runtime::open_gate() noexcept { gate_closed_.store(false, std::memory_order_release); }

std::uint64_t runtime::newest_commit() const noexcept {
  std::uint64_t newest = 0;
  for (const place& p : places_) newest = std::max(newest, p.newest.load(std::memory_order_acquire));
  return newest;
}

void runtime::tell_when_durable(std::uint64_t txid, std::function<void(result<>)> told) {
  {
    const std::lock_guard hold(awaiting_mutex_);
    awaiting_.emplace(txid, std::move(told));
    state_->awaited.store(true, std::memory_order_release);
  }
  if (closed_ || state_->poisoned.load())
    tell_durable(pool_state::no_commit, std::unexpected(told_as(errc::poisoned, [this] { return fmt::format("{} is not in use any more: whether this commit is durable, opening it tells", state_->file.path()); })));
  else
    tell_durable(engine_->durable_through(), {});
}

void runtime::tell_durable(std::uint64_t through, const result<>& how) noexcept {
  std::multimap<std::uint64_t, std::function<void(result<>)>> now;  // takes over what is there, so it needs no memory
  {
    const std::lock_guard hold(awaiting_mutex_);
    while (!awaiting_.empty() && awaiting_.begin()->first <= through) now.insert(now.end(), awaiting_.extract(awaiting_.begin()));
    state_->awaited.store(!awaiting_.empty(), std::memory_order_release);
  }
  for (const auto& [txid, told] : now) told(copy_of(how));
}

// Throws std::bad_alloc with the pool in use as before.
result<> runtime::close() {
  {
    const std::lock_guard hold(registry_);
    if (closed_) return {};
    for (const auto& v : visitors_)
      if (v->inside.load(std::memory_order_acquire)) return fail(errc::in_use, fmt::format("{} cannot be closed while a transaction runs", state_->file.path()));
    closed_ = true;
    for (place& p : places_) p.owner.store(nullptr, std::memory_order_relaxed);
  }
  try {
    return close_engine();
  } catch (const std::bad_alloc&) {
    const std::lock_guard hold(registry_);
    closed_ = false;
    throw;
  }
}

result<> runtime::expect_sound() {
  if (auto whole = state_->file.expect_whole(); !whole) {
    state_->poisoned.store(true);
    return whole;
  }
  if (!state_->poisoned.load()) return {};
  return fail(errc::poisoned, fmt::format("{} cannot be used any more: an earlier write failed, or part of the file is gone "
                                          "(truncated, or unreadable); reopen it",
                                          state_->file.path()));
}

result<> runtime::close_engine() {
  if (state_->poisoned.load()) {
    result<> left = fail(errc::poisoned, fmt::format("{} was left as it is: an earlier write failed, or part of the file is "
                                                     "gone (truncated, or unreadable); opening it recovers it",
                                                     state_->file.path()));
    tell_durable(pool_state::no_commit, left);
    return left;
  }
  if (auto sound = expect_sound(); !sound) {
    tell_durable(pool_state::no_commit, sound);
    return sound;
  }
  auto closed = engine_->close();
  tell_durable(pool_state::no_commit, closed);
  state_->file.unlock();
  return closed;
}

pool_counters runtime::counters() const noexcept {
  pool_counters c;
  for (const place& p : places_) {
    c.commits += p.commits.load(std::memory_order_relaxed);
    c.aborts += p.aborts.load(std::memory_order_relaxed);
    c.reads += p.reads.load(std::memory_order_relaxed);
    c.stored_bytes += p.stored_in_place.load(std::memory_order_relaxed);
  }
  const engine_totals t = engine_->totals();
  c.fences = t.media.fences;
  c.flushed_lines = t.media.flushed_lines;
  c.streamed_bytes = t.media.streamed_bytes;
  c.stored_bytes += t.media.stored_bytes;
  c.truncations = t.truncations;
  c.log_spills = t.log_spills;
  c.mode_switches = t.mode_switches;
  c.mode = t.mode;
  c.skipped_lines = t.skipped_lines;
  c.checksum_lines = t.checksum_lines;
  c.kept_lines = t.kept_lines;
  c.cleaned_chunks = t.cleaned_chunks;
  c.fast_cleaned_chunks = t.fast_cleaned_chunks;
  c.moved_bytes = t.moved_bytes;
  if (state_->space == nullptr) return c;
  c.map_bytes = state_->space->map.bytes() + t.cache_bytes;
  for (const place& p : places_) {
    if (p.tx == nullptr) continue;
    c.map_bytes += p.tx->places().bytes();
    c.map_hits += p.tx->places().hits;
    c.map_misses += p.tx->places().misses;
  }
  return c;
}

pool_space runtime::space() const {
  engine_->settle();  // the audit reads home
  const auto& h = state_->file.header();
  pool_space s;
  s.size_bytes = h.size;
  s.log_bytes = h.home_offset;
  const auto sum = state_->heap.audit();
  if (!sum) return s;
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift;
  s.used_bytes = sum->used_bytes;
  s.free_bytes = sum->free_chunks * chunk + sum->free_blocks_bytes;
  s.largest_free = sum->longest_free_run * chunk;
  if (state_->space != nullptr) {  // the file holds what is in use, wherever its addresses are
    const auto& log = *state_->space;
    s.log_bytes = h.log_offset;
    s.used_bytes = log.ledger.live_in_all() * 8;
    const std::uint64_t in_use = (log.chunk_count() - log.free_chunks()) * std::uint64_t{log.chunk_words()} * 8;
    s.free_bytes = h.size - h.log_offset - s.used_bytes;
    s.largest_free = log.free_chunks() * std::uint64_t{log.chunk_words()} * 8;
    s.fragmentation = in_use == 0 ? 0 : 1 - static_cast<double>(s.used_bytes) / static_cast<double>(in_use);
    return s;
  }
  const double taken = static_cast<double>(sum->used_chunks * chunk);
  s.fragmentation = taken == 0 ? 0 : 1 - static_cast<double>(sum->used_bytes) / taken;
  return s;
}

std::uint64_t runtime::root_offset() const noexcept {
  const std::uint64_t at = state_->file.header().home_offset;
  return state_->space != nullptr ? state_->space->word_at(at) : reinterpret_cast<const format::home_header*>(state_->file.at(at))->root_offset;
}

// The pool that holds an address, for stores outside a transaction.
runtime* runtime_at(std::uintptr_t address) {
  const std::lock_guard hold(open_mutex);
  for (auto& [id, r] : open_runtimes())
    if (address - reinterpret_cast<std::uintptr_t>(r->base()) < r->size()) return r;
  return nullptr;
}

}  // namespace stele::detail
