// The workload `redis`: see redis_keys.h.
#include <adapters/redis/keys.h>
#include <explore/redis_keys.h>
#include <fmt/format.h>
#include <workloads/value.h>

#include <map>
#include <set>
#include <string>

namespace stele::explore {

namespace {

using namespace workloads;
using redis::item_kind;
using redis::stored_item;
using kind_of = operation::kind;

constexpr int databases = 2;
constexpr std::uint64_t keys_of_database = 6, fields_of_hash = 3;

// What Redis would have of a key, and the pool of its item.
struct content {
  item_kind kind;
  std::string text;  // of a string
  std::map<std::string, std::string> fields;
  std::int64_t expiry = 0;
};
using keyspace = std::map<std::string, content>;

// Choices of an operation.
int database_of(const operation& op) {
  return static_cast<int>(op.a % databases);
}
std::string key_of(std::uint64_t number) {
  // Some are too long to lie in the item.
  return number % 2 == 0 ? fmt::format("k{}", number)
                         : fmt::format("the key of number {:030}", number);
}
std::string text_of(std::uint64_t seed, std::size_t longest) {
  return std::string(1 + seed % longest, static_cast<char>('a' + seed % 26));
}

// Both the model and the workload do this with what they have. `Target` has set, put_field, rename,
// erase, expire, flush and swap, of a database and a key.
template <class Target>
void run(Target& to, const operation& op, std::size_t longest) {
  const int d = database_of(op);
  const std::string key = key_of(op.a / databases % keys_of_database);
  const std::string other = key_of(op.b % keys_of_database);
  switch (op.what) {
    case kind_of::put:
      to.set(d, key, text_of(op.b, longest));
      break;
    case kind_of::insert:
      to.put_field(d, key, fmt::format("field {}", op.b % fields_of_hash), text_of(op.b, longest));
      break;
    case kind_of::swap:
      to.rename(d, key, other);
      break;
    case kind_of::erase:
      to.erase(d, key);
      break;
    case kind_of::append:
      to.expire(d, key, static_cast<std::int64_t>(op.b % 1000));
      break;
    case kind_of::toggle:
      if (op.b % 2 == 0)
        to.flush(d);
      else
        to.swap();
      break;
    default:
      break;
  }
}

std::uint64_t digest_of(int database, const std::string& key, const content& c) {
  std::string all = fmt::format("{} {} {} {} ", database, key, static_cast<int>(c.kind), c.expiry);
  all += c.text;
  for (const auto& [field, value] : c.fields) all += fmt::format("{}={};", field, value);
  return digest_item(0, all.data(), all.size());
}

class keys_model final : public model {
 public:
  explicit keys_model(std::size_t longest) : longest_(longest) {}
  void apply(const operation& op) override { run(*this, op, longest_); }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (int d = 0; d < databases; ++d)
      for (const auto& [key, c] : all_[d]) sum += digest_of(d, key, c);
    return sum;
  }

  void set(int d, const std::string& key, const std::string& text) {
    all_[d][key] = {item_kind::string, text, {}, 0};
  }
  void put_field(int d, const std::string& key, const std::string& field,
                 const std::string& value) {
    content& c = all_[d].try_emplace(key, content{item_kind::hash, {}, {}, 0}).first->second;
    if (c.kind == item_kind::hash) c.fields[field] = value;
  }
  void rename(int d, const std::string& key, const std::string& other) {
    if (key == other || !all_[d].contains(key)) return;
    all_[d][other] = all_[d][key];
    all_[d].erase(key);
  }
  void erase(int d, const std::string& key) { all_[d].erase(key); }
  void expire(int d, const std::string& key, std::int64_t when) {
    if (const auto at = all_[d].find(key); at != all_[d].end()) at->second.expiry = when;
  }
  void flush(int d) { all_[d].clear(); }
  void swap() { std::swap(all_[0], all_[1]); }

 private:
  std::size_t longest_;
  keyspace all_[databases];
};

// In a transaction.
content content_of(stored_item* item) {
  content c{redis::kind_of(item), {}, {}, item->expiry};
  if (c.kind == item_kind::string)
    c.text = redis::text_of(item).value.str();
  else
    redis::hash_of(item).fields.for_each(
        [&](const auto& field, const auto& value) { c.fields[field.str()] = value.str(); });
  return c;
}

// What the module does for the commands, with a keyspace in the place of Redis' own.
class redis_keys final : public workload {
 public:
  explicit redis_keys(const parameters& p) : longest_(p.value_size) {}

