// Sorted sets in a pool beside std::map and std::set: random changes, some of them rolled back.
// STELE_SEED repeats the choices.
#include <adapters/redis/stored_scores.h>
#include <tests/redis/structure_bed.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace stele::redis {
namespace {

using bed = structure_bed<stored_scores>;
using pairs = std::vector<std::pair<std::string, double>>;

struct model {
  std::map<std::string, double> scores;
  std::set<std::pair<double, std::string>> order;

  std::uint64_t size() const { return order.size(); }
  bool put(const std::string& member, double score) {
    const bool fresh = !erase(member);
    scores[member] = score;
    order.insert({score, member});
    return fresh;
  }
  bool erase(const std::string& member) {
    const auto found = scores.find(member);
    if (found == scores.end()) return false;
    order.erase({found->second, member});
    scores.erase(found);
    return true;
  }
  const std::pair<double, std::string>& at(std::uint64_t rank) const {
    return *std::next(order.begin(), static_cast<std::ptrdiff_t>(rank));
  }
  std::uint64_t rank_of(const std::string& member) const {
    return static_cast<std::uint64_t>(
        std::distance(order.begin(), order.find({scores.at(member), member})));
  }
  template <class Before>
  std::uint64_t count(Before&& is_before) const {
    return static_cast<std::uint64_t>(std::count_if(order.begin(), order.end(), is_before));
  }
  pairs ranks(std::uint64_t first, std::uint64_t count) const {
    pairs seen;
    for (std::uint64_t r = first; r < size() && seen.size() < count; ++r)
      seen.emplace_back(at(r).second, at(r).first);
    return seen;
  }
};

pairs pairs_from(const stored_scores& s, std::uint64_t first, std::uint64_t count,
                 bool backwards = false) {
  pairs seen;
  const auto note = [&](std::string_view member, double score) {
    seen.emplace_back(member, score);
    return true;
  };
  backwards ? s.for_each_backwards(first, count, note) : s.for_each(first, count, note);
  return seen;
}

// Grows to up to `most` members and shrinks to none, by turns. Few scores: many are equal.
class changes {
 public:
  changes(std::uint64_t seed, std::uint64_t most, std::uint64_t scores)
      : random_(seed), most_(most), scores_(scores) {}

  void one(stored_scores& s, model& m) {
    if (m.size() == 0) growing_ = true;
    if (m.size() > most_) growing_ = false;
    const std::uint64_t kind = random_.below(40);
    if (kind < 5) {
      const std::string member = there(m);
      const auto known = m.scores.find(member);
      const bool stays = kind < 2 && scores_ != 1 && known != m.scores.end();
      const double score = stays ? known->second + 1e-9 : this->score();
      ASSERT_EQ(s.put(member, score), m.put(member, score));
    } else if (kind == 5 && random_.below(10) == 0) {
      erase_ranks(s, m);
    } else if (kind == 6 && random_.below(200) == 0) {
      s.clear();
      m = {};
    } else if (kind < 6 + 34 * (growing_ ? 3u : 1u) / 4) {
      const std::string member = any();
      const double score = this->score();
      ASSERT_EQ(s.put(member, score), m.put(member, score));
    } else {
      const std::string member = random_.below(4) == 0 ? any() : there(m);
      ASSERT_EQ(s.erase(member), m.erase(member));
    }
    ASSERT_EQ(s.size(), m.size());
  }
  void look(const stored_scores& s, const model& m) {
    const std::uint64_t first = random_.below(m.size() + 2), count = random_.below(100);
    ASSERT_EQ(pairs_from(s, first, count), m.ranks(first, count));
    pairs expected = m.ranks(first + 1 - std::min(count, first + 1), std::min(count, first + 1));
    std::reverse(expected.begin(), expected.end());
    if (first >= m.size()) expected.clear();
    ASSERT_EQ(pairs_from(s, first, count, true), expected);
    const std::string member = random_.below(2) == 0 ? any() : there(m);
    const bool known = m.scores.contains(member);
    ASSERT_EQ(s.find(member), known ? std::optional(m.scores.at(member)) : std::nullopt);
    ASSERT_EQ(s.rank_of(member), known ? std::optional(m.rank_of(member)) : std::nullopt);
    const double score = this->score();
    ASSERT_EQ(s.rank_of_score(score, false),
              m.count([&](const auto& item) { return item.first < score; }));
    ASSERT_EQ(s.rank_of_score(score, true),
              m.count([&](const auto& item) { return item.first <= score; }));
    if (scores_ != 1) return;
    ASSERT_EQ(s.rank_of_member_bytes(member, false),
              m.count([&](const auto& item) { return item.second < member; }));
    ASSERT_EQ(s.rank_of_member_bytes(member, true),
              m.count([&](const auto& item) { return item.second <= member; }));
  }
  base::rng& random() { return random_; }

