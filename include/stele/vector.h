// vector: elements by number, which grows and shrinks at its end, in segments that double.
//
// Growing allocates one more segment, as long as all before it, and moves, copies or zeroes
// nothing: what lies beyond size() is memory of unknown content. An append stores the element and
// the size, 2 lines. A directory, itself doubling, leads to the segments; a vector of one segment
// has none. Unlike array's, its elements are not side by side in one block, and those that are
// containers never move.
//
// Elements are storable values (in fields), pointers into the pool, or stele containers, which
// begin empty (emplace_back). What moves elements from place to place (insert, erase,
// swap_elements) takes values, pointers and strings; a string's text stays where it is. Zeroed
// memory is an empty vector. All members belong inside a transaction of the pool that holds the
// vector, changing ones inside an update, and are rolled back with it. A reference or pointer to an
// element stays valid until that place ends: by pop_back, erase, resize or assign that leave fewer
// elements, or clear; insert and erase move other elements into it. An iterator is a number and
// such a pointer: it is valid as long, one to the end until the next change. Those that allocate
// throw failure(errc::full). Nothing handed in can lie in the vector itself, so v.push_back(v[0])
// is fine.
#pragma once

#include <stele/bounded_memory.h>
#include <stele/element.h>
#include <stele/segment_sizes.h>

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

  basic_vector() noexcept = default;  // for zeroed memory: leaves it as it is, an empty vector
  ~basic_vector() noexcept(false) {
    detail::run_destructor([&] { free_blocks(); });
  }
  basic_vector(const basic_vector&) = delete;
  basic_vector& operator=(const basic_vector&) = delete;

  // O(1), as is all that follows unless it says otherwise.
  [[nodiscard]] std::size_t size() const { return size_.load(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t capacity() const { return sizes{sizes_.load()}.slots(); }

  // Unchecked: i < size().
  stored& operator[](std::size_t i) { return *slot_at(i); }
  const stored& operator[](std::size_t i) const { return *slot_at(i); }
  // Throw failure(errc::invalid_argument) when there is no such element.
  stored& at(std::size_t i) { return *slot_at(checked(i)); }
  const stored& at(std::size_t i) const { return *slot_at(checked(i)); }
  stored& front() { return at(0); }
  const stored& front() const { return at(0); }
  stored& back() { return at(size() - 1); }
  const stored& back() const { return at(size() - 1); }

  iterator begin() { return iterator(*this, 0); }
  iterator end() { return iterator(*this, size()); }
  const_iterator begin() const { return const_iterator(*this, 0); }
  const_iterator end() const { return const_iterator(*this, size()); }
  auto rbegin() { return std::make_reverse_iterator(end()); }
  auto rend() { return std::make_reverse_iterator(begin()); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  // Calls f(const stored&) on each element in order. O(n).
  template <class F>
  void for_each(F&& f) const {
    for (const stored& s : *this) f(s);
  }

  // Appends, and returns the element: with this value; zero, or an empty container.
  stored& push_back(view value)
    requires requires { &traits::create; };
  stored& emplace_back();
  // Throws failure(errc::invalid_argument) when the vector is empty. Keeps the capacity, as do all
  // below but clear and shrink_to_fit.
  void pop_back();

  // In front of the element at `at`, or at the end. Returns where the element is. O(elements
  // behind).
  iterator insert(const_iterator at, view value)
    requires requires { &traits::relocate; };
  // Return where the element behind the erased ones is. O(elements erased and behind).
  iterator erase(const_iterator at)
    requires requires { &traits::relocate; }
  {
    return erase(at, at + 1);
  }
  iterator erase(const_iterator first, const_iterator last)
    requires requires { &traits::relocate; };
  // Exchanges two elements. i, j < size().
  void swap_elements(std::size_t i, std::size_t j)
    requires requires { &traits::relocate; };

  // Sets the length: new elements are zero (containers: empty), surplus ones end. O(difference).
  void resize(std::size_t count);
  // Replaces all elements. O(old and new length). The range lies in ordinary memory, or in another
  // container.
  void assign(std::size_t count, view value);
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last);
  void clear();  // O(n); frees every block

  // Makes room for `count` elements: appending them allocates nothing. On an empty vector of no
  // capacity, one segment of that many, rounded up to a power of two.
  void reserve(std::size_t count);
  void shrink_to_fit();  // frees the segments that hold no element

  // Calls visit(const void*) for every allocated block that the vector reaches.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, when size, segments and directory contradict each other.
  [[nodiscard]] result<> check() const;

 private:
  using sizes = detail::segment_sizes;
  using link = typename Memory::template field<stored*>;
  static_assert(alignof(stored) <= alignof(std::max_align_t) ||
                    std::is_base_of_v<pool_memory, Memory>,
                "plain_memory's blocks are aligned to 16 bytes at most");
  static constexpr std::size_t min_slots =
      std::max<std::size_t>(std::bit_floor(64 / sizeof(stored)), 2);  // slots: a line's
  static constexpr std::size_t max_slots = std::bit_floor((std::size_t{1} << 46) / sizeof(stored));

  union detached_element {  // ordinary memory for an element on its way
    detached_element() {}
    ~detached_element() {}
    stored element;
  };

  // Links that the directory for so many later segments than the first has room for.
  static std::size_t directory_capacity(std::size_t later) {
    return later == 0 ? 0 : std::max<std::size_t>(std::bit_ceil(later), 4);
  }
  // Whether the segment's slots are all beyond the elements.
  static bool unused(sizes s, std::size_t segment, std::size_t size) {
    return s.start_of(segment) >= size;
  }

  [[gnu::always_inline]] stored* segment(std::size_t number) const {
    return number == 0 ? first_.load() : directory_.load()[number - 1].load();
  }
  [[gnu::always_inline]] stored* slot_at(std::size_t i) const {
    const sizes s{sizes_.load()};
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
  typename Memory::template field<link*>
      directory_;  // the directory: segments but the first; null while there are none
};

template <class T>
using vector = basic_vector<T, pool_memory>;

// Goes over the elements by number.
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
  Stored& operator*() const { return *at_; }
  Stored* operator->() const { return at_; }
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

  // Where segments begin; elsewhere looking it up is only slower.
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

#include <stele/vector_inl.h>
