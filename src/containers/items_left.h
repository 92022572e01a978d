// The items of the key-value stores of a pool that can still be read, of a pool that may be
// damaged: of the store without a name, and of the named ones that the catalog leads to.
//
// A record is found by the hash index and by the ordered index, each as far as it can be read, and,
// if both are damaged, by the heap: a used block of the form of a record. A record counts if its
// bytes are sound and
//   - an index leads to it, where block checksums say that the index is as it
//   was, or
//   - both indexes lead to it, or
//   - an index leads to it, or both are damaged, and the heap has its block in
//   use.
// So an erased item does not come back through a stale link. A record to which no index leads
// counts as one of the store without a name, unless it belongs to a dropped store, the catalog or
// an expiry index. Walks are bounded by the heap's size, whatever the links are.
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
  std::uint64_t count = 0;    // items, or values
  std::uint64_t bytes = 0;    // of keys and values
  std::uint64_t expired = 0;  // items that a copy left out
  std::vector<lost_content> lost;
  std::vector<std::string> notes;
  std::vector<std::string> stores;  // the named ones, also those without items
};

struct found_item {
  std::string_view store, key, value;  // store: empty for the one without a name
  std::uint64_t expires_ms = 0;        // since 1970; 0: never
};

// Calls each(item) for every item, expired ones too, store by store; if it returns false, the walk
// ends. Of two records with one key, which only a contradictory store has, the one that an index
// leads to comes last. Errors: cancelled, by `report`.
using item_left = std::function<bool(const found_item&)>;
[[nodiscard]] result<content_left> for_each_item_left(const home_image& image,
                                                      const item_left& each,
                                                      const progress& report = {});

}  // namespace stele::detail
