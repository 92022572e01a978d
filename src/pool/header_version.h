// The header of a pool on media: which of header and copy counts, and how a pool of an earlier
// version gets the present one. docs/protocol/heap.md has the steps V1 and V2.
//
// Invariant: at every moment header or copy is whole, and while the version is being raised the
// words of the other are those before or those after. So a header that a crash left between the two
// is told from a damaged one.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <format/pool_layout.h>

#include <cstddef>
#include <optional>

namespace stele::storage {

// Whether a header is of a known version, and as it was written.
bool is_whole(const format::pool_header& h) noexcept;
// The header's copy in the first front_size bytes of a pool: where this program writes it, or where
// an earlier one did. Null: it is whole in neither place.
std::optional<format::pool_header> find_header_copy(const std::byte* front) noexcept;
// The header at the begin of a pool; if a crash left it between two versions, that of the later
// one, from its copy. It may be damaged. `front` has front_size bytes.
format::pool_header read_header(const std::byte* front) noexcept;
// The same header with another version.
format::pool_header with_version(format::pool_header h, std::uint32_t version) noexcept;

// Raises the version of the pool that begins at `base` to the present one, if it is an earlier one
// or was being raised; durable after the medium's next fence, and nothing that only the present
// version has may be stored before. `Medium` is a pool_medium.
template <class Medium>
void raise_version(Medium& medium, std::byte* base) {
  using base::mutant;
  format::pool_header on_media;
  std::memcpy(&on_media, base, sizeof on_media);
  const auto raised = with_version(read_header(base), format::pool_version);
  if (std::memcmp(&on_media, &raised, sizeof raised) == 0) return;
  std::byte* const copy = base + format::header_copy_offset_of(raised);
  if (!planted(mutant::version_copy_left)) medium.put(copy, &raised, sizeof raised);  // V1
  medium.control.fence();  // the copy is durable before the header, which a crash may tear
  // heap.md V1: the copy is whole before the header changes, and this opening would count it.
  STELE_ASSERT(std::memcmp(copy, &raised, sizeof raised) == 0);
  medium.put(base, &raised, sizeof raised);  // V2
  STELE_ASSERT(read_header(base).version == format::pool_version);
}

}  // namespace stele::storage
