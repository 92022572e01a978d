// array: elements in one block. resize() sets its length.
//
//   struct grid { using pool_resident = void; stele::array<std::uint64_t> cells; };
//   auto pool = stele::pool<grid>::open("grid.stele", {.create_size = 16 << 20});
//   auto made = pool->update([](grid& g) { if (g.cells.empty()) g.cells.resize(100); });
//   auto set = pool->update([](grid& g) { g.cells[3] = 42; });
//   auto cell = pool->read([](const grid& g) { return g.cells.at(3).load(); });
//
// Elements are storable values (in fields) or stele containers. Zeroed memory is the empty array.
// References, pointers and iterators (which are pointers) are valid until resize() or clear(). Call
// members in a transaction of the pool that holds the array, changing members in an update; they
// are rolled back with it. Two transactions that touch elements on different lines do not conflict.
#pragma once

#include <stele/element.h>

#include <algorithm>

namespace stele {

template <class T, class Memory>
class basic_array {
  using traits = element<T, Memory>;

 public:
  using pool_resident = void;
  using value_type = T;
  using stored = typename traits::stored;

  basic_array() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty array
  ~basic_array() {
    run_destructor([&] { Memory::destroy_array(data_.load(), size_.load()); });
  }
  basic_array(const basic_array&) = delete;
  basic_array& operator=(const basic_array&) = delete;

  [[nodiscard]] std::size_t size() const { return size_.load(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  // Requires i < size(); unchecked.
  stored& operator[](std::size_t i) { return data_.load()[i]; }
  const stored& operator[](std::size_t i) const { return data_.load()[i]; }
  // Throws failure(errc::invalid_argument) if there is no element i.
  stored& at(std::size_t i) { return data_.load()[checked(i)]; }
  const stored& at(std::size_t i) const { return data_.load()[checked(i)]; }

  stored* begin() { return data_.load(); }
  stored* end() { return data_.load() + size(); }
  const stored* begin() const { return data_.load(); }
  const stored* end() const { return data_.load() + size(); }

  // Calls f(const stored&) on each element in order. O(n).
  template <class F>
  void for_each(F&& f) const {
    for (const stored& s : *this) f(s);
  }

  // Exchanges two elements. O(size of an element). Requires i, j < size().
  void swap_elements(std::size_t i, std::size_t j) {
    stored* const all = data_.load();
    const T a = traits::get(all[i]);
    const T b = traits::get(all[j]);
    traits::assign(all[i], b);
    traits::assign(all[j], a);
  }

  // Sets the length. New elements are zero (containers: empty); elements past the end are
  // destroyed. O(old and new length), in a new block. Throws failure(errc::full).
  void resize(std::size_t count) {
    const std::size_t kept = std::min(count, size());
    stored* const old = data_.load();
    stored* const fresh = count == 0 ? nullptr : Memory::template make_array<stored>(count);
    for (std::size_t i = 0; i < kept; ++i) traits::create(fresh + i, traits::get(old[i]));
    Memory::destroy_array(old, size());
    data_ = fresh;
    size_ = count;
  }
  void clear() { resize(0); }

  // Calls visit(const void*) for every allocated block of the array.
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    if (const stored* all = data_.load()) visit(static_cast<const void*>(all));
    for (const stored& s : *this) traits::visit_blocks(s, visit);
  }
  // Errors: corrupt, if length and block are inconsistent.
  [[nodiscard]] result<> check() const {
    if ((data_.load() == nullptr) != (size() == 0))
      return detail::corrupt_error("array: length and block disagree");
    return {};
  }

 private:
  std::size_t checked(std::size_t i) const {
    if (i < size()) return i;
    throw failure({errc::invalid_argument,
                   "array: no element " + std::to_string(i) + " of " + std::to_string(size())});
  }

  typename Memory::template field<std::uint64_t> size_;
  typename Memory::template field<stored*> data_;
};

template <class T>
using array = basic_array<T, pool_memory>;

}  // namespace stele
