// Takes sessions and gives them back. There is no lock for all: it would be what short reads of
// several threads wait for.
#include <bench/sqlite/sessions.h>

namespace stele::bench::sql {

session_pool::slot& session_pool::take() noexcept {
  static thread_local std::size_t last = 0;
  while (slots_[last].taken.exchange(true, std::memory_order_acquire))
    last = (last + 1) % most_threads;
  return slots_[last];
}

result<> session_pool::open(slot& s) {
  auto opened = open_();
  if (!opened) return std::unexpected(std::move(opened.error()));
  s.own = workload_.make_session(std::move(*opened));
  return {};
}

result<> session_pool::apply(std::span<const operation> operations) {
  slot& mine = take();
  auto done = mine.own == nullptr ? open(mine) : result<>{};
  if (done) done = mine.own->apply(operations);
  mine.taken.store(false, std::memory_order_release);
  return done;
}

void session_pool::clear() {
  for (slot& s : slots_) s.own.reset();
}

}  // namespace stele::bench::sql
