// Opening and dropping of named stores; see open_store.h.
#include "open_store.h"

#include <base/assert.h>

namespace stele::python {

open_store::open_store(std::string path, kv store, const open_options& options)
    : transactions(std::move(path), store.core(), options),
      unnamed_(std::make_shared<store_slot>("", std::make_shared<kv>(std::move(store)))) {
  STELE_ASSERT_ALWAYS(&unnamed_store().core() == &core());
  open_.emplace("", unnamed_);
  after_update_ = [this](bool full) { remove_expired(full); };
}

open_store::~open_store() {
  open_store::release_core();
}

// Handles of the stores find their slots empty.
void open_store::release_core() {
  STELE_ASSERT(holds_gil());
  std::vector<std::shared_ptr<kv>> last;
  for (const auto& [name, known] : open_)
    if (const auto slot = known.lock(); slot != nullptr && slot->store != nullptr)
      last.push_back(std::exchange(slot->store, nullptr));
  STELE_ASSERT_ALWAYS(unnamed_->store == nullptr);
  const nb::gil_scoped_release gil_released;
  last.clear();
}

std::shared_ptr<store_slot> open_store::open_named(const std::string& name, kv::if_missing how) {
  return run_outside([&]() -> result<std::shared_ptr<store_slot>> {
    auto opened = unnamed_store().open_store(name, how);
    if (!opened) return std::unexpected(std::move(opened.error()));
    std::weak_ptr<store_slot>& known = open_[name];
    auto slot = known.lock();
    if (slot == nullptr || slot->store == nullptr)
      known = slot = std::make_shared<store_slot>(name, std::make_shared<kv>(std::move(*opened)));
    STELE_ASSERT(slot->name == name);
    STELE_ASSERT(&slot->store->core() == &core());
    return slot;
  });
}

void open_store::drop(const std::string& name) {
  refuse_if_reads_only();
  run_outside([&] { return is_open_here() ? unnamed_store().drop_store(name) : drop_now(name); });
}

result<> open_store::drop_now(const std::string& name) {
  const auto known = open_.find(name);
  const auto slot = known == open_.end() || name.empty() ? nullptr : known->second.lock();
  std::shared_ptr<kv> open;
  if (slot != nullptr) {
    const nb::gil_scoped_acquire gil;
    open = std::exchange(slot->store, nullptr);
  }
  if (open.use_count() == 1) open.reset();  // else another thread uses it: the library refuses
  const auto give_back = [&] {
    if (open == nullptr) return;
    const nb::gil_scoped_acquire gil;
    STELE_ASSERT(slot->store == nullptr);
    slot->store = std::move(open);
  };
  try {
    auto dropped = unnamed_store().drop_store(name);
    if (!dropped) give_back();
    STELE_ASSERT(open == nullptr);
    return dropped;
  } catch (...) {  // no memory
    give_back();
    throw;
  }
}

// Called after a `with`, inside which changes of the stores cannot do this.
void open_store::remove_expired(bool full) const {
  STELE_ASSERT(!holds_gil());
  for (const auto& [name, known] : open_)
    if (const auto slot = known.lock(); slot != nullptr && slot->store != nullptr)
      full ? void(slot->store->make_room()) : slot->store->remove_some_expired();
}

std::shared_ptr<kv> kv_handle::store() const {
  STELE_ASSERT(in != nullptr && slot != nullptr);
  in->check_open();
  if (slot->store != nullptr) return slot->store;
  throw_library_error(errc::not_found, in->path() + ": the store '" + slot->name +
                                           "' has been dropped; open it again");
}

}  // namespace stele::python
