// Finds the header that counts. See header_version.h.
#include <base/assert.h>
#include <pool/header_version.h>

#include <array>
#include <bit>
#include <cstring>

namespace stele::storage {

using format::pool_header;

// heap.md V1, V2: header and copies do not overlap, nor do the control words; a crash in one leaves
// the other whole.
static_assert(format::earlier_header_copy_offset >= sizeof(pool_header) &&
              format::earlier_header_copy_offset + sizeof(pool_header) <= format::session_offset);
static_assert(format::header_copy_offset >= format::header_area_size &&
              format::header_copy_offset + sizeof(pool_header) <= format::front_size);
static_assert(format::pool_version == format::first_pool_version + 1,
              "a header lies between two versions; read_header knows one version before each");

namespace {

pool_header header_at(const std::byte* from) noexcept {
  pool_header h;
  std::memcpy(&h, from, sizeof h);
  return h;
}

// Whether each word of `h` is that of one of the two.
bool lies_between(const pool_header& h, const pool_header& before,
                  const pool_header& after) noexcept {
  // heap.md: between two versions of one header.
  STELE_ASSERT(before.id == after.id && before.version + 1 == after.version);
  using words = std::array<std::uint64_t, sizeof(pool_header) / 8>;
  const auto found = std::bit_cast<words>(h), first = std::bit_cast<words>(before),
             second = std::bit_cast<words>(after);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != first[i] && found[i] != second[i]) return false;
  return true;
}

}  // namespace

bool is_whole(const pool_header& h) noexcept {
  return h.magic == format::pool_magic && h.checksum == format::header_checksum(h) &&
         format::is_known_pool_version(h.version);
}

std::optional<pool_header> find_header_copy(const std::byte* front) noexcept {
  for (const std::uint64_t offset :
       {format::header_copy_offset, format::earlier_header_copy_offset}) {
    const pool_header h = header_at(front + offset);
    if (is_whole(h) && format::header_copy_offset_of(h) == offset) return h;
  }
  return std::nullopt;
}

pool_header with_version(pool_header h, std::uint32_t version) noexcept {
  STELE_ASSERT_ALWAYS(format::is_known_pool_version(version));
  h.version = version;
  h.checksum = format::header_checksum(h);
  STELE_ASSERT(h.magic != format::pool_magic || is_whole(h));
  return h;
}

pool_header read_header(const std::byte* front) noexcept {
  const pool_header h = header_at(front);
  if (is_whole(h)) return h;
  const auto copy = find_header_copy(front);
  STELE_ASSERT(!copy || is_whole(*copy));
  if (!copy || copy->version == format::first_pool_version) return h;
  return lies_between(h, with_version(*copy, copy->version - 1), *copy) ? *copy : h;
}

}  // namespace stele::storage
