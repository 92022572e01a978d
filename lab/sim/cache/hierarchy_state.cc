// The state of the caches for a checkpoint, and what must hold between its parts.
//
// A fill or transfer in use has one event, or one request to memory, that ends it.
#include <sim/cache/hierarchy.h>

#include <algorithm>

namespace stele::sim {

namespace {

void waiters(archive& a, std::vector<requester*>& all) {
  a.list(all, [&](requester*& r) { a.link(r); });
}

constexpr unsigned event_kinds = 5;

}  // namespace

void hierarchy::memory_transfer::visit_state(archive& a) {
  a(used);
  if (!used) return;
  a(line, value, number, thread, unbuffered);
  a.link(reply_to, token, true);
  a.list(merged, [&](auto& m) { a.link(m.first, m.second, false); });
}

void hierarchy::caches::visit_state(archive& a) {
  l1.visit_state(a), l2.visit_state(a);
  const auto lines = [&](auto& all, std::uint8_t states) {
    a.sparse(
        all.size(), [&](std::size_t i) { return all[i].state == 0 && all[i].there == arrival{}; },
        [&](std::size_t i) {
          a(all[i].there, all[i].state);
          a.require((all[i].state & ~states) == 0, "a line of a private cache is in no state");
        });
  };
  lines(l1_lines, exclusive | dirty), lines(l2_lines, exclusive | dirty | prefetched);
  a(waiting_for_memory, nacked);
  waiters(a, queue_waiters);
}

// A line's frames in the other levels, which are not stored.
void hierarchy::caches::find_links(const cache_array& l3) {
  for (frame q = 0; q < l2.frames(); ++q)
    if (l2.valid(q)) l2_lines[q].l3 = l3.find(l2.line_at(q));
  for (frame q = 0; q < l1.frames(); ++q) {
    if (!l1.valid(q)) continue;
    const frame below = l1_lines[q].l2 = l2.find(l1.line_at(q));
    if (below != cache_array::none) l2_lines[below].l1 = q;
  }
}

void hierarchy::l3_bank::visit_state(archive& a) {
  a(port, fills);
  waiters(a, queue_waiters);
}

void hierarchy::mshr::visit_state(archive& a, unsigned cores, bool prefetches) {
  a(used);
  if (!used) return;
  a(line, issued);
  a.list(targets, [&](target& t) {
    a.index(t.origin.core, cores);
    a(t.origin.thread, t.extra, t.earliest, t.fills, t.owns);
    a.link(t.origin.reply_to, t.origin.token, prefetches);
  });
  a.require(!targets.empty(), "a line on its way has no requester");
}

void hierarchy::name_parts(archive& a) {
  // Each fill and each transfer is ended once.
  a.name(*this, [this, is_first = first_time()](std::uint64_t what) {
    if (!takes(what)) return false;
    const std::size_t slot = what & 0xff'ffff'ffff'ffff, kind = what >> 56;
    if (kind == event_kinds - 1) return true;  // barriers have no slots
    return is_first(2 * slot + (kind >= 2));
  });
}

// Events of fills are 0 and 1, of transfers 2 and 3, and 4 is a barrier's.
bool hierarchy::takes(std::uint64_t what) {
  const std::size_t slot = what & 0xff'ffff'ffff'ffff, kind = what >> 56;
  if (kind < 2) return slot < mshrs_.size() && mshrs_[slot].used;
  if (kind < 4) return slot < in_flight_.size() && in_flight_[slot].used;
  return kind < event_kinds;
}

void hierarchy::visit_state(archive& a) {
  for (caches& c : private_) c.visit_state(a);
  l3_.visit_state(a);
  for (caches& c : private_)
    if (a.reads() && a.sound()) c.find_links(l3_);
  a.sparse(lines_, {});
  a(interconnect_);
  a.fixed(banks_);
  const auto cores = static_cast<unsigned>(private_.size());
  a.list(mshrs_, [&](mshr& m) { m.visit_state(a, cores, prefetches_); });
  a.indexes(free_mshrs_, mshrs_.size());
  a(in_flight_);
  a.indexes(free_transfers_, in_flight_.size());
  a(transfer_sequence_, newest_write_, newest_barrier_);
  waiters(a, nacked_requesters_);
  std::size_t prefetching = prefetchers_.size();
  a(prefetching);
  a.require(prefetches_ || prefetching == 0, "a machine without a prefetcher has one");
  while (a.sound() && prefetchers_.size() < prefetching) prefetchers_.emplace_back(prefetch_);
  for (prefetcher& p : prefetchers_) p.visit_state(a);
  a(counts);
  a.later([this, &a] { check_restored(a); });
}

void hierarchy::check_restored(archive& a) {
  const auto count = [](const auto& all) {
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [](const auto& x) { return x.used; }));
  };
  a.require(count(mshrs_) + free_mshrs_.size() == mshrs_.size() &&
                count(in_flight_) + free_transfers_.size() == in_flight_.size(),
            "a fill or a transfer is neither free nor in use");
  for (const std::uint32_t i : free_mshrs_) a.require(!mshrs_[i].used, "a fill in use is free");
  for (const std::uint32_t i : free_transfers_)
    a.require(!in_flight_[i].used, "a transfer in use is free");
  for (const directory_entry& s : lines_)
    a.require((s.owner == directory_entry::no_owner || s.owner < private_.size()) &&
                  std::uint64_t{s.sharers} >> private_.size() == 0,
              "a line is at a core that the machine does not have");
  for (const mshr& m : mshrs_)
    a.require(!m.used || find_mshr(m.line) == &m, "a line is on its way twice");
  if (!a.sound()) return;
  if (const std::string broken = inconsistency(); !broken.empty()) a.fail(broken);
}

}  // namespace stele::sim
