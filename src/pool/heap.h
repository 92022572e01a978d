// The heap: which bytes of home belong to which object.
//
// Allocation state changes only through the running transaction (heap::writer), so it commits and
// rolls back with it. The volatile lists of free blocks and the bitmap of free chunks are
// reservations: a block or chunk leaves them when a transaction takes it. It returns when a
// transaction that freed it commits, or one that took it rolls back. So a state on media has one
// writer at a time and needs no lock of its own. Slabs of an earlier session are read when first
// needed, so opening costs one pass over the chunk table, not over the pool.
//
// After a crash a block is used if and only if the transaction that allocated it committed, and
// free if and only if the one that freed it did. A reservation leaves no trace.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <base/reserve.h>
#include <format/heap_layout.h>
#include <pool/block_states.h>
#include <pool/size_plan.h>
#include <stele/error.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace stele::storage {

class heap {
 public:
  using writer = heap_writer;

  // Free blocks that one thread keeps for itself.
  struct thread_cache {
    std::array<std::vector<std::uint64_t>, format::block_class_count> free;
    std::uint64_t seen_recall = 0;
  };

  // What a running transaction has allocated and freed; empty between transactions.
  struct changes {
    struct block {
      std::uint64_t offset;
      unsigned size_class;
    };
    struct run {
      std::uint32_t first, count;
      bool slab;
    };
    std::vector<block> allocated, freed;
    std::vector<run> runs_allocated, runs_freed;
    bool empty() const noexcept {
      return allocated.empty() && freed.empty() && runs_allocated.empty() && runs_freed.empty();
    }
    // append() moves the changes of a later transaction here. It allocates nothing after reserve().
    void reserve(const changes& later) {
      base::reserve_more(allocated, later.allocated.size()),
          base::reserve_more(freed, later.freed.size());
      base::reserve_more(runs_allocated, later.runs_allocated.size()),
          base::reserve_more(runs_freed, later.runs_freed.size());
    }
    void append(changes& later) {
      STELE_ASSERT(allocated.capacity() - allocated.size() >= later.allocated.size() &&
                   freed.capacity() - freed.size() >= later.freed.size());
      STELE_ASSERT(runs_allocated.capacity() - runs_allocated.size() >=
                       later.runs_allocated.size() &&
                   runs_freed.capacity() - runs_freed.size() >= later.runs_freed.size());
      allocated.insert(allocated.end(), later.allocated.begin(), later.allocated.end());
      freed.insert(freed.end(), later.freed.begin(), later.freed.end());
      runs_allocated.insert(runs_allocated.end(), later.runs_allocated.begin(),
                            later.runs_allocated.end());
      runs_freed.insert(runs_freed.end(), later.runs_freed.begin(), later.runs_freed.end());
      later.clear();
    }
    void clear() noexcept {
      allocated.clear(), freed.clear(), runs_allocated.clear(), runs_freed.clear();
    }
  };

  // The result of a walk over the whole heap.
  struct usage {
    std::uint64_t used_blocks = 0, used_bytes = 0;
    std::uint64_t free_blocks_bytes = 0;  // free blocks inside slabs
    std::uint64_t free_chunks = 0, used_chunks = 0, longest_free_run = 0;
    // Chunk bytes that the chunk table and block checksums of a grown pool take.
    std::uint64_t table_bytes = 0;
  };
  using block_visitor = std::function<void(std::uint64_t offset, std::size_t size)>;

  // `lost` becomes true when a page of the file is lost; null: none ever is.
  explicit heap(const pool_file& file, const std::atomic<bool>* lost = nullptr);

  // Offset and size in bytes of an entry of changes.
  std::pair<std::uint64_t, std::size_t> range_of(const changes::block& b) const noexcept {
    STELE_ASSERT(b.size_class < format::block_class_count);
    return {b.offset, classes_[b.size_class].block_size};
  }
  std::pair<std::uint64_t, std::size_t> range_of(const changes::run& r) const noexcept {
    STELE_ASSERT(r.count != 0 && r.first + std::uint64_t{r.count} <= chunks_.size());
    return {chunk_offset(r.first), std::size_t{r.count} << file_.header().chunk_shift};
  }

