// Nothing bypasses the medium. The test's own mechanism makes pools with no memory behind their
// home addresses, so a load or store that does not go through the transaction faults. Every
// container, workload and example runs on it.
//
// The example programs are compiled into this file, each in its own namespace, with its main
// renamed.
#include <gtest/gtest.h>
#include <media/process.h>
#include <stele/array.h>
#include <stele/bptree.h>
#include <stele/coalescing.h>
#include <stele/hash_map.h>
#include <stele/kv.h>
#include <stele/map.h>
#include <stele/queue.h>
#include <stele/set.h>
#include <stele/string.h>
#include <stele/vector.h>
#include <tests/conformance/pools.h>
#include <tx/mechanism/none.h>
#include <workloads/workload.h>

#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#define main example_main
namespace list_example {
#include "../../examples/list.cc"
}
namespace transfer_example {
#include "../../examples/transfer.cc"
}
namespace address_book_example {
#include "../../examples/address_book.cc"
}
namespace kv_example {
#include "../../examples/kv.cc"
}
namespace phone_book_example {
#include "../../examples/phone_book.cc"
}
namespace jobs_example {
#include "../../examples/jobs.cc"
}
#undef main

namespace stele::testing {
namespace {

std::unique_ptr<detail::engine> make_engine(detail::pool_state& state,
                                            const detail::media_choice&) {
  return std::make_unique<detail::mechanism_engine<detail::none<media::process>>>(
      state, std::make_unique<media::process::shared>(), detail::engine_tuning{});
}

class elsewhere : public ::testing::Test {
 protected:
  elsewhere() {
    if (!detail::find_mechanism("elsewhere"))
      detail::register_mechanism({"elsewhere", "home addresses that fault", detail::log_kind::none,
                                  make_engine, storage::map_kind::relocated_home});
    detail::set_default_mechanism("elsewhere");
  }
  ~elsewhere() override { detail::set_default_mechanism(former_); }

