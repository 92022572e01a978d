// The rights of the user who has called a script. Redis asks whether the caller of a script may run
// what the script calls; the module calls the script, and may run everything. So the module asks.
#pragma once

#include "commands.h"

namespace stele::redis {

// For its time, the caller of this command is the user whose script runs.
class script_caller {
 public:
  explicit script_caller(const call& c);
  ~script_caller();
  script_caller(const script_caller&) = delete;
  script_caller& operator=(const script_caller&) = delete;

 private:
  server& server_;
};

// Makes the command that denies. False: the server does not take it.
bool create_denying_command(api::context* of);
// Whether the command is called by a script whose user may not run it.
bool is_denied_in_script(const server& in, api::filter_context* of);
// Makes the filtered command the one that denies.
void deny(api::filter_context* of);

}  // namespace stele::redis
