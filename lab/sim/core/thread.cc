// The steps of a hardware thread. Each step either completes, or changes nothing and waits to be
// woken.
#include <sim/controller/scheduler.h>
#include <sim/core/thread.h>

#include <algorithm>
#include <utility>

namespace stele::sim {

using media::tape_op;

namespace {

enum class token : std::uint64_t { load, store, persist };
constexpr std::uint64_t to_token(token t, std::uint64_t place) noexcept {
  return static_cast<std::uint64_t>(t) << 56 | place;
}
constexpr std::uint64_t bytes_of_instruction = 16;
// A thread yields after this many events even when no other event is due, so that a run can show
// progress and be cancelled.
constexpr unsigned events_at_once = 1 << 16;

// The bytes of memory that an event accesses; at least one.
std::uint64_t bytes_of(const tape_item& i) noexcept {
  return std::max(i.record.length, 1u);
}
std::uint64_t last_line_of(const tape_item& i) noexcept {
  return (i.record.address + bytes_of(i) - 1) / 64;
}
bool is_dependent(const tape_item& i) noexcept {
  return (i.record.tag & media::tape_pointer_flag) != 0;
}
// Thread t runs on core t % cores. Threads that have ended count, too.
unsigned threads_on_core_of(unsigned thread, unsigned threads, unsigned cores) noexcept {
  return (threads - thread % cores + cores - 1) / cores;
}

}  // namespace

thread_counts& thread_counts::operator+=(const thread_counts& o) noexcept {
  events += o.events, instructions += o.instructions, loads += o.loads, stores += o.stores;
  commits += o.commits, operations += o.operations, aborts += o.aborts,
      commit_time += o.commit_time;
  return *this;
}

hardware_thread::hardware_thread(environment& s, unsigned number)
    : events_(s.events),
      caches_(s.caches),
      environment_(s),
      number_(number),
      core_(number % s.machine.cores.count),
      lookahead_(from_ns(s.machine.crossbar.latency_ns)) {
  const core_config& cores = s.machine.cores;
  const unsigned sharing_core = threads_on_core_of(number, s.tape.threads(), cores.count);
  instruction_time_ =
      std::max<picoseconds>(1, from_ns(sharing_core / (cores.clock_ghz * cores.issue_width)));
  window_size_ = cores.window_instructions / sharing_core;
  // A load is an instruction at least, so the window bounds those that wait.
  loads_.set_capacity(cores.outstanding_misses, window_size_);
  stores_.set_capacity(cores.store_buffer_entries);
  fences_wait_ = s.machine.design.fences_wait;
  barriers_wait_ = s.machine.design.barriers_wait;
  lock_until_durable_ = s.machine.design.lock_until_durable;
  const memory_config& memory = s.machine.nonvolatile_memory;
  if (const auto kind = find_scheduler(memory.scheduler); kind && (*kind)->fences_return)
    posted_ = std::max<std::uint64_t>(memory.write_queue_entries / s.tape.threads(), 1);
  may_abort_ = s.isolation.kind() == isolation_kind::htm;
  plain_stores_ = !s.persistence.intercepts_stores();
  if (!s.tlbs.empty()) tlb_ = s.tlbs[core_].get();
  s.isolation.add(*this);
}

// --- waking ---

void hardware_thread::handle(picoseconds now, std::uint64_t) {
  asleep_ = true;
  time_ = std::max(time_, now);
  running_ = true;
  run();
  running_ = false;
}

void hardware_thread::wake(picoseconds now) {
  if (!asleep_ || finished_) return;
  asleep_ = false;
  events_.schedule(std::max({now, time_, events_.now()}), *this);
}

void hardware_thread::done(picoseconds now, std::uint64_t t) {
  const std::uint64_t place = t & 0xff'ffff'ffff'ffff;
  switch (static_cast<token>(t >> 56)) {
    case token::load:
      loads_.at(place).done = now;
      break;
    case token::store:
      stores_.at(place).done = now;
      break;
    case token::persist:
      --persists_;
      persisted_ = std::max(persisted_, now);
      break;
  }
  if (!blocked_) wake(now);
}

void hardware_thread::retry(picoseconds now) {
  blocked_ = false;
  wake(now);
}

// A line of the attempt is about to leave its caches. The attempt's stores are undone now; the rest
// when the thread runs again.
void hardware_thread::aborted(picoseconds now) {
  aborted_ = true;
  ++counts.aborts;
  if (environment_.observer != nullptr) environment_.observer->aborted(number_, core_);
  environment_.persistence.aborted(number_);
  // A running thread sees aborted_ itself. An event for it would run it again while it waits for
  // the lock, so that it would wait twice.
  if (!blocked_ && !running_) wake(now);
}

// --- running ---

void hardware_thread::run() {
  for (unsigned n = 0;; ++n) {
    if (time_ > events_.next() || n == events_at_once) return wake(time_);
    if (aborted_) restart_attempt(time_);
    if (next_action_ < plan_.size()) {
      if (!run_plan()) return;
      continue;
    }
    if (!fetch()) return finish();
    const std::size_t before = item_;
    if (!run_simple(n)) return;
    if (aborted_) continue;
    if (item_ != before) {
      --n;  // run_simple has counted these events
      continue;
    }
    const tape_item& item = replaying_ ? attempt_events_[replayed_] : items_[item_];
    if (!step(item)) return;
    if (aborted_) continue;
    lines_done_ = 0;
    plan_requested_ = false;
    if (replaying_) {
      replaying_ = ++replayed_ < attempt_events_.size();
    } else {
      ++item_, ++counts.events;
    }
  }
}

inline bool hardware_thread::touch_line(std::uint64_t line, bool store, std::uint64_t instructions,
                                        hierarchy::frame in_l1, bool whole) {
  window& w = store ? stores_ : loads_;
  if (!(loads_.empty() && w.empty()) && !may_issue(w)) return false;
  if (tlb_ != nullptr && !translated(line)) [[unlikely]]
    return false;
  time_ += instruction_time_ * instructions;
  instruction_ += instructions;
  if (!caches_.hit_at(core_, in_l1, store, time_) && !miss(line, store, whole)) {
    time_ -= instruction_time_ * instructions;
    instruction_ -= instructions;
    return false;
  }
  translated_ = false;
  counts.instructions += instructions;
  ++(store ? counts.stores : counts.loads);
  return true;
}

template <bool Inside>
inline hardware_thread::outcome hardware_thread::access_line(const tape_item& item,
                                                             std::uint64_t line, bool store,
                                                             std::uint64_t bytes,
                                                             hierarchy::frame in_l1) {
  if constexpr (Inside) {
    environment_.isolation.touch(number_, line, store, time_);
    blocked_ = store && !environment_.persistence.storing(number_, line, *this, time_);
    if (blocked_) return outcome::blocked;
  } else {
    environment_.isolation.touch_outside(number_, line, store, time_);
  }
  if (!touch_line(line, store, (bytes + bytes_of_instruction - 1) / bytes_of_instruction, in_l1))
    return outcome::blocked;
  if (Inside && aborted_) {  // the access evicted another line of this transaction
    if (store) caches_.cancel_store(core_, line);
    return outcome::aborted;
  }
  if (!store) return outcome::done;
  if (environment_.observer != nullptr) environment_.observer->stored(number_, core_, item, line);
  if constexpr (Inside) environment_.persistence.stored(number_, line, time_);
  return Inside && aborted_ ? outcome::aborted : outcome::done;
}

// The fast path of step() for most events: consecutive loads and stores of one line each. Does as
// many as possible, and the bookkeeping that run() does between them. Returns false when an access
// has to wait.
//
// On hits the thread may run ahead of other events by the crossbar latency: no later request of
// another core could arrive earlier. So the thread need not yield at each hit.
bool hardware_thread::run_simple(unsigned& n) {
  if (replaying_ || lines_done_ != 0 || plan_requested_ || dependent_) return true;
  const tape_item* item = items_.data() + item_;
  const tape_item* const last =
      item + std::min<std::size_t>(items_.size() - item_, events_at_once - n);
  const bool may_go_on =
      phase_ == phase::inside ? run_simple<true>(item, last) : run_simple<false>(item, last);
  const auto count = static_cast<std::size_t>(item - items_.data()) - item_;
  item_ += count, counts.events += count, n += static_cast<unsigned>(count);
  return may_go_on;
}

template <bool Inside>
bool hardware_thread::run_simple(const tape_item*& item, const tape_item* last) {
  for (; item != last; ++item) {
    const std::uint64_t line = item->record.address / 64;
    const bool store = item->record.op == static_cast<std::uint8_t>(tape_op::store);
    if (store ? Inside && !plain_stores_
              : item->record.op != static_cast<std::uint8_t>(tape_op::load))
      return true;
    if (is_dependent(*item) || last_line_of(*item) != line) return true;
    const hierarchy::frame in_l1 = caches_.l1_frame(core_, line);
    if (const picoseconds next = events_.next();
        time_ > next &&
        (time_ - next > lookahead_ || !caches_.would_hit_at(core_, in_l1, store, time_)))
      return true;
    if (const outcome got = access_line<Inside>(*item, line, store, bytes_of(*item), in_l1);
        got != outcome::done)
      return got == outcome::aborted;
  }
  return true;
}

bool hardware_thread::yields() {
  if (time_ <= events_.next()) return false;
  wake(time_);
  return true;
}

bool hardware_thread::fetch() {
  if (replaying_ || item_ < items_.size()) return true;
  if (phase_ != phase::outside) save_attempt();
  items_ = environment_.tape.next(number_);
  item_ = attempt_begin_ = 0;
  return !items_.empty();
}

// Keeps the finished events of the attempt, for another attempt.
void hardware_thread::save_attempt() {
  if (may_abort_)
    attempt_events_.insert(attempt_events_.end(),
                           items_.begin() + static_cast<std::ptrdiff_t>(attempt_begin_),
                           items_.begin() + static_cast<std::ptrdiff_t>(item_));
  attempt_begin_ = item_;
}

void hardware_thread::finish() {
  if (!drain()) return;
  finished_ = true;
}

bool hardware_thread::step(const tape_item& item) {
  if (!await_dependent()) return false;
  const auto op = static_cast<tape_op>(item.record.op);
  switch (op) {
    case tape_op::load:
      return access(item, false);
    case tape_op::store:
      return access(item, true);
    case tape_op::compute:
      if (time_ > latest || item.record.address > latest / instruction_time_) [[unlikely]] {
        outran_time_ = true;
        return true;
      }
      time_ += item.record.address * instruction_time_;
      instruction_ += item.record.address, counts.instructions += item.record.address;
      return true;
    case tape_op::tx_begin:
      return begin(item);
    case tape_op::tx_commit:
    case tape_op::tx_abort:
      return end();
    case tape_op::stream:
      return each_line(item, action::kind::stream);
    case tape_op::flush:
      return each_line(item, action::kind::clean_to_memory);
    case tape_op::bulk:
      return each_line(item, action::kind::clean_to_memory) && fence();
    case tape_op::fence:
      return fence();
    case tape_op::returned:
      ++counts.operations;
      if (counts.commits == 0) environment_.committed(number_, time_);
      return true;
    default:
      return true;
  }
}

// --- plans ---

bool hardware_thread::run_plan() {
  while (next_action_ < plan_.size()) {
    if (yields()) return false;
    if (aborted_) return true;
    if (!execute(plan_[next_action_])) return false;
    ++next_action_;
  }
  plan_.clear();
  next_action_ = 0;
  return true;
}

bool hardware_thread::execute(const action& a) {
  switch (a.what) {
    case action::kind::load:
      return touch_line(a.line, false, 4, caches_.l1_frame(core_, a.line));
    case action::kind::store:
      return touch_line(a.line, true, 4, caches_.l1_frame(core_, a.line));
    case action::kind::store_full_line:
      return touch_line(a.line, true, 4, caches_.l1_frame(core_, a.line), true);
    case action::kind::fence:
      return fences_wait_ ? fence() : persists_ < stores_.capacity;
    default:
      return clean(a);
  }
}

bool hardware_thread::each_line(const tape_item& item, action::kind what) {
  const std::uint64_t first = item.record.address / 64;
  for (; first + lines_done_ <= last_line_of(item); ++lines_done_) {
    if (yields()) return false;
    if (!clean({what, first + lines_done_})) return false;
    if (aborted_) return true;
  }
  return true;
}

bool hardware_thread::clean(const action& a) {
  if (a.what != action::kind::stream && !drain(stores_))
    return false;  // the store must complete first
  if (tlb_ != nullptr && !translated(a.line)) return false;
  translated_ = false;
  environment_.isolation.flushing(a.line, time_);
  if (aborted_) return true;
  const hierarchy::request_origin who{core_, number_, this, to_token(token::persist, 0)};
  time_ += instruction_time_;
  unfenced_ = true;
  ++persists_;
  access_result got;
  if (a.what == action::kind::stream) {
    got = caches_.stream(who, a.line, 0, time_);
  } else {
    const auto to = a.what == action::kind::clean_to_shared ? hierarchy::level::shared_cache
                                                            : hierarchy::level::memory;
    got = caches_.clean(who, a.line, to, a.what == action::kind::clean_invalidate_to_memory, time_);
  }
  if (got.what == access_result::kind::completed) {
    --persists_;
    persisted_ = std::max(persisted_, got.when);
  }
  return true;
}

// A persist barrier orders the writes and lets the thread go on, until the controller's queue has
// no room for the thread's share of writes. With barriers_wait the thread waits for the writes too.
bool hardware_thread::fence() {
  if (posted_ == 0) return drain();
  if (!drain(stores_) || (!barriers_wait_ && persists_ >= posted_) || yields()) return false;
  if (std::exchange(unfenced_, false)) caches_.barrier(number_, time_);
  return !barriers_wait_ || drain();
}

bool hardware_thread::drain(window& w) {
  while (!w.empty()) {
    const picoseconds done = w.at(w.first).done;
    if (done == never) return false;
    time_ = std::max(time_, done);
    w.pop();
  }
  return true;
}

bool hardware_thread::drain() {
  if (!drain(loads_) || !drain(stores_) || persists_ != 0) return false;
  time_ = std::max(time_, persisted_);
  return true;
}

// --- accesses ---

bool hardware_thread::access(const tape_item& item, bool store) {
  const std::uint64_t first = item.record.address / 64, lines = last_line_of(item) - first + 1,
                      length = bytes_of(item);
  if (store && phase_ == phase::inside && !plan_requested_ && !is_volatile_line(first)) {
    plan_requested_ = true;
    store_deferred_ = environment_.persistence.before_store(number_, first, lines, length, plan_);
    if (next_action_ < plan_.size() && !run_plan()) return false;
  }
  if (plan_requested_ && next_action_ < plan_.size() && !run_plan()) return false;
  if (aborted_) return true;
  if (store && store_deferred_) {
    store_deferred_ = false;
    return true;
  }
  if (lines_done_ == 0) pointer_first_ = loads_.next;
  for (; lines_done_ < lines; ++lines_done_) {
    if (lines_done_ != 0 && yields()) return false;
    const std::uint64_t line = first + lines_done_,
                        here = lines == 1 ? length : std::min<std::uint64_t>(64, length);
    const hierarchy::frame in_l1 = caches_.l1_frame(core_, line);
    const outcome got = phase_ == phase::inside
                            ? access_line<true>(item, line, store, here, in_l1)
                            : access_line<false>(item, line, store, here, in_l1);
    if (got != outcome::done) return got == outcome::aborted;
  }
  if (is_dependent(item))
    dependent_ = true, pointer_next_ = loads_.next, pointer_hit_ = time_ + caches_.hit_latency();
  return true;
}

// Advances the time until the windows have room. Returns false when that time is not known.
bool hardware_thread::may_issue(window& w) {
  loads_.retire(time_);
  while (!loads_.empty() && (instruction_ - loads_.at(loads_.first).instruction >= window_size_ ||
                             (&w == &loads_ && loads_.full()))) {
    if (loads_.at(loads_.first).done == never) return false;
    time_ = std::max(time_, loads_.at(loads_.first).done);
    loads_.pop();
  }
  if (&w == &stores_) {
    stores_.retire(time_);
    if (stores_.full()) {
      if (stores_.at(stores_.first).done == never) return false;
      time_ = std::max(time_, stores_.at(stores_.first).done);
      stores_.pop();
    }
  }
  return true;
}

bool hardware_thread::translated(std::uint64_t line) {
  if (translated_) return true;
  const picoseconds asked = time_;
  if (!tlb_->translate(number_, line, *this, time_)) {
    blocked_ = true;
    return false;
  }
  translated_ = true;
  return time_ == asked || !yields();  // the time of the second level may let others come first
}

bool hardware_thread::miss(std::uint64_t line, bool store, bool whole) {
  window& w = store ? stores_ : loads_;
  const hierarchy::request_origin who{core_, number_, this,
                                      to_token(store ? token::store : token::load, w.next)};
  const access_result got = whole ? caches_.store_full_line(who, line, time_)
                                  : caches_.access_line(who, line, store, time_);
  if (got.what == access_result::kind::nacked) {
    blocked_ = true;
    return false;
  }
  w.push({instruction_, got.what == access_result::kind::completed ? got.when : never,
          got.joined && !store});
  return true;
}

bool hardware_thread::await_dependent() {
  if (!dependent_) return true;
  picoseconds there = pointer_hit_;
  for (std::uint64_t n = std::max(pointer_first_, loads_.first); n < pointer_next_; ++n)
    there = std::max(there, loads_.at(n).done);
  if (there == never) return false;
  time_ = std::max(time_, there);
  dependent_ = false;
  return true;
}

// --- transactions ---

bool hardware_thread::begin(const tape_item& item) {
  if (!plan_requested_) {
    blocked_ = !environment_.persistence.begin(
        number_, (item.record.length & media::tape_ordered_flag) != 0, *this, time_);
    if (blocked_) return false;
    plan_requested_ = true;
  }
  blocked_ = !environment_.isolation.begin(number_, time_);
  if (blocked_) return false;
  phase_ = phase::inside;
  if (!replaying_) attempt_begin_ = item_;
  return true;
}

bool hardware_thread::end() {
  if (phase_ == phase::outside) return true;
  if (phase_ == phase::inside) {
    if (!drain(loads_) || !drain(stores_)) return false;
    environment_.isolation.end(number_);
    phase_ = phase::committing;
    ended_at_ = time_;
    if (environment_.observer != nullptr)
      environment_.observer->ended(number_, environment_.isolation.lines(number_));
    environment_.persistence.commit(number_, environment_.isolation.lines(number_), plan_, time_);
  }
  if (next_action_ < plan_.size() && !run_plan()) return false;
  if (lock_until_durable_ && environment_.isolation.has_lock(number_)) {
    blocked_ = !environment_.persistence.durable(number_, *this, time_);
    if (blocked_) return false;
  }
  environment_.isolation.release(number_, time_);
  phase_ = phase::outside;
  ++counts.commits;
  counts.commit_time += time_ - ended_at_;
  attempt_events_.clear();
  environment_.committed(number_, time_);
  return true;
}

// Returns to the transaction's first event, for another attempt.
void hardware_thread::restart_attempt(picoseconds now) {
  save_attempt();
  aborted_ = false;
  plan_.clear();
  next_action_ = 0;
  lines_done_ = 0;
  plan_requested_ = store_deferred_ = translated_ = false;
  dependent_ = false;
  time_ = now;
  phase_ = phase::outside;
  replaying_ = true;
  replayed_ = 0;
}

}  // namespace stele::sim
