// File systems for one test: a child process has its own mount namespace, which disappears with it.
//
// Needs the right to mount (usually root); can_mount() tests for it. Call enter_own_mounts() in a
// child process only.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <tests/conformance/child.h>

#include <string>

namespace stele::testing {

// After this call, no other process sees the mounts of this process.
inline bool enter_own_mounts() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}
inline bool mount_memory(const std::string& directory, const std::string& size) {
  return ::mount("none", directory.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}
inline bool make_read_only(const std::string& directory) {
  return ::mount(nullptr, directory.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

inline bool can_mount() {
  child trying([](const word_sender& send) { send(enter_own_mounts() ? 1 : 0); });
  std::uint64_t can = 0;
  return trying.receive(can) && can == 1;
}

// Runs body(directory) in a process that has a file system of this size mounted at `directory`. The
// body's EXPECTs count.
template <class Body>
void on_own_file_system(const std::string& directory, const std::string& size, Body&& body) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root";
  child process([&](const word_sender&) {
    ASSERT_TRUE(enter_own_mounts() && mount_memory(directory, size));
    body();
  });
  EXPECT_EQ(process.wait(), 0) << "what was expected there did not hold; see above";
}

}  // namespace stele::testing
