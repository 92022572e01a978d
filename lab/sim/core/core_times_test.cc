// The cost of each mechanism of a core, added up by hand: issue, window, store buffer, levels,
// lines on their way, pointers, fences, flushes, and hardware transactional memory.
//
// The machine issues an instruction in a nanosecond. Reads and writes of a level take different
// times, so that no test takes one for the other.
#include <gtest/gtest.h>
#include <sim/core/test_world.h>

#include <base/rng.h>

namespace stele::sim::by_core {
namespace {

using enum tape_op;

constexpr double l1 = 1, l1_write = 2, l2 = 4, l2_write = 7, way = 3, l3 = 15, l3_write = 19,
                 memory_time = 100, port = 2;
constexpr double load_miss = l1 + l2 + way + l3 + memory_time + way,
                 store_miss = l1_write + l2_write + way + l3 + memory_time + way,
                 load_l3 = l1 + l2 + way + l3 + port + way, asks_owner = 2 * way + l2;

machine_config machine_of(unsigned cores = 2) {
  machine_config m = small_machine(cores);
  m.l1.read_latency_ns = l1, m.l1.write_latency_ns = l1_write;
  m.l2.read_latency_ns = l2, m.l2.write_latency_ns = l2_write;
  m.crossbar.latency_ns = way;
  return m;
}

event at(std::uint64_t line, tape_op what = load, unsigned thread = 0) {
  return {what, line * 64, 8, thread};
}
event pointer(std::uint64_t line, unsigned thread = 0) {
  return {load, line * 64, 8, thread, true};
}
event pause(std::uint64_t instructions, unsigned thread = 0) {
  return {compute, instructions, 0, thread};
}
double time_of(const std::vector<event>& list, unsigned cores = 2, unsigned thread = 0) {
  return world(list, machine_of(cores)).ns(thread);
}

// --- issue and window ---

TEST(core_times, an_access_is_an_instruction_for_each_16_bytes) {
  for (const auto& [bytes, instructions] : {std::pair{1u, 1}, {16u, 1}, {17u, 2}, {64u, 4}}) {
    const world w({{load, 0, bytes}, {store, 64, bytes}}, machine_of());
    EXPECT_EQ(w.ns(), instructions + std::max(load_miss, instructions + store_miss)) << bytes;
    EXPECT_EQ(w.threads[0]->counts.instructions, 2u * static_cast<unsigned>(instructions));
  }
}

TEST(core_times, threads_of_a_core_share_its_issue) {
  const auto times = [](unsigned threads, unsigned cores) {
    std::vector<event> list;
    for (unsigned t = 0; t < threads; ++t) list.push_back(pause(100, t));
    const world w(list, machine_of(cores));
    std::vector<double> out;
    for (unsigned t = 0; t < threads; ++t) out.push_back(w.ns(t));
    return out;
  };
  using list = std::vector<double>;
  EXPECT_EQ(times(1, 1), (list{100}));
  EXPECT_EQ(times(2, 1), (list{200, 200}));
  EXPECT_EQ(times(2, 2), (list{100, 100}));
  EXPECT_EQ(times(3, 2), (list{200, 100, 200}));
  EXPECT_EQ(times(4, 1), (list{400, 400, 400, 400}));
}

// A load, `between` instructions, and a load that has to wait if they fill the window.
TEST(core_times, threads_of_a_core_share_its_window) {
  const auto time_with = [](std::uint64_t between, unsigned threads) {
    machine_config m = machine_of(1);
    m.cores.window_instructions = 12;
    std::vector<event> list = {at(0), pause(between), at(1)};
    for (unsigned t = 1; t < threads; ++t) list.push_back(pause(1, t));
    return world(list, m).ns();
  };
  for (const unsigned threads : {1u, 2u, 3u}) {
    const std::uint64_t fits = 12 / threads - 1;
    EXPECT_EQ(time_with(fits, threads), threads * (1 + static_cast<double>(fits) + 1) + load_miss);
    EXPECT_EQ(time_with(fits + 1, threads), threads + load_miss + threads + load_miss) << threads;
  }
}

TEST(core_times, outstanding_misses_are_limited) {
  machine_config m = machine_of();
  for (const unsigned limit : {1u, 2u, 3u}) {
    m.cores.outstanding_misses = limit;
    std::vector<event> list;
    for (unsigned n = 0; n <= limit; ++n) list.push_back(at(n));
    EXPECT_EQ(world(list, m).ns(), 1 + load_miss + 1 + load_miss) << limit;
    list.pop_back();
    EXPECT_EQ(world(list, m).ns(), limit + load_miss) << limit;
  }
}

// Loads of a line on its way need no buffer of their own; when they end, the count is right again.
TEST(core_times, loads_of_one_line_are_one_outstanding_miss) {
  machine_config m = machine_of();
  m.cores.outstanding_misses = 2;
  std::vector<event> list(6, at(0));
  list.push_back(at(1));
  EXPECT_EQ(world(list, m).ns(), 7 + load_miss);
  list.push_back(at(2));
  EXPECT_EQ(world(list, m).ns(), 1 + load_miss + 1 + load_miss);
  list.pop_back();
  for (const event& e : {pause(1000), at(8), at(9)}) list.push_back(e);
  EXPECT_EQ(world(list, m).ns(), 7 + 1000 + 2 + load_miss);
  list.push_back(at(10));
  EXPECT_EQ(world(list, m).ns(), 7 + 1000 + 1 + load_miss + 1 + load_miss);
}

TEST(core_times, a_store_buffer_holds_its_entries) {
  machine_config m = machine_of();
  for (const unsigned entries : {1u, 2u, 3u}) {
    m.cores.store_buffer_entries = entries;
    std::vector<event> list;
    for (unsigned n = 0; n < entries; ++n) list.push_back(at(n, store));
    EXPECT_EQ(world(list, m).ns(), entries + store_miss);
    list.push_back(at(entries, store));
    EXPECT_EQ(world(list, m).ns(), 1 + store_miss + 1 + store_miss);
  }
}

// --- levels ---

// Lines 0, 4 and 8 share a set of two ways of each private level; 0, 2 and 4 that of the first.
TEST(core_times, a_load_takes_the_time_of_its_level) {
  const std::vector<event> first = {pointer(0), pause(100)};
  const double begun = 1 + load_miss + 100;
  const auto then = [&](const std::vector<event>& more) {
    std::vector<event> list = first;
    list.insert(list.end(), more.begin(), more.end());
    list.push_back(pause(1));
    return time_of(list) - begun - 1;
  };
  EXPECT_EQ(then({pointer(0)}), 1 + l1);
  EXPECT_EQ(then({pointer(0), pointer(0), pointer(0)}), 3 * (1 + l1));
  const double two_misses = 2 * (1 + load_miss + 100);
  EXPECT_EQ(then({pointer(2), pause(100), pointer(4), pause(100), pointer(0)}),
            two_misses + 1 + l1 + l2);
  EXPECT_EQ(then({pointer(4), pause(100), pointer(8), pause(100), pointer(0)}),
            two_misses + 1 + load_l3);
}

// --- lines on their way ---

// The reported case: a store and then a load of its line.
TEST(core_times, a_load_of_a_line_that_a_store_has_requested_waits_for_it) {
  EXPECT_EQ(time_of({at(0, store), pointer(0), pause(5)}), 1 + store_miss + 5);
  EXPECT_EQ(time_of({at(0), at(0, store), {fence}, pause(5)}), 1 + load_miss + 5);
}

// The reported case: two threads of a core on one chain of pointers. Both are as fast as one.
TEST(core_times, two_threads_of_a_core_wait_for_the_same_lines) {
  for (const unsigned threads : {1u, 2u}) {
    std::vector<event> list;
    for (std::uint64_t n = 0; n < 20; ++n)
      for (unsigned t = 0; t < threads; ++t) list.push_back(pointer(n, t));
    for (unsigned t = 0; t < threads; ++t) list.push_back(pause(1, t));
    const world w(list, machine_of(1));
    for (unsigned t = 0; t < threads; ++t)
      EXPECT_EQ(w.ns(t), 20 * (threads + load_miss) + threads) << threads;
    EXPECT_EQ(w.below.requests.size(), 20u);
  }
}

// Line 0 leaves the first level while it is on its way.
TEST(core_times, a_hit_of_the_second_level_waits_for_a_line_on_its_way) {
  EXPECT_EQ(time_of({at(0), at(2), at(4), pointer(0), pause(50)}), 1 + load_miss + 50);
  EXPECT_EQ(time_of({at(0), at(2), at(4), at(0), pointer(0), pause(50)}), 1 + load_miss + 50);
}

// A line of the shared cache is on its way for some time, too; here for two threads of a core. The
// second one asks when half of the time is over.
TEST(core_times, a_hit_waits_for_a_line_from_the_shared_cache) {
  std::vector<event> list = {pointer(0), pointer(4), pointer(8), pause(500), pointer(0), pause(1)};
  list.push_back(pause(0, 1));
  const double alone = time_of(list, 1);
  const auto before = static_cast<std::uint64_t>((alone - load_l3 - 2) / 2);
  list.insert(list.end(), {pause(before, 1), pause(5, 1), pointer(0, 1), pause(1, 1)});
  const world w(list, machine_of(1));
  EXPECT_EQ(w.ns(0), alone);
  EXPECT_EQ(w.ns(1), alone);
}

// --- pointers ---

// The reported case: the pointer is in the first level, and another line is on its way.
TEST(core_times, a_pointer_that_hits_does_not_wait_for_earlier_misses) {
  const double warm = 1 + load_miss;
  EXPECT_EQ(time_of({pointer(0), at(1), pointer(0), pause(300)}), warm + 1 + 1 + l1 + 300);
  EXPECT_EQ(time_of({pointer(0), at(1), pointer(0), at(2)}), warm + 1 + 1 + l1 + 1 + load_miss);
}

TEST(core_times, a_pointer_over_two_lines_waits_for_both) {
  event wide = {load, 60, 8, 0, true};
  for (const std::uint64_t warm : {0, 1})
    EXPECT_EQ(time_of({pointer(warm), pause(99), wide, pause(1)}),
              1 + load_miss + 99 + (warm == 0 ? 2 : 1) + load_miss + 1);
  EXPECT_EQ(time_of({wide, pause(1)}), 2 + load_miss + 1);
}

// --- flushes and fences ---

constexpr double to_bank = port + way, written = to_bank + l3_write + l3 + memory_time;

TEST(core_times, a_fence_waits_for_each_access_before_it) {
  EXPECT_EQ(time_of({at(0), {fence}, pause(5)}), 1 + load_miss + 5);
  EXPECT_EQ(time_of({at(0, store), {fence}, pause(5)}), 1 + store_miss + 5);
  EXPECT_EQ(time_of({pause(10), {fence}, pause(5)}), 15);
}

// Lines 0 and 1 are in different banks, which are idle again.
TEST(core_times, a_fence_waits_for_the_last_line_that_was_flushed) {
  const std::vector<event> stores = {at(0, store), at(1, store), pause(1000)};
  const auto then = [&](const std::vector<event>& more) {
    std::vector<event> list = stores;
    list.insert(list.end(), more.begin(), more.end());
    list.push_back(pause(5));
    return time_of(list) - 1002 - 5;
  };
  EXPECT_EQ(then({at(0, flush), {fence}}), 1 + written);
  EXPECT_EQ(then({at(0, flush), at(1, flush), {fence}}), 1 + port + written);
  EXPECT_EQ(then({at(0, flush), pause(40), at(1, flush), {fence}}), 1 + 40 + 1 + written);
  EXPECT_EQ(then({at(0, flush), at(1, flush), pause(500)}), 1 + 1 + 500);
  EXPECT_EQ(then({at(0, flush), {fence}, at(0, flush), {fence}}), 1 + written + 1 + l1 + way);
  EXPECT_EQ(then({at(8, flush), {fence}}), 1 + l1 + way) << "a line that no cache has";
  EXPECT_EQ(then({{bulk, 0, 128}}), 1 + port + written);
}

TEST(core_times, a_flush_waits_for_the_store_to_its_line) {
  // The bank is busy with the line from memory when the flushed one arrives.
  EXPECT_EQ(time_of({at(0, store), at(0, flush), {fence}}),
            1 + store_miss - way + l3_write + l3_write + l3 + memory_time);
}

TEST(core_times, a_stream_takes_its_way_to_memory) {
  EXPECT_EQ(time_of({{stream, 0, 64}, {fence}}), 1 + to_bank + memory_time);
  EXPECT_EQ(time_of({{stream, 0, 128}, {fence}}), 1 + port + to_bank + memory_time);
}

// --- transactions ---

std::vector<event> transaction_of(std::vector<event> inside, unsigned thread = 0) {
  inside.insert(inside.begin(), {tx_begin, 0, 0, thread});
  inside.push_back({tx_commit, 0, 0, thread});
  return inside;
}
std::vector<event> joined(std::vector<event> list, const std::vector<event>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

TEST(core_times, an_attempt_without_conflict_costs_nothing) {
  const world w(transaction_of({at(0, store), pause(500)}), machine_of(), "htm");
  EXPECT_EQ(w.ns(), 501);
  EXPECT_EQ(w.threads[0]->counts.commit_time, 0u);
  const world waits(transaction_of({at(0, store)}), machine_of(), "htm");
  EXPECT_EQ(waits.ns(), 1 + store_miss) << "it ends when its stores are done";
}

// Thread 1 stores to the line that thread 0 has read. The attempt is lost when its computation
// ends; all of it is done again, and the line comes from the other core.
TEST(core_times, a_retry_does_everything_again) {
  const world w(joined(transaction_of({at(0), pause(1000)}), {pause(500, 1), at(0, store, 1)}),
                machine_of(), "htm");
  EXPECT_EQ(w.threads[0]->counts.aborts, 1u);
  EXPECT_EQ(w.ns(), 1001 + 1001);
  EXPECT_EQ(w.threads[0]->counts.instructions, 2u * 1001);
  EXPECT_EQ(w.threads[0]->counts.loads, 2u);
}

// The observer is told of the request when the directory has it, and the retry's load asks the
// owner.
TEST(core_times, a_retry_fetches_the_line_that_it_has_lost) {
  const world w(joined(transaction_of({at(0), pause(1000), pointer(0), pause(1)}),
                       {pause(500, 1), at(0, store, 1)}),
                machine_of(), "htm");
  EXPECT_EQ(w.ns(), 1001 + 1001 + 1 + l1 + 1);
  const world at_once(
      joined(transaction_of({pointer(0), pause(1000)}), {pause(500, 1), at(0, store, 1)}),
      machine_of(), "htm");
  EXPECT_EQ(at_once.ns(), 1 + load_miss + 1000 + 1 + load_l3 + asks_owner + 1000);
}

// Everything that an attempt does is done again: loads, stores and flushes too. Thread 1 takes line
// 5, which the attempt has only read at its begin.
TEST(core_times, a_retry_takes_as_long_as_an_attempt) {
  const std::vector<event> inside = {
      at(5),      {load, 0, 64},        pause(400), {store, 0, 64}, at(2, flush),
      pause(300), {stream, 9 * 64, 64}, pointer(0), pause(300)};
  const double instructions = 1 + 4 + 400 + 4 + 1 + 300 + 1 + 1 + l1 + 300;
  const auto warm = joined({pointer(5), pointer(0), at(0, store), pause(1000)}, {});
  const double begun = time_of(warm);
  const world w(joined(joined(warm, transaction_of(inside)),
                       {pause(static_cast<std::uint64_t>(begun) + 900, 1), at(5, store, 1)}),
                machine_of(), "htm");
  EXPECT_EQ(w.threads[0]->counts.aborts, 1u);
  EXPECT_EQ(w.ns(), begun + 2 * instructions);
  EXPECT_EQ(w.threads[0]->counts.instructions, 1003u + 2 * (1 + 4 + 400 + 4 + 300 + 1 + 300));
}

constexpr double handoff = 10;  // of test_world.h

TEST(core_times, a_mutex_is_handed_over) {
  std::vector<event> list;
  for (unsigned t = 0; t < 3; ++t) list = joined(list, transaction_of({pause(1000, t)}, t));
  const world w(list, machine_of(4), "mutex");
  EXPECT_EQ(w.ns(0), 1000);
  EXPECT_EQ(w.ns(1), 1000 + handoff + 1000);
  EXPECT_EQ(w.ns(2), 1000 + handoff + 1000 + handoff + 1000);
}

// More lines than the second level has, so that each attempt is lost.
std::vector<event> too_many_lines(tape_op what) {
  std::vector<event> list;
  for (std::uint64_t line = 0; line < 12; ++line) list.push_back(at(line, what));
  return list;
}

TEST(core_times, an_attempt_begins_when_the_lock_is_free) {
  auto big = too_many_lines(store);
  big.push_back(pause(100'000));
  const world w(
      joined(transaction_of(big), joined({pause(50'000, 1)}, transaction_of({pause(7, 1)}, 1))),
      machine_of(), "htm");
  EXPECT_EQ(w.isolation->counts.lock_taken, 1u);
  EXPECT_EQ(w.ns(1), w.ns(0) + handoff + 7);
}

// K9
TEST(core_times, a_line_that_was_read_is_watched_like_one_that_was_written) {
  for (const tape_op what : {load, store}) {
    const world w(transaction_of(too_many_lines(what)), machine_of(), "htm");
    EXPECT_EQ(w.threads[0]->counts.aborts, 9u);
    EXPECT_EQ(w.isolation->counts.capacity_aborts, 9u);
    EXPECT_EQ(w.isolation->counts.lock_taken, 1u);
  }
}

// K9
TEST(core_times, a_commit_gives_all_retries_back) {
  const world w(joined(transaction_of(too_many_lines(store)), transaction_of({at(0, store)})),
                machine_of(), "htm");
  EXPECT_EQ(w.threads[0]->counts.commits, 2u);
  EXPECT_EQ(w.isolation->counts.lock_taken, 1u);
}

// K9
TEST(core_times, the_lock_ends_all_attempts) {
  const world w(
      joined(transaction_of(too_many_lines(store)), transaction_of({pause(100'000, 1)}, 1)),
      machine_of(), "htm");
  EXPECT_EQ(w.threads[1]->counts.aborts, 1u);
  EXPECT_EQ(w.ns(1), 200'000);
}

world three_logged_transactions() {
  machine_config m = machine_of();
  m.design.name = "rlog";
  std::vector<event> list;
  for (unsigned n = 0; n < 3; ++n)
    list = joined(list, transaction_of({pause(10'000), at(0, store), pause(10'000)}));
  return world(list, m);
}

TEST(core_times, commit_time_is_what_follows_the_last_instruction) {
  const world w = three_logged_transactions();
  const double commits = static_cast<double>(w.threads[0]->counts.commit_time) / 1000;
  EXPECT_GT(commits, 0);
  // What is no commit: the computation, and four instructions for each store to the log.
  EXPECT_EQ(w.ns(), 3 * (20'000 + 4 * 1) + commits);
}

// A redo log: its line is flushed, then the commit record, each with a fence; then home is stored.
TEST(core_times, a_log_pays_for_each_of_its_fences) {
  const world w = three_logged_transactions();
  constexpr double whole_line = 4 + l1_write + l2_write + way + way;
  EXPECT_EQ(static_cast<double>(w.threads[0]->counts.commit_time) / 1000,
            3 * (1 + written + whole_line + 1 + written + 4));
}

// A fence that only orders lets the thread go on until its share of the write queue is full.
TEST(core_times, a_persist_barrier_waits_for_room_alone) {
  machine_config m = machine_of();
  m.nonvolatile_memory.scheduler = "rules";
  m.nonvolatile_memory.write_queue_entries = 3;
  const auto line_of = [](std::uint64_t line) { return event{stream, line * 64, 64}; };
  const std::vector<event> two = {line_of(0), {fence}, line_of(1), {fence}, pause(500)};
  EXPECT_EQ(world(two, m).ns(), 2 + 500);
  EXPECT_EQ(world(joined({line_of(2)}, two), m).ns(), 1 + to_bank + memory_time + 500);
}

// A commit whose lines found the FIFO full reads the tags of all banks, a cycle for each of their
// sets. Thread 1 loads a line of the other bank just after the commit flag is written.
TEST(core_times, a_scan_of_the_tags_delays_other_requests) {
  machine_config m = machine_of();
  m.l3.nonvolatile = true;
  m.l3.size_bytes = std::uint64_t{2} * 64 * m.l3.ways * line_bytes;  // 64 sets in each bank
  m.design.name = "kiln";
  constexpr double flagged = 1001 + to_bank + l3_write + l3_write;
  const std::vector<event> chain = {pointer(1, 1), pointer(5, 1), pointer(9, 1)};
  const auto before = static_cast<std::uint64_t>(flagged + 1 - 3 * (1 + load_miss));
  const auto time_with = [&](unsigned entries) {
    m.l3.persistence_queue_entries = entries;
    return world(joined(joined(transaction_of({at(0, store), pause(1000)}), chain),
                        {pause(before, 1), pointer(1, 1), pause(1, 1)}),
                 m, "mutex")
        .ns(1);
  };
  EXPECT_EQ(time_with(16), flagged + 1 + 1 + load_l3 + 1);
  EXPECT_EQ(time_with(0), flagged + 64 + l3 + port + way + 1);
}

// The lock goes on at the last instruction, or when the commit flag is written.
TEST(core_times, a_lock_may_be_kept_until_its_transaction_is_durable) {
  machine_config m = machine_of();
  m.l3.nonvolatile = true;
  m.design.name = "kiln";
  constexpr double ended = 1001, flag = l3_write, flagged = ended + to_bank + l3_write + flag;
  const auto list =
      joined(transaction_of({at(0, store), pause(1000)}), transaction_of({pause(500, 1)}, 1));
  const world early(list, m, "mutex");
  EXPECT_EQ(early.ns(0), ended);
  EXPECT_EQ(early.ns(1), ended + handoff + 500);
  m.design.lock_until_durable = true;
  const world late(list, m, "mutex");
  EXPECT_EQ(late.ns(0), flagged);
  EXPECT_EQ(late.ns(1), flagged + handoff + 500 + flag);
}

// An attempt is told of each line that leaves its caches: until then it has all of them.
TEST(core_times, a_running_attempt_has_all_its_lines) {
  for (const unsigned cores : {1u, 2u}) {
    base::rng random(cores);
    std::vector<event> list;
    for (unsigned n = 0; n < 300; ++n) {
      const unsigned t = static_cast<unsigned>(random.below(4));
      std::vector<event> inside;
      for (auto left = 1 + random.below(6); left != 0; --left)
        inside.push_back(at(random.below(24), random.below(3) == 0 ? store : load, t));
      list = joined(list, random.below(4) == 0 ? inside : transaction_of(inside, t));
    }
    machine_config m = machine_of(cores);
    std::size_t seen = 0;
    const world w(list, m, "htm", [&](const world& now) {
      for (unsigned t = 0; t < now.tape.threads(); ++t) {
        if (!now.isolation->speculative(t)) continue;
        const auto& lines = now.isolation->lines(t).entries();
        for (std::size_t i = 0; i + 1 < lines.size(); ++i)  // the last one may wait to issue
          ASSERT_TRUE(now.caches->holds(t % cores, lines[i].line)) << t << ' ' << lines[i].line;
        seen += lines.size();
      }
      ASSERT_EQ(now.caches->inconsistency(), "");
    });
    EXPECT_GT(seen, 1000u);
    EXPECT_GT(w.isolation->counts.capacity_aborts, 0u);
    EXPECT_GT(w.isolation->counts.conflicts, 0u);
  }
}

}  // namespace
}  // namespace stele::sim::by_core
