// Power failures of a machine with Kiln: the remaining content, its recovery, and whether the
// recovered state is allowed.
//
// A run is stopped at moments of simulated time. Each time, the contents of the nonvolatile cache
// and of memory are recovered as kiln::recovered() says. The result must be the state after some
// number of the transactions, in the order of their ends, that includes every acknowledged one.
// With relaxed order the acknowledgement comes later, and the rule is the same. A write to memory
// that is in progress and has no other copy is torn: each of its words is old or new. Behind a link
// it is whole if the device flushes it, and old if it has not reached the device.
//
// Contents are tracked line by line as the caches move them. The tape must carry bytes, and its
// stores must be in transactions that are isolated from each other.
#pragma once

#include <sim/simulation.h>

#include <span>
#include <string>
#include <vector>

namespace stele::sim {

struct crash_options {
  std::uint64_t crashes = 1000;  // at random moments over the whole run
  picoseconds at = never;        // if set: one crash, at this moment
  kiln_mutant mutant = kiln_mutant::none;
  std::uint64_t seed = 1;  // chooses moments and torn words
  std::size_t most_violations = 1;
  std::function<bool()> cancelled = [] { return false; };
};

struct crash_violation {
  picoseconds at = 0;
  std::string what;
};

struct crash_report {
  std::uint64_t crashes = 0, transactions = 0;
  std::uint64_t with_pending = 0, with_versions = 0, with_copies = 0,
                torn_lines = 0;  // with_*: crashes that found such lines; torn_lines: lines
  std::vector<crash_violation> violations;
  kiln_counts done;
};

// Of the writes in progress, which may be torn: a device behind a link flushes those that it has
// (with GPF), and those on the link are lost. The others stay torn.
void settle(nonvolatile_state& left, const memory_system& memory);

// Errors: those of the tape; invalid_argument (design not kiln, no isolation, a tape without
// bytes); cancelled.
[[nodiscard]] result<crash_report> crash_machine(const machine_config& machine,
                                                 std::span<const std::byte> tape,
                                                 const crash_options& o);
[[nodiscard]] result<crash_report> crash_machine(const machine_config& machine,
                                                 const std::string& tape, const crash_options& o);

// Generated transactions on few lines, with bytes: they conflict, rewrite lines often, and overflow
// sets.
struct crash_workload {
  unsigned threads = 4;
  std::uint64_t transactions = 300, lines = 96;
  unsigned max_stores = 12;     // of a transaction; each store has 8 to 64 bytes
  unsigned in_order_every = 5;  // every such transaction asks to commit in order
  // At most so many stores of a thread between two of its transactions, some of them flushed. They
  // make a tape that crash_machine() cannot judge.
  unsigned plain_stores = 0;
  std::uint64_t seed = 1;
};
std::vector<std::byte> make_tape(const crash_workload& l);

// Small machines of several geometries. Their caches have few lines, so that conflicts, evictions
// and overflows happen.
std::vector<machine_config> crash_machines();

// Runs every planted bug on the small machines.
struct mutant_verdict {
  kiln_mutant mutant;
  bool killed = false;
  std::string by;         // the violation, and the machine and load that found it
  std::uint64_t crashes;  // tried until the bug was found
};
std::vector<mutant_verdict> kill_mutants(std::uint64_t seed,
                                         const std::function<bool()>& cancelled);

}  // namespace stele::sim
