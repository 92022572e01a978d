// The order of a machine's parts in a checkpoint, and what must hold between them.
#include <sim/simulation.h>

#include <array>

namespace stele::sim {

void simulation::visit_state(archive& a) {
  const std::array parts = {memories->nonvolatile.get(), memories->volatile_memory.get()};
  for (memory_system* m : parts) m->name_parts(a);
  caches->name_parts(a);
  for (auto& t : tlbs) t->name_parts(a);
  persistence->name_parts(a);
  for (auto& t : threads) t->name_parts(a);
  tape.visit_state(a);
  for (memory_system* m : parts) m->visit_state(a);
  caches->visit_state(a);
  for (auto& t : tlbs) t->visit_state(a, static_cast<unsigned>(threads.size()));
  isolation->visit_state(a);
  persistence->visit_state(a);
  for (auto& t : threads) t->visit_state(a);
  events.visit_state(a);
  a.later([this, &a] {
    for (unsigned t = 0; t < threads.size(); ++t) {
      const bool begun = threads[t]->has_begun();
      a.require((begun || !isolation->speculative(t)) &&
                    (!begun || kiln_design == nullptr || kiln_design->is_running(t)),
                "a thread and its transaction are not at the same place");
    }
  });
}

}  // namespace stele::sim
