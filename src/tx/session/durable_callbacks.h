// The callbacks of commits that wait to be told that their commit is durable.
//
// Each is called once: when its commit is durable, or with how the pool ended. Callbacks run
// without the mutex, so that one may add another. Thread-safe.
#pragma once

#include <base/mutant.h>
#include <stele/error.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <new>

namespace stele::detail {

class durable_callbacks {
 public:
  using callback = std::function<void(result<>)>;

  // `waiting`: whether there are any. Whoever makes commits durable reads it first.
  explicit durable_callbacks(std::atomic<bool>& waiting) noexcept : waiting_(waiting) {}

  void add(std::uint64_t txid, callback call);
  // Calls those of commits that are durable. Asked under the mutex: the answer says nothing of a
  // commit that returns later, so the callbacks must have been there before it.
  template <class Through>
  void call_durable(Through&& durable_through) noexcept {
    const bool early = planted(base::mutant::told_early);
    std::uint64_t through = early ? durable_through() : 0;
    std::unique_lock hold(mutex_);
    if (!early) through = durable_through();
    call(std::move(hold), through, {});
  }
  // Calls all, with how their pool ended.
  void end(const result<>& how) noexcept;

  // An error for callbacks. Falls back to a message that needs no memory.
  template <class Sentence>
  static error make_error(errc code, Sentence&& sentence) noexcept {
    try {
      return {code, sentence()};
    } catch (const std::bad_alloc&) {
      return {code, "out of memory"};  // short: std::string does not allocate
    }
  }

 private:
  void call(std::unique_lock<std::mutex> hold, std::uint64_t through, const result<>& how) noexcept;

  std::mutex mutex_;
  std::multimap<std::uint64_t, callback> by_txid_;
  std::atomic<bool>& waiting_;  // changes under mutex_
};

}  // namespace stele::detail
