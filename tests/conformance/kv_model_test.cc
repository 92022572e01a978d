// Key-value stores beside std::map: a store without a name and two named ones get random changes,
// and after some of them every way to read shows what the maps hold.
//
// The keys share parts of 7 to 9 bytes, begin with each other, differ in a last zero byte or in any
// last byte; the values fill from nothing to a few pages; times to expire come again and again, and
// have parts of a millisecond. Between the changes the clock goes on, stores are dropped and made
// again, the pool is opened again or compacted.
//
// The first round is always of the same seed. STELE_SEED repeats a run, STELE_KV_ROUNDS makes more
// of them.
#include <base/rng.h>
#include <containers/content_copy.h>
#include <containers/kv_clock.h>
#include <containers/kv_limits.h>
#include <stele/kv.h>
#include <stele/leaks.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>

namespace stele::testing {
namespace modelled_kv {

constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint64_t noon = 1'700'000'000'000;

struct item {
  std::string value;
  std::uint64_t expires = never;  // the first millisecond in which it is gone
};
using items = std::map<std::string, item>;
using plain_items = std::vector<kv_item>;

std::atomic<std::uint64_t> now_ms;
std::uint64_t clock_of_test() noexcept {
  return now_ms;
}
kv_time time_of(std::uint64_t ms) {
  return kv_time(std::chrono::milliseconds(ms));
}

template <class R>
auto sure(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

// --- what is put ---

std::string key_of(base::rng& r) {
  static constexpr const char* stems[] = {"",          "sevenby",      "eightbyt", "ninebytes",
                                          "sevenbyAB", "sevenbyABCDE", "\xFF\xFF", "ninebytes\xFF"};
  std::string key = stems[r.below(std::size(stems))];
  switch (r.below(4)) {
    case 0:  // many that differ in one byte
      return key += static_cast<char>(r.below(100));
    case 1:  // a key, and it with zero bytes behind
      return (key += static_cast<char>('a' + r.below(20))).append(r.below(4), '\0');
    case 2:
      for (std::uint64_t n = 1 + r.below(3); n != 0; --n) key += "\0\x01\xFFz"[r.below(4)];
      return key;
    default:
      return key.empty() ? "alone" : key;
  }
}
std::string value_of(base::rng& r) {
  const std::uint64_t choice = r.below(24);
  const std::size_t size = choice == 0 ? 0 : choice == 1 ? r.below(9'000) : r.below(60);
  return std::string(size, static_cast<char>('a' + r.below(26)));
}

// --- what is read ---

plain_items plain(items::const_iterator from, items::const_iterator to) {
  plain_items all;
  for (; from != to; ++from) all.push_back({from->first, from->second.value});
  return all;
}
plain_items reversed(plain_items all) {
  std::ranges::reverse(all);
  return all;
}
// The items with from <= key < to; an empty `to` is no bound.
plain_items between(const items& m, const std::string& from, const std::string& to) {
  const auto begin = m.lower_bound(from), end = to.empty() ? m.end() : m.lower_bound(to);
  return !to.empty() && to <= from ? plain_items() : plain(begin, end);
}
plain_items with_prefix(const items& m, const std::string& prefix) {
  plain_items all;
  for (auto at = m.lower_bound(prefix); at != m.end() && at->first.starts_with(prefix); ++at)
    all.push_back({at->first, at->second.value});
  return all;
}

// The items from where the cursor goes by its first call on, in one direction.
template <class First>
plain_items rest_of(kv::cursor c, bool backward, First&& first) {
  plain_items all;
  for (bool on = sure(first(c)); on; on = sure(backward ? c.prev() : c.next()))
    all.push_back({c.key(), c.value()});
  return all;
}
template <class Walk>
plain_items collected(const kv& s, Walk&& walk) {
  plain_items all;
  sure(s.read([&](const kv::view& v) {
    all.clear();
    walk(v, [&](std::string_view key, std::string_view value) {
      all.push_back({std::string(key), std::string(value)});
      return true;
    });
  }));
  return all;
}

void expect_single_reads(const kv& s, const items& m, const std::string& key) {
  SCOPED_TRACE("of one key of " + std::to_string(key.size()) + " bytes");
  const auto found = m.find(key);
  const bool there = found != m.end();
  const auto value = there ? std::optional(found->second.value) : std::nullopt;
  std::string into = "as it was";
  EXPECT_EQ(sure(s.get(key)), value);
  EXPECT_EQ(sure(s.get(key, into)), there);
  EXPECT_EQ(into, value.value_or("as it was"));
  EXPECT_EQ(sure(s.contains(key)), there);
  sure(s.read([&](const kv::view& v) {
    EXPECT_EQ(v.get(key), value);
    EXPECT_EQ(v.contains(key), there);
    const auto expires = v.expiry(key);
    EXPECT_EQ(expires.has_value(), there && found->second.expires != never);
    if (expires && there) {
      EXPECT_EQ(*expires, time_of(found->second.expires));
    }
    const auto after = m.lower_bound(key);
    const auto first = v.first(key), before = v.last_before(key);
    EXPECT_EQ(first.has_value(), after != m.end());
    EXPECT_EQ(before.has_value(), !key.empty() && after != m.begin());
    if (first && after != m.end()) {
      EXPECT_EQ(*first, (kv_item{after->first, after->second.value}));
    }
    if (before && after != m.begin()) {
      EXPECT_EQ(*before, (kv_item{std::prev(after)->first, std::prev(after)->second.value}));
    }
  }));
}

void expect_walks(const kv& s, const items& m, const std::string& from, const std::string& to,
                  const std::string& at) {
  const plain_items all = between(m, from, to);
  const auto next = [](kv::cursor& c) { return c.next(); };
  const auto prev = [](kv::cursor& c) { return c.prev(); };
  EXPECT_EQ(sure(s.range(from, to, m.size() + 1)), all);
  EXPECT_EQ(
      collected(s, [&](const kv::view& v, const kv_store::visit& f) { v.for_each(from, to, f); }),
      all);
  EXPECT_EQ(collected(s, [&](const kv::view& v,
                             const kv_store::visit& f) { v.for_each_backward(from, to, f); }),
            reversed(all));
  EXPECT_EQ(rest_of(s.walk(from, to), false, next), all);
  EXPECT_EQ(rest_of(s.walk(from, to), true, prev), reversed(all));
  const auto not_less = std::ranges::lower_bound(all, at, {}, &kv_item::key);
  EXPECT_EQ(rest_of(s.walk(from, to), false, [&](kv::cursor& c) { return c.seek(at); }),
            plain_items(not_less, all.end()));
  EXPECT_EQ(rest_of(s.walk(from, to), true, [&](kv::cursor& c) { return c.seek_before(at); }),
            reversed(at.empty() ? plain_items() : plain_items(all.begin(), not_less)));
  const plain_items begun = with_prefix(m, from);
  EXPECT_EQ(rest_of(s.walk_prefix(from), false, next), begun);
  EXPECT_EQ(rest_of(s.walk_prefix(from), true, prev), reversed(begun));
  EXPECT_EQ(collected(s, [&](const kv::view& v,
                             const kv_store::visit& f) { v.for_each_prefix(from, f); }),
            begun);
}

void expect_many_gets(const kv& s, const items& m, base::rng& r) {
  std::vector<std::string> keys(r.below(60));
  for (std::string& key : keys) key = key_of(r);
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<std::optional<std::string>> values(keys.size());
  sure(s.get_many(
      views, [&](std::size_t i, std::optional<std::string_view> value) { values[i] = value; }));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = m.find(keys[i]);
    EXPECT_EQ(values[i], found == m.end() ? std::nullopt : std::optional(found->second.value));
  }
}

// A cursor that turns and jumps, beside a place in the items of its bounds.
void expect_turns(const kv& s, const items& m, const std::string& from, const std::string& to,
                  base::rng& r) {
  const plain_items all = between(m, from, to);
  kv::cursor c = s.walk(from, to);
  const auto end = static_cast<std::int64_t>(all.size());
  std::int64_t at = -1;  // -1: before the first; end: behind the last
  bool fresh = true;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t how = r.below(12);
    bool on = false;
    if (how < 2) {
      const std::string key = key_of(r);
      const auto not_less = std::ranges::lower_bound(all, key, {}, &kv_item::key) - all.begin();
      on = sure(how == 0 ? c.seek(key) : c.seek_before(key));
      at = how == 0 ? not_less : not_less - 1;
    } else if (how < (i % 20 < 10 ? 6u : 9u)) {
      on = sure(c.next());
      at = std::min(at + 1, end);
    } else {
      on = sure(c.prev());
      at = fresh ? end - 1 : std::max<std::int64_t>(at - 1, -1);
    }
    fresh = false;
    ASSERT_EQ(on, at >= 0 && at < end) << i;
    if (on) {
      ASSERT_EQ((kv_item{c.key(), c.value()}), all[static_cast<std::size_t>(at)]) << i;
    }
  }
}

void expect_reads(const kv& s, const items& m, base::rng& r) {
  const auto bound = [&] { return r.below(3) == 0 ? std::string() : key_of(r); };
  EXPECT_EQ(sure(s.size()), m.size());
  for (int i = 0; i < 4; ++i) expect_single_reads(s, m, key_of(r));
  expect_many_gets(s, m, r);
  for (int i = 0; i < 2; ++i) {
    const std::string from = bound(), to = bound(), at = bound();
    SCOPED_TRACE("a walk from " + from + " to " + to + ", at " + at);
    expect_walks(s, m, from, to, at);
    expect_turns(s, m, from, to, r);
  }
}

// --- what changes ---

class kv_model : public ::testing::TestWithParam<std::string> {
 protected:
  struct named {
    std::string name;
    std::optional<kv> store;
    items model;
  };

