// Lists in a pool beside std::deque: random changes, some of them rolled back. STELE_SEED repeats
// the choices.
#include <adapters/redis/stored_list.h>
#include <tests/redis/structure_bed.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace stele::redis {
namespace {

using model = std::deque<std::string>;
using bed = structure_bed<stored_list>;

std::vector<std::string> texts_from(const stored_list& list, std::uint64_t first,
                                    std::uint64_t count, bool backwards) {
  std::vector<std::string> seen;
  const auto note = [&](std::string&& text) {
    seen.push_back(std::move(text));
    return true;
  };
  backwards ? list.for_each_backwards(first, count, note) : list.for_each(first, count, note);
  return seen;
}

std::uint64_t erase_equal(model& m, const std::string& text, std::uint64_t most, bool backwards) {
  std::uint64_t erased = 0;
  while (erased < most) {
    const auto found = backwards ? std::find(m.rbegin(), m.rend(), text).base()
                                 : std::find(m.begin(), m.end(), text);
    if (found == (backwards ? m.begin() : m.end())) break;
    m.erase(backwards ? found - 1 : found);
    ++erased;
  }
  return erased;
}

// Grows to up to `longest` texts and shrinks to none, by turns.
class changes {
 public:
  changes(std::uint64_t seed, std::uint64_t longest) : random_(seed), longest_(longest) {}

  void one(stored_list& list, model& m) {
    if (m.empty()) growing_ = true;
    if (m.size() > longest_) growing_ = false;
    if (random_.below(8) < (growing_ ? 6 : 2))
      more(list, m);
    else
      fewer(list, m);
    ASSERT_EQ(list.size(), m.size());
  }
  void look(const stored_list& list, const model& m) {
    const std::uint64_t first = random_.below(m.size() + 2), count = random_.below(100);
    std::vector<std::string> expected;
    for (std::uint64_t i = first; i < m.size() && expected.size() < count; ++i)
      expected.push_back(m[i]);
    ASSERT_EQ(texts_from(list, first, count, false), expected);
    expected.clear();
    for (std::uint64_t i = first + 1; first < m.size() && i != 0 && expected.size() < count; --i)
      expected.push_back(m[i - 1]);
    ASSERT_EQ(texts_from(list, first, count, true), expected);
    if (first < m.size()) {
      ASSERT_EQ(list.at(first), m[first]);
    } else {
      ASSERT_THROW(static_cast<void>(list.at(first)), failure);
    }
  }
  base::rng& random() { return random_; }

 private:
  std::string text() { return random_.below(4) == 0 ? std::string("often") : random_text(random_); }
  void more(stored_list& list, model& m) {
    const std::string added = text();
    const std::uint64_t at = random_.below(m.size() + 1);
    switch (random_.below(4)) {
      case 0:
        list.push_front(added);
        return m.push_front(added);
      case 1:
        list.push_back(added);
        return m.push_back(added);
      default:
        list.insert(at, added);
        m.insert(m.begin() + static_cast<std::ptrdiff_t>(at), added);
    }
  }
  void fewer(stored_list& list, model& m) {
    if (m.empty()) return;
    const std::uint64_t kind = random_.below(80);
    const std::uint64_t first = kind < 20 ? 0 : kind < 40 ? m.size() - 1 : random_.below(m.size());
    const bool backwards = random_.below(2) == 0;
    if (kind >= 70 && kind < 75) {
      const std::string changed = text();
      list.set(first, changed);
      m[first] = changed;
    } else if (kind == 75) {
      const std::uint64_t most = random_.below(3) == 0 ? m.size() : random_.below(5);
      ASSERT_EQ(list.erase_equal("often", most, backwards),
                erase_equal(m, "often", most, backwards));
    } else if (kind == 76 && random_.below(20) == 0) {
      list.clear();
      m.clear();
    } else {
      const std::uint64_t all = m.size() - first;
      const std::uint64_t count =
          kind < 68 ? 1 : 1 + random_.below(std::min<std::uint64_t>(all, 200));
      list.erase(first, count);
      const auto from = m.begin() + static_cast<std::ptrdiff_t>(first);
      m.erase(from, from + static_cast<std::ptrdiff_t>(count));
    }
  }

