// The items of a key-value store that can still be read, of a pool that may be damaged.
//
// A record is found by the hash index and by the ordered index, each as far as it can be read, and,
// if both are damaged, by the heap: a used block of the form of a record. A record counts if its
// bytes are sound and
//   - an index leads to it, where block checksums say that the index is as it
//   was, or
//   - both indexes lead to it, or
//   - an index leads to it, or both are damaged, and the heap has its block in
//   use.
// So an erased item does not come back through a stale link. Walks are bounded by the heap's size,
// whatever the links are.
#pragma once

#include <stele/progress.h>
#include <tx/home_image.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::detail {

struct lost_content {
  std::string what;  // the key or the path of a value, if that is known, else empty
  std::uint64_t offset = 0, bytes = 0;  // in the pool; 0 bytes: unknown
};

// What a walk found, and what it could not read.
struct content_left {
  std::uint64_t count = 0;  // items, or values
  std::uint64_t bytes = 0;  // of keys and values
  std::vector<lost_content> lost;
  std::vector<std::string> notes;
};

// Calls each(key, value) for every item; if it returns false, the walk ends. Of two records with
// one key, which only a contradictory store has, the one that an index leads to comes last. Errors:
// cancelled, by `report`.
using item_left = std::function<bool(std::string_view key, std::string_view value)>;
[[nodiscard]] result<content_left> for_each_item_left(const home_image& image,
                                                      const item_left& each,
                                                      const progress& report = {});

}  // namespace stele::detail
