// Begin and end of transactions that Python holds open, and the end of a pool.
#include "turns.h"

namespace stele::python {

void refuse(errc code, std::string message) {
  throw refused({code, std::move(message)});
}

turns::turns(std::string path, detail::runtime& core, durability how)
    : path_(std::move(path)), core_(core), how_(how), reads_lock_(core.state().file.header().log_count < 2) {}

void turns::leave() noexcept {
  if (!in_transaction()) return;
  roll_back();
  owner_ = std::thread::id();
  writer_.unlock();
}

void turns::usable() const {
  if (closed_) refuse(errc::invalid_argument, path_ + " has been closed; open it again");
  if (detail::this_access.size != 0)
    refuse(errc::nested, path_ +
                             ": a transaction on another pool is running in this thread; a transaction changes one pool, so "
                             "end that one first");
}

// The line locks of ordered commits that other threads have made: a `with` cannot give way to them.
void turns::settle_ordered() {
  if (core().state().overlays.load() == 0) return;
  detail::visitor* const v = unwrap(core().enter_anew());
  core().leave(*v);
  core().retire_idle(*v);
}

void turns::begin(durability how) {
  if (in_transaction()) {
    if (lost_) throw refused(*lost_);
    ++depth_;
    return;
  }
  usable();
  {
    const nb::gil_scoped_release others_run;
    std::unique_lock hold(writer_);
    settle_ordered();
    if (detail::begin_transaction(core(), true, how) == detail::begun::refused) throw refused(detail::last_error());
    hold.release();
  }
  owner_ = std::this_thread::get_id();
  depth_ = 1;
}

// With the memory gathered that an allocation did not find, if that is why.
void turns::roll_back() {
  if (detail::this_access.running->wants_reclaim) {
    detail::retry_transaction();
    if (detail::begin_transaction(core(), true, durability::durable) == detail::begun::refused) return;
  }
  detail::abandon_transaction();
}

void turns::end(bool failed) {
  if (!in_transaction()) refuse(errc::invalid_argument, path_ + ": a transaction ends in the thread that began it");
  if (failed && !lost_)
    lose({errc::cancelled, path_ + ": an exception ended a transaction inside this one, so nothing of it is kept"});
  if (--depth_ != 0) return;
  const std::optional<error> lost = std::exchange(lost_, std::nullopt);
  std::optional<error> why = failed ? std::nullopt : lost;
  {
    const nb::gil_scoped_release others_run;
    if (lost) {
      roll_back();
    } else if (const auto done = detail::commit_transaction(); done == detail::attempt::failed) {
      why = detail::last_error();
    } else if (done == detail::attempt::retry) {
      roll_back();
      why = error{errc::cancelled,
                  path_ + ": another user of the pool in this process changed what the transaction has read; run it again"};
    }
    owner_ = std::thread::id();
    writer_.unlock();
  }
  if (why) throw refused(std::move(*why));
}

void turns::sync() {
  usable();
  const nb::gil_scoped_release others_run;
  unwrap(detail::sync_pool(core()));
}

void turns::close() {
  if (closed_) return;
  if (in_transaction()) refuse(errc::in_use, path_ + " cannot be closed inside a transaction on it");
  const nb::gil_scoped_release others_run;
  const std::lock_guard hold(writer_);
  unwrap(detail::close_pool(core()));
  closed_ = true;
}

}  // namespace stele::python
