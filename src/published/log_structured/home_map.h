// The home map of a log-structured pool: for each home address its log_address, in volatile memory.
//
// After Hu, Ren, Badam, Shu and Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017),
// sections 3.2 and 4.3: home is divided into partitions of 4 KiB, each with a skip list (Pugh,
// 1990) of {home address, length, place}. A list has one writer at a time, and readers without
// locks; each thread has a cache of nodes. Ours: a node is one cache line with up to six ranges,
// each one word that is read and written at once. The cache only says where to start a search, so
// it needs no tags.
//
// Invariants. A node's ranges are in one region, between its lowest word and that of its successor,
// in order, without overlap. If a reader finds a range in a node that it has seen in its region,
// the range was valid at some time since the reader was pinned: a node that leaves its list loses
// its identity, and is reused only when no reader is pinned that may know it (base::epochs). A
// reader that finds no range accepts that only if no writer was in the list meanwhile: the list's
// lock counts writers. A freed range stays mapped to its tombstone until no stale word of its
// region is on media.
//
// Units: words of 8 bytes. Home addresses count from the start of home.
#pragma once

#include <base/assert.h>
#include <base/epochs.h>
#include <base/relaxed_counter.h>
#include <format/log_chunk.h>
#include <published/log_structured/word_cache.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace stele::storage {

// The place of a word: its number in the pool file. For a tombstone: the number of the entry's
// word, with this bit. 0: not mapped.
using log_address = std::uint64_t;
inline constexpr log_address tombstone_bit = log_address{1} << 63;
constexpr bool is_data(log_address p) noexcept {
  return p != 0 && (p & tombstone_bit) == 0;
}
constexpr log_address advanced(log_address p, std::uint64_t words) noexcept {
  return is_data(p) ? p + words : p;
}

// Words that a range counts as live in its chunk: its data, and an entry header for when it is
// moved.
constexpr std::uint32_t live_words_of(log_address p, std::uint32_t words) noexcept {
  return 1 + (is_data(p) ? words : 0);
}

// The live words of each chunk, entry headers included. Thread-safe.
class chunk_usage {
 public:
  chunk_usage(std::uint64_t first_word, std::uint32_t chunk_words, std::uint32_t chunks);

  std::uint32_t chunk_of(log_address p) const noexcept {
    STELE_ASSERT((p & ~tombstone_bit) >= first_word_ &&
                 ((p & ~tombstone_bit) - first_word_) >> shift_ < chunks_);
    return static_cast<std::uint32_t>(((p & ~tombstone_bit) - first_word_) >> shift_);
  }
  std::uint32_t live(std::uint32_t chunk) const noexcept {
    return live_[chunk].load(std::memory_order_acquire);
  }
  std::uint64_t total_live() const noexcept;

  void add_live(log_address p, std::uint32_t words) noexcept {
    live_[chunk_of(p)].fetch_add(words, std::memory_order_acq_rel);
  }
  void remove_live(log_address p, std::uint32_t words) noexcept {
    [[maybe_unused]] const std::uint32_t was =
        live_[chunk_of(p)].fetch_sub(words, std::memory_order_acq_rel);
    STELE_ASSERT(was >= words);  // what is removed has been counted
  }

 private:
  std::uint64_t first_word_;
  unsigned shift_;
  std::uint32_t chunks_;
  lazy_array<std::atomic<std::uint32_t>> live_;
};

class home_map {
  struct node;

 public:
  struct map_options {
    std::uint64_t home_words = 0;
    std::uint64_t log_words = 0;           // size of the file: no more words can ever be mapped
    bool two_layers = true;                // false: one list for all of home
    bool lock_free = true;                 // false: readers take a readers-writer lock of the list
    std::size_t cached_groups = 0;         // of the word cache; 0: none
    const std::uint64_t* media = nullptr;  // where log addresses count from, for the word cache
  };
  struct lookup_result {
    log_address at = 0;
    std::uint32_t run = 1;  // at least so many words from this one on are mapped contiguously
  };
  // A range of home and the log_address of its first word.
  struct mapped_range {
    std::uint64_t home;
    std::uint32_t words;
    log_address at;
  };