  kv_model() {
    now_ms = noon;
    detail::set_kv_clock(clock_of_test);
  }
  ~kv_model() override { detail::set_kv_clock(nullptr); }

  pool_options options() const {
    return {.create_size = pool_bytes, .engine = {.mechanism = GetParam(), .media = "process"}};
  }
  static constexpr std::size_t pool_bytes = std::size_t{16} << 20;
  void open() {
    stores_[0].store.emplace(sure(kv::open(path_, options())));
    for (std::size_t i = 1; i < 3; ++i) open_named(stores_[i]);
  }
  void open_named(named& n) { n.store.emplace(sure(stores_[0].store->open_store(n.name))); }
  void close() {
    for (std::size_t i = 3; i-- > 0;) stores_[i].store.reset();
  }
  void pass_time(std::uint64_t ms) {
    now_ms += ms;
    for (named& n : stores_)
      std::erase_if(n.model, [](const auto& i) { return i.second.expires <= now_ms; });
  }
  durability how() { return random_.below(3) == 0 ? durability::durable : durability::ordered; }
  // A time that other items have too; the model's is the next whole millisecond.
  std::pair<kv_time, std::uint64_t> some_time() {
    const std::uint64_t ms = (now_ms / 64 + 1 + random_.below(3)) * 64;
    const std::uint64_t part = random_.below(3) == 0 ? 1 + random_.below(999) : 0;
    return {time_of(ms) + std::chrono::microseconds(part), ms + (part != 0)};
  }

