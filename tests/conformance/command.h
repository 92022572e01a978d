// The `stele` command as a user runs it.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace stele::testing {

struct command_outcome {
  int status = -1;   // the exit status; -1: it did not exit
  std::string said;  // standard output and standard error
};

inline command_outcome run_shell(const std::string& line) {
  command_outcome o;
  FILE* const out = ::popen(fmt::format("{{ {}; }} 2>&1", line).c_str(), "r");
  std::array<char, 4096> some;
  for (std::size_t n; (n = std::fread(some.data(), 1, some.size(), out)) != 0;)
    o.said.append(some.data(), n);
  const int ended = ::pclose(out);
  o.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return o;
}

inline command_outcome run_command(const std::string& arguments) {
  return run_shell(STELE_COMMAND " " + arguments);
}

}  // namespace stele::testing
