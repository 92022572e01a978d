// kv as programs see it: checks arguments, runs transactions, returns copies.
#include <containers/kv_store.h>
#include <stele/kv.h>

namespace stele {

namespace {

using store = detail::kv_store<pool_memory>;
static_assert(pool_object<store>);
static_assert(kv::max_key_bytes == format::kv_max_key_size);

std::unexpected<error> invalid(std::string message) {
  return std::unexpected(error{errc::invalid_argument, std::move(message)});
}

result<> check_key(std::string_view key) {
  if (store::is_key(key)) return {};
  return invalid("a key of " + std::to_string(key.size()) + " bytes: give one of 1 to " +
                 std::to_string(kv::max_key_bytes));
}
result<> check_value(std::string_view value) {
  if (value.size() <= kv::max_value_bytes) return {};
  return invalid("a value of " + std::to_string(value.size()) + " bytes: give at most " +
                 std::to_string(kv::max_value_bytes) + ", or parts under keys of their own");
}
result<> check_pair(std::string_view key, std::string_view value) {
  auto status = check_key(key);
  return status ? check_value(value) : status;
}
result<> check_pairs(std::span<const kv_pair> pairs) {
  for (const kv_pair& p : pairs)
    if (auto status = check_pair(p.key, p.value); !status) return status;
  return {};
}
void throw_on_error(const result<>& status) {
  if (!status) throw failure(status.error());
}

}  // namespace

struct kv::state {
  explicit state(detail::pool_handle h)
      : pool(std::move(h)), root(static_cast<store*>(pool.root())) {}

  template <class Body>
  auto update(Body&& body, durability d) {
    return detail::run_transaction(pool.core(), true, d, body);
  }
  template <class Body>
  auto read(Body&& body) const {
    return detail::run_transaction(pool.core(), false, durability::durable, body);
  }

  detail::pool_handle pool;
  store* root;
};

kv::kv(std::unique_ptr<state> s) : state_(std::move(s)) {}
kv::kv(kv&&) noexcept = default;
kv& kv::operator=(kv&&) noexcept = default;
kv::~kv() = default;

result<kv> kv::open(const std::string& path, const pool_options& options) {
  if (!options.layout.empty() && options.layout != layout)
    return invalid("the layout '" + options.layout +
                   "' is not that of a key-value store; leave it empty");
  pool_options with_layout = options;
  with_layout.layout = layout;
  auto handle = detail::pool_handle::open(path, with_layout, sizeof(store));
  if (!handle) return std::unexpected(std::move(handle.error()));
  auto opened = from_handle(std::move(*handle));
  if (!opened) opened.error().message = path + ": " + opened.error().message;
  return opened;
}

result<kv> kv::open_read_only(const std::string& path) {
  pool_options options;
  options.layout = layout;
  auto handle = detail::pool_handle::open_read_only(path, options, sizeof(store));
  if (!handle) return std::unexpected(std::move(handle.error()));
  auto opened = from_handle(std::move(*handle));
  if (!opened) opened.error().message = path + ": " + opened.error().message;
  return opened;
}

result<kv> kv::from_handle(detail::pool_handle handle) {
  auto s = std::make_unique<state>(std::move(handle));
  const auto version = s->read([&] { return s->root->version(); });
  if (!version) return std::unexpected(version.error());
  if (*version > format::kv_version)
    return std::unexpected(
        error{errc::version, "its key-value store is of version " + std::to_string(*version) +
                                 ", this program knows " + std::to_string(format::kv_version) +
                                 "; use the matching release"});
  if (*version == 0)
    if (auto made = s->update([&] { s->root->set_version(); }, durability::durable); !made)
      return std::unexpected(made.error());
  return kv(std::move(s));
}

result<> kv::put(std::string_view key, std::string_view value, durability d) {
  if (auto status = check_pair(key, value); !status) return status;
  return state_->update([&] { state_->root->put(key, value); }, d);
}

result<bool> kv::erase(std::string_view key, durability d) {
  if (!store::is_key(key)) return false;
  return state_->update([&] { return state_->root->erase(key); }, d);
}

result<std::optional<std::string>> kv::get(std::string_view key) const {
  std::string value;
  const auto found = get(key, value);
  if (!found) return std::unexpected(found.error());
  return *found ? std::optional(std::move(value)) : std::nullopt;
}

result<bool> kv::get(std::string_view key, std::string& into) const {
  if (!store::is_key(key)) return false;
  return state_->read([&] { return state_->root->get(key, into); });
}

result<> kv::get_many(std::span<const std::string_view> keys, const each_value& each) const {
  return state_->read([&] { state_->root->get_many(keys, each); });
}

result<> kv::put_many(std::span<const kv_pair> pairs, durability d) {
  if (auto status = check_pairs(pairs); !status) return status;
  return state_->update([&] { state_->root->put_many(pairs); }, d);
}

result<bool> kv::contains(std::string_view key) const {
  if (!store::is_key(key)) return false;
  return state_->read([&] { return state_->root->contains(key); });
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
  return state_->update(
      [&] {
        const char *ahead = b.bytes_.data(), *at = ahead;
        const auto key_ahead = [&](std::size_t i) {
          const batch::entry& e = b.entries_[i];
          return std::string_view(std::exchange(ahead, ahead + e.key_bytes + e.value_bytes),
                                  e.key_bytes);
        };
        state_->root->change_many(b.entries_.size(), key_ahead, [&](std::size_t i) {
          const batch::entry& e = b.entries_[i];
          const std::string_view key(at, e.key_bytes), value(at + e.key_bytes, e.value_bytes);
          e.erases ? void(state_->root->erase(key)) : state_->root->put(key, value);
          at += e.key_bytes + e.value_bytes;
        });
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
      return items.size() < limit;
    });
    return items;
  });
}

