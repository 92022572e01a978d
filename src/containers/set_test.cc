// set and hash_set compared with std::set by random operations; and that their items have no bytes
// for values.
#include <stele/set.h>

#include <containers/map_model.h>

#include <vector>

namespace stele::testing {
namespace {

template <class Set>
class set_of : public ::testing::Test {};
template <class Memory, class K>
using ordered = basic_set<basic_map<K, detail::no_value, Memory>>;
template <class Memory, class K>
using hashed = basic_set<basic_hash_map<K, detail::no_value, Memory>>;
template <class S, class M>
struct on {
  using set = S;
  using memory = M;
};
using sets =
    ::testing::Types<on<ordered<plain_memory, std::uint64_t>, plain_memory>,
                     on<hashed<plain_memory, std::uint64_t>, plain_memory>,
                     on<set<std::uint64_t>, pool_memory>, on<hash_set<std::uint64_t>, pool_memory>,
                     on<set<string>, pool_memory>, on<hash_set<string>, pool_memory>,
                     on<coalescing_set<coalescing_string>, coalescing_memory>,
                     on<coalescing_hash_set<std::uint64_t>, coalescing_memory>>;
TYPED_TEST_SUITE(set_of, sets);

template <class Set>
std::multiset<decltype(sample<typename Set::key_type>::of(0))> content_of(const Set& s) {
  std::multiset<decltype(sample<typename Set::key_type>::of(0))> content;
  for (const auto& key : s) content.insert(value_in(key));
  return content;
}

TYPED_TEST(set_of, behaves_as_a_set) {
  using set = typename TypeParam::set;
  using samples = sample<typename set::key_type>;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    bed<set, typename TypeParam::memory> b;
    std::set<decltype(samples::of(0))> model;
    base::rng random(seed);
    for (int i = 0; i < 2000; ++i) {
      const auto key = samples::of(random.below(150));
      const auto choice = random.below(5);
      b.update([&](set& s) {
        if (choice == 0) {
          ASSERT_EQ(s.count(key), model.count(key));
          ASSERT_EQ(s.find(key) == s.end(), !model.contains(key));
        } else if (choice <= (i / 500 % 2 == 0 ? 1 : 3)) {
          ASSERT_EQ(s.erase(key), model.erase(key));
        } else {
          const auto [at, fresh] = s.insert(key);
          ASSERT_EQ(fresh, model.insert(key).second);
          ASSERT_EQ(value_in(*at), key);
        }
      });
      if (i % 16 == 0)
        b.read([&](const set& s) {
          ASSERT_TRUE(s.check());
          ASSERT_EQ(s.size(), model.size());
          ASSERT_EQ(s.empty(), model.empty());
          const auto content = content_of(s);
          ASSERT_TRUE(std::equal(content.begin(), content.end(), model.begin(), model.end()));
        });
      if (::testing::Test::HasFailure()) return;
    }
    b.update([](set& s) {
      for (auto it = s.begin(); it != s.end();) it = s.erase(it);
      ASSERT_TRUE(s.empty() && s.check());
      s.clear();
      EXPECT_TRUE(blocks_of(s).empty());
    });
  }
}

TEST(set, is_in_order_and_has_its_ranges) {
  bed<set<string>, pool_memory> b;
  b.update([](set<string>& s) {
    for (const char* key : {"d", "a", "c", "e", "b"}) s.insert(key);
    std::string forward, backward, part;
    for (const auto& key : s) forward += key.str();
    for (auto it = s.rbegin(); it != s.rend(); ++it) backward += it->str();
    for (const auto& key : s.range("b", "d")) part += key.str();
    EXPECT_EQ(forward, "abcde");
    EXPECT_EQ(backward, "edcba");
    EXPECT_EQ(part, "bc");
    EXPECT_EQ(s.lower_bound("bb")->str(), "c");
    EXPECT_EQ(s.upper_bound("c")->str(), "d");
    EXPECT_TRUE(s.range("x", "b").empty());
  });
}

TEST(hash_set, scan_meets_every_key) {
  bed<hash_set<string>, pool_memory> b;
  b.update([](hash_set<string>& s) {
    for (int i = 0; i < 100; ++i) s.insert(std::to_string(i));
  });
  b.read([](const hash_set<string>& s) {
    std::set<std::string> met;
    std::uint64_t cursor = 0;
    do cursor = s.scan(cursor, [&](const string& key) { met.insert(key.str()); });
    while (cursor != 0);
    EXPECT_EQ(met.size(), 100u);
  });
}

TEST(set, keeps_no_bytes_for_values) {
  static_assert(sizeof(map_item<std::uint64_t, detail::no_value, pool_memory>) == 8);
  static_assert(sizeof(map_item<string, detail::no_value, pool_memory>) == sizeof(string));
  bed<hash_set<std::uint64_t>, pool_memory> b;
  b.update([](hash_set<std::uint64_t>& s) { s.reserve(16), s.insert(1); });
  const std::size_t before = b.pool().space().used_bytes;
  b.update([](hash_set<std::uint64_t>& s) { s.insert(2); });
  EXPECT_EQ(b.pool().space().used_bytes - before, 16u) << "a link and a key";
}

}  // namespace
}  // namespace stele::testing
