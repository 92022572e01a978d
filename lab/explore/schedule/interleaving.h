// The states that a run may be in when its operations overlap: those after some of its operations
// in some order that respects real time. If an operation ended before another began, it comes
// first.
//
// A recovered state is right if it has every acknowledged operation, none that was not invoked, and
// with each operation all that must come before it. Operations are numbered from 0, at most 32.
#pragma once

#include <explore/subject.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace stele::explore {

// For each operation a mask: the operations that had ended when it was invoked.
using precedence = std::vector<std::uint32_t>;

class interleavings {
 public:
  // `first` were applied one after the other, before the overlapping operations. Must outlive this.
  interleavings(const workloads::workload& w, const std::vector<workloads::operation>& first)
      : workload_(w), sequential_(first) {}

  // Whether some order of all of `must` and some of `may` gives this digest.
  bool allows(std::span<const workloads::operation> operations, const precedence& before,
              std::uint64_t digest, std::uint32_t must, std::uint32_t may);
  // The mask of operations that give this digest in some order. 0 when none do, or when the `first`
  // operations alone do.
  std::uint32_t operations_in(std::span<const workloads::operation> operations,
                              const precedence& before, std::uint64_t digest);
  // A history that ends in this state, from all calls so far; null: none does.
  run_history* history(std::uint64_t digest);

 private:
  struct key {
    std::vector<std::uint64_t> words;  // operations and their precedence
    auto operator<=>(const key&) const = default;
  };
  // Maps a digest to masks of operations.
  using outcomes = std::unordered_multimap<std::uint64_t, std::uint32_t>;

  const outcomes& outcomes_of(std::span<const workloads::operation> operations,
                              const precedence& before);
  void extend(std::span<const workloads::operation> operations, const precedence& before,
              std::vector<unsigned>& order, std::uint32_t in, outcomes& all);

  const workloads::workload& workload_;
  const std::vector<workloads::operation>& sequential_;
  std::map<key, outcomes> known_;
  std::unordered_map<std::uint64_t, std::vector<workloads::operation>> paths_;
  std::unordered_map<std::uint64_t, run_history> histories_;
};

}  // namespace stele::explore
