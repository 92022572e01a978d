// The key-value store on media: records, hash buckets and radix nodes. docs/format/kv.md is the
// page for readers.
//
// A reference is a signed distance from the first byte of the structure that holds it, in units of
// 8 bytes and in 44 bits; 0 is null. The other 20 bits of its word hold a tag of the key's hash, or
// the kind of block.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace stele::format {

// The newest version that this program knows. A store is of version 1 until it gets its first item
// with an expiry time or its first named store beside it.
inline constexpr std::uint64_t kv_version = 2, kv_first_version = 1;
constexpr bool is_known_kv_version(std::uint64_t v) noexcept {
  return v >= kv_first_version && v <= kv_version;
}

inline constexpr unsigned kv_reference_bits = 44;
inline constexpr std::uint64_t kv_reference_mask = (std::uint64_t{1} << kv_reference_bits) - 1;

inline std::uint64_t kv_encode_reference(const void* base, const void* block) noexcept {
  const auto distance =
      reinterpret_cast<std::intptr_t>(block) - reinterpret_cast<std::intptr_t>(base);
  return static_cast<std::uint64_t>(distance / 8) & kv_reference_mask;
}
inline char* kv_decode_reference(const void* base, std::uint64_t word) noexcept {
  constexpr unsigned rest = 64 - kv_reference_bits;
  const std::int64_t distance = (static_cast<std::int64_t>(word << rest) >> rest) * 8;
  return reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(base) + distance);
}

// Expiry index and catalog are stores without a version. Since a block of zeros is an empty store,
// one that is made now has this mark as its version, and the word that leads to it has the bit.
inline constexpr std::uint64_t kv_index_mark = 0x57E1E'4B1DULL;
inline constexpr std::uint64_t kv_marked_bit = std::uint64_t{1} << 63;

// A record: this header, the key padded to 8 bytes, the value padded likewise, and the expiry time,
// if it has one. The padding is zero.
inline constexpr std::uint32_t kv_max_key_size = 1u << 16, kv_max_value_size = 1u << 30;

// Eight bytes, so that lookups return it in a register.
struct kv_record_header {
  std::uint32_t key_bytes : 31 = 0;
  std::uint32_t expires : 1 = 0;  // the record ends with an expiry time
  std::uint32_t value_bytes = 0;

  constexpr kv_record_header() noexcept = default;
  constexpr kv_record_header(std::uint32_t key, std::uint32_t value, bool timed = false) noexcept
      : key_bytes(key & ~(1u << 31)), expires(timed), value_bytes(value) {}
  std::uint64_t pack() const noexcept { return std::bit_cast<std::uint64_t>(*this); }
  static kv_record_header unpack(std::uint64_t word) noexcept {
    return std::bit_cast<kv_record_header>(word);
  }
  static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }
  std::size_t value_offset() const noexcept { return 8 + padded(key_bytes); }
  std::size_t expiry_offset() const noexcept { return value_offset() + padded(value_bytes); }
  std::size_t bytes() const noexcept { return expiry_offset() + std::size_t{8} * expires; }
  // Size of the record's block: rounded as the heap would round it, and beyond 32 KiB to whole
  // pages. A record whose lengths change within this size stays where it is.
  std::size_t allocated_size() const noexcept {
    const std::size_t n = bytes();
    const std::size_t step = n <= 128 ? 16 : std::min<std::size_t>(std::bit_floor(n - 1) / 8, 4096);
    return (n + step - 1) / step * step;
  }
};

// A hash bucket: 7 slots of tag << 44 | reference to a record (0: free), then the link word.
inline constexpr unsigned kv_bucket_slots = 7;
inline constexpr std::size_t kv_bucket_bytes = 64;
// In the link word. The reference of the link is to the next bucket of the chain.
inline constexpr std::uint64_t kv_bucket_split_bit = std::uint64_t{1} << 63;
inline constexpr std::size_t kv_first_buckets = 8;
inline constexpr std::size_t kv_segments = 38;  // one more would be larger than any pool

// A key of the expiry index: the expiry time, then the record's reference, both big-endian.
inline constexpr std::size_t kv_expiry_key_bytes = 16;
// The names of a pool's stores are keys of 1 to 255 bytes. A name that begins with a zero byte is
// that of a dropped store.
inline constexpr std::size_t kv_max_name_size = 255;

// A radix node: header, the first 8 bytes of its path, and the record whose key ends here. Then a
// byte for each child, 8 in a word, and the children; or 256 children indexed by byte. A reference
// with this bit set is to a record.
inline constexpr std::uint64_t kv_record_bit = std::uint64_t{1} << kv_reference_bits;

struct kv_node_kind {
  unsigned children;    // capacity
  unsigned byte_words;  // words of child bytes, before the children
  constexpr std::size_t bytes() const noexcept {
    return 24 + 8 * std::size_t{byte_words} + 8 * std::size_t{children};
  }
};
inline constexpr kv_node_kind kv_node_kinds[] = {{4, 1}, {18, 3}, {47, 6}, {256, 0}};
static_assert(kv_node_kinds[0].bytes() == 64 && kv_node_kinds[1].bytes() == 192 &&
              kv_node_kinds[2].bytes() == 448);

struct kv_node_header {
  std::uint8_t kind = 0;
  std::uint16_t count = 0;  // number of children
  std::uint32_t skip = 0;   // bytes of the path

  constexpr std::uint64_t pack() const noexcept {
    return kind | std::uint64_t{count} << 8 | std::uint64_t{skip} << 32;
  }
  static constexpr kv_node_header unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint8_t>(word), static_cast<std::uint16_t>(word >> 8),
            static_cast<std::uint32_t>(word >> 32)};
  }
};

static_assert(sizeof(kv_record_header) == 8 && std::is_trivially_copyable_v<kv_record_header>);
static_assert(kv_max_key_size < 1u << 31 && kv_record_header::padded(9) == 16);
static_assert(kv_bucket_bytes == 8 * (kv_bucket_slots + 1));
// References reach through the largest pool, 64 TiB, in both directions.
static_assert(8 * (std::uint64_t{1} << (kv_reference_bits - 1)) >= std::uint64_t{1} << 46);
static_assert((kv_record_bit & kv_reference_mask) == 0 &&
              (kv_marked_bit & kv_reference_mask) == 0 &&
              (kv_bucket_split_bit & kv_reference_mask) == 0);
static_assert(!is_known_kv_version(kv_index_mark) && !is_known_kv_version(0) &&
              is_known_kv_version(kv_version));
static_assert(kv_node_kinds[3].bytes() == 24 + 8 * 256);
static_assert(
    [] {
      for (const kv_node_kind& k : kv_node_kinds)
        if (k.byte_words != 0 &&
            (k.children > 8 * k.byte_words || 8 * k.byte_words > k.children + 8))
          return false;
      return true;
    }(),
    "there is a byte for each child");
static_assert(kv_node_header{3, 256, 0x12345678}.pack() == 0x12345678'0001'0003u);
static_assert(kv_node_header::unpack(0x12345678'0001'0003u).count == 256 &&
              kv_node_header::unpack(0x12345678'0001'0003u).skip == 0x12345678 &&
              kv_node_header::unpack(0x12345678'0001'0003u).kind == 3);

}  // namespace stele::format