  std::string_view name() const override { return "redis"; }
  std::size_t root_size() const override { return sizeof(redis::stored_keys); }
  concurrency policy() const noexcept override { return concurrency::external; }
  void attach(detail::pool_handle handle) override {
    const auto cannot_go_on = [](const error& why) { throw failure(why); };
    auto opened = redis::keys::over(pool<redis::stored_keys>(std::move(handle)), cannot_go_on);
    if (!opened) throw failure(opened.error());
    keys_ = std::move(*opened);
    if (auto done = read_all(); !done) {
      const error why = done.error();
      detach();
      throw failure(why);
    }
  }
  void detach() override {
    child_has_.clear(), has_child_ = false;
    for (auto& space : spaces_) space.clear();
    keys_.reset();
  }
  detail::runtime& core() override { return keys_->content().core(); }
  result<> sync() override {
    if (auto done = keys_->sync(); !done) return std::unexpected(done.error());
    return {};
  }
  void visit_blocks(const block_visit& visit) override {
    const auto done =
        keys_->content().read([&](const redis::stored_keys& root) { root.visit_blocks(visit); });
    if (!done) throw failure(done.error());
  }

  result<> set_up() override { return {}; }

  operation draw(base::rng& random) const override {
    constexpr kind_of kinds[] = {kind_of::put,    kind_of::put,    kind_of::insert,
                                 kind_of::insert, kind_of::insert, kind_of::swap,
                                 kind_of::swap,   kind_of::erase,  kind_of::append,
                                 kind_of::toggle, kind_of::put,    kind_of::read_modify};
    return {kinds[random.below(std::size(kinds))], random.below(64), random() >> 8};
  }

  result<> apply(std::span<const operation> operations) override try {
    for (const operation& op : operations) {
      if (op.what == kind_of::read_modify)
        if (auto done = op.b % 2 == 0 ? begin_child() : end_child(); !done) return done;
      run(*this, op, longest_);
    }
    if (auto done = keys_->end_unit(commit_durability() == durability::durable); !done) return done;
    (void)keys_->sweep();
    return {};
  } catch (const failure& f) {
    return std::unexpected(f.why());
  }

  result<std::uint64_t> digest() override {
    if (auto found = check_child(); !found) return std::unexpected(found.error());
    std::uint64_t sum = 0;
    for (int d = 0; d < databases; ++d)
      for (const auto& [key, item] : spaces_[d]) {
        auto there = keys_->read([&] { return content_of(item); });
        if (!there) return std::unexpected(there.error());
        sum += digest_of(d, key, *there);
      }
    return sum;
  }

  std::unique_ptr<model> make_model() const override {
    return std::make_unique<keys_model>(longest_);
  }

  // As the commands of the module do it.
  void set(int d, const std::string& key, const std::string& text) {
    stored_item* const old = find(d, key);
    if (old != nullptr && is(old, item_kind::string) && !keys_->must_copy(old)) {
      must(keys_->change(text.size() + 64, [&] {
        redis::text_of(old).value = text;
        old->expiry = 0;
        keys_->touch(old);
      }));
      return;
    }
    stored_item* item = nullptr;
    must(keys_->change(text.size() + key.size() + 64, [&] {
      item = keys_->add(item_kind::string, key, d);
      redis::text_of(item).value = text;
    }));
    replace(d, key, item);
  }
  void put_field(int d, const std::string& key, const std::string& field,
                 const std::string& value) {
    stored_item* const old = find(d, key);
    if (old != nullptr && !is(old, item_kind::hash)) return;
    const auto put = [&](redis::stored_hash& h) {
      h.count += h.fields.insert_or_assign(field, value).second ? 1 : 0;
    };
    if (old != nullptr && !keys_->must_copy(old)) {
      must(keys_->change(512, [&] {
        put(redis::hash_of(old));
        keys_->touch(old);
      }));
      return;
    }
    stored_item* item = nullptr;
    must(keys_->change(2048, [&] {
      item = keys_->add(item_kind::hash, key, d);
      if (old != nullptr) {
        redis::hash_of(old).fields.for_each([&](const auto& f, const auto& v) {
          redis::hash_of(item).fields.insert(f.str(), v.str());
        });
        redis::hash_of(item).count = redis::hash_of(old).count.load();
        item->expiry = old->expiry.load();
      }
      put(redis::hash_of(item));
    }));
    replace(d, key, item);
  }
  void rename(int d, const std::string& key, const std::string& other) {
    stored_item* const item = find(d, key);
    if (key == other || item == nullptr) return;
    erase(d, other);
    keys_->note_unlinked(item);
    must(keys_->rename(item, other, d));
    spaces_[d].erase(key);
    spaces_[d][other] = item;
  }
  void erase(int d, const std::string& key) {
    if (stored_item* const item = find(d, key); item != nullptr) keys_->note_unlinked(item);
    spaces_[d].erase(key);
  }
  void expire(int d, const std::string& key, std::int64_t when) {
    if (stored_item* const item = find(d, key); item != nullptr)
      must(keys_->set_expiry(item, when));
  }
  void flush(int d) {
    must(keys_->flush(d));
    spaces_[d].clear();
  }
  void swap() {
    must(keys_->swap(0, 1));
    std::swap(spaces_[0], spaces_[1]);
  }

