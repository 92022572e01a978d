// Workloads with a mix of their own: the mix is the stated one, and states that only many keys or
// operations reach.
#include <gtest/gtest.h>
#include <workloads/apart/volatile.h>
#include <workloads/workload.h>

#include <map>

namespace stele::workloads {
namespace {

using kind = operation::kind;

std::map<kind, double> shares_of(const std::string& name) {
  const auto w = make_workload(name, {.keys = 1000, .read_share = 1});
  base::rng random(1);
  constexpr int draws = 100'000;
  std::map<kind, double> shares;
  for (int i = 0; i < draws; ++i) shares[(*w)->draw(random).what] += 100.0 / draws;
  return shares;
}

// A12
TEST(mixes, are_those_that_are_stated) {
  const std::map<std::string, std::map<kind, double>> stated = {
      {"ycsb-a", {{kind::read, 50}, {kind::put, 50}}},
      {"ycsb-b", {{kind::read, 95}, {kind::put, 5}}},
      {"ycsb-c", {{kind::read, 100}}},
      {"ycsb-d", {{kind::read, 95}, {kind::insert, 5}}},
      {"ycsb-e", {{kind::scan, 95}, {kind::insert, 5}}},
      {"ycsb-f", {{kind::read, 50}, {kind::read_modify, 50}}},
      {"tpcc",
       {{kind::insert, 45}, {kind::put, 43}, {kind::read, 4}, {kind::erase, 4}, {kind::scan, 4}}},
      {"linkbench",
       {{kind::read, 17},
        {kind::scan, 51},
        {kind::put, 8},
        {kind::read_modify, 8},
        {kind::insert, 12},
        {kind::erase, 4}}},
  };
  for (const auto& [name, mix] : stated) {
    const auto shares = shares_of(name);
    EXPECT_EQ(shares.size(), mix.size()) << name;
    for (const auto& [what, share] : mix)
      EXPECT_NEAR(shares.at(what), share, 0.6) << name << ", " << static_cast<int>(what);
  }
}

// ycsb-d's reads of the latest records follow the skew, whatever the choice of keys.
TEST(mixes, ycsb_d_reads_the_latest) {
  const auto w = make_workload("ycsb-d", {.keys = 1000});
  base::rng random(2);
  int reads = 0, latest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const operation op = (*w)->draw(random);
    reads += op.what == kind::read;
    latest += op.what == kind::read && op.a < 10;
  }
  EXPECT_GT(latest, reads / 3);
}

void expect_agreement(const std::string& name, const parameters& p, int operations) {
  const auto w = make_workload(name, p);
  const auto plain = make_volatile(name, p);
  const auto model = (*w)->make_model();
  (*plain)->set_up();
  base::rng random(3);
  for (int i = 0; i < operations; ++i) {
    const operation op = (*w)->draw(random);
    (*plain)->apply({&op, 1});
    model->apply(op);
  }
  EXPECT_EQ((*plain)->digest(), model->digest());
}

TEST(mixes, tpcc_agrees_with_its_model_when_warehouses_supply_each_other) {
  expect_agreement("tpcc", {.keys = 200'000}, 3000);
}
TEST(mixes, inserted_records_go_round) {
  for (const char* name : {"ycsb-d", "ycsb-e"}) expect_agreement(name, {.keys = 900}, 6000);
}
TEST(mixes, full_lists_of_links_lose_their_oldest) {
  expect_agreement("linkbench", {.keys = 400}, 20'000);
}

}  // namespace
}  // namespace stele::workloads
