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
// Times on media are milliseconds since 1970 in 64 bits; kv_time is in nanoseconds and ends in
// 2262. The functions below are the only conversions. A time beyond kv_time's range becomes its
// end.
kv_time kv_time_of(std::int64_t ms) noexcept;
kv_time kv_time_of_expiry(std::uint64_t expires) noexcept;
std::int64_t milliseconds_of(kv_time when) noexcept;  // rounded up
// The expiry time on media of an item that is put now and lives so long; of one that expires at a
// time.
[[nodiscard]] result<std::uint64_t> expiry_after(std::chrono::milliseconds lifetime);
std::uint64_t expiry_at(kv_time when);
// The least key that is greater than all that begin with `prefix`; empty: there is none.
std::string end_of_prefix(std::string_view prefix);

[[nodiscard]] result<> check_store(const kv_store& s);  // in a transaction

}  // namespace stele::detail
