// Compares every container with the standard library's, under every mechanism. Random transactions
// over all containers commit, are cancelled, throw in the middle or find the pool full. One that
// did not commit leaves all containers as they were.
//
// `shelf` holds one container of each kind, `twin` the standard ones; change() does one operation
// on both. Policies and sessions alternate. STELE_SEED replays a failure.
#include <containers/map_model.h>
#include <stele/queue.h>
#include <stele/vector.h>
#include <stele/word_map.h>
#include <tests/conformance/pools.h>

#include <deque>
#include <unordered_map>
#include <unordered_set>

namespace stele::testing {
namespace {

using number = std::uint64_t;

struct shelf {
  using pool_resident = void;
  vector<number> numbers;
  vector<string> names;
  queue<number> tickets;
  queue<string> waiting;
  map<string, number> ordered;
  set<number> present;
  hash_map<number, string> hashed;
  hash_set<string> marked;
  bptree<number, number> tree;
  array<number> fixed;
  string text;
  coalescing_vector<coalescing_string> lines;
  coalescing_map<coalescing_string, coalescing_string> words;
};

struct twin {
  std::vector<number> numbers;
  std::vector<std::string> names;
  std::deque<number> tickets;
  std::deque<std::string> waiting;
  std::map<std::string, number> ordered;
  std::set<number> present;
  std::unordered_map<number, std::string> hashed;
  std::unordered_set<std::string> marked;
  std::map<number, number> tree;
  std::vector<number> fixed;
  std::string text;
  std::vector<std::string> lines;
  std::map<std::string, std::string> words;
};

// Calls f(container, its twin) for each pair.
template <class Shelf, class Twin, class F>
void for_each_pair(Shelf& s, Twin& t, F&& f) {
  f(s.numbers, t.numbers), f(s.names, t.names), f(s.tickets, t.tickets), f(s.waiting, t.waiting),
      f(s.ordered, t.ordered), f(s.present, t.present);
  f(s.hashed, t.hashed), f(s.marked, t.marked), f(s.tree, t.tree), f(s.fixed, t.fixed),
      f(s.text, t.text), f(s.lines, t.lines), f(s.words, t.words);
}
constexpr std::size_t kinds = 13;

template <class T>
T made_of(number n) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::to_string(n) + std::string(n % 60, 'x');
  } else {
    return n;
  }
}

// One random operation on a container and its twin.

template <class T, class Memory, class V>
void change(basic_vector<T, Memory>& v, std::vector<V>& m, base::rng& random) {
  const V x = made_of<V>(random.below(1000));
  const auto at = static_cast<std::ptrdiff_t>(random.below(m.size() + 1));
  const auto choice = random.below(8);
  if (choice < 3 || m.empty()) {
    v.push_back(x), m.push_back(x);
  } else if (choice < 5) {
    v.insert(v.begin() + at, x), m.insert(m.begin() + at, x);
  } else if (choice == 5) {
    v.pop_back(), m.pop_back();
  } else if (choice == 6) {
    v.resize(static_cast<std::size_t>(at)), m.resize(static_cast<std::size_t>(at));
  } else {
    v.erase(v.begin(), v.begin() + at), m.erase(m.begin(), m.begin() + at);
  }
}

template <class T, class V>
void change(queue<T>& q, std::deque<V>& m, base::rng& random) {
  if (random.below(5) < 3 || m.empty()) {
    const V x = made_of<V>(random.below(1000));
    q.push(x), m.push_back(x);
  } else {
    EXPECT_EQ(value_in(q.front()), m.front());
    q.pop(), m.pop_front();
  }
}

template <class Map, class Model>
  requires requires { typename Model::mapped_type; }
void change(Map& map, Model& m, base::rng& random) {
  const auto key = made_of<typename Model::key_type>(random.below(80));
  const auto value = made_of<typename Model::mapped_type>(random.below(1000));
  switch (random.below(4)) {
    case 0:
      EXPECT_EQ(map.insert(key, value).second, m.emplace(key, value).second);
      break;
    case 1:
      EXPECT_EQ(map.insert_or_assign(key, value).second, m.insert_or_assign(key, value).second);
      break;
    default:
      EXPECT_EQ(map.erase(key), m.erase(key));
  }
}

template <class Map, class Set>
void change(basic_set<Map>& s, Set& m, base::rng& random) {
  const auto key = made_of<typename Set::key_type>(random.below(80));
  if (random.below(2) == 0) {
    EXPECT_EQ(s.insert(key).second, m.insert(key).second);
  } else {
    EXPECT_EQ(s.erase(key), m.erase(key));
  }
}

void change(array<number>& a, std::vector<number>& m, base::rng& random) {
  const std::size_t size = random.below(40), at = random.below(m.size() + 1);
  if (at == m.size()) {
    a.resize(size), m.resize(size);
  } else {
    a[at] = size, m[at] = size;
  }
}

