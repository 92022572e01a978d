// kv::cursor: pages of items, each read in a transaction of its own.
#include <base/assert.h>
#include <containers/kv_state.h>

#include <algorithm>

namespace stele {

result<bool> kv::cursor::next() {
  return step(false);
}
result<bool> kv::cursor::prev() {
  return step(true);
}

// The least key that is greater than `key`.
static std::string successor(std::string_view key) {
  return std::string(key) + '\0';
}

result<bool> kv::cursor::step(bool backward) {
  const place edge = backward ? place::before_first : place::behind_last;
  if (place_ == edge) return false;
  if (place_ != place::on_item) return load(backward, from_, to_);
  STELE_ASSERT(at_ < count_ && count_ <= page_.size());
  if (backward == backward_) {
    if (at_ + 1 < count_) return ++at_, true;
    if (ends_) return place_ = edge, false;
  } else if (at_ != 0) {
    return --at_, true;
  }
  return backward ? load(true, from_, key()) : load(false, successor(key()), to_);
}

result<bool> kv::cursor::seek(std::string_view key) {
  return load(false, std::max<std::string>(from_, std::string(key)), to_);
}
result<bool> kv::cursor::seek_before(std::string_view key) {
  if (key.empty()) return place_ = place::before_first, false;
  return load(true, from_, to_.empty() ? std::string(key) : std::min(to_, std::string(key)));
}

// Reads the items with from <= key < to in one direction, as many as a page takes, and moves to the
// first one read. The items reuse memory of an earlier page.
result<bool> kv::cursor::load(bool backward, std::string from, std::string to) {
  std::size_t count = 0;
  const auto take = [&](std::size_t& bytes) {
    return [&](std::string_view key, std::string_view value) {
      if (count == loading_.size()) loading_.emplace_back();
      loading_[count].key = key;
      loading_[count++].value = value;
      bytes += key.size() + value.size();
      return count < page_items && bytes < page_bytes;
    };
  };
  const auto full = state_->read([&] {
    std::size_t bytes = 0;
    count = 0;
    const detail::pool_kv_store& store = state_->store();
    if (!to_.empty() && from >= to) return false;
    backward ? store.for_each_backward(from, to, take(bytes))
             : store.for_each(from, to, take(bytes));
    return count >= page_items || bytes >= page_bytes;
  });
  if (!full) return std::unexpected(full.error());
  STELE_ASSERT(count <= page_items && count <= loading_.size());
  STELE_ASSERT(count != 0 || !*full);
  std::swap(page_, loading_);
  at_ = 0, count_ = count;
  backward_ = backward, ends_ = !*full;
  place_ = count != 0 ? place::on_item : backward ? place::before_first : place::behind_last;
  return count != 0;
}

}  // namespace stele
