// Which of its two modes adaptive runs in. Source: Lu, Shu and Sun, "Blurred Persistence" (2016), sections 3.4 and 4.1.
//
// Static: by the medium's latency and a threshold. Dynamic: so many transactions in each mode, timed, then the better one;
// again when the rate has changed for a while, which is taken for another workload. Time that commits spend waiting for
// bulk persistence is left out: both modes owe it, but a short warm-up may or may not meet it. Thread-safe. For the
// explorer the clock is a made-up one: a run is a function of its plan, and the modes win in turn.
#pragma once

#include <stele/pool.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

namespace stele::detail {

class mode_choice {
 public:
  mode_choice(const adaptive_options& o, std::uint32_t media_latency_ns, bool made_up_clock)
      : warm_up_(std::max<std::uint64_t>(o.warm_up, 1)), fixed_(o.threshold_ns != 0), made_up_(made_up_clock), blocks_(!fixed_ || media_latency_ns <= o.threshold_ns) {
    start_clock();
  }

  bool wants_blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }
  // A thread tells of its commits so many at a time.
  std::uint64_t batch() const noexcept { return std::clamp<std::uint64_t>(warm_up_ / 8, 1, 64); }

  void committed(std::uint64_t commits) {
    if (fixed_) return;
    const std::uint64_t before = commits_.fetch_add(commits, std::memory_order_relaxed);
    const std::uint64_t settling = warm_up_ / 8;  // the first transactions pay for the switch
    if (before < settling && before + commits >= settling) start_clock();
    if (before < warm_up_ && before + commits >= warm_up_) end_window();
  }

  // Runs something whose time is nobody's fault.
  template <class Work>
  auto leaving_out(Work&& work) {
    const std::int64_t begin = now_ns();
    auto done = work();
    left_out_ns_.fetch_add(now_ns() - begin, std::memory_order_relaxed);
    return done;
  }

 private:
  enum class phase : std::uint8_t { trying_blurred, trying_vcbp, settled };
  static constexpr unsigned least_windows = 100;  // in the mode chosen before it is asked again; doubles while the answer is the same
  static constexpr unsigned most_windows = 1600;
  static constexpr unsigned odd_windows = 4;      // on end, before the workload counts as another
  static constexpr double odd = 1.3;              // times quicker or slower than when it was chosen

  std::int64_t now_ns() const {
    if (made_up_) return 0;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void start_clock() {
    left_out_ns_.store(0, std::memory_order_relaxed);
    began_ns_.store(now_ns(), std::memory_order_relaxed);
  }
  double window_ns() {
    if (made_up_) return (phase_ == phase::trying_blurred) == (rounds_ % 2 == 0) ? 1 : 2;
    return static_cast<double>(std::max<std::int64_t>(1, now_ns() - began_ns_.load(std::memory_order_relaxed) - left_out_ns_.load(std::memory_order_relaxed)));
  }

  void end_window() {
    const std::lock_guard hold(mutex_);
    const double ns = window_ns();
    switch (phase_) {
      case phase::trying_blurred:
        blurred_ns_ = ns;
        go(phase::trying_vcbp, false);
        break;
      case phase::trying_vcbp: choose(ns); break;
      case phase::settled: watch(ns); break;
    }
    start_clock();  // for a warm-up too short to leave commits out
    commits_.store(0, std::memory_order_relaxed);
  }
  void go(phase p, bool blocks) {
    phase_ = p;
    blocks_.store(blocks, std::memory_order_relaxed);
  }
  void choose(double vcbp_ns) {
    const bool blocks = blurred_ns_ <= vcbp_ns;
    patience_ = rounds_ != 0 && blocks == chosen_blocks_ ? std::min(patience_ * 2, most_windows) : least_windows;
    chosen_blocks_ = blocks;
    expected_ns_ = std::min(blurred_ns_, vcbp_ns);
    windows_ = odd_ones_ = 0;
    ++rounds_;
    go(phase::settled, blocks);
  }
  void watch(double ns) {
    ++windows_;
    odd_ones_ = ns > expected_ns_ * odd || ns * odd < expected_ns_ ? odd_ones_ + 1 : 0;
    const bool again = made_up_ ? windows_ == 2 : windows_ >= patience_ && odd_ones_ >= odd_windows;
    if (again) go(phase::trying_blurred, true);
  }

  const std::uint64_t warm_up_;
  const bool fixed_, made_up_;
  std::atomic<bool> blocks_;
  std::atomic<std::uint64_t> commits_{0};  // of this window
  std::atomic<std::int64_t> began_ns_{0}, left_out_ns_{0};

  std::mutex mutex_;  // of everything below
  phase phase_ = phase::trying_blurred;
  double blurred_ns_ = 0, expected_ns_ = 0;
  bool chosen_blocks_ = true;
  unsigned rounds_ = 0, windows_ = 0, odd_ones_ = 0, patience_ = least_windows;
};

}  // namespace stele::detail
