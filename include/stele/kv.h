// kv: embedded key-value stores in a pool file: byte strings in key order, changed by ACID
// transactions. Start with open(), put() and get(). For a store beside your own containers see
// kv_store.h, for keys made of numbers and tuples key.h.
//
//   auto store = stele::kv::open("store.stele", {.create_size = 64 << 20});
//   if (!store) return std::fprintf(stderr, "%s\n", store.error().message.c_str()), 1;
//   if (auto put = store->put("city/bern", "133883"); !put) return 1;  // durable on return
//   auto found = store->get("city/bern");
//   if (found && *found) std::printf("%s\n", (*found)->c_str());
//
// Keys have 1 to 65,536 bytes, values 0 to 2^30 bytes if the pool has room; both may contain any
// bytes. Keys are ordered as unsigned bytes; a prefix comes before the longer key. Each call below
// is a transaction of its own. Called inside update() or read() of a store of the same pool, it is
// part of that transaction. An acknowledged change survives what the pool's durability in force
// covers. A call that returns an error has changed nothing.
//
// A pool has one store without a name, which open() returns, and any number of named ones. One
// update() may change several:
//
//   auto users = store->open_store("users"), orders = store->open_store("orders");
//   auto moved = store->update([&](stele::kv_store&) -> stele::result<> {
//     if (auto put = users->put("7", "ann"); !put) return put;
//     return orders->put("1", "7");
//   });
//
// The layout on media is in docs/format/kv.md. There is no item counter, because all puts would
// conflict on it; size() counts.
//
// Thread safety: any number of threads at once, except for move, close() and destruction. Under
// concurrency::external the caller locks. Puts of different keys rarely conflict; a conflict is
// retried inside the call.
#pragma once

#include <stele/kv_store.h>

#include <memory>
#include <utility>
#include <vector>

namespace stele {

class kv {
  struct state;

 public:
  static constexpr std::size_t max_key_bytes = kv_store::max_key_bytes;
  static constexpr std::size_t max_value_bytes = kv_store::max_value_bytes;
  static constexpr std::string_view layout = "stele.kv";

  using visit = kv_store::visit;
  using each_value = kv_store::each_value;
  using change = kv_store::change;
  // A store inside a transaction: kv::read calls its body with a const view&, kv::update with a
  // changes&, which includes the changes so far. Valid until the body ends.
  using view = kv_store;
  using changes = kv_store;
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
  // As kv_store's. Errors: invalid_argument, also for a lifetime below 1 ms; full.
  [[nodiscard]] result<> put_until(std::string_view key, std::string_view value, kv_time when,
                                   durability d = durability::durable);
  [[nodiscard]] result<> put_for(std::string_view key, std::string_view value,
                                 std::chrono::milliseconds lifetime,
                                 durability d = durability::durable);
  // Returns whether the key was there. Works in a full pool.
  [[nodiscard]] result<bool> erase(std::string_view key, durability d = durability::durable);
  // Atomic; as kv_store's. The function may be called several times, and may use no other store.
  [[nodiscard]] result<bool> put_if(std::string_view key, std::optional<std::string_view> expected,
                                    std::string_view value, durability d = durability::durable);
  [[nodiscard]] result<> modify(std::string_view key, const change& f,
                                durability d = durability::durable);
  [[nodiscard]] result<std::int64_t> add(std::string_view key, std::int64_t n,
                                         durability d = durability::durable);
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
  // Runs body(const view&) on one state of the pool's stores; concurrent changes are not visible.
  // The body may run several times.
  template <class Body>
  [[nodiscard]] auto read(Body&& body) const;
  // As pool<Root>::begin() and begin_read(): the calls of all stores of the pool become part of the
  // transaction. After its commit call remove_some_expired(), after errc::full make_room().
  [[nodiscard]] result<transaction> begin(durability d = durability::durable,
                                          code_between between = code_between::may_wait) {
    return detail::hold_update(core(), d, between);
  }
  [[nodiscard]] result<transaction> begin_read(
      code_between between = code_between::may_wait) const {
    return detail::hold_read(core(), between);
  }

