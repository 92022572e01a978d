// Commands on strings.
#include "collections.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace stele::redis {

namespace {

constexpr long long as_it_was = -1;                              // of an expiry time
constexpr std::size_t bytes_of_text = sizeof(stored_text) + 64;  // beside its bytes

constexpr std::size_t long_text = std::size_t{1} << 20;  // such a one is made in parts

bool goes_in_parts(const call& c, std::size_t size) {
  return size >= long_text && !c.server.keys->in_unit();
}

long long kept_expiry(const open_key& key, long long expiry) {
  return expiry != as_it_was ? expiry : key.exists() ? key.expiry() : 0;
}

// In bytes; of no key 0.
std::size_t length_of(const open_key& key) {
  return look<stored_text>(key, [](const stored_text& text) { return text.value.size(); });
}

// put() of a string of `size` bytes, with room for `capacity`, whose parts `bytes_at` gives.
result<> put_in_parts(const call& c, open_key& key, std::size_t size, std::size_t capacity,
                      const keys::bytes_at& bytes_at, long long expiry) {
  keys& all = *c.server.keys;
  STELE_ASSERT(!all.in_unit() && size <= capacity && size >= long_text);
  const long long kept = kept_expiry(key, expiry);
  const auto item = all.make_text(size, capacity, bytes_at);
  if (!item) return std::unexpected(item.error());
  const std::string_view name = view(key.name());
  if (auto done = all.change(name.size(),
                             [&] {
                               all.name(*item, name, api::GetSelectedDb(c.context));
                               (*item)->expiry = kept;
                             });
      !done)
    return all.note_garbage(), done;
  key.set(*item, item_kind::string);
  STELE_ASSERT(all.in_unit() && length_of(key) == size);  // redis.md R3
  return key.expiry() == kept ? result<>() : key.set_expiry(kept);
}

// The key is set to a string that expires then; 0: never.
result<> put(const call& c, open_key& key, std::string_view value, long long expiry) {
  keys& all = *c.server.keys;
  if (goes_in_parts(c, value.size()))
    return put_in_parts(
        c, key, value.size(), value.size(),
        [&](std::size_t at, std::size_t count) { return std::string(value.substr(at, count)); },
        expiry);
  const std::size_t bytes = value.size() + bytes_of_text;
  const long long kept = kept_expiry(key, expiry);
  if (stored_text* const text = key.text(); text != nullptr && !all.must_copy(key.item())) {
    STELE_ASSERT(!is_placeholder(key.item()));
    if (auto done = all.change(bytes,
                               [&] {
                                 text->value = value;
                                 text->item.expiry = kept;
                                 all.touch(&text->item);
                               });
        !done)
      return done;
    key.note_changed();
  } else {
    stored_item* item = nullptr;
    const std::string_view name = view(key.name());
    if (auto done = all.change(bytes + name.size(),
                               [&] {
                                 item = all.add(item_kind::string, name,
                                                api::GetSelectedDb(c.context));
                                 as<stored_text>(item).value = value;
                                 item->expiry = kept;
                               });
        !done)
      return done;
    key.set(item, item_kind::string);
  }
  STELE_ASSERT(key.text() != nullptr && all.in_unit());  // redis.md C3
  if (key.expiry() != kept) return key.set_expiry(kept);
  return {};
}

void notify(const call& c, const char* event, api::text* key) {
  redis::notify(c, item_kind::string, event, key);
}

void reply_value(api::context* to, const open_key& key) {
  if (key.text() == nullptr) return void(api::ReplyWithNull(to));
  reply_text(to, value_of(key));
}

int get(const call& c) {
  return read_only<stored_text>(c, "GET", reply_value);
}

int strlen(const call& c) {
  return read_only<stored_text>(c, "STRLEN", [](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, static_cast<long long>(length_of(key)));
  });
}

