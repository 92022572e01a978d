// Words of home that are loaded often, in ordinary memory: such a load needs neither the home map
// nor the log. The home map keeps it current.
//
// A slot has one group of words. Invariants: a word that is marked valid in a slot is what the home
// map has for it, except while the lock of its list is held. Words of a group change only under
// that lock; slots that groups of two lists share are locked besides, by an odd version. A reader
// takes no lock: what it has read counts if the slot's version was even and has not changed
// (a sequence lock).
#pragma once

#include <base/assert.h>
#include <media/spin.h>
#include <published/log_structured/lazy_array.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stele::storage {

class word_cache {
 public:
  static constexpr std::uint64_t group_words = 4;

  // `slots`: rounded down to a power of two; 0: no cache.
  explicit word_cache(std::size_t slots)
      : count_(std::bit_floor(slots)),
        slots_(std::max<std::size_t>(count_, 1)),
        shift_(static_cast<unsigned>(63 - std::countr_zero(std::max<std::size_t>(count_, 1)))) {}

  bool enabled() const noexcept { return count_ != 0; }
  std::size_t bytes() const noexcept { return count_ * sizeof(slot); }

  // Whether the word is here.
  bool find(std::uint64_t home, std::uint64_t& value) const noexcept {
    const slot& s = slot_of(home);
    const std::uint64_t version = s.version.load(std::memory_order_acquire),
                        of = s.of.load(std::memory_order_acquire);
    if (of >> group_words != home / group_words || (of >> home % group_words & 1) == 0)
      return false;
    value = s.words[home % group_words].load(std::memory_order_acquire);
    return s.version.load(std::memory_order_relaxed) == version && (version & 1) == 0;
  }

  // The caller holds the lock of the word's list.
  void insert(std::uint64_t home, std::uint64_t value) noexcept {
    STELE_ASSERT(enabled());
    slot& s = slot_of(home);
    lock(s);
    const std::uint64_t of = s.of.load(std::memory_order_relaxed),
                        valid = of >> group_words == home / group_words ? of & all_valid : 0;
    set(s, home, value, valid);
    unlock(s);
  }
  // Words of one group have changed; null: to zeroes. The caller holds the lock of their list.
  // Returns whether the group is here.
  bool update(std::uint64_t home, std::uint64_t count, const std::uint64_t* words) noexcept {
    STELE_ASSERT(count != 0 && home % group_words + count <= group_words);  // of one group
    slot& s = slot_of(home);
    const auto is_here = [&] {
      return s.of.load(std::memory_order_relaxed) >> group_words == home / group_words;
    };
    if (!is_here()) return false;  // and cannot come while the caller has that lock
    lock(s);
    const bool here = is_here();
    for (std::uint64_t i = 0; here && i < count; ++i)
      set(s, home + i, words == nullptr ? 0 : words[i],
          s.of.load(std::memory_order_relaxed) & all_valid);
    unlock(s);
    return here;
  }

 private:
  static constexpr std::uint64_t all_valid = (1u << group_words) - 1;
  using word = std::atomic<std::uint64_t>;
  struct alignas(64) slot {
    word version;  // odd: locked
    word of;       // the group; below it a bit for each valid word
    word words[group_words];
  };

  slot& slot_of(std::uint64_t home) const noexcept {
    return slots_[(home / group_words * 0x9E3779B97F4A7C15u >> 1) >> shift_];
  }
  static void set(slot& s, std::uint64_t home, std::uint64_t value, std::uint64_t valid) noexcept {
    s.words[home % group_words].store(value, std::memory_order_release);
    s.of.store(home / group_words << group_words | valid | 1u << home % group_words,
               std::memory_order_release);
  }
  static void lock(slot& s) noexcept {
    for (unsigned spins = 0;; media::spin_pause(spins)) {
      std::uint64_t version = s.version.load(std::memory_order_relaxed);
      if ((version & 1) == 0 &&
          s.version.compare_exchange_weak(version, version + 1, std::memory_order_acq_rel))
        return;
    }
  }
  static void unlock(slot& s) noexcept {
    STELE_ASSERT((s.version.load(std::memory_order_relaxed) & 1) != 0);  // odd: it is locked
    s.version.store(s.version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  std::size_t count_;
  lazy_array<slot> slots_;  // without a cache one slot, which stays empty
  unsigned shift_;
};

}  // namespace stele::storage