void change(string& s, std::string& m, base::rng& random) {
  const std::string more = made_of<std::string>(random.below(1000));
  switch (random.below(4)) {
    case 0:
      s = more, m = more;
      break;
    case 1:
      s.resize(more.size()), m.resize(more.size());
      break;
    case 2:
      s.push_back('c'), m.push_back('c');
      break;
    default:
      s += more, m += more;
  }
}

// `count` operations on containers drawn at random; throws before operation number `end`.
void change_any(shelf& s, twin& t, base::rng& random, std::size_t count,
                std::size_t end = ~std::size_t{0}) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i == end) throw std::runtime_error("in the middle");
    std::size_t kind = random.below(kinds);
    for_each_pair(s, t, [&](auto& container, auto& model) {
      if (kind-- == 0) change(container, model, random);
    });
  }
}

// The content of a container, as its twin's type.
template <class Container, class Model>
Model content_of(const Container& c, const Model&) {
  Model content;
  if constexpr (std::is_same_v<Model, std::string>) {
    content = c.str();
  } else if constexpr (requires { typename Model::mapped_type; }) {
    c.for_each([&](const auto& key, const auto& value) {
      EXPECT_TRUE(content.emplace(value_in(key), value_in(value)).second);
    });
  } else {
    c.for_each([&](const auto& element) { content.insert(content.end(), value_in(element)); });
  }
  return content;
}

// Fails the test unless all containers are sound and equal to their twins, and together own every
// block of the pool except the root's.
void expect_same(pool<shelf>& p, const twin& t) {
  const auto read = p.read([&](const shelf& s) -> result<std::uint64_t> {
    std::set<const void*> blocks;
    result<> sound;
    for_each_pair(s, t, [&](const auto& container, const auto& model) {
      if (sound) sound = container.check();
      EXPECT_EQ(content_of(container, model), model);
      container.visit_blocks([&](const void* b) {
        EXPECT_TRUE(blocks.insert(b).second) << "a block is reached twice";
      });
    });
    if (!sound) return std::unexpected(sound.error());
    return blocks.size();
  });
  ASSERT_TRUE(succeeds(read));
  EXPECT_EQ(audit(p).used_blocks, *read + 1) << "a block is lost";
}

pool<shelf> open_shelf(const scratch_directory& dir, const std::string& mechanism,
                       concurrency policy, std::size_t size) {
  auto o = setting{mechanism, "process", policy}.options(size);
  // A log must hold clear() of everything that fits into a pool.
  o.engine.log_size = 65536, o.engine.log_count = 2;
  return open_pool<shelf>(dir.file("pool"), o);
}

class containers : public ::testing::TestWithParam<std::string> {
 protected:
  pool<shelf> open(concurrency policy, std::size_t size = 4u << 20) {
    return open_shelf(dir_, GetParam(), policy, size);
  }
  scratch_directory dir_;
};

// Runs one random transaction with a random ending. Returns whether `t` became its outcome.
bool run_one(pool<shelf>& p, twin& t, base::rng& random) {
  const std::uint64_t seed = random(), operations = 1 + random.below(12), ending = random.below(6);
  twin next;
  result<> done;
  const auto body = [&](shelf& s) -> result<> {
    next = t;
    base::rng choices(seed);
    change_any(s, next, choices, operations, ending == 0 ? choices.below(operations) : operations);
    if (ending == 1) cancel("on purpose");
    if (ending == 2) return std::unexpected(error{errc::not_found, "on purpose"});
    return {};
  };
  try {
    done = p.update(body);
    EXPECT_EQ(done.has_value(), ending > 2);
  } catch (const std::runtime_error&) {
    EXPECT_EQ(ending, 0u);
    return false;
  }
  if (done) t = std::move(next);
  return done.has_value();
}

TEST_P(containers, hold_what_the_standards_hold) {
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  twin t;
  int committed = 0;
  for (int session = 0; session < 6; ++session) {
    auto p = open(all_policies[session % 3]);
    expect_same(p, t);
    for (int i = 0; i < 60; ++i) committed += run_one(p, t, random);
    expect_same(p, t);
    if (HasFailure()) return;
  }
  EXPECT_GT(committed, 100);
}

// The body throws before each of its operations in turn.
TEST_P(containers, a_body_that_throws_anywhere_has_changed_nothing) {
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  twin t;
  auto p = open(concurrency::stm);
  const auto body = [&](std::size_t operations, std::size_t end) {
    return [&, operations, end, before = t](shelf& s) {
      base::rng choices(seed + operations);
      t = before;
      change_any(s, t, choices, operations, end);
    };
  };
  ASSERT_TRUE(succeeds(p.update(body(300, 300))));
  const twin before = t;
  for (std::size_t end = 0; end < 25; ++end) {
    EXPECT_THROW((void)p.update(body(25, end)), std::runtime_error);
    t = before;
    expect_same(p, t);
    if (HasFailure()) return;
  }
}

