// kv_store: the members that programs call inside their transactions.
#include <base/assert.h>
#include <containers/kv_limits.h>

#include <algorithm>

namespace stele {

namespace detail {

namespace {

std::unexpected<error> invalid(std::string message) {
  return std::unexpected(error{errc::invalid_argument, std::move(message)});
}

}  // namespace

result<> check_pair(std::string_view key, std::string_view value) {
  if (!pool_kv_store::is_key(key))
    return invalid("a key of " + std::to_string(key.size()) + " bytes: give one of 1 to " +
                   std::to_string(kv_store::max_key_bytes));
  if (value.size() > kv_store::max_value_bytes)
    return invalid("a value of " + std::to_string(value.size()) + " bytes: give at most " +
                   std::to_string(kv_store::max_value_bytes) +
                   ", or parts under keys of their own");
  return {};
}
result<> check_pairs(std::span<const kv_pair> pairs) {
  for (const kv_pair& p : pairs)
    if (auto status = check_pair(p.key, p.value); !status) return status;
  return {};
}

namespace {

using std::chrono::milliseconds;
constexpr std::int64_t latest_ms =
    std::chrono::duration_cast<milliseconds>(kv_time::max().time_since_epoch()).count();

}  // namespace

kv_time kv_time_of(std::int64_t ms) noexcept {
  return kv_time(milliseconds(std::clamp(ms, -latest_ms, latest_ms)));
}
kv_time kv_time_of_expiry(std::uint64_t expires) noexcept {
  return kv_time_of(static_cast<std::int64_t>(std::min<std::uint64_t>(expires, latest_ms)));
}
std::int64_t milliseconds_of(kv_time when) noexcept {
  return std::min(std::chrono::ceil<milliseconds>(when.time_since_epoch()).count(), latest_ms);
}

result<std::uint64_t> expiry_after(milliseconds lifetime) {
  if (lifetime.count() < 1)
    return invalid("a lifetime of " + std::to_string(lifetime.count()) +
                   " ms: give at least 1, or erase the key");
  return std::min<std::uint64_t>(kv_now() + static_cast<std::uint64_t>(lifetime.count()),
                                 latest_ms);
}
std::uint64_t expiry_at(kv_time when) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(milliseconds_of(when), 1));  // 0: never
}

std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix.substr(0, prefix.find_last_not_of('\xFF') + 1));
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  STELE_ASSERT(end.empty() || (end > prefix && end.size() <= prefix.size()));
  return end;
}

result<> check_store(const kv_store& s) {
  return check_bounded(
      [&] { return reinterpret_cast<const basic_kv_store<bounded_memory>&>(s).check(); });
}

}  // namespace detail

using detail::store_in;

namespace {

void throw_on_error(const result<>& status) {
  if (!status) throw failure(status.error());
}
// Visits one item, which it keeps.
auto take_item(std::optional<kv_item>& to) {
  return [&to](std::string_view key, std::string_view value) {
    to.emplace(std::string(key), std::string(value));
    return false;
  };
}

}  // namespace

kv_store::~kv_store() {
  store_in(*this).~basic_kv_store();
}

std::optional<std::string> kv_store::get(std::string_view key) const {
  std::string value;
  return get(key, value) ? std::optional(std::move(value)) : std::nullopt;
}
bool kv_store::get(std::string_view key, std::string& into) const {
  return detail::pool_kv_store::is_key(key) && store_in(*this).get(key, into);
}
bool kv_store::contains(std::string_view key) const {
  return detail::pool_kv_store::is_key(key) && store_in(*this).contains(key);
}
void kv_store::get_many(std::span<const std::string_view> keys, const each_value& each) const {
  store_in(*this).get_many(keys, each);
}
std::optional<kv_time> kv_store::expiry(std::string_view key) const {
  const std::uint64_t at =
      detail::pool_kv_store::is_key(key) ? store_in(*this).expiry(key) : std::uint64_t{0};
  return at == 0 ? std::nullopt : std::optional(detail::kv_time_of_expiry(at));
}

