// The chunks of a log-structured pool, and where home is in them: what a pool_file and its heap are
// for other pools.
//
// Volatile; made by recovery, which reads it from the chunks (or from the mapping that a clean
// close left). Invariants: a chunk is in one state at a time; `live` of a chunk is the sum of the
// words that the map has there, so a closed chunk with none holds nothing that anybody needs, once
// its transactions are no more the newest of their lanes (log_structured.h). A chunk that has been
// emptied is taken again only when no reader is pinned that may still read it.
//
// Source: Hu, Ren, Badam, Shu and Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017),
// sections 3.3 and 4.2.
#pragma once

#include <pool/home_map.h>
#include <pool/pool_file.h>
#include <stele/log_structured_options.h>

#include <algorithm>
#include <mutex>
#include <optional>

namespace stele::storage {

enum class chunk_state : std::uint8_t {
  free,
  open,      // a lane appends to it
  closed,    // full, or left behind: may be cleaned
  cleaning,  // a cleaner has it
  retired,   // nothing in it is needed, but a reader may be on it
};

class log_space {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct chunk {
    std::atomic<chunk_state> use{chunk_state::free};
    format::log_type type = format::log_type::none;
    std::uint32_t lane = 0;
    std::uint32_t previous = none, next = none;  // in its log
    std::atomic<std::uint64_t> newest{0};        // version, of its blocks
    std::uint64_t generation = 0;                // as its header on media has it
    std::uint64_t epoch = 0;  // emptied: may be taken when all readers are past it
  };

  log_space(const pool_file& file, const log_structured_options& options, unsigned lanes);

  const pool_file& file() const noexcept { return file_; }
  std::uint32_t chunk_count() const noexcept { return static_cast<std::uint32_t>(chunks_.size()); }
  std::uint32_t chunk_words() const noexcept { return chunk_words_; }
  unsigned lanes() const noexcept { return lanes_; }  // of transactions and cleaners
  chunk& operator[](std::uint32_t c) noexcept { return chunks_[c]; }
  const chunk& operator[](std::uint32_t c) const noexcept { return chunks_[c]; }
  std::uint64_t offset_of(std::uint32_t c) const noexcept {
    return file_.header().log_offset + std::uint64_t{c} * chunk_words_ * 8;
  }
  log_address log_address_of(std::uint32_t c, std::uint32_t word) const noexcept {
    return offset_of(c) / 8 + word;
  }
  const std::uint64_t* words_of(std::uint32_t c) const noexcept {
    return reinterpret_cast<const std::uint64_t*>(file_.base() + offset_of(c));
  }

  // Home addresses of the map from pool offsets, and back.
  std::uint64_t home_of(std::uint64_t offset) const noexcept {
    return (offset - file_.header().home_offset) / 8;
  }
  std::uint64_t offset_of_home(std::uint64_t home) const noexcept {
    return file_.header().home_offset + home * 8;
  }

  // The word that is kept for one of home; 0 where nothing is. The reader is pinned.
  std::uint64_t word(log_address p) const noexcept {
    return is_data(p) ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(file_.base()) + p,
                                        __ATOMIC_ACQUIRE)
                      : 0;
  }
  std::uint64_t word_at(std::uint64_t offset) const noexcept {
    return word(map.find(home_of(offset)).at);
  }

  // Takes a free chunk if more than `reserve` are left.
  std::optional<std::uint32_t> allocate_chunk(std::uint32_t reserve);
  // How many are free, those included that wait for readers.
  std::uint32_t free_chunks() const noexcept { return free_count_.load(std::memory_order_relaxed); }
  // Of those, how many can be taken now.
  std::uint32_t allocatable_chunks() noexcept {
    const std::lock_guard hold(mutex_);
    return static_cast<std::uint32_t>(free_.size());
  }
  // After recovery has said which chunks are in use: those are not free.
  void remove_used();
  // Back from who took it and did not use it.
  void release_chunk(std::uint32_t c);
  // From who emptied it; its header on media says free.
  void retire_chunk(std::uint32_t c);
  // Emptied chunks that no reader is on become free. True: some did, or none wait.
  bool reclaim_retired();

  // Of the node cache of each thread that looks into the map: one for 128 bytes of the file, four
  // million at most.
  std::size_t cache_entries() const noexcept {
    if (!options.node_cache) return 0;
    return options.cache_entries != 0
               ? options.cache_entries
               : std::clamp<std::size_t>(file_.header().size / 128, 64, std::size_t{1} << 22);
  }

  // Of all words that chunks can hold, how much is taken: chunks that are not free.
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
  std::mutex links_mutex;  // of previous and next of chunks
  std::vector<std::uint32_t>
      damaged;  // chunks in which recovery found a block that is not what it was

 private:
  std::vector<chunk> chunks_;
  std::mutex mutex_;
  std::vector<std::uint32_t> free_, retired_;
  std::uint32_t populated_chunks_ = 0;  // chunks below have their pages at hand
  std::atomic<std::uint32_t> free_count_{0};
};

}  // namespace stele::storage
