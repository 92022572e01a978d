// Being told what a bounded walk (stele/bounded_memory.h) claims: for those who compare it with what the heap has in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace stele::detail {

// Of the thread that made it, while it lives: told(pool offset, bytes) of each claim.
class claims_told {
 public:
  using tell = std::function<void(std::uint64_t offset, std::size_t size)>;
  explicit claims_told(tell told);
  ~claims_told();
  claims_told(const claims_told&) = delete;
  claims_told& operator=(const claims_told&) = delete;

 private:
  friend void claim_block(const void* block, std::size_t size);
  tell told_;
};

}  // namespace stele::detail
