// Runs a contender's transactions on threads for a while and measures them.
//
// Throughput counts every transaction; latency is taken from each sixteenth, so that reading the
// clock (twice 20 ns) stays within 2 % of the shortest transactions. Each thread has a generator of
// its own that lives on from run to run. A task with idle time has its threads work for a slice and
// sleep for what its share asks; latency is that of the work alone.
#pragma once

#include <bench/contender.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

namespace stele::bench {

inline constexpr std::uint64_t sample_every = 16;

// The generators of a task's threads, a function of its seed.
std::vector<base::rng> make_generators(const task& t);

// One thread's idle time: what it has slept stays the given share of the time since it began.
class idle_time {
 public:
  using clock = std::chrono::steady_clock;
  explicit idle_time(double share) : share_(share) {}

  // Called between transactions, now and then.
  void sleep_if_due() {
    if (share_ == 0) return;
    const auto now = clock::now();
    if (now - woke_ < slice) return;
    const auto due = std::chrono::duration<double>(now - began_) * share_ - slept_;
    if (due.count() > 0) std::this_thread::sleep_for(due / (1 - share_));
    woke_ = clock::now();
    slept_ += woke_ - now;  // more than was asked for: the next rest is shorter by that
  }

 private:
  // Sleeping is exact to some 50 us, and what sleep takes out of the caches should not be what is
  // measured.
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

// One thread's share of a run: `step(random)` is one transaction, until `stop`.
template <class Step>
thread_outcome repeat(Step& step, base::rng& random, double idle_share,
                      const std::atomic<bool>& stop) {
  using clock = std::chrono::steady_clock;
  thread_outcome out;
  base::rng local = random;
  idle_time idle(idle_share);
  for (result<> done; !stop.load(std::memory_order_relaxed); ++out.transactions) {
    if (out.transactions % sample_every == 0) {
      const auto begin = clock::now();
      done = step(local);
      out.latency_ns.record(static_cast<std::uint64_t>((clock::now() - begin).count()));
      idle.sleep_if_due();
    } else {
      done = step(local);
    }
    if (!done) [[unlikely]] {
      out.failure = std::move(done.error());
      break;
    }
  }
  random = local;
  return out;
}

// `make_step(thread)` gives the step of each thread and is called in that thread. The first error
// of any thread is returned.
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

// A step that draws `operations` operations from `source` (anything with draw) and gives them to
// `apply` as one transaction. They are drawn where they stay: a copy in wider units than it was
// stored in would wait for the last transaction's fence.
template <class Source, class Apply>
auto draw_and_apply(const Source& source, std::size_t operations, Apply apply) {
  return [&source, apply, batch = std::vector<workloads::operation>(operations)](
             base::rng& random) mutable -> result<> {
    for (auto& op : batch) ::new (&op) workloads::operation(source.draw(random));
    return apply(std::span<const workloads::operation>(batch));
  };
}

}  // namespace stele::bench
