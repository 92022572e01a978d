// Random operations on a map, compared with std::map: the property test that the maps share.
//
// A map under test has insert, insert_or_assign, erase, find_entry, contains, size, for_each and
// check; find_many is tested if it has that. Keys come from a small range, so that operations often
// use the same key. Phases favour inserts or erases, so that the map grows and shrinks.
#pragma once

#include <base/rng.h>
#include <containers/test_bed.h>

#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace stele::testing {

struct plan {
  std::uint64_t seed;
  std::size_t keys;
  std::size_t operations;
  std::size_t batch = 1;  // operations in one transaction
  std::size_t check_every = 64;
};

// How the test makes keys and values; the default is for integers.
template <class K>
struct sample {
  static K of(std::uint64_t n) { return static_cast<K>(n); }
  static K loaded(K stored) { return stored; }
};
template <std::size_t N>
struct sample<blob<N>> {
  static blob<N> of(std::uint64_t n) {
    blob<N> b;
    for (std::size_t i = 0; i < N; ++i) b.bytes[i] = static_cast<std::byte>(n >> (i % 8 * 8));
    return b;
  }
  static std::uint64_t loaded(const blob<N>& b) {
    std::uint64_t n = 0;
    std::memcpy(&n, b.bytes, std::min<std::size_t>(N, 8));
    EXPECT_EQ(of(n), b);
    return n;
  }
};
template <class Memory>
struct sample<basic_string<Memory>> {
  static std::string of(std::uint64_t n) {
    std::string text = std::to_string(n);
    return text.append(n % 40, 'x');
  }
  static std::uint64_t loaded(const std::string& text) {
    const std::uint64_t n = std::stoull(text);
    EXPECT_EQ(of(n), text);
    return n;
  }
};

// The value of a stored element, as an ordinary type.
template <class Stored>
auto value_in(const Stored& s) {
  if constexpr (requires { s.load(); }) {
    return s.load();
  } else if constexpr (requires { s.str(); }) {
    return s.str();
  } else {
    return s;
  }
}

// What find_many of a map passes on, as an ordinary type.
template <class Found>
auto found_value(const Found& found) {
  if constexpr (std::is_pointer_v<Found>)
    return found == nullptr ? std::nullopt : std::optional(value_in(*found));
  else
    return found;
}

// Looks up the keys of these numbers with find_many. Expects one call for each, in order.
template <class Map>
auto find_numbers(const Map& map, std::span<const std::uint64_t> numbers) {
  using key = decltype(sample<typename Map::key_type>::of(0));
  using view = std::conditional_t<std::is_same_v<key, std::string>, std::string_view,
                                  typename Map::key_type>;
  std::vector<key> keys;
  for (const std::uint64_t n : numbers) keys.push_back(sample<typename Map::key_type>::of(n));
  const std::vector<view> views(keys.begin(), keys.end());
  std::vector<std::optional<std::uint64_t>> values;
  map.find_many(std::span(views), [&](std::size_t i, const auto& found) {
    EXPECT_EQ(i, values.size());
    const auto value = found_value(found);
    values.emplace_back();
    if (value)
      values.back() = static_cast<std::uint64_t>(sample<typename Map::mapped_type>::loaded(*value));
  });
  EXPECT_EQ(values.size(), numbers.size());
  return values;
}

template <class Map>
class map_property_test {
  using K = sample<typename Map::key_type>;
  using V = sample<typename Map::mapped_type>;

 public:
  explicit map_property_test(plan p) : plan_(p), random_(p.seed) {}

  template <class Bed>
  void run(Bed& bed) {
    for (std::size_t done = 0; done < plan_.operations; done += plan_.batch) {
      bed.update([&](Map& map) {
        for (std::size_t i = 0; i < plan_.batch; ++i) step(map, done + i);
      });
      if (done % plan_.check_every < plan_.batch) bed.read([&](const Map& map) { compare(map); });
      if (::testing::Test::HasFailure()) return;
    }
    bed.read([&](const Map& map) { compare(map); });
  }

  void compare(const Map& map) const {
    const result<> status = map.check();
    ASSERT_TRUE(status) << status.error().message << ", seed " << plan_.seed;
    ASSERT_EQ(map.size(), model_.size());
    ASSERT_EQ(map.empty(), model_.empty());
    std::map<std::uint64_t, std::uint64_t> content;
    map.for_each([&](const auto& k, const auto& v) { content[loaded<K>(k)] = loaded<V>(v); });
    ASSERT_EQ(content, model_) << "seed " << plan_.seed;
    if constexpr (requires { &Map::template find_many<void (&)(std::size_t, int)>; })
      compare_many(map);
  }
  const std::map<std::uint64_t, std::uint64_t>& model() const { return model_; }

 private:
  template <class S, class Stored>
  static std::uint64_t loaded(const Stored& s) {
    return static_cast<std::uint64_t>(S::loaded(value_in(s)));
  }

  // None, a few, or several groups of keys; some of them twice, some of them not there.
  void compare_many(const Map& map) const {
    base::rng random(plan_.seed + model_.size());
    std::vector<std::uint64_t> numbers(random.below(2) * random.below(70));
    std::vector<std::optional<std::uint64_t>> expected;
    for (std::uint64_t& n : numbers) {
      n = random.below(plan_.keys);
      const auto found = model_.find(n);
      expected.push_back(found == model_.end() ? std::nullopt : std::optional(found->second));
    }
    ASSERT_EQ(find_numbers(map, numbers), expected) << "seed " << plan_.seed;
  }

  void step(Map& map, std::size_t number) {
    const std::uint64_t key = random_.below(plan_.keys);
    const std::uint64_t value = random_.below(200);
    const bool growing = number / (plan_.operations / 4 + 1) % 2 == 0;
    const std::uint64_t choice = random_.below(8);
    if (choice == 0) {
      ASSERT_EQ(map.contains(K::of(key)), model_.contains(key));
    } else if (choice == 1) {
      map.insert_or_assign(K::of(key), V::of(value));
      model_.insert_or_assign(key, value);
    } else if (choice == 2) {
      toggle(map, key, value);
    } else if (growing == (choice < 7)) {
      ASSERT_EQ(map.insert(K::of(key), V::of(value)).second, model_.insert({key, value}).second);
    } else {
      ASSERT_EQ(map.erase(K::of(key)), model_.erase(key));
    }
  }

  void toggle(Map& map, std::uint64_t key, std::uint64_t value) {
    const auto kept_key = K::of(key);
    auto entry = map.find_entry(kept_key);
    ASSERT_EQ(entry.exists(), model_.contains(key));
    if (entry.exists()) {
      entry.erase();
      model_.erase(key);
    } else {
      entry.insert(V::of(value));
      model_[key] = value;
    }
  }

  plan plan_;
  base::rng random_;
  std::map<std::uint64_t, std::uint64_t> model_;
};

}  // namespace stele::testing
