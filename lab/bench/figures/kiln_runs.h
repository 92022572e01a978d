// Runs tapes on simulated machines for the figures of Kiln's evaluation: each run once in a
// process, several in parallel.
//
// A run is a function of its tape and its machine, so figures that need the same run share it. The
// tape is a native one (workloads/apart/native.h). It begins with plain stores to the last part of
// the structure's memory, which leave the caches as filling would have left them. A third of the
// transactions warms up the machine.
#pragma once

#include <bench/figures/sweep.h>
#include <sim/config.h>
#include <sim/result.h>

#include <span>

namespace stele::bench::kiln {

// A tape to record.
struct tape_spec {
  std::string workload;
  std::size_t element_bytes = 512;
  std::uint64_t keys = 0, transactions = 0, written_before = 0;
  unsigned threads = 16;
  bool isolated = false;  // each thread has its own structure; no isolation is needed
};

struct run_spec {
  tape_spec tape;
  sim::machine_config machine;
};

// configs/NAME.toml. Errors: those of the file.
[[nodiscard]] result<sim::machine_config> machine_named(const std::string& name);

// Runs the places that have not run in this process yet. Returns false when interrupted. Errors:
// those of tapes and machines.
[[nodiscard]] result<bool> run_all(std::span<const run_spec> places, const sweep_options& o);

// The result of a run; null when it has not run. Thread-safe, as is run_all().
const sim::run_result* result_of(const run_spec& p, const sweep_options& o);

}  // namespace stele::bench::kiln
