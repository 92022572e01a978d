// A temporary folder for the pools, tapes and files of peers that a command creates.
#pragma once

#include <string>

namespace stele::cli {

// The default working folder: /dev/shm where the system has it, else the current folder.
std::string folder_in_memory();

// Creates a folder in `dir` and forks. Returns the folder's path in the child process, which runs
// the rest of the command. The parent waits for the child, removes the folder and ends with the
// child's status, even when the child was interrupted or killed. When both were killed, the next
// call for the same `dir` removes the folder, whose name has the parent's number. Must be called
// before any thread starts. Fails the command when `dir` is no directory or when no folder can be
// created in it.
std::string enter_scratch(const std::string& dir);

}  // namespace stele::cli
