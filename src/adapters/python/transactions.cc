// Begin and end of transactions that Python holds open, and closing a pool.
#include "transactions.h"

namespace stele::python {

void throw_library_error(errc code, std::string message) {
  throw library_error({code, std::move(message)});
}

void refuse_null_byte(const std::string& path) {
  if (path.find('\0') != std::string::npos) throw nb::value_error("embedded null byte in the path");
}

pool_options options_of(std::size_t size, const std::string& mechanism, const std::string& media,
                        std::size_t max_size, const std::string& require,
                        const std::string& verify) {
  pool_options options;
  options.create_size = size;
  options.mechanism = mechanism;
  options.media = media;
  options.max_size = max_size;
  options.require = require;
  if (verify == "always")
    options.verify = verification::always;
  else if (verify == "never")
    options.verify = verification::never;
  else if (verify != "auto")
    throw_library_error(errc::invalid_argument,
                        "verify is '" + verify + "'; it is 'auto', 'always' or 'never'");
  return options;
}

transactions::transactions(std::string path, detail::runtime& core, durability how)
    : path_(std::move(path)),
      core_(core),
      default_durability_(how),
      reads_take_writer_lock_(core.state().file.header().log_count < 2) {}

void transactions::leave() noexcept {
  if (!in_transaction()) return;
  roll_back();
  owner_ = std::thread::id();
  writer_.unlock();
}

void transactions::check_usable() const {
  if (closed_)
    throw_library_error(errc::invalid_argument, path_ + " has been closed; open it again");
  if (detail::this_access.size != 0)
    throw_library_error(errc::nested, path_ +
                                          ": a transaction on another pool is running in this "
                                          "thread; a transaction changes one pool, so "
                                          "end that one first");
}

// Releases the line locks of other threads' ordered commits: a `with` cannot retry to let them go
// first.
void transactions::flush_deferred_commits() {
  if (core().state().overlays.load() == 0) return;
  detail::thread_context* const v = unwrap(core().enter_slow());
  core().leave(*v);
  core().release_idle_overlays(*v);
}

void transactions::begin(durability how) {
  if (in_transaction()) {
    if (doomed_by_) throw library_error(*doomed_by_);
    ++depth_;
    return;
  }
  check_usable();
  {
    const nb::gil_scoped_release gil_released;
    std::unique_lock hold(writer_);
    flush_deferred_commits();
    if (detail::begin_transaction(core(), true, how, detail::code_between::may_wait) ==
        detail::begin_status::refused)
      throw library_error(detail::last_error());
    hold.release();
  }
  owner_ = std::this_thread::get_id();
  depth_ = 1;
}

// If an allocation failed, also gathers free memory for the next attempt.
std::optional<error> transactions::commit() {
  switch (detail::commit_transaction()) {
    case detail::commit_status::committed:
      return std::nullopt;
    case detail::commit_status::failed:
      return detail::last_error();
    case detail::commit_status::retry:
      roll_back();
  }
  return error{errc::cancelled, path_ +
                                    ": another user of the pool in this process changed what the "
                                    "transaction has read; run it again"};
}

void transactions::roll_back() {
  if (detail::this_access.running->wants_reclaim) {
    detail::retry_transaction();
    if (detail::begin_transaction(core(), true, durability::durable,
                                  detail::code_between::may_wait) == detail::begin_status::refused)
      return;
  }
  detail::roll_back_transaction();
}

// After a transaction that found no room: the next one finds it, if the pool may grow. The caller
// holds writer_.
void transactions::make_room() {
  detail::this_wanted_room = {1, core().state().file.header().size};
  error unused{errc::full, ""};
  (void)detail::grow_for(core(), unused);
}

void transactions::end(bool failed) {
  if (!in_transaction())
    throw_library_error(errc::invalid_argument,
                        path_ + ": a transaction ends in the thread that began it");
  if (failed && !doomed_by_)
    doom({errc::cancelled,
          path_ + ": an exception ended a transaction inside this one, so nothing of it is kept"});
  if (--depth_ != 0) return;
  const std::optional<error> lost = std::exchange(doomed_by_, std::nullopt);
  std::optional<error> why = failed ? std::nullopt : lost;
  std::exception_ptr thrown;  // in a container's destructor
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
    if (const auto& full = lost ? lost : why; full && full->code == errc::full) make_room();
    owner_ = std::thread::id();
    writer_.unlock();
  }
  if (thrown) std::rethrow_exception(thrown);
  if (why) throw library_error(std::move(*why));
}

void transactions::sync() {
  check_usable();
  const nb::gil_scoped_release gil_released;
  unwrap(detail::sync_pool(core()));
}

void transactions::grow(std::size_t size_bytes) {
  check_usable();
  const nb::gil_scoped_release gil_released;
  unwrap(detail::grow(core(), size_bytes));
}

void transactions::backup(const std::string& path, const nb::object& report) {
  refuse_null_byte(path);
  check_usable();
  std::exception_ptr thrown;  // by Python code
  const progress reported = [&](std::uint64_t done, std::uint64_t all) {
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
    made = detail::back_up(core(), path, reported);
  }
  if (thrown) std::rethrow_exception(thrown);
  unwrap(std::move(made));
}

void transactions::check_storage() {
  check_usable();
  if (in_transaction())
    throw_library_error(errc::nested, path_ +
                                          " cannot be checked inside a transaction; do it "
                                          "when that has ended");
  const nb::gil_scoped_release gil_released;
  unwrap(detail::check_storage(core()));
}

void transactions::close() {
  if (closed_) return;
  if (in_transaction())
    throw_library_error(errc::in_use, path_ + " cannot be closed inside a transaction on it");
  const nb::gil_scoped_release gil_released;
  const std::lock_guard hold(writer_);
  unwrap(detail::close_pool(core()));
  closed_ = true;
}

}  // namespace stele::python
