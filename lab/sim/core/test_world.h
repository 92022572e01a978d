// A small machine that runs a tape of a few events, for tests of threads and isolation.
#pragma once

#include <gtest/gtest.h>
#include <sim/cache/test_memory.h>
#include <sim/core/thread.h>
#include <sim/design/logs.h>

#include <algorithm>

namespace stele::sim {

using media::tape_op;

struct event {
  tape_op op;
  std::uint64_t address = 0;
  std::uint32_t length = 8;
  unsigned thread = 0;
  bool pointer = false;
};

// A machine with one instruction per nanosecond and a memory of 100 ns.
struct world {
  explicit world(
      const std::vector<event>& events_of_tape, machine_config m = small_machine(),
      std::string isolation_name = "none",
      const std::function<void(const world&)>& after_event = [](const world&) {})
      : below(events, 100'000),
        tape_bytes(record(events_of_tape)),
        tape(std::move(*feed::over(tape_bytes, 8))) {
    m.cores.clock_ghz = 1, m.cores.issue_width = 1;
    machine = m;
    caches = std::move(*hierarchy::make(events, below, machine, 1));
    const auto kind = isolation_name == "htm"     ? isolation_kind::htm
                      : isolation_name == "mutex" ? isolation_kind::mutex
                                                  : isolation_kind::none;
    isolation = std::make_unique<isolation_control>(kind, machine.cores.count, 8, 10'000);
    if (kind == isolation_kind::htm) caches->set_observer(isolation.get());
    persistence = std::move(
        *(*design_named(machine.design.name))->make({events, *caches, machine, tape.threads()}));
    for (unsigned core = 0; machine.tlb.l1_entries != 0 && core < machine.cores.count; ++core)
      tlbs.push_back(std::move(*tlb::make(events, *caches, machine.tlb, core)));
    around.reset(
        new hardware_thread::environment{events, *caches, *isolation, *persistence, tape, machine});
    around->tlbs = tlbs;
    for (unsigned t = 0; t < tape.threads(); ++t)
      threads.push_back(std::make_unique<hardware_thread>(*around, t));
    for (auto& t : threads) t->start();
    while (!events.empty()) {
      events.step();
      after_event(*this);
    }
    for (auto& t : threads) EXPECT_TRUE(t->finished());
  }
  static std::vector<std::byte> record(const std::vector<event>& list) {
    const auto w = media::tape_writer::to_memory({.mark_pointers = true});
    for (const event& e : list)
      e.pointer ? w->pointer_load(e.thread, e.address, e.length)
                : w->event(e.op, e.thread, e.address, e.length);
    (void)w->finish();
    const auto made = w->memory();
    return {made.begin(), made.end()};
  }
  auto log_lines(access kind) const {
    return std::ranges::count_if(below.requests, [&](const auto& r) {
      return r.address >= logs_at && r.address < volatile_memory_at && r.kind == kind;
    });
  }
  double ns(unsigned thread = 0) const {
    return static_cast<double>(threads[thread]->time()) / 1000;
  }

  event_queue events;
  fixed_memory below;
  std::vector<std::byte> tape_bytes;
  feed tape;
  machine_config machine;
  std::unique_ptr<hierarchy> caches;
  std::unique_ptr<isolation_control> isolation;
  std::unique_ptr<design> persistence;
  std::vector<std::unique_ptr<tlb>> tlbs;
  std::unique_ptr<hardware_thread::environment> around;
  std::vector<std::unique_ptr<hardware_thread>> threads;
};

}  // namespace stele::sim
