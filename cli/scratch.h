// A folder for what a command makes and nobody keeps: pools, tapes, files of peers.
#pragma once

#include <string>

namespace stele::cli {

// Where a command works that is told no folder: in memory, where the system has that; else in the
// current folder.
std::string folder_in_memory();

// A fresh folder in `dir`, in which the command goes on, as a child process. The process that was
// called waits for it, removes the folder and ends as the child did: also when the child was
// interrupted or killed. Called before there are threads. Fails the command when `dir` is no
// directory or takes no folder.
std::string enter_scratch(const std::string& dir);

}  // namespace stele::cli