  // For each 128 bytes of home a node that the thread has found there, to start a search from.
  // Addresses whose distance is a multiple of the cache's reach share an entry; the last user has
  // it.
  class cache {
   public:
    explicit cache(std::size_t entries);  // rounded up to a power of two; 0: no cache
    // Memory in use: lines of the cache that have been used.
    std::size_t bytes() const noexcept { return used_lines_ * 64; }
    base::relaxed_counter hits, misses;

   private:
    friend class home_map;
    static constexpr std::uint64_t granule = 16;  // words
    std::uint32_t& slot_of(std::uint64_t home) const noexcept {
      return slots_[home / granule & mask_];
    }
    void insert(std::uint64_t home, std::uint32_t n) noexcept;
    lazy_array<std::uint32_t> slots_;  // 0: unused
    std::uint64_t mask_;
    bool enabled_;
    base::relaxed_counter used_lines_;
  };

  // One writer's nodes: free ones, and retired ones that readers may still know.
  class writer {
    friend class home_map;
    struct retired_node {
      std::uint32_t n;
      std::uint64_t epoch;
    };
    std::vector<std::uint32_t> free_;
    std::vector<retired_node> retired_;
    // Number of retired nodes at which to look for reusable ones.
    std::size_t reclaim_threshold_ = 512;
    std::uint32_t next_ = 0, end_ = 0;
  };

  home_map(map_options s, chunk_usage& l, base::epochs& e);

  // The reader must be pinned.
  lookup_result find(std::uint64_t home) const noexcept;
  lookup_result find(std::uint64_t home, cache& c) const noexcept;

  // The word cache, for words that loads find often. Whether it has the word:
  bool cached_word(std::uint64_t home, std::uint64_t& value) const noexcept {
    return words_.find(home, value);
  }
  bool caches_words() const noexcept { return words_.enabled(); }
  std::size_t word_cache_bytes() const noexcept { return words_.bytes(); }
  // Adds a word. The reader must be pinned.
  void cache_word(std::uint64_t home, const cache& c) noexcept;

