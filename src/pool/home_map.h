// Where each word of a log-structured pool's home is kept: home address to place in the log, in volatile memory.
//
// After Hu, Ren, Badam, Shu and Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017), sections 3.2 and 4.3: home is divided
// into partitions of 4 KiB, each with a skip list (Pugh, 1990) of nodes {home address, length, place}; one writer at a time in a
// list, readers without locks; a cache of nodes for each thread.
//
// Invariants. A node's start never changes while it lives, so its place always is that of its start; a reader that sees one range
// before and after it reads the place has a pair that was true. A word that is mapped stays mapped to every reader through any
// change of the ranges around it: what comes instead is linked in before what was there shrinks or goes. A node that has left its list
// has length 0 and is used again only when no reader is pinned that may know it (base::epochs), so readers must be pinned. A freed
// range is mapped to its tombstone until no older version of it is left on media.
//
// Units: words of 8 bytes; home addresses count from the start of home. Ours, not the paper's: nodes are found by 32-bit numbers
// in one reserved array, a tombstone is a node.
#pragma once

#include <base/epochs.h>
#include <format/log_chunk.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace stele::storage {

// The place of a word: its number in the pool file; of a tombstone: that of its entry, with this bit. 0: nowhere.
using place = std::uint64_t;
inline constexpr place tombstone_place = place{1} << 63;
constexpr bool is_data(place p) noexcept { return p != 0 && (p & tombstone_place) == 0; }
constexpr place advanced(place p, std::uint64_t words) noexcept { return is_data(p) ? p + words : p; }

// What the node of a range weighs in its chunk: its data, and a head if it is moved.
constexpr std::uint32_t weight_of(place p, std::uint32_t words) noexcept { return 1 + (is_data(p) ? words : 0); }

// Memory that takes room only where it is touched; zeroed, but for small arrays that are not wanted so.
template <class T>
class lazy_array {
 public:
  explicit lazy_array(std::size_t count, bool zeroed = true);
  lazy_array(lazy_array&& o) noexcept : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  lazy_array& operator=(lazy_array&& o) noexcept {
    std::swap(data_, o.data_), std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~lazy_array();
  T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T* data() const noexcept { return data_; }

 private:
  T* data_;
  std::size_t bytes_;
};

// How much of each chunk is in use, heads of entries included, and how much of each region lies on media without being in use. Any
// thread may change it.
class ledger {
 public:
  ledger(std::uint64_t first_word, std::uint32_t chunk_words, std::uint32_t chunks, std::uint64_t home_words);

  std::uint32_t chunk_of(place p) const noexcept { return static_cast<std::uint32_t>(((p & ~tombstone_place) - first_word_) >> shift_); }
  std::uint32_t live(std::uint32_t chunk) const noexcept { return live_[chunk].load(std::memory_order_acquire); }
  std::uint64_t live_in_all() const noexcept { return total_.load(std::memory_order_relaxed); }
  std::uint32_t stale(std::uint64_t home) const noexcept { return stale_[home / format::region_words].load(std::memory_order_acquire); }

  void used(place p, std::uint32_t words) noexcept {
    live_[chunk_of(p)].fetch_add(words, std::memory_order_acq_rel);
    total_.fetch_add(words, std::memory_order_relaxed);
  }
  void unused(place p, std::uint32_t words) noexcept {
    live_[chunk_of(p)].fetch_sub(words, std::memory_order_acq_rel);
    total_.fetch_sub(words, std::memory_order_relaxed);
  }
  void became_stale(std::uint64_t home, std::uint32_t words) noexcept { stale_[home / format::region_words].fetch_add(words, std::memory_order_acq_rel); }
  void left_media(std::uint64_t home, std::uint32_t words) noexcept { stale_[home / format::region_words].fetch_sub(words, std::memory_order_acq_rel); }

 private:
  std::uint64_t first_word_;
  unsigned shift_;
  lazy_array<std::atomic<std::uint32_t>> live_, stale_;
  alignas(64) std::atomic<std::uint64_t> total_{0};
};

class home_map {
 public:
  struct shape {
    std::uint64_t home_words = 0;
    std::uint64_t log_words = 0;  // of the file: no more words can ever be mapped
    bool two_layers = true;       // else one list for all of home
    bool lock_free = true;        // else readers take a readers-writer lock of the list
  };
  struct found {
    place at = 0;
    std::uint32_t run = 1;  // words from the one asked for on that go on in the same way, at least
  };
  // A range of home and the place of its first word.
  struct piece {
    std::uint64_t home;
    std::uint32_t words;
    place at;
  };

