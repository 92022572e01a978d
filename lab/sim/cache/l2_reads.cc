// Reads that fill the second level alone: prefetches, and the loads of page walks.
//
// They are no accesses of a thread: isolation and designs do not hear of them. They count as reads
// of banks and memory and hold the same request queues, but as no hits and misses. What they evict
// leaves as it does for any other line.
#include <sim/cache/hierarchy.h>

namespace stele::sim {

// The line has been accessed in the second level at `now`. It stays, whatever is fetched.
void hierarchy::prefetch_behind(const request_origin& origin, std::uint64_t line, bool fetched,
                                picoseconds now) {
  while (prefetchers_.size() <= origin.thread) prefetchers_.emplace_back(prefetch_);
  prefetchers_[origin.thread].observe(line, fetched, [&](std::uint64_t next) {
    if (private_[origin.core].l2.find(next) != cache_array::none) return;
    const request_origin who{origin.core, origin.thread, nullptr, 0};
    const bool sent = fetch_into_l2(who, next, line, now).what != access_result::kind::nacked;
    ++(sent ? counts.prefetches_issued : counts.prefetches_dropped);
  });
}

access_result hierarchy::load_from_l2(const request_origin& origin, std::uint64_t line,
                                      picoseconds now) {
  caches& c = private_[origin.core];
  const frame q = c.l2.find(line);
  if (q == cache_array::none) return fetch_into_l2(origin, line, line, now + l2_read_);
  ++counts.l2_reads;
  c.l2.touch(q);
  is_first_use(c.l2_lines[q], now + l2_read_);
  return join(origin, line, false, c.l2_lines[q].there.readable, now + l2_read_);
}

// A read of a line that the core's second level does not have, for that level alone; `kept`, a line
// of the core, does not leave for it. Without a reply_to it is a prefetch, which is dropped when a
// request queue is full, no line may leave, or another core owns the line.
access_result hierarchy::fetch_into_l2(const request_origin& origin, std::uint64_t line,
                                       std::uint64_t kept, picoseconds now) {
  constexpr access_result refused = access_result::nacked();
  const bool is_prefetch = origin.reply_to == nullptr;
  cache_array& l2 = private_[origin.core].l2;
  const std::uint32_t ways = l2.ways_but(line, kept);
  if (l2.find_victim(line, ways) == cache_array::none) return refused;
  frame p = l3_.find(line);
  const bool misses = p == cache_array::none,
             waits = !misses && lines_[p].has(directory_entry::fill_pending);
  if (is_prefetch && !misses && lines_[p].owner != directory_entry::no_owner) return refused;
  if (waits || misses)
    if (auto* const waiters = waiters_of_full_queue(origin.core, line, waits)) {
      if (is_prefetch) return refused;
      ++counts.queue_waits;
      waiters->push_back(origin.reply_to);
      return refused;
    }
  const picoseconds asked = interconnect_.send_request(now);
  if (misses) {
    p = evict_for(line, origin.thread, asked, l3_.ways_but(line, kept));
    if (p == cache_array::none) {
      if (!is_prefetch) nack(origin, line, asked);
      return refused;
    }
    enter_shared(p, line);
  }
  const picoseconds found =
      misses ? start_fill(origin, p, line, asked) : bank_access(line, false, asked);
  if (!misses) l3_.touch(p);
  const picoseconds ready = misses ? found : take_from_others(origin, p, line, false, found);
  const frame q = fill_l2(origin.core, p, line, false, ways, ready);
  if (is_prefetch) private_[origin.core].l2_lines[q].state |= prefetched;
  if (!misses) return deliver(origin, p, line, {q, cache_array::none}, true, found, ready);
  set_arrival(origin.core, {q, cache_array::none}, true, true, never);
  return access_result::pending();
}

}  // namespace stele::sim
