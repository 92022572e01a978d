// The states that recovery may return for a run whose operations overlap and do not wait for
// durability: the consistent cuts. If an operation is present, then every operation that ended
// before it began is present too.
//
// A state is named by the first missing operation and by the later operations that are present;
// each of those overlapped with the missing one. Overlapping operations touch different data, so
// their order does not matter.
#pragma once

#include <explore/subject.h>

#include <span>
#include <unordered_map>
#include <vector>

namespace stele::explore {

// For each operation, by number: the earlier operations that had not ended when it began.
using overlaps = std::vector<std::vector<std::uint64_t>>;

class consistent_cuts {
 public:
  // `operations` in the order in which they were applied; `overlap` has one entry for each.
  consistent_cuts(const workloads::workload& w, std::span<const workloads::operation> operations,
                  const overlaps& overlap);

  // Whether a state with this digest holds the first `acknowledged` operations and those of
  // `out_of_order`, and none from `invoked` on.
  bool allows(std::uint64_t digest, std::uint64_t acknowledged,
              std::span<const std::uint64_t> out_of_order, std::uint64_t invoked) const;
  std::size_t states() const noexcept { return states_; }

 private:
  struct state {
    std::uint64_t first_missing;              // all operations before it are present
    std::vector<std::uint64_t> out_of_order;  // sorted
  };
  void extend(const workloads::workload& w, std::span<const workloads::operation> operations,
              const overlaps& overlap, state s, std::uint64_t next);
  void add(const workloads::workload& w, std::span<const workloads::operation> operations, state s);

  std::unordered_map<std::uint64_t, std::vector<state>> by_digest_;
  std::size_t states_ = 0;
};

}  // namespace stele::explore
