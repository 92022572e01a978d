// Runs a contender's transactions on threads for some time and measures them.
//
// Throughput counts every transaction. Latency is taken from every sixteenth, or, when transactions
// are short, every sixty-fourth, so that reading the clock (twice 20 ns) stays within 1 % of the
// shortest transactions. Each thread has its own
// generator, which continues from run to run. With idle time, threads work for a slice and then
// sleep for the share that the task asks for; latency is that of the work alone.
#pragma once

#include <bench/contender.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

namespace stele::bench {

inline constexpr std::uint64_t sample_every = 16, sample_short_every = 64;
inline constexpr std::uint64_t sampled_before_short = 1024;  // transactions
inline constexpr std::chrono::microseconds short_transaction{10};

// The generators of a task's threads: a function of its seed.
std::vector<base::rng> make_generators(const task& t);

// One thread's idle time: keeps the time slept at the given share of the time since its beginning.
class idle_time {
 public:
  using clock = std::chrono::steady_clock;
  explicit idle_time(double share) : share_(share) {}

  // Call between transactions, from time to time.
  void sleep_if_due() {
    if (share_ == 0) return;
    const auto now = clock::now();
    if (now - woke_ < slice) return;
    const auto due = std::chrono::duration<double>(now - began_) * share_ - slept_;
    if (due.count() > 0) std::this_thread::sleep_for(due / (1 - share_));
    woke_ = clock::now();
    slept_ += woke_ - now;  // usually longer than asked: the next sleep is shorter by that
  }

 private:
  // Sleep is accurate to some 50 us, and the refill of caches after sleep should not dominate the
  // measurement.
  static constexpr std::chrono::milliseconds slice{1};
  const double share_;
  const clock::time_point began_ = clock::now();
  clock::time_point woke_ = began_;
  std::chrono::duration<double> slept_{0};
};

struct thread_outcome {
  std::uint64_t transactions = 0;
  base::histogram latency_ns;
  std::optional<error> failure;
};

// One thread's part of a run: `step(random)` runs one transaction, repeated until `stop`.
template <class Step>
thread_outcome repeat(Step& step, base::rng& random, double idle_share,
                      const std::atomic<bool>& stop) {
  using clock = std::chrono::steady_clock;
  thread_outcome out;
  base::rng local = random;
  idle_time idle(idle_share);
  const auto start = clock::now();
  std::uint64_t every = sample_every;
  while (!out.failure && !stop.load(std::memory_order_relaxed)) {
    const auto begin = clock::now();
    result<> done = step(local);
    const auto end = clock::now();
    out.latency_ns.record(static_cast<std::uint64_t>((end - begin).count()));
    if (out.transactions == sampled_before_short)
      every = end - start < sampled_before_short * short_transaction ? sample_short_every : every;
    std::uint64_t run = 1;
    for (; done && run < every && !stop.load(std::memory_order_relaxed); ++run) done = step(local);
    if (!done) [[unlikely]]
      out.failure = std::move(done.error());
    out.transactions += run;
    idle.sleep_if_due();
  }
  random = local;
  return out;
}

// `make_step(thread)` returns the step of a thread and is called in that thread. Returns the first
// error of any thread.
template <class MakeStep>
[[nodiscard]] result<measurement> drive(std::vector<base::rng>& generators, double seconds,
                                        double idle_share, MakeStep&& make_step) {
  std::atomic<bool> stop{false};
  std::barrier ready(static_cast<std::ptrdiff_t>(generators.size()) + 1);
  std::vector<thread_outcome> outcomes(generators.size());
  measurement m;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < generators.size(); ++i) {
      threads.emplace_back([&, i] {
        auto step = make_step(i);
        ready.arrive_and_wait();
        outcomes[i] = repeat(step, generators[i], idle_share, stop);
      });
    }
    ready.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    threads.clear();
    m.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  for (thread_outcome& out : outcomes) {
    if (out.failure) return std::unexpected(std::move(*out.failure));
    m.transactions += out.transactions;
    m.latency_ns.merge(out.latency_ns);
  }
  return m;
}

// A step that draws `operations` operations from `source` (any class with draw) and passes them to
// `apply` as one transaction. Operations are constructed in place: a copy in wider units than the
// stores would wait for the last transaction's fence.
template <class Source, class Apply>
auto draw_and_apply(const Source& source, std::size_t operations, Apply apply) {
  return [&source, apply, batch = std::vector<workloads::operation>(operations)](
             base::rng& random) mutable -> result<> {
    for (auto& op : batch) ::new (&op) workloads::operation(source.draw(random));
    return apply(std::span<const workloads::operation>(batch));
  };
}

}  // namespace stele::bench
