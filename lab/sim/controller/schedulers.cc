// The table of schedulers.
#include <base/check.h>
#include <sim/controller/schedulers.h>

namespace stele::sim {
namespace {

constexpr scheduler_kind kinds[] = {
    {"fr-fcfs", false, false, make_fr_fcfs}, {"fcfs", false, false, make_fcfs},
    {"strict", true, true, make_strict},     {"rule1", true, true, make_rule1},
    {"rule2", true, true, make_rule2},       {"rules", true, true, make_rules},
    {"ideal", false, true, make_fr_fcfs},  // ignores barriers
    {"bare", true, true, make_bare},         {"commit_first", true, true, make_commit_first},
};

}  // namespace

std::span<const scheduler_kind> scheduler_kinds() noexcept {
  return kinds;
}

result<const scheduler_kind*> find_scheduler(std::string_view name) {
  std::string known;
  for (const scheduler_kind& k : kinds) {
    if (name == k.name) return &k;
    known += (known.empty() ? "" : ", ") + std::string(k.name);
  }
  return base::fail(errc::invalid_argument, "memory: there is no scheduler \"" + std::string(name) +
                                                "\"; use one of " + known);
}

}  // namespace stele::sim
