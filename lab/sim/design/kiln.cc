// Kiln's controllers. Each step of docs/protocol/kiln.md is marked with its number.
#include <sim/design/kiln.h>

#include <algorithm>
#include <bit>

namespace stele::sim {

namespace {

enum class event : std::uint64_t { arrival, flag, state, fall_back, patience };
constexpr std::uint64_t to_act(event e, std::uint64_t argument) noexcept { return static_cast<std::uint64_t>(e) << 56 | argument; }

// Fall-backs that found no line to copy, with no commit between, after which there is no hope: who waits for room waits for ever.
constexpr unsigned in_vain_at_most = 10'000;

// The copies of overflowed lines, and the table that maps them: addresses of their own.
constexpr std::uint64_t copies_at = std::uint64_t{3} << 36 >> 6, mapping_at = copies_at + (std::uint64_t{1} << 28);

}  // namespace

std::string_view name_of(kiln_fault f) noexcept {
  constexpr std::string_view names[] = {"none", "pending_evicted", "committed_early", "overflow_copy_kept", "write_back_overwritten", "version_overwritten", "states_one_by_one", "out_of_order"};
  return names[static_cast<std::size_t>(f)];
}

kiln::kiln(const design_place& where)
    : events_(where.events), caches_(where.caches), fault_(where.fault), relaxed_(where.machine.design.order == "relaxed"),
      speculative_(where.machine.design.isolation == "htm"), cores_(where.machine.cores.count),
      tracked_at_most_(where.machine.l1.persistence_queue_entries + where.machine.l2.persistence_queue_entries),
      others_at_most_(std::max<std::size_t>(1, where.machine.design.transaction_ids / std::max(1u, where.threads)) - 1),
      requests_at_most_(static_cast<std::size_t>(where.machine.design.overflow_at * where.machine.l2.request_queue_entries)),
      flag_time_(from_ns(where.machine.l3.write_latency_ns)), interrupt_(from_ns(where.machine.design.overflow_interrupt_ns)), patience_(10 * interrupt_),
      of_thread_(where.threads), unsent_(where.threads), wants_to_begin_(where.threads), cells_(where.caches.shared().places()) {
  caches_.designed_by(this);
}

// --- transactions ---

bool kiln::begin(unsigned thread, bool in_order, asker& told, picoseconds now) {
  auto& mine = of_thread_[thread];
  if (mine.size() > others_at_most_) {
    if (relaxed_) send_up_to(mine.front()->number, now);
    wants_to_begin_[thread] = &told;
    return false;
  }
  if (spare_.empty()) {
    spare_.push_back(all_.size());
    all_.emplace_back().slot = spare_.back();
  }
  transaction& t = all_[spare_.back()];
  spare_.pop_back();
  t.become(next_id_++, thread, in_order);
  mine.push_back(&t);
  unsent_[thread].push_back(&t);
  return true;
}

void kiln::transaction::become(std::uint64_t new_id, unsigned of_thread, bool asks_for_order) {
  id = new_id, thread = of_thread, in_order = asks_for_order;
  is = stage::in_flight, sent = false;
  arriving = states_set = 0;
  tracked.clear(), queue.clear(), lines.clear(), overflow.clear(), behind.clear();
}

// What an older transaction that waits to be sent has left in this line goes first.
void kiln::storing(unsigned thread, std::uint64_t line, picoseconds now) {
  if (!relaxed_) return;
  for (unsigned t = thread % cores_; t < unsent_.size(); t += cores_)
    for (const transaction* older : unsent_[t])
      if (older->is == stage::ended && older->tracked.flags(line) != 0) {
        send_up_to(older->number, now);
        break;  // the list is another
      }
}

void kiln::stored(unsigned thread, std::uint64_t line, picoseconds now) {
  transaction& t = *unsent_[thread].back();
  if (t.tracked.add(line, 1) != 0) return;
  t.queue.push_back(line);
  if (t.queue.size() <= tracked_at_most_ || speculative_) return;
  while (!t.queue.empty() && t.tracked.flags(t.queue.front()) == 0) t.queue.pop_front();
  if (t.queue.size() <= tracked_at_most_) return;
  ++counts.queue_evictions;
  send_line(t, t.queue.front(), now);
}

void kiln::attempt_lost(unsigned thread) {
  forget(*of_thread_[thread].back());
  of_thread_[thread].pop_back();
  unsent_[thread].pop_back();
}

void kiln::commit(unsigned thread, const line_set&, plan&, picoseconds now) {
  transaction& t = *unsent_[thread].back();
  t.is = stage::ended;
  t.ended = now;
  t.number = ended_++;
  counts.arrived_before_end += t.lines.size();
  to_commit_.push_back(&t);  // 1
  if (!relaxed_) send(t, now);
  if (relaxed_ && t.in_order) return send_up_to(t.number, now);
  let_commit(now);
}

void kiln::finish(picoseconds now) { send_up_to(ended_, now); }

void kiln::send_up_to(std::uint64_t number, picoseconds now) {
  for (transaction* t : to_commit_)
    if (t->number <= number && !t->sent) send(*t, now);
  let_commit(now);
}

// Clean-on-commit (section 3.3): what is still above goes to the nonvolatile cache.  2
void kiln::send(transaction& t, picoseconds now) {
  t.sent = true;
  for (const auto& e : t.tracked.entries())
    if (e.flags != 0) send_line(t, e.line, now);
  std::erase(unsent_[t.thread], &t);
}

void kiln::send_line(const transaction& t, std::uint64_t line, picoseconds now) {
  caches_.clean({t.thread % cores_, t.thread, this, 0}, line, hierarchy::level::shared_cache, false, now);
}

kiln::transaction* kiln::writer(unsigned core, std::uint64_t line) const {
  for (unsigned thread = core; thread < unsent_.size(); thread += cores_)
    for (transaction* t : unsent_[thread])
      if (t->tracked.flags(line) != 0) return t;
  return nullptr;
}

// --- lines arrive ---

std::size_t kiln::new_transit(const transit& t) {
  if (free_transits_.empty()) free_transits_.push_back(transits_.size()), transits_.emplace_back();
  const std::size_t slot = free_transits_.back();
  free_transits_.pop_back();
  transits_[slot] = t;
  return slot;
}

void kiln::arriving(hierarchy& h, place p, unsigned core, std::uint64_t line, std::uint64_t value, picoseconds when) {
  h.at(p).flags |= shared_line::dirty;
  h.set_value(p, value);
  transaction* const t = writer(core, line);
  cell& c = cells_[p];
  if (t == nullptr && c.of == nullptr && c.on_the_way == 0) {
    c.value = value, c.there = true;
    return;
  }
  ++c.on_the_way;
  if (t != nullptr) {
    t->tracked.remove_flags(line, 1);
    ++t->arriving;
  }
  events_.at(when, *this, to_act(event::arrival, new_transit({transit::kind::to_cache, t == nullptr ? 0 : t->id, line, value, t, p})));
}

// An open transaction whose version this one must not replace; null: none.
kiln::transaction* kiln::older_writer(place p, const transit& t) const {
  if (cells_[p].of != nullptr && cells_[p].of != t.of) return cells_[p].of;
  if (copies_.empty()) return nullptr;
  const auto c = copies_.find(t.line);
  return c != copies_.end() && !c->second.committed && c->second.id != t.id ? c->second.of : nullptr;
}

void kiln::arrive(std::size_t slot, picoseconds now) {
  const transit t = transits_[slot];
  const place p = t.at;
  if (transaction* const older = older_writer(p, t); older != nullptr) {
    ++counts.waits_for_older;
    older->behind.push_back(slot);
    if (older->is == stage::ended && !older->sent) send_up_to(older->number, now);
    return;
  }
  if (!versions_to_memory_.empty())
    if (const auto w = versions_to_memory_.find(t.line); w != versions_to_memory_.end() && !w->second.empty()) {
      w->second.push_back(slot);  // not past an earlier one
      return;
    }
  cell& c = cells_[p];
  if (t.of != nullptr && c.of == nullptr && c.there && !keep_version(p, slot, now)) return;  // 3
  if (t.of != nullptr && c.of != t.of) {
    t.of->lines.push_back({t.line, p});
    counts.pending_at_most = std::max(counts.pending_at_most, ++pending_);
  }
  c.value = t.value, c.of = t.of != nullptr && t.of->is == stage::flagged ? nullptr : t.of, c.there = true;  // 4
  --c.on_the_way;
  free_transits_.push_back(slot);
  if (t.of == nullptr) return;
  if (--t.of->arriving == 0 && t.of->is == stage::flagged) forget(*t.of);  // with a planted bug
  let_commit(now);
}

// The committed version that a pending one is about to replace stays: in another way, or else in memory. False: it is on
// its way there, and the line arrives again afterwards.
bool kiln::keep_version(place p, std::size_t slot, picoseconds now) {
  if (fault_ == kiln_fault::version_overwritten) return true;
  const transit t = transits_[slot];
  const std::uint64_t old = t.line | superseded_line;
  if (superseded_at(p, t.line) != cache_array::none) return true;
  const std::uint64_t kept = cells_[p].value;
  if (const auto q = caches_.make_room(old, now); q != cache_array::none) {
    ++counts.superseded_kept;
    caches_.shared().fill(q, old);
    caches_.at(q) = {};
    caches_.at(q).flags = shared_line::dirty;
    caches_.set_value(q, kept);
    cells_[q].value = kept, cells_[q].there = true;
    cells_[p].superseded = q;
    return true;
  }
  const bool waits = fault_ != kiln_fault::write_back_overwritten;
  auto& waiting = versions_to_memory_[t.line];
  if (waits) waiting.push_back(slot);
  if (waiting.size() <= 1) {
    ++counts.superseded_written;
    caches_.write_memory(t.line, kept, caches_.bank_access(t.line, false, now), this, new_transit({transit::kind::version_to_memory, 0, t.line, kept}), true);
  }
  return !waits;
}

// --- commit ---

void kiln::let_commit(picoseconds now) {
  const auto ready = [&](const transaction& t) { return t.sent && t.is == stage::ended && (t.arriving == 0 || fault_ == kiln_fault::committed_early); };
  for (transaction* t : to_commit_) {
    if (ready(*t)) {
      t->is = stage::flagging;
      events_.at(now + flag_time_, *this, to_act(fault_ == kiln_fault::states_one_by_one ? event::state : event::flag, t->slot));  // 5
    }
    if (fault_ != kiln_fault::out_of_order) return;
  }
}

void kiln::flag(transaction& t, picoseconds now) {
  t.is = stage::flagged;
  for (std::size_t i = 0; i < t.lines.size(); ++i) make_persistent(t, t.lines[i]);  // 6
  close(t, now);
}

void kiln::next_state(transaction& t, picoseconds now) {
  if (t.states_set == t.lines.size()) {
    t.is = stage::flagged;
    return close(t, now);
  }
  make_persistent(t, t.lines[t.states_set++]);
  events_.at(now + flag_time_, *this, to_act(event::state, t.slot));
}

kiln::place kiln::superseded_at(place p, std::uint64_t line) const {
  const std::uint64_t old = line | superseded_line;
  if (const place q = cells_[p].superseded; q != cache_array::none && caches_.shared().is(q, old)) return q;
  return counts.overflowed_lines == 0 ? cache_array::none : caches_.shared().find(old);  // the line may have left and come back
}

void kiln::make_persistent(const transaction& t, resident r) {
  const place p = caches_.shared().is(r.at, r.line) ? r.at : caches_.shared().find(r.line);
  if (p != cache_array::none && cells_[p].of == &t) cells_[p].of = nullptr;
  if (const place q = superseded_at(r.at, r.line); q != cache_array::none) {
    caches_.at(q).flags = 0;
    caches_.drop_shared(q, 0);
  }
}

void kiln::close(transaction& t, picoseconds now) {
  const unsigned thread = t.thread;
  const std::uint64_t number = t.number;
  released_.swap(t.behind);
  ++counts.transactions;
  in_vain_ = 0;
  counts.lines += t.lines.size();
  pending_ -= t.lines.size();
  counts.commit_latency += now - t.ended;
  for (std::uint64_t line : t.overflow) {
    const auto c = copies_.find(line);
    if (c == copies_.end() || c->second.id != t.id) continue;
    c->second.committed = true;
    // By way of its bank, as all writes of a line, so that they keep their order.
    caches_.write_memory(line, c->second.value, caches_.bank_access(line, false, now), this, new_transit({transit::kind::home, t.id, line, c->second.value}));
  }
  if (to_commit_.front() == &t)
    to_commit_.pop_front();
  else
    std::erase(to_commit_, &t);  // with a planted bug
  std::erase(of_thread_[thread], &t);
  if (t.arriving == 0) forget(t);  // else: with a planted bug
  committed(number, now);
  for (std::size_t slot : released_) arrive(slot, now);
  released_.clear();
  if (asker* a = std::exchange(wants_to_begin_[thread], nullptr); a != nullptr) a->try_again(now);
  caches_.room_again(now);
  let_commit(now);
}

// --- room ---

bool kiln::may_leave(place p, std::uint64_t line) {
  if ((line & superseded_line) != 0) return true;
  if (cells_[p].on_the_way != 0) return false;
  if (fault_ == kiln_fault::pending_evicted) return true;
  if (cells_[p].of != nullptr) return false;
  const auto owner = caches_.at(p).owner;
  return owner == shared_line::nobody || writer(owner, line) == nullptr || !caches_.dirty_above(p, line);
}

void kiln::left(place p, std::uint64_t line, bool written_back) {
  cells_[p] = {};
  if (!written_back || copies_.empty()) return;
  if (const auto c = copies_.find(line); c != copies_.end() && c->second.committed) copies_.erase(c);
}

std::uint64_t kiln::value_of_memory(hierarchy& h, std::uint64_t line) {
  const auto c = copies_.find(line);
  return c != copies_.end() ? c->second.value : h.memory_value(line);
}

// Section 4.4: a transaction that fills a set alone cannot go on; others may when the next one commits, so requests wait
// until the queue is nearly full, or for a while.
void kiln::no_room(std::uint64_t line, unsigned thread, picoseconds now) {
  if (relaxed_) send_up_to(ended_, now);
  if (falling_back_ || in_vain_ == in_vain_at_most) return;
  const bool alone = !of_thread_[thread].empty() && all_pending_of(*of_thread_[thread].back(), line);
  const bool full = caches_.refused() + 1 >= requests_at_most_;
  falling_back_ = true;
  events_.at(now + (alone || full ? interrupt_ : patience_), *this, to_act(alone || full ? event::fall_back : event::patience, line));
}

bool kiln::all_pending_of(const transaction& t, std::uint64_t line) const {
  const auto first = caches_.shared().first_of_set(line);
  for (unsigned w = 0; w < caches_.shared().ways(); ++w) {
    const auto p = first + w;
    const auto owner = caches_.at(p).owner;
    if (cells_[p].of != &t && (owner == shared_line::nobody || writer(owner, caches_.shared().line_at(p)) != &t)) return false;
  }
  return true;
}

bool kiln::may_be_copied(place p) const {
  const std::uint64_t line = caches_.shared().line_at(p);
  return cells_[p].of != nullptr && cells_[p].on_the_way == 0 && cells_[p].of->is == stage::in_flight && !copies_.contains(line);
}

void kiln::overflow(std::uint64_t line, picoseconds now) {
  falling_back_ = false;
  if (caches_.refused() == 0) return;
  const auto first = caches_.shared().first_of_set(line);
  for (unsigned w = 0; w < caches_.shared().ways(); ++w) {
    const auto p = first + w;
    if (!may_be_copied(p)) continue;
    const std::uint64_t victim = caches_.shared().line_at(p);
    transaction& t = *cells_[p].of;
    if (caches_.dirty_above(p, victim)) {
      send_line(t, victim, now);  // its newest content first; the copy is made next time
      continue;
    }
    ++counts.overflows;
    falling_back_ = true;
    ++t.arriving;
    copies_[victim] = {t.id, cells_[p].value, &t};
    caches_.write_memory(copies_at + copies_made_++ % (1 << 20), cells_[p].value, caches_.bank_access(victim, false, now), this,
                         new_transit({transit::kind::copy, t.id, victim, cells_[p].value, &t}));
    return;
  }
  ++in_vain_;
  caches_.room_again(now);
}

// The copy is whole once its entry in the mapping table is; then the line leaves the cache.
void kiln::copied(const transit& t, picoseconds now) {
  falling_back_ = false;
  transaction& mine = *t.of;
  const auto p = caches_.shared().find(t.line);
  if (cells_[p].value != t.value || caches_.dirty_above(p, t.line) || cells_[p].on_the_way != 0) {
    copies_.erase(t.line);  // written again meanwhile
  } else {
    ++counts.overflowed_lines;
    in_vain_ = 0;
    if (mine.overflow.empty()) ++counts.overflowed_transactions;
    copies_.at(t.line).whole = true;
    mine.overflow.push_back(t.line);
    caches_.at(p).flags &= static_cast<std::uint8_t>(~shared_line::dirty);
    caches_.evict_shared(p, now);
  }
  --mine.arriving;
  let_commit(now);
  caches_.room_again(now);
}

// --- events ---

void kiln::act(picoseconds now, std::uint64_t what) {
  const std::uint64_t argument = what & 0xff'ffff'ffff'ffff;
  switch (static_cast<event>(what >> 56)) {
    case event::arrival: return arrive(argument, now);
    case event::flag: return flag(all_[argument], now);
    case event::state: return next_state(all_[argument], now);
    case event::fall_back: return overflow(argument, now);
    case event::patience:
      falling_back_ = false;
      if (caches_.refused() == 0) return;
      falling_back_ = true;
      events_.at(now + interrupt_, *this, to_act(event::fall_back, argument));
      return;
  }
}

void kiln::done(picoseconds now, std::uint64_t token) {
  const transit t = transits_[token];
  free_transits_.push_back(token);
  switch (t.what) {
    case transit::kind::to_cache: return;
    case transit::kind::version_to_memory: {
      const auto waiting = std::exchange(versions_to_memory_[t.line], {});
      versions_to_memory_.erase(t.line);
      if (waiting.empty()) return;  // with a planted bug
      cells_[caches_.shared().find(t.line)].there = false;
      for (std::size_t slot : waiting) arrive(slot, now);
      return;
    }
    case transit::kind::copy:
      caches_.write_memory(mapping_at + copies_made_ % (1 << 16), 0, now, this, new_transit({transit::kind::mapping, t.id, t.line, t.value, t.of}));
      return;
    case transit::kind::mapping: return copied(t, now);
    case transit::kind::home:
      if (const auto c = copies_.find(t.line); c != copies_.end() && c->second.id == t.id) copies_.erase(c);
      return;
  }
}

// --- recovery ---

nonvolatile_state kiln::recovered() const {
  nonvolatile_state s;
  s.lines = caches_.memory_values();
  s.copies = copies_.size();
  std::unordered_map<std::uint64_t, std::uint64_t> over;  // what recovery puts over memory
  for (const auto& [line, c] : copies_)
    if (c.whole && (c.committed || fault_ == kiln_fault::overflow_copy_kept)) over[line] = c.value;  // r2: copies of committed ones
  std::vector<const hierarchy::write_in_flight*> buffered;
  for (const auto& f : caches_.in_flight())
    if (f.used && !f.read && !f.in_place) buffered.push_back(&f);
  std::ranges::sort(buffered, {}, &hierarchy::write_in_flight::number);
  for (const auto* f : buffered) over[f->line] = f->value;  // r3: the write-back buffer
  const auto& shared = caches_.shared();
  for (const bool superseded : {true, false})  // r1: pending lines are void, what they replaced is not
    for (place p = 0; p < shared.places(); ++p) {
      if (!shared.holds(p) || !cells_[p].there || ((shared.line_at(p) & superseded_line) != 0) != superseded) continue;
      s.superseded += superseded, s.pending += cells_[p].of != nullptr;
      if (cells_[p].of != nullptr) continue;
      over[shared.line_at(p) & ~superseded_line] = cells_[p].value;
    }
  for (const auto& f : caches_.in_flight())
    if (f.used && !f.read && f.in_place && !over.contains(f.line)) s.torn.emplace_back(f.line, f.value);
  for (const auto& [line, value] : over) s.lines[line] = value;
  return s;
}

}  // namespace stele::sim