kv::cursor kv::walk(std::string_view from, std::string_view to) const {
  return {*state_, from, to};
}

result<std::size_t> kv::size() const {
  return state_->read([&] { return state_->root->size(); });
}
result<> kv::check() const {
  return state_->read([&] {
    return detail::check_bounded([&] {
      return reinterpret_cast<const detail::kv_store<bounded_memory>*>(state_->root)->check();
    });
  });
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
std::string kv::durability_in_force() const {
  return detail::durability_of(core());
}
std::string kv::mechanism() const {
  return detail::mechanism_of(core());
}
result<> kv::close() {
  return detail::close_pool(core());
}

std::size_t kv::root_size() noexcept {
  return sizeof(store);
}
detail::runtime& kv::core() const noexcept {
  return state_->pool.core();
}
void kv::visit_blocks(const std::function<void(const void*)>& f) const {
  state_->root->visit_blocks(f);
}

// Inside a transaction.

std::optional<std::string> kv::view::get(std::string_view key) const {
  std::string value;
  return get(key, value) ? std::optional(std::move(value)) : std::nullopt;
}
bool kv::view::get(std::string_view key, std::string& into) const {
  return store::is_key(key) && state_.root->get(key, into);
}
bool kv::view::contains(std::string_view key) const {
  return store::is_key(key) && state_.root->contains(key);
}
void kv::view::get_many(std::span<const std::string_view> keys, const each_value& each) const {
  state_.root->get_many(keys, each);
}
void kv::view::for_each(std::string_view from, std::string_view to, const visit& f) const {
  state_.root->for_each(from, to, f);
}

std::optional<kv_item> kv::view::first(std::string_view from) const {
  std::optional<kv_item> item;
  for_each(from, {}, [&](std::string_view key, std::string_view value) {
    item.emplace(std::string(key), std::string(value));
    return false;
  });
  return item;
}
std::optional<kv_item> kv::view::last() const {
  kv_item item;
  return state_.root->last(item.key, item.value) ? std::optional(std::move(item)) : std::nullopt;
}
std::size_t kv::view::size() const {
  return state_.root->size();
}

void kv::changes::put(std::string_view key, std::string_view value) {
  throw_on_error(check_pair(key, value));
  state_.root->put(key, value);
}
void kv::changes::put_many(std::span<const kv_pair> pairs) {
  throw_on_error(check_pairs(pairs));
  state_.root->put_many(pairs);
}
bool kv::changes::erase(std::string_view key) {
  return store::is_key(key) && state_.root->erase(key);
}

// Outside of transactions.

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

result<bool> kv::cursor::next() {
  if (begun_ && at_ + 1 < count_) {
    ++at_;
    return true;
  }
  if (ended_) return false;
  if (auto loaded = load_page(); !loaded) return std::unexpected(std::move(loaded.error()));
  begun_ = true;
  at_ = 0;
  return count_ != 0;
}

// The items of a page reuse the memory of the previous page.
result<> kv::cursor::load_page() {
  const auto full = state_->read([&] {
    count_ = 0;
    std::size_t bytes = 0;
    state_->root->for_each(from_, to_, [&](std::string_view key, std::string_view value) {
      if (count_ == page_.size()) page_.emplace_back();
      page_[count_].key = key;
      page_[count_++].value = value;
      bytes += key.size() + value.size();
      return count_ < page_items && bytes < page_bytes;
    });
    return count_ >= page_items || bytes >= page_bytes;
  });
  if (!full) return std::unexpected(full.error());
  ended_ = !*full;
  if (*full) from_.assign(page_[count_ - 1].key).push_back('\0');  // the smallest greater key
  return {};
}

}  // namespace stele
