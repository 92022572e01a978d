// The lines that a transaction has touched, each with flags, in the order of the first touch.
// Clearing the set takes constant time.
#pragma once

#include <sim/archive.h>

#include <cstdint>
#include <span>
#include <vector>

namespace stele::sim {

class line_set {
 public:
  struct entry {
    std::uint64_t line;
    std::uint8_t flags;
  };

  line_set() : slots_(64), entries_(slots_.size() / 2) {}

  // The flags of a line; 0 when it is not in the set.
  std::uint8_t flags(std::uint64_t line) const noexcept {
    if ((filter_ >> (hash_of(line) >> 58) & 1) == 0) return 0;
    const slot& s = slots_[place_of(line)];
    return s.epoch == epoch_ ? entries_[s.entry].flags : std::uint8_t{0};
  }
  // Adds flags; returns the line's previous flags.
  [[gnu::always_inline]] std::uint8_t add(std::uint64_t line, std::uint8_t flags) {
    filter_ |= std::uint64_t{1} << (hash_of(line) >> 58);
    slot& s = slots_[place_of(line)];
    if (s.epoch == epoch_) {
      const std::uint8_t had = entries_[s.entry].flags;
      entries_[s.entry].flags |= flags;
      return had;
    }
    s = {line, epoch_, size_};
    entries_[size_] = {line, flags};
    if (++size_ == entries_.size()) grow();
    return 0;
  }
  void remove_flags(std::uint64_t line, std::uint8_t flags) noexcept {
    const slot& s = slots_[place_of(line)];
    if (s.epoch == epoch_) entries_[s.entry].flags &= static_cast<std::uint8_t>(~flags);
  }
  void clear() noexcept {
    size_ = 0;
    filter_ = 0;
    ++epoch_;
  }
  // Valid until the next add().
  std::span<const entry> entries() const noexcept { return {entries_.data(), size_}; }

  void visit_state(archive& a) {
    std::vector<entry> all(entries().begin(), entries().end());
    a.list(all, [&](entry& e) { a(e.line, e.flags); });
    if (!a.reads()) return;
    clear();
    for (const entry& e : all) add(e.line, e.flags);
    a.require(size_ == all.size(), "a line is twice in the set of a transaction");
  }

 private:
  struct slot {
    std::uint64_t line = 0;
    std::uint32_t epoch = 0, entry = 0;
  };

  static std::uint64_t hash_of(std::uint64_t line) noexcept {
    return line * 0x9E37'79B9'7F4A'7C15u;
  }
  std::size_t place_of(std::uint64_t line) const noexcept {
    std::size_t at = hash_of(line) >> 32 & mask_;
    while (slots_[at].epoch == epoch_ && slots_[at].line != line) at = (at + 1) & mask_;
    return at;
  }
  // Apart, so that add() is short where it is inlined.
  [[gnu::noinline, gnu::cold]] void grow() {
    std::vector<slot> larger(slots_.size() * 2);
    slots_.swap(larger);
    entries_.resize(slots_.size() / 2);
    mask_ = slots_.size() - 1;
    for (std::uint32_t i = 0; i < size_; ++i)
      slots_[place_of(entries_[i].line)] = {entries_[i].line, epoch_, i};
  }

  std::vector<slot> slots_;
  std::vector<entry> entries_;  // the first size_ are in use; never all of them
  std::uint32_t size_ = 0;
  std::size_t mask_ = slots_.size() - 1;
  std::uint64_t filter_ = 0;  // a bit for the hash of each line: most lines that are not in the set
                              // are known by it
  std::uint32_t epoch_ = 1;
};

}  // namespace stele::sim
