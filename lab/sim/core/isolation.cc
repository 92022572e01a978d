// Detects conflicts, and hands over the lock.
#include <sim/core/isolation.h>

#include <utility>

namespace stele::sim {

template <class F>
void isolation_control::for_each_holder(unsigned core, unsigned except, std::uint64_t line,
                                        std::uint8_t flags, F&& f) {
  for (unsigned t = core; t < threads_.size(); t += cores_)
    if (t != except && threads_[t].speculative && (threads_[t].lines.flags(line) & flags) != 0)
      f(t);
}

bool isolation_control::begin(unsigned thread, picoseconds now) {
  state& s = threads_[thread];
  s.lines.clear();
  if (kind_ == isolation_kind::none) return true;
  if (kind_ == isolation_kind::mutex || s.aborts > retries_) return lock(thread, now);
  if (owner_ >= 0) {
    waiting_to_begin_.push_back(thread);
    return false;
  }
  s.speculative = true;
  return true;
}

bool isolation_control::lock(unsigned thread, picoseconds now) {
  if (has_lock(thread)) return true;  // release() has handed the lock over
  if (owner_ >= 0 || !waiting_.empty()) {
    waiting_.push_back(thread);
    return false;
  }
  owner_ = static_cast<int>(thread);
  ++counts.lock_taken;
  for (unsigned t = 0; t < threads_.size(); ++t)
    if (threads_[t].speculative) abort_attempt(t, now);
  return true;
}

void isolation_control::release(unsigned thread, picoseconds now) {
  threads_[thread].aborts = 0;
  if (!has_lock(thread)) return;
  owner_ = -1;
  if (!waiting_.empty()) {
    owner_ = static_cast<int>(waiting_.front());
    waiting_.pop_front();
    ++counts.lock_taken;
    threads_[static_cast<unsigned>(owner_)].who->may_begin(now + handoff_);
    return;
  }
  for (unsigned t : std::exchange(waiting_to_begin_, {}))
    threads_[t].who->may_begin(now + handoff_);
}

void isolation_control::abort_attempt(unsigned thread, picoseconds now) {
  state& s = threads_[thread];
  s.speculative = false;
  ++s.aborts;
  s.who->aborted(now);
}

void isolation_control::conflict_on_core(unsigned thread, std::uint64_t line, bool store,
                                         picoseconds now) {
  for_each_holder(thread % cores_, thread, line, store ? read | written : written, [&](unsigned t) {
    ++counts.conflicts;
    abort_attempt(t, now);
  });
}

void isolation_control::flushing(std::uint64_t line, picoseconds now) {
  for (unsigned t = 0; t < threads_.size(); ++t) {
    if (!threads_[t].speculative || (threads_[t].lines.flags(line) & written) == 0) continue;
    ++counts.conflicts;
    abort_attempt(t, now);
  }
}

void isolation_control::remote_access(unsigned core, std::uint64_t line, bool by_store,
                                      picoseconds now) {
  if (kind_ != isolation_kind::htm) return;
  for_each_holder(core, ~0u, line, by_store ? read | written : written, [&](unsigned t) {
    ++counts.conflicts;
    abort_attempt(t, now);
  });
}

void isolation_control::evicted(unsigned core, std::uint64_t line, picoseconds now) {
  if (kind_ != isolation_kind::htm) return;
  for_each_holder(core, ~0u, line, read | written, [&](unsigned t) {
    ++counts.capacity_aborts;
    abort_attempt(t, now);
  });
}

}  // namespace stele::sim