int mget(const call& c) {
  answer a(c);
  std::vector<std::unique_ptr<open_key>> keys;
  for (int i = 1; i < c.count; ++i) {
    keys.push_back(std::make_unique<open_key>(c, c.text(i), api::for_reading));
    a.rests_on(keys.back()->item());
  }
  api::context* const to = a.to();
  api::ReplyWithArray(to, c.count - 1);
  for (int i = 1; i < c.count; ++i) {
    const open_key& key = *keys[static_cast<std::size_t>(i - 1)];
    if (key.is_foreign()) {
      api::reply* const reply = call_server(c, "GET", "s", c.text(i));
      const bool is_string = reply != nullptr && api::CallReplyType(reply) == api::reply_string;
      if (is_string)
        api::ReplyWithCallReply(to, reply);
      else
        api::ReplyWithNull(to);
      if (reply != nullptr) api::FreeCallReply(reply);
    } else {
      reply_value(to, key);
    }
  }
  return api::ok;
}

// When something expires that is given as `text` in this unit; nullopt: answered with an error.
std::optional<long long> expiry_of(const call& c, std::string_view text, std::string_view unit,
                                   const char* name) {
  const auto given = integer_of(text);
  if (!given) return api::ReplyWithError(c.context, not_an_integer), std::nullopt;
  const bool seconds = equal_ignoring_case(unit, "EX") || equal_ignoring_case(unit, "EXAT");
  const bool relative = unit.size() == 2;
  long long when = *given;
  const auto wrong = [&]() -> std::optional<long long> {
    const std::string why = std::string("ERR invalid expire time in '") + name + "' command";
    api::ReplyWithError(c.context, why.c_str());
    return std::nullopt;
  };
  if (when <= 0 || (seconds && when > LLONG_MAX / 1000)) return wrong();
  if (seconds) when *= 1000;
  STELE_ASSERT(when > 0);
  if (relative && when > LLONG_MAX - api::Milliseconds()) return wrong();
  return relative ? when + api::Milliseconds() : when;
}

void replicate_set(const call& c, api::text* key, api::text* value, long long expiry) {
  if (expiry == as_it_was)
    replicate_as(c, "SET", "ssc", key, value, "KEEPTTL");
  else if (expiry == 0)
    replicate_as(c, "SET", "ss", key, value);
  else
    replicate_as(c, "SET", "sscl", key, value, "PXAT", expiry);
}

// The end of a command that has set one key.
int answer_ok(const call& c, const char* text = "OK") {
  answer a(c);
  a.end_unit();
  return api::ReplyWithSimpleString(a.to(), text);
}

// Options of SET and GETEX.
struct text_options {
  bool only_new = false, only_there = false, gets = false, keeps = false, persists = false;
  int time = 0;  // the argument that tells when the value expires; its unit is the one before
};

// Takes an option of SET, or with `reads` of GETEX, and what belongs to it. As Redis has it, the
// same unit may be given again, and the last time counts. False: a syntax error.
bool take_option(const call& c, int& i, bool reads, text_options& o) {
  const auto is = [&](std::string_view name) { return equal_ignoring_case(c[i], name); };
  const bool is_time = is("EX") || is("PX") || is("EXAT") || is("PXAT");
  if (is_time && i + 1 < c.count && !o.keeps && !o.persists &&
      (o.time == 0 || equal_ignoring_case(c[o.time - 1], c[i]))) {
    o.time = ++i;
    STELE_ASSERT(o.time >= (reads ? 3 : 4));  // behind the key, of SET the value, and its unit
    return true;
  }
  if (reads) return is("PERSIST") && o.time == 0 && (o.persists = true);
  if (is("NX") && !o.only_there) return o.only_new = true;
  if (is("XX") && !o.only_new) return o.only_there = true;
  if (is("GET")) return o.gets = true;
  return is("KEEPTTL") && o.time == 0 && (o.keeps = true);
}

std::optional<text_options> options_of(const call& c, int first, bool reads) {
  text_options o;
  for (int i = first; i < c.count; ++i)
    if (!take_option(c, i, reads, o))
      return api::ReplyWithError(c.context, syntax_error), std::nullopt;
  STELE_ASSERT(!(o.only_new && o.only_there) && !(o.time != 0 && (o.keeps || o.persists)));
  return o;
}