  // Recently used nodes of one thread: set-associative, the words of a line meet in one set, so that a node found for one word may
  // answer for its neighbours; replacement first in, first out.
  class cache {
   public:
    explicit cache(std::size_t entries);  // rounded up to a power of two; 0: no cache
    // Room taken, as far as it has been touched.
    std::size_t bytes() const noexcept { return touched_ * sizeof(set); }
    std::uint64_t hits = 0, misses = 0;

   private:
    friend class home_map;
    static constexpr unsigned ways = 8;
    struct alignas(64) set {
      std::uint32_t word[ways], node[ways];
    };
    set& set_of(std::uint64_t home) const noexcept { return sets_[(home / 8) * 0x9E3779B97F4A7C15u >> shift_]; }
    void keep(std::uint64_t home, std::uint32_t node) noexcept;
    lazy_array<set> sets_;
    unsigned shift_ = 63;
    bool on_;
    std::uint32_t last_ = 0;  // the node that answered last
    std::uint32_t turn_ = 0;
    std::size_t touched_ = 0;
  };

  // What one writer keeps: nodes to use, nodes that readers may still know.
  class writer {
    friend class home_map;
    static constexpr unsigned sizes = 16;
    struct retired_node {
      std::uint32_t node;
      std::uint64_t epoch;
    };
    std::array<std::vector<std::uint32_t>, sizes> free_;
    std::vector<retired_node> retired_;
    std::uint32_t next_ = 0, end_ = 0;
  };

  home_map(shape s, ledger& l, base::epochs& e);

  // For readers that are pinned.
  found find(std::uint64_t home) const noexcept;
  found find(std::uint64_t home, cache& c) const noexcept;

  // Room for `changes` calls of map(); false: the map is as large as it can get.
  bool reserve(writer& w, std::size_t changes);
  // The range is at `at` from now on. It lies in one region.
  void map(writer& w, piece p, const cache* c = nullptr) noexcept;  // c: may know the node that the range has now
  // Those words of the range that are still at `from` are at `to` from now on (a quasi-transaction of cleaning, section 4.4).
  // Returns how many were. The account of `to` is kept here, that of map() by who calls it, before.
  std::uint32_t move(writer& w, piece from, place to) noexcept;
  // What of the range is mapped to exactly this place, in order; appended.
  void still_there(piece p, std::vector<piece>& into) const;
  // Forgets a tombstone's range where it is still mapped to it.
  void forget(writer& w, piece p) noexcept;
  bool any_data(std::uint64_t home, std::uint64_t words) const noexcept;
  // Every node, in order of home. Nobody may write.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint64_t p = 0; p < partitions_; ++p)
      for (std::uint32_t n = link(p, 0, 0).load(std::memory_order_relaxed); n != 0; n = link(p, n, 0).load(std::memory_order_relaxed)) visit(piece{start_of(range(n)), length_of(range(n)), at(n).load(std::memory_order_relaxed)});
  }
  // Of all nodes and lists, in memory.
  std::uint64_t bytes() const noexcept;
  std::uint64_t nodes() const noexcept { return node_count_.load(std::memory_order_relaxed); }

 private:
  using word = std::atomic<std::uint64_t>;
  using half = std::atomic<std::uint32_t>;
  static constexpr unsigned most_levels = 16;

  // A node: range word, place, links (two a word). Range: start (44 bits), words (16), height (4).
  static constexpr std::uint64_t range_of(std::uint64_t start, std::uint32_t words, unsigned height) noexcept { return start << 20 | std::uint64_t{words} << 4 | (height - 1); }
  static constexpr std::uint64_t start_of(std::uint64_t r) noexcept { return r >> 20; }
  static constexpr std::uint32_t length_of(std::uint64_t r) noexcept { return static_cast<std::uint32_t>(r >> 4 & 0xFFFF); }
  static constexpr unsigned height_of(std::uint64_t r) noexcept { return static_cast<unsigned>(r & 15) + 1; }
  static constexpr std::uint32_t words_of_node(unsigned height) noexcept { return 2 + (height + 1) / 2; }
  unsigned height_for(std::uint64_t start) const noexcept;

