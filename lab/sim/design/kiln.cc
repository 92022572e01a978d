// Kiln's controllers. Numbers in comments are the steps of docs/protocol/kiln.md.
#include <sim/design/kiln.h>

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

namespace stele::sim {

namespace {

enum class event : std::uint64_t { arrival, flag, state, fall_back, overflow_timeout };
constexpr std::uint64_t event_argument(event e, std::uint64_t argument) noexcept {
  return static_cast<std::uint64_t>(e) << 56 | argument;
}

// After this many fallbacks in a row that found no line to copy, without a commit in between,
// requests wait for room for ever.
constexpr unsigned max_futile_fallbacks = 10'000;

// The token of a request whose completion needs no action.
constexpr std::uint64_t no_transfer = 0xff'ffff'ffff'ffff;

// Nearly always the first one.
template <class T>
void erase_oldest(std::vector<T*>& all, T& one) {
  all.erase(std::ranges::find(all, &one));
}

// The addresses of the copies of overflowed lines, and of the table that maps them.
constexpr std::uint64_t copies_at = std::uint64_t{3} << 36 >> 6,
                        mapping_at = copies_at + (std::uint64_t{1} << 28);

}  // namespace

std::string_view name_of(kiln_mutant f) noexcept {
  constexpr std::string_view names[] = {"none",
                                        "pending_evicted",
                                        "committed_early",
                                        "overflow_copy_kept",
                                        "write_back_overwritten",
                                        "version_overwritten",
                                        "states_one_by_one",
                                        "out_of_order"};
  return names[static_cast<std::size_t>(f)];
}

unsigned tag_bits(const machine_config& machine) noexcept {
  const auto bits_of = [](unsigned count) { return std::bit_width(std::max(count, 1u) - 1); };
  return static_cast<unsigned>(bits_of(machine.cores.count) +
                               bits_of(machine.cores.threads_per_core) +
                               bits_of(machine.design.transaction_ids)) +
         2;
}

kiln::kiln(const design_context& where)
    : events_(where.events),
      caches_(where.caches),
      mutant_(where.mutant),
      relaxed_(where.machine.design.order == "relaxed"),
      speculative_(where.machine.design.isolation == "htm"),
      cores_(where.machine.cores.count),
      max_tracked_(where.machine.l1.persistence_queue_entries +
                   where.machine.l2.persistence_queue_entries),
      max_queued_(where.machine.l3.persistence_queue_entries),
      max_others_(std::max<std::size_t>(
                      1, where.machine.design.transaction_ids / std::max(1u, where.threads)) -
                  1),
      max_requests_(where.machine.design.overflow_at * where.machine.l2.request_queue_entries),
      flag_time_(from_ns(where.machine.l3.write_latency_ns)),
      interrupt_latency_(from_ns(where.machine.design.overflow_interrupt_ns)),
      overflow_timeout_(10 * interrupt_latency_),
      set_scan_time_(from_ns(1 / where.machine.cores.clock_ghz)),
      open_by_thread_(where.threads),
      uncleaned_by_thread_(where.threads),
      unsent_by_core_(cores_),
      tracked_lines_(cores_),
      waiting_for_commit_(where.threads),
      waiting_to_store_(cores_),
      frame_states_(where.caches.shared().frames()) {
  caches_.set_policy(this);
}

// --- transactions ---

bool kiln::begin(unsigned thread, bool in_order, requester& reply_to, picoseconds now) {
  auto& mine = open_by_thread_[thread];
  if (mine.size() > max_others_) {
    if (relaxed_) send_up_to(mine.front()->number, now);
    waiting_for_commit_[thread] = &reply_to;
    return false;
  }
  if (free_slots_.empty()) {
    free_slots_.push_back(transactions_.size());
    transactions_.emplace_back().slot = free_slots_.back();
  }
  transaction& t = transactions_[free_slots_.back()];
  free_slots_.pop_back();
  t.reset(next_id_++, thread, in_order);
  mine.push_back(&t);
  uncleaned_by_thread_[thread].push_back(&t);
  return true;
}

bool kiln::durable(unsigned thread, requester& reply_to, picoseconds now) {
  const auto& mine = open_by_thread_[thread];
  if (mine.empty()) return true;
  if (relaxed_) send_up_to(mine.back()->number, now);
  waiting_for_commit_[thread] = &reply_to;
  return false;
}

void kiln::transaction::reset(std::uint64_t new_id, unsigned of_thread, bool asks_for_order) {
  id = new_id, thread = of_thread, in_order = asks_for_order;
  state = stage::in_flight, sent = false;
  arriving = states_set = tracked_lines = queued = oldest = 0;
  tracked.clear(), queue.clear(), lines.clear(), overflow.clear(), blocked_transfers.clear();
}

// If an older transaction, which waits to be sent, wrote this line, its version is sent first. If
// the FIFOs of the core are full and have lines of such a transaction, the store waits for it.
bool kiln::storing(unsigned thread, std::uint64_t line, requester& reply_to, picoseconds now) {
  const unsigned core = thread % cores_;
  if (unsent_by_core_[core].empty()) return true;
  for (transaction* older : unsent_by_core_[core])
    if (older->tracked.flags(line) != 0) send_line(*older, line, now);
  if (tracked_lines_[core] < max_tracked_ ||
      uncleaned_by_thread_[thread].back()->tracked.flags(line) != 0)
    return true;
  if (const transaction* const unsent = oldest_unsent_of(core); unsent != nullptr)
    send_up_to(unsent->number, now);
  if (tracked_lines_[core] < max_tracked_ || oldest_unsent_of(core) == nullptr) return true;
  ++counts.queue_waits;
  waiting_to_store_[core].push_back(&reply_to);
  return false;
}

void kiln::stored(unsigned thread, std::uint64_t line, picoseconds now) {
  if (is_volatile_line(line)) return;  // its transaction does not make it durable
  transaction& t = *uncleaned_by_thread_[thread].back();
  if (t.tracked.add(line, 1) != 0) return;
  t.queue.push_back(line);
  ++t.tracked_lines;
  if (++tracked_lines_[thread % cores_] > max_tracked_) make_queue_room(t, now);
}

kiln::transaction* kiln::oldest_unsent_of(unsigned core) const noexcept {
  for (transaction* const t : unsent_by_core_[core])
    if (t->tracked_lines != 0) return t;
  return nullptr;
}

// The FIFOs of a core are full of running transactions. The oldest line of the one that stores is
// sent. An attempt's lines must stay in the private caches, so it ends.
void kiln::make_queue_room(transaction& t, picoseconds now) {
  if (speculative_) {
    const std::uint64_t attempt = t.id;
    caches_.announce_eviction(t.thread % cores_, t.queue.back(), now);
    const auto& open = open_by_thread_[t.thread];
    if (open.empty() || open.back()->id != attempt) return void(++counts.queue_aborts);
  }
  while (t.tracked.flags(t.queue[t.oldest]) == 0) ++t.oldest;
  ++counts.queue_evictions;
  send_line(t, t.queue[t.oldest], now);
}

void kiln::untrack(transaction& t, std::uint64_t line) {
  t.tracked.remove_flags(line, 1);
  --t.tracked_lines, --tracked_lines_[t.thread % cores_];
}

void kiln::aborted(unsigned thread) {
  transaction& t = *open_by_thread_[thread].back();
  tracked_lines_[thread % cores_] -= t.tracked_lines;
  free_slot(t);
  open_by_thread_[thread].pop_back();
  uncleaned_by_thread_[thread].pop_back();
}

void kiln::commit(unsigned thread, const line_set&, action_list&, picoseconds now) {
  transaction& t = *uncleaned_by_thread_[thread].back();
  t.state = stage::ended;
  t.ended = now;
  t.number = ended_++;
  counts.arrived_before_end += t.lines.size();
  commit_queue_.push_back(&t);  // 1
  ++unsent_;
  unsent_by_core_[thread % cores_].push_back(&t);
  if (!relaxed_ || t.in_order) to_send_ = ended_;
  send_in_order(now);
  advance_commits(now);
}

void kiln::finish(picoseconds now) {
  send_up_to(ended_, now);
}

void kiln::send_up_to(std::uint64_t number, picoseconds now) {
  to_send_ = std::max(to_send_, std::min(number + 1, ended_));
  send_in_order(now);
  advance_commits(now);
}

// Sends the transactions that are to be sent, while the L3's FIFO has room for their lines. The
// oldest one is always sent: its commit makes room.
void kiln::send_in_order(picoseconds now) {
  while (unsent_ != 0) {
    transaction& t = *commit_queue_[commit_queue_.size() - unsent_];
    if (t.number >= to_send_) return;
    if (&t != commit_queue_.front() && queued_ + on_their_way_ + t.tracked_lines > max_queued_)
      return;
    send(t, now);
  }
}

// Clean-on-commit (section 3.3): lines still in private caches go to the nonvolatile cache.  2
void kiln::send(transaction& t, picoseconds now) {
  t.sent = true;
  --unsent_;
  erase_oldest(unsent_by_core_[t.thread % cores_], t);
  retry_all(waiting_to_store_[t.thread % cores_], now);
  for (const auto& e : t.tracked.entries()) caches_.prefetch(e.line);
  for (const auto& e : t.tracked.entries())
    if (e.flags != 0) send_line(t, e.line, now);
  erase_oldest(uncleaned_by_thread_[t.thread], t);
}

void kiln::send_line(transaction& t, std::uint64_t line, picoseconds now) {
  caches_.clean({t.thread % cores_, t.thread, this, no_transfer}, line,
                hierarchy::level::shared_cache, false, now);
  if (t.tracked.flags(line) != 0) untrack(t, line);  // no private cache has a newer version
}

kiln::transaction* kiln::writer(unsigned core, std::uint64_t line) const {
  for (unsigned thread = core; thread < uncleaned_by_thread_.size(); thread += cores_)
    for (transaction* t : uncleaned_by_thread_[thread])
      if (t->tracked.flags(line) != 0) return t;
  return nullptr;
}

// --- lines arrive ---

std::size_t kiln::allocate_transfer(const transfer& t) {
  if (free_transfers_.empty())
    free_transfers_.push_back(transfers_.size()), transfers_.emplace_back();
  const std::size_t slot = free_transfers_.back();
  free_transfers_.pop_back();
  transfers_[slot] = t;
  return slot;
}

void kiln::writeback_arriving(hierarchy& h, frame p, unsigned core, std::uint64_t line,
                              std::uint64_t value, picoseconds when) {
  h.at(p).flags |= directory_entry::dirty;
  h.set_value(p, value);
  transaction* const t = writer(core, line);
  frame_state& c = frame_states_[p];
  if (t == nullptr && c.tx == nullptr && c.writebacks_in_flight == 0) {
    c.value = value, c.dirty = true;
    return;
  }
  ++c.writebacks_in_flight;
  if (t != nullptr) {
    untrack(*t, line);
    retry_all(waiting_to_store_[core], when);
    ++t->arriving, ++on_their_way_;
  }
  events_.schedule(when, *this,
                   event_argument(event::arrival, allocate_transfer({transfer::kind::to_cache,
                                                                     t == nullptr ? 0 : t->id, line,
                                                                     value, t, p})));
}

// The open transaction whose version this one must not replace; null: none.
kiln::transaction* kiln::older_writer(const transfer& t) const {
  transaction* const pending = frame_states_[t.at].tx;
  if (pending != nullptr && pending != t.tx) return pending;
  if (copies_.empty()) return nullptr;
  const auto c = copies_.find(t.line);
  return c != copies_.end() && !c->second.committed && c->second.id != t.id ? c->second.tx
                                                                            : nullptr;
}

// A line that no open transaction wrote has the content of the line's newest version and belongs to
// it: to the last one that waits for `older`, which is replaced, else to `older`. If it waited, its
// frame could not leave, and a running transaction could fill a set that has no room ever after.
bool kiln::join_version(std::size_t slot, transaction& older) {
  transfer& t = transfers_[slot];
  const auto waiting = std::ranges::find(older.blocked_transfers | std::views::reverse, t.line,
                                         [&](std::size_t s) { return transfers_[s].line; });
  if (waiting == older.blocked_transfers.rend()) {
    t.id = older.id, t.tx = &older;
    ++older.arriving, ++on_their_way_;
    return false;
  }
  transfers_[*waiting].value = t.value;
  --frame_states_[t.at].writebacks_in_flight;
  free_transfers_.push_back(slot);
  return true;
}

void kiln::arrive(std::size_t slot, picoseconds now) {
  if (transaction* const older = older_writer(transfers_[slot]); older != nullptr) {
    if (transfers_[slot].tx != nullptr) {
      ++counts.waits_for_older;
      older->blocked_transfers.push_back(slot);
      if (older->state == stage::ended && !older->sent) send_up_to(older->number, now);
      return;
    }
    if (join_version(slot, *older)) return;
  }
  const transfer t = transfers_[slot];
  const frame p = t.at;
  if (!version_writebacks_.empty())
    if (const auto w = version_writebacks_.find(t.line);
        w != version_writebacks_.end() && !w->second.empty()) {
      w->second.push_back(slot);  // behind an earlier version of the line
      return;
    }
  frame_state& c = frame_states_[p];
  if (t.tx != nullptr && c.tx == nullptr && c.dirty && !preserve_version(p, slot, now))
    return;  // 3
  if (t.tx != nullptr && c.tx != t.tx) {
    t.tx->lines.push_back({t.line, p});
    counts.max_pending = std::max(counts.max_pending, ++pending_);
    const bool room = queued_ < max_queued_;
    ++(room ? t.tx->queued : counts.unqueued_lines);
    queued_ += room;
  }
  c.value = t.value, c.tx = t.tx != nullptr && t.tx->state == stage::flagged ? nullptr : t.tx,
  c.dirty = true;  // 4
  --c.writebacks_in_flight;
  free_transfers_.push_back(slot);
  if (t.tx == nullptr) return;
  --on_their_way_;
  if (--t.tx->arriving == 0 && t.tx->state == stage::flagged)
    free_slot(*t.tx);  // with a planted bug
  send_in_order(now);
  advance_commits(now);
}

// Keeps the committed version that a pending one is about to replace: in another way, else in
// memory. Returns false when the version is on its way to memory; the line arrives again
// afterwards.
bool kiln::preserve_version(frame p, std::size_t slot, picoseconds now) {
  if (mutant_ == kiln_mutant::version_overwritten) return true;
  const transfer t = transfers_[slot];
  const std::uint64_t old = t.line | superseded_line;
  if (superseded_at(p, t.line) != cache_array::none) return true;
  const std::uint64_t kept = frame_states_[p].value;
  // The frame that the line's last superseded version has left, mostly.
  const frame left = frame_states_[p].superseded;
  const frame q = left != cache_array::none && !caches_.shared().valid(left)
                      ? left
                      : caches_.evict_for(old, t.tx->thread, now);
  if (q != cache_array::none) {
    ++counts.superseded_kept;
    caches_.shared().fill(q, old);
    caches_.at(q) = {};
    caches_.at(q).flags = directory_entry::dirty;
    caches_.set_value(q, kept);
    frame_states_[q].value = kept, frame_states_[q].dirty = true;
    frame_states_[p].superseded = q;
    return true;
  }
  const bool waits = mutant_ != kiln_mutant::write_back_overwritten;
  auto& waiting = version_writebacks_[t.line];
  if (waits) waiting.push_back(slot);
  if (waiting.size() <= 1) {
    ++counts.superseded_written;
    caches_.write_memory(t.line, kept, caches_.bank_access(t.line, false, now), t.tx->thread, this,
                         allocate_transfer({transfer::kind::version_to_memory, 0, t.line, kept}),
                         true);
  }
  return !waits;
}

// --- commit ---

void kiln::advance_commits(picoseconds now) {
  const auto ready = [&](const transaction& t) {
    return t.sent && t.state == stage::ended &&
           (t.arriving == 0 || mutant_ == kiln_mutant::committed_early);
  };
  for (transaction* t : commit_queue_) {
    if (ready(*t)) {
      t->state = stage::flagging;
      events_.schedule(
          now + flag_time_, *this,
          event_argument(mutant_ == kiln_mutant::states_one_by_one ? event::state : event::flag,
                         t->slot));  // 5
    }
    if (mutant_ != kiln_mutant::out_of_order) return;
  }
}

void kiln::commit_flag_written(transaction& t, picoseconds now) {
  t.state = stage::flagged;
  if (t.queued != t.lines.size()) {
    ++counts.tag_scans;
    caches_.scan_tags(set_scan_time_, now);
  }
  for (std::size_t i = 0; i < t.lines.size(); ++i) make_persistent(t, t.lines[i]);  // 6
  retire(t, now);
}

void kiln::next_state(transaction& t, picoseconds now) {
  if (t.states_set == t.lines.size()) {
    t.state = stage::flagged;
    return retire(t, now);
  }
  make_persistent(t, t.lines[t.states_set++]);
  events_.schedule(now + flag_time_, *this, event_argument(event::state, t.slot));
}

kiln::frame kiln::superseded_at(frame p, std::uint64_t line) const {
  const std::uint64_t old = line | superseded_line;
  if (const frame q = frame_states_[p].superseded;
      q != cache_array::none && caches_.shared().holds_line(q, old))
    return q;
  return counts.overflowed_lines == 0
             ? cache_array::none
             : caches_.shared().find(old);  // the line may have been evicted and fetched again
}

void kiln::make_persistent(const transaction& t, pending_line r) {
  const frame p = caches_.shared().holds_line(r.at, r.line) ? r.at : caches_.shared().find(r.line);
  if (p != cache_array::none && frame_states_[p].tx == &t) frame_states_[p].tx = nullptr;
  if (const frame q = superseded_at(r.at, r.line); q != cache_array::none) {
    caches_.at(q).flags = 0;
    caches_.evict_from_l3(q, t.thread, 0);
  }
}

void kiln::retire(transaction& t, picoseconds now) {
  const unsigned thread = t.thread;
  const std::uint64_t number = t.number;
  released_.swap(t.blocked_transfers);
  ++counts.transactions;
  futile_fallbacks_ = 0;
  counts.lines += t.lines.size();
  pending_ -= t.lines.size();
  queued_ -= t.queued;
  counts.commit_latency += now - t.ended;
  for (std::uint64_t line : t.overflow) {
    const auto c = copies_.find(line);
    if (c == copies_.end() || c->second.id != t.id || c->second.committed) continue;
    c->second.committed = true;  // a line copied twice has two entries in the list
    // Through its bank, as all writes of a line, so that they keep their order.
    caches_.write_memory(line, c->second.value, caches_.bank_access(line, false, now), thread, this,
                         allocate_transfer({transfer::kind::home, t.id, line, c->second.value}));
  }
  if (commit_queue_.front() == &t)
    commit_queue_.pop_front();
  else
    std::erase(commit_queue_, &t);  // with a planted bug
  erase_oldest(open_by_thread_[thread], t);
  send_in_order(now);
  if (t.arriving == 0) free_slot(t);  // else: with a planted bug
  committed(number, now);
  for (std::size_t slot : released_) arrive(slot, now);
  released_.clear();
  if (requester* a = std::exchange(waiting_for_commit_[thread], nullptr); a != nullptr)
    a->retry(now);
  caches_.retry_nacked(now);
  advance_commits(now);
}

// --- room ---

bool kiln::may_evict(frame p, std::uint64_t line) {
  if ((line & superseded_line) != 0) return true;
  if (frame_states_[p].writebacks_in_flight != 0) return false;
  if (mutant_ == kiln_mutant::pending_evicted) return true;
  if (frame_states_[p].tx != nullptr) return false;
  const auto owner = caches_.at(p).owner;
  return owner == directory_entry::no_owner || writer(owner, line) == nullptr ||
         !caches_.dirty_in_private(p, line);
}

void kiln::line_evicted(frame p, std::uint64_t line, bool written_back) {
  frame_states_[p] = {};
  if (!written_back || copies_.empty()) return;
  if (const auto c = copies_.find(line); c != copies_.end() && c->second.committed)
    copies_.erase(c);
}

std::uint64_t kiln::backing_value(hierarchy& h, std::uint64_t line) {
  const auto c = copies_.find(line);
  return c != copies_.end() ? c->second.value : h.memory_value(line);
}

// Section 4.4: a transaction that fills a set alone cannot continue. Other transactions can when
// the next one commits, so their requests wait until the queue is nearly full, or for a timeout.
void kiln::no_victim(std::uint64_t line, unsigned thread, picoseconds now) {
  if (unsent_ != 0) send_up_to(ended_, now);
  if (fallback_pending_ || futile_fallbacks_ == max_futile_fallbacks) return;
  const bool alone =
      !open_by_thread_[thread].empty() && all_pending_of(*open_by_thread_[thread].back(), line);
  const auto requests = static_cast<double>(caches_.requests_of(thread % cores_) + 1);
  const bool full = requests >= max_requests_;
  fallback_pending_ = true;
  events_.schedule(
      now + (alone || full ? interrupt_latency_ : overflow_timeout_), *this,
      event_argument(alone || full ? event::fall_back : event::overflow_timeout, line));
}

bool kiln::all_pending_of(const transaction& t, std::uint64_t line) const {
  const auto first = caches_.shared().first_of_set(line);
  for (unsigned w = 0; w < caches_.shared().ways(); ++w) {
    const auto p = first + w;
    const auto owner = caches_.at(p).owner;
    if (frame_states_[p].tx != &t &&
        (owner == directory_entry::no_owner || writer(owner, caches_.shared().line_at(p)) != &t))
      return false;
  }
  return true;
}

bool kiln::may_be_copied(frame p) const {
  const transaction* const t = frame_states_[p].tx;
  if (t == nullptr || frame_states_[p].writebacks_in_flight != 0 || t->state != stage::in_flight ||
      caches_.at(p).has(directory_entry::fill_pending))
    return false;
  // A newer copy may replace the transaction's own, once that one is durable.
  const auto c = copies_.find(caches_.shared().line_at(p));
  return c == copies_.end() || (c->second.durable && c->second.id == t->id);
}

void kiln::overflow(std::uint64_t line, picoseconds now) {
  fallback_pending_ = false;
  if (caches_.nacked() == 0) return;
  const auto first = caches_.shared().first_of_set(line);
  for (unsigned w = 0; w < caches_.shared().ways(); ++w) {
    const auto p = first + w;
    if (!may_be_copied(p)) continue;
    const std::uint64_t victim = caches_.shared().line_at(p);
    transaction& t = *frame_states_[p].tx;
    if (caches_.dirty_in_private(p, victim)) {
      send_line(t, victim, now);  // newest content first; the copy is made next time
      continue;
    }
    ++counts.overflows;
    fallback_pending_ = true;
    ++t.arriving;
    counts.copied_again += copies_.contains(victim);
    copies_[victim] = {t.id, frame_states_[p].value, &t};
    caches_.write_memory(
        copies_at + copies_made_++ % (1 << 20), frame_states_[p].value,
        caches_.bank_access(victim, false, now), t.thread, this,
        allocate_transfer({transfer::kind::copy, t.id, victim, frame_states_[p].value, &t}));
    return;
  }
  make_room_above(line, now);
  ++futile_fallbacks_;
  caches_.retry_nacked(now);
}

// No line of the set can be copied: its open lines are in private caches only. The first attempt
// that has one ends, as if its cache had evicted the line. A transaction that is no attempt is not
// rolled back: its lines are sent, and copied next time.
void kiln::make_room_above(std::uint64_t line, picoseconds now) {
  const auto first = caches_.shared().first_of_set(line);
  for (unsigned w = 0; w < caches_.shared().ways(); ++w) {
    const auto p = first + w;
    const std::uint64_t victim = caches_.shared().line_at(p);
    const auto owner = caches_.at(p).owner;
    if (owner == directory_entry::no_owner || !caches_.dirty_in_private(p, victim)) continue;
    transaction* const t = writer(owner, victim);
    if (t == nullptr || t->state != stage::in_flight) continue;
    caches_.announce_eviction(owner, victim, now);
    if (writer(owner, victim) == nullptr) {
      ++counts.overflow_aborts;
      return;
    }
    send_line(*t, victim, now);
  }
}

// The copy is durable when its entry in the mapping table is; then the line leaves the cache.
void kiln::overflow_copied(const transfer& t, picoseconds now) {
  fallback_pending_ = false;
  transaction& mine = *t.tx;
  const auto p = caches_.shared().find(t.line);
  if (frame_states_[p].value != t.value || caches_.dirty_in_private(p, t.line) ||
      frame_states_[p].writebacks_in_flight != 0) {
    copies_.erase(t.line);  // written again meanwhile
  } else {
    ++counts.overflowed_lines;
    futile_fallbacks_ = 0;
    if (mine.overflow.empty()) ++counts.overflowed_transactions;
    copies_.at(t.line).durable = true;
    mine.overflow.push_back(t.line);
    caches_.at(p).flags &= static_cast<std::uint8_t>(~directory_entry::dirty);
    caches_.evict_with_back_invalidation(p, mine.thread, now);
  }
  --mine.arriving;
  advance_commits(now);
  caches_.retry_nacked(now);
}

// --- events ---

void kiln::handle(picoseconds now, std::uint64_t what) {
  const std::uint64_t argument = what & 0xff'ffff'ffff'ffff;
  switch (static_cast<event>(what >> 56)) {
    case event::arrival:
      return arrive(argument, now);
    case event::flag:
      return commit_flag_written(transactions_[argument], now);
    case event::state:
      return next_state(transactions_[argument], now);
    case event::fall_back:
      return overflow(argument, now);
    case event::overflow_timeout:
      fallback_pending_ = false;
      if (caches_.nacked() == 0) return;
      fallback_pending_ = true;
      events_.schedule(now + interrupt_latency_, *this, event_argument(event::fall_back, argument));
      return;
  }
}

void kiln::done(picoseconds now, std::uint64_t token) {
  if (token == no_transfer) return;  // a line that was sent is on its way to memory already
  const transfer t = transfers_[token];
  free_transfers_.push_back(token);
  switch (t.what) {
    case transfer::kind::to_cache:
      return;
    case transfer::kind::version_to_memory: {
      const auto waiting = std::exchange(version_writebacks_[t.line], {});
      version_writebacks_.erase(t.line);
      if (waiting.empty()) return;  // with a planted bug
      frame_states_[caches_.shared().find(t.line)].dirty = false;
      for (std::size_t slot : waiting) arrive(slot, now);
      return;
    }
    case transfer::kind::copy:
      caches_.write_memory(
          mapping_at + copies_made_ % (1 << 16), 0, now, t.tx->thread, this,
          allocate_transfer({transfer::kind::mapping, t.id, t.line, t.value, t.tx}));
      return;
    case transfer::kind::mapping:
      return overflow_copied(t, now);
    case transfer::kind::home:
      if (const auto c = copies_.find(t.line); c != copies_.end() && c->second.id == t.id)
        copies_.erase(c);
      return;
  }
}

// --- recovery ---

nv_line_state kiln::state_of(frame p) const noexcept {
  const auto& shared = caches_.shared();
  if (!shared.valid(p) || is_volatile_line(shared.line_at(p) & ~superseded_line))
    return nv_line_state::free;
  return frame_states_[p].tx != nullptr ? nv_line_state::pending : nv_line_state::persistent;
}

nonvolatile_state kiln::recovered() const {
  nonvolatile_state s;
  for (const auto& [line, value] : caches_.memory_values())
    if (!is_volatile_line(line)) s.lines.emplace(line, value);
  s.copies = copies_.size();
  // the values that recovery writes over memory
  std::unordered_map<std::uint64_t, std::uint64_t> over;
  for (const auto& [line, c] : copies_)
    if (c.durable && (c.committed || mutant_ == kiln_mutant::overflow_copy_kept))
      over[line] = c.value;  // r2: copies of committed transactions
  std::vector<const hierarchy::memory_transfer*> buffered;
  for (const auto& f : caches_.in_flight())
    if (f.used && !f.unbuffered && !is_volatile_line(f.line)) buffered.push_back(&f);
  std::ranges::sort(buffered, {}, &hierarchy::memory_transfer::number);
  for (const auto* f : buffered) over[f->line] = f->value;  // r3: the write-back buffer
  const auto& shared = caches_.shared();
  for (const bool superseded :
       {true, false})  // r1: pending lines are void, the versions they replaced are valid
    for (frame p = 0; p < shared.frames(); ++p) {
      const nv_line_state state = state_of(p);
      if (state == nv_line_state::free || !frame_states_[p].dirty ||
          ((shared.line_at(p) & superseded_line) != 0) != superseded)
        continue;
      s.superseded += superseded, s.pending += state == nv_line_state::pending;
      if (state == nv_line_state::pending) continue;
      over[shared.line_at(p) & ~superseded_line] = frame_states_[p].value;
    }
  for (const auto& f : caches_.in_flight())
    if (f.used && f.unbuffered && !over.contains(f.line)) s.torn.emplace_back(f.line, f.value);
  for (const auto& [line, value] : over) s.lines[line] = value;
  return s;
}

}  // namespace stele::sim
