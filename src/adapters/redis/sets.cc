// Commands on sets.
#include "collections.h"

#include <algorithm>
#include <bit>
#include <set>

namespace stele::redis {

namespace {

constexpr auto kind = item_kind::set;
using texts = std::vector<std::string>;

bool has(const open_key& key, std::string_view member) {
  return look<stored_set>(key, [&](const stored_set& set) { return set.content.contains(member); });
}

result<bool> add(const call& c, open_key& key, std::span<const std::string_view> members) {
  std::size_t bytes = 0;
  for (const std::string_view m : members) bytes += m.size() + bytes_of_element;
  return change<stored_set>(c, key, bytes, [&](stored_set& set) {
    for (const std::string_view m : members)
      if (set.content.insert(m).second) set.count += 1;
    STELE_ASSERT(set.count >= members.size());  // they differ
  });
}
result<bool> remove(const call& c, open_key& key, std::span<const std::string_view> members) {
  return change<stored_set>(c, key, 0, [&](stored_set& set) {
    STELE_ASSERT(members.size() <= set.count);
    for (const std::string_view m : members) {
      const std::size_t erased = set.content.erase(m);
      STELE_ASSERT(erased == 1);  // each is there, and given once
      set.count -= erased;
    }
  });
}

// Those of the arguments from the third on that are in the set, or are not, each once.
std::vector<std::string_view> arguments_that(const call& c, const open_key& key, bool are_there) {
  std::set<std::string_view> found;
  for (int i = 2; i < c.count; ++i)
    if (has(key, c[i]) == are_there) found.insert(c[i]);
  return {found.begin(), found.end()};
}

int sadd(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "SADD", true)) return api::ok;
  const auto fresh = arguments_that(c, key, false);
  if (fresh.empty()) return answer_unchanged(c, key, 0);
  if (auto done = add(c, key, fresh); !done) return answer_error(c, done.error());
  STELE_ASSERT(size_of(key) >= fresh.size());
  replicate(c, "SADD");
  notify(c, kind, "sadd", c.text(1));
  return answer_number(c, static_cast<long long>(fresh.size()));
}

int srem(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "SREM", true)) return api::ok;
  const auto there = arguments_that(c, key, true);
  if (there.empty()) return answer_unchanged(c, key, 0);
  const auto went = remove(c, key, there);
  if (!went) return answer_error(c, went.error());
  STELE_ASSERT(*went == (key.item() == nullptr));
  replicate(c, "SREM");
  notify_taken(c, kind, "srem", c.text(1), *went);
  return answer_number(c, static_cast<long long>(there.size()));
}

int smove(const call& c) {
  open_key from(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, from, kind, "SMOVE", true)) return api::ok;
  open_key to(c, c.text(2), api::for_reading | api::for_writing);
  if (from.exists() && is_wrong_kind(c, to, kind)) return api::ok;
  const std::string_view member = c[3];
  const bool there = has(from, member), same = from.item() == to.item();
  if (!there || same) return answer_unchanged(c, from, there ? 1 : 0);
  const bool is_new = !has(to, member);
  // The addition is first: without room for it nothing has been removed.
  if (is_new)
    if (auto done = add(c, to, {&member, 1}); !done) return answer_error(c, done.error());
  STELE_ASSERT(has(to, member) && from.item() != to.item());
  const auto went = remove(c, from, {&member, 1});
  must(went);
  replicate(c, "SMOVE");
  notify_taken(c, kind, "srem", c.text(1), *went);
  if (is_new) notify(c, kind, "sadd", c.text(2));
  return answer_number(c, 1);
}

int sismember(const call& c) {
  return read_only<stored_set>(c, "SISMEMBER", [&](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, has(key, c[2]));
  });
}
int smismember(const call& c) {
  return read_only<stored_set>(c, "SMISMEMBER", [&](api::context* to, const open_key& key) {
    api::ReplyWithArray(to, c.count - 2);
    for (int i = 2; i < c.count; ++i) api::ReplyWithLongLong(to, has(key, c[i]));
  });
}

void reply_set(api::context* to, const texts& members) {
  api::ReplyWithSet(to, static_cast<long>(members.size()));
  for (const std::string& m : members) reply_text(to, m);
}

texts members_of(const open_key& key) {
  texts all;
  (void)look<stored_set>(key, [&](const stored_set& set) {
    all.reserve(set.count);
    set.content.for_each([&](const auto& member) { all.push_back(member.str()); });
    STELE_ASSERT(all.size() == set.count);
    return true;
  });
  return all;
}

int smembers(const call& c) {
  return read_only<stored_set>(c, "SMEMBERS", [&](api::context* to, const open_key& key) {
    reply_set(to, members_of(key));
  });
}

constexpr long long few = 16;

