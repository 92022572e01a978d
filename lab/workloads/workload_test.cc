// Every workload against its model: on ordinary memory for many seeds and sizes, and on pools of
// the explorer's size and larger.
#include <workloads/apart/volatile.h>
#include <workloads/workload.h>

#include <containers/test_bed.h>

#include <algorithm>
#include <set>

namespace stele::workloads {
namespace {

using testing::scratch_directory;

std::unique_ptr<workload> workload_of(const std::string& name, const parameters& p) {
  auto made = make_workload(name, p);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

class each_workload : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(all, each_workload, ::testing::ValuesIn(workload_names()),
                         [](const auto& i) {
                           std::string name = i.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

std::vector<operation> draw_some(const workload& w, base::rng& random, std::size_t count) {
  std::vector<operation> operations(count);
  for (operation& op : operations) op = w.draw(random);
  return operations;
}

TEST_P(each_workload, on_ordinary_memory_agrees_with_its_model) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const parameters p = {.value_size = std::size_t{8} << seed % 10,
                          .keys = 1 + seed * 7,
                          .read_share = 0.1,
                          .seed = seed};
    const auto w = workload_of(GetParam(), p);
    const auto plain = make_volatile(GetParam(), p);
    ASSERT_TRUE(plain);
    const auto model = w->make_model();
    (*plain)->set_up();
    ASSERT_EQ((*plain)->digest(), model->digest());
    base::rng random(seed);
    for (int round = 0; round < 20; ++round) {
      const auto operations = draw_some(*w, random, 25);
      (*plain)->apply(operations);
      for (const operation& op : operations) model->apply(op);
      ASSERT_EQ((*plain)->digest(), model->digest()) << "seed " << seed << ", round " << round;
    }
  }
}

// A workload with a pool of its own.
class attached_workload {
 public:
  attached_workload(const std::string& name, const parameters& p, std::size_t pool_size)
      : w_(workload_of(name, p)), size_(pool_size) {
    attach();
  }
  void attach() {
    auto handle = detail::pool_handle::open(directory_.file("pool"),
                                            {.create_size = size_, .engine = {.background = false}},
                                            w_->root_size());
    if (!handle) throw std::runtime_error(handle.error().message);
    w_->attach(std::move(*handle));
  }
  workload& operator*() { return *w_; }
  workload* operator->() { return w_.get(); }

 private:
  scratch_directory directory_;
  std::unique_ptr<workload> w_;
  std::size_t size_;
};

void expect_digest(workload& w, const model& m, const std::string& where) {
  const auto digest = w.digest();
  ASSERT_TRUE(digest) << digest.error().message << " " << where;
  ASSERT_EQ(*digest, m.digest()) << where;
}

void play(attached_workload& w, model& m, base::rng& random, std::size_t transactions,
          std::size_t in_each) {
  for (std::size_t t = 0; t < transactions; ++t) {
    const auto operations = draw_some(*w, random, in_each);
    const auto done = w->apply(operations);
    ASSERT_TRUE(done) << done.error().message;
    for (const operation& op : operations) m.apply(op);
    if (t % 16 == 0) expect_digest(*w, m, "after transaction " + std::to_string(t));
  }
  expect_digest(*w, m, "at the end");
}

TEST_P(each_workload, on_a_small_pool_agrees_with_its_model) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    attached_workload w(GetParam(), {.keys = 16 + seed * 8, .read_share = 0.2, .seed = seed},
                        std::size_t{68} << 10);  // header, its copy, then 60 KiB
    const auto m = w->make_model();
    const auto ready = w->set_up();
    ASSERT_TRUE(ready) << ready.error().message;
    expect_digest(*w, *m, "after set-up");
    base::rng random(seed);
    play(w, *m, random, 200, 1 + seed % 3);
  }
}

// B11
TEST_P(each_workload, on_a_pool_agrees_with_its_model_for_every_value_size) {
  for (std::size_t size = 8; size <= 4096; size *= 2) {
    attached_workload w(GetParam(),
                        {.value_size = size, .keys = 500, .choice = key_choice::zipf, .seed = size},
                        std::size_t{32} << 20);
    const auto m = w->make_model();
    const auto ready = w->set_up();
    ASSERT_TRUE(ready) << ready.error().message;
    base::rng random(size);
    play(w, *m, random, 60, 10);
  }
}

TEST(each_map_workload, grows_by_every_operation_on_fresh_keys) {
  for (const char* name : {"hash", "rbtree", "bptree", "kv"}) {
    SCOPED_TRACE(name);
    attached_workload w(name, {.keys = 64, .choice = key_choice::fresh}, std::size_t{16} << 20);
    const auto m = w->make_model();
    ASSERT_TRUE(w->set_up());
    base::rng random(1);
    for (int i = 0; i < 200; ++i) {
      const operation op = w->draw(random);
      EXPECT_FALSE(only_reads(op));
      ASSERT_TRUE(w->apply({&op, 1}));
      const auto with = w->digest();
      m->apply(op);
      ASSERT_TRUE(with);
      EXPECT_EQ(*with, m->digest());
    }
  }
}

TEST(coalescing_workloads, agree_with_their_models) {
  for (const char* name : {"hash", "rbtree", "kv", "ycsb-a", "ycsb-d", "tpcc", "linkbench"})
    for (const std::size_t size : {8, 32, 64, 128, 2048}) {
      SCOPED_TRACE(name);
      const parameters p{.value_size = size, .keys = 200, .seed = size, .coalesce = true};
      attached_workload w(name, p, std::size_t{16} << 20);
      const auto m = w->make_model();
      ASSERT_TRUE(w->set_up());
      base::rng random(size);
      play(w, *m, random, 40, 5);
      w->detach();
      w.attach();
      expect_digest(*w, *m, "after reopening");
    }
}

TEST(coalescing_workloads, are_not_all_of_them) {
  const auto refused = make_workload("sps", {.coalesce = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::invalid_argument);
}

TEST_P(each_workload, survives_detaching_and_attaching) {
  attached_workload w(GetParam(), {.keys = 300, .seed = 3}, std::size_t{8} << 20);
  const auto m = w->make_model();
  ASSERT_TRUE(w->set_up());
  base::rng random(3);
  for (int i = 0; i < 3; ++i) {
    play(w, *m, random, 20, 5);
    w->detach();
    w.attach();
    expect_digest(*w, *m, "after reopening");
  }
}

TEST_P(each_workload, reaches_each_block_once) {
  attached_workload w(GetParam(), {.value_size = 128, .keys = 200, .seed = 4},
                      std::size_t{8} << 20);
  ASSERT_TRUE(w->set_up());
  std::set<const void*> blocks;
  w->visit_blocks([&](const void* block) { EXPECT_TRUE(blocks.insert(block).second); });
  EXPECT_FALSE(blocks.empty());
}

TEST_P(each_workload, reads_do_not_commit) {
  attached_workload w(GetParam(), {.keys = 100, .read_share = 1, .seed = 5}, std::size_t{8} << 20);
  const auto m = w->make_model();
  ASSERT_TRUE(w->set_up());
  base::rng random(5);
  play(w, *m, random, 50, 4);
}

TEST(workloads, values_of_the_store_have_any_size) {
  for (const std::size_t size : {1, 3, 20, 100, 5000, 300'000}) {
    attached_workload w("store", {.value_size = size, .keys = 40, .read_share = 0.2, .seed = size},
                        std::size_t{64} << 20);
    const auto m = w->make_model();
    ASSERT_TRUE(w->set_up());
    base::rng random(size);
    play(w, *m, random, 40, 1 + size % 3);
    w->detach();
    w.attach();
    expect_digest(*w, *m, "after reopening");
  }
}

TEST_P(each_workload, many_operations_of_different_keys_have_no_order) {
  attached_workload w(GetParam(), {.keys = 500, .read_share = 0.3, .seed = 6},
                      std::size_t{16} << 20);
  const auto m = w->make_model();
  ASSERT_TRUE(w->set_up());
  base::rng random(6);
  for (std::size_t count = 1; count < 80; count += 6) {
    auto operations = draw_some(*w, random, count);
    if (GetParam() == "store") {
      std::set<std::uint64_t> keys;
      std::erase_if(operations, [&](const operation& op) { return !keys.insert(op.a).second; });
    }
    ASSERT_TRUE(w->apply_many(operations));
    for (const operation& op : operations) m->apply(op);
    expect_digest(*w, *m, "after many operations");
  }
}

TEST(workloads, unknown_names_and_bad_parameters_are_refused) {
  EXPECT_EQ(make_workload("spss", {}).error().code, errc::not_found);
  EXPECT_EQ(make_volatile("", {}).error().code, errc::not_found);
  EXPECT_EQ(make_workload("sps", {.value_size = 12}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_workload("hash", {.value_size = 8192}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_workload("hash", {.keys = 0}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_workload("store", {.value_size = 0}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_workload("store", {.value_size = (std::size_t{1} << 20) + 1}).error().code,
            errc::invalid_argument);
  EXPECT_EQ(make_workload("kv", {.read_share = 1.5}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_workload("kv", {.choice = key_choice::zipf, .zipf_theta = 1}).error().code,
            errc::invalid_argument);
}

}  // namespace
}  // namespace stele::workloads
