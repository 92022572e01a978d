// The members of vector; vector.h has their contracts.
#pragma once

namespace stele {

template <class T, class Memory>
std::size_t basic_vector<T, Memory>::checked(std::size_t i) const {
  if (i < size()) return i;
  throw failure({errc::invalid_argument, "vector: there is no such element among its " +
                                             std::to_string(size()) + "; look at size() first"});
}

template <class T, class Memory>
template <class F>
void basic_vector<T, Memory>::for_each_run(std::size_t from, std::size_t to, F&& f) const {
  const sizes s = shape();
  if constexpr (detail::is_guarded<Memory>)
    if (to > s.slots()) detail::throw_bad_pointer();
  while (from < to) {
    const std::size_t number = s.segment_of(from);
    const std::size_t end = std::min(to, s.start_of(number) + s.size_of(number));
    stored* const run = segment(number) + (from - s.start_of(number));
    if constexpr (detail::is_guarded<Memory>) Memory::validate(run, (end - from) * sizeof(stored));
    f(run, end - from);
    from = end;
  }
}

// At the end.

// The slot after the last element.
template <class T, class Memory>
auto basic_vector<T, Memory>::next_slot() -> stored* {
  if (size() == capacity()) grow();
  return slot_at(size());
}

template <class T, class Memory>
auto basic_vector<T, Memory>::push_back(view value) -> stored&
  requires requires { &traits::create; }
{
  stored* const at = next_slot();
  traits::create(at, value);
  ++size_;
  return *at;
}

template <class T, class Memory>
auto basic_vector<T, Memory>::emplace_back() -> stored& {
  stored* const at = next_slot();
  Memory::fill_zero(at, sizeof(stored));
  ++size_;
  return *at;
}

template <class T, class Memory>
void basic_vector<T, Memory>::pop_back() {
  shrink(checked(size() - 1));
}

template <class T, class Memory>
void basic_vector<T, Memory>::destroy_elements([[maybe_unused]] std::size_t from,
                                               [[maybe_unused]] std::size_t to) {
  if constexpr (!std::is_trivially_destructible_v<stored>) {
    for_each_run(from, to, [](stored* run, std::size_t count) {
      for (stored* s = run; s != run + count; ++s) s->~stored();
    });
  }
}

template <class T, class Memory>
void basic_vector<T, Memory>::shrink(std::size_t size) {
  destroy_elements(size, this->size());
  size_ = size;
}

template <class T, class Memory>
void basic_vector<T, Memory>::resize(std::size_t count) {
  if (count < size()) return shrink(count);
  reserve(count);
  for_each_run(size(), count, [](stored* run, std::size_t length) {
    Memory::fill_zero(run, length * sizeof(stored));
  });
  size_ = count;
}

template <class T, class Memory>
void basic_vector<T, Memory>::assign(std::size_t count, view value) {
  shrink(0);
  reserve(count);
  for (std::size_t i = 0; i < count; ++i) push_back(value);
}

template <class T, class Memory>
template <std::input_iterator Iterator>
void basic_vector<T, Memory>::assign(Iterator first, Iterator last) {
  shrink(0);
  for (; first != last; ++first) push_back(*first);
}

// In the middle.

// Appends the new element, then moves it forward. So if there is no memory, no element has moved.
template <class T, class Memory>
auto basic_vector<T, Memory>::insert(const_iterator at, view value) -> iterator
  requires requires { &traits::relocate; }
{
  const iterator target(*this, at.number_);
  push_back(value);
  iterator it = end() - 1;
  if (it == target) return it;
  detached_element fresh;
  traits::relocate(&fresh.element, *it);
  for (iterator before = it; it != target; --it) traits::relocate(&*it, *--before);
  traits::relocate(&*it, fresh.element);
  return it;
}

template <class T, class Memory>
auto basic_vector<T, Memory>::erase(const_iterator first, const_iterator last) -> iterator
  requires requires { &traits::relocate; }
{
  const std::size_t kept = size() - static_cast<std::size_t>(last - first);
  destroy_elements(first.number_, last.number_);
  iterator to(*this, first.number_);
  for (iterator from(*this, last.number_); to.number_ != kept; ++from, ++to)
    traits::relocate(&*to, *from);
  size_ = kept;
  return {*this, first.number_};
}

template <class T, class Memory>
void basic_vector<T, Memory>::swap_elements(std::size_t i, std::size_t j)
  requires requires { &traits::relocate; }
{
  if (i == j) return;
  detached_element first;
  traits::relocate(&first.element, *slot_at(i));
  traits::relocate(slot_at(i), *slot_at(j));
  traits::relocate(slot_at(j), first.element);
}

// Segments.

template <class T, class Memory>
void basic_vector<T, Memory>::make_first_segment(std::size_t slots) {
  Memory::template require_members<stored>();
  first_ = static_cast<stored*>(Memory::allocate(slots * sizeof(stored), alignof(stored)));
  sizes_ = sizes::with_first_segment(slots).word;
}

template <class T, class Memory>
void basic_vector<T, Memory>::grow() {
  const sizes s = shape();
  if (s.empty()) return make_first_segment(min_slots);
  if (s.slots() >= max_slots)
    throw failure({errc::full, "vector: more elements than any pool holds"});
  const std::size_t later = s.segment_count() - 1;
  if (directory_capacity(later + 1) != directory_capacity(later)) grow_directory(later);
  directory_.load()[later] =
      static_cast<stored*>(Memory::allocate(s.slots() * sizeof(stored), alignof(stored)));
  sizes_ = s.grown().word;
}

// Makes room for one more pointer.
template <class T, class Memory>
void basic_vector<T, Memory>::grow_directory(std::size_t later) {
  link* const old = directory_.load();
  auto* const fresh = static_cast<link*>(
      Memory::allocate(directory_capacity(later + 1) * sizeof(link), alignof(link)));
  for (std::size_t i = 0; i < later; ++i) fresh[i] = old[i].load();
  directory_ = fresh;
  Memory::deallocate(old);
}

template <class T, class Memory>
void basic_vector<T, Memory>::reserve(std::size_t count) {
  if (count > max_slots)
    throw failure(
        {errc::full, "vector: more elements than any pool holds: " + std::to_string(count)});
  if (capacity() == 0 && count != 0) make_first_segment(std::bit_ceil(std::max(count, min_slots)));
  while (capacity() < count) grow();
}

template <class T, class Memory>
void basic_vector<T, Memory>::shrink_to_fit() {
  if (empty()) return clear();
  sizes s = shape();
  while (s.segment_count() > 1 && unused(s, s.segment_count() - 1, size())) {
    Memory::deallocate(segment(s.segment_count() - 1));
    s = s.shrunk();
  }
  if (s.word == sizes_.load()) return;
  sizes_ = s.word;
  if (s.segment_count() > 1) return;
  Memory::deallocate(directory_.load());
  directory_ = nullptr;
}

template <class T, class Memory>
void basic_vector<T, Memory>::free_blocks() {
  destroy_elements(0, size());
  for (std::size_t i = 0; i < shape().segment_count(); ++i) Memory::deallocate(segment(i));
  Memory::deallocate(directory_.load());
}

template <class T, class Memory>
void basic_vector<T, Memory>::clear() {
  free_blocks();
  size_ = 0;
  sizes_ = 0;
  first_ = nullptr;
  directory_ = nullptr;
}

// Inspection.

template <class T, class Memory>
template <class Visit>
void basic_vector<T, Memory>::visit_blocks(Visit&& visit) const {
  for (std::size_t i = 0; i < shape().segment_count(); ++i)
    visit(static_cast<const void*>(segment(i)));
  if (const link* directory = directory_.load()) visit(static_cast<const void*>(directory));
  for (const stored& s : *this) traits::visit_blocks(s, visit);
}

template <class T, class Memory>
result<> basic_vector<T, Memory>::check() const {
  const sizes s{sizes_.load()};
  if (!s.valid(max_segments)) return detail::corrupt_error("vector: a shape that no segments have");
  if (size() > s.slots())
    return detail::corrupt_error("vector: more elements than its segments hold");
  if (s.empty()) {
    if (first_.load() != nullptr || directory_.load() != nullptr)
      return detail::corrupt_error("vector: a segment that its shape does not know");
    return {};
  }
  if (s.first_segment_slots() < 2 || s.slots() < s.first_segment_slots() || s.slots() > max_slots)
    return detail::corrupt_error("vector: segments longer than a pool");
  if (directory_.load() == nullptr && s.segment_count() > 1)
    return detail::corrupt_error("vector: the directory is missing");
  for (std::size_t i = 0; i < s.segment_count(); ++i)
    if (segment(i) == nullptr) return detail::corrupt_error("vector: a segment is missing");
  for (std::size_t i = 0; i < s.segment_count(); ++i)
    detail::claim<Memory>(segment(i), s.size_of(i) * sizeof(stored));
  if (directory_.load() != nullptr)
    detail::claim<Memory>(directory_.load(),
                          directory_capacity(s.segment_count() - 1) * sizeof(link));
  return {};
}

}  // namespace stele
