// The C functions of cursors.
#include <base/assert.h>
#include <capi/kv.h>

struct stele_kv_cursor {
  stele::kv::cursor at;
};

namespace {

using namespace stele;
using capi::bytes_of, capi::store_of;

// walk() -> kv::cursor
template <class Walk>
int open_cursor(stele_kv_cursor** to, Walk&& walk) {
  return capi::call([&]() -> result<> {
    *capi::required(to, "cursor") = nullptr;
    *to = new stele_kv_cursor{walk()};
    return {};
  });
}

// move(cursor) -> result<bool>: whether the cursor stands on an item.
template <class Move>
int move_to(stele_kv_cursor* cursor, stele_kv_item* item, Move&& move) {
  bool found = false;
  const int code = capi::call([&] {
    capi::required(item, "item");
    return capi::move_value(move(capi::required(cursor, "cursor")->at), found);
  });
  if (code != STELE_OK) return code;
  if (!found)
    return capi::set_last_error(STELE_NOT_FOUND, "the walk has no more items in this direction");
  const kv::cursor& at = cursor->at;
  STELE_ASSERT(!at.key().empty());  // it stands on an item
  *item = {at.key().data(), at.key().size(), at.value().data(), at.value().size()};
  return STELE_OK;
}

}  // namespace

extern "C" {

int stele_kv_walk(const stele_kv* kv, const void* from, size_t from_size, const void* to,
                  size_t to_size, stele_kv_cursor** cursor) {
  return open_cursor(cursor, [&] {
    return store_of(kv).walk(bytes_of(from, from_size, "from"), bytes_of(to, to_size, "to"));
  });
}

int stele_kv_walk_prefix(const stele_kv* kv, const void* prefix, size_t prefix_size,
                         stele_kv_cursor** cursor) {
  return open_cursor(
      cursor, [&] { return store_of(kv).walk_prefix(bytes_of(prefix, prefix_size, "prefix")); });
}

int stele_kv_next(stele_kv_cursor* cursor, stele_kv_item* item) {
  return move_to(cursor, item, [](kv::cursor& at) { return at.next(); });
}

int stele_kv_prev(stele_kv_cursor* cursor, stele_kv_item* item) {
  return move_to(cursor, item, [](kv::cursor& at) { return at.prev(); });
}

int stele_kv_seek(stele_kv_cursor* cursor, const void* key, size_t key_size, stele_kv_item* item) {
  return move_to(cursor, item,
                 [&](kv::cursor& at) { return at.seek(bytes_of(key, key_size, "key")); });
}

int stele_kv_seek_before(stele_kv_cursor* cursor, const void* key, size_t key_size,
                         stele_kv_item* item) {
  return move_to(cursor, item,
                 [&](kv::cursor& at) { return at.seek_before(bytes_of(key, key_size, "key")); });
}

void stele_kv_cursor_free(stele_kv_cursor* cursor) {
  delete cursor;
}

}  // extern "C"
