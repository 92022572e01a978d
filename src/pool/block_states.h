// Which blocks of a slab are used: where the heap finds that, and how a transaction changes it.
//
// Two implementations. states_in_place, here: a state byte for each block at the start of its slab,
// on media, stored by the transaction. Another for pools whose home has no place of its own, where
// blocks have no states on media. The heap decides, under its own locks and reservations, who may
// change a state; an implementation only reads and writes it.
//
// Invariant: after a crash a block is used if and only if the transaction that allocated it
// committed and none that freed it did.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <format/heap_layout.h>
#include <pool/pool_file.h>
#include <stele/error.h>

#include <cstdint>

namespace stele::storage {

// The running transaction: stores that no other transaction can conflict with.
class heap_writer {
 public:
  virtual void write_private(std::uint64_t offset, std::uint64_t value, unsigned size) = 0;
  virtual std::uint64_t read_private(std::uint64_t offset, unsigned size) = 0;
  // The library takes over bytes of a former object. Transactions that still read or store the
  // object end first, or restart. May throw to restart this transaction.
  virtual void claim(std::uint64_t offset, std::size_t size) = 0;

 protected:
  ~heap_writer() = default;
};

// A chunk cut into blocks of one size. Blocks are named by their number.
struct slab {
  std::uint64_t chunk, offset;
  format::slab_layout layout;
  std::size_t block_size;
  std::uint64_t block_offset(std::uint32_t block) const noexcept {
    STELE_ASSERT(block < layout.capacity);
    return offset + layout.first + block * block_size;
  }
};

class block_states {
 public:
  virtual ~block_states() = default;

  // A word of home: descriptors of chunks, the header of home.
  virtual std::uint64_t word_at(std::uint64_t offset) const noexcept = 0;

  // Before the first change of a state in a slab, of this session or an earlier one. May throw
  // std::bad_alloc.
  virtual void prepare(const slab& s) = 0;
  // All blocks of a new slab are free; the transaction has claimed the slab's first bytes.
  virtual void clear(heap_writer& w, const slab& s) = 0;
  // As home says, not a running transaction.
  virtual bool is_used(const slab& s, std::uint32_t block) const noexcept = 0;
  // In the running transaction. False: the state was the same before.
  virtual bool set_used(heap_writer& w, const slab& s, std::uint32_t block, bool used) = 0;
  // Sets what is volatile of a state: after a roll-back, or as read from home.
  virtual void restore(const slab& s, std::uint32_t block, bool used) noexcept = 0;
  // The transaction frees this range, a block or an extent.
  virtual void free_range(heap_writer& w, std::uint64_t offset, std::size_t size) = 0;
  // Errors: corrupt, when a state in home is none.
  [[nodiscard]] virtual result<> verify(const slab& s) const = 0;

  // A block counts as used only once a word of it is stored: so allocation stores one.
  virtual bool needs_a_stored_word() const noexcept = 0;
};

class states_in_place final : public block_states {
 public:
  explicit states_in_place(const pool_file& file) noexcept : file_(file) {}

  std::uint64_t word_at(std::uint64_t offset) const noexcept override;
  void prepare(const slab&) override {}
  void clear(heap_writer& w, const slab& s) override;
  bool is_used(const slab& s, std::uint32_t block) const noexcept override {
    STELE_ASSERT(block < s.layout.capacity);
    return file_.at(s.offset)[block] == std::byte{format::block_used};
  }
  // Whether eight blocks are used, from one on whose number is a multiple of eight.
  bool are_used(const slab& s, std::uint32_t block) const noexcept {
    STELE_ASSERT(block % 8 == 0 && block + 8 <= s.layout.capacity);
    constexpr std::uint64_t all_used = 0x0101'0101'0101'0101 * std::uint64_t{format::block_used};
    return word_at(s.offset + block) == all_used;
  }
  bool set_used(heap_writer& w, const slab& s, std::uint32_t block, bool used) override {
    STELE_ASSERT(block < s.layout.capacity);
    return set_used(w, s.offset + block, used);
  }
  // The state at `offset`. Not virtual: it is on the way of every allocation.
  static bool set_used(heap_writer& w, std::uint64_t offset, bool used) {
    using base::mutant;
    if (!used && w.read_private(offset, 1) != format::block_used) return false;
    if (!planted(used ? mutant::heap_untracked_take : mutant::heap_untracked_free))
      w.write_private(offset, used ? format::block_used : format::block_free, 1);
    return true;
  }
  void restore(const slab&, std::uint32_t, bool) noexcept override {}
  void free_range(heap_writer&, std::uint64_t, std::size_t) override {}
  [[nodiscard]] result<> verify(const slab& s) const override;
  bool needs_a_stored_word() const noexcept override { return false; }

 private:
  const pool_file& file_;
};

}  // namespace stele::storage
