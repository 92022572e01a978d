// The server process as the module knows it: one object, which every call carries. Functions that
// Redis calls get it from this_server(); nothing else does.
#pragma once

#include <base/assert.h>

#include "counted_memory.h"
#include "event_loop.h"
#include "execution.h"
#include "filter_state.h"
#include "keys.h"
#include "load_state.h"
#include "module_api.h"
#include "waiting_clients.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

namespace stele::redis {

struct call;

// A script that a command of the module has started.
struct running_script {
  const call& caller;
  api::text* user = nullptr;        // who has called it; null: may do everything
  std::uint64_t newest_commit = 0;  // of those that it has read
};

// How the server differs from the one whose commands the module knows.
struct server_difference {
  bool is_newer = false;
  std::unordered_set<std::string> refused;  // commands, in lower case
};

struct server {
  // Before load() has opened the pool, null.
  std::unique_ptr<redis::keys> keys;
  std::unique_ptr<waiting_clients> waiting;
  std::string path;
  std::array<api::type*, item_kinds + 1> types{};  // by item_kind
  server_difference difference;

  redis::startup startup;
  load_state load;
  event_loop loop;
  executions commands;
  std::optional<running_script> script;
  std::optional<error> copy_refusal;  // why Redis could not copy a value for COPY

  filter_bypass bypass;
  script_debugging debugging = script_debugging::off;
  rights_cache rights;

  counted_memory memory;      // of the pool, for the server's limit
  std::uint64_t evicted = 0;  // keys, for room in the pool

  // Scripts that are not the module's commands can be debugged, but the module cannot check the
  // rights of their callers.
  bool leaves_scripts_to_redis() const noexcept {
    return debugging == script_debugging::on && !rights.is_restricted();
  }
  api::type* type_of(item_kind kind) const noexcept {
    STELE_ASSERT(kind >= item_kind::string && kind <= item_kind::sorted_set);
    return types[static_cast<std::size_t>(kind)];
  }
  // If the server has a memory limit: what the pool has in use counts.
  void count_memory() {
    if (memory.is_on()) memory.set(keys->used_bytes());
  }
};

// For functions that Redis calls without a call of ours.
server& this_server() noexcept;

}  // namespace stele::redis
