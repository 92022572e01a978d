// kv: an embedded key-value store in a pool file: byte strings in key order, changed by ACID
// transactions. Start with open(), put() and get().
//
//   auto store = stele::kv::open("store.stele", {.create_size = 64 << 20});
//   if (!store) return std::fprintf(stderr, "%s\n", store.error().message.c_str()), 1;
//   if (auto put = store->put("city/bern", "133883"); !put) return 1;  // durable on return
//   auto found = store->get("city/bern");
//   if (found && *found) std::printf("%s\n", (*found)->c_str());
//
// Keys have 1 to 65,536 bytes, values 0 to 2^30 bytes if the pool has room; both may contain any
// bytes. Keys are ordered as unsigned bytes; a prefix comes before the longer key. Each call below
// is a transaction of its own. Called inside update() or read() of the same store, it is part of
// that transaction. An acknowledged change survives what the pool's durability in force covers. A
// call that returns an error has changed nothing.
//
// The layout on media is in docs/format/kv.md. There is no item counter, because all puts would
// conflict on it; size() counts.
//
// Thread safety: any number of threads at once, except for move, close() and destruction. Under
// concurrency::external the caller locks. Puts of different keys rarely conflict; a conflict is
// retried inside the call.
#pragma once

#include <stele/pool.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stele {

struct kv_item {
  std::string key, value;
  friend bool operator==(const kv_item&, const kv_item&) = default;
};

// An item in the caller's memory.
struct kv_pair {
  std::string_view key, value;
};

class kv {
  struct state;

 public:
  static constexpr std::size_t max_key_bytes = std::size_t{1} << 16;
  static constexpr std::size_t max_value_bytes = std::size_t{1} << 30;
  static constexpr std::string_view layout = "stele.kv";

  // Called on items in key order; returning false ends the walk. Key and value are copies, valid
  // during the call.
  using visit = std::function<bool(std::string_view key, std::string_view value)>;
  // Called with the number of a key and a copy of its value, valid during the call; no value: the
  // key is not there.
  using each_value = std::function<void(std::size_t i, std::optional<std::string_view> value)>;
  class view;
  class changes;
  class batch;
  class cursor;

  // Opens the store at `path`, or creates it as pool<Root>::open does. options.layout must be empty
  // or `layout`. Errors: those of pool<Root>::open; layout, if the pool holds other data; version,
  // if the store has another version.
  [[nodiscard]] static result<kv> open(const std::string& path, const pool_options& options = {});

  // Opens the store for reading, in any number of processes beside one that has
  // it open for writing. Contract and errors: pool<Root>::open_read_only;
  // not_found, if it has no version yet.
  [[nodiscard]] static result<kv> open_read_only(const std::string& path);

  kv(kv&&) noexcept;
  kv& operator=(kv&&) noexcept;
  ~kv();  // close(); drops the error

  // Inserts or overwrites. Errors: invalid_argument for sizes beyond the limits above; full.
  [[nodiscard]] result<> put(std::string_view key, std::string_view value,
                             durability d = durability::durable);
  // Returns whether the key was there. Works in a full pool.
  [[nodiscard]] result<bool> erase(std::string_view key, durability d = durability::durable);
  // A key of an invalid size is not found. The second form reuses the memory of `into` and leaves
  // `into` unchanged if the key is not found.
  [[nodiscard]] result<std::optional<std::string>> get(std::string_view key) const;
  [[nodiscard]] result<bool> get(std::string_view key, std::string& into) const;
  [[nodiscard]] result<bool> contains(std::string_view key) const;
  // Gets many keys, all of one state, faster than one by one: calls each(i, value) for keys[i], in
  // order. After a conflict it begins again with the first key, so the last call for a key counts.
  // `each` must not change the store; what it throws ends the call.
  [[nodiscard]] result<> get_many(std::span<const std::string_view> keys,
                                  const each_value& each) const;
  // Puts all pairs in one transaction, in order, or none: of equal keys the last wins. Errors:
  // those of put; then nothing is put.
  [[nodiscard]] result<> put_many(std::span<const kv_pair> pairs,
                                  durability d = durability::durable);
  // Applies the whole batch in its order, or nothing.
  [[nodiscard]] result<> write(const batch& b, durability d = durability::durable);

  // Runs body(changes&) as one transaction, as pool<Root>::update does: the body may run several
  // times; if it returns an error or throws a failure, everything is rolled back.
  template <class Body>
  [[nodiscard]] auto update(Body&& body, durability d = durability::durable);
  // Runs body(const view&) on one state of the store; concurrent changes are not visible. The body
  // may run several times.
  template <class Body>
  [[nodiscard]] auto read(Body&& body) const;