int set(const call& c) {
  const auto given = options_of(c, 3, false);
  if (!given) return api::ok;
  const auto& [only_new, only_there, gets, keeps, persists, time] = *given;
  std::optional<long long> expiry;
  if (time != 0 && !(expiry = expiry_of(c, c[time], c[time - 1], "set"))) return api::ok;
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (gets && key.exists() && key.text() == nullptr) {
    if (!key.is_foreign()) return answer_refusal(c, wrong_type);
    return delegate(c, "SET", true);
  }
  STELE_ASSERT(!persists && !(keeps && expiry));
  const bool refused = (only_new && key.exists()) || (only_there && !key.exists());
  std::optional<std::string> before;
  if (gets && key.text() != nullptr) before = value_of(key);
  if (!refused) {
    const long long until = keeps ? as_it_was : expiry.value_or(0);
    if (auto done = put(c, key, c[2], until); !done) return answer_error(c, done.error());
    replicate_set(c, c.text(1), c.text(2), until);
    notify(c, "set", c.text(1));
    if (expiry) api::NotifyKeyspaceEvent(c.context, api::event_generic, "expire", c.text(1));
  }
  answer a(c);
  if (refused)
    a.rests_on(key.item());
  else
    a.end_unit();
  if (gets && before) return api::ReplyWithStringBuffer(a.to(), before->data(), before->size());
  if (gets || refused) return api::ReplyWithNull(a.to());
  return api::ReplyWithSimpleString(a.to(), "OK");
}

int setnx(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (key.exists()) return answer_unchanged(c, key, 0);
  if (auto done = put(c, key, c[2], 0); !done) return answer_error(c, done.error());
  replicate_set(c, c.text(1), c.text(2), 0);
  notify(c, "set", c.text(1));
  return answer_number(c, 1);
}

int set_with_expiry(const call& c, const char* unit, const char* name) {
  const auto expiry = expiry_of(c, c[2], unit, name);
  if (!expiry) return api::ok;
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (auto done = put(c, key, c[3], *expiry); !done) return answer_error(c, done.error());
  replicate_set(c, c.text(1), c.text(3), *expiry);
  notify(c, "set", c.text(1));
  api::NotifyKeyspaceEvent(c.context, api::event_generic, "expire", c.text(1));
  return answer_ok(c);
}

int getset(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "GETSET", true)) return api::ok;
  std::optional<std::string> before;
  if (key.text() != nullptr) before = value_of(key);
  if (auto stored = put(c, key, c[2], 0); !stored) return answer_error(c, stored.error());
  replicate_set(c, c.text(1), c.text(2), 0);
  notify(c, "set", c.text(1));
  answer a(c);
  a.end_unit();
  return before ? api::ReplyWithStringBuffer(a.to(), before->data(), before->size())
                : api::ReplyWithNull(a.to());
}

int getdel(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "GETDEL", true)) return api::ok;
  answer a(c);
  if (key.text() == nullptr) {
    a.rests_on(nullptr);
    return api::ReplyWithNull(a.to());
  }
  const std::string before = value_of(key);
  key.erase();
  replicate_as(c, "DEL", "s", c.text(1));
  api::NotifyKeyspaceEvent(c.context, api::event_generic, "del", c.text(1));
  a.end_unit();
  return api::ReplyWithStringBuffer(a.to(), before.data(), before.size());
}

int getex(const call& c) {
  const auto given = options_of(c, 2, true);
  if (!given) return api::ok;
  const int time = given->time;
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "GETEX", true)) return api::ok;
  std::optional<long long> expiry;
  if (given->persists) expiry = 0;
  if (time != 0 && key.exists() && !(expiry = expiry_of(c, c[time], c[time - 1], "getex")))
    return api::ok;
  STELE_ASSERT(!expiry || !given->persists || *expiry == 0);
  answer a(c);
  if (key.text() == nullptr || !expiry || (*expiry == 0 && key.expiry() == 0)) {
    a.rests_on(key.item());
    reply_value(a.to(), key);
    return api::ok;
  }
  const std::string value = value_of(key);
  if (*expiry != 0 && *expiry <= api::Milliseconds()) {
    key.erase();
    replicate_as(c, "DEL", "s", c.text(1));
    api::NotifyKeyspaceEvent(c.context, api::event_generic, "del", c.text(1));
  } else {
    if (auto stored = key.set_expiry(*expiry); !stored) return answer_error(c, stored.error());
    if (*expiry == 0)
      replicate_as(c, "PERSIST", "s", c.text(1));
    else
      replicate_as(c, "PEXPIREAT", "sl", c.text(1), *expiry);
    api::NotifyKeyspaceEvent(c.context, api::event_generic, *expiry == 0 ? "persist" : "expire",
                             c.text(1));
  }
  a.end_unit();
  return api::ReplyWithStringBuffer(a.to(), value.data(), value.size());
}

