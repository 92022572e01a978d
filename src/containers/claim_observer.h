// Being told what a bounded walk (stele/bounded_memory.h) claims: for those who compare it with
// what the heap has in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace stele::detail {

// Of the thread that made it, while it lives: on_claim(pool offset, bytes) of each claim.
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
