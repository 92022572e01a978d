// The chunks of a log-structured pool and the home map: what pool_file and heap are for other
// pools.
//
// Volatile. Recovery builds it from the chunks, or from the map that a clean close left.
// Invariants: a chunk is in one state at a time. `live` of a chunk is the number of words that the
// map has there. A closed chunk with none is not needed by anybody, once its transactions are no
// longer the newest of their lanes (log_structured.h). An emptied chunk is allocated again only
// when no reader is pinned that may still read it. Of the free chunks the one with the fewest
// writes is allocated next (wear-levelling), of equal ones the first in the file.
//
// Source: Hu, Ren, Badam, Shu and Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017),
// sections 3.3 and 4.2.
#pragma once

#include <base/assert.h>
#include <pool/pool_file.h>
#include <published/log_structured/home_map.h>
#include <stele/log_structured_options.h>

#include <algorithm>
#include <mutex>
#include <optional>

namespace stele::storage {

enum class chunk_state : std::uint8_t {
  free,
  open,      // a lane appends to it
  closed,    // full or abandoned: may be cleaned
  cleaning,  // a cleaner works on it
  retired,   // nothing in it is needed, but a reader may still read it
};

class log_space {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct chunk {
    std::atomic<chunk_state> use{chunk_state::free};
    format::log_type type = format::log_type::none;
    std::uint32_t lane = 0;
    std::uint32_t previous = none, next = none;  // in its log
    std::atomic<std::uint64_t> newest{0};        // version of its newest block
    // That of its header on media: how often the chunk has been written.
    std::uint64_t generation = 0;
    std::uint64_t epoch = 0;  // when it was emptied: may be allocated when all readers are past it
  };

  log_space(const pool_file& file, const log_structured_options& options, unsigned lanes);

  const pool_file& file() const noexcept { return file_; }
  std::uint32_t chunk_count() const noexcept { return static_cast<std::uint32_t>(chunks_.size()); }
  std::uint32_t chunk_words() const noexcept { return chunk_words_; }
  unsigned lanes() const noexcept { return lanes_; }  // including the lanes of cleaners
  chunk& operator[](std::uint32_t c) noexcept {
    STELE_ASSERT(c < chunks_.size());
    return chunks_[c];
  }
  const chunk& operator[](std::uint32_t c) const noexcept { return chunks_[c]; }
  std::uint64_t offset_of(std::uint32_t c) const noexcept {
    STELE_ASSERT(c < chunks_.size());
    return file_.header().log_offset + std::uint64_t{c} * chunk_words_ * 8;
  }
  log_address log_address_of(std::uint32_t c, std::uint32_t word) const noexcept {
    STELE_ASSERT(word >= format::chunk_header_words && word < chunk_words_);
    return offset_of(c) / 8 + word;
  }
  const std::uint64_t* words_of(std::uint32_t c) const noexcept {
    return reinterpret_cast<const std::uint64_t*>(file_.base() + offset_of(c));
  }

  // Converts pool offsets to home addresses of the map, and back.
  std::uint64_t home_of(std::uint64_t offset) const noexcept {
    return (offset - file_.header().home_offset) / 8;
  }
  std::uint64_t offset_of_home(std::uint64_t home) const noexcept {
    return file_.header().home_offset + home * 8;
  }

  // The word at this place; 0 if it holds no data. The reader is pinned.
  std::uint64_t word(log_address p) const noexcept {
    return is_data(p) ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(file_.base()) + p,
                                        __ATOMIC_ACQUIRE)
                      : 0;
  }
  std::uint64_t word_at(std::uint64_t offset) const noexcept {
    return word(map.find(home_of(offset)).at);
  }

  // Allocates a free chunk if more than `reserve` are free.
  std::optional<std::uint32_t> allocate_chunk(std::uint32_t reserve);
  // Number of free chunks, including those that wait for readers.
  std::uint32_t free_chunks() const noexcept { return free_count_.load(std::memory_order_relaxed); }
  // Number of chunks that can be allocated now.
  std::uint32_t allocatable_chunks() noexcept {
    const std::lock_guard hold(mutex_);
    return static_cast<std::uint32_t>(free_.size());
  }
  // Called after recovery has found the chunks in use: removes them from the free list.
  void remove_used();
  // Returns a chunk that was allocated but not used.
  void release_chunk(std::uint32_t c);
  // Retires a chunk that a cleaner has emptied; its header on media says free.
  void retire_chunk(std::uint32_t c);
  // Frees retired chunks that no reader can read. True: some became free, or none is retired.
  bool reclaim_retired();

  // Entries of the node cache of each thread that uses the map: one for each 128 bytes of the file,
  // at most four million.
  std::size_t cache_entries() const noexcept {
    if (!options.node_cache) return 0;
    return options.cache_entries != 0
               ? options.cache_entries
               : std::clamp<std::size_t>(file_.header().size / 128, 64, std::size_t{1} << 22);
  }

  // Groups of the word cache of all threads.
  std::size_t cached_groups() const noexcept {
    if (!options.word_cache) return 0;
    return std::clamp<std::size_t>(file_.header().size / 8192, 64, std::size_t{1} << 18);
  }

  // The fraction of chunks that are not free.
  double utilisation() const noexcept {
    return 1 - static_cast<double>(free_chunks()) / static_cast<double>(chunk_count());
  }

 private:
  const pool_file& file_;
  std::uint32_t chunk_words_;
  const unsigned lanes_;

 public:
  const log_structured_options options;
  base::epochs epochs;
  storage::chunk_usage usage;
  home_map map;
  std::mutex links_mutex;  // protects previous and next of chunks
  // Chunks in which recovery found a damaged block.
  std::vector<std::uint32_t> damaged;

 private:
  // Whether the free chunks are those that the lists have. Only for assertions.
  bool lists_are_sound() const noexcept;
  void add_free(std::uint32_t c);
  std::uint32_t take_free();
  void count_free() noexcept;

  std::vector<chunk> chunks_;
  std::mutex mutex_;
  std::vector<std::uint32_t> free_, retired_;  // free_: a heap if wear is levelled, else a stack
  std::uint32_t populated_chunks_ = 0;         // chunks below it have their pages populated
  std::atomic<std::uint32_t> free_count_{0};
};

}  // namespace stele::storage
