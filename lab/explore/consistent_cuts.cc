// Enumerates the states and computes their digests.
#include <explore/consistent_cuts.h>

#include <algorithm>

namespace stele::explore {

using workloads::operation;

consistent_cuts::consistent_cuts(const workloads::workload& w,
                                 std::span<const operation> operations, const overlaps& overlap) {
  for (std::uint64_t first_missing = 0; first_missing <= operations.size(); ++first_missing) {
    add(w, operations, {first_missing, {}});
    extend(w, operations, overlap, {first_missing, {}}, first_missing + 1);
  }
}

// Adds the states that have one more operation, from `next` on. An operation may be present if all
// operations that ended before it began are present.
void consistent_cuts::extend(const workloads::workload& w, std::span<const operation> operations,
                             const overlaps& overlap, state s, std::uint64_t next) {
  for (std::uint64_t n = next; n < operations.size(); ++n) {
    const auto& unordered = overlap[n];
    if (std::ranges::find(unordered, s.first_missing) == unordered.end())
      break;  // later operations began later still
    bool predecessors_present = true;
    for (std::uint64_t before = s.first_missing + 1; before < n && predecessors_present; ++before)
      predecessors_present = std::ranges::binary_search(s.out_of_order, before) ||
                             std::ranges::find(unordered, before) != unordered.end();
    if (!predecessors_present) continue;
    state more = s;
    more.out_of_order.push_back(n);
    add(w, operations, more);
    extend(w, operations, overlap, std::move(more), n + 1);
  }
}

void consistent_cuts::add(const workloads::workload& w, std::span<const operation> operations,
                          state s) {
  const auto model = w.make_model();
  for (std::uint64_t i = 0; i < s.first_missing; ++i) model->apply(operations[i]);
  for (const std::uint64_t i : s.out_of_order) model->apply(operations[i]);
  by_digest_[model->digest()].push_back(std::move(s));
  ++states_;
}

bool consistent_cuts::allows(std::uint64_t digest, std::uint64_t acknowledged,
                             std::span<const std::uint64_t> out_of_order,
                             std::uint64_t invoked) const {
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return false;
  return std::ranges::any_of(found->second, [&](const state& s) {
    if (s.first_missing < acknowledged || s.first_missing > invoked ||
        (!s.out_of_order.empty() && s.out_of_order.back() >= invoked))
      return false;
    return std::ranges::all_of(out_of_order, [&](std::uint64_t a) {
      return a < s.first_missing || std::ranges::binary_search(s.out_of_order, a);
    });
  });
}

}  // namespace stele::explore
