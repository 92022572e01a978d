// Crashes of runs whose commits go through held transactions: a crash leaves what a prefix of the
// commits has made, and the prefix has every one that commit() has acknowledged.
#include <explore/explorer.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/budget.h>
#include <tests/crash/mechanisms.h>

namespace stele::explore {
namespace {

// Another workload, each of whose transactions is held; what that runs is part of it. Every third
// attempt is rolled back half-way and retried.
class held_workload final : public workloads::workload {
 public:
  explicit held_workload(std::unique_ptr<workload> of) : of_(std::move(of)) {}

  std::string_view name() const override { return of_->name(); }
  std::size_t root_size() const override { return of_->root_size(); }
  concurrency policy() const noexcept override { return of_->policy(); }
  void attach(detail::pool_handle handle) override { of_->attach(std::move(handle)); }
  void detach() override { of_->detach(); }
  detail::runtime& core() override { return of_->core(); }
  result<> set_up() override { return of_->set_up(); }
  workloads::operation draw(base::rng& random) const override { return of_->draw(random); }
  result<std::uint64_t> digest() override { return of_->digest(); }
  void visit_blocks(const workloads::block_visit& visit) override { of_->visit_blocks(visit); }
  std::unique_ptr<workloads::model> make_model() const override { return of_->make_model(); }

  result<> apply(std::span<const workloads::operation> operations) override {
    auto t = detail::hold_update(core(), commit_durability(), code_between::may_wait);
    if (!t) return std::unexpected(t.error());
    for (;;) {
      try {
        auto applied = of_->apply(operations);
        if (!applied) return applied;
        if (++applied_ % 3 != 0) {
          auto done = t->commit();
          if (done || t->state() != transaction_state::lost) return done;
        }
      } catch (const conflict&) {
      } catch (const failure& f) {
        if (f.why().code != errc::full) return std::unexpected(f.why());
      }
      if (auto again = t->retry(); !again) return again;
    }
  }

 private:
  const std::unique_ptr<workload> of_;
  std::uint64_t applied_ = 0;  // the run's threads take turns
};

class HeldTransactions : public ::testing::TestWithParam<std::tuple<std::string, const char*>> {};

TEST_P(HeldTransactions, every_crash_state_is_a_prefix_of_the_commits) {
  const auto [mechanism, workload] = GetParam();
  for (const unsigned threads : {1u, 2u})
    for (const std::uint64_t sync_every : {0, 4}) {
      plan p;
      p.mechanism = mechanism;
      p.workload = workload;
      p.threads = threads;
      p.sync_every = sync_every;
      p.operations = 60;
      p.make_workload = [name = std::string(workload), p] {
        workloads::parameters parameters;
        parameters.keys = p.keys;
        parameters.value_size = p.value_size;
        return std::make_unique<held_workload>(
            std::move(*workloads::make_workload(name, parameters)));
      };
      settings s;
      s.bound = 128 / budget::slowness;
      const auto found = explore_isolated(p, s);
      ASSERT_TRUE(found) << found.error().message;
      fmt::print("  {}/{}, {} threads, a sync every {}: {}\n", mechanism, workload, threads,
                 sync_every, summary_of(*found));
      EXPECT_GT(found->recoveries, 0u);
      for (const violation& v : found->violations) ADD_FAILURE() << v.what;
    }
}

INSTANTIATE_TEST_SUITE_P(All, HeldTransactions,
                         ::testing::Combine(::testing::ValuesIn(durable_mechanisms()),
                                            ::testing::Values("sps", "rbtree", "kv")),
                         [](const auto& one) {
                           return fmt::format("{}_{}", test_name(std::get<0>(one.param)),
                                              std::get<1>(one.param));
                         });

}  // namespace
}  // namespace stele::explore
