// pool_snapshot: a pool as it was at one moment, kept for as long as the object lives. Reads of it
// see no later commit, in any number of transactions, and writers go on.
//
//   auto store = stele::kv::open("store.stele", {.create_size = 64 << 20});
//   auto then = stele::take_snapshot(*store);
//   if (!then) return std::fprintf(stderr, "%s\n", then.error().message.c_str()), 1;
//   if (auto put = store->put("city/bern", "133884"); !put) return 1;
//   auto before = then->read([&] { return store->get("city/bern"); });  // as it was
//
// Works with pools of any root and with stele::kv, whose cursors and named stores may be used in
// the body too. It keeps in memory each page of 4 KiB that is changed meanwhile, at most the size
// of the pool, until it is destroyed. It is nothing on media: after a crash it is gone. Items of a
// kv expire for its reads as they do for others.
#pragma once

#include <stele/pool.h>

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

namespace stele {

class pool_snapshot;

namespace detail {

class long_read;
begin_status begin_at_moment(long_read& m);
[[nodiscard]] result<pool_snapshot> take_snapshot(runtime& r);

}  // namespace detail

class pool_snapshot {
 public:
  pool_snapshot(pool_snapshot&&) noexcept;
  pool_snapshot& operator=(pool_snapshot&&) noexcept;
  // Outside of transactions of this thread, and before the pool is closed or destroyed.
  ~pool_snapshot();

  // Runs body() once; the reads of the pool in it (read(), the calls of kv) see the moment. Returns
  // the body's value. A failure that the body throws becomes the returned error. Errors: nested,
  // inside a transaction; read_only, of changes of the pool in the body; poisoned. Throws
  // std::bad_alloc if there was no memory to keep a page. Thread-safe: one thread reads at a time,
  // others wait; take one snapshot for each thread that shall not wait.
  template <class Body>
  [[nodiscard]] auto read(Body&& body) const ->
      typename detail::result_of_body<std::invoke_result_t<Body&>>::type {
    if (detail::begin_at_moment(*moment_) == detail::begin_status::refused)
      return std::unexpected(detail::last_error());
    try {
      auto outcome = detail::call_body(body);
      if (detail::commit_transaction() != detail::commit_status::committed)
        return std::unexpected(detail::last_error());
      return outcome;
    } catch (const failure& f) {
      detail::roll_back_transaction();
      return std::unexpected(f.why());
    } catch (...) {
      detail::roll_back_transaction();
      throw;
    }
  }

 private:
  friend result<pool_snapshot> detail::take_snapshot(detail::runtime& r);
  explicit pool_snapshot(std::unique_ptr<detail::long_read> moment) noexcept;
  std::unique_ptr<detail::long_read> moment_;
};

// A snapshot of `p`, a pool or a kv, which outlives it: close() returns in_use while there are
// snapshots. It contains every commit that has returned. Waits until running transactions have
// ended. Errors: nested, inside a transaction; in_use, when there are 15 snapshots and long reads;
// unsupported, of pools of log_structured, of policies other than stm, and of pools that are open
// for reading only. Thread-safe.
template <class Pool>
  requires requires(Pool& p) {
    { p.core() } -> std::same_as<detail::runtime&>;
  }
[[nodiscard]] result<pool_snapshot> take_snapshot(Pool& p) {
  return detail::take_snapshot(p.core());
}

}  // namespace stele