  // At most `limit` items with from <= key < to, in key order, all of one state. An empty `to`
  // means no bound.
  [[nodiscard]] result<std::vector<kv_item>> range(std::string_view from, std::string_view to,
                                                   std::size_t limit) const;
  // Visits the items with from <= key < to outside of any transaction; see cursor.
  cursor walk(std::string_view from = {}, std::string_view to = {}) const;

  // Counts the items of one state. O(items).
  [[nodiscard]] result<std::size_t> size() const;
  // Errors: corrupt, if the indexes and items of the store are inconsistent. O(size of the store).
  [[nodiscard]] result<> check() const;

  // As in pool<Root>.
  [[nodiscard]] result<> backup(const std::string& path, const progress& report = {});
  [[nodiscard]] result<> grow(std::size_t size_bytes);
  [[nodiscard]] result<> sync();
  ticket committed() const noexcept;
  pool_counters counters() const noexcept;
  pool_space space() const;
  std::string durability_in_force() const;
  std::string mechanism() const;
  [[nodiscard]] result<> close();

  // For tools that open pools themselves: a store over a handle whose root has root_size() bytes.
  static std::size_t root_size() noexcept;
  [[nodiscard]] static result<kv> from_handle(detail::pool_handle handle);
  detail::runtime& core() const noexcept;
  // Calls f(block) for every allocated block of the store. Requires a running read() or update().
  void visit_blocks(const std::function<void(const void*)>& f) const;

 private:
  explicit kv(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

// The store inside a transaction: in kv::read, and in kv::update, where it includes the changes so
// far. Members may throw failure; do not swallow unknown exceptions (field.h). Valid until the body
// ends.
class kv::view {
 public:
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  bool get(std::string_view key, std::string& into) const;  // as kv::get
  [[nodiscard]] bool contains(std::string_view key) const;
  void get_many(std::span<const std::string_view> keys, const each_value& each) const;  // likewise
  // Calls f on the items with from <= key < to in key order until f returns false. An empty `to`
  // means no bound. f must not change the store.
  void for_each(std::string_view from, std::string_view to, const visit& f) const;
  // first: the first item with a key not less than `from`. last: the last item of the store. Empty
  // if there is none.
  [[nodiscard]] std::optional<kv_item> first(std::string_view from = {}) const;
  [[nodiscard]] std::optional<kv_item> last() const;
  [[nodiscard]] std::size_t size() const;  // O(items)

 protected:
  friend class kv;
  explicit view(state& s) : state_(s) {}
  state& state_;
};

// The store inside kv::update. Members throw failure: invalid_argument for sizes beyond kv's
// limits, full.
class kv::changes : public kv::view {
 public:
  void put(std::string_view key, std::string_view value);
  // As kv::put_many, in this transaction. Checks all sizes first; after `full` the transaction must
  // be rolled back, as after a put.
  void put_many(std::span<const kv_pair> pairs);
  bool erase(std::string_view key);  // whether it was there

 private:
  friend class kv;
  using view::view;
};

// Changes collected in ordinary memory, for kv::write. For one key the last change wins. Not
// thread-safe.
class kv::batch {
 public:
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

 private:
  friend class kv;
  struct entry {
    std::size_t key_bytes, value_bytes;
    bool erases;
  };
  std::vector<entry> entries_;
  std::string bytes_;  // keys and values in order
};

// Reads items in key order, one page at a time, each page in its own read transaction. The items of
// a page are of one state; the next page may be of a later state. An item that exists the whole
// time is visited exactly once. No key is visited twice. A change at a key already passed is not
// seen. The cursor holds no lock and no part of the pool between calls. Not thread-safe; the store
// must outlive it.
class kv::cursor {
 public:
  // Moves to the next item; the first call moves to the first item. Returns false at the end, and
  // on every later call. Errors: those of kv::read.
  [[nodiscard]] result<bool> next();
  // The current item.
  const std::string& key() const { return page_[at_].key; }
  const std::string& value() const { return page_[at_].value; }

 private:
  friend class kv;
  cursor(const state& s, std::string_view from, std::string_view to)
      : state_(&s), from_(from), to_(to) {}
  [[nodiscard]] result<> load_page();

  // A page ends at the first of these limits that it reaches.
  static constexpr std::size_t page_items = 256, page_bytes = std::size_t{1} << 18;
  const state* state_;
  std::string from_, to_;  // start of the next page; end of the walk
  std::vector<kv_item> page_;
  std::size_t at_ = 0, count_ = 0;  // current item; number of items of page_ in use
  bool begun_ = false, ended_ = false;
};

template <class Body>
auto kv::update(Body&& body, durability d) {
  changes c(*state_);
  return detail::run_transaction(core(), true, d,
                                 [&]() -> decltype(auto) { return std::invoke(body, c); });
}

template <class Body>
auto kv::read(Body&& body) const {
  const view v(*state_);
  return detail::run_transaction(core(), false, durability::durable,
                                 [&]() -> decltype(auto) { return std::invoke(body, v); });
}

}  // namespace stele
