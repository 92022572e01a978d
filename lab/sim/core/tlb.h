// Address translation of a core: two levels of translation buffers, and a walker of page tables.
//
// Addresses are mapped to themselves; translation only takes time. The threads of a core share its
// buffers, as they share its caches. A hit in the first level is free; one in the second takes its
// latency. A miss walks a radix tree: a load at each level, one after another, which begins in the
// core's second-level cache (hierarchy::load_from_l2). There are no caches of partial walks.
//
// The entries of a level lie in order of pages, 8 bytes each, in the volatile memory. The root is
// at `page_tables_at`; each level begins 2^36 bytes and a table behind the one above, so that
// levels are not all in the same sets of a cache. An entry is for 512 of the next level.
//
// A thread stops at a miss, with its earlier accesses on their way, and goes on when the walk ends.
// Walks of one page by threads of the core are one walk.
#pragma once

#include <sim/cache/hierarchy.h>

#include <deque>
#include <memory>
#include <vector>

namespace stele::sim {

// Above all that a tape and a design access.
inline constexpr std::uint64_t page_tables_at = std::uint64_t{1} << 41;

struct tlb_counts {
  std::uint64_t l1_hits = 0, l2_hits = 0, misses = 0, walks = 0, walk_loads = 0;
  picoseconds walk_time = 0;  // of all walks, summed

  tlb_counts& operator+=(const tlb_counts& o) noexcept;
  void visit_state(archive& a) { a(l1_hits, l2_hits, misses, walks, walk_loads, walk_time); }
};

class tlb final : event_handler, requester {
 public:
  // Errors: invalid_argument.
  [[nodiscard]] static result<std::unique_ptr<tlb>> make(event_queue& events, hierarchy& caches,
                                                         const tlb_config& c, unsigned core);

  // The translation of a line for an access of this thread at `now`, which is moved on by the time
  // that it takes. Returns false when the thread has to wait for a walk; then reply_to.retry() is
  // called, and its next call succeeds if it is for the same page.
  bool translate(unsigned thread, std::uint64_t line, requester& reply_to, picoseconds& now) {
    const std::uint64_t page = line >> page_shift_;
    if (grants_ != 0 && takes_grant(thread, page)) [[unlikely]]
      return true;
    if (const auto p = first_.find(page); p != cache_array::none) [[likely]] {
      first_.touch(p);
      ++counts.l1_hits;
      return true;
    }
    return translate_missed(thread, page, reply_to, now);
  }

  // thread_state.cc. threads: of the machine.
  void name_parts(archive& a);
  void visit_state(archive& a, unsigned threads);

  tlb_counts counts;

 private:
  struct walk {
    std::uint64_t page = 0;
    unsigned level = 0;  // of the load in progress, or next
    picoseconds begun = 0;
    bool used = false;
    bool refused = false;  // its load waits for an entry of a request queue
    std::vector<std::pair<unsigned, requester*>> waiting;  // thread and requester
    void visit_state(archive& a, unsigned threads, unsigned walk_levels, std::uint64_t pages);
  };

  // Marks an event: the walk's load is done.
  static constexpr std::uint64_t loaded = std::uint64_t{1} << 32;

  tlb(event_queue& events, hierarchy& caches, const tlb_config& c, unsigned core, cache_array first,
      cache_array second);
  bool takes_grant(unsigned thread, std::uint64_t page) noexcept;
  bool translate_missed(unsigned thread, std::uint64_t page, requester& reply_to, picoseconds& now);
  void begin_walk(unsigned thread, std::uint64_t page, requester& reply_to, picoseconds now);
  void handle(picoseconds now, std::uint64_t slot) override;
  void done(picoseconds now, std::uint64_t slot) override;
  void retry(picoseconds now) override;
  void load(std::size_t slot, picoseconds now);
  void finish(std::size_t slot, picoseconds now);
  std::uint64_t entry_line(const walk& w) const noexcept;
  static void enter(cache_array& level, std::uint64_t page);

  event_queue& events_;
  hierarchy& caches_;
  unsigned core_, page_shift_, levels_;
  picoseconds second_latency_;
  bool has_second_;
  cache_array first_, second_;
  std::deque<walk> walks_;  // in progress, and free ones
  // By thread: one more than the page that its walk has found, until its next access. It has the
  // translation even if another page has taken the entry meanwhile.
  std::vector<std::uint64_t> granted_;
  unsigned grants_ = 0;  // of them, not 0
};

}  // namespace stele::sim