void overwrite(std::string& text, std::size_t at, std::string_view bytes) {
  text.replace(at, bytes.size(), bytes);
}
void overwrite(stele::string& text, std::size_t at, std::string_view bytes) {
  text.overwrite(at, bytes);
}

// A string with these bytes at a place, and zeros before it where there is nothing.
template <class Text>
void write(Text& text, std::size_t at, std::string_view bytes) {
  STELE_ASSERT(!bytes.empty() || at == text.size());
  if (at == text.size()) {
    text.append(bytes);
    return;
  }
  if (text.size() < at + bytes.size()) text.resize(at + bytes.size());
  STELE_ASSERT(at + bytes.size() <= text.size());
  overwrite(text, at, bytes);
}

// write() in a key's string, which has `size` bytes. Its expiry time stays.
result<> write_at(const call& c, open_key& key, std::size_t size, std::size_t at,
                  std::string_view bytes) {
  keys& all = *c.server.keys;
  stored_text* const text = key.text();
  const std::size_t end = std::max(size, at + bytes.size());
  STELE_ASSERT(size == length_of(key));
  const bool copies = text == nullptr || all.must_copy(key.item());
  const auto capacity = [&] {
    return look<stored_text>(key, [](const stored_text& t) { return t.value.capacity(); });
  };
  if (goes_in_parts(c, end) && (copies || end > capacity())) {
    const auto bytes_at = [&](std::size_t from, std::size_t count) {
      std::string part = from < size ? text->value.substr(from, count) : std::string();
      STELE_ASSERT(from + count <= end);
      part.resize(count);
      const std::size_t first = std::max(from, at),
                        last = std::min(from + count, at + bytes.size());
      if (first < last)
        part.replace(first - from, last - first, bytes.substr(first - at, last - first));
      return part;
    };
    return put_in_parts(c, key, end, size == 0 ? end : std::max(end, 2 * capacity()), bytes_at,
                        as_it_was);
  }
  if (copies) {
    std::string value = text == nullptr ? std::string() : value_of(key);
    write(value, at, bytes);
    return put(c, key, value, as_it_was);
  }
  const std::size_t stored = end == size ? bytes.size() : end;
  auto done = all.change(stored + bytes_of_text, [&] {
    STELE_ASSERT(!all.must_copy(&text->item));  // redis.md K2
    write(text->value, at, bytes);
    STELE_ASSERT(text->value.size() == end);
    all.touch(&text->item);
  });
  if (done) key.note_changed();
  return done;
}

int append(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "APPEND", true)) return api::ok;
  const std::size_t size = length_of(key);
  if (size + c[2].size() > longest_string) return answer_refusal(c, too_long);
  if (auto stored = write_at(c, key, size, size, c[2]); !stored)
    return answer_error(c, stored.error());
  replicate(c, "APPEND");
  notify(c, "append", c.text(1));
  return answer_number(c, static_cast<long long>(size + c[2].size()));
}

int setrange(const call& c) {
  const auto offset = integer_of(c[2]);
  if (!offset) return api::ReplyWithError(c.context, not_an_integer);
  if (*offset < 0) return api::ReplyWithError(c.context, "ERR offset is out of range");
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "SETRANGE", true)) return api::ok;
  const std::size_t size = length_of(key);
  if (c[3].empty()) return answer_unchanged(c, key, static_cast<long long>(size));
  const auto at = static_cast<std::size_t>(*offset);
  if (at > longest_string || at + c[3].size() > longest_string)
    return api::ReplyWithError(c.context, too_long);
  const std::size_t end = std::max(size, at + c[3].size());
  if (auto stored = write_at(c, key, size, at, c[3]); !stored)
    return answer_error(c, stored.error());
  replicate(c, "SETRANGE");
  notify(c, "setrange", c.text(1));
  return answer_number(c, static_cast<long long>(end));
}

