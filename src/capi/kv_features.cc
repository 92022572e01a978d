// The C functions of named stores, items that expire, changes of one item by what it is, and
// statistics.
#include <base/assert.h>
#include <capi/kv.h>
#include <containers/kv_limits.h>

#include <algorithm>
#include <limits>

namespace {

using namespace stele;
using capi::bytes_of, capi::durability_of, capi::move_value, capi::store_of;

stele_statistics statistics_of(const kv_statistics& s) {
  return {s.items,
          s.key_bytes,
          s.value_bytes,
          s.item_space,
          s.hash_buckets,
          s.hash_space,
          s.tree_nodes,
          s.tree_space,
          s.expiring_items,
          s.expired_items,
          static_cast<std::uint64_t>(s.clock_behind.count())};
}

// Returns what `change` returned; other values than 0 leave the value as it is.
int change_value(std::optional<std::string>& value, stele_kv_change change, void* arg) {
  stele_kv_value v{};
  if (value) v = {value->data(), value->size()};
  if (const int own = change(&v, arg); own != 0) return own;
  if (v.bytes == nullptr)
    value.reset();
  else
    value = std::string(v.bytes, v.size);  // which may be bytes of the old one
  return 0;
}

}  // namespace

extern "C" {

int stele_kv_open_store(stele_kv* kv, const void* name, size_t name_size, int create,
                        stele_kv** store) {
  return capi::call([&]() -> result<> {
    *capi::required(store, "store") = nullptr;
    auto opened = store_of(kv).open_store(
        bytes_of(name, name_size, "name"),
        create != 0 ? stele::kv::if_missing::create : stele::kv::if_missing::refuse);
    if (!opened) return std::unexpected(std::move(opened.error()));
    *store = new stele_kv{std::move(*opened), kv->of_pool};
    STELE_ASSERT(kv->of_pool->handles.load() != 0);  // this one's, at least
    kv->of_pool->handles.fetch_add(1);
    return {};
  });
}

int stele_kv_stores(const stele_kv* kv, stele_kv_each_name each, void* arg) {
  return capi::call([&]() -> result<> {
    capi::required(each, "each");
    const auto names = store_of(kv).stores();
    if (!names) return std::unexpected(names.error());
    for (const std::string& name : *names) each(name.c_str(), name.size(), arg);
    return {};
  });
}

int stele_kv_drop_store(stele_kv* kv, const void* name, size_t name_size) {
  return capi::call([&] { return store_of(kv).drop_store(bytes_of(name, name_size, "name")); });
}

int stele_kv_put_for(stele_kv* kv, const void* key, size_t key_size, const void* value,
                     size_t value_size, uint64_t lifetime_ms, int durability) {
  return capi::call([&] {
    constexpr std::uint64_t longest = std::numeric_limits<std::int64_t>::max();
    const std::chrono::milliseconds lifetime(
        static_cast<std::int64_t>(std::min(lifetime_ms, longest)));
    return store_of(kv).put_for(bytes_of(key, key_size, "key"),
                                bytes_of(value, value_size, "value"), lifetime,
                                durability_of(durability));
  });
}

int stele_kv_put_until(stele_kv* kv, const void* key, size_t key_size, const void* value,
                       size_t value_size, int64_t when_ms, int durability) {
  return capi::call([&] {
    return store_of(kv).put_until(bytes_of(key, key_size, "key"),
                                  bytes_of(value, value_size, "value"), detail::kv_time_of(when_ms),
                                  durability_of(durability));
  });
}

int stele_kv_expiry(const stele_kv* kv, const void* key, size_t key_size, int64_t* when_ms) {
  bool found = false;
  const int code = capi::call([&]() -> result<> {
    capi::required(when_ms, "when_ms");
    const std::string_view k = bytes_of(key, key_size, "key");
    const auto& store = store_of(kv);
    return store.read([&](const stele::kv::view& v) {
      found = v.contains(k);
      const auto when = v.expiry(k);
      *when_ms = when ? detail::milliseconds_of(*when) : 0;
    });
  });
  return capi::found_or_not(code, found);
}

int stele_kv_remove_expired(stele_kv* kv, uint64_t limit, uint64_t* removed) {
  return capi::call([&] {
    std::size_t count = 0;
    const result<> done = move_value(store_of(kv).remove_expired(limit), count);
    STELE_ASSERT(count <= limit);
    if (removed != nullptr) *removed = count;
    return done;
  });
}

int stele_kv_put_if(stele_kv* kv, const void* key, size_t key_size, const void* expected,
                    size_t expected_size, const void* value, size_t value_size, int* put,
                    int durability) {
  return capi::call([&] {
    std::optional<std::string_view> wanted;
    if (expected != nullptr) wanted = bytes_of(expected, expected_size, "expected");
    bool done = false;
    capi::required(put, "put");
    const result<> r = move_value(
        store_of(kv).put_if(bytes_of(key, key_size, "key"), wanted,
                            bytes_of(value, value_size, "value"), durability_of(durability)),
        done);
    STELE_ASSERT(r.has_value() || !done);
    *put = done ? 1 : 0;
    return r;
  });
}

int stele_kv_add(stele_kv* kv, const void* key, size_t key_size, int64_t n, int64_t* sum,
                 int durability) {
  return capi::call([&] {
    std::int64_t total = 0;
    const result<> added = move_value(
        store_of(kv).add(bytes_of(key, key_size, "key"), n, durability_of(durability)), total);
    if (sum != nullptr) *sum = total;
    return added;
  });
}

int stele_kv_modify(stele_kv* kv, const void* key, size_t key_size, stele_kv_change change,
                    void* arg, int durability) {
  int own = 0;
  const int code = capi::call([&] {
    capi::required(change, "change");
    return store_of(kv).modify(
        bytes_of(key, key_size, "key"),
        [&](std::optional<std::string>& value) { own = change_value(value, change, arg); },
        durability_of(durability));
  });
  return code != STELE_OK ? code : own;
}

int stele_kv_statistics(const stele_kv* kv, stele_statistics* to, size_t size) {
  return capi::call([&]() -> result<> {
    const auto found = store_of(kv).statistics();
    if (!found) return std::unexpected(found.error());
    capi::copy_known(to, size, statistics_of(*found));
    return {};
  });
}

}  // extern "C"
