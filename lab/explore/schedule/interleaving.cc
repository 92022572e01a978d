// Enumerates orders and computes the digests that they lead to.
#include <explore/schedule/interleaving.h>

#include <algorithm>

namespace stele::explore {

using workloads::operation;

bool interleavings::allows(std::span<const operation> operations, const precedence& before,
                           std::uint64_t digest, std::uint32_t must, std::uint32_t may) {
  const auto [from, to] = outcomes_of(operations, before).equal_range(digest);
  return std::any_of(
      from, to, [&](const auto& o) { return (must & ~o.second) == 0 && (o.second & ~may) == 0; });
}

std::uint32_t interleavings::operations_in(std::span<const operation> operations,
                                           const precedence& before, std::uint64_t digest) {
  const outcomes& all = outcomes_of(operations, before);
  const auto found = all.find(digest);
  return found == all.end() ? 0 : found->second;
}

const interleavings::outcomes& interleavings::outcomes_of(std::span<const operation> operations,
                                                          const precedence& before) {
  key k;
  for (std::size_t i = 0; i < operations.size(); ++i)
    k.words.insert(k.words.end(), {static_cast<std::uint64_t>(operations[i].what), operations[i].a,
                                   operations[i].b, before[i]});
  auto [at, fresh] = known_.try_emplace(std::move(k));
  if (!fresh) return at->second;
  std::vector<unsigned> order;
  extend(operations, before, order, 0, at->second);
  return at->second;
}

void interleavings::extend(std::span<const operation> operations, const precedence& before,
                           std::vector<unsigned>& order, std::uint32_t in, outcomes& all) {
  const auto model = workload_.make_model();
  for (const operation& op : sequential_) model->apply(op);
  for (const unsigned i : order) model->apply(operations[i]);
  const std::uint64_t digest = model->digest();
  const auto [from, to] = all.equal_range(digest);
  if (std::none_of(from, to, [in](const auto& o) { return o.second == in; }))
    all.emplace(digest, in);
  if (auto [path, fresh] = paths_.try_emplace(digest); fresh) {
    path->second = sequential_;
    for (const unsigned i : order) path->second.push_back(operations[i]);
  }
  for (unsigned i = 0; i < operations.size(); ++i) {
    if ((in >> i & 1) != 0 || (before[i] & ~in) != 0) continue;
    order.push_back(i);
    extend(operations, before, order, in | 1u << i, all);
    order.pop_back();
  }
}

run_history* interleavings::history(std::uint64_t digest) {
  if (const auto known = histories_.find(digest); known != histories_.end()) return &known->second;
  const auto path = paths_.find(digest);
  if (path == paths_.end()) return nullptr;
  run_history& t = histories_[digest];
  t.operations = path->second;
  const auto model = workload_.make_model();
  t.digests.push_back(model->digest());
  for (const operation& op : t.operations) {
    model->apply(op);
    t.digests.push_back(model->digest());
  }
  return &t;
}

}  // namespace stele::explore
