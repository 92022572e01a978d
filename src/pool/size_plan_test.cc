// How full a heap gets: by its own geometry for every size, and by real allocation for a sample.
//
// The mark is 85 of 100 bytes of the chunks, in pools of 208 chunks or more, for each size from 16
// bytes to 1 MiB. Short of it are the sizes of short_of_mark(): a block is whole words and a state
// byte, and the next smaller one is 8 or 16 bytes away.
#include <gtest/gtest.h>
#include <pool/heap.h>
#include <pool/memory_pool.h>

#include <cstring>
#include <map>
#include <set>

namespace stele::storage {
namespace {

constexpr std::size_t largest = 1u << 20;
constexpr double mark = 0.85;

constexpr bool short_of_mark(std::size_t size, std::size_t chunk_size, std::size_t alignment) {
  if (alignment > 8)
    return (size >= 17 && size <= 28) || (size >= 33 && size <= 41) || (size >= 49 && size <= 55) ||
           (size >= 65 && size <= 68) || size == 81 || size == 82 ||
           (chunk_size == 4096 && size == 42) || (chunk_size < 65536 && size == 69);
  return (size >= 17 && size <= 21) || (size >= 25 && size <= 28) || size == 33 || size == 34 ||
         size == 41 ||
         // The states of so many blocks and the end of the chunk are a larger part of 4 KiB.
         (chunk_size == 4096 && (size == 35 || size == 42 || size == 49));
}

// Every size up to 2 KiB, then 64 in each doubling, and those around every border between kinds.
std::set<std::size_t> sampled_sizes(std::size_t chunk_size) {
  std::set<std::size_t> sizes;
  for (std::size_t s = 16; s <= 2048; ++s) sizes.insert(s);
  for (std::size_t s = 2048; s <= largest; s += std::bit_floor(s) / 64) sizes.insert(s);
  const auto add = [&](std::size_t border) {
    for (std::size_t s = border - 1; s <= border + 1; ++s)
      if (s >= 16 && s <= largest) sizes.insert(s);
  };
  for (unsigned c = 0; c < format::block_class_count; ++c)
    if (const auto b = block_class_of(chunk_size, c); b.block_size != 0) add(b.block_size);
  for (std::size_t n = 1; n * chunk_size <= largest; ++n) {
    add(n * chunk_size);
    add(n * chunk_size - n * chunk_size / 8);
  }
  return sizes;
}

// Values of this size that fit: in runs of the planned kind, then in what is left.
std::uint64_t values_in(const size_plan& plan, std::size_t chunk_size, std::uint64_t chunks,
                        std::size_t size, std::size_t alignment) {
  const auto part = [&](unsigned c) {
    const std::uint64_t run = c == size_plan::extent ? (size + chunk_size - 1) / chunk_size
                                                     : block_class_of(chunk_size, c).chunks;
    const std::uint64_t runs = chunks / run;
    chunks -= runs * run;
    return runs * (c == size_plan::extent ? 1 : block_class_of(chunk_size, c).capacity);
  };
  const unsigned planned = plan.class_for(size, alignment);
  const std::uint64_t values = part(planned);
  return values + (planned == size_plan::extent ? 0 : part(plan.fallback_for(size, alignment)));
}

TEST(size_plan, fills_a_heap_to_85_percent_with_values_of_any_size) {
  struct shape {
    std::size_t chunk_size;
    std::uint64_t chunks;
  };
  // Of pools of 2 MiB, 8 MiB, 128 MiB, 1 GiB.
  for (const auto [chunk_size, chunks] :
       {shape{4096, 440}, shape{16384, 430}, shape{65536, 1760}, shape{65536, 16000}}) {
    const size_plan plan(chunk_size, chunks);
    for (const std::size_t alignment : {8u, 16u})
      for (const std::size_t size : sampled_sizes(chunk_size)) {
        if (size * 20 > chunk_size * chunks) break;  // few values: what is left over decides
        const std::uint64_t values = values_in(plan, chunk_size, chunks, size, alignment);
        const double fill =
            static_cast<double>(size * values) / static_cast<double>(chunk_size * chunks);
        EXPECT_EQ(fill < mark, short_of_mark(size, chunk_size, alignment))
            << "values of " << size << " bytes at multiples of " << alignment << " fill " << fill
            << " of " << chunks << " chunks of " << chunk_size;
      }
  }
}

TEST(size_plan, gives_blocks_that_are_long_enough_and_begin_where_they_have_to) {
  for (const std::size_t chunk_size : {4096u, 16384u, 65536u, 1u << 17, 1u << 20})
    for (const std::uint64_t chunks : {1u, 15u, 16u, 40u, 1000u})
      for (const bool log_structured : {false, true}) {
        const size_plan plan(chunk_size, chunks, log_structured);
        for (std::size_t size = 1; size <= 8 * chunk_size; size += 1 + size / 61)
          for (const std::size_t alignment : {1u, 8u, 16u, 64u})
            for (const unsigned c :
                 {plan.class_for(size, alignment), plan.fallback_for(size, alignment)}) {
              if (c == size_plan::extent) continue;
              const block_class b = block_class_of(chunk_size, c);
              ASSERT_GE(b.block_size, size);
              ASSERT_EQ(b.block_size % alignment, 0u) << size << " at " << alignment;
              ASSERT_TRUE(!is_large(c) || (b.chunks * 16 <= chunks && !log_structured));
              ASSERT_TRUE(!log_structured || b.block_size % 16 == 0);
            }
      }
}

// A transaction that stores at once.
class direct_writer final : public heap_writer {
 public:
  explicit direct_writer(const pool_file& file) : file_(file) {}
  void write_private(std::uint64_t offset, std::uint64_t value, unsigned size) override {
    std::memcpy(file_.at(offset), &value, size);
  }
  std::uint64_t read_private(std::uint64_t offset, unsigned size) override {
    std::uint64_t value = 0;
    std::memcpy(&value, file_.at(offset), size);
    return value;
  }
  void claim(std::uint64_t, std::size_t) override {}

 private:
  const pool_file& file_;
};

TEST(size_plan, is_what_the_heap_does) {
  for (const std::size_t size :
       {16u,    24u,     72u,     100u,    200u,    3000u,   4097u,   5000u,
        8193u,  9217u,   12289u,  16384u,  17000u,  20000u,  32768u,  57000u,
        65537u, 131073u, 200000u, 262145u, 333000u, 400000u, 1000000u}) {
    // Smaller pools for smaller values: it is the number of blocks that takes time.
    const std::size_t pool_size = size < 3000 ? 8u << 20 : 128u << 20;
    testing::memory_pool pool(
        {.size = pool_size, .log_size = 4096, .log_count = 1, .layout = "", .sums = true});
    const pool_file& file = pool.file();
    heap h(file);
    ASSERT_TRUE(h.load());
    direct_writer w(file);
    heap::thread_cache cache;
    heap::changes changes;
    std::uint64_t values = 0;
    while (h.allocate(cache, changes, w, size, 8)) {
      h.commit(cache, changes);
      ++values;
    }
    const std::size_t chunk_size = std::size_t{1} << file.header().chunk_shift;
    const std::uint64_t chunks = file.header().chunk_count;
    EXPECT_EQ(values, values_in(size_plan(chunk_size, chunks), chunk_size, chunks, size, 8))
        << size;
    EXPECT_GE(static_cast<double>(size * values), mark * static_cast<double>(chunk_size * chunks))
        << size;
    const auto usage = h.audit();
    ASSERT_TRUE(usage) << usage.error().message;
    EXPECT_EQ(usage->used_blocks, values);
  }
}

}  // namespace
}  // namespace stele::storage