// Some members at random places of the table; a table that has become much too large is gone
// through instead.
texts random_members(const call& c, const open_key& key, long long count) {
  const auto size = static_cast<long long>(size_of(key));
  if (size == 0 || count == 0) return {};
  texts chosen;
  if (std::abs(count) <= few && size > 4 * few) {
    (void)look<stored_set>(key, [&](const stored_set& set) {
      std::set<std::string> different;
      auto& random = random_numbers();
      const std::uint64_t buckets = set.content.bucket_count();
      STELE_ASSERT(std::has_single_bit(buckets));
      for (int tries = 0; tries < 1000; ++tries) {
        if (static_cast<long long>(chosen.size()) == std::abs(count)) break;
        texts in_bucket;
        (void)set.content.scan(random() & (buckets - 1),
                               [&](const auto& member) { in_bucket.push_back(member.str()); });
        if (in_bucket.empty()) continue;
        std::string& any = in_bucket[random() % in_bucket.size()];
        if (count < 0 || different.insert(any).second) chosen.push_back(std::move(any));
      }
      return true;
    });
    if (static_cast<long long>(chosen.size()) == std::abs(count)) return chosen;
    chosen.clear();
  }
  const texts all = members_of(key);
  for_each_random(c, all.size(), count, [&](auto place) { chosen.push_back(all[place]); });
  STELE_ASSERT(!chosen.empty() && (count < 0 || chosen.size() <= all.size()));
  return chosen;
}

int srandmember(const call& c) {
  const auto how = random_arguments_of(c, nullptr);
  if (!how) return api::ok;
  return read_only<stored_set>(c, "SRANDMEMBER", [&](api::context* to, const open_key& key) {
    if (how->count < -few) {
      const texts all = members_of(key);
      api::ReplyWithArray(to, static_cast<long>(count_of_random(all.size(), how->count)));
      return for_each_random(c, all.size(), how->count,
                             [&](auto place) { reply_text(to, all[place]); });
    }
    const texts chosen = random_members(c, key, how->count);
    if (how->is_single) {
      if (chosen.empty()) return void(api::ReplyWithNull(to));
      return reply_text(to, chosen[0]);
    }
    api::ReplyWithArray(to, static_cast<long>(chosen.size()));
    for (const std::string& m : chosen) reply_text(to, m);
  });
}

// Replicates the removal of these members, which were chosen at random.
void replicate_removal(const call& c, const texts& members, bool went) {
  if (went) {
    replicate_as(c, "DEL", "s", c.text(1));
    return;
  }
  std::vector<std::unique_ptr<own_text>> made;
  std::vector<api::text*> words{c.text(1)};
  for (const std::string& m : members) {
    made.push_back(std::make_unique<own_text>(m));
    words.push_back(made.back()->get());
  }
  replicate_as(c, "SREM", "v", words.data(), words.size());
}

int spop(const call& c) {
  const auto count = pop_count_of(c);
  if (!count) return api::ok;
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "SPOP", true)) return api::ok;
  const texts chosen =
      random_members(c, key, static_cast<long long>(std::min(*count, size_of(key))));
  answer a(c);
  if (chosen.empty()) {
    a.rests_on(key.item());
    if (c.count == 2)
      api::ReplyWithNull(a.to());
    else
      reply_set(a.to(), {});
    return api::ok;
  }
  STELE_ASSERT(chosen.size() == std::min(*count, size_of(key)));
  const std::vector<std::string_view> taken(chosen.begin(), chosen.end());
  const auto went = remove(c, key, taken);
  if (!went) return answer_error(c, went.error());
  replicate_removal(c, chosen, *went && c.count == 3);
  notify_taken(c, kind, "spop", c.text(1), *went);
  a.end_unit();
  if (c.count == 2)
    reply_text(a.to(), chosen[0]);
  else
    reply_set(a.to(), chosen);
  return api::ok;
}

// --- of several sets ---

enum class combination : std::uint8_t { intersection, all, difference };

// The sets of the keys from `first` on; null: answered with an error.
using open_keys = std::vector<std::unique_ptr<open_key>>;
std::optional<open_keys> open_sets(const call& c, int first, int count) {
  open_keys opened;
  STELE_ASSERT(count >= 1 && first + count <= c.count);
  for (int i = first; i < first + count; ++i) {
    opened.push_back(std::make_unique<open_key>(c, c.text(i), api::for_reading));
    if (is_wrong_kind(c, *opened.back(), kind)) return std::nullopt;
  }
  return opened;
}

texts intersect(const open_keys& sets, std::uint64_t most) {
  STELE_ASSERT(!sets.empty() && most != 0);
  const auto smallest =
      std::ranges::min_element(sets, {}, [](const auto& key) { return size_of(*key); });
  texts common;
  for (std::string& m : members_of(**smallest)) {
    if (common.size() == most) break;
    if (std::ranges::all_of(sets, [&](const auto& key) { return has(*key, m); }))
      common.push_back(std::move(m));
  }
  STELE_ASSERT(common.size() <= most && common.size() <= size_of(**smallest));
  return common;
}

