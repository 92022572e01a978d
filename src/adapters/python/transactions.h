// The transactions of a pool that Python has open, and how they use the interpreter's lock (GIL).
//
// Invariant: no thread waits for another one with the GIL held, so every thread that waits for the
// GIL gets it. A single read first tries once without waiting. Every other call releases the GIL
// before it enters the library. Operations inside a `with` keep the GIL: they do not wait, they
// lose the attempt. tests/python/gil_watch.c ends a program that breaks this.
//
// Python's transactions cannot run twice, because the body of a `with` is the caller's code. So
// updates run one at a time: the thread that runs one holds `updates_`. Reads of other threads run
// concurrently on a snapshot; a read that has lost its attempt takes `updates_` too.
//
// Code inside a `with` may wait for other threads: for the GIL, or for locks of the program. So
// growth, check, backup and the service for readers in other processes take `updates_` before they
// pause transactions, and no pause waits for a `with`.
//
// Waiting for `updates_` ends with the time limit, or when a signal's handler raises (^C).
//
// A thread in a transaction never waits for the GIL, except the one thread in a `with`. That thread
// holds `updates_` and one log, and a pool has two logs or its reads take `updates_` too. No Python
// code runs inside the transaction of a single operation.
//
// A pool that is open for reading only has no updates: the transaction of a `with` is a read, whose
// state is fixed at its begin. The rules above hold too, because a lost attempt of such a read may
// have to attach to another process that has the pool open, with transactions paused.
#pragma once

#include "flow.h"
#include "update_lock.h"

#include <base/assert.h>

#include <nanobind/nanobind.h>
#include <stele/pool.h>
#include <tx/runtime.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace stele::python {

namespace nb = nanobind;

// For assertions: whether the calling thread holds the GIL.
inline bool holds_gil() noexcept {
  return PyGILState_Check() != 0;
}

// An error of the library that becomes an exception of stele.errors in Python.
class library_error : public std::exception {
 public:
  explicit library_error(error e) : why_(std::move(e)) {}
  const char* what() const noexcept override { return why_.message.c_str(); }
  const error& why() const noexcept { return why_; }

 private:
  error why_;
};
[[noreturn]] void throw_library_error(errc code, std::string message);

template <class Result>
auto unwrap(Result&& r) {
  if (!r) throw library_error(std::move(r.error()));
  if constexpr (!std::is_void_v<typename std::remove_cvref_t<Result>::value_type>)
    return std::move(*r);
}

// How long a thread waits for the transactions of others: seconds, perhaps infinite.
using wait_limit = std::chrono::duration<double>;
wait_limit wait_limit_of(nb::handle seconds);  // None: infinite. Throws TypeError, ValueError

// The bytes of a path. Throws ValueError.
std::string path_of(const nb::bytes& path);
// A text that may contain paths, whose bytes need not be UTF-8.
nb::str str_of(const std::string& text);

// How a pool is opened.
struct open_options {
  // verify: "auto", "always", "never"; throws library_error for another word. timeout: see
  // wait_limit_of.
  open_options(std::size_t size, std::string mechanism, std::string media, bool ordered,
               std::size_t max_size, const std::string& require, const std::string& verify,
               nb::handle timeout, bool for_reading, bool with_pickles);

  pool_options pool;
  durability how;
  wait_limit limit;
  bool read_only;
  bool pickles;
};

class transactions {
 public:
  // The derived object owns the runtime.
  transactions(std::string path, detail::runtime& core, const open_options& options);
  transactions(const transactions&) = delete;
  transactions& operator=(const transactions&) = delete;

  const std::string& path() const noexcept { return path_; }
  detail::runtime& core() const noexcept { return core_; }
  bool closed() const noexcept { return closed_; }
  bool reads_only() const noexcept { return reads_only_; }

  // Calls f() without the GIL; for counters of the pool, which may wait for a commit.
  template <class F>
  auto without_gil(F&& f) {
    const use used(*this);
    const nb::gil_scoped_release gil_released;
    return f();
  }

  // The functions below are called with the GIL held. They throw library_error, or the Python
  // exception that ends a wait, such as TimeoutError.

