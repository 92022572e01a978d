// Requests through the levels of caches, and their transfers from and to memory.
#include <base/check.h>
#include <sim/cache/hierarchy.h>

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

namespace stele::sim {

namespace {

enum class event : std::uint64_t {
  fill_done,
  issue_fill,
  issue_transfer,
  transfer_done,
  issue_barrier
};
constexpr std::uint64_t event_argument(event e, std::size_t slot) noexcept {
  return static_cast<std::uint64_t>(e) << 56 | slot;
}

}  // namespace

void shared_cache_policy::writeback_arriving(hierarchy& h, cache_array::frame p, unsigned,
                                             std::uint64_t, std::uint64_t value, picoseconds) {
  h.at(p).flags |= directory_entry::dirty;
  h.set_value(p, value);
}

std::uint64_t shared_cache_policy::backing_value(hierarchy& h, std::uint64_t line) {
  return h.memory_value(line);
}

result<std::unique_ptr<hierarchy>> hierarchy::make(event_queue& events, memory& below,
                                                   const machine_config& c, std::uint64_t seed) {
  if (c.cores.count == 0 || c.cores.count > 32)
    return base::fail(errc::invalid_argument,
                      "cores.count is " + std::to_string(c.cores.count) + ": give 1 to 32");
  const auto array = [&](const cache_config& of, std::uint64_t n) {
    return cache_array::make(of.size_bytes, of.ways, of.replacement, seed + n);
  };
  std::vector<caches> of_cores;
  for (unsigned core = 0; core < c.cores.count; ++core) {
    auto l1 = array(c.l1, 2 * core), l2 = array(c.l2, 2 * core + 1);
    if (!l1) return std::unexpected(l1.error());
    if (!l2) return std::unexpected(l2.error());
    std::vector<l1_line> one(l1->frames());
    huge_vector<l2_line> two(l2->frames());
    of_cores.push_back({std::move(*l1), std::move(*l2), std::move(one), std::move(two), {}, {}});
  }
  auto l3 = array(c.l3, 1000);
  if (!l3) return std::unexpected(l3.error());
  if (c.l3.banks == 0) return base::fail(errc::invalid_argument, "l3.banks is 0: give at least 1");
  return std::unique_ptr<hierarchy>(
      new hierarchy(events, below, c, std::move(of_cores), std::move(*l3)));
}

hierarchy::hierarchy(event_queue& events, memory& below, const machine_config& c,
                     std::vector<caches> p, cache_array l3)
    : events_(events),
      memory_(below),
      private_(std::move(p)),
      l3_(std::move(l3)),
      lines_(l3_.frames()),
      interconnect_(c.crossbar, c.cores.count),
      banks_(c.l3.banks),
      core_queue_(std::min(c.l1.request_queue_entries, c.l2.request_queue_entries)),
      bank_queue_(c.l3.request_queue_entries),
      l1_read_(from_ns(c.l1.read_latency_ns)),
      l1_write_(from_ns(c.l1.write_latency_ns)),
      l2_read_(from_ns(c.l2.read_latency_ns)),
      l2_write_(from_ns(c.l2.write_latency_ns)),
      l3_read_(from_ns(c.l3.read_latency_ns)),
      l3_write_(from_ns(c.l3.write_latency_ns)),
      prefetch_(c.prefetch),
      prefetches_(c.prefetch.kind != "none") {}

void hierarchy::track_values() {
  values_ = true;
  l3_values_.resize(l3_.frames());
  for (caches& c : private_) c.l1_values.resize(c.l1.frames()), c.l2_values.resize(c.l2.frames());
}

std::size_t hierarchy::tag_bytes() const noexcept {
  std::size_t bytes = l3_.bytes() + lines_.size() * sizeof lines_[0];
  for (const caches& c : private_)
    bytes += c.l1.bytes() + c.l2.bytes() + c.l1_lines.size() * sizeof(l1_line) +
             c.l2_lines.size() * sizeof(l2_line);
  return bytes;
}

// --- from the cores ---

access_result hierarchy::access_line(const request_origin& origin, std::uint64_t line, bool store,
                                     picoseconds now) {
  caches& c = private_[origin.core];
  if (const frame p = c.l1.find(line); allows(c, p, store)) {
    count_l1_hit(c, p, store);
    return join(origin, line, store, c.l1_lines[p].there.of(store), now + first_latency(store));
  }
  const frame p = c.l2.find(line);
  if (p == cache_array::none || (store && (c.l2_lines[p].state & exclusive) == 0))
    return access_shared(origin, line, store, p, now);
  ++counts.l1_misses, ++counts.l2_hits, ++counts.l2_reads;
  const bool first_use = is_first_use(c.l2_lines[p], now + private_latency(store));
  c.l2.touch(p);
  const frame r =
      fill_l1(origin.core, p,
              static_cast<std::uint8_t>((c.l2_lines[p].state & exclusive) | (store ? dirty : 0)));
  const picoseconds earliest = now + private_latency(store);
  const arrival there = c.l2_lines[p].there;
  c.l1_lines[r].there = {std::max(there.readable, earliest), std::max(there.writable, earliest)};
  const access_result got = join(origin, line, store, there.of(store), earliest);
  if (prefetches_) prefetch_behind(origin, line, first_use, earliest);
  return got;
}

// A request for a copy that the core has or has requested: completes when the copy arrives, at
// `earliest` at the soonest.
access_result hierarchy::join(const request_origin& origin, std::uint64_t line, bool store,
                              picoseconds arrives, picoseconds earliest) {
  if (arrives != never)
    return access_result::completed_at(std::max(arrives, earliest), arrives > earliest);
  auto& targets = find_mshr(line)->targets;
  const auto first = std::ranges::find_if(targets | std::views::reverse, [&](const auto& t) {
    return t.origin.core == origin.core && (store ? t.owns : t.fills);
  });
  targets.push_back({origin, first->extra, std::max(earliest, first->earliest), false, false});
  return access_result::pending(true);
}

void hierarchy::set_arrival(unsigned core, copy at, bool fills, bool owns,
                            picoseconds when) noexcept {
  caches& c = private_[core];
  const auto set = [&](arrival& a) {
    if (fills) a.readable = when;
    if (owns) a.writable = when;
  };
  if (at.l2 != cache_array::none) set(c.l2_lines[at.l2].there);
  if (at.l1 != cache_array::none) set(c.l1_lines[at.l1].there);
}

// Of the line, and of the line that it will replace in the second level.
void hierarchy::prefetch_for_miss(unsigned core, std::uint64_t line) const noexcept {
  prefetch(line);
  const caches& c = private_[core];
  const frame q = c.l2.next_victim(line);
  if (q == cache_array::none || !c.l2.valid(q)) return;
  __builtin_prefetch(&lines_[c.l2_lines[q].l3], 1);
  policy_->prefetch(c.l2_lines[q].l3);
}

access_result hierarchy::access_shared(const request_origin& origin, std::uint64_t line, bool store,
                                       frame in_l2, picoseconds now) {
  if (in_l2 == cache_array::none) prefetch_for_miss(origin.core, line);
  const picoseconds asked = interconnect_.send_request(now + private_latency(store));
  const frame p =
      in_l2 != cache_array::none ? private_[origin.core].l2_lines[in_l2].l3 : l3_.find(line);
  const bool waits = p != cache_array::none && lines_[p].has(directory_entry::fill_pending);
  if (waits || p == cache_array::none)
    if (auto* const waiters = waiters_of_full_queue(origin.core, line, waits)) {
      ++counts.queue_waits;
      waiters->push_back(origin.reply_to);  // it may find the queue full again
      return access_result::nacked();
    }
  const bool first_use =
      in_l2 != cache_array::none &&
      is_first_use(private_[origin.core].l2_lines[in_l2], now + private_latency(store));
  const access_result got = p == cache_array::none
                                ? miss(origin, line, store, asked)
                                : hit_shared(origin, p, line, store, in_l2, asked);
  if (prefetches_ && got.what != access_result::kind::nacked)
    prefetch_behind(origin, line, first_use || in_l2 == cache_array::none,
                    now + private_latency(store));
  return got;
}

access_result hierarchy::hit_shared(const request_origin& origin, frame p, std::uint64_t line,
                                    bool store, frame in_l2, picoseconds asked) {
  ++counts.l1_misses, ++counts.l2_misses, ++counts.l3_hits;
  l3_.touch(p);
  const picoseconds found = bank_access(line, false, asked);
  const auto [ready, at] = resolve_coherence(origin, p, line, store, in_l2, found);
  return deliver(origin, p, line, at, in_l2 == cache_array::none, found, ready);
}

access_result hierarchy::deliver(const request_origin& origin, frame p, std::uint64_t line, copy at,
                                 bool fills, picoseconds found, picoseconds ready) {
  const bool owns = lines_[p].owner == origin.core;
  if (!lines_[p].has(directory_entry::fill_pending)) {
    const picoseconds there = interconnect_.line_to_core(origin.core, ready);
    set_arrival(origin.core, at, fills, owns, there);
    return access_result::completed_at(there);
  }
  ++private_[origin.core].waiting_for_memory;
  set_arrival(origin.core, at, fills, owns, never);
  find_mshr(line)->targets.push_back({origin, ready - found + interconnect_.latency(),
                                      ready + interconnect_.latency(), fills, owns});
  return access_result::pending();
}

// A request that waits for memory has an entry in the queues of its core's first and second level.
// A line on its way has one in the queue of its bank. NACKed requests keep theirs.
std::vector<requester*>* hierarchy::waiters_of_full_queue(unsigned core, std::uint64_t line,
                                                          bool on_its_way) noexcept {
  if (requests_of(core) >= core_queue_) return &private_[core].queue_waiters;
  l3_bank& bank = bank_of(line);
  return !on_its_way && bank.fills >= bank_queue_ ? &bank.queue_waiters : nullptr;
}

access_result hierarchy::store_full_line(const request_origin& origin, std::uint64_t line,
                                         picoseconds now) {
  if (l3_.find(line) != cache_array::none) return access_line(origin, line, true, now);
  const picoseconds asked = interconnect_.send_request(now + private_latency(true));
  const frame p = allocate_or_nack(origin, line, asked);
  if (p == cache_array::none) return access_result::nacked();
  const auto [ready, at] = resolve_coherence(origin, p, line, true, cache_array::none, asked);
  const picoseconds there = ready + interconnect_.latency();
  set_arrival(origin.core, at, true, true, there);
  return access_result::completed_at(there);
}

hierarchy::frame hierarchy::allocate_or_nack(const request_origin& origin, std::uint64_t line,
                                             picoseconds now) {
  const frame p = evict_for(line, origin.thread, now);
  if (p == cache_array::none) {
    nack(origin, line, now);
    return p;
  }
  ++counts.l1_misses, ++counts.l2_misses, ++counts.l3_misses;
  enter_shared(p, line);
  return p;
}

void hierarchy::nack(const request_origin& origin, std::uint64_t line, picoseconds now) {
  ++counts.nacks;
  policy_->no_victim(line, origin.thread, now);
  nacked_requesters_.push_back(origin.reply_to);
  ++private_[origin.core].nacked;
}

void hierarchy::enter_shared(frame p, std::uint64_t line) {
  l3_.fill(p, line);
  lines_[p] = {};
  if (values_) l3_values_[p] = policy_->backing_value(*this, line);
}

access_result hierarchy::miss(const request_origin& origin, std::uint64_t line, bool store,
                              picoseconds now) {
  const frame p = allocate_or_nack(origin, line, now);
  if (p == cache_array::none) return access_result::nacked();
  const picoseconds issued = start_fill(origin, p, line, now);
  const copy at = resolve_coherence(origin, p, line, store, cache_array::none, issued).at;
  set_arrival(origin.core, at, true, true, never);
  return access_result::pending();
}

picoseconds hierarchy::start_fill(const request_origin& origin, frame p, std::uint64_t line,
                                  picoseconds now) {
  ++counts.l3_fills;
  ++private_[origin.core].waiting_for_memory, ++bank_of(line).fills;
  lines_[p].flags = directory_entry::fill_pending;
  if (free_mshrs_.empty())
    free_mshrs_.push_back(static_cast<std::uint32_t>(mshrs_.size())), mshrs_.emplace_back();
  const std::uint32_t slot = free_mshrs_.back();
  free_mshrs_.pop_back();
  mshr& f = mshrs_[slot];
  f.line = line, f.used = true, f.issued = now + l3_read_;
  f.targets.assign(1, {origin, interconnect_.latency(), 0, true, true});
  events_.schedule(f.issued, *this, event_argument(event::issue_fill, slot));
  return f.issued;
}

// The directory's task: takes back other copies and gives this core its own.
hierarchy::coherent hierarchy::resolve_coherence(const request_origin& origin, frame p,
                                                 std::uint64_t line, bool store, frame in_l2,
                                                 picoseconds now) {
  const picoseconds ready = take_from_others(origin, p, line, store, now);
  return {ready, fill_private(origin.core, p, line, store, in_l2, now)};
}

picoseconds hierarchy::take_from_others(const request_origin& origin, frame p, std::uint64_t line,
                                        bool store, picoseconds now) {
  directory_entry& s = lines_[p];
  picoseconds ready = now;
  const picoseconds round = 2 * interconnect_.latency() + l2_read_;
  if (store && s.shared_by_others(origin.core)) {
    for (std::uint32_t others = s.sharers & ~(1u << origin.core); others != 0;
         others &= others - 1) {
      const auto core = static_cast<unsigned>(std::countr_zero(others));
      ++counts.invalidations;
      if (observer_ != nullptr) observer_->remote_access(core, line, true, now);
      write_back_private(core, sharer_frame(core, line), line, false, false, now);
    }
    ready += round;
  } else if (s.owner != directory_entry::no_owner && s.owner != origin.core) {
    ++counts.transfers;
    if (observer_ != nullptr) observer_->remote_access(s.owner, line, false, now);
    write_back_private(s.owner, sharer_frame(s.owner, line), line, true, false, now);
    s.owner = directory_entry::no_owner;
    ready += round;
  }
  return ready;
}

hierarchy::copy hierarchy::fill_private(unsigned core, frame p, std::uint64_t line, bool store,
                                        frame in_l2, picoseconds now) {
  caches& c = private_[core];
  if (in_l2 == cache_array::none) {
    in_l2 = fill_l2(core, p, line, store, ~0u, now);
  } else {
    give_to(core, p, store);
    c.l2.touch(in_l2);
    if (lines_[p].owner == core) c.l2_lines[in_l2].state |= exclusive;
  }
  const auto state =
      static_cast<std::uint8_t>((lines_[p].owner == core ? exclusive : 0) | (store ? dirty : 0));
  return {in_l2, fill_l1(core, in_l2, state)};
}

void hierarchy::give_to(unsigned core, frame p, bool store) noexcept {
  if (store)
    lines_[p].set_owner(core);
  else
    lines_[p].add_sharer(core);
}

// Puts a line into one of these ways of the core's second level.
hierarchy::frame hierarchy::fill_l2(unsigned core, frame p, std::uint64_t line, bool store,
                                    std::uint32_t ways, picoseconds now) {
  give_to(core, p, store);
  caches& c = private_[core];
  const frame q = c.l2.find_victim(line, ways);
  if (c.l2.valid(q)) evict_private(core, q, now);
  c.l2.fill(q, line);
  ++counts.l2_writes;
  c.l2_lines[q].l3 = p;
  c.l2_lines[q].state = lines_[p].owner == core ? exclusive : 0;
  if (values_) c.l2_values[q] = l3_values_[p];
  return q;
}

hierarchy::frame hierarchy::fill_l1(unsigned core, frame in_l2, std::uint8_t state) {
  caches& c = private_[core];
  frame p = c.l2_lines[in_l2].l1;
  if (p != cache_array::none) {
    c.l1.touch(p);
    c.l1_lines[p].state |= state;
    return p;
  }
  const std::uint64_t line = c.l2.line_at(in_l2);
  p = c.l1.find_victim(line);
  if (c.l1.valid(p)) {
    const frame q = c.l1_lines[p].l2;
    c.l2_lines[q].l1 = cache_array::none;
    if ((c.l1_lines[p].state & dirty) != 0) {
      c.l2_lines[q].state |= dirty;
      ++counts.l1_newer_lines, ++counts.l2_writes;
      if (values_) c.l2_values[q] = c.l1_values[p];
    }
  }
  c.l1.fill(p, line);
  c.l2_lines[in_l2].l1 = p, c.l1_lines[p].l2 = in_l2;
  ++counts.l1_fills;
  c.l1_lines[p].state = state;
  c.l1_lines[p].there = c.l2_lines[in_l2].there;
  if (values_) c.l1_values[p] = c.l2_values[in_l2];
  return p;
}

// --- down ---

void hierarchy::evict_private(unsigned core, frame in_l2, picoseconds now) {
  const std::uint64_t line = private_[core].l2.line_at(in_l2);
  announce_eviction(core, line, now);
  write_back_private(core, in_l2, line, false, false, now);
}

picoseconds hierarchy::write_back_private(unsigned core, frame in_l2, std::uint64_t line, bool keep,
                                          bool keep_exclusive, picoseconds now) {
  caches& c = private_[core];
  std::uint64_t value = 0;
  const frame r = c.l2_lines[in_l2].l1, p = c.l2_lines[in_l2].l3;
  const bool newer_in_l2 = (c.l2_lines[in_l2].state & dirty) != 0,
             newer_in_l1 = r != cache_array::none && (c.l1_lines[r].state & dirty) != 0,
             newer = newer_in_l1 || newer_in_l2;
  if (newer) ++(newer_in_l1 ? counts.l1_newer_lines : counts.l2_reads);
  if (values_ && newer)
    value = c.l2_values[in_l2] = newer_in_l1 ? c.l1_values[r] : c.l2_values[in_l2];
  if (!keep && (c.l2_lines[in_l2].state & prefetched) != 0) ++counts.prefetches_useless;
  const std::uint8_t left = keep_exclusive ? exclusive | prefetched : prefetched;
  c.l2_lines[in_l2].state &= left;
  if (r != cache_array::none) {
    c.l1_lines[r].state &= left;
    if (!keep) c.l1.invalidate(r);
  }
  if (!keep) {
    c.l2_lines[in_l2].l1 = cache_array::none;
    c.l2.invalidate(in_l2);
    lines_[p].remove(core);
  }
  if (!newer) return now;
  ++counts.l3_writes;
  const picoseconds there = bank_access(line, true, interconnect_.line_from_core(core, now));
  policy_->writeback_arriving(*this, p, core, line, value, there);
  return there;
}

bool hierarchy::dirty_in_private(frame p, std::uint64_t line) const noexcept {
  return lines_[p].owner != directory_entry::no_owner && dirty_in_core(lines_[p].owner, line);
}

picoseconds hierarchy::bank_access(std::uint64_t line, bool write, picoseconds since) noexcept {
  if (!write) ++counts.l3_reads;
  return bank_of(line).port.occupy(since, write ? l3_write_ : l3_read_);
}

void hierarchy::scan_tags(picoseconds time_of_set, picoseconds now) noexcept {
  const std::uint64_t sets = l3_.frames() / l3_.ways() / banks_.size();
  for (l3_bank& b : banks_) b.port.occupy(now, std::max<std::uint64_t>(sets, 1) * time_of_set);
}

bool hierarchy::may_evict(frame p) {
  return !lines_[p].has(directory_entry::fill_pending) && policy_->may_evict(p, l3_.line_at(p));
}

hierarchy::frame hierarchy::evict_for(std::uint64_t line, unsigned thread, picoseconds now,
                                      std::uint32_t allowed) {
  const frame first = l3_.first_of_set(line);
  for (;;) {
    const frame p = l3_.find_victim(line, allowed);
    if (p == cache_array::none || !l3_.valid(p)) return p;
    if (may_evict(p)) {
      evict_with_back_invalidation(p, thread, now);
      return p;
    }
    allowed &= ~(1u << (p - first));
  }
}

void hierarchy::evict_with_back_invalidation(frame p, unsigned thread, picoseconds now) {
  const std::uint64_t line = l3_.line_at(p);
  for (std::uint32_t s = lines_[p].sharers; s != 0; s &= s - 1) {
    const auto core = static_cast<unsigned>(std::countr_zero(s));
    announce_eviction(core, line, now);
    write_back_private(core, sharer_frame(core, line), line, false, false, now);
  }
  evict_from_l3(p, thread, now);
}

void hierarchy::evict_from_l3(frame p, unsigned thread, picoseconds now) {
  const std::uint64_t line = l3_.line_at(p);
  const bool newer = lines_[p].has(directory_entry::dirty);
  if (newer) write_memory(line, value_at(p), bank_access(line, false, now), thread, nullptr, 0);
  policy_->line_evicted(p, line, newer);
  l3_.invalidate(p);
  lines_[p] = {};
}

// --- memory ---

std::size_t hierarchy::allocate_transfer() {
  if (free_transfers_.empty())
    free_transfers_.push_back(static_cast<std::uint32_t>(in_flight_.size())),
        in_flight_.emplace_back();
  const std::size_t slot = free_transfers_.back();
  free_transfers_.pop_back();
  return slot;
}

void hierarchy::write_memory(std::uint64_t line, std::uint64_t value, picoseconds when,
                             unsigned thread, requester* reply_to, std::uint64_t token,
                             bool unbuffered) {
  const std::size_t slot = allocate_transfer();
  in_flight_[slot] = {line & ~superseded_line,
                      value,
                      token,
                      reply_to,
                      ++transfer_sequence_,
                      thread,
                      true,
                      unbuffered,
                      {}};
  ++counts.memory_writes;
  when = std::max(when, newest_barrier_);  // not past a barrier that was sent before
  newest_write_ = std::max(newest_write_, when);
  events_.schedule(when, *this, event_argument(event::issue_transfer, slot));
}

void hierarchy::barrier(unsigned thread, picoseconds now) {
  newest_barrier_ = std::max({newest_barrier_, newest_write_, now});
  events_.schedule(newest_barrier_, *this, event_argument(event::issue_barrier, thread));
}

hierarchy::mshr* hierarchy::find_mshr(std::uint64_t line) noexcept {
  const auto f =
      std::ranges::find_if(mshrs_, [&](const mshr& x) { return x.used && x.line == line; });
  return f == mshrs_.end() ? nullptr : &*f;
}

void hierarchy::handle(picoseconds now, std::uint64_t what) {
  const std::size_t slot = what & 0xff'ffff'ffff'ffff;
  switch (static_cast<event>(what >> 56)) {
    case event::issue_fill:
      ++counts.memory_reads;
      memory_.submit(now, {mshrs_[slot].line * 64, access::read, media::tape_tag::data,
                           static_cast<std::uint16_t>(mshrs_[slot].targets.front().origin.thread),
                           this, event_argument(event::fill_done, slot)});
      return;
    case event::fill_done:
      return fill_done(slot, now);
    case event::issue_transfer: {
      const memory_transfer& f = in_flight_[slot];
      memory_.submit(now, {f.line * 64, access::write, media::tape_tag::data,
                           static_cast<std::uint16_t>(f.thread), this,
                           event_argument(event::transfer_done, slot)});
      return;
    }
    case event::issue_barrier:
      return memory_.barrier(now, static_cast<std::uint16_t>(slot));
    case event::transfer_done: {
      const memory_transfer f = std::exchange(in_flight_[slot], {});
      free_transfers_.push_back(static_cast<std::uint32_t>(slot));
      if (values_) memory_values_[f.line] = f.value;
      if (f.reply_to != nullptr) f.reply_to->done(now, f.token);
      for (const auto& [reply_to, token] : f.merged) reply_to->done(now, token);
      return;
    }
  }
}

void hierarchy::fill_done(std::size_t slot, picoseconds now) {
  mshr& f = mshrs_[slot];
  f.used = false;
  if (const frame p = l3_.find(f.line); p != cache_array::none)
    lines_[p].flags &= static_cast<std::uint8_t>(~directory_entry::fill_pending);
  bank_access(f.line, true, now);  // waiting requesters get it from the interconnect
  l3_bank& bank = bank_of(f.line);
  --bank.fills;
  const auto waiting = std::move(f.targets);
  free_mshrs_.push_back(static_cast<std::uint32_t>(slot));
  for (const mshr::target& w : waiting) {
    const picoseconds there = std::max(now + w.extra, w.earliest);
    set_arrival(w.origin.core, copy_of(w.origin.core, f.line), w.fills, w.owns, there);
    if (w.origin.reply_to != nullptr) w.origin.reply_to->done(there, w.origin.token);
    if (!w.fills && !w.owns) continue;
    --private_[w.origin.core].waiting_for_memory;
    retry_all(private_[w.origin.core].queue_waiters, now);
  }
  retry_all(bank.queue_waiters, now);
  if (!nacked_requesters_.empty()) retry_nacked(now);
}

void hierarchy::retry_nacked(picoseconds now) {
  retry_all(nacked_requesters_, now);
  for (caches& c : private_)
    if (std::exchange(c.nacked, 0) != 0) retry_all(c.queue_waiters, now);
}

// --- flushes ---

access_result hierarchy::clean(const request_origin& origin, std::uint64_t line, level to,
                               bool drop, picoseconds now) {
  ++counts.flushed_lines;
  picoseconds when = interconnect_.send_request(now + l1_read_);
  const frame p = l3_.find(line);
  if (p != cache_array::none) {
    for (std::uint32_t s = lines_[p].sharers; s != 0; s &= s - 1) {
      const auto core = static_cast<unsigned>(std::countr_zero(s));
      when = std::max(when,
                      write_back_private(core, sharer_frame(core, line), line, !drop, true, now));
    }
    // A line that must not leave the shared cache is as durable there as it can be.
    if (to == level::shared_cache || !policy_->may_evict(p, line))
      return access_result::completed_at(when);
    const bool newer = lines_[p].has(directory_entry::dirty);
    if (newer) {
      lines_[p].flags &= static_cast<std::uint8_t>(~directory_entry::dirty);
      write_memory(line, value_at(p), bank_access(line, false, when), origin.thread,
                   origin.reply_to, origin.token);
    }
    if (drop && !lines_[p].has(directory_entry::fill_pending)) evict_from_l3(p, origin.thread, now);
    if (newer) return access_result::pending();
  }
  for (memory_transfer& f : in_flight_) {
    if (!f.used || f.line != line) continue;
    f.merged.emplace_back(origin.reply_to, origin.token);
    return access_result::pending();
  }
  return access_result::completed_at(when);
}

access_result hierarchy::stream(const request_origin& origin, std::uint64_t line,
                                std::uint64_t value, picoseconds now) {
  const picoseconds when = interconnect_.line_from_core(origin.core, now);
  if (const frame p = l3_.find(line); p != cache_array::none && may_evict(p))
    evict_with_back_invalidation(p, origin.thread, now);
  write_memory(line, value, when, origin.thread, origin.reply_to, origin.token);
  return access_result::pending();
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
  const auto [q, r] = copy_of(core, line);
  return (q != cache_array::none && (c.l2_lines[q].state & dirty) != 0) ||
         (r != cache_array::none && (c.l1_lines[r].state & dirty) != 0);
}

void hierarchy::clear_dirty(unsigned core, std::uint64_t line) noexcept {
  caches& c = private_[core];
  const auto [q, r] = copy_of(core, line);
  if (q != cache_array::none) c.l2_lines[q].state &= exclusive;
  if (r != cache_array::none) c.l1_lines[r].state &= exclusive;
}

void hierarchy::roll_back_store(unsigned core, std::uint64_t line, std::uint64_t value,
                                bool was_dirty) noexcept {
  caches& c = private_[core];
  if (!was_dirty) clear_dirty(core, line);
  const auto [q, r] = copy_of(core, line);
  if (q != cache_array::none && values_) c.l2_values[q] = value;
  if (r != cache_array::none && values_) c.l1_values[r] = value;
}

std::uint64_t hierarchy::memory_value(std::uint64_t line) const noexcept {
  std::uint64_t value = 0, newest = 0;
  if (const auto found = memory_values_.find(line); found != memory_values_.end())
    value = found->second;
  for (const memory_transfer& f : in_flight_)
    if (f.used && f.line == line && f.number > newest) value = f.value, newest = f.number;
  return value;
}

}  // namespace stele::sim