  const std::string former_ = detail::default_mechanism_name();
  scratch_directory dir_;
};

struct containers {
  using pool_resident = void;
  array<std::uint64_t> numbers;
  array<string> names;
  string text;
  hash_map<std::uint64_t, string> hashed;
  map<string, std::uint64_t> ordered;
  bptree<std::uint64_t, std::uint64_t> tree;
  vector<string> lines;
  queue<string> waiting;
  set<string> present;
  hash_set<std::uint64_t> marked;
};

// Calls the functions that containers_test.cc compares with the standard containers; here no member
// may bypass the fields.
void use_all(containers& c, base::rng& choices) {
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t n = choices.below(100);
    const std::string text(n, 'x');
    c.lines.insert(c.lines.begin() + static_cast<std::ptrdiff_t>(c.lines.size() / 2), text);
    c.lines.swap_elements(0, c.lines.size() - 1);
    c.lines.reserve(n);
    if (c.lines.size() > 50)
      c.lines.erase(c.lines.begin(), c.lines.begin() + 30), c.lines.shrink_to_fit();
    c.waiting.push(text);
    if (n % 2 == 0) c.waiting.pop();
    c.present.insert(text), c.marked.insert(n);
    c.present.erase(c.present.lower_bound(text)), c.marked.erase(c.marked.find(n));
    c.present.insert(text), c.marked.insert(n);
    c.text.pop_back(), c.text.push_back('t');
  }
  for (auto it = c.ordered.rbegin(); it != c.ordered.rend(); ++it) it->second += 0;
  c.lines.assign(5, "the same"), c.lines.resize(7);
}

TEST_F(elsewhere, a_raw_access_faults_and_a_field_does_not) {
  struct plain {
    field<std::uint64_t> value;
  };
  for (const concurrency policy : all_policies) {
    auto p =
        open_pool<plain>(dir_.file(name_of(policy)), {.create_size = 1 << 20, .policy = policy});
    EXPECT_EQ(p.mechanism(), "elsewhere");
    ASSERT_TRUE(succeeds(p.update([](plain& r) { r.value = 7; })));
    EXPECT_EQ(p.read([](const plain& r) { return r.value.load(); }).value_or(0), 7u);
  }
  auto p = open_pool<plain>(dir_.file("raw"), {.create_size = 1 << 20});
  volatile std::uint64_t* raw = nullptr;
  ASSERT_TRUE(
      succeeds(p.update([&](plain& r) { raw = reinterpret_cast<volatile std::uint64_t*>(&r); })));
  EXPECT_DEATH((void)*raw, "");
  EXPECT_DEATH(*raw = 1, "");
}

// Compares the containers with the standard library's, under every policy.
TEST_F(elsewhere, containers_reach_their_memory_through_fields_alone) {
  for (const concurrency policy : all_policies) {
    SCOPED_TRACE(name_of(policy));
    auto p = open_pool<containers>(dir_.file(name_of(policy)),
                                   {.create_size = 16 << 20, .policy = policy});
    std::map<std::uint64_t, std::uint64_t> model;
    base::rng random(5);
    for (int round = 0; round < 60; ++round) {
      const std::uint64_t seed = random();
      auto done = p.update([&](containers& c) {
        base::rng choices(seed);
        c.numbers.resize(choices.below(500));
        for (auto& n : c.numbers) n = 3;
        c.names.resize(choices.below(20));
        for (auto& n : c.names) n.append("a name that is too long for the inside of a string");
        c.text += "more text";
        use_all(c, choices);
        for (int i = 0; i < 40; ++i) {
          const std::uint64_t key = choices.below(300);
          if (choices.below(3) == 0) {
            c.hashed.erase(key), c.ordered.erase(std::to_string(key)), c.tree.erase(key);
          } else {
            c.hashed.insert_or_assign(key, std::string(key, 'x'));
            c.ordered.insert_or_assign(std::to_string(key), key);
            c.tree.insert_or_assign(key, key + 1);
          }
        }
      });
      ASSERT_TRUE(succeeds(done));
      base::rng choices(seed);
      (void)choices.below(500), (void)choices.below(20);
      for (int i = 0; i < 20; ++i) (void)choices.below(100);
      for (int i = 0; i < 40; ++i) {
        const std::uint64_t key = choices.below(300);
        if (choices.below(3) == 0)
          model.erase(key);
        else
          model[key] = key + 1;
      }
    }
    std::map<std::uint64_t, std::uint64_t> hashed, ordered, tree;
    auto read = p.read([&](const containers& c) -> result<> {
      c.hashed.for_each(
          [&](const auto& key, const auto& value) { hashed[key] = value.size() + 1; });
      c.ordered.for_each(
          [&](const auto& key, const auto& value) { ordered[std::stoull(key.str())] = value + 1; });
      c.tree.for_each([&](const auto& key, const auto& value) { tree[key] = value; });
      EXPECT_EQ(c.text.size(), 60 * 9u);
      if (auto fine = c.hashed.check(); !fine) return fine;
      EXPECT_TRUE(c.lines.check() && c.waiting.check() && c.present.check() && c.marked.check());
      EXPECT_EQ(c.lines.size(), 7u);
      if (auto fine = c.ordered.check(); !fine) return fine;
      return c.tree.check();
    });
    ASSERT_TRUE(succeeds(read));
    EXPECT_EQ(hashed, model);
    EXPECT_EQ(ordered, model);
    EXPECT_EQ(tree, model);
    ASSERT_TRUE(succeeds(p.update([](containers& c) {
      c.hashed.clear(), c.ordered.clear(), c.tree.clear(), c.names.clear(), c.numbers.clear();
      c.lines.clear(), c.waiting.clear(), c.present.clear(), c.marked.clear();
    })));
  }
}

TEST_F(elsewhere, workloads_agree_with_their_models) {
  auto names = workloads::workload_names();
  names.insert(names.end(),
               {"coalescing kv", "coalescing rbtree", "coalescing ycsb-a", "coalescing linkbench"});
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const bool coalesce = name.starts_with("coalescing ");
    const workloads::parameters parameters{
        .value_size = 64, .keys = 500, .read_share = 0.2, .coalesce = coalesce};
    auto made =
        workloads::make_workload(coalesce ? name.substr(name.find(' ') + 1) : name, parameters);
    ASSERT_TRUE(succeeds(made));
    workloads::workload& w = **made;
    auto handle =
        detail::pool_handle::open(dir_.file(name), {.create_size = 8 << 20}, w.root_size());
    ASSERT_TRUE(succeeds(handle));
    w.attach(std::move(*handle));
    ASSERT_TRUE(succeeds(w.set_up()));
    const auto model = w.make_model();
    base::rng random(3);
    for (int i = 0; i < 500; ++i) {
      const workloads::operation op = w.draw(random);
      ASSERT_TRUE(succeeds(w.apply({&op, 1})));
      model->apply(op);
    }
    EXPECT_EQ(w.digest().value_or(0), model->digest());
    w.detach();
  }
}

TEST_F(elsewhere, examples_run) {
  std::set<std::string> known = {"address_book.cc", "jobs.cc",       "kv.cc",
                                 "list.cc",         "phone_book.cc", "transfer.cc"},
                        there;
  for (const auto& entry : std::filesystem::directory_iterator(STELE_SOURCE_DIR "/examples"))
    if (entry.path().extension() == ".cc" &&
        !entry.path().filename().string().starts_with("itm_") &&
        !entry.path().filename().string().ends_with("_test.cc") &&
        entry.path().filename() != "care.cc" && entry.path().filename() != "debug.cc")
      there.insert(entry.path().filename());
  EXPECT_EQ(known, there)
      << "an example is not run here (care.cc asks for what this mechanism has not; debug.cc is "
         "compiled with STELE_DEBUG)";
  std::string program = "example", path = dir_.file("list");
  char* arguments[] = {program.data(), path.data(), nullptr};
  EXPECT_EQ(list_example::example_main(2, arguments), 0);
  path = dir_.file("bank");
  arguments[1] = path.data();
  EXPECT_EQ(transfer_example::example_main(2, arguments), 0);
  path = dir_.file("addresses");
  arguments[1] = path.data();
  EXPECT_EQ(address_book_example::example_main(2, arguments), 0);
  path = dir_.file("store");
  arguments[1] = path.data();
  EXPECT_EQ(kv_example::example_main(2, arguments), 0);
  path = dir_.file("phones");
  arguments[1] = path.data();
  EXPECT_EQ(phone_book_example::example_main(2, arguments), 0);
  path = dir_.file("jobs");
  arguments[1] = path.data();
  EXPECT_EQ(jobs_example::example_main(2, arguments), 0);
}

}  // namespace
}  // namespace stele::testing
