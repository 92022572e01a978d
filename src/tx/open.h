// The steps of opening a pool, for those who bring their own memory and media (the explorer).
#pragma once

#include <media/tape.h>
#include <tx/mechanism/catalog.h>
#include <tx/runtime.h>

namespace stele::detail {

// `logs`: of the mechanism that is recorded.
media::tape_options tape_options_of(const format::pool_header& h, log_kind logs);

// Recovers the pool if its session word says that nobody closed it; by the mechanism whose logs it
// has.
[[nodiscard]] result<> recover_if_open(pool_state& state, const media_choice& media);

// Before long work on the whole pool. Errors: nested, when the calling thread runs a transaction,
// for which `what` would wait; poisoned; corrupt, when the file is shorter than the pool.
[[nodiscard]] result<> begin_maintenance(runtime& r, const char* what);

// What commits survive where a path lies, by the medium that a program gets which asks for none.
std::string durability_of_path(const std::string& path);

// A pool by its path, as pool<Root>::open says, its root not looked at.
[[nodiscard]] result<std::unique_ptr<runtime>> open_path(const std::string& path,
                                                         const pool_options& options);

// Recovery, heap, engine: a pool in use, its root not looked at.
[[nodiscard]] result<std::unique_ptr<runtime>> open_on(std::unique_ptr<pool_state> state,
                                                       const media_choice& media,
                                                       const mechanism_entry& mechanism,
                                                       const pool_options& options);

}  // namespace stele::detail