  // Reserves nodes for `changes` calls of map(). False: the map has reached its largest size.
  bool reserve(writer& w, std::size_t changes);
  // Maps the range to `at`. It lies in one region. The caller has already counted its live words,
  // as one entry.
  // `c` may know where the range is.
  void map(writer& w, mapped_range p, const cache* c = nullptr) noexcept;
  // Reserves nodes for so many pieces in calls of move().
  bool reserve_moves(writer& w, std::size_t pieces);
  // Moves pieces that are adjacent in one region (a quasi-transaction of cleaning, section 4.4).
  // Words that are still at the place that their piece names are mapped to `to` and the words after
  // it; as one range if all are. Returns how many words were moved. Counts the live words of `to`
  // itself.
  std::uint32_t move(writer& w, std::span<const mapped_range> from, log_address to,
                     const cache& c) noexcept;
  // The whole range that contains the word; without words if there is none.
  mapped_range range_at(std::uint64_t home, const cache& c) const noexcept;
  // Appends to `into` the parts of the range that are mapped to exactly this place, in order.
  void still_mapped(mapped_range p, std::vector<mapped_range>& into, cache& c) const;
  // Prefetch for a later find(): first the word's cache entry, a little later the nodes.
  void prefetch_cache_entry(std::uint64_t home, const cache& c) const noexcept {
    if (c.enabled_) __builtin_prefetch(&c.slot_of(home));
  }
  void prefetch_node(std::uint64_t home, const cache& c) const noexcept {
    if (!c.enabled_) return;
    __builtin_prefetch(&nodes_[c.slot_of(home)]);
    __builtin_prefetch(&heads_[home / format::region_words]);
  }
  void prefetch_next_node(std::uint64_t home, const cache& c) const noexcept {
    if (c.enabled_)
      __builtin_prefetch(&nodes_[nodes_[c.slot_of(home)].next[0].load(std::memory_order_relaxed)]);
  }
  bool any_data(std::uint64_t home, std::uint64_t words) const noexcept;
  // Visits every range in order of home. No writer may run.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint64_t p = 0; p < (two_layers_ ? regions_count_ : 1); ++p)
      for (std::uint32_t n = link(p, 0, 0).load(std::memory_order_relaxed); n != 0;
           n = link(p, n, 0).load(std::memory_order_relaxed))
        visit_node(nodes_[n], visit);
  }

  // How many words of a region are on media but not in use.
  std::uint32_t stale(std::uint64_t home) const noexcept {
    STELE_ASSERT(home / format::region_words < regions_count_);
    return heads_[home / format::region_words].stale.load(std::memory_order_acquire);
  }
  void add_stale(std::uint64_t home, std::uint32_t words) noexcept;
  // When no stale word is left, the region's tombstones hide nothing: they are removed.
  void remove_stale(writer& w, std::uint64_t home, std::uint32_t words) noexcept;

  // Memory of all nodes and lists.
  std::uint64_t bytes() const noexcept;

 private:
  using word = std::atomic<std::uint64_t>;
  using word32 = std::atomic<std::uint32_t>;
  // One node in four reaches the next level: enough levels for 4^12 nodes in one list. A node of
  // twelve levels still has room for a range.
  static constexpr unsigned max_levels = 12, levels_of_region = 4, max_hops = 4;
  static constexpr std::uint32_t max_ranges = 6;

  struct alignas(64) node {
    word32 next[2];  // in the list, and on the level above
    word id;         // lowest word (56 bits), height
    // Links of the levels above, two to a word; zeros; ranges in order. The last word is always a
    // range.
    word rest[max_ranges];
  };
  struct region_head {
    word32 next[levels_of_region];
    // Top bit: writer; other bits: readers if they lock, else the count of past writers.
    word32 lock;
    word32 stale;  // changed under the lock
    // Bit i: the word cache may have words of the i-th 64th of the region. Changed under the lock.
    word cached;
  };

  // An encoded range: start in its region (9 bits), words (10), tombstone (1), place (43).
  static constexpr unsigned log_address_bits = 43, start_bits = 54;
  static constexpr std::uint64_t range_of(std::uint64_t home, std::uint32_t words,
                                          log_address p) noexcept {
    STELE_ASSERT(words != 0 && home % format::region_words + words <= format::region_words);
    STELE_ASSERT(p != 0 && (p & ~tombstone_bit) >> log_address_bits == 0);
    return (home % format::region_words) << start_bits | std::uint64_t{words} << 44 |
           std::uint64_t{!is_data(p)} << log_address_bits |
           (p & ((std::uint64_t{1} << log_address_bits) - 1));
  }
  static constexpr std::uint32_t start_of(std::uint64_t r) noexcept {
    return static_cast<std::uint32_t>(r >> start_bits);
  }
  static constexpr std::uint32_t length_of(std::uint64_t r) noexcept {
    return static_cast<std::uint32_t>(r >> 44) & 0x3FF;
  }
  static constexpr std::uint32_t end_of(std::uint64_t r) noexcept {
    return start_of(r) + length_of(r);
  }
  static constexpr log_address log_address_of(std::uint64_t r) noexcept {
    return (r & ((std::uint64_t{1} << log_address_bits) - 1)) | (r >> log_address_bits & 1) << 63;
  }
  static constexpr lookup_result found_in(std::uint64_t r, std::uint64_t home) noexcept {
    const auto into = static_cast<std::uint32_t>(home % format::region_words) - start_of(r);
    STELE_ASSERT(into < length_of(r));
    return {advanced(log_address_of(r), into), length_of(r) - into};
  }

  static constexpr std::uint64_t id_of(std::uint64_t low, unsigned height) noexcept {
    return low << 8 | height;
  }
  static constexpr std::uint64_t no_id = ~std::uint64_t{0};
  static constexpr std::uint64_t low_of(std::uint64_t id) noexcept { return id >> 8; }
  static constexpr unsigned height_of(std::uint64_t id) noexcept {
    return static_cast<unsigned>(id & 0xFF);
  }
  // Whether a search for this word may look into a node with this id.
  static constexpr bool may_contain(std::uint64_t id, std::uint64_t home) noexcept {
    return low_of(id) <= home && (low_of(id) ^ home) < format::region_words;
  }
  static constexpr unsigned first_range(unsigned height) noexcept {
    return height <= 2 ? 0 : (height - 1) / 2;
  }
  std::size_t nodes_of_split() const noexcept { return two_layers_ ? 2 : 4; }
  unsigned height_for(std::uint64_t low) const noexcept;

  static unsigned last_range(const node& n, std::uint64_t id, std::uint64_t home) noexcept;
  static std::uint64_t find_range(const node& n, std::uint64_t id, std::uint64_t home,
                                  bool& beyond) noexcept;
  template <class Visit>
  static void visit_node(const node& n, Visit&& visit) {
    const std::uint64_t id = n.id.load(std::memory_order_relaxed),
                        region = low_of(id) / format::region_words * format::region_words;
    for (unsigned i = first_range(height_of(id)); i < max_ranges; ++i)
      if (const std::uint64_t r = n.rest[i].load(std::memory_order_relaxed); r != 0)
        visit(mapped_range{region + start_of(r), length_of(r), log_address_of(r)});
  }

  std::uint64_t id(std::uint32_t n) const noexcept {
    return nodes_[n].id.load(std::memory_order_acquire);
  }
  // The link of a node, or of the list's head (node 0).
  word32& link(std::uint64_t partition, std::uint32_t n, unsigned level) const noexcept {
    STELE_ASSERT(level < levels_ && n < node_count_);
    if (n == 0) return two_layers_ ? heads_[partition].next[level] : top_[level];
    return level < 2 ? nodes_[n].next[level] : reinterpret_cast<word32*>(nodes_[n].rest)[level - 2];
  }
  std::uint64_t partition_of(std::uint64_t home) const noexcept {
    return two_layers_ ? home / format::region_words : 0;
  }

  // On each level, the last node that begins below a word.
  using predecessors = std::array<std::uint32_t, max_levels>;
  predecessors predecessors_of(std::uint64_t partition, std::uint64_t low) const noexcept;
  std::uint32_t last_at_or_before(std::uint64_t home) const noexcept;
  std::uint32_t from_cache(std::uint64_t home, const cache& c) const noexcept;
  std::uint32_t node_for(std::uint64_t home, const cache* c) const noexcept;
  lookup_result find_from_head(std::uint64_t home, std::uint32_t& n) const noexcept;
  lookup_result find_and_cache(std::uint64_t home, cache& c) const noexcept;
  lookup_result lookup_in_node(std::uint32_t n, std::uint64_t partition,
                               std::uint64_t home) const noexcept;

  // A node's ranges during a change.
  struct ranges {
    std::array<std::uint64_t, max_ranges + 2> of;
    std::uint32_t count = 0;
    void add(std::uint64_t r) noexcept {
      STELE_ASSERT(count < of.size() && r != 0);
      of[count++] = r;
    }
  };
  static ranges ranges_of(const node& n) noexcept;
  static constexpr std::uint32_t room_of(unsigned height) noexcept {
    return max_ranges - first_range(height);
  }
  static void fill(node& n, std::span<const std::uint64_t> with) noexcept;
  bool reserve_nodes(writer& w, std::uint64_t wanted);
  bool all_still_mapped(std::uint64_t partition, std::span<const mapped_range> pieces,
                        const cache& c) const noexcept;
  std::uint32_t move_one(writer& w, std::uint64_t partition, mapped_range from, log_address to,
                         const cache& c) noexcept;
  void map_locked(writer& w, std::uint64_t partition, std::uint32_t n, mapped_range p) noexcept;
  void map_slow_path(writer& w, std::uint64_t partition, std::uint32_t n, mapped_range p) noexcept;
  void update_cached_words(mapped_range p) noexcept;
  static constexpr std::uint64_t cached_words_of_bit = format::region_words / 64;
  static constexpr std::uint64_t bit_of(std::uint64_t home) noexcept {
    return std::uint64_t{1} << home % format::region_words / cached_words_of_bit;
  }
  void remove_successor(writer& w, std::uint64_t partition, std::uint32_t n) noexcept;
  void rewrite(writer& w, std::uint64_t partition, std::uint32_t n, mapped_range p) noexcept;
  bool shift_to_successor(std::uint64_t partition, std::uint32_t n,
                          std::span<const std::uint64_t> all) noexcept;
  void merge_successor(writer& w, std::uint64_t partition, std::uint32_t n) noexcept;
  std::uint32_t insert_after(writer& w, std::uint64_t partition, std::uint32_t n,
                             std::uint64_t low) noexcept;
  void remove(writer& w, std::uint64_t partition, std::uint32_t n) noexcept;
  std::uint64_t next_low(std::uint64_t partition, std::uint32_t n,
                         std::uint64_t home) const noexcept;
  void account_overwrite(std::uint64_t home, std::uint32_t words, log_address was,
                         unsigned left) noexcept;
  void drop_tombstones(writer& w, std::uint64_t partition, std::uint64_t region) noexcept;
  std::uint32_t take_node(writer& w) noexcept;
  void reclaim_retired_nodes(writer& w);
  void balance_free_nodes(writer& w, std::uint64_t wanted);

  word32& lock_of(std::uint64_t partition) const noexcept { return heads_[partition].lock; }
  void lock(std::uint64_t partition) const noexcept;
  // Only for assertions.
  bool is_locked(std::uint64_t partition) const noexcept;
  static bool is_in_order(std::span<const std::uint64_t> ranges) noexcept;
  void unlock(std::uint64_t partition) const noexcept;
  void lock_shared(std::uint64_t partition) const noexcept;
  void unlock_shared(std::uint64_t partition) const noexcept {
    lock_of(partition).fetch_sub(1, std::memory_order_release);
  }

  bool two_layers_, lock_free_;
  unsigned levels_;
  std::uint64_t regions_count_, node_count_;
  const std::uint64_t* media_;
  chunk_usage& usage_;
  base::epochs& epochs_;
  word_cache words_;
  lazy_array<node> nodes_;
  lazy_array<region_head> heads_;
  mutable std::array<word32, max_levels> top_{};  // for the one list of all of home
  std::mutex shared_mutex_;
  std::vector<std::uint32_t> shared_free_nodes_;  // free nodes that belong to no writer
  std::atomic<std::uint64_t> next_node_{1};
  std::atomic<std::uint64_t> used_heads_{0};
};

