// Which states a run may be in whose operations overlap: those after some of its operations in some
// order that respects real time (an operation that had ended before another began comes before it).
//
// Of a crash that state is right which has every acknowledged operation, none that was not invoked,
// and with an operation all that must come before it. Operations are numbered from 0, 32 at most.
#pragma once

#include <explore/subject.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace stele::explore {

// Of each operation, as masks: those that had ended when it was invoked.
using precedence = std::vector<std::uint32_t>;

class interleavings {
 public:
  // `first` were applied one after the other, before those that overlap.
  interleavings(const workloads::workload& w, std::vector<workloads::operation> first)
      : workload_(w), sequential_(std::move(first)) {}

  // Does some order of these operations with exactly `must` and some of `may` give this digest?
  bool allows(std::span<const workloads::operation> operations, const precedence& before,
              std::uint64_t digest, std::uint32_t must, std::uint32_t may);
  // Which operations, as a mask, some order of which gives it; 0 when none does or the first ones
  // alone.
  std::uint32_t operations_in(std::span<const workloads::operation> operations,
                              const precedence& before, std::uint64_t digest);
  // A history that ends in this state, of all that were ever asked about; null: none does.
  run_history* history(std::uint64_t digest);

 private:
  struct key {
    std::vector<std::uint64_t> words;  // operations and their precedence
    auto operator<=>(const key&) const = default;
  };
  using outcomes =
      std::unordered_multimap<std::uint64_t, std::uint32_t>;  // digest, which are in it

  const outcomes& outcomes_of(std::span<const workloads::operation> operations,
                              const precedence& before);
  void extend(std::span<const workloads::operation> operations, const precedence& before,
              std::vector<unsigned>& order, std::uint32_t in, outcomes& all);

  const workloads::workload& workload_;
  std::vector<workloads::operation> sequential_;
  std::map<key, outcomes> known_;
  std::unordered_map<std::uint64_t, std::vector<workloads::operation>> paths_;
  std::unordered_map<std::uint64_t, run_history> histories_;
};

}  // namespace stele::explore
