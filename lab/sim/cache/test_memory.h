// For tests: a memory whose requests complete after a fixed time, a requester, a small machine.
#pragma once

#include <sim/cache/hierarchy.h>
#include <sim/config.h>
#include <sim/controller/memory.h>

#include <map>
#include <vector>

namespace stele::sim {

class fixed_memory final : public memory, event_handler {
 public:
  fixed_memory(event_queue& events, picoseconds latency) : events_(events), latency_(latency) {}

  void submit(picoseconds now, const request& r) override {
    requests.push_back(r), submitted.push_back(now);
    events_.schedule(now + latency_, *this, requests.size() - 1);
    ++outstanding_;
  }
  void barrier(picoseconds, std::uint16_t) override {}
  std::size_t outstanding() const noexcept override { return outstanding_; }

  std::vector<request> requests;
  std::vector<picoseconds> submitted;  // of each request

 private:
  void handle(picoseconds now, std::uint64_t what) override {
    --outstanding_;
    const request r = requests[what];
    if (r.reply_to != nullptr) r.reply_to->handle(now, r.token);
  }

  event_queue& events_;
  picoseconds latency_;
  std::size_t outstanding_ = 0;
};

// Notes when its requests complete, by their tokens.
struct listener final : requester {
  std::map<std::uint64_t, picoseconds> completed;
  unsigned may_try = 0;
  void done(picoseconds now, std::uint64_t token) override { completed[token] = now; }
  void retry(picoseconds) override { ++may_try; }
};

// Small caches for each core and a shared one: 4 lines, 8 lines, 32 lines.
inline machine_config small_machine(unsigned cores = 2) {
  machine_config m;
  m.cores.count = cores;
  m.cores.threads_per_core = 1;
  m.l1 = {.size_bytes = 256, .ways = 2, .read_latency_ns = 1, .write_latency_ns = 1};
  m.l2 = {.size_bytes = 512, .ways = 2, .read_latency_ns = 4, .write_latency_ns = 4};
  m.l3 = {.size_bytes = 2048, .ways = 4, .read_latency_ns = 15, .write_latency_ns = 19, .banks = 2};
  return m;
}

// The caches of a machine on such a memory.
struct caches_on_fixed_memory {
  explicit caches_on_fixed_memory(const machine_config& m, picoseconds latency = 100'000)
      : below(events, latency), caches(std::move(*hierarchy::make(events, below, m, 1))) {}
  void handle_until(picoseconds end) {
    while (!events.empty() && events.next() <= end) events.step();
  }

  event_queue events;
  fixed_memory below;
  std::unique_ptr<hierarchy> caches;
};

}  // namespace stele::sim
