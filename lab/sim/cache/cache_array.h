// The tags of a set-associative cache; its owner keeps other state by frame.
//
// Used alone, it is a functional model: which lines are present and which leave, without time. A
// frame is an index of the array, valid until its line leaves. Lines are numbers (address / 64).
// Least recently used is inline; other policies are plug-ins (replacement.h). The set is the low
// bits of the line number when the number of sets is a power of two, else the remainder.
#pragma once

#include <base/check.h>
#include <sim/cache/replacement.h>
#include <sim/huge_vector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace stele::sim {

class cache_array {
 public:
  using frame = std::uint32_t;
  static constexpr frame none = ~frame{0};
  static constexpr unsigned max_ways = 32;

  // Errors: invalid_argument (sizes, policy).
  [[nodiscard]] static result<cache_array> make(std::uint64_t size_bytes, unsigned ways,
                                                std::string_view policy, std::uint64_t seed);

  std::size_t sets() const noexcept { return sets_; }
  unsigned ways() const noexcept { return ways_; }
  std::size_t frames() const noexcept { return tags_.size(); }
  std::size_t bytes() const noexcept {
    return tags_.size() * sizeof tags_[0] + last_used_.size() * sizeof last_used_[0];
  }

  [[gnu::always_inline]] frame find(std::uint64_t line) const noexcept {
    const std::size_t first = set_of(line) * ways_;
    const std::uint64_t *const begin = tags_.data() + first, *const end = begin + ways_;
    const auto frame_at = [&](const std::uint64_t* tag) {
      return static_cast<frame>(first + static_cast<std::size_t>(tag - begin));
    };
    const std::uint64_t wanted = line + 1, *tag = begin;
    for (; end - tag >= 4; tag += 4) {  // by hand: half the instructions of a loop over ways
      if (tag[0] == wanted) return frame_at(tag);
      if (tag[1] == wanted) return frame_at(tag + 1);
      if (tag[2] == wanted) return frame_at(tag + 2);
      if (tag[3] == wanted) return frame_at(tag + 3);
    }
    for (; tag != end; ++tag)
      if (*tag == wanted) return frame_at(tag);
    return none;
  }
  // Asks the host for what finding and replacing the line will read. Changes nothing.
  void prefetch(std::uint64_t line) const noexcept {
    const std::size_t first = set_of(line) * ways_, half = ways_ / 2;
    __builtin_prefetch(tags_.data() + first), __builtin_prefetch(tags_.data() + first + half);
    if (policy_ != nullptr) return;
    __builtin_prefetch(last_used_.data() + first);
  }
  // Under LRU, the frame that the next line of this set will take; none under other policies.
  frame next_victim(std::uint64_t line) const noexcept {
    const frame first = first_of_set(line);
    return policy_ == nullptr ? first + lru_way(first, all_) : none;
  }
  // The line was requested and is present.
  [[gnu::always_inline]] void touch(frame p) noexcept {
    if (policy_ == nullptr) [[likely]] {
      last_used_[p] = next_stamp();
    } else {
      policy_->touched(p / ways_, p % ways_);
    }
  }

  bool valid(frame p) const noexcept { return tags_[p] != 0; }
  bool holds_line(frame p, std::uint64_t line) const noexcept { return tags_[p] == line + 1; }
  std::uint64_t line_at(frame p) const noexcept { return tags_[p] - 1; }
  frame first_of_set(std::uint64_t line) const noexcept {
    return static_cast<frame>(set_of(line) * ways_);
  }

  // The ways of the line's set without that of `kept`, if it is in this set.
  std::uint32_t ways_but(std::uint64_t line, std::uint64_t kept) const noexcept {
    const frame p = set_of(kept) == set_of(line) ? find(kept) : none;
    return p == none ? ~0u : ~(1u << (p - first_of_set(line)));
  }
  // The frame for a line that is not present: an empty frame, else the victim among the ways whose
  // bit is set in `allowed`; none when no bit is set.
  frame find_victim(std::uint64_t line, std::uint32_t allowed = ~0u) {
    const frame first = first_of_set(line);
    allowed &= all_;
    if (allowed == 0) return none;
    if (policy_ == nullptr) return first + lru_way(first, allowed);
    for (unsigned w = 0; w < ways_; ++w)
      if (tags_[first + w] == 0 && (allowed >> w & 1) != 0) return first + w;
    return first + policy_->victim(first / ways_, allowed);
  }
  // Puts the line into a frame; the previous line must have left.
  void fill(frame p, std::uint64_t line) {
    tags_[p] = line + 1;
    if (policy_ == nullptr) {
      last_used_[p] = next_stamp();
    } else {
      policy_->filled(p / ways_, p % ways_);
    }
  }
  void invalidate(frame p) noexcept {
    tags_[p] = 0;
    if (policy_ == nullptr) last_used_[p] = 0;
  }

