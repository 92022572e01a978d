// The factory functions of all schedulers, for the table in schedulers.cc. Each is defined in its
// scheduler's file.
#pragma once

#include <sim/controller/scheduler.h>

namespace stele::sim {

using scheduler_maker = std::unique_ptr<scheduler>(const channel_state&, const memory_config&,
                                                   const epoch_tracker&);

scheduler_maker make_fr_fcfs, make_fcfs;
// Persist barriers (barriers.cc).
scheduler_maker make_strict, make_rule1, make_rule2, make_rules;
scheduler_maker make_bare,
    make_commit_first;  // wrong on purpose, for tests that must detect them

}  // namespace stele::sim
