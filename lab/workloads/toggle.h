// The workloads over maps: an operation deletes its key if it is there, else inserts it. The map
// starts half full.
//
// A Maps type names the map: `map<V, Memory>` with word keys, and prepare(map, keys).
#pragma once

#include <workloads/run.h>

#include <map>
#include <span>
#include <vector>

namespace stele::workloads {

class toggle_model final : public model {
 public:
  explicit toggle_model(const key_space& keys) : value_size_(keys.params().value_size) {
    for (std::uint64_t k = 0; k < keys.size(); ++k) {
      if (keys.present_at_start(k)) words_[k] = keys.word_at_start(k);
    }
  }
  void apply(const operation& op) override {
    if (op.what == operation::kind::toggle && words_.erase(op.a) == 0) words_[op.a] = op.b;
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (const auto& [key, word] : words_) sum += digest_word(key, word, value_size_);
    return sum;
  }

 private:
  std::size_t value_size_;
  std::map<std::uint64_t, std::uint64_t> words_;
};

template <class Map>
concept has_find_many = requires(const Map& map, std::span<const std::uint64_t> keys) {
  map.find_many(keys, [](std::size_t, const auto&) {});
};

template <class Maps, std::size_t N>
struct toggle {
  static constexpr std::string_view name = Maps::name;
  template <class Memory>
  using root = typename Maps::template map<value_of_size<N, Memory>, Memory>;

  template <class Map>
  static void prepare(Map& map, const key_space& keys) {
    Maps::prepare(map, keys.size());
  }
  template <class Map>
  static void fill(Map& map, const key_space& keys, std::uint64_t i) {
    const std::uint64_t key = keys.scattered(i);
    if (keys.present_at_start(key))
      map.insert(key, value_from<typename Map::mapped_type>(keys.word_at_start(key)));
  }
  template <class Map>
  static void apply(Map& map, const key_space&, const operation& op) {
    auto entry = map.find_entry(op.a);
    if (entry.exists()) {
      entry.erase();
    } else {
      entry.insert(value_from<typename Map::mapped_type>(op.b));
    }
  }
  template <class Map>
  static void read(const Map& map, const operation& op) {
    if (const auto stored = Maps::find(map, op.a)) do_not_optimize(stored_value(*stored));
  }
  // The reads among the operations, by one call of a map that has one for many keys.
  template <class Map>
    requires has_find_many<Map>
  static void read_many(const Map& map, std::span<const operation> operations) {
    static thread_local std::vector<std::uint64_t> keys;
    keys.clear();
    for (const operation& op : operations)
      if (only_reads(op)) keys.push_back(op.a);
    map.find_many(std::span<const std::uint64_t>(keys), [](std::size_t, const auto& found) {
      if (found) do_not_optimize(stored_value(*found));
    });
  }
  template <class Map>
  static std::uint64_t digest(const Map& map) {
    std::uint64_t sum = 0;
    map.for_each([&](std::uint64_t key, const auto& stored) {
      sum += digest_value(key, stored_value(stored));
    });
    return sum;
  }

  static operation draw(const key_space& keys, base::rng& random) {
    if (keys.draws_read(random)) return {operation::kind::read, keys.draw(random), 0};
    const std::uint64_t key = keys.draw(random);
    return {operation::kind::toggle, key, random()};
  }
  static std::unique_ptr<model> make_model(const key_space& keys) {
    return std::make_unique<toggle_model>(keys);
  }
};

}  // namespace stele::workloads
