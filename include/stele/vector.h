// vector: elements by index. It grows and shrinks at its end, in segments that double in size.
//
//   struct log { using pool_resident = void; stele::vector<std::uint64_t> values; };
//   auto pool = stele::pool<log>::open("log.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](log& l) { l.values.push_back(42); });
//   auto last = pool->read([](const log& l) { return l.values.back().load(); });
//   if (last) std::printf("%lu\n", *last);
//
// Growth allocates one segment as long as all before it, and moves, copies or zeroes nothing.
// Memory past size() has unknown content. An append stores the element and the size: 2 lines. A
// directory, which doubles as well, points to the segments; a vector of one segment has none.
// Unlike an array's, the elements are not in one block. Elements that are containers never move.
//
// Elements are storable values (in fields), pointers into the pool, or stele containers; containers
// start empty (emplace_back). Members that move elements (insert, erase, swap_elements) take
// values, pointers and strings; the block of a string stays where it is. Zeroed memory is an empty
// vector. Call members in a transaction of the pool that holds the vector, changing members in an
// update; they are rolled back with it. A reference or pointer to an element is valid until its
// slot is removed: by pop_back, by erase, resize or assign that leave fewer elements, or by clear.
// insert and erase move other elements into the slot. An iterator is an index and such a pointer
// and is valid as long; an end iterator is valid until the next change. Members that allocate throw
// failure(errc::full). Arguments are values, not references into the vector, so v.push_back(v[0])
// is allowed.
#pragma once

#include <stele/detail/bounded_memory.h>
#include <stele/detail/segment_sizes.h>
#include <stele/element.h>

#include <iterator>

namespace stele {

template <class T, class Memory>
class basic_vector {
  using traits = element<T, Memory>;

 public:
  using pool_resident = void;
  using value_type = T;
  using stored = typename traits::stored;
  using view = typename traits::view;

  template <class Stored>
  class basic_iterator;
  using iterator = basic_iterator<stored>;
  using const_iterator = basic_iterator<const stored>;

  basic_vector() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty
                                      // vector
  ~basic_vector() {
    run_destructor([&] { free_blocks(); });
  }
  basic_vector(const basic_vector&) = delete;
  basic_vector& operator=(const basic_vector&) = delete;

