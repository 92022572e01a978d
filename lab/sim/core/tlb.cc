// Looks pages up, and walks page tables.
#include <base/check.h>
#include <sim/core/tlb.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace stele::sim {

namespace {

constexpr unsigned bits_of_level = 9;  // 512 entries of 8 bytes: a table of 4 KiB
constexpr std::uint64_t level_bytes = (std::uint64_t{1} << 36) + 4096;

}  // namespace

tlb_counts& tlb_counts::operator+=(const tlb_counts& o) noexcept {
  l1_hits += o.l1_hits, l2_hits += o.l2_hits, misses += o.misses;
  walks += o.walks, walk_loads += o.walk_loads, walk_time += o.walk_time;
  return *this;
}

result<std::unique_ptr<tlb>> tlb::make(event_queue& events, hierarchy& caches, const tlb_config& c,
                                       unsigned core) {
  // An array of lines serves as one of pages: an entry is a line.
  auto first = cache_array::make(c.l1_entries * line_bytes, c.l1_ways, "lru", 0);
  if (!first) return std::unexpected(first.error());
  const unsigned entries = std::max(c.l2_entries, c.l2_ways);
  auto second = cache_array::make(entries * line_bytes, c.l2_ways, "lru", 0);
  if (!second) return std::unexpected(second.error());
  return std::unique_ptr<tlb>(
      new tlb(events, caches, c, core, std::move(*first), std::move(*second)));
}

tlb::tlb(event_queue& events, hierarchy& caches, const tlb_config& c, unsigned core,
         cache_array first, cache_array second)
    : events_(events),
      caches_(caches),
      core_(core),
      page_shift_(static_cast<unsigned>(std::countr_zero(c.page_bytes / line_bytes))),
      levels_(c.walk_levels),
      second_latency_(from_ns(c.l2_latency_ns)),
      has_second_(c.l2_entries != 0),
      first_(std::move(first)),
      second_(std::move(second)) {}

void tlb::enter(cache_array& level, std::uint64_t page) {
  if (level.find(page) == cache_array::none) level.fill(level.find_victim(page), page);
}

bool tlb::takes_grant(unsigned thread, std::uint64_t page) noexcept {
  if (thread >= granted_.size() || granted_[thread] == 0) return false;
  --grants_;
  return std::exchange(granted_[thread], 0) == page + 1;
}

bool tlb::translate_missed(unsigned thread, std::uint64_t page, requester& reply_to,
                           picoseconds& now) {
  if (const auto p = has_second_ ? second_.find(page) : cache_array::none; p != cache_array::none) {
    second_.touch(p);
    enter(first_, page);
    ++counts.l2_hits;
    now += second_latency_;
    return true;
  }
  ++counts.misses;
  const auto same =
      std::ranges::find_if(walks_, [&](const walk& w) { return w.used && w.page == page; });
  if (same != walks_.end())
    same->waiting.emplace_back(thread, &reply_to);
  else
    begin_walk(thread, page, reply_to, now);
  return false;
}

// The first load waits for its event, because `now` may be later than others' requests.
void tlb::begin_walk(unsigned thread, std::uint64_t page, requester& reply_to, picoseconds now) {
  auto w = std::ranges::find_if(walks_, [](const walk& x) { return !x.used; });
  if (w == walks_.end()) w = walks_.insert(w, walk{});
  w->page = page, w->level = 0, w->begun = now, w->used = true, w->refused = false;
  w->waiting.assign(1, {thread, &reply_to});
  ++counts.walks;
  events_.schedule(now, *this, static_cast<std::uint64_t>(w - walks_.begin()));
}

std::uint64_t tlb::entry_line(const walk& w) const noexcept {
  const std::uint64_t number = w.page >> bits_of_level * (levels_ - 1 - w.level);
  return (page_tables_at + w.level * level_bytes + number * 8) / line_bytes;
}

void tlb::load(std::size_t slot, picoseconds now) {
  walk& w = walks_[slot];
  const access_result got =
      caches_.load_from_l2({core_, w.waiting.front().first, this, slot}, entry_line(w), now);
  w.refused = got.what == access_result::kind::nacked;
  if (w.refused) return;
  ++counts.walk_loads;
  if (got.what == access_result::kind::completed) events_.schedule(got.when, *this, slot | loaded);
}

void tlb::handle(picoseconds now, std::uint64_t what) {
  if ((what & loaded) != 0)
    done(now, what & ~loaded);
  else
    load(what, now);
}

void tlb::done(picoseconds now, std::uint64_t slot) {
  if (now > events_.now()) return events_.schedule(now, *this, slot | loaded);
  if (++walks_[slot].level < levels_)
    load(slot, now);
  else
    finish(slot, now);
}

// A request queue has room.
void tlb::retry(picoseconds now) {
  for (std::size_t slot = 0; slot < walks_.size(); ++slot)
    if (walks_[slot].used && walks_[slot].refused) {
      walks_[slot].refused = false;
      events_.schedule(std::max(now, events_.now()), *this, slot);
    }
}

void tlb::finish(std::size_t slot, picoseconds now) {
  walk& w = walks_[slot];
  w.used = false;
  counts.walk_time += now - w.begun;
  enter(first_, w.page);
  if (has_second_) enter(second_, w.page);
  for (const auto& [thread, reply_to] : std::exchange(w.waiting, {})) {
    if (granted_.size() <= thread) granted_.resize(thread + 1);
    granted_[thread] = w.page + 1, ++grants_;
    reply_to->retry(now);
  }
}

}  // namespace stele::sim