  // For tests: it is as if so many lines, or more, had been touched. Precondition: LRU.
  void age_to(std::uint32_t touches) noexcept { clock_ = std::max(clock_, touches); }

  void visit_state(archive& a) {
    a(clock_);
    a.sparse(tags_, 0);
    a.sparse(last_used_, 0);
    if (policy_ != nullptr) policy_->visit_state(a);
    for (frame p = 0; a.reads() && p < tags_.size(); ++p)
      a.require(!valid(p) || find(line_at(p)) == p, "a line is in a wrong set, or twice in one");
  }

 private:
  cache_array(std::size_t sets, unsigned ways, std::unique_ptr<replacement> policy)
      : sets_(sets),
        mask_(std::has_single_bit(sets) ? sets - 1 : 0),
        ways_(ways),
        all_(ways == 32 ? ~0u : (1u << ways) - 1),
        tags_(sets * ways),
        last_used_(policy == nullptr ? sets * ways : 0),
        policy_(std::move(policy)) {}

  [[gnu::always_inline]] std::size_t set_of(std::uint64_t line) const noexcept {
    return mask_ != 0 ? line & mask_ : sets_ == 1 ? 0 : line % sets_;
  }
  [[gnu::always_inline]] std::uint32_t next_stamp() noexcept {
    if (clock_ == ~std::uint32_t{0}) [[unlikely]]
      renumber();
    return ++clock_;
  }
  // Stamps of four bytes have run out: those of each set become 1, 2 and so on, in their order.
  [[gnu::noinline]] void renumber() noexcept {
    for (std::size_t first = 0; first < last_used_.size(); first += ways_) {
      const std::span<std::uint32_t> used(last_used_.data() + first, ways_);
      std::array<std::uint32_t, max_ways> order;
      const auto end = std::ranges::copy(used, order.begin()).out;
      std::sort(order.begin(), end);
      const auto zeros = std::count(order.begin(), end, 0u);
      for (std::uint32_t& u : used)
        if (u != 0)
          u = static_cast<std::uint32_t>(std::lower_bound(order.begin(), end, u) - order.begin() -
                                         zeros + 1);
    }
    clock_ = ways_;
  }
  unsigned lru_way(frame first, std::uint32_t allowed) const noexcept {
    if (allowed == all_) [[likely]] {
      const std::uint32_t* const used = last_used_.data() + first;
      unsigned best = 0;
      std::uint32_t when = ~std::uint32_t{0};
#pragma GCC unroll 4
      for (unsigned w = 0; w < ways_; ++w) {
        best = used[w] < when ? w : best;
        when = std::min(when, used[w]);
      }
      return best;
    }
    auto best = static_cast<unsigned>(std::countr_zero(allowed));
    for (unsigned w = best + 1; w < ways_; ++w)
      if ((allowed >> w & 1) != 0 && last_used_[first + w] < last_used_[first + best]) best = w;
    return best;
  }

  std::size_t sets_, mask_;
  unsigned ways_;
  std::uint32_t all_;
  huge_vector<std::uint64_t> tags_;       // line + 1; 0: empty
  huge_vector<std::uint32_t> last_used_;  // for LRU only; 0: empty
  std::uint32_t clock_ = 0;
  std::unique_ptr<replacement> policy_;
};

inline result<cache_array> cache_array::make(std::uint64_t size_bytes, unsigned ways,
                                             std::string_view policy, std::uint64_t seed) {
  const auto named = replacement_named(policy);
  if (!named) return std::unexpected(named.error());
  const std::uint64_t lines = size_bytes / 64;
  if (ways == 0 || ways > max_ways || size_bytes % 64 != 0 || lines == 0 || lines % ways != 0 ||
      lines >= none)
    return base::fail(
        errc::invalid_argument,
        "there is no cache of " + std::to_string(size_bytes) + " bytes in " + std::to_string(ways) +
            " ways: give 1 to 32 ways, and a size that is a multiple of 64 bytes times the ways");
  return cache_array(lines / ways, ways, (*named)->make(lines / ways, ways, seed));
}

}  // namespace stele::sim