  // Runs body() as its own update, or in the thread's open transaction. body() must not touch
  // Python objects and may run twice. ReadOnlyError: the pool is open for reading only.
  template <class Body>
  auto update(Body&& body);
  // Runs body() on one state of the pool; otherwise as update().
  template <class Body>
  auto read(Body&& body);

  // Runs f(durability) -> result<T>, which is an update of its own, or joins the thread's open one.
  // Otherwise as update().
  template <class F>
  auto update_by(F&& f);

  // Runs f() -> result<T>, which runs transactions of its own and is refused inside one. Called
  // without the GIL, except there. f() may run several times if the pool is open for reading only.
  template <class F>
  auto run_outside(F&& f);

  // Begins the transaction of a `with`. Inside another `with` it becomes a part of that
  // transaction. `self`: this object in Python, kept until the transaction ends.
  void begin(nb::handle self, durability how, wait_limit limit);
  wait_limit limit() const noexcept { return limit_; }
  // Commits, or rolls back if `failed`. A failed inner `with` makes the outer transaction roll back
  // too.
  void end(bool failed);
  // Rolls back this thread's open transaction, because the thread ends. False if it has none.
  bool abandon() noexcept;

  void sync();
  void close(wait_limit limit);
  void grow(std::size_t size_bytes);
  // `report`: None, or called with bytes done and bytes in all; false ends the backup. A signal's
  // handler that raises ends it too.
  void backup(const std::string& path, const nb::object& report);
  void check_storage();  // heap and block checksums
  pool_space space();
  void check_open() const;    // throws if closed, or in a child of fork
  void check_usable() const;  // also throws if a transaction on another pool runs
  // Throws if a `with` of this thread is open, in which `done` is not possible, or not usable.
  void refuse_inside(const char* done) const;

 protected:
  // Whether a `with` is open in this thread.
  bool is_open_here() const noexcept { return owner_ == std::this_thread::get_id(); }
  void refuse_if_reads_only() const {
    if (reads_only_) throw_reads_only();
  }
  ~transactions() = default;  // no `with` is open: it would keep the object

  // Releases the runtime, and with it file and mapping. Called once, with the GIL held, when the
  // pool has been closed and no thread is in a call on it.
  virtual void release_core() = 0;

  // Called after the update of a `with`, without the GIL, with updates_ held and no transaction.
  // `full`: the update found no room.
  std::function<void(bool full)> after_update_;

 private:
  using update_hold = std::unique_lock<update_lock>;

  // A call that releases the GIL: the runtime exists until its end. Made and destroyed with the GIL
  // held.
  class use {
   public:
    explicit use(transactions& of) : of_(of) {
      STELE_ASSERT(holds_gil());
      ++of_.uses_;
    }
    ~use() {
      STELE_ASSERT(holds_gil());
      STELE_ASSERT(of_.uses_ != 0);
      if (--of_.uses_ == 0 && of_.closed_) of_.release_core();
    }
    use(const use&) = delete;
    use& operator=(const use&) = delete;

   private:
    transactions& of_;
  };

  // Whether this call is a part of the thread's open `with`. Throws if another task of the thread
  // opened it.
  bool joins() const {
    if (!is_open_here()) return false;
    if (!flow_.is_current()) throw_other_flow();
    return true;
  }
  [[noreturn]] void throw_other_flow() const;
  [[noreturn]] void throw_reads_only() const;
  update_hold lock_updates(wait_limit limit);  // called without the GIL
  void check_signals() const;
  [[noreturn]] void throw_timed_out(wait_limit limit) const;
  // attempt() -> result<T>, called without the GIL. For a pool that is open for reading only, tries
  // again while the writer does not answer because it runs a long transaction.
  template <class Attempt>
  auto wait_for_process(wait_limit limit, Attempt&& attempt) const {
    STELE_ASSERT(!holds_gil());
    const auto begun = std::chrono::steady_clock::now();
    for (;;) {
      auto r = attempt();
      if (r || !reads_only_ || r.error().code != errc::in_use) return unwrap(std::move(r));
      wait_before_next(begun, limit, r.error());
    }
  }
  void wait_before_next(std::chrono::steady_clock::time_point begun, wait_limit limit,
                        const error& why) const;
  template <class Body>
  auto run_in_open(Body& body);
  // An attempt with the GIL held. Empty: the attempt would have waited, was lost, or failed.
  template <class Body>
  static auto read_at_once(detail::runtime& core, Body& body) -> std::optional<decltype(body())>;
  void flush_deferred_commits();
  void begin_update(durability how);
  void begin_read(wait_limit limit);
  error lost_attempt() const;
  // why() -> error
  template <class Why>
  void doom(Why&& why) noexcept {
    try {
      doomed_by_ = why();
    } catch (const std::bad_alloc&) {
      doomed_by_ = error{errc::cancelled, "out of memory"};  // short: std::string does not allocate
    }
  }
  [[nodiscard]] result<> close_core(wait_limit limit);
  std::optional<error> commit();  // why the commit failed; then it is rolled back
  void roll_back() noexcept;
  void release_updates() noexcept;  // after the transaction of a `with`

