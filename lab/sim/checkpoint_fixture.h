// Machines, tapes and comparisons for the tests of checkpoints.
#pragma once

#include <base/rng.h>
#include <gtest/gtest.h>
#include <sim/archive.h>
#include <sim/controller/memory_fixture.h>
#include <sim/crash.h>
#include <sim/dp2/tape_of_transactions.h>
#include <sim/simulation.h>

#include <memory>

namespace stele::sim {

struct restored_run {
  std::string name;
  machine_config machine;
  std::vector<std::byte> tape;

  std::unique_ptr<simulation> make(std::uint64_t seed) const {
    auto f = feed::over(tape, machine.cores.count * machine.cores.threads_per_core);
    EXPECT_TRUE(f) << f.error().message;
    simulation::options how;
    how.seed = seed;
    auto s = simulation::make(machine, std::move(*f), std::move(how));
    EXPECT_TRUE(s) << s.error().message;
    return std::move(*s);
  }
};

inline std::vector<std::byte> bytes_of(simulation& s) {
  archive a;
  s.visit_state(a);
  EXPECT_EQ(a.fault(), "");
  EXPECT_EQ(a.refused(), "");
  return a.bytes();
}

// Reads the state; what is wrong with it.
inline std::string fault_of(simulation& s, std::span<const std::byte> state) {
  archive a(state);
  s.visit_state(a);
  a.require(a.left() == 0, "something follows the state");
  a.run_checks();
  return a.fault();
}

// So small that lines leave all the time.
inline machine_config small_caches(const std::string& preset, const std::string& design,
                                   const std::string& isolation) {
  machine_config m = machine_of(preset);
  m.cores.count = 2, m.cores.threads_per_core = 2;
  m.l1.size_bytes = m.l2.size_bytes = 1024, m.l3.size_bytes = 4096;
  m.l1.ways = m.l2.ways = 2, m.l3.ways = 8;
  m.l3.banks = 2;
  m.design.name = design, m.design.isolation = isolation;
  m.design.log_bytes = 4096;
  return m;
}

inline std::vector<std::byte> logged_tape(unsigned transactions) {
  tape_of_transactions tape(transactions, 1);
  const auto bytes = tape.bytes();
  return {bytes.begin(), bytes.end()};
}

// Loads of pointers, stores, flushes, streams and pauses on both memories, outside of transactions.
inline std::vector<std::byte> mixed_tape(unsigned events) {
  const auto tape = media::tape_writer::to_memory({.mark_pointers = true});
  base::rng random(9);
  for (unsigned i = 0; i < events; ++i) {
    const auto thread = static_cast<unsigned>(random.below(4));
    const std::uint64_t at = (random.below(3) == 0 ? volatile_memory_at : 0) +
                             random.below(1 << 14) * 64 * (1 + random.below(8));
    const auto op = random.below(8);
    if (op == 0)
      tape->event(media::tape_op::flush, thread, at, 64);
    else if (op == 1)
      tape->event(media::tape_op::stream, thread, at, 128);
    else if (op == 2)
      tape->event(media::tape_op::fence, thread, 0, 0);
    else if (op == 3)
      tape->event(media::tape_op::compute, thread, random.below(4000), 0);
    else if (op == 4)
      tape->pointer_load(thread, at, 8);
    else
      tape->event(op == 5 ? media::tape_op::store : media::tape_op::load, thread, at, 100);
  }
  EXPECT_TRUE(tape->finish());
  return {tape->memory().begin(), tape->memory().end()};
}

// Threads stream lines past the caches, and fence them.
inline std::vector<std::byte> fenced_tape(unsigned events) {
  const auto tape = media::tape_writer::to_memory({});
  base::rng random(4);
  for (unsigned i = 0; i < events; ++i) {
    const auto thread = static_cast<unsigned>(random.below(4));
    if (random.below(3) == 0)
      tape->event(media::tape_op::fence, thread, 0, 0);
    else
      tape->event(media::tape_op::stream, thread, random.below(64) * 64,
                  static_cast<std::uint32_t>(64 * (1 + random.below(4))));
  }
  EXPECT_TRUE(tape->finish());
  return {tape->memory().begin(), tape->memory().end()};
}

// Thread 0 pauses while thread 1 reads more of the tape than a feed keeps.
inline std::vector<std::byte> uneven_tape() {
  const auto tape = media::tape_writer::to_memory({});
  const auto far = static_cast<unsigned>(feed::chunk_events * (feed::max_chunks + 2));
  for (unsigned i = 0; i < far; ++i) {
    if (i % 1000 == 0) {
      tape->event(media::tape_op::compute, 0, 100'000, 0);
      tape->event(media::tape_op::store, 0, i % 64 * 64, 8);
    }
    tape->event(media::tape_op::load, 1, i % 8 * 64, 8);
  }
  EXPECT_TRUE(tape->finish());
  return {tape->memory().begin(), tape->memory().end()};
}

}  // namespace stele::sim