void kv_store::for_each(std::string_view from, std::string_view to, const visit& f) const {
  store_in(*this).for_each(from, to, f);
}
void kv_store::for_each_backward(std::string_view from, std::string_view to, const visit& f) const {
  store_in(*this).for_each_backward(from, to, f);
}
void kv_store::for_each_prefix(std::string_view prefix, const visit& f) const {
  for_each(prefix, detail::end_of_prefix(prefix), f);
}
std::optional<kv_item> kv_store::first(std::string_view from) const {
  std::optional<kv_item> item;
  for_each(from, {}, take_item(item));
  return item;
}
std::optional<kv_item> kv_store::last() const {
  std::optional<kv_item> item;
  for_each_backward({}, {}, take_item(item));
  return item;
}
std::optional<kv_item> kv_store::last_before(std::string_view to) const {
  std::optional<kv_item> item;
  if (to.empty()) return item;
  for_each_backward({}, to, take_item(item));
  return item;
}
std::size_t kv_store::size() const {
  return store_in(*this).size();
}
kv_statistics kv_store::statistics() const {
  return store_in(*this).statistics();
}

void kv_store::put(std::string_view key, std::string_view value) {
  throw_on_error(detail::check_pair(key, value));
  store_in(*this).put(key, value);
}
void kv_store::put_until(std::string_view key, std::string_view value, kv_time when) {
  throw_on_error(detail::check_pair(key, value));
  store_in(*this).put(key, value, detail::expiry_at(when));
}
void kv_store::put_for(std::string_view key, std::string_view value,
                       std::chrono::milliseconds lifetime) {
  throw_on_error(detail::check_pair(key, value));
  const auto expires = detail::expiry_after(lifetime);
  if (!expires) throw failure(expires.error());
  store_in(*this).put(key, value, *expires);
}
void kv_store::put_many(std::span<const kv_pair> pairs) {
  throw_on_error(detail::check_pairs(pairs));
  store_in(*this).put_many(pairs);
}
bool kv_store::erase(std::string_view key) {
  return detail::pool_kv_store::is_key(key) && store_in(*this).erase(key);
}
bool kv_store::put_if(std::string_view key, std::optional<std::string_view> expected,
                      std::string_view value) {
  throw_on_error(detail::check_pair(key, value));
  bool put = false;
  store_in(*this).modify(key, [&](std::optional<std::string>& now) {
    put = now.has_value() == expected.has_value() && (!now || *now == *expected);
    if (put) now = value;
  });
  return put;
}
void kv_store::modify(std::string_view key, const change& f) {
  throw_on_error(detail::check_pair(key, {}));
  store_in(*this).modify(key, [&](std::optional<std::string>& value) {
    f(value);
    if (value) throw_on_error(detail::check_pair(key, *value));
  });
}
std::int64_t kv_store::add(std::string_view key, std::int64_t n) {
  throw_on_error(detail::check_pair(key, {}));
  if (const auto sum = store_in(*this).add(key, n)) return *sum;
  const auto counter = counter_of(get(key).value_or(""));
  throw failure({errc::invalid_argument,
                 counter ? "a counter of " + std::to_string(*counter) + " does not hold " +
                               std::to_string(n) + " more: it has 64 bits with a sign"
                         : "the value of the key is no counter, which has eight bytes: overwrite "
                           "or erase it first"});
}
std::size_t kv_store::remove_expired(std::size_t limit) {
  return store_in(*this).remove_expired(limit);
}

result<> kv_store::check() const {
  return detail::check_store(*this);
}
void kv_store::visit_blocks(const std::function<void(const void*)>& f) const {
  store_in(*this).visit_blocks(f);
}

std::optional<std::int64_t> counter_of(std::string_view value) noexcept {
  std::int64_t counter = 0;
  if (value.size() != sizeof counter) return std::nullopt;
  std::memcpy(&counter, value.data(), sizeof counter);
  return counter;
}

}  // namespace stele
