// Pointers of a program's own types in a pool that somebody has made up: following one is an error
// or an answer, never a signal.
#include <format/heap_layout.h>
#include <stele/field.h>
#include <stele/hash_map.h>
#include <tests/conformance/pools.h>
#include <tests/regress/hostile.h>

namespace stele::testing {
namespace {

struct linked {
  using pool_resident = void;
  field<std::uint64_t> value;
  field<linked*> next;
  field<std::uint64_t> more[6];
};
struct linked_root {
  using pool_resident = void;
  field<linked*> first;
  hash_map<std::uint64_t, std::uint64_t> numbers;
};

class hostile_pointer : public hostile, public ::testing::WithParamInterface<concurrency> {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    auto pool = stele::pool<linked_root>::open(path_, with(verification::always));
    ASSERT_TRUE(succeeds(pool));
    ASSERT_TRUE(succeeds(pool->update([](linked_root& r) {
      r.first = stele::make<linked>();
      r.first->value = 7;
      r.first->next = stele::make<linked>();
      for (std::uint64_t i = 0; i < 20; ++i) r.numbers[i] = i;
    })));
    ASSERT_TRUE(succeeds(pool->close()));
    const auto checked = detail::check_pool(path_);
    ASSERT_TRUE(succeeds(checked));
    root_ = checked->root_offset;
    start_with_own();
    whole_ = bytes_;
  }
  static pool_options with(verification verify) {
    return {.create_size = 1 << 20,
            .policy = GetParam(),
            .engine = {.media = "process", .verify = verify}};
  }
  stele::pool<linked_root> open_with(std::uint64_t word_offset, std::uint64_t target) {
    bytes_ = whole_;
    image(bytes_).put(word_offset, target - word_offset);
    store();
    auto opened = stele::pool<linked_root>::open(path_, with(verification::never));
    EXPECT_TRUE(succeeds(opened));
    return std::move(*opened);
  }
  std::uint64_t size() const { return whole_.size(); }

  fuzz::bytes whole_;
  std::uint64_t root_ = 0;
};

TEST_P(hostile_pointer, out_of_the_heap_is_corrupt) {
  for (const std::uint64_t target :
       {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{4096}, size() + 8, size() + (1 << 20),
        std::uint64_t{1} << 45, std::uint64_t{1} << 62, 0 - std::uint64_t{4096},
        0 - (std::uint64_t{1} << 45), 0 - (std::uint64_t{1} << 62)}) {
    auto pool = open_with(root_, target);
    EXPECT_EQ(code_of(pool.read([](const linked_root& r) { return r.first->value.load(); })),
              errc::corrupt)
        << target;
    EXPECT_EQ(code_of(pool.update([](linked_root& r) { r.first->value = 1; })), errc::corrupt)
        << target;
    EXPECT_EQ(code_of(pool.update([](linked_root& r) {
                linked* const n = r.first;
                for (auto& word : n->more) word += 1;
              })),
              errc::corrupt)
        << target;
  }
}

// Such an object is mapped in part, and what is past the end of the file poisons its pool.
TEST_P(hostile_pointer, to_an_object_that_reaches_past_the_end_is_no_signal) {
  for (std::uint64_t back = 0; back < sizeof(linked); back += 8) {
    auto pool = open_with(root_, size() - back);
    (void)pool.read([](const linked_root& r) { return r.first->more[5].load(); });
    EXPECT_EQ(code_of(pool.update([](linked_root& r) { r.first->more[5] = 1; })), errc::poisoned)
        << back;
  }
}

// x86 loads an object at any address; the sanitizer of undefined behaviour stops there.
#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t grain = 8;
#else
constexpr std::uint64_t grain = 1;
#endif

TEST_P(hostile_pointer, of_any_other_value_is_an_answer_or_an_error) {
  for (std::uint64_t any = 0; any < size(); any += 1000 + any % 13) {
    auto pool = open_with(root_, any / grain * grain);
    (void)pool.read([](const linked_root& r) { return r.first->value.load(); });
    (void)pool.update([](linked_root& r) {
      linked* n = r.first;
      for (int i = 0; i < 100 && n != nullptr; ++i, n = n->next) n->value += 1;
    });
  }
}

// A bucket packs the distance to its first node, bits 3 to 47, with the length of its chain.
TEST_P(hostile_pointer, of_a_hash_map_out_of_the_heap_is_corrupt) {
  constexpr std::uint64_t distance = 0x0000'FFFF'FFFF'FFF8;
  unsigned refused = 0;
  fuzz::bytes bytes = whole_;
  const image pool(bytes);
  for (std::uint64_t at = pool.header().chunks_offset; at < size(); at += 8) {
    const std::uint64_t word = pool.word(at), node = at + (word & distance);
    if ((word & distance) == 0 || word >> 48 == 0 || word >> 48 > 20 || node + 24 > size() ||
        pool.word(node + 8) >= 20 || pool.word(node + 8) != pool.word(node + 16))
      continue;
    auto crafted = open_with(at, at + ((word & ~distance) | ((size() + 4096 - at) & distance)));
    const auto found = crafted.read([](const linked_root& r) {
      unsigned n = 0;
      for (std::uint64_t i = 0; i < 20; ++i) n += r.numbers.contains(i);
      return n;
    });
    refused += code_of(found) == errc::corrupt ? 1 : 0;
  }
  EXPECT_GE(refused, 3u);
}

// The next allocations would write over it. Its slab begins with a byte for each block.
TEST_P(hostile_pointer, to_a_root_in_a_block_that_is_free_is_corrupt) {
  bytes_ = whole_;
  const image pool(bytes_);
  const auto h = pool.header();
  const std::uint64_t slab = root_ - (root_ - h.chunks_offset) % (1u << h.chunk_shift);
  ASSERT_EQ(pool.word(slab) & 255, format::block_used);
  pool.put(slab, pool.word(slab) & ~std::uint64_t{255});
  store();
  EXPECT_EQ(code_of(detail::check_pool(path_)), errc::corrupt);
  EXPECT_EQ(code_of(stele::pool<linked_root>::open(path_, with(verification::automatic))),
            errc::corrupt);
}

INSTANTIATE_TEST_SUITE_P(all, hostile_pointer,
                         ::testing::Values(concurrency::single_writer, concurrency::stm));

}  // namespace
}  // namespace stele::testing
