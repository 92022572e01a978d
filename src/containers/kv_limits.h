// What kv and kv_store refuse, and the store behind a kv_store.
#pragma once

#include <containers/kv_store.h>

namespace stele::detail {

using pool_kv_store = basic_kv_store<pool_memory>;
static_assert(sizeof(kv_store) == sizeof(pool_kv_store));
static_assert(alignof(kv_store) == alignof(pool_kv_store) && pool_object<kv_store>);
static_assert(kv_store::max_key_bytes == format::kv_max_key_size);
static_assert(kv_store::max_value_bytes == format::kv_max_value_size);

// A kv_store has the words of a pool_kv_store, whose header is not public.
[[gnu::always_inline]] inline pool_kv_store& store_in(kv_store& s) {
  return reinterpret_cast<pool_kv_store&>(s);
}
[[gnu::always_inline]] inline const pool_kv_store& store_in(const kv_store& s) {
  return reinterpret_cast<const pool_kv_store&>(s);
}

// Errors: invalid_argument.
[[nodiscard]] result<> check_pair(std::string_view key, std::string_view value);
[[nodiscard]] result<> check_pairs(std::span<const kv_pair> pairs);
// The expiry time of an item that is put now and lives so long.
[[nodiscard]] result<std::uint64_t> expiry_after(std::chrono::milliseconds lifetime);
std::uint64_t expiry_at(kv_time when);
// A time in milliseconds since 1970; one beyond kv_time's range becomes the end of that.
kv_time kv_time_of(std::int64_t ms) noexcept;
// The least key that is greater than all that begin with `prefix`; empty: there is none.
std::string end_of_prefix(std::string_view prefix);

[[nodiscard]] result<> check_store(const kv_store& s);  // in a transaction

}  // namespace stele::detail
