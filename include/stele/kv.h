// kv: an embedded key-value store in a pool file: byte strings by key, in key order, changed by
// ACID transactions.
//
// Start with open(), put() and get(). Keys are 1 to 65,536 bytes, values 0 to 2^30 bytes as the
// pool has room, both of any content; the order is that of the bytes, unsigned, a prefix before
// what it begins. Every call below is a transaction of its own, or part of the running one when
// called inside update() or read() of the same store. What an acknowledged change survives is the
// pool's durability in force. A call that returns an error has changed nothing.
//
// How it lies in the pool: docs/format/kv.md. There is no counter of items that all puts would
// contend for: size() counts.
//
// Thread safety: any number of threads at once, except move, close() and destruction; under
// concurrency::external the caller locks. Puts of different keys hardly ever conflict; those that
// do are repeated inside the call.
#pragma once

#include <stele/pool.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stele {

struct kv_item {
  std::string key, value;
  friend bool operator==(const kv_item&, const kv_item&) = default;
};

class kv {
  struct state;

 public:
  static constexpr std::size_t max_key_bytes = std::size_t{1} << 16;
  static constexpr std::size_t max_value_bytes = std::size_t{1} << 30;
  static constexpr std::string_view layout = "stele.kv";

  // What is called on items in key order; false ends the walk. Key and value are copies that end
  // with the call.
  using visit = std::function<bool(std::string_view key, std::string_view value)>;
  class view;
  class changes;
  class batch;
  class cursor;

  // Opens the store at `path`, or creates it as pool<Root>::open does. options.layout must be empty
  // or `layout`. Errors: those of pool<Root>::open; layout, when the pool holds something else;
  // version, when its store is of another version.
  [[nodiscard]] static result<kv> open(const std::string& path, const pool_options& options = {});

  kv(kv&&) noexcept;
  kv& operator=(kv&&) noexcept;
  ~kv();  // close(), and drops the error

  // Inserts or overwrites. Errors: invalid_argument for sizes beyond those above; full.
  [[nodiscard]] result<> put(std::string_view key, std::string_view value,
                             durability d = durability::durable);
  // Whether there was such a key. Works in a full pool.
  [[nodiscard]] result<bool> erase(std::string_view key, durability d = durability::durable);
  // A key that no item can have is not there. The second form reuses the memory of `into`, which a
  // key that is not there leaves alone.
  [[nodiscard]] result<std::optional<std::string>> get(std::string_view key) const;
  [[nodiscard]] result<bool> get(std::string_view key, std::string& into) const;
  [[nodiscard]] result<bool> contains(std::string_view key) const;
  // All of the batch, in its order, or nothing.
  [[nodiscard]] result<> write(const batch& b, durability d = durability::durable);

  // Runs body(changes&) as one transaction, as pool<Root>::update does: it may run several times;
  // an error it returns or a failure it throws rolls back.
  template <class Body>
  [[nodiscard]] auto update(Body&& body, durability d = durability::durable);
  // Runs body(const view&) on one state of the store; nothing of a concurrent change is seen. It
  // may run several times.
  template <class Body>
  [[nodiscard]] auto read(Body&& body) const;

  // Items with from <= key < to in key order, at most `limit`, all of one state. An empty `to` has
  // no bound.
  [[nodiscard]] result<std::vector<kv_item>> range(std::string_view from, std::string_view to,
                                                   std::size_t limit) const;
  // Goes over the items with from <= key < to outside of any transaction; see cursor.
  cursor walk(std::string_view from = {}, std::string_view to = {}) const;

  // Counts the items of one state. Time goes with their number.
  [[nodiscard]] result<std::size_t> size() const;
  // Errors: corrupt, when the indexes and the items of the store contradict each other. Time goes
  // with the store's size.
  [[nodiscard]] result<> check() const;

  // As pool<Root> has them.
  [[nodiscard]] result<> backup(const std::string& path, const progress& report = {});
  [[nodiscard]] result<> grow(std::size_t size_bytes);
  [[nodiscard]] result<> sync();
  ticket committed() const noexcept;
  pool_counters counters() const noexcept;
  pool_space space() const;
  std::string durability_in_force() const;
  std::string mechanism() const;
  [[nodiscard]] result<> close();

  // For tools that open pools in ways of their own: a store over a handle whose root has
  // root_size() bytes.
  static std::size_t root_size() noexcept;
  [[nodiscard]] static result<kv> from_handle(detail::pool_handle handle);
  detail::runtime& core() const noexcept;
  // Calls f(block) for every allocated block that the store reaches. Inside read() or update().
  void visit_blocks(const std::function<void(const void*)>& f) const;

 private:
  explicit kv(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

// The store inside a transaction: in kv::read, and in kv::update, where it shows what the
// transaction has changed so far. May throw failure; do not swallow foreign exceptions (field.h).
// Valid until the body ends.
class kv::view {
 public:
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  bool get(std::string_view key, std::string& into) const;  // as kv::get
  [[nodiscard]] bool contains(std::string_view key) const;
  // f on the items with from <= key < to, in key order, until it returns false; an empty `to` has
  // no bound. f must not change the store.
  void for_each(std::string_view from, std::string_view to, const visit& f) const;
  // The first item with a key not less than `from`, the last one of all; nothing, when there is
  // none.
  [[nodiscard]] std::optional<kv_item> first(std::string_view from = {}) const;
  [[nodiscard]] std::optional<kv_item> last() const;
  [[nodiscard]] std::size_t size() const;  // counts

 protected:
  friend class kv;
  explicit view(state& s) : state_(s) {}
  state& state_;
};

// Throws failure: invalid_argument for sizes that kv does not take, full.
class kv::changes : public kv::view {
 public:
  void put(std::string_view key, std::string_view value);
  bool erase(std::string_view key);  // whether it was there

 private:
  friend class kv;
  using view::view;
};

// Changes gathered in ordinary memory, for kv::write. Later ones of a key win. Not thread-safe.
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

// Reads items in key order, a page at a time, each page in a read transaction of its own: the items
// of a page are of one state, a later page may be of a later state. An item that is there all the
// time is met exactly once, whatever else changes; no key is met twice; a change behind the cursor
// is not seen. It holds no lock and no part of the pool between calls. Not thread-safe; the store
// must outlive it.
class kv::cursor {
 public:
  // Goes to the next item, the first one at first. False: there is none, now and later. Errors:
  // those of kv::read.
  [[nodiscard]] result<bool> next();
  // Of the item that next() went to.
  const std::string& key() const { return page_[at_].key; }
  const std::string& value() const { return page_[at_].value; }

 private:
  friend class kv;
  cursor(const state& s, std::string_view from, std::string_view to)
      : state_(&s), from_(from), to_(to) {}
  [[nodiscard]] result<> load_page();

  static constexpr std::size_t page_items = 256,
                               page_bytes = std::size_t{1}
                                            << 18;  // a page ends with the first that is reached
  const state* state_;
  std::string from_, to_;  // what the next page begins with
  std::vector<kv_item> page_;
  std::size_t at_ = 0, count_ = 0;  // items of page_ in use
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
