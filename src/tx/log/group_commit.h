// Group commit: commits of many threads in one ring, made durable by one of the waiting threads.
//
// Records lie in the ring in the order they were appended. A record is durable only when all
// records before it are: recovery reads a ring up to the first record that is not whole. So the
// writing thread writes from the last durable position to the last appended record. The others
// wait, and mostly find that it has written their records. Source: DeWitt et al., "Implementation
// Techniques for Main Memory Database Systems" (1984), section 5.2.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace stele::detail {

class group_commit {
 public:
  // Called before the first record of a session, while the ring is empty.
  void reset(std::uint64_t position) noexcept {
    STELE_ASSERT_ALWAYS(durable_.load() == appended_.load() && !writing_.load());
    durable_.store(position);
    appended_.store(position);
  }

  // The positions after the last appended record (set by one thread at a time) and after the last
  // durable one.
  void set_appended(std::uint64_t end) noexcept {
    STELE_ASSERT(end > appended_.load(std::memory_order_relaxed));
    appended_.store(end, std::memory_order_release);
  }
  struct range {
    std::uint64_t from, to;
  };
  range pending_range() const noexcept {
    const std::uint64_t from = durable_.load(std::memory_order_acquire);
    return {from, std::max(from, appended_.load(std::memory_order_acquire))};
  }
  // Everything up to `position` has been made durable in another way.
  void set_durable(std::uint64_t position) noexcept {
    STELE_ASSERT(position <= appended_.load(std::memory_order_relaxed));
    advance_durable(position);
    end_round();
  }

  // Returns when everything up to `position` is durable; `write(range)` makes a range durable.
  // False: a write failed, this thread's or the one that it waited for. Nothing is retried then.
  template <class Write>
  bool make_durable(std::uint64_t position, Write&& write) {
    STELE_ASSERT(position <= appended_.load(std::memory_order_relaxed));  // default.md L1
    arrived_.fetch_add(1, std::memory_order_relaxed);
    for (;;) {
      // Read before the checks below, so that a round that ends after them is not slept through.
      const std::uint32_t round = rounds_.load(std::memory_order_acquire);
      if (failed_.load(std::memory_order_acquire)) return false;
      if (durable_.load(std::memory_order_acquire) >= position) return true;
      if (writing_.exchange(true, std::memory_order_acq_rel)) {
        if (planted(base::mutant::group_not_awaited)) return true;
        rounds_.wait(round, std::memory_order_acquire);
        continue;
      }
      if (durable_.load(std::memory_order_acquire) < position &&
          !failed_.load(std::memory_order_acquire))
        write_group(write);
      writing_.store(false, std::memory_order_release);
      end_round();
    }
  }

 private:
  using clock = std::chrono::steady_clock;

  // The threads of the last group are most likely on their way. Waits for them, for at most half
  // the time that a write takes.
  void wait_for_group() {
    const auto until = clock::now() + write_time_ / 2;
    while (arrived_.load(std::memory_order_relaxed) < last_group_size_ && clock::now() < until)
      std::this_thread::yield();
    last_group_size_ = arrived_.exchange(0, std::memory_order_relaxed);
  }
  template <class Write>
  void write_group(Write&& write) {
    wait_for_group();
    range now = pending_range();
    if (planted(base::mutant::group_from_appended)) now.from = now.to - 1;
    STELE_ASSERT(now.from < now.to);  // default.md L3
    const auto begin = clock::now();
    const bool done = write(now);
    write_time_ = clock::now() - begin;
    if (planted(base::mutant::group_appended_meanwhile)) now = pending_range();
    done ? advance_durable(now.to) : failed_.store(true, std::memory_order_release);
  }
  void advance_durable(std::uint64_t position) noexcept {
    std::uint64_t before = durable_.load(std::memory_order_relaxed);
    while (before < position &&
           !durable_.compare_exchange_weak(before, position, std::memory_order_acq_rel)) {
    }
    STELE_ASSERT(durable_.load(std::memory_order_relaxed) >= position);
  }
  void end_round() noexcept {
    rounds_.fetch_add(1, std::memory_order_acq_rel);
    rounds_.notify_all();
  }

  std::atomic<std::uint64_t> durable_{0}, appended_{0};
  std::atomic<std::uint32_t> rounds_{0};   // rounds that have ended; waiting threads sleep on it
  std::atomic<std::uint32_t> arrived_{0};  // since the last write began
  std::atomic<bool> writing_{false}, failed_{false};
  // How many threads had arrived when the last write began. This and write_time_ are the writing
  // thread's.
  std::uint32_t last_group_size_ = 0;
  clock::duration write_time_{0};
};

}  // namespace stele::detail
