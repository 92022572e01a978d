// Checks the rights of the user whose script runs. Redis would check those of the script's caller,
// which is the module and may run everything.
#pragma once

#include "commands.h"

namespace stele::redis {

// During its life the caller of this command is the user whose script runs.
class script_caller {
 public:
  explicit script_caller(const call& c);
  ~script_caller();
  script_caller(const script_caller&) = delete;
  script_caller& operator=(const script_caller&) = delete;

 private:
  server& server_;
};

// Creates the command that denies. False: the server does not accept it.
bool create_denying_command(api::context* of);
// Whether the command is called by a script whose user may not run it.
bool is_denied_in_script(const server& in, api::filter_context* of);
// Replaces the filtered command by the one that denies.
void deny(api::filter_context* of);

}  // namespace stele::redis