texts combine(combination how, const open_keys& sets) {
  if (how == combination::intersection) return intersect(sets, ~std::uint64_t{0});
  STELE_ASSERT(!sets.empty());
  if (how == combination::difference) {
    texts left = members_of(*sets[0]);
    std::erase_if(left, [&](const std::string& m) {
      return std::any_of(sets.begin() + 1, sets.end(),
                         [&](const auto& key) { return has(*key, m); });
    });
    return left;
  }
  std::set<std::string> all;
  for (const auto& key : sets)
    for (std::string& m : members_of(*key)) all.insert(std::move(m));
  return {all.begin(), all.end()};
}

int reply_combined(const call& c, combination how) {
  const auto sets = open_sets(c, 1, c.count - 1);
  if (!sets) return api::ok;
  answer a(c);
  for (const auto& key : *sets) a.rests_on(key->item());
  reply_set(a.to(), combine(how, *sets));
  return api::ok;
}

int store_combined(const call& c, combination how, const char* name, const char* event) {
  texts members;
  {
    const auto sets = open_sets(c, 2, c.count - 2);
    if (!sets) return api::ok;
    members = combine(how, *sets);
  }
  std::vector<element> elements;
  for (std::string& m : members) elements.emplace_back(std::move(m), std::string());
  return store_result(c, c.text(1), kind, elements, name, event);
}

int sintercard(const call& c) {
  const auto keys = integer_of(c[1]);
  if (!keys || *keys < 1)
    return api::ReplyWithError(c.context, "ERR numkeys should be greater than 0");
  if (*keys > c.count - 2)
    return api::ReplyWithError(c.context,
                               "ERR Number of keys can't be greater than number of args");
  const auto count = static_cast<int>(*keys);
  std::uint64_t most = 0;
  if (const char* const wrong = read_limit(c, 2 + count, most))
    return api::ReplyWithError(c.context, wrong);
  const auto sets = open_sets(c, 2, count);
  if (!sets) return api::ok;
  answer a(c);
  for (const auto& key : *sets) a.rests_on(key->item());
  return api::ReplyWithLongLong(a.to(), static_cast<long long>(intersect(*sets, most).size()));
}

int sscan(const call& c) {
  const auto step = [](stored_item* item, std::uint64_t cursor, const element_visit& visit) {
    return as<stored_set>(item).content.scan(cursor,
                                             [&](const auto& member) { visit(member.str(), {}); });
  };
  return scan(c, "SSCAN", kind, step);
}

constexpr command commands[] = {
    {"sismember", sismember, "readonly fast", 1, 1, 1, 3, 3},
    {"smismember", smismember, "readonly fast", 1, 1, 1, 3, 0},
    {"scard", with<reply_size<stored_set>, literal("SCARD")>, "readonly fast", 1, 1, 1, 2, 2},
    {"smembers", smembers, "readonly", 1, 1, 1, 2, 2},
    {"srandmember", srandmember, "readonly", 1, 1, 1, 2, 3},
    {"sscan", sscan, "readonly", 1, 1, 1, 3, 0},
    {"sinter", with<reply_combined, combination::intersection>, "readonly", 1, -1, 1, 2, 0},
    {"sunion", with<reply_combined, combination::all>, "readonly", 1, -1, 1, 2, 0},
    {"sdiff", with<reply_combined, combination::difference>, "readonly", 1, -1, 1, 2, 0},
    {"sintercard", sintercard, "readonly getkeys-api", 0, 0, 0, 3, 0},
    {"sadd", sadd, "write deny-oom fast", 1, 1, 1, 3, 0},
    {"srem", srem, "write fast", 1, 1, 1, 3, 0},
    {"smove", smove, "write fast", 1, 2, 1, 4, 4},
    {"spop", spop, "write fast", 1, 1, 1, 2, 3},
    {"sinterstore",
     with<store_combined, combination::intersection, literal("SINTERSTORE"),
          literal("sinterstore")>,
     "write deny-oom", 1, -1, 1, 3, 0},
    {"sunionstore",
     with<store_combined, combination::all, literal("SUNIONSTORE"), literal("sunionstore")>,
     "write deny-oom", 1, -1, 1, 3, 0},
    {"sdiffstore",
     with<store_combined, combination::difference, literal("SDIFFSTORE"), literal("sdiffstore")>,
     "write deny-oom", 1, -1, 1, 3, 0},
};

}  // namespace

constinit const std::span<const command> set_commands(commands);

}  // namespace stele::redis
