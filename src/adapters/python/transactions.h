// The transactions of a pool that Python has open, and how they use the interpreter's lock (GIL).
//
// Python's transactions cannot run twice, because the body of a `with` is the caller's code. So
// updates run one at a time: the thread that runs one holds `writer_`. Reads of other threads run
// concurrently on a snapshot; a read that loses its first attempt lets the GIL go and takes
// `writer_` too. It must not try again with the GIL: a long read pauses transactions, and the
// `with` that it then waits for may wait for the GIL (docs/protocol/long-reads.md).
//
// The work that pauses transactions (growth, check, the start of a backup) takes `writer_` first,
// so it waits for no `with`. The end of a backup does not: meanwhile reads let the GIL go at once.
//
// Waiting for `writer_` ends with the time limit, or when a signal's handler raises (^C).
//
// Rules against deadlock: a thread that holds the GIL never waits for `writer_`, a commit or a log.
// A thread in a transaction never waits for the GIL, except the one thread in a `with`. That thread
// holds `writer_` and one log, and a pool has two logs or its reads take `writer_` too. No Python
// code runs inside the transaction of a single operation.
//
// A pool that is open for reading only has no updates: the transaction of a `with` is a read, whose
// state is fixed at its begin. All else above holds too, because a lost attempt of such a read may
// have to look for another process that has the pool open, with transactions paused.
#pragma once

#include "flow.h"

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

void refuse_null_byte(const std::string& path);  // throws ValueError

// How a pool is opened.
struct open_options {
  // verify: "auto", "always", "never"; throws library_error for another word. timeout: see
  // wait_limit_of.
  open_options(std::size_t size, std::string mechanism, std::string media, bool ordered,
               std::size_t max_size, std::string require, const std::string& verify,
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

  // The functions below are called with the GIL held and throw library_error, or Python's
  // exceptions: what ends waiting, TimeoutError among them.

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
  void check_storage();       // heap and block checksums
  void check_usable() const;  // throws if closed, or if a transaction on another pool runs

 protected:
  // Whether a `with` is open in this thread.
  bool is_open_here() const noexcept { return owner_ == std::this_thread::get_id(); }
  void refuse_if_reads_only() const {
    if (reads_only_) throw_reads_only();
  }
  ~transactions() = default;  // no `with` is open: it would keep the object

  // Called after the update of a `with`, without the GIL, with writer_ held and no transaction.
  // `full`: it found no room.
  std::function<void(bool full)> after_update_;

 private:
  using writer_hold = std::unique_lock<std::timed_mutex>;

  // Announces work that pauses transactions. Reads with the GIL must not wait for the pause,
  // because it may wait for a `with` that needs the GIL. Made and destroyed with the GIL held.
  class pausing {
   public:
    explicit pausing(transactions& in) : in_(in) { ++in_.pausing_; }
    ~pausing() { --in_.pausing_; }
    pausing(const pausing&) = delete;
    pausing& operator=(const pausing&) = delete;

   private:
    transactions& in_;
  };

  // What is done now is a part of the thread's open `with`. Throws if another task of the thread
  // has opened that.
  bool joins() const {
    if (!is_open_here()) return false;
    if (!flow_.is_current()) throw_other_flow();
    return true;
  }
  [[noreturn]] void throw_other_flow() const;
  [[noreturn]] void throw_reads_only() const;
  void refuse_inside(const char* done) const;
  writer_hold lock_writer(wait_limit limit);  // called without the GIL
  [[noreturn]] void throw_timed_out(wait_limit limit) const;
  // attempt() -> result<T>, called without the GIL. Of a pool that is open for reading only: tries
  // again while the process that has it open does not answer, being in a long transaction.
  template <class Attempt>
  auto wait_for_process(wait_limit limit, Attempt&& attempt) const {
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
  void flush_deferred_commits();
  void begin_update(durability how);
  void begin_read(wait_limit limit);
  error lost_attempt() const;
  void doom(error why) { doomed_by_ = std::move(why); }
  void make_room();
  std::optional<error> commit();  // what the commit failed with; it is rolled back then
  void roll_back();
  void release_writer() noexcept;  // after the transaction of a `with`

  std::string path_;
  detail::runtime& core_;
  const durability default_durability_;
  const wait_limit limit_;
  const bool reads_only_;
  // With one log only, a reader could wait for the log that a `with` holds.
  const bool reads_take_writer_lock_;
  std::atomic<bool> closed_{false};
  unsigned pausing_ = 0;  // threads that may pause transactions; under the GIL
  std::timed_mutex writer_;
  std::atomic<std::thread::id> owner_{};  // of the open `with`, which holds writer_
  unsigned long owner_ident_ = 0;         // Python's name for that thread; under the GIL
  flow flow_;                             // of the open `with`; used by its thread
  unsigned depth_ = 0;
  std::optional<error> doomed_by_;  // why the open transaction can no longer commit
};

// An operation that fails half-way dooms the transaction: later operations could rely on its
// result.
template <class Body>
auto transactions::run_in_open(Body& body) {
  if (doomed_by_) throw library_error(*doomed_by_);
  try {
    return body();
  } catch (const failure& f) {
    doom(f.why());
  } catch (const detail::restart&) {
    doom(lost_attempt());
  }
  throw library_error(*doomed_by_);
}

template <class Body>
auto transactions::update(Body&& body) {
  return update_by(
      [&](durability how) { return detail::run_transaction(core(), true, how, body); });
}

template <class F>
auto transactions::update_by(F&& f) {
  refuse_if_reads_only();
  if (joins()) {
    const auto part = [&] { return unwrap(f(default_durability_)); };
    return run_in_open(part);
  }
  check_usable();
  const nb::gil_scoped_release gil_released;
  const writer_hold hold = lock_writer(limit_);
  return unwrap(f(default_durability_));
}

template <class Body>
auto transactions::read(Body&& body) {
  if (joins()) return run_in_open(body);
  check_usable();
  if (!reads_take_writer_lock_) {
    using found = std::optional<decltype(body())>;
    const auto once = [&]() -> found {
      try {
        return body();
      } catch (const detail::restart&) {
        return std::nullopt;
      }
    };
    std::optional<nb::gil_scoped_release> gil_released;
    if (pausing_ != 0) gil_released.emplace();
    if (auto r = unwrap(detail::run_transaction(core(), false, durability::durable, once)))
      return std::move(*r);
  }
  return run_outside(
      [&] { return detail::run_transaction(core(), false, durability::durable, body); });
}

template <class F>
auto transactions::run_outside(F&& f) {
  if (is_open_here()) return unwrap(f());
  check_usable();
  std::optional<pausing> announced;
  if (reads_only_) announced.emplace(*this);
  const nb::gil_scoped_release gil_released;
  const writer_hold hold = lock_writer(limit_);
  return wait_for_process(limit_, f);
}

}  // namespace stele::python
