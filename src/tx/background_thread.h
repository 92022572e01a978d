// A thread that does a mechanism's work when it is woken.
#pragma once

#include <base/assert.h>
#include <base/forks.h>

#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace stele::detail {

class background_thread {
 public:
  background_thread() = default;
  ~background_thread() { stop(); }
  background_thread(const background_thread&) = delete;
  background_thread& operator=(const background_thread&) = delete;

  // After each wake() the thread calls step(), again for as long as more() says so. When a step
  // runs out of memory, its work is left to commits, which report the error to their callers. If
  // the system has no thread, none runs.
  template <class Step, class More>
  void start(Step step, More more) {
    STELE_ASSERT_ALWAYS(!runs());
    STELE_ASSERT_ALWAYS(!stopping_.load());  // one that was stopped would end at once
    STELE_ASSERT_ALWAYS(!mark_.is_of_parent());
    try {
      thread_ = std::thread([this, step = std::move(step), more = std::move(more)] {
        for (;;) {
          wake_requested_.wait(false);
          // Cleared before stopping_ is read: stop() sets stopping_ first, so its request is not
          // lost.
          wake_requested_.store(false);
          if (stopping_.load()) return;
          do {
            try {
              step();
            } catch (const std::bad_alloc&) {
            }
            // Cleared before more() is asked, so that a request raised meanwhile is seen.
            busy_.store(false);
          } while (more() && !stopping_.load());
        }
      });
    } catch (const std::system_error&) {
    }
  }
  template <class Step>
  void start(Step step) {
    start(std::move(step), [] { return false; });
  }
  bool runs() const noexcept { return thread_.joinable(); }

  // Wakes the thread once for each piece of work: commits that come meanwhile must not pay for a
  // locked instruction each.
  void wake() noexcept {
    if (!runs() || busy_.load(std::memory_order_relaxed)) return;
    busy_.store(true, std::memory_order_relaxed);
    request();
  }
  // Waits for the end of the step that runs. What step() and more() use must still exist.
  void stop() {
    if (!runs()) return;
    if (mark_.is_of_parent()) return base::forget(thread_);
    STELE_ASSERT_ALWAYS(thread_.get_id() != std::this_thread::get_id());
    stopping_.store(true);
    request();
    thread_.join();
  }

 private:
  void request() noexcept {
    wake_requested_.store(true);
    wake_requested_.notify_one();
  }

  std::thread thread_;
  const base::process_mark mark_;
  std::atomic<bool> wake_requested_{false}, stopping_{false};
  alignas(64) std::atomic<bool> busy_{false};
};

}  // namespace stele::detail
