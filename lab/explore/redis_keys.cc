// The workload `redis`: see redis_keys.h.
#include <adapters/redis/keys.h>
#include <adapters/redis/numbers.h>
#include <explore/redis_keys.h>
#include <fmt/format.h>
#include <workloads/value.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stele::explore {

namespace {

using namespace workloads;
using redis::item_kind;
using redis::stored_item;
using kind_of = operation::kind;

constexpr int databases = 2;
constexpr std::size_t bytes_of_part = 40;  // of a string that is made in parts
constexpr std::uint64_t keys_of_database = 6, names = 3;

using elements = std::vector<std::pair<std::string, std::string>>;

// What Redis would have of a key, and the pool of its item: its elements, of a hash and a set in
// the order of their names.
struct content {
  item_kind kind;
  elements all;
  std::int64_t expiry = 0;
};
using keyspace = std::map<std::string, content>;

// A change of a value that is not a string.
struct change {
  item_kind kind;
  bool takes;           // an element
  std::uint64_t where;  // a choice of a place
  std::string name, value;
};

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

item_kind kind_of_key(std::uint64_t number) {
  constexpr item_kind kinds[] = {item_kind::hash, item_kind::list, item_kind::set,
                                 item_kind::sorted_set};
  return kinds[number % std::size(kinds)];
}
change change_of(std::uint64_t key, const operation& op, std::size_t longest) {
  change c{kind_of_key(key), op.b / 8 % 4 == 0, op.b / 32, fmt::format("name {}", op.b % names),
           text_of(op.b, longest)};
  if (c.kind == item_kind::set && op.b % names == 0) c.name = c.value;
  return c;
}
double score_of(const change& c) {
  return static_cast<double>(c.where % 4) / 2;
}

// Both the model and the workload do this with what they have. `Target` has set, alter, rename,
// erase, expire, flush and swap, of a database and a key.
template <class Target>
void run(Target& to, const operation& op, std::size_t longest) {
  const int d = database_of(op);
  const std::uint64_t number = op.a / databases % keys_of_database;
  const std::string key = key_of(number);
  const std::string other = key_of(op.b % keys_of_database);
  switch (op.what) {
    case kind_of::put:
      to.set(d, key, text_of(op.b, longest));
      break;
    case kind_of::insert:
      to.alter(d, key, change_of(number, op, longest));
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
  for (const auto& [first, second] : c.all) all += fmt::format("{}={};", first, second);
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
    all_[d][key] = {item_kind::string, {{text, ""}}, 0};
  }
  void alter(int d, const std::string& key, const change& c) {
    const auto at = all_[d].find(key);
    if (at == all_[d].end() && c.takes) return;
    if (at != all_[d].end() && at->second.kind != c.kind) return;
    content& now = at != all_[d].end() ? at->second : all_[d][key];
    now.kind = c.kind;
    if (c.kind == item_kind::list)
      alter_list(now.all, c);
    else
      alter_named(now.all, c);
    if (now.all.empty()) all_[d].erase(key);
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
  static void alter_list(elements& all, const change& c) {
    const auto at = all.begin() + static_cast<long>(c.where % (all.size() + (c.takes ? 0 : 1)));
    if (c.takes)
      all.erase(at);
    else
      all.insert(at, {c.value, ""});
  }
  static void alter_named(elements& all, const change& c) {
    std::erase_if(all, [&](const auto& e) { return e.first == c.name; });
    if (c.takes) return;
    all.emplace_back(c.name, c.kind == item_kind::hash         ? c.value
                             : c.kind == item_kind::sorted_set ? redis::text_of_score(score_of(c))
                                                               : "");
    std::ranges::sort(all, {}, [&](const auto& e) {
      const double score =
          c.kind == item_kind::sorted_set ? redis::score_of(e.second).value_or(0) : 0;
      return std::pair(score, e.first);
    });
  }

  std::size_t longest_;
  keyspace all_[databases];
};

// In a transaction.
content content_of(stored_item* item) {
  content c{redis::kind_of(item), {}, item->expiry};
  redis::for_each_element(item, [&](std::string_view first, std::string_view second) {
    c.all.emplace_back(first, second);
  });
  if (c.kind == item_kind::hash || c.kind == item_kind::set) std::ranges::sort(c.all);
  return c;
}

// As the commands of the module do it.
void alter_item(stored_item* item, const change& c) {
  redis::as_its_kind(item, [&]<class Stored>(Stored& stored) {
    auto& to = [&]() -> auto& {
      if constexpr (Stored::kind == item_kind::string)
        return stored.value;
      else
        return stored.content;
    }();
    if constexpr (Stored::kind == item_kind::hash) {
      if (c.takes)
        stored.count -= to.erase(c.name);
      else
        stored.count += to.insert_or_assign(c.name, c.value).second ? 1 : 0;
    } else if constexpr (Stored::kind == item_kind::set) {
      if (c.takes)
        stored.count -= to.erase(c.name);
      else
        stored.count += to.insert(c.name).second ? 1 : 0;
    } else if constexpr (Stored::kind == item_kind::list) {
      const std::uint64_t size = to.size(), at = c.where % (size + (c.takes ? 0 : 1));
      if (c.takes)
        to.erase(at);
      else if (at == 0)
        to.push_front(c.value);
      else
        to.insert(at, c.value);
    } else if constexpr (Stored::kind == item_kind::sorted_set) {
      if (!c.takes) {
        to.put(c.name, score_of(c));
      } else if (c.where % 2 == 0) {
        to.erase(c.name);
      } else if (const auto rank = to.rank_of(c.name)) {
        to.erase_ranks(*rank, 1);
      }
    }
  });
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
        redis::as<redis::stored_text>(old).value = text;
        old->expiry = 0;
        keys_->touch(old);
      }));
      return;
    }
    stored_item* item = nullptr;
    if (text.size() > bytes_of_part && !keys_->in_unit()) {
      const auto made = keys_->make_text(
          text.size(), text.size() + bytes_of_part / 2,
          [&](std::size_t at, std::size_t count) { return text.substr(at, count); }, bytes_of_part);
      if (!made) throw failure(made.error());
      item = *made;
      must(keys_->change(key.size(), [&] { keys_->name(item, key, d); }));
    } else {
      must(keys_->change(text.size() + key.size() + 64, [&] {
        item = keys_->add(item_kind::string, key, d);
        redis::as<redis::stored_text>(item).value = text;
      }));
    }
    replace(d, key, item);
  }
  void alter(int d, const std::string& key, const change& c) {
    stored_item* const old = find(d, key);
    if (old == nullptr ? c.takes : !is(old, c.kind)) return;
    const bool copies = old != nullptr && keys_->must_copy(old);
    stored_item* item = old;
    bool is_empty = false;
    must(keys_->change(c.takes && !copies ? 0 : 4096, [&] {
      if (old == nullptr || copies) item = keys_->add(c.kind, key, d);
      if (copies) {
        redis::copy_elements(old, item);
        item->expiry = old->expiry.load();
      }
      alter_item(item, c);
      keys_->touch(item);
      is_empty = redis::count_of(item) == 0;
    }));
    if (item != old) replace(d, key, item);
    if (is_empty) erase(d, key);
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
      if (now->kind != then.kind || now->all != then.all)
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