  // Reads the chunk table. `states` say which blocks are used and outlive every other call; null:
  // states in place. Errors: corrupt.
  [[nodiscard]] result<> load(block_states* states = nullptr);

  // A word of home. No transaction runs.
  std::uint64_t word_at(std::uint64_t offset) const noexcept { return states_->word_at(offset); }
  // A block counts as used only once a word of it is stored: its transaction stores one.
  bool blocks_need_a_stored_word() const noexcept {
    return states_ != &in_place_ && states_->needs_a_stored_word();
  }

  // Reserves a block of at least `size` bytes, aligned to at most 4096. Errors: full, poisoned,
  // invalid_argument.
  [[nodiscard]] result<std::uint64_t> allocate(thread_cache& c, changes& t, writer& w,
                                               std::size_t size, std::size_t alignment);
  // Errors: invalid_argument if `offset` is not the start of a used block.
  [[nodiscard]] result<> deallocate(thread_cache& c, changes& t, writer& w, std::uint64_t offset);
  // The used block that contains `offset`, as the running transaction sees it. Blocks of pools
  // without states on media count as used while their slab is.
  struct block_place {
    std::uint64_t offset;
    std::size_t size;
  };
  std::optional<block_place> used_block_of(writer& w, const changes& t, std::uint64_t offset) const;
  // Frees slabs without used blocks, up to `max_chunks` chunks of them, for use by other sizes; the
  // caller commits. Returns the number of chunks freed.
  std::size_t reclaim(thread_cache& c, changes& t, writer& w, std::size_t max_chunks);

  void commit(thread_cache& c, changes& t) noexcept {
    if (!t.runs_allocated.empty() || !t.runs_freed.empty() || t.freed.size() > 1) [[unlikely]]
      return apply(c, t);
    if (!t.freed.empty()) {
      STELE_ASSERT(is_block(t.freed.front()));
      auto& list = c.free[t.freed.front().size_class];
      if (list.size() == list.capacity() || planted(base::mutant::heap_freed_twice)) [[unlikely]]
        return apply(c, t);
      list.push_back(t.freed.front().offset);
      t.freed.clear();
    }
    if (!t.allocated.empty()) t.allocated.clear();
  }
  void rollback(thread_cache& c, changes& t) noexcept;
  // A thread that ends gives its free blocks to the others. Without memory for their lists it keeps
  // the blocks.
  void return_cached_blocks(thread_cache& c) noexcept;

  // Chunks for a spilled record: reserved in memory only, free on media. Returns a pool offset.
  // Errors: full.
  [[nodiscard]] result<std::uint64_t> reserve_chunks(std::size_t bytes);
  void release_chunks(std::uint64_t offset, std::size_t bytes) noexcept;
  // Bytes of the longest run of chunks that an allocation can have now.
  std::size_t longest_free_run() const;

  // Walks the whole heap as it is in home and checks that used and free parts tile it. No
  // transaction may run. Errors: corrupt, naming the chunk.
  [[nodiscard]] result<usage> audit(const block_visitor& used = {}) const;

  // For a pool that may be damaged, also before load(): calls each(offset, size, state) for the
  // used blocks, as far as descriptors and states are sound. `state`: the offset of what says that
  // the block is used.
  using block_left_visitor =
      std::function<void(std::uint64_t offset, std::size_t size, std::uint64_t state)>;
  void for_each_block_left(const block_left_visitor& each) const;

  // The words of a chunk table for a pool that grows to `chunk_count` chunks. The new table's own
  // chunks begin at `table_chunk`; the chunks of the former table are free in it.
  [[nodiscard]] result<std::vector<std::uint64_t>> build_grown_table(
      std::uint64_t chunk_count, std::uint64_t table_chunk, std::uint64_t table_length) const;
  // reserve_growth() allocates memory for that many chunks, before the file grows. apply_growth()
  // adds the chunks once the table on media has them. No transaction may run.
  void reserve_growth(std::uint64_t chunk_count);
  [[nodiscard]] result<> apply_growth();

