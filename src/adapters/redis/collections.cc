// What commands on hashes, lists, sets and sorted sets have in common.
#include "collections.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "boundary.h"
#include "replies.h"

namespace stele::redis {

namespace {

// What a table inside the value may take more when it grows. It does so at two items in some
// buckets, which half as many in the mean may be where others are not split off yet.
std::size_t growth_of(stored_item* item) {
  return as_its_kind(item, []<class Stored>(Stored& stored) -> std::size_t {
    if constexpr (Stored::kind == item_kind::hash || Stored::kind == item_kind::set)
      return 2 * stored.count >= stored.content.bucket_count() ? stored.content.bucket_count() * 16
                                                               : 0;
    else if constexpr (Stored::kind == item_kind::sorted_set)
      return stored.content.size() * 16;
    else
      return 0;
  });
}

}  // namespace

result<bool> change_item(const call& c, open_key& key, item_kind kind, std::size_t bytes,
                         const std::function<void(stored_item*)>& body) {
  keys& all = *c.server.keys;
  stored_item* const before = key.item();
  STELE_ASSERT(before == nullptr ? !key.is_foreign() : key.is(kind) && !is_placeholder(before));
  const bool copies = before != nullptr && all.must_copy(before);
  if (before != nullptr && bytes != 0)
    bytes += all.read([&] { return growth_of(before); }).value_or(0);
  if (copies) bytes += memory_of(all, before);
  stored_item* item = before;
  bool is_empty = false;
  const std::string_view name = view(key.name());
  if (before == nullptr || copies) bytes += name.size() + bytes_of_item;
  auto done = all.change(bytes, [&] {
    if (before == nullptr || copies) item = all.add(kind, name, api::GetSelectedDb(c.context));
    if (copies) {
      copy_elements(before, item);
      item->expiry = before->expiry.load();
    }
    STELE_ASSERT(kind_of(item) == kind && !all.must_copy(item));  // redis.md K2
    body(item);
    all.touch(item);
    is_empty = count_of(item) == 0;
  });
  if (!done) return std::unexpected(std::move(done.error()));
  if (before == nullptr)
    key.set(item, kind);
  else if (copies)
    key.replace(item);
  key.note_changed();
  STELE_ASSERT(key.item() == item && all.in_unit());  // redis.md C3
  if (is_empty) key.erase();
  return is_empty;
}

std::uint64_t size_of(const open_key& key) {
  if (key.item() == nullptr) return 0;
  return key.read([&] { return count_of(key.item()); }).value_or(0);
}

std::vector<element> elements_of(const open_key& key) {
  std::vector<element> all;
  if (key.item() != nullptr)
    (void)key.read([&] {
      all.reserve(count_of(key.item()));
      for_each_element(key.item(), [&](std::string_view first, std::string_view second) {
        all.emplace_back(first, second);
      });
    });
  return all;
}

result<> store_all(const call& c, open_key& key, item_kind kind,
                   const std::vector<element>& elements, const char* event) {
  if (elements.empty()) {
    if (!key.exists()) return {};
    key.erase();
    api::NotifyKeyspaceEvent(c.context, api::event_generic, "del", key.name());
    return {};
  }
  keys& all = *c.server.keys;
  const std::string_view name = view(key.name());
  std::size_t bytes = name.size() + bytes_of_item;
  for (const auto& [first, second] : elements)
    bytes += first.size() + second.size() + bytes_of_element;
  stored_item* item = nullptr;
  auto done = all.change(bytes, [&] {
    item = all.add(kind, name, api::GetSelectedDb(c.context));
    for (const auto& [first, second] : elements) add_element(item, first, second);
    STELE_ASSERT(count_of(item) == (kind == item_kind::string ? 1 : elements.size()));
  });
  if (!done) return done;
  key.set(item, kind);
  if (event != nullptr) notify(c, kind, event, key.name());
  return {};
}

int store_result(const call& c, api::text* key_name, item_kind kind,
                 const std::vector<element>& elements, const char* name, const char* event) {
  open_key key(c, key_name, api::for_reading | api::for_writing);
  const bool existed = key.exists();
  if (auto done = store_all(c, key, kind, elements, event); !done)
    return answer_error(c, done.error());
  if (elements.empty() && !existed) return answer_unchanged(c, key, 0);
  replicate(c, name);
  return answer_number(c, static_cast<long long>(elements.size()));
}

void notify(const call& c, item_kind kind, const char* event, api::text* key) {
  constexpr int classes[] = {0,
                             api::event_string,
                             api::event_hash,
                             api::event_list,
                             api::event_set,
                             api::event_sorted_set};
  static_assert(std::size(classes) == item_kinds + 1);
  STELE_ASSERT(kind >= item_kind::string && kind <= item_kind::sorted_set);
  api::NotifyKeyspaceEvent(c.context, classes[static_cast<std::size_t>(kind)], event, key);
}

void notify_taken(const call& c, item_kind kind, const char* event, api::text* key, bool went) {
  notify(c, kind, event, key);
  if (went) api::NotifyKeyspaceEvent(c.context, api::event_generic, "del", key);
}

void reply_text(api::context* to, std::string_view text) {
  api::ReplyWithStringBuffer(to, text.data(), text.size());
}

void reply_text_or_null(api::context* to, const std::optional<std::string>& text) {
  if (text)
    reply_text(to, *text);
  else
    api::ReplyWithNull(to);
}

int answer_unchanged(const call& c, const open_key& key, long long number) {
  answer a(c);
  a.rests_on(key.item());
  return api::ReplyWithLongLong(a.to(), number);
}

std::mt19937_64& random_numbers() {
  static std::mt19937_64 numbers{std::random_device{}()};
  return numbers;
}

long long count_of_random(std::uint64_t size, long long count) noexcept {
  STELE_ASSERT(count != std::numeric_limits<long long>::min());
  if (count < 0) return size == 0 ? 0 : -count;
  return static_cast<long long>(std::min(size, static_cast<std::uint64_t>(count)));
}

namespace {

constexpr long long elements_between_checks = 16384;  // elements, of a long answer

// The server has closed it, or is about to. It drops what is answered then.
bool is_client_ended(const call& c) {
  const std::string line = line_of_client(c);
  const std::size_t flags = line.find(" flags=");
  return flags != line.npos &&
         line.substr(flags + 1, line.find(' ', flags + 1) - flags).find('A') != line.npos;
}

std::vector<std::uint64_t> different_places(std::uint64_t size, std::uint64_t wanted) {
  STELE_ASSERT(wanted <= size);
  std::vector<std::uint64_t> places;
  auto& random = random_numbers();
  // Floyd's: each of the last `wanted` places in turn is chosen, or one before it.
  std::unordered_map<std::uint64_t, bool> chosen;
  for (std::uint64_t last = size - wanted; last < size; ++last) {
    const std::uint64_t any = random() % (last + 1);
    places.push_back(chosen.emplace(any, true).second ? any : last);
    chosen.emplace(places.back(), true);
  }
  STELE_ASSERT(places.size() == wanted && chosen.size() == wanted);  // different ones
  std::ranges::shuffle(places, random);
  return places;
}

}  // namespace

void for_each_random(const call& c, std::uint64_t size, long long count,
                     const std::function<void(std::uint64_t place)>& each) {
  const long long all = count_of_random(size, count);
  if (count >= 0) {
    for (const std::uint64_t place : different_places(size, static_cast<std::uint64_t>(all)))
      each(place);
    return;
  }
  for (long long given = 0; given < all; ++given) {
    if (given % elements_between_checks == elements_between_checks - 1 && is_client_ended(c))
      return;
    each(random_numbers()() % size);
  }
}

std::optional<random_arguments> random_arguments_of(const call& c, const char* option) {
  const auto fails = [&](const char* why) -> std::optional<random_arguments> {
    api::ReplyWithError(c.context, why);
    return std::nullopt;
  };
  random_arguments a;
  if (c.count == 2) return a;
  constexpr long long most = std::numeric_limits<long long>::max();
  const auto count = integer_of(c[2]);
  if (!count) return fails(not_an_integer);
  if (*count < -most)
    return fails(
        "ERR value is out of range, value must between -9223372036854775807 and "
        "9223372036854775807");
  a = {*count, false, c.count == 4};
  if (c.count > 3 && (option == nullptr || !equal_ignoring_case(c[3], option)))
    return fails(syntax_error);
  if (a.is_with_seconds && (a.count < -(most / 2) || a.count > most / 2))
    return fails("ERR value is out of range");
  // So long an answer is given to a client that is not blocked: the server ends only such a one.
  if (a.count <= -elements_between_checks && c.server.keys->all_rest_on() != 0)
    must(c.server.keys->sync());
  return a;
}

namespace {

struct scan_options {
  std::string_view pattern = "*";
  std::uint64_t count = 10;
};
// nullopt: answered with an error.
std::optional<scan_options> scan_options_of(const call& c) {
  const auto fails = [&](const char* why) -> std::optional<scan_options> {
    api::ReplyWithError(c.context, why);
    return std::nullopt;
  };
  scan_options how;
  for (int i = 3; i < c.count; i += 2) {
    if (i + 1 == c.count) return fails(syntax_error);
    if (equal_ignoring_case(c[i], "MATCH")) {
      how.pattern = c[i + 1];
    } else if (equal_ignoring_case(c[i], "COUNT")) {
      const auto count = integer_of(c[i + 1]);
      if (!count) return fails(not_an_integer);
      if (*count < 1) return fails(syntax_error);
      how.count = static_cast<std::uint64_t>(*count);
    } else {
      return fails(syntax_error);
    }
  }
  return how;
}

// As many steps as give so many elements, or ten times as many.
int reply_scan(const call& c, const open_key& key, std::uint64_t cursor, const scan_options& how,
               const scan_step& step) {
  STELE_ASSERT(key.item() != nullptr && how.count != 0);
  answer a(c);
  a.rests_on(key.item());
  std::vector<element> found;
  (void)c.server.keys->read([&] {
    const bool whole = count_of(key.item()) <= scanned_whole;
    std::uint64_t seen = 0;
    if (whole) cursor = 0;
    for (std::uint64_t steps = 0; steps / 10 < how.count || whole; ++steps) {
      cursor = step(key.item(), cursor, [&](std::string_view first, std::string_view second) {
        ++seen;
        if (matches(how.pattern, first)) found.emplace_back(first, second);
      });
      if (cursor == 0 || (seen >= how.count && !whole)) break;
    }
  });
  const bool pairs = has_pairs(key.kind());
  api::context* const to = a.to();
  api::ReplyWithArray(to, 2);
  reply_text(to, std::to_string(cursor));
  api::ReplyWithArray(to, static_cast<long>(found.size() * (pairs ? 2 : 1)));
  for (const auto& [first, second] : found) {
    reply_text(to, first);
    if (pairs) reply_text(to, second);
  }
  return api::ok;
}

}  // namespace

// In Redis' order: a key that is not there answers before an option that is wrong.
int scan(const call& c, const char* name, item_kind kind, const scan_step& step) {
  const auto cursor = cursor_of(c[2]);
  if (!cursor) return api::ReplyWithError(c.context, "ERR invalid cursor");
  const open_key key(c, c.text(1), api::for_reading);
  if (is_other_kind(c, key, kind, name, false)) return api::ok;
  if (!key.exists()) {
    answer a(c);
    a.rests_on(nullptr);
    api::ReplyWithArray(a.to(), 2);
    reply_text(a.to(), "0");
    return api::ReplyWithArray(a.to(), 0);
  }
  const auto how = scan_options_of(c);
  return how ? reply_scan(c, key, *cursor, *how, step) : api::ok;
}

namespace {

struct waiting_command {
  item_kind kind;
  serve_function serve;
};
std::unordered_map<std::string, waiting_command>& waiting_commands() {
  static std::unordered_map<std::string, waiting_command> all;
  return all;
}

// A key that a client waits for has something now: if that is of another kind, the client is told
// nothing and waits on. It cannot be blocked again, so its answer is durable at once.
int on_ready(api::context* context, api::text** arguments, int count) {
  const call c{this_server(), context, arguments, count};
  const waiting_command& command = waiting_commands().at(std::string(c[0]));
  open_key key(c, api::GetBlockedClientReadyKey(context), api::for_reading | api::for_writing);
  if (!key.is(command.kind)) return api::failed;
  const reply_counter replies;
  {
    const execution serving(c.server.commands, execution::client::was_blocked,
                            execution::full_pool::is_answered);
    command.serve(c, key);
  }
  base::check(replies.is_one(), "a client that waited did not get one answer");
  return api::ok;
}
// It has seen no key to be served from, and cannot be blocked again either.
int on_timeout(api::context* context, api::text**, int) {
  keys& all = *this_server().keys;
  if (all.absence_rests_on() != 0) must(all.sync());
  return api::ReplyWithNullArray(context);
}

}  // namespace

const char* read_pop_arguments(const call& c, int at, const char* one, const char* other,
                               pop_arguments& to) {
  const auto keys = integer_of(c[at]);
  if (!keys || *keys < 1) return "ERR numkeys should be greater than 0";
  if (*keys > c.count - at - 2) return syntax_error;
  to = {at + 1, static_cast<int>(*keys), false, 1};
  const int where = to.first + to.count;
  STELE_ASSERT(where < c.count);
  to.at_second = equal_ignoring_case(c[where], other);
  if (!to.at_second && !equal_ignoring_case(c[where], one)) return syntax_error;
  for (int i = where + 1; i < c.count; i += 2) {
    if (i != where + 1 || i + 1 == c.count || !equal_ignoring_case(c[i], "COUNT"))
      return syntax_error;
    const auto most = integer_of(c[i + 1]);
    if (!most || *most < 1) return "ERR count should be greater than 0";
    to.most = static_cast<std::uint64_t>(*most);
  }
  return nullptr;
}

const char* read_limit(const call& c, int i, std::uint64_t& most) {
  STELE_ASSERT(i <= c.count);
  most = ~std::uint64_t{0};
  for (; i < c.count; i += 2) {
    if (!equal_ignoring_case(c[i], "LIMIT") || i + 1 == c.count) return syntax_error;
    const auto limit = integer_of(c[i + 1]);
    if (!limit || *limit < 0) return "ERR LIMIT can't be negative";
    most = *limit == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(*limit);
  }
  return nullptr;
}

std::optional<std::uint64_t> pop_count_of(const call& c) {
  if (c.count == 2) return 1;
  const auto given = integer_of(c[2]);
  if (given && *given >= 0) return static_cast<std::uint64_t>(*given);
  api::ReplyWithError(c.context, "ERR value is out of range, must be positive");
  return std::nullopt;
}

int serve_or_wait(const call& c, serve_function serve, const wait_arguments& how) {
  const auto seconds = float_of(how.timeout);
  if (!seconds) return api::ReplyWithError(c.context, "ERR timeout is not a float or out of range");
  // Less than a millisecond below 0 is 0. Redis takes what no integer can be for negative.
  const long double wanted = std::ceil(*seconds * 1000);
  if (!(wanted >= 0 && wanted < 0x1p63L))
    return api::ReplyWithError(c.context, "ERR timeout is negative");
  STELE_ASSERT(how.first_key >= 1 && how.keys >= 1 && how.first_key + how.keys <= c.count);
  const long long latest = std::numeric_limits<long long>::max() - api::Milliseconds();
  if (static_cast<long long>(wanted) > latest)
    return api::ReplyWithError(c.context, "ERR timeout is out of range");
  if (serve_first(c, how.kind, how.first_key, how.keys, serve)) return api::ok;
  if (!may_block(c)) {
    answer a(c);
    a.rests_on_its_keys();
    return how.null_is_array ? api::ReplyWithNullArray(a.to()) : api::ReplyWithNull(a.to());
  }
  STELE_ASSERT(!c.server.keys->in_unit());  // nothing that a client waits with is open
  waiting_commands()[std::string(c[0])] = {how.kind, serve};
  api::BlockClientOnKeys(c.context, bounded<on_ready>, bounded<on_timeout>, nullptr,
                         static_cast<long long>(wanted), c.arguments + how.first_key, how.keys,
                         nullptr);
  return api::ok;
}

}  // namespace stele::redis
