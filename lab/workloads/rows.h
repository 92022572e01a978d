// Parts of tables: rows (plain structs of fields) and texts (byte strings of one size), stored
// contiguously in a block.
//
// Unlike those of array.h, rows are structs, and the number of rows or texts is fixed at creation.
// Zeroed memory has none. Transactions as in array.h.
#pragma once

#include <stele/element.h>

namespace stele::workloads {

template <class Row, class Memory>
class basic_rows {
 public:
  using pool_resident = void;

  basic_rows() noexcept = default;  // for zeroed memory: changes nothing
  ~basic_rows() {
    run_destructor([&] { Memory::destroy_array(first_.load(), count_.load()); });
  }
  basic_rows(const basic_rows&) = delete;
  basic_rows& operator=(const basic_rows&) = delete;

  // Makes zeroed rows; there must be none yet.
  void make(std::uint64_t count) {
    first_ = Memory::template make_array<Row>(count);
    count_ = count;
  }
  std::uint64_t size() const { return count_; }
  Row& operator[](std::uint64_t i) const { return first_.load()[i]; }  // i < size()
  Row* begin() const { return first_; }
  Row* end() const { return first_.load() + count_.load(); }

  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    if (const Row* all = first_.load()) visit(static_cast<const void*>(all));
  }

 private:
  typename Memory::template field<std::uint64_t> count_;
  typename Memory::template field<Row*> first_;
};

}  // namespace stele::workloads
