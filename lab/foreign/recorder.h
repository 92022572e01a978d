// Runs a program under valgrind with the tool of recorder/, which records what it does to its pool.
//
// The program runs as it always does, on its own pool, ten to a hundred times slower. Its standard
// output is recorded and not shown.
#pragma once

#include <stele/error.h>

#include <string>
#include <vector>

namespace stele::foreign {

struct record_settings {
  std::vector<std::string> program;  // with its arguments
  std::string pool;                  // empty: the first file that it maps shared and writable
  std::string flush = "clwb";        // the best that the program is told of
  std::string tool_folder;           // where the tool is
  std::string folder;                // for what is needed during the run
  std::string recording;             // the file that is written
};

// Returns how the program ended when that was not exit status 0, in words; else nothing. Errors:
// not_found (no valgrind, tool, program), unsupported (an instruction that valgrind does not know),
// io (valgrind did not start).
[[nodiscard]] result<std::string> record(const record_settings& s);

}  // namespace stele::foreign
