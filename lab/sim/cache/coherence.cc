// The invariants of coherence, for tests that call inconsistency() between requests.
//
// 1. Inclusion: a line of a first level is in its second, and one of a second in the shared cache,
//    in the frame that the second level names.
// 2. One writer: a line that a core may store to, or has stored to, is owned by it, and no other
//    core has it.
// 3. The directory names exactly the cores that have the line.
// 4. No cache has a line twice.
// 5. A copy whose arrival is not known belongs to a request to memory, and the shared cache's line
//    is marked as pending, as is no other.
#include <sim/cache/hierarchy.h>

#include <algorithm>

namespace stele::sim {

namespace {

std::string about(std::uint64_t line, const char* what) {
  return "line " + std::to_string(line) + ": " + what;
}

}  // namespace

std::string hierarchy::broken_arrival(unsigned core, std::uint64_t line, const arrival& a,
                                      bool may_store) const {
  const auto requested = [&](bool store) {
    return std::ranges::any_of(mshrs_, [&](const mshr& m) {
      return m.used && m.line == line && std::ranges::any_of(m.targets, [&](const auto& t) {
               return t.origin.core == core && (store ? t.owns : t.fills);
             });
    });
  };
  if (a.readable == never && !requested(false)) return about(line, "on its way from nowhere");
  if (may_store && a.writable == never && !requested(true))
    return about(line, "waits for ownership that nobody has asked for");
  return {};
}

std::string hierarchy::broken_in_private(unsigned core) const {
  const caches& c = private_[core];
  for (frame q = 0; q < c.l1.frames(); ++q) {
    if (!c.l1.valid(q)) continue;
    const std::uint64_t line = c.l1.line_at(q);
    const frame below = c.l2.find(line);
    if (c.l1.find(line) != q) return about(line, "twice in a first level");
    if (below == cache_array::none) return about(line, "in a first level and not in its second");
    if (c.l1_lines[q].l2 != below || c.l2_lines[below].l1 != q)
      return about(line, "in other frames of its core than these say");
    const bool may_store = (c.l1_lines[q].state & exclusive) != 0;
    if (may_store != ((c.l2_lines[below].state & exclusive) != 0))
      return about(line, "exclusive in one private level alone");
    if (auto broken = broken_arrival(core, line, c.l1_lines[q].there, may_store); !broken.empty())
      return broken;
  }
  for (frame q = 0; q < c.l2.frames(); ++q) {
    if (!c.l2.valid(q)) continue;
    const std::uint64_t line = c.l2.line_at(q);
    const frame p = l3_.find(line), r = c.l1.find(line);
    if (c.l2.find(line) != q) return about(line, "twice in a second level");
    if (p == cache_array::none) return about(line, "in a private cache and not in the shared one");
    if (c.l2_lines[q].l3 != p) return about(line, "in another frame than its core believes");
    if (c.l2_lines[q].l1 != r) return about(line, "in another frame of l1 than its core believes");
    if ((lines_[p].sharers >> core & 1) == 0)
      return about(line, "in a private cache that the directory does not know of");
    const std::uint8_t state = static_cast<std::uint8_t>(
        c.l2_lines[q].state | (r == cache_array::none ? 0 : c.l1_lines[r].state));
    if ((state & (exclusive | dirty)) != 0 && lines_[p].owner != core)
      return about(line, "held exclusively by a core that does not own it");
    if ((state & dirty) != 0 && (c.l2_lines[q].state & exclusive) == 0)
      return about(line, "dirty in a core that may not store to it");
    if (auto broken = broken_arrival(core, line, c.l2_lines[q].there, (state & exclusive) != 0);
        !broken.empty())
      return broken;
  }
  return {};
}

std::string hierarchy::broken_in_directory(frame p) const {
  const directory_entry& s = lines_[p];
  const std::uint64_t line = l3_.line_at(p);
  if (l3_.find(line) != p) return about(line, "twice in the shared cache");
  if (s.owner != directory_entry::no_owner && s.sharers != 1u << s.owner)
    return about(line, "owned and shared at once");
  for (unsigned core = 0; core < 32; ++core)
    if ((s.sharers >> core & 1) != 0 && (core >= private_.size() || !holds(core, line)))
      return about(line, "not in a private cache that the directory names");
  const bool requested =
      std::ranges::any_of(mshrs_, [&](const mshr& m) { return m.used && m.line == line; });
  if (requested != s.has(directory_entry::fill_pending))
    return about(line, requested ? "requested from memory and not pending"
                                 : "pending and not requested from memory");
  return {};
}

std::string hierarchy::inconsistency() const {
  for (unsigned core = 0; core < private_.size(); ++core)
    if (auto broken = broken_in_private(core); !broken.empty()) return broken;
  for (frame p = 0; p < l3_.frames(); ++p)
    if (l3_.valid(p))
      if (auto broken = broken_in_directory(p); !broken.empty()) return broken;
  return {};
}

}  // namespace stele::sim