// Adds an element for each number to a container or its twin, which is a Model. The numbers must be
// new to it.
template <class Model, class Container>
void grow(Container& c, number from, number to) {
  for (number n = from; n < to; ++n) {
    if constexpr (std::is_same_v<Model, std::string>) {
      c += std::string(5000, 't');
    } else if constexpr (requires { typename Model::mapped_type; }) {
      c.insert_or_assign(made_of<typename Model::key_type>(n),
                         made_of<typename Model::mapped_type>(n));
    } else if constexpr (requires { typename Model::key_type; }) {
      c.insert(made_of<typename Model::key_type>(n));
    } else if constexpr (requires { c.push_back(made_of<typename Model::value_type>(n)); }) {
      c.push_back(made_of<typename Model::value_type>(n));
    } else {
      c.push(made_of<typename Model::value_type>(n));
    }
  }
}

template <class Model>
void grow(array<number>& a, number from, number to) {
  std::size_t size = a.size();
  a.resize(size + to - from);
  for (number n = from; n < to; ++n) a[size++] = n;
}

// Fills the pool with container number `kind`, by transactions that change other containers too,
// until one fails. `t` is the committed content. The growing twin is kept separate, because bodies
// work on copies of the others.
result<> fill(pool<shelf>& p, twin& t, std::size_t kind, std::size_t batch, base::rng& random) {
  static number grown = 1000;
  twin apart;
  const auto with_kind = [&](auto& a, auto& b, auto&& f) {
    std::size_t k = kind;
    for_each_pair(a, b, [&](auto& one, auto& other) { k-- == 0 ? f(one, other) : void(); });
  };
  with_kind(apart, t, [](auto& one, auto& other) { std::swap(one, other); });
  for (;; grown += batch) {
    twin next;
    const std::uint64_t seed = random();
    const result<> done = p.update([&](shelf& s) {
      next = t;
      base::rng choices(seed);
      std::size_t k = 0;
      for_each_pair(s, next, [&](auto& container, auto& model) {
        if (k++ != kind && choices.below(4) == 0) change(container, model, choices);
      });
      with_kind(s, next, [&]<class Model>(auto& container, Model&) {
        grow<Model>(container, grown, grown + batch);
      });
    });
    if (!done) {
      with_kind(apart, t, [](auto& one, auto& other) { std::swap(one, other); });
      return done;
    }
    t = std::move(next);
    with_kind(apart, t,
              [&]<class Model>(Model& model, Model&) { grow<Model>(model, grown, grown + batch); });
  }
}

void fill_and_clear(pool<shelf> p, std::uint64_t seed) {
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  twin t;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    SCOPED_TRACE("container " + std::to_string(kind));
    for (const std::size_t batch : {500, 20, 1}) {
      ASSERT_TRUE(fails_with(fill(p, t, kind, batch, random), errc::full));
      expect_same(p, t);
      if (::testing::Test::HasFailure()) return;
    }
    ASSERT_TRUE(succeeds(p.update([&](shelf& s) {
      for_each_pair(s, t, [&](auto& container, auto& model) { container.clear(), model.clear(); });
    }))) << "freeing works in a full pool";
    expect_same(p, t);
  }
}

TEST_P(containers, a_full_pool_refuses_and_nothing_has_changed) {
  fill_and_clear(open(concurrency::stm, 1u << 20), seed_from("STELE_SEED"));
}

// With the first seed, a transaction that grew a vector and freed one node had once taken the
// chunks that are kept for freeing.
TEST(containers_in_logs, leave_room_to_free_all) {
  if (known_of({"log_structured"}).empty()) GTEST_SKIP() << "needs stele::published";
  for (const std::uint64_t seed : std::initializer_list<std::uint64_t>{42767410433993, 3}) {
    scratch_directory dir;
    fill_and_clear(open_shelf(dir, "log_structured", concurrency::stm, 1u << 20), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(all, containers, ::testing::ValuesIn(all_mechanisms()), plain_name);

template <class Map>
void emplace_twice() {
  scratch_directory dir;
  auto p = open_pool<Map>(dir.file("pool"), {.create_size = 1 << 20});
  ASSERT_TRUE(succeeds(p.update([](Map& map) {
    EXPECT_TRUE(map.emplace(1, 10).second);
    EXPECT_FALSE(map.emplace(1, 11).second);
    EXPECT_TRUE(map.try_emplace(2, 20).second);
    EXPECT_FALSE(map.try_emplace(2, 21).second);
    number sum = 0;
    map.for_each([&](const auto&, const auto& value) { sum += value; });
    EXPECT_EQ(sum, 30u);
  })));
}

TEST(maps, emplace_only_what_is_not_there) {
  emplace_twice<map<number, number>>();
  emplace_twice<hash_map<number, number>>();
  emplace_twice<bptree<number, number>>();
  emplace_twice<word_map<number, number>>();
}

TEST(strings, become_standard_ones) {
  scratch_directory dir;
  auto p = open_pool<string>(dir.file("pool"), {.create_size = 1 << 20});
  ASSERT_TRUE(succeeds(p.update([](string& text) {
    text = "a text that is longer than what fits inline";
    const std::string copy = text;
    EXPECT_TRUE(copy == text && text == copy);
    std::string assigned;
    assigned = text;
    EXPECT_EQ(assigned, copy);
  })));
}

}  // namespace
}  // namespace stele::testing