int getrange(const call& c) {
  const auto first = integer_of(c[2]), last = integer_of(c[3]);
  if (!first || !last) return api::ReplyWithError(c.context, not_an_integer);
  return read_only<stored_text>(c, "GETRANGE", [&](api::context* to, const open_key& key) {
    const auto size = static_cast<long long>(length_of(key));
    const auto from_end = [&](long long i) { return i < 0 ? std::max(i + size, 0LL) : i; };
    const bool none = *first < 0 && *last < 0 && *first > *last;
    const long long begin = from_end(*first), end = std::min(from_end(*last), size - 1);
    if (none || begin > end) return reply_text(to, "");
    STELE_ASSERT(begin >= 0 && begin <= end && end < size);
    reply_text(to, look<stored_text>(key, [&](const stored_text& text) {
                 return text.value.substr(static_cast<std::size_t>(begin),
                                          static_cast<std::size_t>(end - begin + 1));
               }));
  });
}

int add(const call& c, long long by, const char* name) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, name, true)) return api::ok;
  const auto before = integer_of(key.text() == nullptr ? "0" : value_of(key));
  if (!before) return answer_refusal(c, not_an_integer);
  long long after = 0;
  if (__builtin_add_overflow(*before, by, &after))
    return answer_refusal(c, "ERR increment or decrement would overflow");
  if (auto stored = put(c, key, std::to_string(after), as_it_was); !stored)
    return answer_error(c, stored.error());
  replicate(c, name);
  notify(c, "incrby", c.text(1));
  return answer_number(c, after);
}
int incrby(const call& c) {
  const auto by = integer_of(c[2]);
  return by ? add(c, *by, "INCRBY") : api::ReplyWithError(c.context, not_an_integer);
}
int decrby(const call& c) {
  const auto by = integer_of(c[2]);
  if (by && *by == LLONG_MIN) return api::ReplyWithError(c.context, "ERR decrement would overflow");
  return by ? add(c, -*by, "DECRBY") : api::ReplyWithError(c.context, not_an_integer);
}

int incrbyfloat(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "INCRBYFLOAT", true)) return api::ok;
  const auto before = float_of(key.text() == nullptr ? "0" : value_of(key)), by = float_of(c[2]);
  if (!before || !by) return answer_refusal(c, not_a_float);
  const long double after = *before + *by;
  if (std::isnan(after) || std::isinf(after))
    return answer_refusal(c, "ERR increment would produce NaN or Infinity");
  const std::string text = text_of_float(after);
  if (auto stored = put(c, key, text, as_it_was); !stored) return answer_error(c, stored.error());
  replicate_as(c, "SET", "sbc", c.text(1), text.data(), text.size(), "KEEPTTL");
  notify(c, "incrbyfloat", c.text(1));
  answer a(c);
  a.end_unit();
  return api::ReplyWithStringBuffer(a.to(), text.data(), text.size());
}

// All or nothing: room for all is asked for before the first. False: answered with an error.
bool put_all(const call& c) {
  STELE_ASSERT(c.count % 2 == 1);
  std::size_t bytes = 0;
  for (int i = 1; i < c.count; ++i) bytes += c[i].size() + bytes_of_text;
  auto done = c.server.keys->reserve(bytes);
  for (int i = 1; i < c.count && done; i += 2) {
    open_key key(c, c.text(i), api::for_reading | api::for_writing);
    STELE_ASSERT(c.server.keys->in_unit());  // redis.md C1: one unit has room for all
    done = put(c, key, c[i + 1], 0);
    if (done) notify(c, "set", c.text(i));
  }
  if (!done) return answer_error(c, done.error()), false;
  replicate(c, "MSET");
  return true;
}
int mset(const call& c) {
  if (c.count % 2 == 0)
    return api::ReplyWithError(c.context, "ERR wrong number of arguments for 'mset' command");
  if (!put_all(c)) return api::ok;
  return answer_ok(c);
}
int msetnx(const call& c) {
  if (c.count % 2 == 0)
    return api::ReplyWithError(c.context, "ERR wrong number of arguments for 'msetnx' command");
  for (int i = 1; i < c.count; i += 2) {
    const open_key key(c, c.text(i), api::for_reading);
    if (key.exists()) return answer_unchanged(c, key, 0);
  }
  if (!put_all(c)) return api::ok;
  return answer_number(c, 1);
}

