// The transactions of a pool that Python has open, and how they share the interpreter.
//
// Python's transactions cannot run twice (the body of a `with` is the caller's), so updates take
// turns: `writer` is held by the thread that runs one. Reads of other threads go on beside them on
// a snapshot and are repeated when they must be. Rules that keep threads from waiting for each
// other in a ring: nobody waits for `writer`, a commit or a log with the interpreter's lock (GIL)
// held; nobody who is in a transaction waits for the GIL, but for the one thread in a `with`, which
// holds `writer` and one log, and a pool has two logs or its reads take `writer` too. No Python
// code runs inside a single operation's transaction.
#pragma once

#include <nanobind/nanobind.h>
#include <stele/pool.h>
#include <tx/runtime.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace stele::python {

namespace nb = nanobind;

// An error of the library on its way to Python, where it becomes a class of stele.errors.
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

class transactions {
 public:
  // The runtime lives as long as the derived object, which calls leave() before it ends.
  transactions(std::string path, detail::runtime& core, durability how);
  transactions(const transactions&) = delete;
  transactions& operator=(const transactions&) = delete;

  const std::string& path() const noexcept { return path_; }
  detail::runtime& core() const noexcept { return core_; }
  bool closed() const noexcept { return closed_; }

  // What follows is called with the GIL held and throws library_error.

  // body() as an update of its own, or in the thread's open transaction. It touches no Python
  // object and may run twice.
  template <class Body>
  auto update(Body&& body);
  // body() on one state of the pool; likewise.
  template <class Body>
  auto read(Body&& body);

  // The transaction of a `with`; one in another is a part of it.
  void begin(durability how);
  // Commits, or with `failed` rolls back; of an inner one `failed` dooms the outer.
  void end(bool failed);
  bool in_transaction() const noexcept { return owner_ == std::this_thread::get_id(); }

  void sync();
  void close();
  void check_usable() const;  // throws when closed, or in a transaction on another pool

 protected:
  ~transactions() = default;
  void leave() noexcept;  // rolls back what this thread has open

 private:
  static constexpr int max_read_attempts = 12;  // attempts of a read before it has the writers wait

  template <class Body>
  auto run_in_open(Body& body);
  void flush_deferred_commits();
  void doom(error why) { doomed_by_ = std::move(why); }
  void roll_back();

  std::string path_;
  detail::runtime& core_;
  const durability default_durability_;
  const bool
      reads_take_writer_lock_;  // one log only: a reader might wait for the one that a `with` has
  std::atomic<bool> closed_{false};
  std::mutex writer_;
  std::atomic<std::thread::id> owner_{};  // of the open `with`, which holds writer_
  unsigned depth_ = 0;
  std::optional<error> doomed_by_;  // the open transaction cannot commit any more
};

// An operation that fails half-way leaves the rest of the transaction without a base.
template <class Body>
auto transactions::run_in_open(Body& body) {
  if (doomed_by_) throw library_error(*doomed_by_);
  try {
    return body();
  } catch (const failure& f) {
    doom(f.why());
  } catch (const detail::restart&) {
    doom({errc::full, path_ + " had no room left for this transaction, which cannot be run again "
                              "from inside. Free memory that lay scattered "
                              "is gathered when it has been rolled back: run it once more; if that "
                              "fails too, delete something or use a "
                              "larger pool"});
  }
  throw library_error(*doomed_by_);
}

template <class Body>
auto transactions::update(Body&& body) {
  if (in_transaction()) return run_in_open(body);
  check_usable();
  const nb::gil_scoped_release gil_released;
  const std::lock_guard hold(writer_);
  return unwrap(detail::run_transaction(core(), true, default_durability_, body));
}

template <class Body>
auto transactions::read(Body&& body) {
  if (in_transaction()) return run_in_open(body);
  check_usable();
  if (!reads_take_writer_lock_) {
    int attempts = 0;
    using found = std::optional<decltype(body())>;
    const auto few = [&]() -> found {
      return ++attempts <= max_read_attempts ? found(body()) : found();
    };
    if (auto r = unwrap(detail::run_transaction(core(), false, durability::durable, few)))
      return std::move(*r);
  }
  const nb::gil_scoped_release gil_released;
  const std::lock_guard hold(writer_);
  return unwrap(detail::run_transaction(core(), false, durability::durable, body));
}

}  // namespace stele::python
