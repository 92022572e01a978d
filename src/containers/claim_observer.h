// Reports the claims of a bounded walk (stele/detail/bounded_memory.h), for callers that compare
// them with the blocks that the heap has in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace stele::detail {

// While it lives, calls on_claim(pool offset, bytes) for each claim of the thread that made it.
class claim_observer {
 public:
  using callback = std::function<void(std::uint64_t offset, std::size_t size)>;
  explicit claim_observer(callback on_claim);
  ~claim_observer();
  claim_observer(const claim_observer&) = delete;
  claim_observer& operator=(const claim_observer&) = delete;

 private:
  friend void claim_block(const void* block, std::size_t size);
  callback on_claim_;
};

}  // namespace stele::detail