  // Calls each(offset, bytes) for every run of used (or free) chunks; adjacent runs are joined.
  // Errors: corrupt.
  using run_visitor = std::function<void(std::uint64_t offset, std::uint64_t bytes)>;
  [[nodiscard]] result<> for_each_used_run(const run_visitor& each) const {
    return for_each_run(true, each);
  }
  [[nodiscard]] result<> for_each_free_run(const run_visitor& each) const {
    return for_each_run(false, each);
  }

  // The descriptor of a chunk < chunk_count, from home; also before load(). Errors: corrupt.
  [[nodiscard]] result<format::chunk_descriptor> descriptor(std::uint64_t chunk) const;

  // Magic words (format/pool_layout.h). for_each_magic_word calls put(offset, word) for each word
  // of home header and chunk table that differs in a pool with magic words. check_home_magic
  // verifies the home header's word if the pool has magic words. Errors: corrupt.
  void for_each_magic_word(
      const std::function<void(std::uint64_t offset, std::uint64_t word)>& put) const;
  [[nodiscard]] result<> check_home_magic() const;

 private:
  [[nodiscard]] result<> for_each_run(bool used, const run_visitor& each) const;
  struct chunk_info {
    std::atomic<format::chunk_kind> kind{format::chunk_kind::free};
    std::atomic<bool> free_list_built{true};  // its free blocks are in the lists
    std::uint8_t size_class = 0;              // of a slab, large or not
    std::uint32_t length = 0;  // head of a run: its chunks; tail: chunks from the head to here
  };

  std::size_t chunk_size() const noexcept { return std::size_t{1} << file_.header().chunk_shift; }
  std::uint64_t chunk_offset(std::uint64_t chunk) const noexcept {
    return file_.header().chunks_offset + (chunk << file_.header().chunk_shift);
  }
  std::uint64_t descriptor_offset(std::uint64_t chunk) const noexcept {
    return file_.header().table_offset + 8 * chunk;
  }
  size_plan make_plan(std::uint64_t chunk_count) const {
    return {chunk_size(), chunk_count, file_.header().home == format::home_kind::log};
  }
  void write_descriptor(writer& w, std::uint64_t chunk, format::chunk_descriptor d);
  // Whether the pool has magic words; nullopt if the control word is damaged.
  std::optional<bool> has_magic() const noexcept;
  format::chunk_descriptor free_chunk() const noexcept {
    return has_magic().value_or(false) ? format::chunk_descriptor::nonzero_free()
                                       : format::chunk_descriptor();
  }
  slab slab_of(std::uint64_t chunk, unsigned size_class) const noexcept {
    STELE_ASSERT(chunk < file_.header().chunk_count && size_class < format::block_class_count);
    const block_class& b = classes_[size_class];
    STELE_ASSERT(b.capacity != 0);  // the pool has blocks of this class
    return {chunk, chunk_offset(chunk), {b.capacity, b.first}, b.block_size};
  }
  // The first chunk of the slab that a block of this class lies in.
  std::uint64_t slab_chunk_of(std::uint64_t block, unsigned size_class) const noexcept {
    const std::uint64_t chunk = chunk_of(block);
    return is_large(size_class) && !planted(base::mutant::heap_large_own_chunk) ? run_head_of(chunk)
                                                                                : chunk;
  }
  std::uint64_t run_head_of(std::uint64_t chunk) const noexcept {
    const chunk_info& info = chunks_[chunk];
    return info.kind.load(std::memory_order_acquire) == format::chunk_kind::tail
               ? chunk - info.length
               : chunk;
  }
  // The number of the block at `inside` bytes into its slab.
  std::uint32_t block_number(std::uint32_t inside, unsigned size_class) const noexcept {
    STELE_ASSERT(inside >= classes_[size_class].first);
    return (inside - classes_[size_class].first) /
           static_cast<std::uint32_t>(classes_[size_class].block_size);
  }
  std::uint64_t chunk_of(std::uint64_t offset) const noexcept {
    STELE_ASSERT(offset >= file_.header().chunks_offset);
    return (offset - file_.header().chunks_offset) >> file_.header().chunk_shift;
  }

