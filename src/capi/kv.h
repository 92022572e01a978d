// The C handle of a key-value store, and what its functions share.
#pragma once

#include <capi/shim.h>
#include <stele/kv.h>

#include <atomic>
#include <memory>

struct stele_kv {
  // Shared by the handles of one pool's stores. The last one closes the pool.
  struct pool {
    std::atomic<unsigned> handles = 1;
  };

  stele::kv store;
  std::shared_ptr<pool> of_pool;
};

namespace stele::capi {

inline kv& store_of(stele_kv* handle) {
  return required(handle, "kv")->store;
}
inline const kv& store_of(const stele_kv* handle) {
  return required(handle, "kv")->store;
}

inline std::string_view bytes_of(const void* from, std::size_t size, const char* name) {
  if (size == 0) return {};
  return {static_cast<const char*>(required(from, name)), size};
}

// Does not end the attempt of a body: a missing key is a normal result.
inline int found_or_not(int code, bool found) {
  if (code != STELE_OK || found) return code;
  return set_last_error(STELE_NOT_FOUND, "the store has no such key");
}

template <class T>
result<> move_value(result<T> from, T& to) {
  if (!from) return std::unexpected(std::move(from.error()));
  to = std::move(*from);
  return {};
}

}  // namespace stele::capi