  word& range_word(std::uint32_t n) const noexcept { return nodes_[n]; }
  std::uint64_t range(std::uint32_t n) const noexcept { return nodes_[n].load(std::memory_order_acquire); }
  word& at(std::uint32_t n) const noexcept { return nodes_[n + 1]; }
  // The link of a node, or of the list's head (node 0).
  half& link(std::uint64_t partition, std::uint32_t n, unsigned level) const noexcept {
    return n == 0 ? heads_[partition * levels_ + level] : reinterpret_cast<half*>(&nodes_[n + 2])[level];
  }
  std::uint64_t partition_of(std::uint64_t home) const noexcept { return two_layers_ ? home / format::region_words : 0; }

  struct path {
    std::uint64_t partition;
    std::array<std::uint32_t, most_levels> before;  // the last node that starts below, on each level
  };
  path path_to(std::uint64_t home) const noexcept;
  std::uint32_t last_at_or_before(std::uint64_t home, std::uint32_t& next) const noexcept;
  found find_from_head(std::uint64_t home, std::uint32_t& node) const noexcept;
  found find_and_keep(std::uint64_t home, cache& c) const noexcept;
  bool ask(std::uint32_t n, std::uint64_t home, found& f) const noexcept;
  bool map_exactly(piece p, const cache& c) noexcept;
  void insert(writer& w, piece p) noexcept;
  void remove(writer& w, std::uint64_t partition, std::uint32_t n) noexcept;
  void displaced(std::uint64_t home, std::uint32_t words, place was, unsigned left) noexcept;
  void map_in_list(writer& w, std::uint64_t partition, piece p) noexcept;
  std::uint32_t take_node(writer& w, unsigned height) noexcept;
  void use_again(writer& w);

  void lock(std::uint64_t partition) const noexcept;
  void unlock(std::uint64_t partition) const noexcept { locks_[partition].store(0, std::memory_order_release); }
  void lock_shared(std::uint64_t partition) const noexcept;
  void unlock_shared(std::uint64_t partition) const noexcept { locks_[partition].fetch_sub(1, std::memory_order_release); }

  bool two_layers_, lock_free_;
  unsigned levels_;
  std::uint64_t partitions_, node_words_;
  ledger& ledger_;
  base::epochs& epochs_;
  lazy_array<word> nodes_;
  lazy_array<half> heads_, locks_;
  std::atomic<std::uint64_t> next_node_{8};  // of node words
  std::atomic<std::uint64_t> node_count_{0};
};

// What node n says of a word; false: it does not cover it (any more).
inline bool home_map::ask(std::uint32_t n, std::uint64_t home, found& f) const noexcept {
  const std::uint64_t r = range(n), into = home - start_of(r);
  if (into >= length_of(r)) return false;
  const place p = at(n).load(std::memory_order_acquire);
  if (range_word(n).load(std::memory_order_relaxed) != r) return false;
  f = {advanced(p, into), static_cast<std::uint32_t>(length_of(r) - into)};
  return true;
}

// The node that answered last, one that was found for this word, one that was found for its line.
inline home_map::found home_map::find(std::uint64_t home, cache& c) const noexcept {
  found f;
  if (c.on_) [[likely]] {
    if (c.last_ != 0 && ask(c.last_, home, f)) {
      ++c.hits;
      return f;
    }
    const auto tag = static_cast<std::uint32_t>(home);
    const cache::set& s = c.set_of(home);
    unsigned same_word = 0, same_line = 0;  // without branches: where in its set a word is cannot be predicted
    for (unsigned way = 0; way < cache::ways; ++way) same_word |= unsigned{s.word[way] == tag} << way;
    if (same_word == 0)
      for (unsigned way = 0; way < cache::ways; ++way) same_line |= unsigned{(s.word[way] ^ tag) < 8} << way;
    for (unsigned left = same_word | same_line; left != 0; left &= left - 1) {
      const std::uint32_t n = s.node[std::countr_zero(left)];  // 0, the head, covers nothing
      if (!ask(n, home, f)) continue;
      ++c.hits;
      c.last_ = n;
      return f;
    }
  }
  return find_and_keep(home, c);
}

}  // namespace stele::storage
