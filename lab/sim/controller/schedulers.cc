// The table of schedulers.
#include <base/check.h>
#include <sim/controller/schedulers.h>

namespace stele::sim {
namespace {

constexpr scheduler_kind own[] = {
    {"fr-fcfs", false, false, make_fr_fcfs}, {"fcfs", false, false, make_fcfs},
    {"strict", true, true, make_strict},     {"rule1", true, true, make_rule1},
    {"rule2", true, true, make_rule2},       {"rules", true, true, make_rules},
    {"ideal", false, true, make_fr_fcfs},  // ignores barriers
    {"bare", true, true, make_bare},         {"commit_first", true, true, make_commit_first},
};

}  // namespace

std::span<const scheduler_kind> scheduler_kinds() noexcept {
  return own;
}

kinds<scheduler_kind>& schedulers() {
  static kinds<scheduler_kind> all(own);
  return all;
}

result<const scheduler_kind*> find_scheduler(std::string_view name) {
  if (const scheduler_kind* k = schedulers().find(name)) return k;
  return base::fail(errc::invalid_argument, "memory: there is no scheduler \"" + std::string(name) +
                                                "\"; use one of " + schedulers().listed());
}

}  // namespace stele::sim
