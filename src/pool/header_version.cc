// Finds the header that counts. See header_version.h.
#include <pool/header_version.h>

#include <array>
#include <bit>
#include <cstring>

namespace stele::storage {

using format::pool_header;

namespace {

pool_header header_at(const std::byte* from) noexcept {
  pool_header h;
  std::memcpy(&h, from, sizeof h);
  return h;
}

// Whether each word of `h` is that of one of the two.
bool lies_between(const pool_header& h, const pool_header& before,
                  const pool_header& after) noexcept {
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
  h.version = version;
  h.checksum = format::header_checksum(h);
  return h;
}

pool_header read_header(const std::byte* front) noexcept {
  const pool_header h = header_at(front);
  if (is_whole(h)) return h;
  const auto copy = find_header_copy(front);
  if (!copy || copy->version == format::first_pool_version) return h;
  return lies_between(h, with_version(*copy, copy->version - 1), *copy) ? *copy : h;
}

}  // namespace stele::storage