  // At most `limit` items with from <= key < to, in key order, all of one state. An empty `to`
  // means no bound.
  [[nodiscard]] result<std::vector<kv_item>> range(std::string_view from, std::string_view to,
                                                   std::size_t limit) const;
  // Visits the items with from <= key < to, or those whose key begins with `prefix`, in either
  // direction, outside of any transaction; see cursor.
  cursor walk(std::string_view from = {}, std::string_view to = {}) const;
  cursor walk_prefix(std::string_view prefix) const;

  // Counts the items of one state. O(items).
  [[nodiscard]] result<std::size_t> size() const;
  [[nodiscard]] result<kv_statistics> statistics() const;  // likewise
  // Errors: corrupt, if the indexes and items of the store are inconsistent; of the store without a
  // name, also those of all others; poisoned; read_only, if the pool's file was removed, renamed or
  // replaced. O(size of the store).
  [[nodiscard]] result<> check() const;

  // Removes up to `limit` items whose time has passed; returns how many. Rarely needed: while a
  // store has such items, each change of it through kv removes a few more in a transaction of its
  // own, and a change that finds the pool full removes all of them first.
  [[nodiscard]] result<std::size_t> remove_expired(std::size_t limit);

  // The store of a name, of 1 to 255 bytes without a zero byte. It shares the pool with this store;
  // the pool closes when the last of its stores is destroyed, or by close() of any of them. Durable
  // when it returns. Errors: invalid_argument; not_found, with if_missing::refuse; full; nested,
  // inside a transaction. Programs that know no named stores refuse a pool that has had one.
  enum class if_missing : std::uint8_t { create, refuse };
  [[nodiscard]] result<kv> open_store(std::string_view name, if_missing how = if_missing::create);
  // The names in their order, as bytes.
  [[nodiscard]] result<std::vector<std::string>> stores() const;
  // Drops a store with all its items: at once for those who look, its space in steps. A crash on
  // the way leaves the rest to the next drop_store() or kv::open(). Errors: not_found; in_use,
  // while a kv of that store exists; nested, inside a transaction.
  [[nodiscard]] result<> drop_store(std::string_view name);
  // Empty for the store without a name.
  const std::string& name() const noexcept;

  // As in pool<Root>.
  [[nodiscard]] result<> backup(const std::string& path, const progress& report = {});
  [[nodiscard]] result<> grow(std::size_t size_bytes);
  [[nodiscard]] result<> sync();
  ticket committed() const noexcept;
  pool_counters counters() const noexcept;
  pool_space space() const;
  durability_level durability_in_force() const noexcept;
  std::string mechanism() const;
  [[nodiscard]] result<> close();

  // For code that holds transactions, or runs them on core(). After one that has ended for want of
  // room: removes expired items; whether there were any. After one that changed the store: removes
  // a few. Neither does anything in a transaction.
  bool make_room() noexcept;
  void remove_some_expired() noexcept;

  // For tools that open pools themselves: a store over a handle whose root has root_size() bytes.
  static std::size_t root_size() noexcept;
  [[nodiscard]] static result<kv> from_handle(detail::pool_handle handle);
  detail::runtime& core() const noexcept;
  // Calls f(block) for every allocated block of the store. Requires a running read() or update().
  void visit_blocks(const std::function<void(const void*)>& f) const;

 private:
  explicit kv(std::unique_ptr<state> s);
  [[nodiscard]] static result<kv> store_in(result<detail::pool_handle> handle,
                                           const std::string& path);
  kv_store& root() const noexcept;
  template <class Body>
  auto change_by(Body&& body, durability d);

  std::unique_ptr<state> state_;
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

template <class Body>
auto kv::update(Body&& body, durability d) {
  return change_by([&]() -> decltype(auto) { return std::invoke(body, root()); }, d);
}

template <class Body>
auto kv::change_by(Body&& body, durability d) {
  auto outcome = detail::run_transaction(core(), true, d, body);
  while (!outcome && outcome.error().code == errc::full && make_room())
    outcome = detail::run_transaction(core(), true, d, body);
  remove_some_expired();
  return outcome;
}

template <class Body>
auto kv::read(Body&& body) const {
  return detail::run_transaction(core(), false, durability::durable, [&]() -> decltype(auto) {
    return std::invoke(body, std::as_const(root()));
  });
}

}  // namespace stele

#include <stele/kv_cursor.h>
