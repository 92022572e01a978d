// kill -9 in the middle: writers are killed at random moments, again and again on one pool, and every time the pool opens as
// a prefix of the commits that holds all that was acknowledged.
//
// The k-th commit turns a chain of objects into one that a function of k gives, so the whole content is checked against k.
// STELE_KILLS sets the number of kills a mechanism; STELE_SEED repeats the choices.
#include <base/rng.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <map>

namespace stele::testing {
namespace {

constexpr std::uint64_t keys = 64;

struct object {
  field<std::uint64_t> key, commit;
  field<object*> next;
  field<std::uint64_t> bulk[24];
};
struct root {
  field<std::uint64_t> commit;
  field<object*> first;
};

struct step {
  std::uint64_t key;
  std::uint64_t objects;  // this many keys from `key` on are renewed; 0: the key is dropped
};
step step_of(std::uint64_t commit) {
  base::rng random(commit * 77);
  return {random.below(keys), random.below(8) == 0 ? 0 : 1 + random.below(random.below(16) == 0 ? 40 : 3)};
}

field<object*>* link_to(root& r, std::uint64_t key) {
  auto* link = &r.first;
  while (link->load() != nullptr && (*link)->key < key) link = &(*link)->next;
  return link;
}
void renew(root& r, std::uint64_t key, std::uint64_t commit, bool keep) {
  auto* link = link_to(r, key);
  object* next = *link;
  if (next != nullptr && next->key == key) {
    object* const old = next;
    next = old->next;
    destroy(old);
  }
  if (keep) {
    auto* o = make<object>();
    o->key = key, o->commit = commit, o->next = next;
    for (auto& b : o->bulk) b = commit;
    next = o;
  }
  *link = next;
}

void run_commit(root& r, std::uint64_t commit) {
  const step s = step_of(commit);
  r.commit = commit;
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(s.objects, 1); ++i) renew(r, (s.key + i) % keys, commit, s.objects != 0);
}

using content = std::map<std::uint64_t, std::uint64_t>;  // key to the commit that renewed it
content content_after(std::uint64_t commits) {
  content c;
  for (std::uint64_t n = 1; n <= commits; ++n) {
    const step s = step_of(n);
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(s.objects, 1); ++i)
      if (s.objects != 0)
        c[(s.key + i) % keys] = n;
      else
        c.erase(s.key);
  }
  return c;
}

// The pool's commit number; fails the test when its content is another's.
std::uint64_t check_content(const pool<root>& p) {
  content found;
  auto commit = p.read([&](const root& r) {
    found.clear();
    for (const object* o = r.first; o != nullptr; o = o->next) {
      found[o->key] = o->commit;
      for (const auto& b : o->bulk) EXPECT_EQ(b.load(), o->commit.load());
    }
    return r.commit.load();
  });
  EXPECT_TRUE(holds(commit));
  EXPECT_EQ(found, content_after(commit.value_or(0)));
  EXPECT_EQ(audit(p).used_blocks, found.size() + 1);
  return commit.value_or(0);
}

class killed_writer : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(killed_writer, loses_nothing_acknowledged_and_leaves_no_half) {
  const std::uint64_t seed = seed_from("STELE_SEED"), kills = count_from("STELE_KILLS", 20);
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  scratch_directory dir;
  auto options = setting{std::get<0>(GetParam()), std::get<1>(GetParam())}.options(512 << 10);
  options.log_size = 4096, options.log_count = 2;
  std::uint64_t done = 0;
  for (std::uint64_t k = 0; k < kills; ++k) {
    const std::uint64_t begin = done;
    std::uint64_t acknowledged;
    {
      child writer([&](const teller& tell) {
        auto p = open_pool<root>(dir.file("pool"), options);
        for (std::uint64_t n = begin + 1;; ++n) {
          if (auto committed = p.update([&](root& r) { run_commit(r, n); }); !committed) throw std::runtime_error(committed.error().message);
          tell(n);
        }
      });
      ::usleep(static_cast<useconds_t>(random.below(6000)));
      acknowledged = writer.kill_and_drain(begin);
    }
    auto p = open_pool<root>(dir.file("pool"), options);
    done = check_content(p);
    ASSERT_GE(done, acknowledged) << "kill " << k;
    ASSERT_LE(done, acknowledged + 1) << "kill " << k;
    if (HasFailure()) return;
  }
  RecordProperty("commits", std::to_string(done));
}

INSTANTIATE_TEST_SUITE_P(all, killed_writer, ::testing::Combine(::testing::ValuesIn(durable_mechanisms()), ::testing::Values("process", "adr", "file")), setting_name);

}  // namespace
}  // namespace stele::testing
