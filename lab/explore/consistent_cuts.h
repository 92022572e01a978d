// What a run whose operations overlap may be recovered to, when nothing waits for durability: an
// operation that ended before another began is there whenever the other is.
//
// A state is named by the first operation that is missing and by those after it that are there
// nevertheless: each of them overlapped with the missing one. Operations that overlap touch
// different things, so their order does not matter.
#pragma once

#include <explore/subject.h>

#include <span>
#include <unordered_map>
#include <vector>

namespace stele::explore {

// Of one operation, by number: those before it that had not ended when it began.
using overlaps = std::vector<std::vector<std::uint64_t>>;

class consistent_cuts {
 public:
  // `operations` as they were applied; overlap has one entry for each.
  consistent_cuts(const workloads::workload& w, std::span<const workloads::operation> operations,
                  const overlaps& overlap);

  // Is there a state with this digest that holds the first `acknowledged` operations and those of
  // `out_of_order`, and none from `invoked` on?
  bool allows(std::uint64_t digest, std::uint64_t acknowledged,
              std::span<const std::uint64_t> out_of_order, std::uint64_t invoked) const;
  std::size_t states() const noexcept { return states_; }

 private:
  struct state {
    std::uint64_t first_missing;              // all before are there
    std::vector<std::uint64_t> out_of_order;  // sorted
  };
  void extend(const workloads::workload& w, std::span<const workloads::operation> operations,
              const overlaps& overlap, state s, std::uint64_t next);
  void add(const workloads::workload& w, std::span<const workloads::operation> operations, state s);

  std::unordered_map<std::uint64_t, std::vector<state>> by_digest_;
  std::size_t states_ = 0;
};

}  // namespace stele::explore
