// Copies the content of a key-value store or a document into a new pool: to compact a pool, or to
// save what is left of a damaged one.
//
// The source is only read, on a private copy (home_image.h). The new pool has no name until it is
// complete, has been compared with what was read, and is durable; before, nothing is left of it.
#pragma once

#include <containers/items_left.h>

#include <string>

namespace stele::detail {

struct copy_options {
  std::uint64_t size_bytes = 0;  // of the new pool; 0: as its content needs, and an eighth more
  std::uint64_t log_size = 0, log_count = 0;  // 0: by pool size
  bool allow_losses = false;                  // else a source that is damaged is refused
};

struct copied_content {
  content_left left;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> damaged_ranges;
  bool verified = false;                        // block checksums have judged what was read
  std::uint64_t size_before = 0, size_now = 0;  // bytes of the pools
  std::uint64_t log_bytes = 0;                  // header and logs of the new pool
  std::uint64_t home_bytes_before = 0;          // allocated blocks of the source
};

// Whether the content of this layout can be copied.
bool is_copied_layout(const std::string& layout) noexcept;

// Errors: in_use; corrupt, if the source is damaged and losses are not allowed; unsupported, for
// other layouts; full, with what the content needs; exists; cancelled; those of opening, io.
[[nodiscard]] result<copied_content> copy_content(const std::string& from, const std::string& to,
                                                  const copy_options& options,
                                                  const progress& report = {});

}  // namespace stele::detail
