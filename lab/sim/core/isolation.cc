// Conflicts, and the lock.
#include <sim/core/isolation.h>

#include <utility>

namespace stele::sim {

template <class F>
void isolation::for_each_holder(unsigned core, unsigned except, std::uint64_t line, std::uint8_t flags, F&& f) {
  for (unsigned t = core; t < threads_.size(); t += cores_)
    if (t != except && threads_[t].speculative && (threads_[t].lines.flags(line) & flags) != 0) f(t);
}

bool isolation::begin(unsigned thread, picoseconds now) {
  state& s = threads_[thread];
  s.lines.clear();
  if (kind_ == isolation_kind::none) return true;
  if (kind_ == isolation_kind::mutex || s.lost > retries_) return lock(thread, now);
  if (owner_ >= 0) {
    held_back_.push_back(thread);
    return false;
  }
  s.speculative = true;
  return true;
}

bool isolation::lock(unsigned thread, picoseconds now) {
  if (owner_ == static_cast<int>(thread)) return true;  // handed over
  if (owner_ >= 0 || !waiting_.empty()) {
    waiting_.push_back(thread);
    return false;
  }
  owner_ = static_cast<int>(thread);
  ++counts.lock_taken;
  for (unsigned t = 0; t < threads_.size(); ++t)
    if (threads_[t].speculative) lose(t, now);
  return true;
}

void isolation::release(unsigned thread, picoseconds now) {
  threads_[thread].lost = 0;
  if (owner_ != static_cast<int>(thread)) return;
  owner_ = -1;
  if (!waiting_.empty()) {
    owner_ = static_cast<int>(waiting_.front());
    waiting_.pop_front();
    ++counts.lock_taken;
    threads_[static_cast<unsigned>(owner_)].who->may_begin(now + handoff_);
    return;
  }
  for (unsigned t : std::exchange(held_back_, {})) threads_[t].who->may_begin(now + handoff_);
}

void isolation::lose(unsigned thread, picoseconds now) {
  state& s = threads_[thread];
  s.speculative = false;
  ++s.lost;
  s.who->attempt_lost(now);
}

void isolation::take_from_core(unsigned thread, std::uint64_t line, bool store, picoseconds now) {
  for_each_holder(thread % cores_, thread, line, store ? read | written : written, [&](unsigned t) {
    ++counts.conflicts;
    lose(t, now);
  });
}

void isolation::taken(unsigned core, std::uint64_t line, bool by_store, picoseconds now) {
  if (kind_ != isolation_kind::htm) return;
  for_each_holder(core, ~0u, line, by_store ? read | written : written, [&](unsigned t) {
    ++counts.conflicts;
    lose(t, now);
  });
}

void isolation::displaced(unsigned core, std::uint64_t line, picoseconds now) {
  if (kind_ != isolation_kind::htm) return;
  for_each_holder(core, ~0u, line, read | written, [&](unsigned t) {
    ++counts.displacements;
    lose(t, now);
  });
}

}  // namespace stele::sim
