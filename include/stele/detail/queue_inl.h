// The members of queue; queue.h has their contracts.
#pragma once

namespace stele {

template <class T, class Memory>
void basic_queue<T, Memory>::throw_empty() {
  throw failure({errc::invalid_argument, "queue: it is empty; look at empty() first"});
}

template <class T, class Memory>
auto basic_queue<T, Memory>::oldest() const -> stored* {
  if (empty()) throw_empty();
  return slot(front_.load(), pop_count_.load());
}

template <class T, class Memory>
auto basic_queue<T, Memory>::newest() const -> stored* {
  if (size() == 0) throw_empty();
  const std::uint64_t last = push_count_.load() - 1;
  return slot(last % slots == slots - 1 ? before_back_.load() : back_.load(), last);
}

// The pushing side.

template <class T, class Memory>
auto basic_queue<T, Memory>::make_segment() -> segment* {
  Memory::template require_members<stored>();
  auto* const s = static_cast<segment*>(Memory::allocate(sizeof(segment), alignof(segment)));
  s->next = nullptr;
  return s;
}

template <class T, class Memory>
void basic_queue<T, Memory>::make_first_segment() {
  segment* const s = make_segment();
  back_ = s;
  front_ = s;
}

template <class T, class Memory>
template <class Create>
auto basic_queue<T, Memory>::push_with(Create&& create) -> stored& {
  if (back_.load() == nullptr) make_first_segment();
  segment* const s = back_.load();
  const std::uint64_t number = push_count_.load();
  stored* const at = slot(s, number);
  create(at);
  if (number % slots == slots - 1) {
    s->next = make_segment();
    before_back_ = s;
    back_ = s->next.load();
  }
  push_count_ = number + 1;
  return *at;
}

template <class T, class Memory>
auto basic_queue<T, Memory>::push(view value) -> stored&
  requires requires { &traits::create; }
{
  return push_with([&](stored* at) { traits::create(at, value); });
}

template <class T, class Memory>
auto basic_queue<T, Memory>::emplace() -> stored& {
  return push_with([](stored* at) { Memory::fill_zero(at, sizeof(stored)); });
}

// The popping side.

template <class T, class Memory>
void basic_queue<T, Memory>::pop() {
  const std::uint64_t number = pop_count_.load();
  if (number == cached_push_count_.load()) {
    if (size() == 0) throw_empty();
    cached_push_count_ = push_count_.load();
  }
  segment* const s = front_.load();
  if constexpr (!std::is_trivially_destructible_v<stored>) slot(s, number)->~stored();
  pop_count_ = number + 1;
  if (number % slots != slots - 1) return;
  front_ = s->next.load();
  Memory::deallocate(s);
}

// Both sides.

// Calls f(segment*, number of its first element, number after its last element) on each segment.
template <class T, class Memory>
template <class F>
void basic_queue<T, Memory>::for_each_segment(F&& f) const {
  const std::uint64_t end = push_count_.load();
  std::uint64_t from = pop_count_.load();
  for (segment *s = front_.load(), *next = nullptr; s != nullptr; s = next) {
    next = s->next.load();
    const std::uint64_t to = std::min(end, from - from % slots + slots);
    f(s, from, to);
    from = to;
  }
}

template <class T, class Memory>
template <class F>
void basic_queue<T, Memory>::for_each(F&& f) const {
  for_each_segment([&](segment* s, std::uint64_t from, std::uint64_t to) {
    for (; from != to; ++from) f(std::as_const(*slot(s, from)));
  });
}

template <class T, class Memory>
void basic_queue<T, Memory>::free_blocks() {
  for_each_segment(
      [](segment* s, [[maybe_unused]] std::uint64_t from, [[maybe_unused]] std::uint64_t to) {
        if constexpr (!std::is_trivially_destructible_v<stored>)
          for (; from != to; ++from) slot(s, from)->~stored();
        Memory::deallocate(s);
      });
}

template <class T, class Memory>
void basic_queue<T, Memory>::clear() {
  free_blocks();
  Memory::fill_zero(this, sizeof *this);
}

// Inspection.

template <class T, class Memory>
template <class Visit>
void basic_queue<T, Memory>::visit_blocks(Visit&& visit) const {
  for_each_segment([&](segment* s, std::uint64_t from, std::uint64_t to) {
    visit(static_cast<const void*>(s));
    for (; from != to; ++from) traits::visit_blocks(*slot(s, from), visit);
  });
}

template <class T, class Memory>
result<> basic_queue<T, Memory>::check() const {
  const std::uint64_t popped = pop_count_.load(), pushed = push_count_.load(),
                      seen = cached_push_count_.load();
  if (popped > seen || seen > pushed)
    return detail::corrupt_error(
        "queue: the counts of pushed and popped elements contradict each other");
  if ((front_.load() == nullptr) != (back_.load() == nullptr))
    return detail::corrupt_error("queue: it has one end only");
  const std::uint64_t most = pushed / slots - popped / slots + 1;
  std::uint64_t segments = 0;
  for (const segment* s = front_.load(); s != nullptr; s = s->next.load()) {
    if (++segments > most)
      return detail::corrupt_error("queue: more segments than its elements need");
    if ((s->next.load() == nullptr) != (s == back_.load()))
      return detail::corrupt_error("queue: the chain does not end with the last segment");
  }
  if (segments != most && (segments != 0 || pushed != 0))
    return detail::corrupt_error("queue: segments are missing");
  return {};
}

}  // namespace stele
