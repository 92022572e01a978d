// The values of a document that can still be read, of a pool that may be damaged.
//
// A dict is read along the order of its items, from the first forward and from the last back, and
// then along its index, so that one damaged item hides no other. Walks are bounded by the heap's
// size, whatever the links are, and do not recurse.
#pragma once

#include <containers/items_left.h>
#include <stele/document.h>

namespace stele::detail {

// What the walk tells of, in order. The root is a dict that is not told of.
class value_receiver {
 public:
  virtual ~value_receiver() = default;
  // The value of the current dict's key, or the next one of the current list, whose key is none.
  virtual void scalar(const scalar_copy& key, const scalar_copy& value) = 0;
  // The same, of a list or dict: it is the current one until leave().
  virtual void enter(const scalar_copy& key, value_kind kind) = 0;
  virtual void leave() = 0;
};

// Items of a dict that are lost are left out; values of a list become none, so that the others keep
// their places. Errors: cancelled, by `report`.
[[nodiscard]] result<content_left> for_each_value_left(const home_image& image,
                                                       value_receiver& receiver,
                                                       const progress& report = {});

}  // namespace stele::detail
