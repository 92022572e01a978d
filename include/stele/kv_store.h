// kv_store: a key-value store as a member of your own pool, beside fields and containers, in the
// same transactions. A pool that is nothing but stores is stele::kv (kv.h).
//
//   struct shop {
//     using pool_resident = void;
//     stele::kv_store users, orders;
//     stele::field<std::uint64_t> next_order;
//   };
//   auto pool = stele::pool<shop>::open("shop.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](shop& s) {  // all of it or nothing
//     s.users.put("user/7", "ann");
//     s.orders.put("order/" + std::to_string((s.next_order += 1).load()), "user/7");
//   });
//
// Call members inside a transaction of the pool, changing members inside an update. They throw
// failure, which becomes the error that update() or read() returns: invalid_argument for a key or
// value beyond the limits of kv.h, full, corrupt. Do not swallow unknown exceptions (field.h). Keys
// are ordered as unsigned bytes; a prefix comes before the longer key. key.h makes keys of numbers
// and tuples. Zeroed memory is an empty store. The layout on media is in docs/format/kv.md.
//
// An item may have an expiry time, by the system's clock, exact to a millisecond. From then on it
// is not seen, as if it had been erased. Its space is free when remove_expired() has removed it.
// After a step of the clock backwards by up to 10 s, time stands still until the clock has caught
// up. A greater step back, or one while no process has the pool open, may show expired items again.
//
// Thread safety: that of the transaction. Puts of different keys rarely conflict.
#pragma once

#include <stele/pool.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stele {

struct kv_item {
  std::string key, value;
  friend bool operator==(const kv_item&, const kv_item&) = default;
};

// An item in the caller's memory.
struct kv_pair {
  std::string_view key, value;
};

using kv_time = std::chrono::system_clock::time_point;

// What a store consists of. Space is in bytes, as allocated. Expired items that have not been
// removed count.
struct kv_statistics {
  std::uint64_t items = 0, key_bytes = 0, value_bytes = 0;
  std::uint64_t item_space = 0;
  std::uint64_t hash_buckets = 0, hash_space = 0;
  std::uint64_t tree_nodes = 0, tree_space = 0;
  std::uint64_t expiring_items = 0;  // that have an expiry time
  std::uint64_t expired_items = 0;   // of these, whose time has passed
  // By how much the system's clock is behind the time that items expire by; 0: it is not.
  std::chrono::milliseconds clock_behind{0};
};

class kv_store {
 public:
  using pool_resident = void;

  static constexpr std::size_t max_key_bytes = std::size_t{1} << 16;
  static constexpr std::size_t max_value_bytes = std::size_t{1} << 30;

  // Called on items in key order; returning false ends the walk. Key and value are copies, valid
  // during the call.
  using visit = std::function<bool(std::string_view key, std::string_view value)>;
  // Called with the number of a key and a copy of its value, valid during the call; no value: the
  // key is not there.
  using each_value = std::function<void(std::size_t i, std::optional<std::string_view> value)>;
  // Called with the value of a key, which it may change, reset, or give to a key that is not there.
  using change = std::function<void(std::optional<std::string>& value)>;

  kv_store() noexcept = default;  // leaves the bytes unchanged
  ~kv_store();                    // frees all items
  kv_store(const kv_store&) = delete;
  kv_store& operator=(const kv_store&) = delete;

  // Reads.

  // A key of an invalid size is not found. The second form reuses the memory of `into` and leaves
  // `into` unchanged if the key is not found.
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  bool get(std::string_view key, std::string& into) const;
  [[nodiscard]] bool contains(std::string_view key) const;
  // Calls each(i, value) for keys[i], in order. `each` must not change the store.
  void get_many(std::span<const std::string_view> keys, const each_value& each) const;
  // When the item expires. Empty: never, or it is not there.
  [[nodiscard]] std::optional<kv_time> expiry(std::string_view key) const;
  // Calls f on the items with from <= key < to in key order until f returns false. An empty `to`
  // means no bound. f must not change the store.
  void for_each(std::string_view from, std::string_view to, const visit& f) const;
  // The same items in the opposite order.
  void for_each_backward(std::string_view from, std::string_view to, const visit& f) const;
  // The items whose key begins with `prefix`, in key order.
  void for_each_prefix(std::string_view prefix, const visit& f) const;
  // first: the first item with a key not less than `from`. last: the last item of the store.
  // last_before: the last item with a key less than `to`. Empty if there is none.
  [[nodiscard]] std::optional<kv_item> first(std::string_view from = {}) const;
  [[nodiscard]] std::optional<kv_item> last() const;
  [[nodiscard]] std::optional<kv_item> last_before(std::string_view to) const;
  [[nodiscard]] std::size_t size() const;  // O(items)
  // O(items).
  [[nodiscard]] kv_statistics statistics() const;

  // Changes.

  // Inserts or overwrites. The item does not expire, even if the one before did.
  void put(std::string_view key, std::string_view value);
  // The item expires at `when`; if that has passed, this is an erase.
  void put_until(std::string_view key, std::string_view value, kv_time when);
  // The item expires after `lifetime`, which is at least 1 ms.
  void put_for(std::string_view key, std::string_view value, std::chrono::milliseconds lifetime);
  // Puts all pairs in order. Checks all sizes first; after `full` the transaction must be rolled
  // back, as after a put.
  void put_many(std::span<const kv_pair> pairs);
  // Returns whether the key was there. Works in a full pool.
  bool erase(std::string_view key);
  // Puts if the value is `expected`; no value: if the key is not there. Returns whether it has put.
  // Keeps the expiry time.
  bool put_if(std::string_view key, std::optional<std::string_view> expected,
              std::string_view value);
  // Calls f(value) once in each attempt of the transaction; see change. Keeps the expiry time.
  void modify(std::string_view key, const change& f);
  // Adds n to a counter and returns it. A counter is a value of eight bytes, little-endian; a key
  // that is not there counts as 0. Keeps the expiry time. Throws invalid_argument for a value of
  // another length, or if the sum overflows.
  std::int64_t add(std::string_view key, std::int64_t n);
  // Removes up to `limit` items whose time has passed, the earliest first; returns how many. Works
  // in a full pool.
  std::size_t remove_expired(std::size_t limit);

  // Errors: corrupt, if the indexes and items of the store are inconsistent. O(size of the store).
  [[nodiscard]] result<> check() const;
  // Calls f(block) for every allocated block of the store.
  void visit_blocks(const std::function<void(const void*)>& f) const;

 private:
  [[maybe_unused]] field<std::uint64_t> words_[43];  // docs/format/kv.md
};

// The value of a counter; empty if these are not eight bytes.
[[nodiscard]] std::optional<std::int64_t> counter_of(std::string_view value) noexcept;

}  // namespace stele