  void put_or_erase(named& n, const std::string& key) {
    const std::string value = value_of(random_);
    switch (random_.below(5)) {
      case 0:
        ASSERT_EQ(sure(n.store->erase(key, how())), n.model.erase(key) == 1);
        break;
      case 1:
        sure(n.store->put(key, value, how()));
        n.model[key] = {value};
        break;
      case 2: {
        const std::uint64_t lifetime = 1 + random_.below(200);
        sure(n.store->put_for(key, value, std::chrono::milliseconds(lifetime), how()));
        n.model[key] = {value, now_ms + lifetime};
        break;
      }
      case 3: {
        const auto [when, expires] = some_time();
        sure(n.store->put_until(key, value, when, how()));
        n.model[key] = {value, expires};
        break;
      }
      default:
        sure(n.store->put_until(key, value, time_of(now_ms - random_.below(3)), how()));
        n.model.erase(key);  // its time has come
    }
  }
  void change_by_value(named& n, const std::string& key) {
    const auto found = n.model.find(key);
    const auto before = found == n.model.end() ? std::nullopt : std::optional(found->second.value);
    const std::string value = value_of(random_);
    if (random_.below(2) == 0) {
      const auto expected = expectation(before);
      const bool fits = expected == before;
      ASSERT_EQ(sure(n.store->put_if(key, expected, value, how())), fits);
      if (fits) n.model[key].value = value;
      return;
    }
    const std::uint64_t change = random_.below(3);
    sure(n.store->modify(
        key,
        [&](std::optional<std::string>& v) {
          EXPECT_EQ(v, before);
          if (change == 0) v.reset();
          if (change == 1) v = v.value_or("") + "more";
          if (change == 2) v = value;
        },
        how()));
    if (change == 0) n.model.erase(key);
    if (change == 1) n.model[key].value += "more";
    if (change == 2) n.model[key].value = value;
  }
  // The value, or one that is nearly it.
  std::optional<std::string> expectation(const std::optional<std::string>& value) {
    switch (random_.below(5)) {
      case 0:
        return std::nullopt;
      case 1:
        return value.value_or("").substr(0, value.value_or("").size() / 2);
      case 2:
        return value.value_or("") + "x";
      default:
        return value;
    }
  }
  void count(named& n) {
    const std::string key = "counter " + std::to_string(random_.below(5));
    const auto add = static_cast<std::int64_t>(random_.below(100)) - 50;
    if (!n.model.contains(key) && random_.below(2) == 0) {
      const auto [when, expires] = some_time();
      sure(n.store->put_until(key, std::string(8, '\0'), when, how()));
      n.model[key] = {std::string(8, '\0'), expires};
    }
    item& i = n.model[key];
    const std::int64_t sum = (i.value.empty() ? 0 : counter_of(i.value).value()) + add;
    ASSERT_EQ(sure(n.store->add(key, add, how())), sum);
    i.value.assign(reinterpret_cast<const char*>(&sum), sizeof sum);
  }
  void change_many(named& n) {
    kv::batch batch;
    plain_items put(random_.below(40));
    const bool in_batch = random_.below(2) == 0;
    for (kv_item& i : put) {
      i = {key_of(random_), value_of(random_)};
      batch.put(i.key, i.value);
      n.model[i.key] = {i.value};
      if (!in_batch || random_.below(3) != 0) continue;
      const std::string erased = key_of(random_);
      batch.erase(erased);
      n.model.erase(erased);
    }
    std::vector<kv_pair> pairs;
    for (const kv_item& i : put) pairs.push_back({i.key, i.value});
    sure(in_batch ? n.store->write(batch, how()) : n.store->put_many(pairs, how()));
  }
  // Changes of all stores in one transaction that is rolled back, and tells what it has changed.
  void roll_back() {
    const std::string key = key_of(random_);
    const auto undone = stores_[0].store->update([&](kv::changes& c) {
      c.put(key, "lost");
      for (int i = 0; i < 10; ++i) (void)c.erase(key_of(random_));
      sure(stores_[1].store->put_for(key, "lost", std::chrono::milliseconds(5)));
      cancel("on purpose");
    });
    ASSERT_FALSE(undone);
  }
  void drop_and_make(named& n) {
    n.store.reset();
    if (random_.below(2) == 0) sure(stores_[0].store->drop_store(n.name)), n.model.clear();
    open_named(n);
  }
  void change() {
    named& n = stores_[random_.below(3)];
    const std::uint64_t which = random_.below(100);
    if (which < 45)
      put_or_erase(n, key_of(random_));
    else if (which < 70)
      change_by_value(n, key_of(random_));
    else if (which < 80)
      count(n);
    else if (which < 86)
      change_many(n);
    else if (which < 90)
      roll_back();
    else if (which < 92 && &n != &stores_[0])
      drop_and_make(n);
    else
      pass_time(random_.below(40));
  }