// Where a bit is. nullopt: answered with an error.
struct bit_place {
  std::size_t byte;
  unsigned shift;
};
std::optional<bit_place> bit_of(const call& c) {
  const auto offset = integer_of(c[2]);
  if (!offset || *offset < 0 || static_cast<std::size_t>(*offset) >= 8 * longest_string) {
    api::ReplyWithError(c.context, "ERR bit offset is not an integer or out of range");
    return std::nullopt;
  }
  const auto number = static_cast<std::size_t>(*offset);
  STELE_ASSERT(number / 8 < longest_string);
  return bit_place{number / 8, 7 - static_cast<unsigned>(number % 8)};
}
std::uint8_t byte_of(const open_key& key, std::size_t at) {
  return look<stored_text>(key, [&](const stored_text& text) -> std::uint8_t {
    return at < text.value.size() ? static_cast<std::uint8_t>(text.value.at(at)) : 0;
  });
}

int getbit(const call& c) {
  const auto bit = bit_of(c);
  if (!bit) return api::ok;
  return read_only<stored_text>(c, "GETBIT", [&](api::context* to, const open_key& key) {
    api::ReplyWithLongLong(to, byte_of(key, bit->byte) >> bit->shift & 1);
  });
}

int setbit(const call& c) {
  const auto bit = bit_of(c);
  if (!bit) return api::ok;
  if (c[3] != "0" && c[3] != "1")
    return api::ReplyWithError(c.context, "ERR bit is not an integer or out of range");
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::string, "SETBIT", true)) return api::ok;
  const std::uint8_t before = byte_of(key, bit->byte);
  const auto mask = static_cast<std::uint8_t>(1u << bit->shift);
  const char now = static_cast<char>(c[3] == "1" ? before | mask : before & ~mask);
  const bool is_set = (before & mask) != 0;
  const std::size_t size = length_of(key);
  if (is_set == (c[3] == "1") && bit->byte < size) return answer_unchanged(c, key, is_set);
  if (auto stored = write_at(c, key, size, bit->byte, {&now, 1}); !stored)
    return answer_error(c, stored.error());
  replicate(c, "SETBIT");
  notify(c, "setbit", c.text(1));
  return answer_number(c, is_set);
}

constexpr command commands[] = {
    {"get", get, "readonly fast", 1, 1, 1, 2, 2},
    {"strlen", strlen, "readonly fast", 1, 1, 1, 2, 2},
    {"mget", mget, "readonly fast", 1, -1, 1, 2, 0},
    {"getrange", getrange, "readonly", 1, 1, 1, 4, 4},
    {"substr", getrange, "readonly", 1, 1, 1, 4, 4},
    {"getbit", getbit, "readonly fast", 1, 1, 1, 3, 3},
    {"setbit", setbit, "write deny-oom", 1, 1, 1, 4, 4},
    {"set", set, "write deny-oom", 1, 1, 1, 3, 0},
    {"setnx", setnx, "write deny-oom fast", 1, 1, 1, 3, 3},
    {"setex", with<set_with_expiry, literal("EX"), literal("setex")>, "write deny-oom", 1, 1, 1, 4,
     4},
    {"psetex", with<set_with_expiry, literal("PX"), literal("psetex")>, "write deny-oom", 1, 1, 1,
     4, 4},
    {"getset", getset, "write deny-oom fast", 1, 1, 1, 3, 3},
    {"getdel", getdel, "write fast", 1, 1, 1, 2, 2},
    {"getex", getex, "write fast", 1, 1, 1, 2, 0},
    {"append", append, "write deny-oom fast", 1, 1, 1, 3, 3},
    {"setrange", setrange, "write deny-oom", 1, 1, 1, 4, 4},
    {"incr", with<add, 1, literal("INCR")>, "write deny-oom fast", 1, 1, 1, 2, 2},
    {"decr", with<add, -1, literal("DECR")>, "write deny-oom fast", 1, 1, 1, 2, 2},
    {"incrby", incrby, "write deny-oom fast", 1, 1, 1, 3, 3},
    {"decrby", decrby, "write deny-oom fast", 1, 1, 1, 3, 3},
    {"incrbyfloat", incrbyfloat, "write deny-oom fast", 1, 1, 1, 3, 3},
    {"mset", mset, "write deny-oom", 1, -1, 2, 3, 0},
    {"msetnx", msetnx, "write deny-oom", 1, -1, 2, 3, 0},
};

}  // namespace

constinit const std::span<const command> string_commands(commands);

}  // namespace stele::redis
