// Enumerating the states and reckoning their digests.
#include <explore/downsets.h>

#include <algorithm>

namespace stele::explore {

using workloads::operation;

downsets::downsets(const workloads::workload& w, std::span<const operation> operations, const overlaps& overlap) {
  for (std::uint64_t missing = 0; missing <= operations.size(); ++missing) {
    add(w, operations, {missing, {}});
    extend(w, operations, overlap, {missing, {}}, missing + 1);
  }
}

// Adds the states that have one more operation from `next` on. An operation may be there if those before it that had ended
// when it began are.
void downsets::extend(const workloads::workload& w, std::span<const operation> operations, const overlaps& overlap, state s, std::uint64_t next) {
  for (std::uint64_t n = next; n < operations.size(); ++n) {
    const auto& unordered = overlap[n];
    if (std::ranges::find(unordered, s.missing) == unordered.end()) break;  // later ones began later still
    bool founded = true;
    for (std::uint64_t before = s.missing + 1; before < n && founded; ++before)
      founded = std::ranges::binary_search(s.beyond, before) || std::ranges::find(unordered, before) != unordered.end();
    if (!founded) continue;
    state more = s;
    more.beyond.push_back(n);
    add(w, operations, more);
    extend(w, operations, overlap, std::move(more), n + 1);
  }
}

void downsets::add(const workloads::workload& w, std::span<const operation> operations, state s) {
  const auto model = w.make_model();
  for (std::uint64_t i = 0; i < s.missing; ++i) model->apply(operations[i]);
  for (const std::uint64_t i : s.beyond) model->apply(operations[i]);
  by_digest_[model->digest()].push_back(std::move(s));
  ++states_;
}

bool downsets::allows(std::uint64_t digest, std::uint64_t acknowledged, std::span<const std::uint64_t> beyond, std::uint64_t invoked) const {
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return false;
  return std::ranges::any_of(found->second, [&](const state& s) {
    if (s.missing < acknowledged || s.missing > invoked || (!s.beyond.empty() && s.beyond.back() >= invoked)) return false;
    return std::ranges::all_of(beyond, [&](std::uint64_t a) { return a < s.missing || std::ranges::binary_search(s.beyond, a); });
  });
}

}  // namespace stele::explore
