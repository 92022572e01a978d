// Lookups of many keys whose cache misses overlap.
//
// A lookup loads a line, computes from it the address of the next line, and waits for each. Many
// lookups need not wait one after another: each stage of a lookup prefetches what the next stage
// loads, and a stage is some items behind the stage before it. After Chen, Ailamaki, Gibbons and
// Mowry, "Improving Hash Join Performance through Prefetching" (ICDE 2004), "software-pipelined
// prefetching".
#pragma once

#include <array>
#include <bit>
#include <cstddef>

namespace stele::detail {

// Items between two stages: enough for a miss to end, few enough for the processor's buffers.
inline constexpr std::size_t pipeline_distance = 16;

// Calls each stage with 0 to count - 1, in this order. An item's stages are called in their order.
template <class... Stage>
[[gnu::always_inline]] inline void run_pipeline(std::size_t count, Stage&&... stages) {
  if (count == 0) return;
  for (std::size_t at = 0; at < count + (sizeof...(stages) - 1) * pipeline_distance; ++at) {
    std::size_t i = at;  // wraps for a stage that has not begun
    ((i < count ? stages(i) : void(), i -= pipeline_distance), ...);
  }
}

// What the stages of an item hand on, by item. Valid from the first stage to the last one.
template <class T, std::size_t Stages>
class pipeline_items {
  static constexpr std::size_t size = std::bit_ceil((Stages - 1) * pipeline_distance + 1);

 public:
  T& operator[](std::size_t i) { return items_[i % size]; }

 private:
  std::array<T, size> items_;
};

}  // namespace stele::detail
