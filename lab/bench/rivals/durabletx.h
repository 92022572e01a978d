// What a transactional memory of durabletx runs: a structure in its pool. C++17, because its
// headers are not C++20.
#pragma once

#include <workloads/operation.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace stele::bench::durabletx {

class structure {
 public:
  virtual ~structure() = default;
  // Makes the empty structure, with room for all keys; false when the pool is full.
  virtual bool set_up() = 0;
  // Runs the operations as one transaction: read, swap, toggle and, to fill, put.
  virtual void apply(const workloads::operation* operations, std::size_t count) = 0;
  // Whether each value repeats one word, and the structure's own invariants hold.
  virtual bool is_valid() = 0;
  // The same for the same values in any order; of an array only.
  virtual std::uint64_t digest() = 0;
  // Bytes of the pool up to the first that no block has had. Allocates: call it last.
  virtual std::uint64_t space_bytes() = 0;
};

// The workload is sps, hash or rbtree. A sequential structure is for one thread. The value size is
// a power of two from 8 to 4096, and 8 without a volatile replica.
std::unique_ptr<structure> make_structure(const std::string& workload, std::uint64_t keys,
                                          std::size_t value_size, bool sequential);

std::string memory_name();
[[noreturn]] void give_up(const std::string& why);

}  // namespace stele::bench::durabletx