  // O(1), as are all members below that name no cost.
  [[nodiscard]] std::size_t size() const { return size_.load(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t capacity() const { return shape().slots(); }

  // Requires i < size(); unchecked.
  stored& operator[](std::size_t i) { return *slot_at(i); }
  const stored& operator[](std::size_t i) const { return *slot_at(i); }
  // Throw failure(errc::invalid_argument) if there is no such element.
  stored& at(std::size_t i) { return *slot_at(checked(i)); }
  const stored& at(std::size_t i) const { return *slot_at(checked(i)); }
  stored& front() { return at(0); }
  const stored& front() const { return at(0); }
  stored& back() { return at(size() - 1); }
  const stored& back() const { return at(size() - 1); }

  iterator begin() { return iterator(*this, 0); }
  iterator end() { return iterator(*this, size_within()); }
  const_iterator begin() const { return const_iterator(*this, 0); }
  const_iterator end() const { return const_iterator(*this, size_within()); }
  auto rbegin() { return std::make_reverse_iterator(end()); }
  auto rend() { return std::make_reverse_iterator(begin()); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  // Calls f(const stored&) on each element in order. O(n).
  template <class F>
  void for_each(F&& f) const {
    for (const stored& s : *this) f(s);
  }

  // Append an element and return it: push_back with this value; emplace_back with zero, or an empty
  // container.
  stored& push_back(view value)
    requires requires { &traits::create; };
  stored& emplace_back();
  // Throws failure(errc::invalid_argument) if the vector is empty. Keeps the capacity, as do all
  // members below except clear and shrink_to_fit.
  void pop_back();

  // Inserts before `at`. Returns the position of the new element. O(elements after it).
  iterator insert(const_iterator at, view value)
    requires requires { &traits::relocate; };
  // Return the position of the element after the erased ones. O(elements erased and after).
  iterator erase(const_iterator at)
    requires requires { &traits::relocate; }
  {
    return erase(at, at + 1);
  }
  iterator erase(const_iterator first, const_iterator last)
    requires requires { &traits::relocate; };
  // Exchanges two elements. Requires i, j < size().
  void swap_elements(std::size_t i, std::size_t j)
    requires requires { &traits::relocate; };

  // Sets the length. New elements are zero (containers: empty); elements past the end are
  // destroyed. O(difference).
  void resize(std::size_t count);
  // Replaces all elements. O(old and new length). The range must lie in ordinary memory or in
  // another container.
  void assign(std::size_t count, view value);
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last);
  void clear();  // O(n); frees every block

  // Makes room for `count` elements, so that appending them allocates nothing. A vector without
  // capacity gets one segment of that length, rounded up to a power of two.
  void reserve(std::size_t count);
  void shrink_to_fit();  // frees the segments that hold no element

  // Calls visit(const void*) for every allocated block of the vector.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, if size, segments and directory are inconsistent.
  [[nodiscard]] result<> check() const;

 private:
  using sizes = detail::segment_sizes;
  using link = typename Memory::template field<stored*>;
  static_assert(alignof(stored) <= alignof(std::max_align_t) ||
                    std::is_base_of_v<pool_memory, Memory>,
                "plain_memory's blocks are aligned to 16 bytes at most");
  static constexpr std::size_t min_slots =
      std::max<std::size_t>(std::bit_floor(64 / sizeof(stored)), 2);  // slots of one line
  static constexpr std::size_t max_segments = 64;
  static constexpr std::size_t max_slots = std::bit_floor((std::size_t{1} << 46) / sizeof(stored));

  struct detached_element {  // ordinary memory for an element that is being moved
    detached_element() : in_use(&element, sizeof element) {}
    ~detached_element() {}
    union {
      stored element;
    };
    [[no_unique_address]] typename detail::checks_of<Memory>::local in_use;
  };

  // Pointers that fit the directory for `later` segments after the first.
  static std::size_t directory_capacity(std::size_t later) {
    return later == 0 ? 0 : std::max<std::size_t>(std::bit_ceil(later), 4);
  }
  // Whether all slots of the segment are past the last element.
  static bool unused(sizes s, std::size_t segment, std::size_t size) {
    return s.start_of(segment) >= size;
  }

  [[gnu::always_inline]] sizes shape() const {
    const sizes s{sizes_.load()};
    if constexpr (detail::is_guarded<Memory>)
      if (!s.valid(max_segments)) detail::throw_bad_pointer();
    return s;
  }
  template <class Target>
  [[gnu::always_inline]] static Target* verified(Target* link) {
    if constexpr (detail::is_guarded<Memory>)
      if (link == nullptr) detail::throw_bad_pointer();
    return link;
  }
  // The length of a walk: its elements lie in segments.
  std::size_t size_within() const {
    if constexpr (detail::is_guarded<Memory>)
      if (size() > capacity()) detail::throw_bad_pointer();
    return size();
  }
  [[gnu::always_inline]] stored* segment(std::size_t number) const {
    if (number == 0) return verified(first_.load());
    return verified(verified(directory_.load())[number - 1].load());
  }
  [[gnu::always_inline]] stored* slot_at(std::size_t i) const {
    const sizes s = shape();
    if constexpr (detail::is_guarded<Memory>)
      if (i >= s.slots()) detail::throw_bad_pointer();
    const std::size_t number = s.segment_of(i);
    return segment(number) + (i - s.start_of(number));
  }
  std::size_t checked(std::size_t i) const;
  stored* next_slot();
  // Calls f(stored*, count) for the slots from `from` to `to`, segment by segment.
  template <class F>
  void for_each_run(std::size_t from, std::size_t to, F&& f) const;
  void destroy_elements(std::size_t from, std::size_t to);
  void make_first_segment(std::size_t slots);
  void grow();
  void grow_directory(std::size_t later);
  void free_blocks();
  void shrink(std::size_t size);

  typename Memory::template field<std::uint64_t> size_;
  typename Memory::template field<std::uint64_t> sizes_;
  link first_;
  // Pointers to the segments after the first; null if there are none.
  typename Memory::template field<link*> directory_;
};

template <class T>
using vector = basic_vector<T, pool_memory>;

// Visits the elements by index.
template <class T, class Memory>
template <class Stored>
class basic_vector<T, Memory>::basic_iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = Stored&;
  using pointer = Stored*;
  using iterator_category = std::random_access_iterator_tag;

  basic_iterator() = default;
  operator basic_iterator<const Stored>() const { return {*owner_, number_}; }
  Stored& operator*() const { return *verified(at_); }
  Stored* operator->() const { return verified(at_); }
  Stored& operator[](difference_type n) const { return *(*this + n); }

  basic_iterator& operator++() {
    ++number_;
    return begins_segment(number_) ? update_pointer() : (++at_, *this);
  }
  basic_iterator& operator--() {
    const bool crosses = begins_segment(number_--);
    return crosses ? update_pointer() : (--at_, *this);
  }
  basic_iterator operator++(int) { return std::exchange(*this, *this + 1); }
  basic_iterator operator--(int) { return std::exchange(*this, *this - 1); }
  basic_iterator& operator+=(difference_type n) {
    number_ += static_cast<std::size_t>(n);
    return update_pointer();
  }
  basic_iterator& operator-=(difference_type n) { return *this += -n; }
  friend basic_iterator operator+(basic_iterator it, difference_type n) { return it += n; }
  friend basic_iterator operator+(difference_type n, basic_iterator it) { return it += n; }
  friend basic_iterator operator-(basic_iterator it, difference_type n) { return it -= n; }
  friend difference_type operator-(const basic_iterator& a, const basic_iterator& b) {
    return static_cast<difference_type>(a.number_ - b.number_);
  }
  friend bool operator==(const basic_iterator& a, const basic_iterator& b) {
    return a.number_ == b.number_;
  }
  friend auto operator<=>(const basic_iterator& a, const basic_iterator& b) {
    return a.number_ <=> b.number_;
  }

 private:
  friend basic_vector;
  template <class>
  friend class basic_iterator;
  basic_iterator(const basic_vector& owner, std::size_t number) : owner_(&owner), number_(number) {
    update_pointer();
  }

  // True at the first slot of every segment. If it is true elsewhere, the lookup is only slower.
  static bool begins_segment(std::size_t number) { return (number & (number - 1)) == 0; }
  basic_iterator& update_pointer() {
    at_ = number_ < owner_->capacity() ? owner_->slot_at(number_) : nullptr;
    return *this;
  }

  const basic_vector* owner_ = nullptr;
  std::size_t number_ = 0;
  Stored* at_ = nullptr;
};

}  // namespace stele

#include <stele/detail/vector_inl.h>
