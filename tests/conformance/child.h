// A child process that works on a pool and dies, and the words that it has sent to its parent.
//
// The child runs `work(send)` and leaves by _exit, so no destructor closes its pool; or the parent
// kills it after some number of words. A word has at most 8 bytes. Words reach the parent even when
// the child is killed right after sending them.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

namespace stele::testing {

using word_sender = std::function<void(std::uint64_t)>;

class child {
 public:
  explicit child(const std::function<void(const word_sender&)>& work) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) run(work, ends[0], ends[1]);
    ::close(ends[1]);
    from_ = ends[0];
  }
  ~child() {
    if (pid_ > 0) kill();
    ::close(from_);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  pid_t pid() const noexcept { return pid_; }

  // Receives the next word; false when the child has ended.
  bool receive(std::uint64_t& word) { return ::read(from_, &word, sizeof word) == sizeof word; }

  // Kills the child without warning. Returns the last word that it sent, or `otherwise`.
  std::uint64_t kill_and_drain(std::uint64_t otherwise) {
    kill();
    return drain(otherwise);
  }
  std::uint64_t drain(std::uint64_t otherwise) {
    for (std::uint64_t word; receive(word);) otherwise = word;
    return otherwise;
  }
  // Waits until the child ends. Returns its exit status, or 128 + signal.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  [[noreturn]] static void run(const std::function<void(const word_sender&)>& work, int read_end,
                               int write_end) {
    ::close(read_end);
    try {
      work([&](std::uint64_t word) {
        if (::write(write_end, &word, sizeof word) != sizeof word) ::_exit(3);
      });
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
      ::_exit(2);
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }

  pid_t pid_ = -1;
  int from_ = -1;
};

}  // namespace stele::testing
