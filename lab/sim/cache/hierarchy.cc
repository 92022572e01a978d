// Requests through the levels.
#include <base/check.h>
#include <sim/cache/hierarchy.h>

#include <algorithm>
#include <bit>

namespace stele::sim {

namespace {

enum class event : std::uint64_t { read_back, send_read, send_flight, flight_over };
constexpr std::uint64_t to_act(event e, std::size_t slot) noexcept { return static_cast<std::uint64_t>(e) << 56 | slot; }

}  // namespace

void shared_cache_design::arriving(hierarchy& h, cache_array::place p, unsigned, std::uint64_t, std::uint64_t value, picoseconds) {
  h.at(p).flags |= shared_line::dirty;
  h.set_value(p, value);
}

std::uint64_t shared_cache_design::value_of_memory(hierarchy& h, std::uint64_t line) { return h.memory_value(line); }

result<std::unique_ptr<hierarchy>> hierarchy::make(event_queue& events, memory& below, const machine_config& c, std::uint64_t seed) {
  if (c.cores.count == 0 || c.cores.count > 32)
    return base::fail(errc::invalid_argument, "cores.count is " + std::to_string(c.cores.count) + ": give 1 to 32");
  const auto array = [&](const cache_config& of, std::uint64_t n) { return cache_array::make(of.size_bytes, of.ways, of.replacement, seed + n); };
  std::vector<caches> of_cores;
  for (unsigned core = 0; core < c.cores.count; ++core) {
    auto l1 = array(c.l1, 2 * core), l2 = array(c.l2, 2 * core + 1);
    if (!l1) return std::unexpected(l1.error());
    if (!l2) return std::unexpected(l2.error());
    std::vector<std::uint8_t> one(l1->places()), two(l2->places());
    std::vector<place> under(l2->places());
    of_cores.push_back({std::move(*l1), std::move(*l2), std::move(one), std::move(two), std::move(under), {}, {}});
  }
  auto l3 = array(c.l3, 1000);
  if (!l3) return std::unexpected(l3.error());
  if (c.l3.banks == 0) return base::fail(errc::invalid_argument, "l3.banks is 0: give at least 1");
  return std::unique_ptr<hierarchy>(new hierarchy(events, below, c, std::move(of_cores), std::move(*l3)));
}

hierarchy::hierarchy(event_queue& events, memory& below, const machine_config& c, std::vector<caches> p, cache_array l3)
    : events_(events), below_(below), private_(std::move(p)), l3_(std::move(l3)), lines_(l3_.places()), wires_(c.crossbar, c.cores.count),
      banks_(c.l3.banks), l1_latency_(from_ns(c.l1.read_latency_ns)), l2_latency_(from_ns(c.l2.read_latency_ns)),
      l3_read_(from_ns(c.l3.read_latency_ns)), l3_write_(from_ns(c.l3.write_latency_ns)) {}

void hierarchy::keep_values() {
  values_ = true;
  l3_values_.resize(l3_.places());
  for (caches& c : private_) c.l1_values.resize(c.l1.places()), c.l2_values.resize(c.l2.places());
}

std::size_t hierarchy::tag_bytes() const noexcept {
  std::size_t bytes = l3_.bytes() + lines_.size() * sizeof lines_[0];
  for (const caches& c : private_) bytes += c.l1.bytes() + c.l2.bytes() + c.l1_state.size() + c.l2_state.size() + c.below.size() * sizeof c.below[0];
  return bytes;
}

// --- from the cores ---

answer hierarchy::get(const from& who, std::uint64_t line, bool store, picoseconds now) {
  if (hit(who.core, line, store)) return {answer::kind::at, now + l1_latency_};
  caches& c = private_[who.core];
  const place p = c.l2.find(line);
  if (p == cache_array::none || (store && (c.l2_state[p] & exclusive) == 0)) return from_shared(who, line, store, p, now);
  ++counts.l1_misses, ++counts.l2_hits;
  c.l2.use(p);
  into_l1(who.core, line, static_cast<std::uint8_t>((c.l2_state[p] & exclusive) | (store ? dirty : 0)), values_ ? c.l2_values[p] : 0);
  return {answer::kind::at, now + l1_latency_ + l2_latency_};
}

answer hierarchy::from_shared(const from& who, std::uint64_t line, bool store, place in_l2, picoseconds now) {
  const picoseconds asked = wires_.ask(now + l1_latency_ + l2_latency_);
  const place p = in_l2 != cache_array::none ? private_[who.core].below[in_l2] : l3_.find(line);
  if (p == cache_array::none) return miss(who, line, store, asked);
  ++counts.l1_misses, ++counts.l2_misses, ++counts.l3_hits;
  l3_.use(p);
  const bool waits = lines_[p].has(shared_line::filling);
  const picoseconds found = bank_access(line, false, asked);
  const picoseconds ready = settle(who, p, line, store, in_l2, found);
  if (!waits) return {answer::kind::at, wires_.line_to_core(who.core, ready)};
  filling(line)->waiting.push_back({who, ready - found + wires_.latency()});
  return {answer::kind::later, 0};
}

answer hierarchy::store_whole(const from& who, std::uint64_t line, picoseconds now) {
  if (l3_.find(line) != cache_array::none) return get(who, line, true, now);
  const picoseconds asked = wires_.ask(now + l1_latency_ + l2_latency_);
  const place p = place_for(who, line, asked);
  if (p == cache_array::none) return {answer::kind::refused, 0};
  return {answer::kind::at, settle(who, p, line, true, cache_array::none, asked) + wires_.latency()};
}

hierarchy::place hierarchy::place_for(const from& who, std::uint64_t line, picoseconds now) {
  const place p = make_room(line, now);
  if (p == cache_array::none) {
    ++counts.refusals;
    design_->no_room(line, who.thread, now);
    refused_.push_back(who.told);
    return p;
  }
  ++counts.l1_misses, ++counts.l2_misses, ++counts.l3_misses;
  l3_.fill(p, line);
  lines_[p] = {};
  if (values_) l3_values_[p] = design_->value_of_memory(*this, line);
  return p;
}

answer hierarchy::miss(const from& who, std::uint64_t line, bool store, picoseconds now) {
  const place p = place_for(who, line, now);
  if (p == cache_array::none) return {answer::kind::refused, 0};
  ++counts.l3_fills;
  lines_[p].flags = shared_line::filling;
  if (free_fills_.empty()) free_fills_.push_back(static_cast<std::uint32_t>(fills_.size())), fills_.emplace_back();
  const std::uint32_t slot = free_fills_.back();
  free_fills_.pop_back();
  fill& f = fills_[slot];
  f.line = line, f.used = true, f.asked = now + l3_read_;
  f.waiting.assign(1, {who, wires_.latency()});
  events_.at(f.asked, *this, to_act(event::send_read, slot));
  settle(who, p, line, store, cache_array::none, f.asked);
  return {answer::kind::later, 0};
}

// The directory's part: other copies are called back, this core gets its own. Returns when the line can leave the bank.
picoseconds hierarchy::settle(const from& who, place p, std::uint64_t line, bool store, place in_l2, picoseconds now) {
  shared_line& s = lines_[p];
  picoseconds ready = now;
  const picoseconds round = 2 * wires_.latency() + l2_latency_;
  if (store && s.shared_by_others(who.core)) {
    for (std::uint32_t others = s.sharers & ~(1u << who.core); others != 0; others &= others - 1) {
      const auto core = static_cast<unsigned>(std::countr_zero(others));
      ++counts.invalidations;
      if (watch_ != nullptr) watch_->taken(core, line, true, now);
      down(core, p, line, false, false, now);
    }
    ready += round;
  } else if (s.owner != shared_line::nobody && s.owner != who.core) {
    ++counts.transfers;
    if (watch_ != nullptr) watch_->taken(s.owner, line, false, now);
    down(s.owner, p, line, true, false, now);
    s.owner = shared_line::nobody;
    ready += round;
  }
  bring_up(who.core, p, line, store, in_l2, now);
  return ready;
}

void hierarchy::bring_up(unsigned core, place p, std::uint64_t line, bool store, place in_l2, picoseconds now) {
  shared_line& s = lines_[p];
  if (store)
    s.set_writer(core);
  else
    s.add_reader(core);
  caches& c = private_[core];
  const std::uint8_t state = s.owner == core ? exclusive : 0;
  place q = in_l2;
  if (q == cache_array::none) {
    q = c.l2.room_for(line);
    if (c.l2.holds(q)) out_of_private(core, q, now);
    c.l2.fill(q, line);
    c.below[q] = p;
    c.l2_state[q] = state;
    if (values_) c.l2_values[q] = l3_values_[p];
  } else {
    c.l2.use(q);
    c.l2_state[q] |= state;
  }
  into_l1(core, line, static_cast<std::uint8_t>(state | (store ? dirty : 0)), values_ ? c.l2_values[q] : 0);
}

void hierarchy::into_l1(unsigned core, std::uint64_t line, std::uint8_t state, std::uint64_t value) {
  caches& c = private_[core];
  place p = c.l1.find(line);
  if (p != cache_array::none) {
    c.l1.use(p);
    c.l1_state[p] |= state;
    return;
  }
  p = c.l1.room_for(line);
  if (c.l1.holds(p) && (c.l1_state[p] & dirty) != 0) {
    const place q = c.l2.find(c.l1.line_at(p));
    c.l2_state[q] |= dirty;
    if (values_) c.l2_values[q] = c.l1_values[p];
  }
  c.l1.fill(p, line);
  c.l1_state[p] = state;
  if (values_) c.l1_values[p] = value;
}

// --- down ---

void hierarchy::out_of_private(unsigned core, place in_l2, picoseconds now) {
  const std::uint64_t line = private_[core].l2.line_at(in_l2);
  if (watch_ != nullptr) watch_->displaced(core, line, now);
  down(core, private_[core].below[in_l2], line, false, false, now);
}

picoseconds hierarchy::down(unsigned core, place p, std::uint64_t line, bool keep, bool keep_exclusive, picoseconds now) {
  caches& c = private_[core];
  bool newer = false;
  std::uint64_t value = 0;
  const place q = c.l2.find(line), r = c.l1.find(line);
  if (q != cache_array::none) {
    newer = (c.l2_state[q] & dirty) != 0;
    if (values_) value = c.l2_values[q];
  }
  if (r != cache_array::none && (c.l1_state[r] & dirty) != 0) {
    newer = true;
    if (values_) value = c.l1_values[r];
  }
  const std::uint8_t left = keep_exclusive ? exclusive : 0;
  if (q != cache_array::none) {
    c.l2_state[q] = static_cast<std::uint8_t>(c.l2_state[q] & left);
    if (values_) c.l2_values[q] = newer ? value : c.l2_values[q];
    if (!keep) c.l2.drop(q);
  }
  if (r != cache_array::none) {
    c.l1_state[r] = static_cast<std::uint8_t>(c.l1_state[r] & left);
    if (!keep) c.l1.drop(r);
  }
  if (!keep) lines_[p].remove(core);
  if (!newer) return now;
  ++counts.l3_writes;
  const picoseconds there = bank_access(line, true, wires_.line_from_core(core, now));
  design_->arriving(*this, p, core, line, value, there);
  return there;
}

bool hierarchy::dirty_above(place p, std::uint64_t line) const noexcept {
  return lines_[p].owner != shared_line::nobody && dirty_in_core(lines_[p].owner, line);
}

picoseconds hierarchy::bank_access(std::uint64_t line, bool write, picoseconds since) noexcept {
  if (!write) ++counts.l3_reads;
  return banks_[(line & ~superseded_line) % banks_.size()].serve(since, write ? l3_write_ : l3_read_);
}

bool hierarchy::may_leave(place p) { return !lines_[p].has(shared_line::filling) && design_->may_leave(p, l3_.line_at(p)); }

hierarchy::place hierarchy::make_room(std::uint64_t line, picoseconds now) {
  const place first = l3_.first_of_set(line);
  for (std::uint32_t allowed = ~0u;;) {
    const place p = l3_.room_for(line, allowed);
    if (p == cache_array::none || !l3_.holds(p)) return p;
    if (may_leave(p)) {
      evict_shared(p, now);
      return p;
    }
    allowed &= ~(1u << (p - first));
  }
}

void hierarchy::evict_shared(place p, picoseconds now) {
  const std::uint64_t line = l3_.line_at(p);
  for (std::uint32_t s = lines_[p].sharers; s != 0; s &= s - 1) {
    const auto core = static_cast<unsigned>(std::countr_zero(s));
    if (watch_ != nullptr) watch_->displaced(core, line, now);
    down(core, p, line, false, false, now);
  }
  drop_shared(p, now);
}

void hierarchy::drop_shared(place p, picoseconds now) {
  const std::uint64_t line = l3_.line_at(p);
  const bool newer = lines_[p].has(shared_line::dirty);
  if (newer) write_memory(line, value_at(p), bank_access(line, false, now), nullptr, 0);
  design_->left(p, line, newer);
  l3_.drop(p);
  lines_[p] = {};
}

// --- memory ---

std::size_t hierarchy::new_flight() {
  if (free_flights_.empty()) free_flights_.push_back(static_cast<std::uint32_t>(in_flight_.size())), in_flight_.emplace_back();
  const std::size_t slot = free_flights_.back();
  free_flights_.pop_back();
  return slot;
}

void hierarchy::write_memory(std::uint64_t line, std::uint64_t value, picoseconds when, asker* told, std::uint64_t token, bool in_place) {
  const std::size_t slot = new_flight();
  in_flight_[slot] = {line & ~superseded_line, value, token, told, ++flights_, true, false, in_place, {}};
  ++counts.memory_writes;
  events_.at(when, *this, to_act(event::send_flight, slot));
}

void hierarchy::read_memory(std::uint64_t line, picoseconds when, asker* told, std::uint64_t token) {
  const std::size_t slot = new_flight();
  in_flight_[slot] = {line, 0, token, told, ++flights_, true, true, false, {}};
  ++counts.memory_reads;
  events_.at(when, *this, to_act(event::send_flight, slot));
}

hierarchy::fill* hierarchy::filling(std::uint64_t line) noexcept {
  const auto f = std::ranges::find_if(fills_, [&](const fill& x) { return x.used && x.line == line; });
  return f == fills_.end() ? nullptr : &*f;
}

void hierarchy::act(picoseconds now, std::uint64_t what) {
  const std::size_t slot = what & 0xff'ffff'ffff'ffff;
  switch (static_cast<event>(what >> 56)) {
    case event::send_read:
      ++counts.memory_reads;
      below_.submit(now, {fills_[slot].line * 64, access::read, media::tape_tag::data, 0, this, to_act(event::read_back, slot)});
      return;
    case event::read_back: {
      fill& f = fills_[slot];
      f.used = false;
      if (const place p = l3_.find(f.line); p != cache_array::none) lines_[p].flags &= static_cast<std::uint8_t>(~shared_line::filling);
      bank_access(f.line, true, now);  // whoever waits has it from the wires
      const auto waiting = std::move(f.waiting);
      free_fills_.push_back(static_cast<std::uint32_t>(slot));
      for (const fill::waiter& w : waiting) w.who.told->done(now + w.extra, w.who.token);
      if (!refused_.empty()) room_again(now);
      return;
    }
    case event::send_flight: {
      const write_in_flight& f = in_flight_[slot];
      below_.submit(now, {f.line * 64, f.read ? access::read : access::write, media::tape_tag::data, 0, this, to_act(event::flight_over, slot)});
      return;
    }
    case event::flight_over: {
      const write_in_flight f = std::exchange(in_flight_[slot], {});
      free_flights_.push_back(static_cast<std::uint32_t>(slot));
      if (!f.read && values_) memory_values_[f.line] = f.value;
      if (f.told != nullptr) f.told->done(now, f.token);
      for (const auto& [told, token] : f.others) told->done(now, token);
      return;
    }
  }
}

void hierarchy::room_again(picoseconds now) {
  for (asker* a : std::exchange(refused_, {})) a->try_again(now);
}

// --- flushes ---

answer hierarchy::clean(const from& who, std::uint64_t line, level to, bool drop, picoseconds now) {
  ++counts.flushed_lines;
  picoseconds when = wires_.ask(now + l1_latency_);
  const place p = l3_.find(line);
  if (p != cache_array::none) {
    for (std::uint32_t s = lines_[p].sharers; s != 0; s &= s - 1)
      when = std::max(when, down(static_cast<unsigned>(std::countr_zero(s)), p, line, !drop, true, now));
    if (to == level::shared_cache) return {answer::kind::at, when};
    const bool newer = lines_[p].has(shared_line::dirty);
    if (newer) {
      lines_[p].flags &= static_cast<std::uint8_t>(~shared_line::dirty);
      write_memory(line, value_at(p), bank_access(line, false, when), who.told, who.token);
    }
    if (drop && !lines_[p].has(shared_line::filling)) drop_shared(p, now);
    if (newer) return {answer::kind::later, 0};
  }
  for (write_in_flight& f : in_flight_) {
    if (!f.used || f.read || f.line != line) continue;
    f.others.emplace_back(who.told, who.token);
    return {answer::kind::later, 0};
  }
  return {answer::kind::at, when};
}

answer hierarchy::stream(const from& who, std::uint64_t line, std::uint64_t value, picoseconds now) {
  const picoseconds when = wires_.line_from_core(who.core, now);
  if (const place p = l3_.find(line); p != cache_array::none && may_leave(p)) evict_shared(p, now);
  write_memory(line, value, when, who.told, who.token);
  return {answer::kind::later, 0};
}

// --- values ---

std::uint64_t hierarchy::value_seen(unsigned core, std::uint64_t line) const noexcept {
  const caches& c = private_[core];
  return c.l1_values[c.l1.find(line)];
}

void hierarchy::value_stored(unsigned core, std::uint64_t line, std::uint64_t value) noexcept {
  caches& c = private_[core];
  c.l1_values[c.l1.find(line)] = value;
}

bool hierarchy::dirty_in_core(unsigned core, std::uint64_t line) const noexcept {
  const caches& c = private_[core];
  const place q = c.l2.find(line), r = c.l1.find(line);
  return (q != cache_array::none && (c.l2_state[q] & dirty) != 0) || (r != cache_array::none && (c.l1_state[r] & dirty) != 0);
}

void hierarchy::clear_dirty(unsigned core, std::uint64_t line) noexcept {
  caches& c = private_[core];
  if (const place q = c.l2.find(line); q != cache_array::none) c.l2_state[q] &= exclusive;
  if (const place r = c.l1.find(line); r != cache_array::none) c.l1_state[r] &= exclusive;
}

void hierarchy::undo_store(unsigned core, std::uint64_t line, std::uint64_t value, bool was_dirty) noexcept {
  caches& c = private_[core];
  if (!was_dirty) clear_dirty(core, line);
  if (const place q = c.l2.find(line); q != cache_array::none && values_) c.l2_values[q] = value;
  if (const place r = c.l1.find(line); r != cache_array::none && values_) c.l1_values[r] = value;
}

std::uint64_t hierarchy::memory_value(std::uint64_t line) const noexcept {
  std::uint64_t value = 0, newest = 0;
  if (const auto found = memory_values_.find(line); found != memory_values_.end()) value = found->second;
  for (const write_in_flight& f : in_flight_)
    if (f.used && !f.read && f.line == line && f.number > newest) value = f.value, newest = f.number;
  return value;
}

std::string hierarchy::inconsistency() const {
  const auto about = [](std::uint64_t line, const char* what) { return "line " + std::to_string(line) + ": " + what; };
  for (unsigned core = 0; core < private_.size(); ++core) {
    const caches& c = private_[core];
    for (place q = 0; q < c.l1.places(); ++q)
      if (c.l1.holds(q) && c.l2.find(c.l1.line_at(q)) == cache_array::none) return about(c.l1.line_at(q), "in a first level and not in its second");
    for (place q = 0; q < c.l2.places(); ++q) {
      if (!c.l2.holds(q)) continue;
      const std::uint64_t line = c.l2.line_at(q);
      const place p = l3_.find(line), r = c.l1.find(line);
      if (p == cache_array::none) return about(line, "in a private cache and not in the shared one");
      if ((lines_[p].sharers >> core & 1) == 0) return about(line, "in a private cache that the directory does not know of");
      const std::uint8_t state = static_cast<std::uint8_t>(c.l2_state[q] | (r == cache_array::none ? 0 : c.l1_state[r]));
      if (state != 0 && lines_[p].owner != core) return about(line, "held exclusively by a core that does not own it");
    }
  }
  for (place p = 0; p < l3_.places(); ++p)
    if (l3_.holds(p) && lines_[p].owner != shared_line::nobody && lines_[p].sharers != 1u << lines_[p].owner)
      return about(l3_.line_at(p), "owned and shared at once");
  return {};
}

}  // namespace stele::sim
