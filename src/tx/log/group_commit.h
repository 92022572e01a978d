// Commits of many threads in one ring, made durable together: one of those that wait writes for all.
//
// Records lie in the ring in the order they were appended. A thread may say that its record is durable only when all before it are: recovery
// reads a ring up to the first record that is not whole. So whoever writes, writes from the last durable position to the last record there is; the
// others wait for that, and mostly find theirs written. Group commit as in DeWitt et al., "Implementation Techniques for Main Memory Database
// Systems" (1984), section 5.2.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace stele::detail {

class group_commit {
 public:
  // Nothing waits in the ring; before the first record of a session.
  void start(std::uint64_t position) noexcept { durable_ = appended_ = position; }

  // Positions after the record that was appended last, and after the last durable one.
  void appended(std::uint64_t end) {
    const std::lock_guard hold(mutex_);
    appended_ = end;
  }
  struct range {
    std::uint64_t from, to;
  };
  range waiting() {
    const std::lock_guard hold(mutex_);
    return {durable_, appended_};
  }
  // Someone has made everything up to `position` durable.
  void hardened(std::uint64_t position) {
    const std::lock_guard hold(mutex_);
    durable_ = std::max(durable_, position);
    written_.notify_all();
  }

  // Returns when everything up to `position` is durable, which `write(range)` makes a range; false when that failed, for this thread or the one
  // that wrote for it. Nothing is tried again then.
  template <class Write>
  bool harden(std::uint64_t position, Write&& write) {
    std::unique_lock hold(mutex_);
    ++arrived_;
    while (durable_ < position && !failed_) {
      if (writing_) {
        written_.wait(hold);
        continue;
      }
      writing_ = true;
      gather(hold);
      write_all(hold, write);
    }
    return !failed_;
  }

 private:
  using clock = std::chrono::steady_clock;

  // Those who came together last time are on their way, most likely: they are waited for, for a part of what the write will take.
  void gather(std::unique_lock<std::mutex>& hold) {
    const auto until = clock::now() + write_time_ / 2;
    while (arrived_ < last_group_ && clock::now() < until) {
      hold.unlock();
      std::this_thread::yield();
      hold.lock();
    }
    last_group_ = arrived_;
    arrived_ = 0;
  }
  template <class Write>
  void write_all(std::unique_lock<std::mutex>& hold, Write&& write) {
    const range now{durable_, appended_};
    hold.unlock();
    const auto begin = clock::now();
    const bool done = write(now);
    const auto took = clock::now() - begin;
    hold.lock();
    write_time_ = took;
    writing_ = false;
    failed_ = failed_ || !done;
    if (done) durable_ = std::max(durable_, now.to);
    written_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable written_;
  std::uint64_t durable_ = 0, appended_ = 0;
  unsigned arrived_ = 0;     // since somebody last began to write
  unsigned last_group_ = 0;  // when they did
  clock::duration write_time_{0};
  bool writing_ = false, failed_ = false;
};

}  // namespace stele::detail