 private:
  double score() {
    return scores_ == 1 ? 0 : (static_cast<double>(random_.below(scores_)) - 50) / 4;
  }
  std::string any() {
    const std::uint64_t number = random_.below(2 * most_);
    return std::string(number % 50, static_cast<char>(number % 256)) + std::to_string(number);
  }
  std::string there(const model& m) {
    if (m.size() == 0) return any();
    const auto from = m.scores.lower_bound(any());
    return from == m.scores.end() ? m.scores.begin()->first : from->first;
  }
  void erase_ranks(stored_scores& s, model& m) {
    const std::uint64_t first = random_.below(m.size() + 1), count = random_.below(300);
    s.erase_ranks(first, count);
    for (const auto& [member, score] : m.ranks(first, count)) m.erase(member);
  }

  base::rng random_;
  std::uint64_t most_, scores_;
  bool growing_ = true;
};

class scores_on
    : public ::testing::TestWithParam<std::tuple<std::string, std::uint64_t, std::uint64_t>> {};
INSTANTIATE_TEST_SUITE_P(redis, scores_on,
                         ::testing::Combine(::testing::ValuesIn(tested_mechanisms()),
                                            ::testing::Values(20, 300, 5000),
                                            ::testing::Values(1, 100, 1'000'000)));

TEST_P(scores_on, are_a_map_and_a_set) {
  const auto& [mechanism, most, scores] = GetParam();
  const std::uint64_t seed = budget::count_from("STELE_SEED", 1);
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  bed b(mechanism);
  changes c(seed, most, scores);
  model m;
  const int steps = 3000 / static_cast<int>(budget::slowness);
  for (int step = 0; step < steps && !HasFatalFailure(); ++step) {
    const bool kept = c.random().below(8) != 0;
    const model before = kept ? model() : m;
    b.change(
        [&](stored_scores& s) {
          for (std::uint64_t i = 1 + c.random().below(10); i != 0; --i) c.one(s, m);
        },
        kept);
    if (!kept) m = before;
    if (m.size() < 100 || step % 32 == 0) {
      b.expect_sound();
      b.look([&](const stored_scores& s) { c.look(s, m); });
    }
    if (step % 1000 == 999) b.reopen();
  }
  b.look(
      [&](const stored_scores& s) { EXPECT_EQ(pairs_from(s, 0, m.size()), m.ranks(0, m.size())); });
  b.change([](stored_scores& s) { s.clear(); });
  EXPECT_EQ(b.used_bytes(), b.empty_bytes());
}

// Ascending, descending and by turns at both ends; then from the lowest, as a queue.
TEST(scores, of_any_order_of_arrival_are_in_order) {
  for (int way = 0; way < 3; ++way) {
    bed b("default");
    b.change([&](stored_scores& s) {
      for (int i = 0; i < 5000; ++i)
        s.put(std::to_string(i), way == 0 ? i : way == 1 ? -i : i % 2 == 0 ? i : -i);
    });
    b.expect_sound();
    for (std::uint64_t left = 5000; left != 0; left -= 50) {
      b.change([&](stored_scores& s) {
        s.erase_ranks(0, 49);
        s.erase_ranks(s.size() - 1, 1);
      });
      b.expect_sound();
    }
    b.look([](const stored_scores& s) { EXPECT_EQ(s.size(), 0u); });
  }
}

TEST(scores, treat_both_zeros_as_one) {
  bed b("default");
  b.change([](stored_scores& s) {
    s.put("b", -0.0);
    s.put("a", 0.0);
    s.put("c", 0.0);
    EXPECT_EQ(s.rank_of("b"), 1u);
    EXPECT_EQ(s.rank_of_score(-0.0, false), 0u);
    EXPECT_EQ(s.rank_of_score(-0.0, true), 3u);
    EXPECT_FALSE(s.put("b", 0.0));
    EXPECT_FALSE(std::signbit(*s.find("b")));
  });
  b.expect_sound();
}

// The words of the leaf of a small set: the order of its slots; from each on, a score and an item.
TEST(scores, check_finds_a_wrong_leaf) {
  bed b("default");
  b.change([&](stored_scores& s) {
    for (int i = 0; i < 5; ++i) s.put(std::to_string(i), i);
    const void* last = nullptr;  // of the blocks: the leaf
    s.visit_blocks([&](const void* block) { last = block; });
    auto* const words = reinterpret_cast<field<std::uint64_t>*>(const_cast<void*>(last));
    const std::uint64_t order = words[0], score = words[1];
    for (const auto& [word, wrong] :
         {std::pair{0, order - 1}, {0, order ^ 0x30}, {0, order + 0x10}, {1, score ^ 1}}) {
      const std::uint64_t right = words[word];
      words[word] = wrong;
      const auto sound = s.check();
      ASSERT_FALSE(sound) << word << " " << wrong;
      EXPECT_EQ(sound.error().code, errc::corrupt);
      words[word] = right;
      EXPECT_TRUE(s.check());
    }
  });
}

// The last words of a sorted set: its root, its height, its size. The first member that is put
// there would be looked for in an inner node that is a leaf.
TEST(scores, check_finds_levels_without_a_node) {
  bed b("default");
  b.change([](stored_scores& s) {
    EXPECT_TRUE(s.check());
    auto* const words = reinterpret_cast<field<std::uint64_t>*>(&s);
    auto& height = words[sizeof(stored_scores) / sizeof(std::uint64_t) - 2];
    ASSERT_EQ(height, 0u);
    for (const std::uint64_t wrong : {1, 2, 5}) {
      height = wrong;
      const auto sound = s.check();
      ASSERT_FALSE(sound) << wrong;
      EXPECT_EQ(sound.error().code, errc::corrupt);
    }
    height = 0;
    EXPECT_TRUE(s.check());
  });
}

TEST(scores, walk_ends_when_it_is_told_to) {
  bed b("default");
  b.change([](stored_scores& s) {
    for (int i = 0; i < 100; ++i) s.put(std::to_string(i), i);
    std::string seen;
    s.for_each(97, 10, [&](std::string_view member, double score) {
      seen += member;
      return score != 98;
    });
    s.for_each_backwards(2, 10, [&](std::string_view member, double score) {
      seen += member;
      return score != 1;
    });
    EXPECT_EQ(seen, "979821");
  });
}

// Members come and go and the buckets double while a scan runs.
TEST(scores, scan_meets_all_that_stay) {
  const std::uint64_t seed = budget::count_from("STELE_SEED", 1);
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  for (int round = 0; round < 20; ++round) {
    bed b("default");
    const std::uint64_t stay = random.below(300);
    b.change([&](stored_scores& s) {
      for (std::uint64_t i = 0; i < stay; ++i) s.put("stays " + std::to_string(i), 0);
    });
    std::map<std::string, double> seen;
    std::uint64_t cursor = 0, steps = 0;
    do {
      b.look([&](const stored_scores& s) {
        cursor = s.scan(cursor, [&](std::string_view member, double score) {
          seen[std::string(member)] = score;
        });
      });
      b.change([&](stored_scores& s) {
        for (std::uint64_t i = random.below(12); i != 0; --i) {
          const std::string member = "comes and goes " + std::to_string(random.below(4000));
          if (random.below(4) == 0)
            s.erase(member);
          else
            s.put(member, 1);
        }
      });
      ASSERT_LT(++steps, 100'000u);
    } while (cursor != 0);
    std::erase_if(seen, [](const auto& item) { return item.second != 0; });
    EXPECT_EQ(seen.size(), stay);
  }
}

// Bytes of the heap for each member of up to 23 bytes.
double bytes_of_member(std::uint64_t count, bool ascending) {
  bed b("default");
  base::rng random(1);
  b.change([&](stored_scores& s) {
    for (std::uint64_t i = 0; i < count; ++i)
      s.put("member " + std::to_string(i), ascending ? static_cast<double>(i) : random.unit());
  });
  return static_cast<double>(b.used_bytes() - b.empty_bytes()) / static_cast<double>(count);
}

TEST(scores, are_small) {
  EXPECT_LE(bytes_of_member(1, false), 380);
  EXPECT_LE(bytes_of_member(10, false), 85);
  EXPECT_LE(bytes_of_member(100, false), 85);
  EXPECT_LE(bytes_of_member(10'000, false), 90);
  EXPECT_LE(bytes_of_member(10'000, true), 80);
}

// Of a set of 100,000 members of 7 to 12 bytes.
TEST(scores, changes_store_few_words) {
  bed b("default");
  base::rng random(1);
  const auto member = [&] { return "member" + std::to_string(random.below(100'000)); };
  b.change([&](stored_scores& s) {
    for (int i = 0; i < 100'000; ++i) s.put("member" + std::to_string(i), random.unit());
  });
  // Splits off the buckets that are still due.
  b.change([&](stored_scores& s) {
    for (int i = 0; i < 100'000; ++i) s.put("member" + std::to_string(i), random.unit());
  });
  const auto expect = [&](double words, auto&& change, const char* what) {
    EXPECT_NEAR(b.words_of(change), words, 0.5) << what;
  };
  expect(
      2.1,
      [&](auto& s) {
        const std::string m = member();
        s.put(m, *s.find(m) + 1e-12);
      },
      "score in place");
  expect(14.5, [&](auto& s) { s.put(member(), random.unit()); }, "score elsewhere");
  expect(14.6, [&](auto& s) { s.put(member() + " more", random.unit()); }, "new");
  expect(7.6, [&](auto& s) { s.erase(member()); }, "erased");
  expect(8.2, [](auto& s) { s.erase_ranks(0, 1); }, "lowest erased");
}

}  // namespace
}  // namespace stele::redis
