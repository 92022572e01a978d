// Takes sessions and gives them back.
#include <bench/sqlite/sessions.h>

#include <algorithm>

namespace stele::bench::sql {

result<session_pool::slot*> session_pool::take() {
  static thread_local std::size_t last = 0;
  const std::scoped_lock one(mutex_);
  if (last >= slots_.size() || slots_[last].taken)
    last =
        static_cast<std::size_t>(std::ranges::find(slots_, false, &slot::taken) - slots_.begin());
  if (last == slots_.size()) {
    auto opened = open_();
    if (!opened) return std::unexpected(std::move(opened.error()));
    slots_.push_back({workload_.make_session(std::move(*opened))});
  }
  slots_[last].taken = true;
  return &slots_[last];
}

result<> session_pool::apply(std::span<const operation> operations) {
  const auto taken = take();
  if (!taken) return std::unexpected(taken.error());
  auto done = (*taken)->own->apply(operations);
  const std::scoped_lock one(mutex_);
  (*taken)->taken = false;
  return done;
}

}  // namespace stele::bench::sql
