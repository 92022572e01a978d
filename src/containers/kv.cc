// kv: the calls that are transactions of their own. They check arguments and return copies.
#include <base/assert.h>
#include <containers/kv_state.h>

namespace stele {

using detail::check_pair;

kv::kv(std::unique_ptr<state> s) : state_(std::move(s)) {}
kv::kv(kv&&) noexcept = default;
kv& kv::operator=(kv&&) noexcept = default;
kv::~kv() = default;

result<> kv::put(std::string_view key, std::string_view value, durability d) {
  if (auto status = check_pair(key, value); !status) return status;
  return change_by([&] { state_->store().put(key, value); }, d);
}

result<> kv::put_until(std::string_view key, std::string_view value, kv_time when, durability d) {
  if (auto status = check_pair(key, value); !status) return status;
  return change_by([&] { state_->store().put(key, value, detail::expiry_at(when)); }, d);
}

result<> kv::put_for(std::string_view key, std::string_view value,
                     std::chrono::milliseconds lifetime, durability d) {
  if (auto status = check_pair(key, value); !status) return status;
  const auto expires = detail::expiry_after(lifetime);
  if (!expires) return std::unexpected(expires.error());
  return change_by([&] { state_->store().put(key, value, *expires); }, d);
}

result<bool> kv::put_if(std::string_view key, std::optional<std::string_view> expected,
                        std::string_view value, durability d) {
  return change_by([&] { return root().put_if(key, expected, value); }, d);
}

result<> kv::modify(std::string_view key, const change& f, durability d) {
  return change_by([&] { root().modify(key, f); }, d);
}

result<std::int64_t> kv::add(std::string_view key, std::int64_t n, durability d) {
  return change_by([&] { return root().add(key, n); }, d);
}

result<bool> kv::erase(std::string_view key, durability d) {
  if (!detail::pool_kv_store::is_key(key)) return false;
  return change_by([&] { return state_->store().erase(key); }, d);
}

result<std::optional<std::string>> kv::get(std::string_view key) const {
  std::string value;
  const auto found = get(key, value);
  if (!found) return std::unexpected(found.error());
  return *found ? std::optional(std::move(value)) : std::nullopt;
}

result<bool> kv::get(std::string_view key, std::string& into) const {
  if (!detail::pool_kv_store::is_key(key)) return false;
  return state_->read([&] { return state_->store().get(key, into); });
}

result<> kv::get_many(std::span<const std::string_view> keys, const each_value& each) const {
  return state_->read([&] { state_->store().get_many(keys, each); });
}

result<> kv::put_many(std::span<const kv_pair> pairs, durability d) {
  if (auto status = detail::check_pairs(pairs); !status) return status;
  return change_by([&] { state_->store().put_many(pairs); }, d);
}

result<bool> kv::contains(std::string_view key) const {
  if (!detail::pool_kv_store::is_key(key)) return false;
  return state_->read([&] { return state_->store().contains(key); });
}

result<> kv::write(const batch& b, durability d) {
  std::string_view rest = b.bytes_;
  for (const batch::entry& e : b.entries_) {
    if (auto status =
            check_pair(rest.substr(0, e.key_bytes), rest.substr(e.key_bytes, e.value_bytes));
        !status)
      return status;
    rest.remove_prefix(e.key_bytes + e.value_bytes);
  }
  STELE_ASSERT(rest.empty());  // a batch has the bytes of its entries
  return change_by(
      [&] {
        const char *ahead = b.bytes_.data(), *at = ahead;
        const auto key_ahead = [&](std::size_t i) {
          const batch::entry& e = b.entries_[i];
          return std::string_view(std::exchange(ahead, ahead + e.key_bytes + e.value_bytes),
                                  e.key_bytes);
        };
        state_->store().change_many(b.entries_.size(), key_ahead, [&](std::size_t i) {
          const batch::entry& e = b.entries_[i];
          const std::string_view key(at, e.key_bytes), value(at + e.key_bytes, e.value_bytes);
          e.erases ? void(state_->store().erase(key)) : state_->store().put(key, value);
          at += e.key_bytes + e.value_bytes;
        });
        STELE_ASSERT(at == b.bytes_.data() + b.bytes_.size() && ahead == at);
      },
      d);
}

result<std::vector<kv_item>> kv::range(std::string_view from, std::string_view to,
                                       std::size_t limit) const {
  return read([&](const view& v) {
    std::vector<kv_item> items;
    if (limit == 0) return items;
    v.for_each(from, to, [&](std::string_view key, std::string_view value) {
      items.push_back({std::string(key), std::string(value)});
      STELE_ASSERT(items.size() <= limit);
      return items.size() < limit;
    });
    return items;
  });
}

kv::cursor kv::walk(std::string_view from, std::string_view to) const {
  return {*state_, from, to};
}
kv::cursor kv::walk_prefix(std::string_view prefix) const {
  return {*state_, prefix, detail::end_of_prefix(prefix)};
}

result<std::size_t> kv::size() const {
  return state_->read([&] { return state_->store().size(); });
}
result<kv_statistics> kv::statistics() const {
  return state_->read([&] { return state_->store().statistics(); });
}
result<> kv::check() const {
  if (auto usable = detail::check_usable(core()); !usable) return usable;
  return state_->read([&] { return root().check(); });
}

result<> kv::backup(const std::string& path, const progress& report) {
  return detail::back_up(core(), path, report);
}
result<> kv::grow(std::size_t size_bytes) {
  return detail::grow(core(), size_bytes);
}
result<> kv::sync() {
  return detail::sync_pool(core());
}
ticket kv::committed() const noexcept {
  return {detail::newest_commit(core())};
}
pool_counters kv::counters() const noexcept {
  return detail::counters_of(core());
}
pool_space kv::space() const {
  return detail::space_of(core());
}
durability_level kv::durability_in_force() const noexcept {
  return detail::durability_of(core());
}
std::string kv::mechanism() const {
  return detail::mechanism_of(core());
}
result<> kv::close() {
  return detail::close_pool(core());
}

std::size_t kv::root_size() noexcept {
  return sizeof(detail::pool_kv_store);
}
detail::runtime& kv::core() const noexcept {
  return *state_->core;
}
kv_store& kv::root() const noexcept {
  return *state_->root;
}
void kv::visit_blocks(const std::function<void(const void*)>& f) const {
  state_->store().visit_blocks(f);
}

void kv::batch::put(std::string_view key, std::string_view value) {
  entries_.push_back({key.size(), value.size(), false});
  bytes_.append(key).append(value);
}
void kv::batch::erase(std::string_view key) {
  entries_.push_back({key.size(), 0, true});
  bytes_.append(key);
}
void kv::batch::clear() noexcept {
  entries_.clear();
  bytes_.clear();
}

}  // namespace stele
