// The states of lines of the nonvolatile cache: Zhao, Li, Yoon, Xie and Jouppi, "Kiln: Closing the
// Performance Gap Between Systems With and Without Persistence Support" (2013), sections 4.2 and
// 4.3; figure 5 draws them. Each transition that their words have, in a cache of one set.
#include <gmock/gmock.h>
#include <sim/crash.h>
#include <sim/simulation.h>

#include <set>

namespace stele::sim::states {
namespace {

using media::tape_op;
using testing::ElementsAre;
using testing::IsEmpty;
using enum nv_line_state;

constexpr std::uint64_t volatile_line = volatile_memory_at / line_bytes;

struct step {
  tape_op op;
  std::uint64_t line = 0;
};

// A set of four ways under caches of one line; a FIFO of two lines.
machine_config one_set() {
  machine_config m = crash_machines().front();
  m.cores.count = 1;
  m.l1.size_bytes = 64, m.l1.ways = 1, m.l2.size_bytes = 64, m.l2.ways = 1;
  m.l3.size_bytes = 256, m.l3.ways = 4, m.l3.banks = 1;
  m.l1.persistence_queue_entries = m.l2.persistence_queue_entries = 1;
  m.design.name = "kiln", m.design.isolation = "mutex", m.design.order = "strong";
  return m;
}

// Every pair (before, after) of states of a frame, in the order in which a run has them. A frame
// whose line changes is a pair too, also of equal states.
class run_of {
 public:
  explicit run_of(const std::vector<step>& events) : tape_(media::tape_writer::to_memory({})) {
    {
      const media::tape_writer::scoped_lock lock(*tape_);
      for (const step& e : events) {
        const bool access = e.op == tape_op::load || e.op == tape_op::store;
        tape_->event(e.op, 0, access ? e.line * 64 : e.line, access ? 8 : 0);
        // So long that what the access moves has arrived before the next one.
        if (access) tape_->event(tape_op::compute, 0, 100'000, 0);
      }
    }
    EXPECT_TRUE(tape_->finish());
    auto made = simulation::make(one_set(), std::move(*feed::over(tape_->memory(), 1)), {});
    EXPECT_TRUE(made) << made.error().message;
    simulation& s = **made;
    look(s);
    while (s.advance(1)) look(s);
    EXPECT_TRUE(s.finish());
    look(s);
    at_end_ = s.kiln_design->recovered();
  }

  std::vector<std::pair<nv_line_state, nv_line_state>> changes;
  const nonvolatile_state& at_end() const { return at_end_; }

 private:
  void look(simulation& s) {
    const cache_array& shared = s.caches->shared();
    frames_.resize(shared.frames());
    for (cache_array::frame p = 0; p < shared.frames(); ++p) {
      const std::pair now{s.kiln_design->state_of(p), shared.valid(p) ? shared.line_at(p) + 1 : 0};
      if (now != frames_[p]) changes.emplace_back(frames_[p].first, now.first);
      frames_[p] = now;
    }
  }

  std::unique_ptr<media::tape_writer> tape_;
  std::vector<std::pair<nv_line_state, std::uint64_t>> frames_;
  nonvolatile_state at_end_;
};

using change = std::pair<nv_line_state, nv_line_state>;

TEST(kiln_states, volatile_data_is_free) {
  const run_of loaded({{tape_op::load, volatile_line}});
  EXPECT_THAT(loaded.changes, ElementsAre(change{free, free}));
  const run_of stored({{tape_op::load, volatile_line}, {tape_op::store, volatile_line}});
  EXPECT_THAT(stored.changes, ElementsAre(change{free, free}));
}

TEST(kiln_states, volatile_data_stays_free_when_a_transaction_stores_to_it) {
  const run_of r(
      {{tape_op::tx_begin, 0}, {tape_op::store, volatile_line}, {tape_op::tx_commit, 0}});
  EXPECT_THAT(r.changes, ElementsAre(change{free, free}));
  EXPECT_THAT(r.at_end().lines, IsEmpty());
}

TEST(kiln_states, a_miss_of_nonvolatile_data_makes_a_free_line_persistent) {
  const run_of r({{tape_op::load, 1}, {tape_op::load, 1}});
  EXPECT_THAT(r.changes, ElementsAre(change{free, persistent}));
}

TEST(kiln_states, a_transactions_store_makes_a_line_pending_and_its_commit_persistent) {
  const run_of r({{tape_op::tx_begin, 0}, {tape_op::store, 1}, {tape_op::tx_commit, 0}});
  EXPECT_THAT(r.changes, ElementsAre(change{free, persistent}, change{persistent, pending},
                                     change{pending, persistent}));
}

// The third line sends the first, which is then read, and written again by the same transaction.
TEST(kiln_states, a_pending_line_stays_pending_while_its_transaction_runs) {
  const std::vector<step> begun = {
      {tape_op::tx_begin, 0}, {tape_op::store, 1}, {tape_op::store, 2}, {tape_op::store, 3}};
  std::vector<step> again = begun;
  for (const step& e : {step{tape_op::load, 1}, {tape_op::store, 1}}) again.push_back(e);
  std::vector<step> short_run = begun;
  short_run.push_back({tape_op::tx_commit, 0}), again.push_back({tape_op::tx_commit, 0});
  EXPECT_EQ(run_of(again).changes, run_of(short_run).changes);
}

TEST(kiln_states, a_miss_replaces_a_persistent_line_by_a_free_or_persistent_one) {
  const std::vector<step> full = {
      {tape_op::load, 1}, {tape_op::load, 2}, {tape_op::load, 3}, {tape_op::load, 4}};
  std::vector<step> then_volatile = full, then_nonvolatile = full;
  then_volatile.push_back({tape_op::load, volatile_line});
  then_nonvolatile.push_back({tape_op::load, 5});
  EXPECT_EQ(run_of(then_volatile).changes.back(), (change{persistent, free}));
  EXPECT_EQ(run_of(then_nonvolatile).changes.back(), (change{persistent, persistent}));
}

// Section 4.3: a pending line is not evicted. Lines of a transaction take a set; misses take the
// other ways.
TEST(kiln_states, no_miss_replaces_a_pending_line) {
  std::vector<step> events = {
      {tape_op::tx_begin, 0}, {tape_op::store, 1}, {tape_op::store, 2}, {tape_op::store, 3}};
  for (std::uint64_t n = 0; n < 8; ++n)
    for (const step& e : {step{tape_op::load, volatile_line + n}, {tape_op::load, 5 + n}})
      events.push_back(e);
  events.push_back({tape_op::tx_commit, 0});
  const run_of r(events);
  std::size_t became_pending = 0;
  for (const auto& [before, after] : r.changes) {
    became_pending += after == pending;
    EXPECT_FALSE(before == pending && after != persistent);
  }
  EXPECT_EQ(became_pending, 3u);
}

// The contents of volatile data are lost in a crash, and no recovery needs them.
TEST(kiln_states, crashes_with_volatile_data_keep_whole_transactions) {
  const auto tape = media::tape_writer::to_memory({.pool_size = 64 * 64});
  {
    const media::tape_writer::scoped_lock lock(*tape);
    const std::vector<std::byte> bytes(8, std::byte{7});
    for (std::uint64_t n = 0; n < 60; ++n) {
      const auto thread = static_cast<unsigned>(n % 4);
      tape->event(tape_op::tx_begin, thread, n, 0);
      for (std::uint64_t i = 0; i < 3; ++i) {
        tape->event(tape_op::store, thread, (n * 7 + i) % 32 * 64 + n % 8 * 8, 8, bytes.data());
        tape->event(tape_op::store, thread, volatile_memory_at + (n * 5 + i) % 32 * 64, 8,
                    bytes.data());
      }
      tape->event(tape_op::tx_commit, thread, n, 0);
    }
  }
  ASSERT_TRUE(tape->finish());
  machine_config m = crash_machines().front();
  m.design.isolation = "mutex";
  const auto r = crash_machine(m, tape->memory(), {.crashes = 150});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_GT(r->with_pending, 0u);
  for (const crash_violation& v : r->violations) ADD_FAILURE() << v.at << ": " << v.what;
}

}  // namespace
}  // namespace stele::sim::states
