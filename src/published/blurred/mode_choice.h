// Chooses which of its two modes, blurred or vcbp, the mechanism adaptive runs in. Source: Lu, Shu
// and Sun, "Blurred Persistence" (2016), sections 3.4 and 4.1.
//
// Static choice: by the medium's latency and a threshold. Dynamic choice: times a number of
// transactions in each mode and takes the faster mode. It measures again when the rate has differed
// for a while, which counts as a new workload. Time that commits wait for bulk persistence is left
// out: both modes need it, but a short warm-up may or may not contain it. Thread-safe. Under the
// explorer the clock is fake: a run is a function of its plan, and the modes win in turn.
#pragma once

#include <base/assert.h>
#include <stele/adaptive_options.h>
#include <stele/pool.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

namespace stele::detail {

class mode_choice {
 public:
  mode_choice(const adaptive_options& o, std::uint32_t media_latency_ns, bool fake_clock)
      : warm_up_(std::max<std::uint64_t>(o.warm_up, 1)),
        fixed_(o.threshold_ns != 0),
        fake_clock_(fake_clock),
        blocks_(!fixed_ || media_latency_ns <= o.threshold_ns) {
    start_clock();
  }

  bool wants_blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }
  // A thread reports its commits in batches of this size.
  std::uint64_t batch() const noexcept { return std::clamp<std::uint64_t>(warm_up_ / 8, 1, 64); }

  void committed(std::uint64_t commits) {
    if (fixed_) return;
    STELE_ASSERT(commits != 0);
    const std::uint64_t before = commits_.fetch_add(commits, std::memory_order_relaxed);
    const std::uint64_t uncounted = warm_up_ / 8;  // the first transactions pay for the switch
    if (before < uncounted && before + commits >= uncounted) start_clock();
    if (before < warm_up_ && before + commits >= warm_up_) end_window();
  }

  // Runs work whose time counts for neither mode.
  template <class Work>
  auto exclude_time(Work&& work) {
    const std::int64_t begin = now_ns();
    auto done = work();
    excluded_ns_.fetch_add(now_ns() - begin, std::memory_order_relaxed);
    return done;
  }

 private:
  enum class phase : std::uint8_t { trying_blurred, trying_vcbp, chosen };
  // Windows in the chosen mode before both modes are measured again; doubles while the answer is
  // the same.
  static constexpr unsigned min_windows = 100;
  static constexpr unsigned max_windows = 1600;
  // Windows with drift in a row before the workload counts as a new one.
  static constexpr unsigned drift_window_limit = 4;
  static constexpr double drift_factor = 1.3;  // times faster or slower than when it was chosen

  std::int64_t now_ns() const {
    if (fake_clock_) return 0;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void start_clock() {
    excluded_ns_.store(0, std::memory_order_relaxed);
    began_ns_.store(now_ns(), std::memory_order_relaxed);
  }
  double window_ns() {
    if (fake_clock_) return (phase_ == phase::trying_blurred) == (rounds_ % 2 == 0) ? 1 : 2;
    return static_cast<double>(
        std::max<std::int64_t>(1, now_ns() - began_ns_.load(std::memory_order_relaxed) -
                                      excluded_ns_.load(std::memory_order_relaxed)));
  }

  void end_window() {
    const std::lock_guard hold(mutex_);
    STELE_ASSERT(!fixed_);
    const double ns = window_ns();
    STELE_ASSERT(ns > 0);
    switch (phase_) {
      case phase::trying_blurred:
        blurred_ns_ = ns;
        enter_phase(phase::trying_vcbp, false);
        break;
      case phase::trying_vcbp:
        choose(ns);
        break;
      case phase::chosen:
        check_drift(ns);
        break;
    }
    start_clock();  // needed for warm_up_ < 8: committed() leaves no commits out then
    commits_.store(0, std::memory_order_relaxed);
  }
  void enter_phase(phase p, bool blocks) {
    phase_ = p;
    blocks_.store(blocks, std::memory_order_relaxed);
  }
  void choose(double vcbp_ns) {
    STELE_ASSERT(!wants_blocks() && blurred_ns_ > 0);  // adaptive.md, the second window
    const bool blocks = blurred_ns_ <= vcbp_ns;
    windows_before_retry_ = rounds_ != 0 && blocks == chosen_blocks_
                                ? std::min(windows_before_retry_ * 2, max_windows)
                                : min_windows;
    chosen_blocks_ = blocks;
    // adaptive.md: the 100 windows double, up to 1600.
    STELE_ASSERT(windows_before_retry_ >= min_windows && windows_before_retry_ <= max_windows);
    expected_ns_ = std::min(blurred_ns_, vcbp_ns);
    windows_ = drifted_windows_ = 0;
    ++rounds_;
    enter_phase(phase::chosen, blocks);
  }
  void check_drift(double ns) {
    STELE_ASSERT(wants_blocks() == chosen_blocks_ && rounds_ != 0 && expected_ns_ > 0);
    ++windows_;
    drifted_windows_ = ns > expected_ns_ * drift_factor || ns * drift_factor < expected_ns_
                           ? drifted_windows_ + 1
                           : 0;
    STELE_ASSERT(drifted_windows_ <= windows_);
    const bool again =
        fake_clock_ ? windows_ == 2
                    : windows_ >= windows_before_retry_ && drifted_windows_ >= drift_window_limit;
    if (again) enter_phase(phase::trying_blurred, true);
  }

  const std::uint64_t warm_up_;
  const bool fixed_, fake_clock_;
  std::atomic<bool> blocks_;
  std::atomic<std::uint64_t> commits_{0};  // of this window
  std::atomic<std::int64_t> began_ns_{0}, excluded_ns_{0};

  std::mutex mutex_;  // guards everything below
  phase phase_ = phase::trying_blurred;
  double blurred_ns_ = 0, expected_ns_ = 0;
  bool chosen_blocks_ = true;
  unsigned rounds_ = 0, windows_ = 0, drifted_windows_ = 0, windows_before_retry_ = min_windows;
};

}  // namespace stele::detail
