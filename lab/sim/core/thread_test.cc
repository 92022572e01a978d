// The times of a hardware thread, added up by hand: issue, window, store buffer, pointers, fences,
// isolation.
#include <gtest/gtest.h>
#include <sim/core/test_world.h>
#include <sim/design/kiln.h>
#include <sim/design/logs.h>

#include <algorithm>

namespace stele::sim {
namespace {

constexpr double miss = 1 + 4 + 2 + 15 + 100 + 2;  // levels, interconnect, memory

TEST(thread, misses_overlap) {
  // Two loads issue at 1 and 2 ns; the second load's line arrives last.
  const world w({{tape_op::load, 0}, {tape_op::load, 64}});
  EXPECT_EQ(w.ns(), 2 + miss);
}

TEST(thread, what_follows_a_load_of_a_pointer_waits_for_it) {
  const world w({{tape_op::load, 0, 8, 0, true}, {tape_op::load, 64}});
  EXPECT_EQ(w.ns(), 1 + miss + 1 + miss);
}

TEST(thread, the_window_holds_issue_back) {
  machine_config m = small_machine();
  m.cores.window_instructions = 10;
  // The load issues at 1 ns, and nine more instructions may issue; the next load waits for the
  // first.
  const world w(
      {{tape_op::load, 0}, {tape_op::compute, 9, 0}, {tape_op::compute, 1, 0}, {tape_op::load, 64}},
      m);
  EXPECT_EQ(w.ns(), 1 + miss + 1 + miss);
  const world fits({{tape_op::load, 0}, {tape_op::compute, 9, 0}, {tape_op::load, 64}}, m);
  EXPECT_EQ(fits.ns(), 11 + miss);
}

// The product once wrapped, and the thread went back in time.
TEST(thread, does_not_compute_beyond_the_latest_time) {
  for (const std::uint64_t instructions :
       {latest / 1000 + 1, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const world w({{tape_op::load, 0}, {tape_op::compute, instructions}});
    EXPECT_TRUE(w.threads[0]->has_outrun_time()) << instructions;
    EXPECT_EQ(w.ns(), 1 + miss);
  }
  std::vector<event> many(6, {tape_op::compute, latest / 1000});
  EXPECT_TRUE(world(many).threads[0]->has_outrun_time());
  EXPECT_FALSE(world({{tape_op::compute, latest / 1000}}).threads[0]->has_outrun_time());
}

TEST(thread, stores_wait_in_a_buffer_of_limited_size) {
  machine_config m = small_machine();
  m.cores.store_buffer_entries = 1;
  const world w({{tape_op::store, 0}, {tape_op::store, 64}}, m);
  EXPECT_EQ(w.ns(), 1 + miss + 1 + miss);
  const world both({{tape_op::store, 0}, {tape_op::store, 64}});
  EXPECT_EQ(both.ns(), 2 + miss);
}

TEST(thread, a_fence_waits_until_memory_has_what_was_flushed) {
  const world w({{tape_op::store, 0}, {tape_op::flush, 0}, {tape_op::fence}});
  EXPECT_EQ(w.below.requests.size(), 2u);  // the line is read, then written
  EXPECT_GT(w.ns(), 1 + miss + 100);
  const world unfenced({{tape_op::store, 0}, {tape_op::fence}});
  EXPECT_EQ(unfenced.ns(), 1 + miss);
  EXPECT_EQ(unfenced.below.requests.size(), 1u);
}

TEST(thread, a_stream_bypasses_the_caches) {
  const world w({{tape_op::stream, 0, 128}, {tape_op::fence}});
  EXPECT_EQ(w.below.requests.size(), 2u);
  EXPECT_EQ(w.caches->counts.l3_misses, 0u);
}

std::vector<event> transactions_on_one_line(unsigned threads, unsigned each) {
  std::vector<event> list;
  for (unsigned n = 0; n < each; ++n)
    for (unsigned t = 0; t < threads; ++t)
      for (const event e : {event{tape_op::tx_begin},
                            {tape_op::load, 0},
                            {tape_op::compute, 50, 0},
                            {tape_op::store, 0},
                            {tape_op::tx_commit}})
        list.push_back({e.op, e.address, e.length, t});
  return list;
}

TEST(isolation, all_transactions_commit_though_they_conflict) {
  const world w(transactions_on_one_line(2, 200), small_machine(), "htm");
  EXPECT_EQ(w.threads[0]->counts.commits + w.threads[1]->counts.commits, 400u);
  EXPECT_GT(w.isolation->counts.conflicts, 0u);
  EXPECT_EQ(w.threads[0]->counts.aborts + w.threads[1]->counts.aborts,
            w.isolation->counts.conflicts);
}

// K9
TEST(isolation, a_transaction_larger_than_the_private_caches_takes_the_lock) {
  std::vector<event> list = {{tape_op::tx_begin}};
  for (std::uint64_t line = 0; line < 12; ++line) list.push_back({tape_op::store, line * 64});
  list.push_back({tape_op::tx_commit});
  const world w(list, small_machine(), "htm");
  EXPECT_EQ(w.threads[0]->counts.commits, 1u);
  EXPECT_EQ(w.isolation->counts.lock_taken, 1u);
  EXPECT_EQ(w.threads[0]->counts.aborts, 9u);  // eight retries, then the lock
}

// K9. Thread 1, on the same core or another one, accesses line 0 outside of transactions.
TEST(isolation, an_access_outside_of_transactions_ends_an_attempt_that_it_conflicts_with) {
  const auto aborts = [](tape_op inside, tape_op outside, unsigned cores) {
    const world w({{tape_op::tx_begin},
                   {inside, 0},
                   {tape_op::compute, 1000, 0},
                   {tape_op::tx_commit},
                   {tape_op::compute, 500, 0, 1},
                   {outside, 0, 8, 1}},
                  small_machine(cores), "htm");
    return w.threads[0]->counts.aborts;
  };
  for (const unsigned cores : {1u, 2u}) {
    EXPECT_EQ(aborts(tape_op::store, tape_op::store, cores), 1u) << cores;
    EXPECT_EQ(aborts(tape_op::store, tape_op::load, cores), 1u) << cores;
    EXPECT_EQ(aborts(tape_op::load, tape_op::store, cores), 1u) << cores;
    EXPECT_EQ(aborts(tape_op::load, tape_op::load, cores), 0u) << cores;
    EXPECT_EQ(aborts(tape_op::store, tape_op::flush, cores), 1u) << cores;
    EXPECT_EQ(aborts(tape_op::load, tape_op::flush, cores), 0u) << cores;
  }
}

// K9
TEST(isolation, a_mutex_lets_one_in_at_a_time) {
  const world w(transactions_on_one_line(2, 50), small_machine(), "mutex");
  EXPECT_EQ(w.isolation->counts.lock_taken, 100u);
  EXPECT_EQ(w.isolation->counts.conflicts, 0u);
  EXPECT_GT(std::max(w.ns(0), w.ns(1)), 100 * 50);
}

// K8
TEST(logs, write_entries_of_two_words_for_each_word) {
  std::vector<event> list = {{tape_op::tx_begin}, {tape_op::store, 0, 64}, {tape_op::tx_commit}};
  for (const auto& [name, log_lines] :
       {std::pair{"rlog", 3}, {"crlog", 3}, {"ulog", 3}, {"culog", 3}}) {
    machine_config m = small_machine();
    m.design.name = name;
    const world w(list, m);
    // 64 bytes of data make 128 bytes of entries; a commit or truncation record has a line of its
    // own.
    EXPECT_EQ(w.log_lines(access::write), name[0] == 'c' ? 0 : log_lines) << name;
    EXPECT_EQ(w.log_lines(access::read), 0) << name;
  }
}

TEST(logs, share_lines_only_among_what_is_sent_together) {
  std::vector<event> list = {{tape_op::tx_begin},
                             {tape_op::store, 0},
                             {tape_op::store, 8},
                             {tape_op::store, 64},
                             {tape_op::tx_commit}};
  for (const auto& [name, log_lines] : {std::pair{"rlog", 1 + 1}, {"ulog", 3 + 1}}) {
    machine_config m = small_machine();
    m.design.name = name;
    EXPECT_EQ(world(list, m).log_lines(access::write), log_lines) << name;
  }
}

// K1: a log is for nonvolatile data only.
TEST(logs, have_no_entries_of_volatile_data) {
  for (const char* name : {"rlog", "ulog"}) {
    machine_config m = small_machine();
    m.design.name = name;
    std::vector<event> list = {{tape_op::tx_begin}, {tape_op::store, 0}, {tape_op::tx_commit}};
    const auto without = world(list, m).log_lines(access::write);
    list.insert(list.begin() + 1, {tape_op::store, volatile_memory_at, 64});
    EXPECT_EQ(world(list, m).log_lines(access::write), without) << name;
    list.erase(list.begin() + 2);
    EXPECT_EQ(world(list, m).log_lines(access::write), 0) << name;
  }
}

TEST(logs, read_their_lines_first_if_the_machine_says_so) {
  std::vector<event> list = {{tape_op::tx_begin}, {tape_op::store, 0, 64}, {tape_op::tx_commit}};
  for (const char* name : {"rlog", "crlog", "ulog", "culog"}) {
    machine_config m = small_machine();
    m.design.name = name;
    m.design.log_lines_fetched = true;
    EXPECT_EQ(world(list, m).log_lines(access::read), 3) << name;
  }
}

// K7
TEST(kiln, sends_what_has_ended_when_order_or_a_transaction_asks_for_it) {
  std::vector<event> list;
  for (std::uint64_t n = 0; n < 5; ++n)
    for (const event& e : {event{tape_op::tx_begin, n, n == 2 ? media::tape_ordered_flag : 0},
                           {tape_op::store, n * 64},
                           {tape_op::tx_commit}})
      list.push_back(e);
  for (const auto& [order, left] : {std::pair{"strong", 0u}, {"relaxed", 2u}}) {
    machine_config m = small_machine();
    m.l3.nonvolatile = true;
    m.design.name = "kiln", m.design.order = order;
    const world w(list, m, "mutex");
    EXPECT_EQ(dynamic_cast<const kiln&>(*w.persistence).uncommitted(), left) << order;
  }
}

// Section 4.3 allows one transaction in flight for each thread with strong order.
TEST(kiln, begins_a_transaction_after_the_last_commit_when_a_thread_has_one_id) {
  std::vector<event> list;
  for (std::uint64_t n = 0; n < 5; ++n)
    for (const event& e :
         {event{tape_op::tx_begin, n}, {tape_op::store, n * 64}, {tape_op::tx_commit}})
      list.push_back(e);
  machine_config m = small_machine();
  m.l3.nonvolatile = true;
  m.design.name = "kiln";
  const world many(list, m, "mutex");
  m.design.transaction_ids = 1;
  const world one(list, m, "mutex");
  const auto commit_ns = [](const world& w) {
    return static_cast<double>(dynamic_cast<const kiln&>(*w.persistence).counts.commit_latency) /
           1000;
  };
  EXPECT_GT(commit_ns(one), 0);
  EXPECT_NEAR(one.ns() - many.ns(), commit_ns(one) * 4 / 5, 0.001)
      << "the thread waits for each commit but the last";
}

// The line: port 2 ns, interconnect 2, cell 19. Then the flag: 19. The computation outlasts the
// fill, so that the bank is free.
TEST(kiln, commits_when_the_flag_is_written_after_the_lines) {
  machine_config m = small_machine();
  m.l3.nonvolatile = true;
  m.design.name = "kiln";
  const world w(
      {{tape_op::tx_begin}, {tape_op::store, 0}, {tape_op::compute, 1000, 0}, {tape_op::tx_commit}},
      m, "mutex");
  EXPECT_EQ(dynamic_cast<const kiln&>(*w.persistence).counts.commit_latency,
            2'000u + 2'000 + 19'000 + 19'000);
}

// The nonvolatile cache has the line, and memory must not have it before the commit.
TEST(kiln, a_flush_leaves_the_line_of_a_transaction_in_the_nonvolatile_cache) {
  machine_config m = small_machine();
  m.l3.nonvolatile = true;
  m.design.name = "kiln";
  const world w({{tape_op::tx_begin},
                 {tape_op::store, 0},
                 {tape_op::flush, 0},
                 {tape_op::fence},
                 {tape_op::tx_commit}},
                m);
  EXPECT_EQ(w.below.requests.size(), 1u);  // the line is read
  EXPECT_EQ(dynamic_cast<const kiln&>(*w.persistence).counts.transactions, 1u);
}

machine_config with_sets_of_two_ways() {
  machine_config m = small_machine();
  m.l3 = {.size_bytes = 1024,
          .ways = 2,
          .read_latency_ns = 15,
          .write_latency_ns = 19,
          .banks = 2,
          .nonvolatile = true};
  m.design.name = "kiln";
  m.design.overflow_interrupt_ns = 200;
  return m;
}

// Section 4.4. Two open transactions fill a set of two ways, and one wants a third line. A full
// request queue begins the fall-back after the interrupt, another only after ten times its time.
TEST(kiln, falls_back_at_once_when_the_request_queue_is_full) {
  machine_config m = with_sets_of_two_ways();
  m.l2.request_queue_entries = 4;
  const std::vector<event> list = {
      {tape_op::tx_begin, 0, 0, 0},      {tape_op::store, 0, 8, 0},
      {tape_op::compute, 100'000, 0, 0}, {tape_op::tx_commit, 0, 0, 0},
      {tape_op::compute, 1'000, 0, 1},   {tape_op::tx_begin, 0, 0, 1},
      {tape_op::store, 8 * 64, 8, 1},    {tape_op::store, 16 * 64, 8, 1},
      {tape_op::tx_commit, 0, 0, 1}};
  m.design.overflow_at = 0.25;  // one request of four
  const world full(list, m);
  m.design.overflow_at = 0.75;
  const world waits(list, m);
  const kiln_counts& counts = dynamic_cast<const kiln&>(*full.persistence).counts;
  EXPECT_EQ(counts.overflowed_lines, 1u);
  // The first fall-back sends the lines of the set, the second copies one.
  EXPECT_EQ(waits.ns(1) - full.ns(1), 2 * 10 * 200);
}

// K5. The store that finds no room does so while a load waits for memory, of its core or the other.
TEST(kiln, a_request_queue_holds_the_requests_of_its_core_that_wait) {
  machine_config m = with_sets_of_two_ways();
  m.l2.request_queue_entries = 4;
  m.design.overflow_at = 0.5;  // two requests
  const event load{tape_op::load, 64}, instead{tape_op::compute, 1};
  const auto time_with = [&](event of_thread_0, event of_thread_1) {
    of_thread_1.thread = 1;
    const std::vector<event> list = {
        {tape_op::tx_begin, 0, 0, 0},    {tape_op::store, 0, 8, 0},
        {tape_op::compute, 2000, 0, 0},  of_thread_0,
        {tape_op::compute, 9999, 0, 0},  {tape_op::tx_commit, 0, 0, 0},
        {tape_op::tx_begin, 0, 0, 1},    {tape_op::store, 8 * 64, 8, 1},
        {tape_op::compute, 2000, 0, 1},  of_thread_1,
        {tape_op::store, 16 * 64, 8, 1}, {tape_op::tx_commit, 0, 0, 1}};
    return world(list, m).ns(1);
  };
  const double neither = time_with(instead, instead);
  EXPECT_EQ(time_with(load, instead), neither);
  EXPECT_EQ(time_with(instead, load), neither - 10 * 200);  // the first fall-back begins at once
}

}  // namespace
}  // namespace stele::sim
