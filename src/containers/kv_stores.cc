// kv: opening, named stores, and the removal of expired items.
#include <base/assert.h>
#include <base/mutant.h>
#include <containers/kv_state.h>
#include <tx/runtime.h>

namespace stele {

namespace {

using detail::pool_kv_store;

constexpr std::size_t items_of_a_step = 128;    // of a transaction that clears a dropped store
constexpr std::size_t removed_by_a_change = 8;  // expired items
constexpr std::uint64_t look_again_ms = 500;

std::unexpected<error> refused(errc code, std::string message) {
  return std::unexpected(error{code, std::move(message)});
}

std::string in_quotes(std::string_view name) {
  return "'" + std::string(name) + "'";
}
const std::string& path_of(const detail::kv_shared_pool& p) {
  return p.handle.core().state().file.path();
}

result<> check_version(std::uint64_t version, const std::string& what) {
  if (version <= format::kv_version) return {};
  return refused(errc::version, what + " is of version " + std::to_string(version) +
                                    ", this program knows " + std::to_string(format::kv_version) +
                                    "; use the matching release");
}
result<> check_name(std::string_view name) {
  if (detail::kv_catalog<pool_memory>::is_name(name)) return {};
  return refused(errc::invalid_argument, "a name of " + std::to_string(name.size()) +
                                             " bytes for a store: give one of 1 to " +
                                             std::to_string(format::kv_max_name_size) +
                                             " bytes, none of them zero");
}
result<> check_outside(const detail::kv_shared_pool& pool, std::string_view name,
                       const char* what) {
  if (!in_transaction()) return {};
  return refused(errc::nested, path_of(pool) + ": the store " + in_quotes(name) + " cannot be " +
                                   what + " inside a transaction; do it when that has ended");
}
std::unexpected<error> no_such_store(const detail::kv_shared_pool& pool, std::string_view name) {
  return refused(errc::not_found, path_of(pool) + ": there is no store " + in_quotes(name) +
                                      "; the list of stores has the names");
}

}  // namespace

std::unique_ptr<kv::state> kv::state::of(std::shared_ptr<detail::kv_shared_pool> pool,
                                         kv_store* root, std::string_view name) {
  auto& known = pool->open[std::string(name)];
  auto shared = known.lock();
  detail::runtime* const core = &pool->handle.core();
  STELE_ASSERT(root != nullptr);
  const bool fresh = shared == nullptr;
  if (fresh) known = shared = std::make_shared<detail::kv_shared_store>();
  auto s =
      std::make_unique<state>(std::move(pool), std::move(shared), core, root, std::string(name));
  if (fresh)  // a damaged index is for those who use it
    if (const auto next = s->read([&] { return s->store().next_expiry(); }); next && *next != 0)
      s->note_expiry(*next);
  return s;
}

result<> kv::state::clear_dropped() const {
  for (;;) {
    const auto done = update([&] { return pool_store().stores().clear_dropped(items_of_a_step); });
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
  }
}

result<kv> kv::open(const std::string& path, const pool_options& options) {
  if (!options.layout.empty() && options.layout != layout)
    return refused(
        errc::invalid_argument,
        "the layout '" + options.layout + "' is not that of a key-value store; leave it empty");
  pool_options with_layout = options;
  with_layout.layout = layout;
  return store_in(detail::pool_handle::open(path, with_layout, sizeof(pool_kv_store)), path);
}

result<kv> kv::open_read_only(const std::string& path) {
  pool_options options;
  options.layout = layout;
  return store_in(detail::pool_handle::open_read_only(path, options, sizeof(pool_kv_store)), path);
}

result<kv> kv::store_in(result<detail::pool_handle> handle, const std::string& path) {
  if (!handle) return std::unexpected(std::move(handle.error()));
  auto opened = from_handle(std::move(*handle));
  if (!opened) opened.error().message = path + ": " + opened.error().message;
  return opened;
}

result<kv> kv::from_handle(detail::pool_handle handle) {
  auto pool = std::make_shared<detail::kv_shared_pool>(std::move(handle));
  auto* const root = static_cast<pool_kv_store*>(pool->handle.root());
  detail::runtime& core = pool->handle.core();
  const auto version = detail::read_pool(core, [&] { return root->version(); });
  if (!version) return std::unexpected(version.error());
  if (auto known = check_version(*version, "its key-value store"); !known)
    return std::unexpected(known.error());
  if (*version == 0)
    if (auto made = detail::update_pool(core, durability::durable, [&] { root->set_version(); });
        !made)
      return std::unexpected(made.error());
  auto s = state::of(std::move(pool), reinterpret_cast<kv_store*>(root), {});
  if (*version == format::kv_version) (void)s->clear_dropped();  // if not, the next one does it
  return kv(std::move(s));
}

result<kv> kv::open_store(std::string_view name, if_missing how) {
  detail::kv_shared_pool& pool = *state_->pool;
  if (auto valid = check_name(name); !valid) return std::unexpected(valid.error());
  if (auto outside = check_outside(pool, name, "opened"); !outside)
    return std::unexpected(outside.error());
  if (auto usable = state_->core->check_usable(); !usable) return std::unexpected(usable.error());
  const std::lock_guard lock(pool.mutex);
  pool_kv_store* there = nullptr;
  std::uint64_t version = 0;
  auto found = state_->read([&] {
    there = state_->pool_store().stores().find(name);
    version = there == nullptr ? 0 : there->version();
  });
  if (found && there == nullptr) {
    if (how == if_missing::refuse) return no_such_store(pool, name);
    found =
        change_by([&] { there = state_->pool_store().create_store(name); }, durability::durable);
  }
  if (found) found = check_version(version, path_of(pool) + ": the store " + in_quotes(name));
  if (!found) return std::unexpected(found.error());
  STELE_ASSERT(there != nullptr);
  return kv(state::of(state_->pool, reinterpret_cast<kv_store*>(there), name));
}

result<std::vector<std::string>> kv::stores() const {
  return state_->read([&] {
    std::vector<std::string> names;
    state_->pool_store().stores().for_each([&](std::string_view name, const pool_kv_store*) {
      if (!name.starts_with('\0')) names.emplace_back(name);
    });
    return names;
  });
}

result<> kv::drop_store(std::string_view name) {
  detail::kv_shared_pool& pool = *state_->pool;
  if (auto valid = check_name(name); !valid) return valid;
  if (auto outside = check_outside(pool, name, "dropped"); !outside) return outside;
  if (auto usable = state_->core->check_usable(); !usable) return usable;
  const std::lock_guard lock(pool.mutex);
  if (const auto open = pool.open.find(name); open != pool.open.end() && !open->second.expired())
    return refused(errc::in_use, path_of(pool) + ": the store " + in_quotes(name) +
                                     " is open; close every handle of it first");
  if (planted(base::mutant::kv_cleared_first))
    (void)state_->update([&] {
      if (auto* const there = state_->pool_store().stores().find(name)) there->erase_some(1);
    });
  const auto dropped = state_->update([&] { return state_->pool_store().stores().drop(name); });
  if (!dropped) return std::unexpected(dropped.error());
  if (!*dropped) return no_such_store(pool, name);
  pool.open.erase(std::string(name));
  return state_->clear_dropped();
}

const std::string& kv::name() const noexcept {
  return state_->name;
}

// Items that expire.

void kv::state::note_expiry(std::uint64_t expires) noexcept {
  auto& next = shared->next_expiry;
  std::uint64_t known = next.load(std::memory_order_relaxed);
  while (expires < known &&
         !next.compare_exchange_weak(known, expires, std::memory_order_relaxed)) {
  }
}

// Until the transaction has ended, next_expiry only has what other threads note meanwhile.
std::size_t kv::state::remove_expired(std::size_t limit) noexcept try {
  if (shared->removing.test_and_set(std::memory_order_acquire)) return 0;
  shared->next_expiry.store(detail::kv_shared_store::never, std::memory_order_relaxed);
  std::uint64_t next = 0;
  const auto removed = update(
      [&] {
        const std::size_t count = store().remove_expired(limit);
        next = store().next_expiry();
        return count;
      },
      durability::ordered);
  STELE_ASSERT(!removed || *removed <= limit);
  if (next != 0) note_expiry(next);
  // A transaction that has noted its item may not have committed yet: look again soon.
  note_expiry(detail::kv_now() + look_again_ms);
  shared->removing.clear(std::memory_order_release);
  return removed.value_or(0);
} catch (...) {  // no memory: another change will try
  note_expiry(0);
  shared->removing.clear(std::memory_order_release);
  return 0;
}

void kv::state::remove_due() noexcept {
  if (!in_transaction() && shared->next_expiry.load(std::memory_order_relaxed) <= detail::kv_now())
    remove_expired(removed_by_a_change);
}

void kv::remove_some_expired() noexcept {
  state_->remove_if_due();
}
bool kv::make_room() noexcept {
  return !in_transaction() &&
         state_->shared->next_expiry.load(std::memory_order_relaxed) <= detail::kv_now() &&
         state_->remove_expired(items_of_a_step) != 0;
}

result<std::size_t> kv::remove_expired(std::size_t limit) {
  return state_->update([&] { return state_->store().remove_expired(limit); });
}

}  // namespace stele