  std::string path_;
  detail::runtime& core_;
  const durability default_durability_;
  const wait_limit limit_;
  const bool reads_only_;
  // With a single log, a reader could wait for the log that a `with` holds.
  const bool reads_take_update_lock_;
  bool closed_ = false;  // under the GIL, as is the number of calls that run without it
  unsigned uses_ = 0;
  update_lock updates_;
  std::atomic<std::thread::id> owner_{};  // of the open `with`, which holds updates_
  unsigned long owner_ident_ = 0;         // Python's name for that thread; under the GIL
  flow flow_;                             // of the open `with`; used by its thread
  unsigned depth_ = 0;
  transaction transaction_;         // of the open `with`; used by its thread
  std::optional<error> doomed_by_;  // why the open transaction can no longer commit
};

// An operation that fails half-way dooms the transaction: later operations could rely on its
// result.
template <class Body>
auto transactions::run_in_open(Body& body) {
  STELE_ASSERT(is_open_here());
  STELE_ASSERT(depth_ != 0);
  if (doomed_by_) throw library_error(*doomed_by_);
  STELE_ASSERT(in_transaction());
  try {
    return body();
  } catch (const failure& f) {
    doom([&] { return f.why(); });
  } catch (const conflict&) {
    doom([&] { return lost_attempt(); });
  } catch (const std::bad_alloc&) {
    doom([] { return error{errc::cancelled, "out of memory"}; });
    throw;
  }
  STELE_ASSERT(doomed_by_.has_value());
  throw library_error(*doomed_by_);
}

template <class Body>
auto transactions::update(Body&& body) {
  return update_by([&](durability how) { return detail::update_pool(core(), how, body); });
}

template <class F>
auto transactions::update_by(F&& f) {
  refuse_if_reads_only();
  if (joins()) {
    const auto part = [&] { return unwrap(f(default_durability_)); };
    return run_in_open(part);
  }
  check_usable();
  const use used(*this);
  const nb::gil_scoped_release gil_released;
  const update_hold hold = lock_updates(limit_);
  return unwrap(f(default_durability_));
}

template <class Body>
auto transactions::read_at_once(detail::runtime& core, Body& body)
    -> std::optional<decltype(body())> {
  STELE_ASSERT(holds_gil());
  transaction read = detail::hold_read_at_once(core);
  if (read.state() == transaction_state::none) return std::nullopt;
  try {
    std::optional<decltype(body())> found(body());
    if (read.commit()) return found;
  } catch (const conflict&) {
  } catch (const failure&) {
  }
  return std::nullopt;
}

template <class Body>
auto transactions::read(Body&& body) {
  if (joins()) return run_in_open(body);
  check_usable();
  if (!reads_take_update_lock_) {
    if (auto found = read_at_once(core(), body)) return std::move(*found);
    using found = std::optional<decltype(body())>;
    const auto once = [&]() -> found {
      try {
        return body();
      } catch (const conflict&) {
        return std::nullopt;
      }
    };
    const use used(*this);
    const nb::gil_scoped_release gil_released;
    if (auto r = unwrap(detail::read_pool(core(), once))) return std::move(*r);
  }
  return run_outside([&] { return detail::read_pool(core(), body); });
}

template <class F>
auto transactions::run_outside(F&& f) {
  if (is_open_here()) return unwrap(f());
  check_usable();
  const use used(*this);
  const nb::gil_scoped_release gil_released;
  const update_hold hold = lock_updates(limit_);
  return wait_for_process(limit_, f);
}

}  // namespace stele::python
