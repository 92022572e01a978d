// Runs of tapes on simulated machines, as the figures of Kiln's evaluation need them: each once in
// a process, several at a time.
//
// A run is a function of its tape and its machine, so figures that want the same one share it. The
// tape is a native one (workloads/native.h) that begins with plain stores to the last part of the
// structure's memory, as filling it would have left the caches; a third of its transactions warms
// the machine up.
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
  bool isolated = false;  // each thread has a structure of its own, so that nothing need keep their
                          // transactions apart
};

struct run_spec {
  tape_spec tape;
  sim::machine_config machine;
};

// configs/NAME.toml. Errors: those of the file.
[[nodiscard]] result<sim::machine_config> machine_named(const std::string& name);

// Runs what has not run yet in this process. False: interrupted. Errors: those of tapes and
// machines.
[[nodiscard]] result<bool> run_all(std::span<const run_spec> places, const sweep_options& o);

// Nothing where it has not run. Thread-safe, as is run_all().
const sim::run_result* result_of(const run_spec& p, const sweep_options& o);

}  // namespace stele::bench::kiln
