// Runs a body in a child process: it may end by a signal, and the caller goes
// on.
#pragma once

#include <stele/error.h>

#include <functional>
#include <string>

namespace stele::explore {

struct child_output {
  std::string text;   // what the body returned; empty if the child died
  std::string death;  // how the child died, as a sentence; empty if it did not
};
// The child has only the calling thread and ends without destructors of static
// objects. Errors: io, if there is no process or pipe.
[[nodiscard]] result<child_output> output_of_child(const std::function<std::string()>& body);

}  // namespace stele::explore
