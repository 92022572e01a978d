// Block states of a log-structured pool: a block is used if and only if the log holds a word of it.
//
// Nothing of them is on media. In memory each slab that is in use has a bit for each block, so that
// a block is not freed twice; a roll-back restores it. Recovery and audit ask the home map.
#pragma once

#include <base/assert.h>
#include <pool/block_states.h>
#include <published/log_structured/log_space.h>

#include <atomic>
#include <memory>
#include <vector>

namespace stele::storage {

class logged_block_states final : public block_states {
 public:
  explicit logged_block_states(const log_space& space)
      : space_(space), bits_(space.file().header().chunk_count) {}

  std::uint64_t word_at(std::uint64_t offset) const noexcept override {
    return space_.word_at(offset);
  }
  void prepare(const slab& s) override {
    STELE_ASSERT(s.chunk < bits_.size() && s.layout.capacity != 0);
    bits_[s.chunk] = std::make_unique<word[]>((s.layout.capacity + 63) / 64);
  }
  // The commit that freed the former content of the chunk has dropped its words.
  void clear(heap_writer&, const slab&) override {}
  bool is_used(const slab& s, std::uint32_t block) const noexcept override;
  bool set_used(heap_writer&, const slab& s, std::uint32_t block, bool used) override {
    return set_bit(s, block, used);
  }
  void restore(const slab& s, std::uint32_t block, bool used) noexcept override {
    (void)set_bit(s, block, used);
  }
  // The commit drops the words of the range, so no transaction may be reading them.
  void free_range(heap_writer& w, std::uint64_t offset, std::size_t size) override {
    w.claim(offset, size);
  }
  [[nodiscard]] result<> verify(const slab&) const override { return {}; }
  bool needs_a_stored_word() const noexcept override { return true; }

 private:
  using word = std::atomic<std::uint64_t>;
  bool set_bit(const slab& s, std::uint32_t block, bool used) noexcept {
    STELE_ASSERT(bits_[s.chunk] != nullptr && block < s.layout.capacity);
    const std::uint64_t bit = std::uint64_t{1} << block % 64;
    word& bits = bits_[s.chunk][block / 64];
    return ((used ? bits.fetch_or(bit) : bits.fetch_and(~bit)) & bit) == (used ? 0 : bit);
  }

  const log_space& space_;
  std::vector<std::unique_ptr<word[]>> bits_;  // by chunk; null: not a slab in use
};

}  // namespace stele::storage
