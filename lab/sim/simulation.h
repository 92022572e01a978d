// A machine assembled from its parts, a tape, and the event queue that runs them.
//
// machine.h runs a simulation to its end and reports; crash.h stops one in the middle.
#pragma once

#include <sim/controller/controller.h>
#include <sim/core/thread.h>
#include <sim/design/kiln.h>

#include <memory>
#include <vector>

namespace stele::sim {

// Nonvolatile and volatile memory behind one interface, told apart by address.
class hybrid_memory final : public memory {
 public:
  hybrid_memory(std::unique_ptr<memory_system> nonvolatile_part,
                std::unique_ptr<memory_system> volatile_part)
      : nonvolatile(std::move(nonvolatile_part)), volatile_memory(std::move(volatile_part)) {}

  void submit(picoseconds now, const request& r) override {
    (r.address >= volatile_memory_at ? *volatile_memory : *nonvolatile).submit(now, r);
  }
  void barrier(picoseconds now, std::uint16_t source) override {
    nonvolatile->barrier(now, source);
  }
  std::size_t outstanding() const noexcept override {
    return nonvolatile->outstanding() + volatile_memory->outstanding();
  }

  const std::unique_ptr<memory_system> nonvolatile, volatile_memory;
};

class simulation {
 public:
  struct options {
    std::uint64_t seed = 1;
    kiln_mutant mutant = kiln_mutant::none;
    store_observer* observer = nullptr;
    bool track_values = false;
    std::function<void(unsigned thread, picoseconds now)> committed = [](unsigned, picoseconds) {};
  };

  // Whether the machine can run the tape, as far as that is known before a run: its accesses are
  // within the memories, and its logs are sound. Sets the tape's space. Precondition:
  // check_machine() has passed. Errors: invalid_argument, corrupt; those of the tape.
  [[nodiscard]] static result<> check(const machine_config& machine, feed& tape);
  // Errors: those of check(); invalid_argument, when a name in the configuration is unknown or the
  // design does not fit the machine.
  [[nodiscard]] static result<std::unique_ptr<simulation>> make(const machine_config& machine,
                                                                feed tape, options o);

  // Handles up to `max_events` events, none after `until` or `latest`. Returns false when no event
  // is left (until then).
  bool advance(std::size_t max_events, picoseconds until = never);
  // Call when no event is left. Finishes the work that the design has put off; then the tape must
  // be at its end. Errors: those of the tape; invalid_argument, when the run goes beyond `latest`,
  // or threads wait for each other and the tape is not at its end.
  [[nodiscard]] result<> finish();
  bool all_finished() const noexcept;

  // Everything that changes in a run (sim/archive.h). Reading, the simulation has just been made,
  // with the same machine, tape and seed; call run_checks() afterwards, and discard the simulation
  // after a fault. Preconditions: no event is being handled; the options have neither an observer
  // nor track_values.
  void visit_state(archive& a);

  event_queue events;
  machine_config machine;
  feed tape;
  std::unique_ptr<hybrid_memory> memories;
  std::unique_ptr<hierarchy> caches;
  std::unique_ptr<isolation_control> isolation;
  std::vector<std::unique_ptr<tlb>> tlbs;  // of each core; empty: the machine has none
  std::unique_ptr<design> persistence;
  kiln* kiln_design = nullptr;  // the design if it is Kiln, else null
  std::vector<std::unique_ptr<hardware_thread>> threads;

 private:
  simulation(machine_config m, feed t) : machine(std::move(m)), tape(std::move(t)) {}
  [[nodiscard]] result<> assemble(options o);

  std::unique_ptr<hardware_thread::environment> environment_;
};

}  // namespace stele::sim
