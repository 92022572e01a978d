// find_leaks: what destroy() was forgotten for, and what it was called for too early.
//
//   struct book {
//     using pool_resident = void;
//     stele::map<stele::string, stele::string> numbers;
//     void visit_blocks(const stele::block_visitor& visit) const { numbers.visit_blocks(visit); }
//   };
//   auto pool = stele::pool<book>::open("book.stele", {.create_size = 16 << 20});
//   auto found = stele::find_leaks(*pool);
//   if (found) std::printf("%zu blocks leaked\n", found->leaked.size());
//
// A block is leaked if it is in use and visit_blocks() of the root does not name it. Every
// container has a visit_blocks(); a structure of your own calls visit(const void*) for each object
// that make() or make_array() returned, and visit_blocks() of each container in it. For tests and
// maintenance: it walks all of the pool.
#pragma once

#include <stele/pool.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace stele {

struct pool_block {
  std::uint64_t offset;      // from the begin of the pool
  std::uint64_t size_bytes;  // as allocated; 0 in leak_report::dangling
};

struct leak_report {
  std::vector<pool_block> leaked;    // by offset
  std::vector<pool_block> dangling;  // visited, but no block in use begins there: use after destroy
  std::uint64_t reached_blocks = 0;  // visited and in use; the root is one
};

using block_visitor = std::function<void(const void*)>;

namespace detail {

[[nodiscard]] result<leak_report> find_leaks(runtime& r, const void* root,
                                             const std::function<void(const block_visitor&)>& walk);

}  // namespace detail

// Other threads may commit meanwhile; if they do so all the time, it ends with `in_use`. Errors:
// corrupt, if the heap is; nested, inside a transaction; in_use. Changes nothing. Thread-safe.
template <class Root>
  requires requires(const Root& root, const block_visitor& visit) { root.visit_blocks(visit); }
[[nodiscard]] result<leak_report> find_leaks(pool<Root>& p) {
  const Root* root = nullptr;
  if (auto found = p.read([&](const Root& r) { root = &r; }); !found)
    return std::unexpected(found.error());
  return detail::find_leaks(p.core(), root,
                            [&](const block_visitor& visit) { root->visit_blocks(visit); });
}

}  // namespace stele
