// Chooses the kinds of blocks once for each pool; see size_plan.h.
#include <pool/size_plan.h>

#include <algorithm>
#include <bit>

namespace stele::storage {

using format::large_shapes;
using format::size_class_count;

block_class block_class_of(std::size_t chunk_size, unsigned c) noexcept {
  STELE_ASSERT(c < format::block_class_count);
  STELE_ASSERT(std::has_single_bit(chunk_size) && chunk_size >= 4096);
  if (c >= size_class_count) {
    const format::large_shape shape = large_shapes[c - size_class_count];
    // heap.md: the blocks end within the run, and begin behind their states.
    STELE_ASSERT(format::large_slab_first_block +
                     shape.blocks * format::large_block_size(chunk_size, shape) <=
                 shape.chunks * chunk_size);
    STELE_ASSERT(shape.blocks <= format::large_slab_first_block);
    return {format::large_block_size(chunk_size, shape), shape.chunks, shape.blocks,
            format::large_slab_first_block};
  }
  const std::size_t size = format::class_size(c);
  if (size > format::max_slab_block_size(chunk_size)) return {};
  const auto layout = format::slab_layout_of(chunk_size, size);
  STELE_ASSERT(layout.capacity != 0 && layout.first + layout.capacity * size <= chunk_size);
  STELE_ASSERT(layout.capacity <= layout.first && layout.first % 64 == 0);
  return {size, 1, layout.capacity, layout.first};
}

format::chunk_descriptor slab_head(unsigned c) noexcept {
  using enum format::chunk_kind;
  if (!is_large(c)) return {small, static_cast<std::uint8_t>(c), 0};
  const unsigned shape = c - size_class_count;
  STELE_ASSERT(shape < large_shapes.size());
  return {large_slab, static_cast<std::uint8_t>(shape), large_shapes[shape].chunks};
}

block_class blocks_of(std::size_t chunk_size, const format::chunk_descriptor& d) noexcept {
  return is_slab(d.kind) ? block_class_of(chunk_size, class_of(d)) : block_class{};
}

size_plan::size_plan(std::size_t chunk_size, std::uint64_t chunk_count, bool log_structured)
    : chunk_size_(chunk_size),
      formula_up_to_(std::min(chunk_size / 16, format::max_class_size)),
      packed_alignment_(log_structured ? 0 : 8),
      most_chunks_(log_structured ? 0 : chunk_count / 16) {
  // The choice changes only behind these sizes: the longest that fits, and the longest that would
  // lose more than an eighth.
  std::vector<std::size_t> borders;
  const auto add = [&](std::size_t fits, std::uint64_t bytes, std::uint64_t blocks) {
    borders.insert(borders.end(), {fits, (7 * bytes - 1) / (8 * blocks)});
  };
  for (unsigned c = 0; c < format::block_class_count; ++c)
    if (const block_class b = block_class_of(chunk_size, c); b.block_size != 0)
      add(b.block_size, b.chunks * chunk_size, b.capacity);
  for (std::size_t chunks = 1; chunks <= 7; ++chunks)
    add(chunks * chunk_size, chunks * chunk_size, 1);
  std::ranges::sort(borders);
  for (const std::size_t size : borders) {
    if (size <= formula_up_to_ || size > 7 * chunk_size) continue;
    const unsigned chosen = choose(size);
    // Any kind that is large enough would be right.
    STELE_ASSERT(chosen == extent || block_class_of(chunk_size, chosen).block_size >= size);
    STELE_ASSERT(chosen == extent || !is_large(chosen) ||
                 block_class_of(chunk_size, chosen).chunks <= most_chunks_);
    STELE_ASSERT(steps_.empty() || steps_.back().up_to <= size);  // ascending
    if (!steps_.empty() && steps_.back().chosen == chosen)
      steps_.back().up_to = size;
    else
      steps_.push_back({size, chosen});
  }
}

size_plan::cost size_plan::cost_of(std::size_t size, unsigned c) const noexcept {
  if (c == extent) return {(size + chunk_size_ - 1) / chunk_size_ * chunk_size_, 1};
  const block_class b = block_class_of(chunk_size_, c);
  STELE_ASSERT(b.block_size >= size && b.capacity != 0);
  return {b.chunks * chunk_size_, b.capacity};
}

unsigned size_plan::choose(std::size_t size) const noexcept {
  const unsigned of_slab = fallback_for(size, 16);
  for (const unsigned c : {of_slab, extent})
    if (const cost k = cost_of(size, c); 8 * size * k.blocks >= 7 * k.bytes) return c;
  unsigned best = cost_of(size, extent) < cost_of(size, of_slab) ? extent : of_slab;
  for (unsigned i = 0; i < large_shapes.size(); ++i) {
    const unsigned c = size_class_count + i;
    if (large_shapes[i].chunks <= most_chunks_ &&
        format::large_block_size(chunk_size_, large_shapes[i]) >= size &&
        cost_of(size, c) < cost_of(size, best))
      best = c;
  }
  return best;
}

unsigned size_plan::planned_class_for(std::size_t size) const noexcept {
  STELE_ASSERT(size > formula_up_to_);
  const auto at = std::ranges::lower_bound(steps_, size, {}, &step::up_to);
  return at == steps_.end() ? extent : at->chosen;
}

// Blocks that begin at multiples of 64: those of the planned class, if its size is one.
unsigned size_plan::aligned_class_for(std::size_t size) const noexcept {
  const unsigned c =
      size <= formula_up_to_ ? format::size_class_for(size) : planned_class_for(size);
  if (c == extent || block_class_of(chunk_size_, c).block_size % 64 == 0) return c;
  return fallback_for(size, 64);
}

unsigned size_plan::fallback_for(std::size_t size, std::size_t alignment) const noexcept {
  const std::size_t most =
      std::min(format::max_slab_block_size(chunk_size_), format::max_class_size);
  if (size > most) return extent;
  unsigned c = format::size_class_for(size);
  while (alignment > 16 && format::class_size(c) % 64 != 0) ++c;
  STELE_ASSERT(c < format::first_odd_class && format::class_size(c) >= size);
  return format::class_size(c) > most ? extent : c;
}

}  // namespace stele::storage
