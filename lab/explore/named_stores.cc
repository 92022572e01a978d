// The workload `stores`: see named_stores.h.
#include <containers/kv_clock.h>
#include <explore/named_stores.h>
#include <workloads/on_kv.h>
#include <workloads/store.h>

#include <array>
#include <map>
#include <optional>

namespace stele::explore {

namespace {

using namespace workloads;
using kind_of = operation::kind;

constexpr std::array<std::string_view, 3> names = {"", "first", "second"};

// Items expire in the year 2200, unless the clock says the year 2300.
constexpr std::uint64_t expires_ms = 7'258'118'400'000, later_ms = 10'413'792'000'000;
std::uint64_t late_clock() noexcept {
  return later_ms;
}
kv_time expiry_time() {
  return kv_time(std::chrono::milliseconds(expires_ms));
}

// What an operation does: `a` is a key, the low bits of `b` choose a store, all of `b` the value.
//   put, insert: an item that stays, one that expires;  erase;
//   swap: the item moves to the next store, over one that is there;
//   append: removes what expires from a store;  toggle: drops a store, or empties the unnamed one
std::size_t store_of(const operation& op) {
  return op.b % names.size();
}
std::size_t next_store(const operation& op) {
  return (op.b + 1) % names.size();
}

std::uint64_t digest_of(std::size_t store, std::string_view key, std::string_view value,
                        bool expires) {
  return digest_item(detail::hash_bytes(key.data(), key.size()) + 2 * store + (expires ? 1 : 0),
                     value.data(), value.size());
}

class stores_model final : public model {
 public:
  explicit stores_model(const parameters& p) : value_size_(p.value_size) {
    (void)store::fill(p, [&](std::uint64_t number, std::uint64_t word) -> result<> {
      stores_[0][number] = {word, false};
      return {};
    });
  }

  void apply(const operation& op) override {
    auto& items = stores_[store_of(op)];
    if (op.what == kind_of::put) items[op.a] = {op.b, false};
    if (op.what == kind_of::insert) items[op.a] = {op.b, true};
    if (op.what == kind_of::erase) items.erase(op.a);
    if (op.what == kind_of::append)
      std::erase_if(items, [](const auto& i) { return i.second.expires; });
    if (op.what == kind_of::toggle) items.clear();
    if (op.what == kind_of::swap)
      if (const auto found = items.find(op.a); found != items.end()) {
        stores_[next_store(op)][op.a] = found->second;
        items.erase(op.a);
      }
  }

  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    std::string value;
    for (std::size_t s = 0; s < stores_.size(); ++s)
      for (const auto& [number, i] : stores_[s])
        sum +=
            digest_of(s, store::key(number), store::value(i.word, value_size_, value), i.expires);
    return sum;
  }

 private:
  struct item {
    std::uint64_t word;
    bool expires;
  };
  std::size_t value_size_;
  std::array<std::map<std::uint64_t, item>, names.size()> stores_;
};

class named_stores final : public workload_on_kv {
 public:
  explicit named_stores(const parameters& p) : keys_(p) {}

  std::string_view name() const override { return "stores"; }

  result<> set_up() override {
    return store::fill(keys_.params(), [&](std::uint64_t number, std::uint64_t word) {
      std::string buffer;
      return kv_->put(store::key(number), store::value(word, keys_.params().value_size, buffer));
    });
  }

  operation draw(base::rng& random) const override {
    constexpr kind_of kinds[] = {kind_of::put,  kind_of::put,   kind_of::insert, kind_of::insert,
                                 kind_of::swap, kind_of::erase, kind_of::append, kind_of::toggle};
    const std::uint64_t number = keys_.draw(random);
    return {kinds[random.below(std::size(kinds))], number, random()};
  }

  // Each operation is a transaction; that which makes a store, and those which free the space of a
  // dropped one, change nothing that the digest tells.
  result<> apply(std::span<const operation> operations) override {
    for (const operation& op : operations)
      if (auto done = apply_one(op); !done) return done;
    return {};
  }

  result<std::uint64_t> digest() override {
    if (auto ok = kv_->check(); !ok) return std::unexpected(std::move(ok.error()));
    std::uint64_t sum = 0;
    for (std::size_t s = 0; s < names.size(); ++s) {
      const auto add = [&](const kv_store& v) {
        std::uint64_t part = 0;
        v.for_each({}, {}, [&](std::string_view key, std::string_view value) {
          part += digest_of(s, key, value, v.expiry(key) == expiry_time());
          return true;
        });
        return part;
      };
      auto store = opened(s, kv::if_missing::refuse);
      if (!store && store.error().code == errc::not_found) continue;
      const auto part = store ? (*store)->read(add) : std::unexpected(store.error());
      if (!part) return part;
      sum += *part;
    }
    return sum;
  }

  std::unique_ptr<model> make_model() const override {
    return std::make_unique<stores_model>(keys_.params());
  }

 private:
  // A store while it is in use: nothing else may drop it then.
  class open_one {
   public:
    explicit open_one(kv* unnamed) : at_(unnamed) {}
    explicit open_one(kv&& named) : named_(std::move(named)) {}
    kv* operator->() { return at_ != nullptr ? at_ : &*named_; }

   private:
    std::optional<kv> named_;
    kv* at_ = nullptr;
  };
  result<open_one> opened(std::size_t s, kv::if_missing how = kv::if_missing::create) {
    if (s == 0) return open_one(&*kv_);
    auto named = kv_->open_store(names[s], how);
    if (!named) return std::unexpected(named.error());
    return open_one(std::move(*named));
  }

  result<> apply_one(const operation& op) {
    if (op.what == kind_of::toggle) return drop(store_of(op));
    auto in = opened(store_of(op));
    if (!in) return std::unexpected(in.error());
    const store::key key(op.a);
    std::string buffer;
    const auto value = store::value(op.b, keys_.params().value_size, buffer);
    if (op.what == kind_of::put) return (*in)->put(key, value, commit_durability());
    if (op.what == kind_of::insert)
      return (*in)->put_until(key, value, expiry_time(), commit_durability());
    if (op.what == kind_of::erase) return without_value((*in)->erase(key, commit_durability()));
    if (op.what == kind_of::append) {
      detail::set_kv_clock(late_clock);
      auto removed = (*in)->remove_expired(keys_.size());
      detail::set_kv_clock(nullptr);
      return without_value(std::move(removed));
    }
    return move(*in, op);
  }

  result<> move(open_one& from, const operation& op) {
    auto to = opened(next_store(op));
    if (!to) return std::unexpected(to.error());
    const store::key key(op.a);
    return from->update(
        [&](kv::changes& c) -> result<> {
          const auto value = c.get(key);
          if (!value) return {};
          const auto expires = c.expiry(key);
          c.erase(key);
          return expires ? (*to)->put_until(key, *value, *expires) : (*to)->put(key, *value);
        },
        commit_durability());
  }

  result<> drop(std::size_t s) {
    if (s != 0) {
      auto dropped = kv_->drop_store(names[s]);
      if (!dropped && dropped.error().code == errc::not_found) return {};
      return dropped;
    }
    return kv_->update(
        [](kv::changes& c) {
          while (const auto one = c.first()) c.erase(one->key);
        },
        commit_durability());
  }

  key_space keys_;
};

}  // namespace

std::unique_ptr<workloads::workload> make_named_stores(const workloads::parameters& p) {
  return std::make_unique<named_stores>(p);
}

}  // namespace stele::explore