  // --- what is compared ---

  void compare_all(const char* when) {
    SCOPED_TRACE(when);
    for (const named& n : stores_) {
      SCOPED_TRACE("store '" + n.name + "'");
      expect_reads(*n.store, n.model, random_);
      EXPECT_TRUE(succeeds(n.store->check()));
      if (HasFailure()) return;
    }
  }
  void compare_what_is_left() {
    for (const named& n : stores_) {
      std::uint64_t expiring = 0, bytes = 0;
      for (const auto& [key, i] : n.model) {
        expiring += i.expires != never;
        bytes += key.size() + i.value.size();
      }
      const std::uint64_t removed = sure(stores_[&n - stores_].store->remove_expired(100'000));
      const kv_statistics s = sure(n.store->statistics());
      EXPECT_EQ(s.items, n.model.size()) << "after " << removed << " were removed";
      EXPECT_EQ(s.expiring_items, expiring);
      EXPECT_EQ(s.expired_items, 0u);
      EXPECT_EQ(s.key_bytes + s.value_bytes, bytes);
    }
    const auto leaks = detail::find_leaks(
        stores_[0].store->core(), root(),
        [&](const block_visitor& visit) { stores_[0].store->visit_blocks(visit); });
    ASSERT_TRUE(succeeds(leaks));
    EXPECT_TRUE(leaks->leaked.empty() && leaks->dangling.empty());
  }
  const void* root() const {
    const void* at = nullptr;
    sure(stores_[0].store->read([&](const kv::view& v) { at = &v; }));
    return at;
  }
  void compare_elsewhere() {
    if (GetParam() == "log_structured") return;
    const kv reader = sure(kv::open_read_only(path_));
    SCOPED_TRACE("another that reads");
    expect_reads(reader, stores_[0].model, random_);
  }
  void compact() {
    close();
    const auto copied = detail::copy_content(path_, path_ + ".copy", {.size_bytes = pool_bytes});
    ASSERT_TRUE(copied.has_value()) << copied.error().message;
    std::filesystem::rename(path_ + ".copy", path_);
    open();
    for (const named& n : stores_) EXPECT_EQ(sure(n.store->statistics()).items, n.model.size());
  }
  void begin_again() {
    if (random_.below(3) == 0) return compact();
    close();
    open();
  }

  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  base::rng random_{0};
  named stores_[3] = {{"", {}, {}}, {"one", {}, {}}, {"two", {}, {}}};
};
INSTANTIATE_TEST_SUITE_P(all, kv_model,
                         ::testing::ValuesIn(known_of({"default", "undo", "log_structured"})),
                         plain_name);

TEST_P(kv_model, agrees_with_every_way_to_read) {
  const std::uint64_t rounds = count_from("STELE_KV_ROUNDS", budget::sanitized ? 1 : 2);
  const std::uint64_t seed = seed_from("STELE_SEED");
  const bool repeats = std::getenv("STELE_SEED") != nullptr;
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    const std::uint64_t drawn = round == 0 && !repeats ? 1 : seed + round;
    SCOPED_TRACE("STELE_SEED=" + std::to_string(drawn));
    random_ = base::rng(drawn);
    std::filesystem::remove(path_);
    for (named& n : stores_) n.model.clear();
    open();
    for (int i = 0; i < 1600 && !HasFailure(); ++i) {
      change();
      if (random_.below(32) == 0) compare_all("between changes");
      if (i % 200 == 99) begin_again(), compare_all("opened again");
      if (i % 200 == 199) compare_what_is_left(), compare_elsewhere();
    }
    close();
  }
}

// A crash between the two steps of drop_store() leaves stores that have lost their names.
TEST_P(kv_model, gives_back_the_space_of_stores_whose_drop_was_interrupted) {
  for (const std::uint64_t dropped : {1, 2, 3}) {
    SCOPED_TRACE(dropped);
    std::filesystem::remove(path_);
    std::size_t before = 0;
    const auto blocks = [&] {
      std::size_t count = 0;
      kv& s = *stores_[0].store;
      sure(s.read([&](const kv::view&) { s.visit_blocks([&](const void*) { ++count; }); }));
      return count;
    };
    {
      open();
      before = blocks();
      for (std::uint64_t i = 0; i < dropped; ++i) {
        auto brief = sure(stores_[0].store->open_store("brief " + std::to_string(i)));
        for (int k = 0; k < 150; ++k) sure(brief.put(std::to_string(k), "value"));
      }
      auto& store =
          const_cast<detail::pool_kv_store&>(*static_cast<const detail::pool_kv_store*>(root()));
      for (std::uint64_t i = 0; i < dropped; ++i)
        sure(stores_[0].store->update(
            [&](kv::changes&) { EXPECT_TRUE(store.stores().drop("brief " + std::to_string(i))); }));
      EXPECT_EQ(sure(stores_[0].store->stores()), (std::vector<std::string>{"one", "two"}));
      EXPECT_GT(blocks(), before + dropped * 150);
      EXPECT_TRUE(succeeds(stores_[0].store->check()));
      close();
    }
    open();
    EXPECT_LT(blocks(), before + 10);
    EXPECT_TRUE(succeeds(stores_[0].store->check()));
    close();
  }
}

}  // namespace modelled_kv
}  // namespace stele::testing
