// A copy of a pool in use, to a file that somebody else names. See backup.cc.
#pragma once

#include <pool/new_file.h>
#include <stele/progress.h>

namespace stele::detail {

class runtime;

// Writes the copy and publishes the file. Contract and errors: pool<Root>::backup.
[[nodiscard]] result<> back_up_to(runtime& r, storage::new_file file, const progress& on_progress);

}  // namespace stele::detail