 private:
  static void must(const result<>& done) {
    if (!done) throw failure(done.error());
  }
  // Not by a plain load: home may not have what an ordered commit has stored.
  bool is(stored_item* item, item_kind kind) {
    return keys_->read([&] { return redis::kind_of(item) == kind; }).value_or(false);
  }
  stored_item* find(int d, const std::string& key) const {
    const auto at = spaces_[d].find(key);
    return at == spaces_[d].end() ? nullptr : at->second;
  }
  void replace(int d, const std::string& key, stored_item* item) {
    erase(d, key);
    spaces_[d][key] = item;
  }
  // As the server, when it starts.
  result<> read_all() {
    std::string twice;
    auto done = keys_->read([&] {
      keys_->for_each([&](stored_item* item) {
        const int d = keys_->root().database_of(item->keyspace);
        if (d < 0) return keys_->note_garbage();
        if (!spaces_[d].emplace(item->key.str(), item).second) twice = item->key.str();
      });
    });
    if (done && !twice.empty())
      return std::unexpected(error{errc::corrupt, "the key \"" + twice + "\" is there twice"});
    return done;
  }

  // A child sees the items that were there at its begin.
  result<> begin_child() {
    if (has_child_) return {};
    if (auto done = keys_->end_unit(true); !done) return done;
    has_child_ = true;
    keys_->begin_child();
    for (const auto& space : spaces_)
      for (const auto& [key, item] : space)
        if (auto there = keys_->read([&] { return content_of(item); }); there)
          child_has_[item] = *there;
    return {};
  }
  result<> end_child() {
    if (!has_child_) return {};
    if (auto found = check_child(); !found) return found;
    if (auto done = keys_->end_unit(true); !done) return done;
    has_child_ = false;
    child_has_.clear();
    keys_->end_child();
    return {};
  }
  // Expiry times may differ: the child takes them from Redis, not from the item.
  result<> check_child() {
    std::set<stored_item*> there;
    (void)keys_->read([&] { keys_->for_each([&](stored_item* item) { there.insert(item); }); });
    for (const auto& [item, then] : child_has_) {
      if (!there.contains(item))
        return std::unexpected(
            error{errc::corrupt, "a value that a child that saves may read has been freed"});
      const auto now = keys_->read([&, item = item] { return content_of(item); });
      if (!now) return std::unexpected(now.error());
      if (now->kind != then.kind || now->text != then.text || now->fields != then.fields)
        return std::unexpected(
            error{errc::corrupt, "a child that saves finds a value that has changed since"});
    }
    return {};
  }

  const std::size_t longest_;
  std::unique_ptr<redis::keys> keys_;
  std::map<std::string, stored_item*> spaces_[databases];
  bool has_child_ = false;
  std::map<stored_item*, content> child_has_;
};

}  // namespace

std::unique_ptr<workloads::workload> make_redis_keys(const workloads::parameters& p) {
  return std::make_unique<redis_keys>(p);
}

}  // namespace stele::explore