  // Predicates of assertions.
  // A block of a slab that is in use, named by its first byte and its class.
  bool is_block(const changes::block& b) const noexcept {
    if (b.size_class >= format::block_class_count || b.offset < file_.header().chunks_offset ||
        chunk_of(b.offset) >= chunks_.size())
      return false;
    const std::uint64_t chunk = slab_chunk_of(b.offset, b.size_class),
                        inside = b.offset - chunk_offset(chunk);
    const block_class& blocks = classes_[b.size_class];
    return chunks_[chunk].size_class == b.size_class && inside >= blocks.first &&
           (inside - blocks.first) % blocks.block_size == 0 &&
           (inside - blocks.first) / blocks.block_size < blocks.capacity;
  }
  // The number of free chunks is right, and none lies before the place where the search for one
  // begins. The caller holds mutex_, or is alone.
  bool free_chunks_are_known() const noexcept;
  static void push_free(std::vector<std::uint64_t>& list, std::uint64_t block) noexcept;

  [[nodiscard]] result<std::uint64_t> allocate_block(thread_cache& c, changes& t, writer& w,
                                                     unsigned size_class);
  [[nodiscard]] result<std::uint64_t> allocate_extent(changes& t, writer& w, std::size_t size);
  [[nodiscard]] result<> refill(thread_cache& c, changes& t, writer& w, unsigned size_class);
  bool take_free_blocks(thread_cache& c, unsigned size_class);
  [[nodiscard]] result<> new_slab(thread_cache& c, changes& t, writer& w, unsigned size_class);
  [[nodiscard]] result<> deallocate_extent(changes& t, writer& w, std::uint64_t chunk);
  void describe_run(writer& w, std::uint32_t first, format::chunk_descriptor head,
                    std::uint32_t count);
  void describe_free(writer& w, const changes::run& r);
  void build_free_list(std::uint64_t chunk);
  bool write_block_state(writer& w, std::uint64_t chunk, unsigned size_class, std::uint32_t number,
                         bool used);
  [[nodiscard]] result<std::uint64_t> allocate_large(thread_cache& c, changes& t, writer& w,
                                                     std::size_t size, std::size_t alignment);
  void restore_block_state(const changes::block& b, bool used) noexcept;
  [[nodiscard]] result<std::uint32_t> allocate_run(std::size_t count);
  void free_run(std::uint32_t first, std::uint32_t count) noexcept;
  void honor_recall(thread_cache& c, const changes& t);
  void return_excess_blocks(thread_cache& c, unsigned size_class) noexcept;
  void apply(thread_cache& c, changes& t) noexcept;
  [[nodiscard]] result<> audit_run(std::uint64_t chunk, const format::chunk_descriptor& head,
                                   usage& sum, const block_visitor& used) const;
  [[nodiscard]] result<> audit_slab(std::uint64_t chunk, unsigned size_class, usage& sum,
                                    const block_visitor& used) const;
  [[nodiscard]] result<> check_table_chunks() const;
  std::unexpected<error> out_of_space(std::size_t size) const;

  const pool_file& file_;
  const std::atomic<bool>* const lost_;
  states_in_place in_place_;
  block_states* states_ = &in_place_;
  std::array<block_class, format::block_class_count> classes_;
  size_plan plan_;                                 // changes only while no transaction runs
  std::vector<chunk_info> chunks_, grown_chunks_;  // grown_chunks_: from reserve_growth
  std::optional<size_plan> grown_plan_;            // likewise
  mutable std::mutex mutex_;                       // protects all below
  std::vector<bool> free_chunks_;
  std::size_t free_chunk_count_ = 0;
  std::size_t next_fit_chunk_ = 0;
  std::array<std::vector<std::uint64_t>, format::block_class_count> central_free_;
  std::array<std::vector<std::uint32_t>, format::block_class_count> unscanned_slabs_;
  // Incremented when a full pool wants the threads' free blocks back.
  std::atomic<std::uint64_t> recall_{0};
};

}  // namespace stele::storage
