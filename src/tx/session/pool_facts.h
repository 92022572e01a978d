// What is fixed of an open pool: options, and what follows from them and from the mechanism.
#pragma once

#include <stele/pool.h>
#include <tx/engine.h>

#include <string>
#include <utility>

namespace stele::detail {

struct pool_facts {
  // `remapped`: home is not at the addresses that the user sees.
  pool_facts(const pool_options& wanted, const engine::traits& what, bool remapped,
             std::string mechanism_in_force, durability_level level)
      : policy(wanted.policy),
        home_is_remapped(remapped),
        in_place(policy != concurrency::stm && what.stores_in_place && !remapped),
        wants_to_defer(wanted.engine.defer_ordered == deferral::always),
        defers_ordered(what.defers_ordered && wants_to_defer),
        tells_ordered(defers_ordered || what.tells_ordered),
        options(wanted),
        mechanism(std::move(mechanism_in_force)),
        durability(level) {}

  const concurrency policy;
  const bool home_is_remapped;
  // Stores go home as they are made: with no crash protection and one writer, a write set would
  // only cost time.
  const bool in_place;
  // Ordered commits shall wait in memory, though the mechanism may have none that do: a fence is a
  // sync, or the options say so.
  const bool wants_to_defer;
  const bool defers_ordered;
  const bool tells_ordered;    // an ordered commit differs from a durable one
  const pool_options options;  // as they were given
  const std::string mechanism;
  const durability_level durability;
};

}  // namespace stele::detail
