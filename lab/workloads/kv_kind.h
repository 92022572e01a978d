// kv: the operations of Tokyo Cabinet's hash database on string keys and values: put, putcat
// (append), out (erase), get.
//
// Half of the changes erase and half write, so the map stays half full; a quarter of the writes
// append. A key is a text of 16 characters. A value repeats one word. An append adds a quarter of
// the value size.
#pragma once

#include <stele/hash_map.h>
#include <stele/string.h>
#include <workloads/run.h>

#include <array>

namespace stele::workloads::kv_texts {

class key_text {
 public:
  explicit key_text(std::uint64_t key) {
    std::uint64_t bits = detail::hash_word(key);  // a bijection
    for (char& c : text_) c = "0123456789abcdef"[bits & 15], bits >>= 4;
  }
  operator std::string_view() const { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 16> text_;
};

class value_text {
 public:
  value_text(std::uint64_t word, std::size_t size) : size_(size) { fill_with(text_, size, word); }
  operator std::string_view() const { return {text_, size_}; }

 private:
  char text_[4096];
  std::size_t size_;
};

inline std::size_t append_size(const key_space& keys) {
  return std::max<std::size_t>(keys.params().value_size / 4, 8);
}

inline std::uint64_t digest_text(std::string_view key, std::string_view value) {
  return digest_item(detail::hash_bytes(key.data(), key.size()), value.data(), value.size());
}

std::unique_ptr<model> make_kv_model(const key_space& keys);

struct benchmark {
  static constexpr std::string_view name = "kv";
  template <class Memory>
  using root = basic_hash_map<basic_string<Memory>, basic_string<Memory>, Memory>;

  template <class Map>
  static void prepare(Map& map, const key_space& keys) {
    map.reserve(keys.size());
  }
  template <class Map>
  static void fill(Map& map, const key_space& keys, std::uint64_t i) {
    const std::uint64_t key = keys.scattered(i);
    if (keys.present_at_start(key))
      map.insert(key_text(key), value_text(keys.word_at_start(key), keys.params().value_size));
  }
  template <class Map>
  static void apply(Map& map, const key_space& keys, const operation& op) {
    const key_text key(op.a);
    switch (op.what) {
      case operation::kind::put:
        map.insert_or_assign(key, value_text(op.b, keys.params().value_size));
        break;
      case operation::kind::append:
        append(map, key, value_text(op.b, append_size(keys)));
        break;
      case operation::kind::erase:
        map.erase(key);
        break;
      default:
        break;
    }
  }
  template <class Map>
  static void append(Map& map, std::string_view key, std::string_view more) {
    auto entry = map.find_entry(key);
    if (entry.exists()) {
      entry.item().second.append(more);
    } else {
      entry.insert(more);
    }
  }
  template <class Map>
  static void read(const Map& map, const operation& op) {
    if (const auto found = map.find(key_text(op.a)); found != map.end())
      do_not_optimize(found->second.str());
  }
  template <class Map>
  static std::uint64_t digest(const Map& map) {
    std::uint64_t sum = 0;
    map.for_each(
        [&](const auto& key, const auto& value) { sum += digest_text(key.str(), value.str()); });
    return sum;
  }

  static operation draw(const key_space& keys, base::rng& random) {
    if (keys.draws_read(random)) return {operation::kind::read, keys.draw(random), 0};
    const std::uint64_t key = keys.draw(random);
    if (keys.draws_fresh()) return {operation::kind::put, key, random()};
    const std::uint64_t choice = random.below(8);
    if (choice < 4) return {operation::kind::erase, key, 0};
    return {choice < 7 ? operation::kind::put : operation::kind::append, key, random()};
  }
  static std::unique_ptr<model> make_model(const key_space& keys) { return make_kv_model(keys); }
};

}  // namespace stele::workloads::kv_texts