// Index in `rest` of the node's last range that starts at or before the word. If there is none: an
// index of no range or of a later one. Counts instead of searching: branches would be
// unpredictable.
inline unsigned home_map::last_range(const node& n, std::uint64_t id, std::uint64_t home) noexcept {
  const std::uint64_t above = (home % format::region_words + 1) << start_bits;
  unsigned count = 0;
  if (height_of(id) <= 2) [[likely]] {
    for (unsigned i = 1; i < max_ranges; ++i)
      count += n.rest[i].load(std::memory_order_relaxed) < above ? 1 : 0;
    return count;
  }
  for (unsigned i = first_range(height_of(id)); i < max_ranges; ++i)
    count += n.rest[i].load(std::memory_order_relaxed) < above ? 1 : 0;
  return count == 0 ? max_ranges : first_range(height_of(id)) + count - 1;
}

// The node's range that contains the word, or 0.
inline std::uint64_t home_map::find_range(const node& n, std::uint64_t id, std::uint64_t home,
                                          bool& beyond) noexcept {
  const unsigned i = last_range(n, id, home);
  beyond = i == max_ranges - 1;
  if (i == max_ranges) return 0;
  const std::uint64_t r = n.rest[i].load(std::memory_order_acquire);
  return static_cast<std::uint32_t>(home % format::region_words) - start_of(r) < length_of(r) ? r
                                                                                              : 0;
}

inline home_map::lookup_result home_map::find(std::uint64_t home, cache& c) const noexcept {
  if (c.enabled_) [[likely]] {
    std::uint32_t n = c.slot_of(home);
    for (unsigned hops = 0; hops <= max_hops; ++hops) {
      const node& it = nodes_[n];  // node 0 has no id that may contain a word
      const std::uint64_t id = it.id.load(std::memory_order_acquire);
      bool beyond;
      if (!may_contain(id, home)) break;
      if (hops != 0 && low_of(id) <= home / cache::granule * cache::granule)
        c.slot_of(home) = n;  // the list has grown: start here next time
      if (const std::uint64_t r = find_range(it, id, home, beyond); r != 0) [[likely]] {
        ++c.hits;
        return found_in(r, home);
      }
      if (!beyond) break;
      n = it.next[0].load(std::memory_order_acquire);
    }
  }
  return find_and_cache(home, c);
}

}  // namespace stele::storage
