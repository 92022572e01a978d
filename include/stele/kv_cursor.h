// kv::cursor: walks over many items of a store outside of any transaction. Included by kv.h.
#pragma once

#include <stele/kv.h>

namespace stele {

// Reads items in key order or against it, one page at a time, each page in its own read
// transaction. The items of a page are of one state; the next page may be of a later state. In a
// walk in one direction, an item that exists the whole time is visited exactly once, no key is
// visited twice, and a change at a key already passed is not seen. The cursor holds no lock and no
// part of the pool between calls. Not thread-safe; the store must outlive it.
//
// The calls return whether the cursor stands on an item; they return the errors of kv::read, which
// leave the cursor where it was. A new cursor stands before the first item and behind the last one.
class kv::cursor {
 public:
  // Moves to the next item; from before the first item to the first. At the end it returns false,
  // and on every later call.
  [[nodiscard]] result<bool> next();
  // Moves to the previous item; from behind the last item to the last. Likewise at the begin.
  [[nodiscard]] result<bool> prev();
  // Moves to the first item with a key not less than `key`; to the last one with a key less than
  // `key`. Items outside the bounds of the walk do not exist for it.
  [[nodiscard]] result<bool> seek(std::string_view key);
  [[nodiscard]] result<bool> seek_before(std::string_view key);
  // The current item.
  const std::string& key() const { return page_[at_].key; }
  const std::string& value() const { return page_[at_].value; }

 private:
  friend class kv;
  enum class place : std::uint8_t { new_cursor, before_first, on_item, behind_last };

  cursor(const state& s, std::string_view from, std::string_view to)
      : state_(&s), from_(from), to_(to) {}
  [[nodiscard]] result<bool> step(bool backward);
  [[nodiscard]] result<bool> load(bool backward, std::string from, std::string to);

  // A page ends at the first of these limits that it reaches.
  static constexpr std::size_t page_items = 256, page_bytes = std::size_t{1} << 18;
  const state* state_;
  std::string from_, to_;                // bounds of the walk
  std::vector<kv_item> page_, loading_;  // in the order in which they were read
  std::size_t at_ = 0, count_ = 0;       // current item; number of items of page_ in use
  bool backward_ = false;                // the page was read backward
  bool ends_ = false;                    // no item of the walk followed the page when it was read
  place place_ = place::new_cursor;
};

}  // namespace stele
