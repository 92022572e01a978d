// Objects in large slabs: blocks that straddle chunks, made and destroyed by two threads under
// every mechanism, in several sessions, in pools that are full, grow and are copied.
#include <base/rng.h>
#include <stele/leaks.h>
#include <tests/conformance/pools.h>

#include <thread>

namespace stele::testing {
namespace {

constexpr unsigned slots_each = 24;
// Words: parts of a chunk of 16 KiB, and one to six chunks that are not whole.
constexpr std::size_t lengths[] = {3, 5, 140, 260, 700, 1300, 2200, 2560, 4600, 7000, 9300, 11500};

struct item {
  field<std::uint64_t> words, seed;
  field<field<std::uint64_t>*> content;
};
struct root {
  item items[2 * slots_each];
};

void replace(item& i, std::size_t words, std::uint64_t seed) {
  if (i.content.load() != nullptr) destroy(i.content.load());
  i.words = words, i.seed = seed;
  i.content = words == 0 ? nullptr : make_array<field<std::uint64_t>>(words);
  for (std::size_t w = 0; w < words; w += 97) i.content.load()[w] = seed + w;
  if (words != 0) i.content.load()[words - 1] = seed;
}

void expect_content(const root& r, std::uint64_t& used) {
  used = 0;
  for (const item& i : r.items) {
    if (i.words == 0) continue;
    ++used;
    const std::uint64_t last = i.words - 1;
    for (std::size_t w = 0; w < last; w += 97) ASSERT_EQ(i.content.load()[w], i.seed + w);
    ASSERT_EQ(i.content.load()[last], i.seed.load());
  }
}

void expect_whole(pool<root>& p) {
  std::uint64_t used = 0;
  ASSERT_TRUE(succeeds(p.read([&](const root& r) { expect_content(r, used); })));
  ASSERT_TRUE(succeeds(p.sync()));
  EXPECT_EQ(audit(p).used_blocks, used + 1);
}

// Random replacements in one thread's slots; some are rolled back.
void churn(pool<root>& p, unsigned thread, std::uint64_t seed) {
  base::rng random(seed);
  for (int n = 0; n < 150; ++n) {
    const std::uint64_t slot = thread * slots_each + random.below(slots_each), content = random();
    const std::size_t words = random.below(3) == 0 ? 0 : lengths[random.below(std::size(lengths))];
    const bool cancelled = random.below(5) == 0;
    const auto done = p.update([&](root& r) {
      replace(r.items[slot], words, content);
      if (cancelled) cancel("not this one");
    });
    EXPECT_TRUE(cancelled ? fails_with(done, errc::cancelled) : succeeds(done));
  }
}

class large_slabs : public ::testing::TestWithParam<std::string> {};

TEST_P(large_slabs, hold_what_two_threads_made_over_several_sessions) {
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  scratch_directory dir;
  const auto options = setting{GetParam(), "process"}.options(16u << 20);
  for (unsigned session = 0; session < 3; ++session) {
    auto p = open_pool<root>(dir.file("pool"), options);
    expect_whole(p);
    std::thread other([&] { churn(p, 1, seed + 2 * session + 1); });
    churn(p, 0, seed + 2 * session);
    other.join();
    expect_whole(p);
    ASSERT_TRUE(succeeds(p.close()));
  }
}

INSTANTIATE_TEST_SUITE_P(all, large_slabs, ::testing::ValuesIn(all_mechanisms()), plain_name);

// Values of 1.3 chunks until none fits; then others of another size in their place.
TEST(large_slabs, of_a_full_pool_make_room_for_other_sizes) {
  scratch_directory dir;
  auto p = open_pool<root>(dir.file("pool"), setting{"default", "process"}.options(16u << 20));
  std::uint64_t counts[2] = {};
  for (const std::size_t bytes : {21000u, 50000u, 21000u}) {
    std::vector<field<std::uint64_t>*> made;
    const auto add = [&] {
      return p.update([&](root&) { made.push_back(make_array<field<std::uint64_t>>(bytes / 8)); });
    };
    auto added = add();
    while (added) added = add();
    EXPECT_TRUE(fails_with(added, errc::full));
    made.resize(audit(p).used_blocks - 1);
    const double fill =
        static_cast<double>(made.size() * bytes) / static_cast<double>(audit(p).used_chunks << 14);
    EXPECT_GE(fill, 0.85) << bytes;
    if (bytes == 21000) counts[counts[0] != 0 ? 1 : 0] = made.size();
    for (auto* content : made) ASSERT_TRUE(succeeds(p.update([&](root&) { destroy(content); })));
  }
  EXPECT_GE(counts[1] + 8, counts[0]) << "what the other size left is used again";
}

TEST(large_slabs, survive_growth_and_a_backup) {
  scratch_directory dir;
  auto options = setting{"default", "process"}.options(3u << 20);
  options.max_size = 64u << 20;
  auto p = open_pool<root>(dir.file("pool"), options);
  for (unsigned i = 0; i < 2 * slots_each; ++i)
    ASSERT_TRUE(
        succeeds(p.update([&](root& r) { replace(r.items[i], lengths[8 + i % 4], i + 1); })));
  EXPECT_GT(p.space().size_bytes, 3u << 20);
  expect_whole(p);
  churn(p, 0, 5);
  expect_whole(p);
  ASSERT_TRUE(succeeds(p.backup(dir.file("copy"))));
  ASSERT_TRUE(succeeds(p.close()));
  for (const char* name : {"pool", "copy"}) {
    auto again = open_pool<root>(dir.file(name), options);
    expect_whole(again);
    churn(again, 1, 6);
    expect_whole(again);
  }
}

}  // namespace
}  // namespace stele::testing
