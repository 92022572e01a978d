// A pool of key-value stores that Python has opened, and its stores, which share its transactions.
//
// A store may be dropped while Python objects refer to it; they find no store in their slot then.
#pragma once

#include "transactions.h"

#include <stele/kv.h>

#include <map>

namespace stele::python {

// An open store. Null: it has been dropped. `store` changes with the GIL and the update lock held,
// so a reader needs one of them.
struct store_slot {
  std::string name;
  std::shared_ptr<kv> store;
};

class open_store final : public transactions {
 public:
  open_store(std::string path, kv store, const open_options& options);
  ~open_store();  // called with the GIL held

  const std::shared_ptr<store_slot>& unnamed() const noexcept { return unnamed_; }
  kv& unnamed_store() const noexcept { return *unnamed_->store; }

  // As kv's. Called with the GIL held.
  std::shared_ptr<store_slot> open_named(const std::string& name, kv::if_missing how);
  void drop(const std::string& name);

 private:
  void release_core() override;
  result<> drop_now(const std::string& name);
  void remove_expired(bool full) const;

  std::shared_ptr<store_slot> unnamed_;
  std::map<std::string, std::weak_ptr<store_slot>> open_;  // used with the update lock held
};

// The content of a stele.KV.
struct kv_handle {
  std::shared_ptr<open_store> in;
  std::shared_ptr<store_slot> slot;

  // Throws library_error: invalid_argument, if the pool has been closed; not_found, if the store
  // has been dropped.
  std::shared_ptr<kv> store() const;
};

// A view of the characters of an object that the caller keeps alive. Throws TypeError.
std::string_view characters_of(nb::handle object);
inline nb::bytes to_bytes(std::string_view from) {
  return nb::bytes(from.data(), from.size());
}

// The methods for many items, single changes and named stores.
void bind_kv_features(nb::class_<kv_handle>& to);

}  // namespace stele::python
