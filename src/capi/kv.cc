// The C functions of key-value stores: opening, items, bodies. Like the C++ ones, they join a body
// that runs in their thread.
#include <base/assert.h>
#include <capi/kv.h>

#include <algorithm>
#include <memory>

namespace {

using namespace stele;
using capi::bytes_of, capi::found_or_not, capi::move_value, capi::store_of;

constexpr std::size_t max_cached_bytes = 1 << 20;  // a larger thread buffer is freed after a call

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
  auto of_pool = std::make_shared<stele_kv::pool>();
  *to = new stele_kv{std::move(*opened), std::move(of_pool)};
  STELE_ASSERT((*to)->of_pool->handles.load() == 1);  // the first handle of its pool
  return {};
}

int run(stele_kv* kv, bool writes, int d, stele_kv_body body, void* arg) {
  auto how = durability::durable;
  const int refused = capi::call([&]() -> result<> {
    store_of(kv), capi::required(body, "body");
    how = capi::durability_of(d);
    return {};
  });
  if (refused != STELE_OK) return refused;
  const auto attempt = [&] {
    return capi::run_body(kv->store.core(), writes, how,
                          [&](stele_tx* tx) { return body(tx, kv, arg); });
  };
  int code = attempt();
  while (code == STELE_FULL && kv->store.make_room()) code = attempt();
  if (writes) kv->store.remove_some_expired();
  return code;
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
  if (capi::running != nullptr && capi::running->pool == &kv->store.core())
    return capi::set_last_error(
        STELE_IN_USE,
        "a store cannot be closed in a body on its pool; close it when that has ended");
  int code = STELE_OK;
  STELE_ASSERT(kv->of_pool != nullptr && kv->of_pool->handles.load() != 0);
  if (kv->of_pool->handles.fetch_sub(1) == 1) {
    code = capi::call([&] { return kv->store.close(); });
    if (code == STELE_IN_USE) return kv->of_pool->handles.fetch_add(1), code;
  }
  delete kv;
  return code;
}

int stele_kv_sync(stele_kv* kv) {
  return capi::call([&] { return store_of(kv).sync(); });
}

int stele_kv_durability(const stele_kv* kv, const char** to) {
  return capi::call([&]() -> result<> {
    *capi::required(to, "to") = name_of(store_of(kv).durability_in_force());
    return {};
  });
}

int stele_kv_check(const stele_kv* kv) {
  return capi::call([&] { return store_of(kv).check(); });
}

int stele_kv_count(const stele_kv* kv, uint64_t* items) {
  return capi::call([&]() -> result<> {
    std::size_t count = 0;
    const result<> counted = move_value(store_of(kv).size(), count);
    *capi::required(items, "items") = count;
    return counted;
  });
}

int stele_kv_put(stele_kv* kv, const void* key, size_t key_size, const void* value,
                 size_t value_size, int durability) {
  return capi::call([&] {
    return store_of(kv).put(bytes_of(key, key_size, "key"), bytes_of(value, value_size, "value"),
                            capi::durability_of(durability));
  });
}

int stele_kv_erase(stele_kv* kv, const void* key, size_t key_size, int durability) {
  bool found = false;
  const int code = capi::call([&] {
    return move_value(
        store_of(kv).erase(bytes_of(key, key_size, "key"), capi::durability_of(durability)), found);
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
    return move_value(store_of(kv).get(bytes_of(key, key_size, "key"), value), found);
  });
  if (code != STELE_OK || !found) return found_or_not(code, found);
  STELE_ASSERT(value.size() <= kv_store::max_value_bytes);
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
    STELE_ASSERT(pairs.size() == count);
    return store_of(kv).put_many(pairs, capi::durability_of(durability));
  });
}

int stele_kv_get_many(const stele_kv* kv, const stele_kv_item* items, size_t count,
                      stele_kv_each_value each, void* arg) {
  return capi::call([&] {
    capi::required(each, "each");
    std::vector<std::string_view> keys;
    for (const stele_kv_item& i : items_of(items, count))
      keys.push_back(bytes_of(i.key, i.key_size, "key"));
    STELE_ASSERT(keys.size() == count);
    return store_of(kv).get_many(keys, [&](std::size_t i, std::optional<std::string_view> value) {
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

}  // extern "C"
