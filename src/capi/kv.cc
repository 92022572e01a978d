// The C functions of key-value stores. Like the C++ ones, they join a body that runs in their
// thread.
#include <capi/shim.h>
#include <stele/kv.h>

#include <algorithm>

struct stele_kv {
  stele::kv store;
  std::string durability;
};

struct stele_kv_cursor {
  stele::kv::cursor at;
};

namespace {

using namespace stele;

constexpr std::size_t max_cached_bytes = 1 << 20;  // a larger thread buffer is freed after a call

std::string_view bytes_of(const void* from, std::size_t size, const char* name) {
  if (size == 0) return {};
  return {static_cast<const char*>(capi::required(from, name)), size};
}

std::span<const stele_kv_item> items_of(const stele_kv_item* from, std::size_t count) {
  if (count == 0) return {};
  return {capi::required(from, "items"), count};
}

// open() -> result<kv>
template <class Open>
result<> open_store(stele_kv** to, Open&& open) {
  *capi::required(to, "kv") = nullptr;
  auto opened = open();
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::string durability = opened->durability_in_force();
  *to = new stele_kv{std::move(*opened), std::move(durability)};
  return {};
}

// Does not end the attempt of a body: a missing key is a normal result.
int found_or_not(int code, bool found) {
  if (code != STELE_OK || found) return code;
  return capi::set_last_error(STELE_NOT_FOUND, "the store has no such key");
}

template <class T>
result<> move_value(result<T> from, T& to) {
  if (!from) return std::unexpected(std::move(from.error()));
  to = std::move(*from);
  return {};
}

int run(stele_kv* kv, bool writes, int d, stele_kv_body body, void* arg) {
  auto how = durability::durable;
  const int refused = capi::call([&]() -> result<> {
    capi::required(kv, "kv"), capi::required(body, "body");
    how = capi::durability_of(d);
    return {};
  });
  if (refused != STELE_OK) return refused;
  return capi::run_body(kv->store.core(), writes, how,
                        [&](stele_tx* tx) { return body(tx, kv, arg); });
}

}  // namespace

extern "C" {

int stele_kv_open(const char* path, const stele_options* options, stele_kv** kv) {
  return capi::call([&] {
    return open_store(kv, [&] {
      return stele::kv::open(capi::required(path, "path"), capi::options_of(options));
    });
  });
}

int stele_kv_open_read_only(const char* path, stele_kv** kv) {
  return capi::call([&] {
    return open_store(kv, [&] { return stele::kv::open_read_only(capi::required(path, "path")); });
  });
}

int stele_kv_close(stele_kv* kv) {
  if (kv == nullptr) return STELE_OK;
  const int code = capi::call([&] { return kv->store.close(); });
  if (code != STELE_IN_USE) delete kv;
  return code;
}

int stele_kv_sync(stele_kv* kv) {
  return capi::call([&] { return capi::required(kv, "kv")->store.sync(); });
}

int stele_kv_durability(const stele_kv* kv, const char** to) {
  return capi::call([&]() -> result<> {
    *capi::required(to, "to") = capi::required(kv, "kv")->durability.c_str();
    return {};
  });
}

int stele_kv_check(const stele_kv* kv) {
  return capi::call([&] { return capi::required(kv, "kv")->store.check(); });
}

int stele_kv_count(const stele_kv* kv, uint64_t* items) {
  return capi::call([&]() -> result<> {
    std::size_t count = 0;
    const result<> counted = move_value(capi::required(kv, "kv")->store.size(), count);
    *capi::required(items, "items") = count;
    return counted;
  });
}

int stele_kv_put(stele_kv* kv, const void* key, size_t key_size, const void* value,
                 size_t value_size, int durability) {
  return capi::call([&] {
    return capi::required(kv, "kv")->store.put(bytes_of(key, key_size, "key"),
                                               bytes_of(value, value_size, "value"),
                                               capi::durability_of(durability));
  });
}

int stele_kv_erase(stele_kv* kv, const void* key, size_t key_size, int durability) {
  bool found = false;
  const int code = capi::call([&] {
    return move_value(capi::required(kv, "kv")->store.erase(bytes_of(key, key_size, "key"),
                                                            capi::durability_of(durability)),
                      found);
  });
  return found_or_not(code, found);
}

int stele_kv_get(const stele_kv* kv, const void* key, size_t key_size, void* to, size_t room,
                 size_t* size) {
  static thread_local std::string value;
  bool found = false;
  const int code = capi::call([&] {
    if (room != 0) capi::required(to, "to");
    capi::required(size, "size");
    return move_value(capi::required(kv, "kv")->store.get(bytes_of(key, key_size, "key"), value),
                      found);
  });
  if (code != STELE_OK || !found) return found_or_not(code, found);
  *size = value.size();
  if (room != 0) std::memcpy(to, value.data(), std::min(room, value.size()));
  if (value.capacity() > max_cached_bytes) std::string().swap(value);
  return STELE_OK;
}

int stele_kv_put_many(stele_kv* kv, const stele_kv_item* items, size_t count, int durability) {
  return capi::call([&] {
    std::vector<kv_pair> pairs;
    for (const stele_kv_item& i : items_of(items, count))
      pairs.push_back(
          {bytes_of(i.key, i.key_size, "key"), bytes_of(i.value, i.value_size, "value")});
    return capi::required(kv, "kv")->store.put_many(pairs, capi::durability_of(durability));
  });
}

int stele_kv_get_many(const stele_kv* kv, const stele_kv_item* items, size_t count,
                      stele_kv_each_value each, void* arg) {
  return capi::call([&] {
    capi::required(each, "each");
    std::vector<std::string_view> keys;
    for (const stele_kv_item& i : items_of(items, count))
      keys.push_back(bytes_of(i.key, i.key_size, "key"));
    return capi::required(kv, "kv")->store.get_many(
        keys, [&](std::size_t i, std::optional<std::string_view> value) {
          value ? each(i, value->data(), value->size(), arg) : each(i, nullptr, 0, arg);
        });
  });
}

int stele_kv_update(stele_kv* kv, stele_kv_body body, void* arg, int durability) {
  return run(kv, true, durability, body, arg);
}

int stele_kv_read(stele_kv* kv, stele_kv_body body, void* arg) {
  return run(kv, false, STELE_DURABLE, body, arg);
}

int stele_kv_walk(const stele_kv* kv, const void* from, size_t from_size, const void* to,
                  size_t to_size, stele_kv_cursor** cursor) {
  return capi::call([&]() -> result<> {
    *capi::required(cursor, "cursor") = nullptr;
    *cursor = new stele_kv_cursor{capi::required(kv, "kv")->store.walk(
        bytes_of(from, from_size, "from"), bytes_of(to, to_size, "to"))};
    return {};
  });
}

int stele_kv_next(stele_kv_cursor* cursor, stele_kv_item* item) {
  bool found = false;
  const int code = capi::call([&] {
    capi::required(item, "item");
    return move_value(capi::required(cursor, "cursor")->at.next(), found);
  });
  if (code != STELE_OK || !found) return found_or_not(code, found);
  const auto& at = cursor->at;
  *item = {at.key().data(), at.key().size(), at.value().data(), at.value().size()};
  return STELE_OK;
}

void stele_kv_cursor_free(stele_kv_cursor* cursor) {
  delete cursor;
}

}  // extern "C"
