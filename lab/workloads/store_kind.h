// What the runs of the workload `store` on pools and on ordinary memory have in common.
#pragma once

#include <workloads/store.h>

namespace stele::workloads::store {

// A change, or a read, of a key-value store in any memory. Memory of the buffers is reused from
// call to call.
template <class Store>
void apply_to(Store& s, std::size_t value_size, const operation& op, std::string& value_buffer,
              std::string& read_buffer) {
  using enum operation::kind;
  if (op.what == put) s.put(key(op.a), value(op.b, value_size, value_buffer));
  if (op.what == erase) s.erase(key(op.a));
  if (op.what == read && s.get(key(op.a), read_buffer)) do_not_optimize(read_buffer);
}

inline std::uint64_t digest_pair(std::string_view key, std::string_view value) {
  return digest_item(detail::hash_bytes(key.data(), key.size()), value.data(), value.size());
}

}  // namespace stele::workloads::store
