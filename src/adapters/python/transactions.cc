// Begin and end of transactions that Python holds open, waiting, and closing a pool.
#include "transactions.h"

#include "thread_end.h"

#include <stele/detail/unknown_level.h>
#include <tx/open.h>

#include <cmath>

namespace stele::python {

void throw_library_error(errc code, std::string message) {
  throw library_error({code, std::move(message)});
}

std::string path_of(const nb::bytes& path) {
  std::string p(path.c_str(), path.size());
  if (p.find('\0') != std::string::npos) throw nb::value_error("embedded null byte in the path");
  return p;
}

nb::str str_of(const std::string& text) {
  auto made = nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

open_options::open_options(std::size_t size, std::string mechanism, std::string media, bool ordered,
                           std::size_t max_size, const std::string& require,
                           const std::string& verify, nb::handle timeout, bool for_reading,
                           bool with_pickles)
    : how(ordered ? durability::ordered : durability::durable),
      limit(wait_limit_of(timeout)),
      read_only(for_reading),
      pickles(with_pickles) {
  pool.create_size = size;
  pool.engine.mechanism = std::move(mechanism);
  pool.engine.media = std::move(media);
  pool.max_size = max_size;
  const auto level = durability_level_of(require.empty() ? "none" : require);
  if (!level) throw_library_error(errc::invalid_argument, detail::unknown_level(require));
  pool.require = *level;
  const auto how_to_verify = verification_of(verify);
  if (!how_to_verify)
    throw_library_error(errc::invalid_argument,
                        "verify is '" + verify + "'; it is 'auto', 'always' or 'never'");
  pool.engine.verify = *how_to_verify;
}

wait_limit wait_limit_of(nb::handle seconds) {
  if (seconds.is_none()) return wait_limit::max();
  const double limit = PyFloat_AsDouble(seconds.ptr());
  if (limit == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!(limit >= 0))
    throw nb::value_error("timeout is in seconds, 0 or more; None waits for as long as it takes");
  return wait_limit(limit);
}

transactions::transactions(std::string path, detail::runtime& core, const open_options& options)
    : path_(std::move(path)),
      core_(core),
      default_durability_(options.how),
      limit_(options.limit),
      reads_only_(options.read_only),
      reads_take_update_lock_(core.state().file.header().log_count < 2) {
  STELE_ASSERT_ALWAYS(core_.size() != 0);
  STELE_ASSERT_ALWAYS(limit_.count() >= 0);
  core_.set_front_end_lock(&updates_);
}

void transactions::release_updates() noexcept {
  STELE_ASSERT(is_open_here());
  STELE_ASSERT(!in_transaction());  // the next holder finds no transaction of this one
  owner_ = std::thread::id();
  updates_.unlock();
}

bool transactions::abandon() noexcept {
  if (!is_open_here()) return false;
  STELE_ASSERT(holds_gil());
  STELE_ASSERT(depth_ != 0);
  flow_ = flow();
  doomed_by_.reset();
  const nb::gil_scoped_release gil_released;
  roll_back();
  release_updates();
  return true;
}

void transactions::throw_other_flow() const {
  throw_library_error(
      errc::nested,
      path_ +
          ": another asyncio task (or greenlet, or callback) of this thread is inside a `with` "
          "on this pool, and what is done here would become a part of its transaction. Do not "
          "await inside a `with`, or use the pool in a thread (asyncio.to_thread)");
}

void transactions::throw_reads_only() const {
  throw_library_error(errc::read_only,
                      path_ +
                          " is open for reading only here (read_only=True); changes are made "
                          "where it is open without that, in one process at a time");
}

// The error of a `with` whose only attempt is lost.
error transactions::lost_attempt() const {
  if (reads_only_)
    return {errc::cancelled, path_ +
                                 ": another process has opened the pool for writing, and the "
                                 "state that this transaction reads is gone; run it again"};
  return {errc::full, path_ +
                          " had no room left for this transaction, which cannot be run again "
                          "from inside. Free memory that lay scattered "
                          "is gathered when it has been rolled back: run it once more; if that "
                          "fails too, delete something or use a "
                          "larger pool"};
}

namespace {

// How often a waiting thread checks for signals.
constexpr wait_limit signal_check_interval{0.05};

// The threading module's name for a thread, in quotes; empty if it has none.
std::string name_of_thread(unsigned long ident) {
  for (const nb::handle thread : nb::module_::import_("threading").attr("enumerate")())
    if (nb::object(thread.attr("ident")).equal(nb::int_(ident)))
      return " " + std::string(nb::repr(thread.attr("name")).c_str());
  return "";
}

[[noreturn]] void throw_timed_out(const std::string& sentence) {
  const nb::object type = nb::module_::import_("stele.errors").attr("TimeoutError");
  PyErr_SetObject(type.ptr(), str_of(sentence).ptr());
  throw nb::python_error();
}

}  // namespace

void transactions::throw_timed_out(wait_limit limit) const {
  const std::string who = owner_.load() == std::thread::id()
                              ? "other threads were changing it"
                              : "the thread" + name_of_thread(owner_ident_) + " is inside a `with`";
  const nb::str after(nb::float_(limit.count()));
  python::throw_timed_out(path_ + ": waited for " + after.c_str() + " s (timeout), but " + who +
                          "; try again later, or wait longer");
}

// Runs the handlers of pending signals. A handler may leave a `with` open, on this pool or another;
// the waiting operation must not become a part of it.
void transactions::check_signals() const {
  const bool was_inside = in_transaction();  // a close, of another pool
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (in_transaction() && !was_inside)
    throw_library_error(errc::nested, path_ + ": a signal's handler has left a transaction open");
}

transactions::update_hold transactions::lock_updates(wait_limit limit) {
  STELE_ASSERT(!holds_gil());
  STELE_ASSERT(!is_open_here());
  update_hold hold(updates_, std::try_to_lock);
  const auto begun = std::chrono::steady_clock::now();
  while (!hold) {
    const wait_limit left = limit - (std::chrono::steady_clock::now() - begun);
    if (left.count() > 0 && hold.try_lock_for(std::min(left, signal_check_interval))) break;
    const nb::gil_scoped_acquire gil;
    check_signals();
    if (left.count() <= 0) throw_timed_out(limit);
  }
  // A thread inside a `with` holds the lock that this thread has got.
  STELE_ASSERT(owner_.load() == std::thread::id());
  return hold;
}

void transactions::check_open() const {
  if (closed_)
    throw_library_error(errc::invalid_argument, path_ + " has been closed; open it again");
  if (core_.is_of_parent()) throw library_error(core_.unusable().error());
}

void transactions::check_usable() const {
  check_open();
  if (in_transaction())
    throw_library_error(errc::nested, path_ +
                                          ": a transaction on another pool is running in this "
                                          "thread (perhaps of another asyncio task); a transaction "
                                          "changes one pool, so end that one first");
}

// Releases the line locks of other threads' ordered commits, because a `with` cannot retry.
void transactions::flush_deferred_commits() {
  STELE_ASSERT(!in_transaction());
  if (core().state().overlays.load() == 0) return;
  detail::thread_context* const v = unwrap(core().enter_slow());
  core().leave(*v);
  core().release_idle_overlays(*v);
}

void transactions::begin_update(durability how) {
  flush_deferred_commits();
  transaction_ = unwrap(detail::hold_update(core(), how, code_between::may_wait));
}

void transactions::begin_read(wait_limit limit) {
  STELE_ASSERT(reads_only_);
  transaction_ =
      wait_for_process(limit, [&] { return detail::hold_read(core(), code_between::may_wait); });
}

void transactions::wait_before_next(std::chrono::steady_clock::time_point begun, wait_limit limit,
                                    const error& why) const {
  STELE_ASSERT(!holds_gil());
  STELE_ASSERT(why.code == errc::in_use);
  const bool too_late = std::chrono::steady_clock::now() - begun >= limit;
  if (!too_late) std::this_thread::sleep_for(signal_check_interval);
  const nb::gil_scoped_acquire gil;
  if (too_late) python::throw_timed_out(why.message);
  check_signals();
}

void transactions::begin(nb::handle self, durability how, wait_limit limit) {
  if (joins()) {
    check_open();
    if (doomed_by_) throw library_error(*doomed_by_);
    STELE_ASSERT(depth_ != 0);
    ++depth_;
    return;
  }
  check_usable();
  flow now = flow::current();
  const use used(*this);
  prepare_to_keep();
  {
    const nb::gil_scoped_release gil_released;
    update_hold hold = lock_updates(limit);
    reads_only_ ? begin_read(limit) : begin_update(how);
    hold.release();
  }
  keep_until_thread_ends(self, *this);
  STELE_ASSERT(owner_.load() == std::thread::id());
  STELE_ASSERT(!doomed_by_);  // cleared by the transaction before
  owner_ = std::this_thread::get_id();
  owner_ident_ = PyThread_get_thread_ident();
  flow_ = std::move(now);
  depth_ = 1;
}

std::optional<error> transactions::commit() {
  STELE_ASSERT(in_transaction());
  STELE_ASSERT(!doomed_by_);
  auto done = transaction_.commit();
  if (done) return std::nullopt;
  if (done.error().code != errc::conflict) return std::move(done.error());
  roll_back();
  return error{errc::cancelled, path_ +
                                    ": another user of the pool in this process changed what the "
                                    "transaction has read; run it again"};
}

// If an allocation failed, also gathers free memory for the next attempt.
void transactions::roll_back() noexcept {
  if (!reads_only_ && transaction_.state() == transaction_state::lost) try {
      (void)transaction_.retry();
    } catch (const std::bad_alloc&) {
      // The thread is in no transaction.
    }
  transaction_.roll_back();
}

// The thread that collects an abandoned generator or coroutine ends it, in any flow.
void transactions::end(bool failed) {
  if (failed && owner_.load() == std::thread::id()) return;  // its thread has ended
  if (!is_open_here())
    throw_library_error(errc::invalid_argument,
                        path_ + ": a transaction ends in the thread that began it");
  const bool strays = !failed && !flow_.is_current();
  if (strays)
    doom([this] {
      return error{errc::nested,
                   path_ +
                       ": the `with` of a transaction ended in another asyncio task (or "
                       "greenlet) than it began in, so nothing of it is kept"};
    });
  else if (failed && !doomed_by_)
    doom([this] {
      return error{errc::cancelled, path_ +
                                        ": an exception ended a transaction inside this one, "
                                        "so nothing of it is kept"};
    });
  STELE_ASSERT(depth_ != 0);
  if (--depth_ != 0) return;
  std::optional<error> why = std::exchange(doomed_by_, std::nullopt);
  const bool lost = why.has_value();
  std::exception_ptr thrown;  // in a container's destructor
  const use used(*this);
  // Before the next `with` can begin, which sets flow_.
  const flow ended = std::exchange(flow_, flow());
  {
    const nb::gil_scoped_release gil_released;
    if (lost) {
      roll_back();
    } else {
      try {
        why = commit();
      } catch (...) {
        roll_back();
        thrown = std::current_exception();
      }
    }
    STELE_ASSERT(lost || !failed);
    STELE_ASSERT(!in_transaction());  // after_update_ runs transactions of its own
    const bool full = why && why->code == errc::full;
    if (full) detail::make_room(core());
    if (after_update_ && !reads_only_) after_update_(full);
    release_updates();
  }
  STELE_ASSERT(!is_open_here());
  keep_no_longer();
  if (thrown) std::rethrow_exception(thrown);
  if (why && !failed) throw library_error(std::move(*why));
}

void transactions::refuse_inside(const char* done) const {
  if (is_open_here())
    throw_library_error(errc::nested, path_ + " cannot be " + done +
                                          " inside a transaction; do it when that has ended");
  check_usable();
}

void transactions::sync() {
  check_usable();
  const use used(*this);
  const nb::gil_scoped_release gil_released;
  unwrap(detail::sync_pool(core()));
}

void transactions::grow(std::size_t size_bytes) {
  refuse_inside("grown");
  const use used(*this);
  const nb::gil_scoped_release gil_released;
  const update_hold hold = lock_updates(limit_);
  unwrap(detail::grow(core(), size_bytes));
}

void transactions::backup(const std::string& path, const nb::object& report) {
  refuse_inside("backed up");
  const use used(*this);
  std::exception_ptr thrown;  // by Python code
  update_hold hold;           // until the copied state is fixed
  const progress reported = [&](std::uint64_t done, std::uint64_t all) {
    STELE_ASSERT(!holds_gil());
    STELE_ASSERT(done <= all);
    if (hold) hold.unlock();
    const nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return report.is_none() || nb::cast<bool>(nb::bool_(report(done, all)));
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  };
  result<> made;
  {
    const nb::gil_scoped_release gil_released;
    hold = lock_updates(limit_);
    made = detail::back_up(core(), path, reported);
  }
  if (thrown) std::rethrow_exception(thrown);
  unwrap(std::move(made));
}

void transactions::check_storage() {
  refuse_inside("checked");
  const use used(*this);
  const nb::gil_scoped_release gil_released;
  const update_hold hold = lock_updates(limit_);
  unwrap(detail::check_storage(core()));
}

pool_space transactions::space() {
  refuse_inside("measured");
  const use used(*this);
  const nb::gil_scoped_release gil_released;
  const update_hold hold = lock_updates(limit_);
  return detail::space_of(core());
}

// Releases the pool even on an error, unless a running transaction uses it.
result<> transactions::close_core(wait_limit limit) {
  STELE_ASSERT(uses_ != 0);  // else the runtime could be released meanwhile
  const auto begun = std::chrono::steady_clock::now();
  const nb::gil_scoped_release gil_released;
  const update_hold hold = lock_updates(limit);
  updates_.begin_close();
  const std::unique_ptr<update_lock, void (*)(update_lock*)> closing(
      &updates_, [](update_lock* u) { u->end_close(); });
  for (;;) {
    auto closed = detail::close_pool(core());
    if (closed || closed.error().code != errc::in_use || detail::report_scope::exists(core()) ||
        std::chrono::steady_clock::now() - begun >= limit)
      return closed;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // another thread reads
  }
}

void transactions::close(wait_limit limit) {
  if (closed_) return;
  const use used(*this);
  if (core_.is_of_parent()) {
    closed_ = true;
    return;
  }
  if (is_open_here())
    throw_library_error(errc::in_use, path_ + " cannot be closed inside a transaction on it");
  auto closed = close_core(limit);
  closed_ = closed_ || closed || closed.error().code != errc::in_use;
  unwrap(std::move(closed));
}

}  // namespace stele::python