  base::rng random_;
  std::uint64_t longest_;
  bool growing_ = true;
};

class list_on : public ::testing::TestWithParam<std::tuple<std::string, std::uint64_t>> {};
INSTANTIATE_TEST_SUITE_P(redis, list_on,
                         ::testing::Combine(::testing::ValuesIn(tested_mechanisms()),
                                            ::testing::Values(5, 40, 4000)));

TEST_P(list_on, is_a_deque) {
  const auto& [mechanism, longest] = GetParam();
  const std::uint64_t seed = budget::count_from("STELE_SEED", 1);
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  bed b(mechanism);
  changes c(seed, longest);
  model m;
  const int steps = 4000 / static_cast<int>(budget::slowness);
  for (int step = 0; step < steps && !HasFatalFailure(); ++step) {
    const bool kept = c.random().below(8) != 0;
    const model before = kept ? model() : m;
    b.change(
        [&](stored_list& list) {
          for (std::uint64_t i = 1 + c.random().below(8); i != 0; --i) c.one(list, m);
        },
        kept);
    if (!kept) m = before;
    if (m.size() < 300 || step % 16 == 0) b.expect_sound();
    b.look([&](const stored_list& list) { c.look(list, m); });
    if (step % 1000 == 999) b.reopen();
  }
  b.look([&](const stored_list& list) {
    EXPECT_EQ(texts_from(list, 0, m.size(), false), std::vector(m.begin(), m.end()));
  });
  b.change([](stored_list& list) { list.clear(); });
  EXPECT_EQ(b.used_bytes(), b.empty_bytes());
}

TEST(list, refuses_positions_that_are_not_there) {
  bed b("default");
  b.change([](stored_list& list) {
    EXPECT_THROW(list.erase(0), failure);
    EXPECT_THROW(list.insert(1, "x"), failure);
    EXPECT_THROW(list.set(0, "x"), failure);
    list.push_back("a");
    list.push_back("b");
    EXPECT_THROW(list.erase(1, 2), failure);
    EXPECT_THROW(list.erase(1, ~std::uint64_t{0}), failure);
    list.erase(2, 0);
    EXPECT_EQ(list.size(), 2u);
  });
}

// The last position of the range is beyond 2^64: it is 0 then, which there is.
TEST(list, refuses_ranges_that_wrap) {
  bed b("default");
  b.change([](stored_list& list) {
    for (const char* text : {"a", "b", "c"}) list.push_back(text);
    EXPECT_THROW(list.erase(2, ~std::uint64_t{0}), failure);
    EXPECT_THROW(list.erase(1, ~std::uint64_t{0}), failure);
    EXPECT_EQ(texts_from(list, 0, 9, false), (std::vector<std::string>{"a", "b", "c"}));
  });
  b.expect_sound();
}

// The words of a list: its first block, its last, its size.
TEST(list, check_finds_a_wrong_size_and_a_wrong_end) {
  bed b("default");
  for (const std::size_t damaged : {0u, 1u, 2u})
    b.change([&](stored_list& list) {
      list.clear();
      for (int i = 0; i < 100; ++i) list.push_back("x");
      auto* const words = reinterpret_cast<field<std::uint64_t>*>(&list);
      const std::uint64_t right = words[damaged];
      words[damaged] = damaged == 0 ? 0 : damaged == 1 ? words[0] - 8 : right + 1;
      const auto sound = list.check();
      ASSERT_FALSE(sound);
      EXPECT_EQ(sound.error().code, errc::corrupt);
      words[damaged] = right;
      EXPECT_TRUE(list.check());
    });
}

TEST(list, walk_ends_when_it_is_told_to) {
  bed b("default");
  b.change([](stored_list& list) {
    for (int i = 0; i < 100; ++i) list.push_back(std::to_string(i));
    std::string seen;
    list.for_each(97, 10, [&](std::string&& text) {
      seen += text;
      return text != "98";
    });
    list.for_each_backwards(2, 10, [&](std::string&& text) {
      seen += text;
      return text != "1";
    });
    EXPECT_EQ(seen, "979821");
  });
}

// Bytes of the heap for each text of 8 bytes, whose slot has 24.
double bytes_of_text(std::uint64_t count) {
  bed b("default");
  b.change([&](stored_list& list) {
    for (std::uint64_t i = 0; i < count; ++i) list.push_back("12345678");
  });
  return static_cast<double>(b.used_bytes() - b.empty_bytes()) / static_cast<double>(count);
}

TEST(list, is_small) {
  EXPECT_LE(bytes_of_text(1), 96);
  EXPECT_LE(bytes_of_text(3), 32);
  EXPECT_LE(bytes_of_text(10), 40);
  EXPECT_LE(bytes_of_text(10'000), 26);
}

// A list that is pushed at one end and popped at the other stays as small as it is short.
TEST(list, of_few_texts_stays_small_as_a_queue) {
  bed b("default");
  b.change([](stored_list& list) {
    list.push_back("one");
    list.push_back("two");
  });
  for (int i = 0; i < 100; ++i)
    b.change([](stored_list& list) {
      list.push_back("three");
      list.erase(0);
    });
  EXPECT_LE(b.used_bytes() - b.empty_bytes(), 2u * 96);
}

// Of a list of 10,000 texts of 8 bytes.
TEST(list, changes_store_few_words) {
  bed b("default");
  base::rng random(1);
  b.change([](stored_list& list) {
    for (int i = 0; i < 10'000; ++i) list.push_back("12345678");
  });
  const auto expect = [&](double words, auto&& change, const char* what) {
    EXPECT_NEAR(b.words_of([&](stored_list& l) { change(l, random.below(l.size())); }), words, 0.5)
        << what;
  };
  expect(4.1, [](stored_list& l, auto) { l.push_back("12345678"); }, "push_back");
  expect(4.1, [](stored_list& l, auto) { l.push_front("12345678"); }, "push_front");
  expect(2, [](stored_list& l, auto) { l.erase(0); }, "the first erased");
  expect(2, [](stored_list& l, auto at) { l.set(at, "87654321"); }, "set");
  expect(23, [](stored_list& l, auto at) { l.insert(at, "12345678"); }, "insert");
  expect(9.7, [](stored_list& l, auto at) { l.erase(at); }, "erase");
}

}  // namespace
}  // namespace stele::redis
