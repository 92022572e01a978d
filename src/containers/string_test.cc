// string compared with std::string by random operations around the size limits of its two forms.
#include <stele/string.h>

#include <base/rng.h>
#include <containers/test_bed.h>

namespace stele::testing {
namespace {

template <class Memory>
class string_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(string_on, memories);

std::string text_of(base::rng& random, std::size_t most) {
  std::string text(random.below(most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random.below(256));
  return text;
}

TYPED_TEST(string_on, behaves_as_std_string) {
  using string = basic_string<TypeParam>;
  base::rng random(11);
  bed<string, TypeParam> b;
  std::string model;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = text_of(random, random.below(4) == 0 ? 700 : 30);
    const bool append = random.below(2) == 0 && model.size() < 3000;
    append ? model.append(text) : model.assign(text);
    b.update([&](string& s) { append ? s.append(text) : s.assign(text); });
    b.read([&](const string& s) {
      ASSERT_TRUE(s.check());
      ASSERT_EQ(s.str(), model);
      ASSERT_EQ(s.size(), model.size());
      ASSERT_EQ(s.empty(), model.empty());
      ASSERT_GE(s.capacity(), s.size());
    });
  }
}

TYPED_TEST(string_on, grows_and_shrinks_by_bytes_as_std_string) {
  using string = basic_string<TypeParam>;
  base::rng random(12);
  bed<string, TypeParam> b;
  std::string model;
  b.update([&](string& s) {
    EXPECT_THROW(s.pop_back(), failure);
    EXPECT_THROW((void)s.at(0), failure);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t size = random.below(80);
      const char c = static_cast<char>('a' + size % 26);
      if (random.below(20) == 0) {
        s.resize(size, c), model.resize(size, c);
      } else if (i / 100 % 2 == 0 || model.empty()) {
        s.push_back(c), model.push_back(c);
      } else {
        s.pop_back(), model.pop_back();
      }
      ASSERT_TRUE(s.check());
      ASSERT_EQ(s.str(), model);
      if (model.empty()) continue;
      ASSERT_EQ(s.at(size % model.size()), model[size % model.size()]);
      ASSERT_TRUE(s.front() == model.front() && s.back() == model.back());
    }
  });
}

TYPED_TEST(string_on, text_up_to_23_bytes_needs_no_block) {
  using string = basic_string<TypeParam>;
  bed<string, TypeParam> b;
  for (std::size_t n = 0; n <= 40; ++n) {
    b.update([&](string& s) { s = std::string(n, 'a'); });
    b.read([&](const string& s) {
      EXPECT_EQ(blocks_of(s).size(), n <= 23 ? 0u : 1u);
      EXPECT_EQ(s.str(), std::string(n, 'a'));
    });
  }
}

TYPED_TEST(string_on, overwrites_in_place) {
  using string = basic_string<TypeParam>;
  base::rng random(6);
  bed<string, TypeParam> b;
  for (int i = 0; i < 500; ++i) {
    std::string text = text_of(random, i % 2 == 0 ? 23 : 600);
    const std::size_t at = random.below(text.size() + 1);
    const std::string part(random.below(text.size() - at + 1), 'P');
    b.update([&](string& s) { s = text; });
    const auto before = b.read([&](const string& s) { return blocks_of(s); });
    b.update([&](string& s) { s.overwrite(at, part); });
    text.replace(at, part.size(), part);
    b.read([&](const string& s) {
      ASSERT_EQ(s.str(), text);
      ASSERT_EQ(blocks_of(s), before);
    });
    b.update([&](string& s) { EXPECT_THROW(s.overwrite(text.size(), "x"), failure); });
  }
}

TYPED_TEST(string_on, has_parts_as_std_string) {
  using string = basic_string<TypeParam>;
  base::rng random(14);
  bed<string, TypeParam> b;
  for (const std::size_t size : {0, 1, 22, 23, 24, 25, 300, 4000}) {
    std::string model;
    while (model.size() < size) model += text_of(random, 9);
    model.resize(size);
    b.update([&](string& s) { s = model; });
    b.read([&](const string& s) {
      for (int i = 0; i < 100; ++i) {
        const std::size_t at = random.below(model.size() + 1), count = random.below(size + 9);
        ASSERT_EQ(s.substr(at, count), model.substr(at, count));
      }
      EXPECT_EQ(s.substr(0), model);
      EXPECT_EQ(s.substr(model.size()), "");
      EXPECT_THROW((void)s.substr(model.size() + 1), failure);
      EXPECT_THROW((void)s.substr(~std::size_t{0}, 1), failure);
    });
  }
}

TYPED_TEST(string_on, keeps_its_block_until_the_reserved_bytes_are_there) {
  using string = basic_string<TypeParam>;
  bed<string, TypeParam> b;
  b.update([&](string& s) {
    s = "short";
    s.reserve(1000);
    EXPECT_EQ(s.capacity(), string::inline_capacity);
    s = std::string(24, 'a');
    s.reserve(10);
    EXPECT_EQ(s.capacity(), 24u);
    s.reserve(1000);
    EXPECT_EQ(s.capacity(), 1000u);
    EXPECT_EQ(s.str(), std::string(24, 'a'));
    const auto reserved = blocks_of(s);
    while (s.size() + 61 <= 1000) s.append(std::string(61, 'b'));
    EXPECT_EQ(blocks_of(s), reserved);
    EXPECT_TRUE(s.check());
  });
}

TYPED_TEST(string_on, compares_as_bytes_do) {
  using string = basic_string<TypeParam>;
  base::rng random(5);
  bed<string, TypeParam> b;
  for (int i = 0; i < 2000; ++i) {
    std::string stored = text_of(random, i % 2 == 0 ? 6 : 600);
    std::string other =
        stored.substr(0, random.below(stored.size() + 1)) + (i % 3 == 0 ? "" : text_of(random, 2));
    if (i % 5 == 0) other = stored;
    b.update([&](string& s) { s = stored; });
    b.read([&](const string& s) {
      ASSERT_EQ(s.compare(other), stored <=> other);
      ASSERT_EQ(s == other, stored == other);
      ASSERT_EQ(s < other, stored < other);
    });
  }
}

TYPED_TEST(string_on, appending_within_capacity_keeps_the_block) {
  using string = basic_string<TypeParam>;
  bed<string, TypeParam> b;
  std::size_t moves = 0;
  std::set<const void*> last;
  for (int i = 0; i < 4096; ++i) {
    b.update([](string& s) { s += "x"; });
    b.read([&](const string& s) { moves += std::exchange(last, blocks_of(s)) != last; });
  }
  EXPECT_LE(moves, 9u);
}

}  // namespace
}  // namespace stele::testing
