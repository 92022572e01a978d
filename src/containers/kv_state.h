// What a kv object refers to: one store of an open pool.
#pragma once

#include <containers/kv_limits.h>

#include <atomic>
#include <map>
#include <mutex>

namespace stele {

namespace detail {

// What all kv objects of one store share.
struct kv_shared_store {
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  // No item expires before this time, in milliseconds since 1970. A change that is rolled back may
  // have lowered it.
  std::atomic<std::uint64_t> next_expiry = never;
  std::atomic_flag removing;  // one thread at a time removes expired items
};

// What all kv objects of one pool share.
struct kv_shared_pool {
  explicit kv_shared_pool(pool_handle h) : handle(std::move(h)) {}

  pool_handle handle;
  std::mutex mutex;  // held while a named store is opened or dropped; guards `open`
  std::map<std::string, std::weak_ptr<kv_shared_store>, std::less<>> open;  // by name
};

}  // namespace detail

struct kv::state {
  std::shared_ptr<detail::kv_shared_pool> pool;
  std::shared_ptr<detail::kv_shared_store> shared;
  detail::runtime* core;
  kv_store* root;
  std::string name;

  // The state of a store that is there. The caller holds the mutex, if others know the pool.
  static std::unique_ptr<state> of(std::shared_ptr<detail::kv_shared_pool> pool, kv_store* root,
                                   std::string_view name);

  detail::pool_kv_store& store() const { return detail::store_in(*root); }
  // The store without a name, which has the catalog.
  detail::pool_kv_store& pool_store() const {
    return *static_cast<detail::pool_kv_store*>(pool->handle.root());
  }
  template <class Body>
  auto update(Body&& body, durability d = durability::durable) const {
    return detail::update_pool(*core, d, body);
  }
  template <class Body>
  auto read(Body&& body) const {
    return detail::read_pool(*core, body);
  }

  // Erases what is left of dropped stores, step by step.
  [[nodiscard]] result<> clear_dropped() const;
  // Removes some expired items, unless another thread does. Returns how many.
  std::size_t remove_expired(std::size_t limit) noexcept;
  // Called after a change.
  void remove_if_due() noexcept {
    if (detail::kv_earliest_put != detail::kv_shared_store::never) [[unlikely]]
      note_expiry(std::exchange(detail::kv_earliest_put, detail::kv_shared_store::never));
    if (shared->next_expiry.load(std::memory_order_relaxed) != detail::kv_shared_store::never)
        [[unlikely]]
      remove_due();
  }
  void note_expiry(std::uint64_t expires) noexcept;
  void remove_due() noexcept;
};

}  // namespace stele
