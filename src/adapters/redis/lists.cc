// Commands on lists.
#include "collections.h"

#include <algorithm>
#include <climits>
#include <variant>

namespace stele::redis {

namespace {

constexpr auto kind = item_kind::list;
using texts = std::vector<std::string>;
enum class end : std::uint8_t { left, right };

constexpr const char* no_key = "ERR no such key";

std::optional<end> end_of(std::string_view word) {
  if (equal_ignoring_case(word, "LEFT")) return end::left;
  if (equal_ignoring_case(word, "RIGHT")) return end::right;
  return std::nullopt;
}
const char* pop_name(end of) {
  return of == end::left ? "LPOP" : "RPOP";
}
const char* pop_event(end of) {
  return of == end::left ? "lpop" : "rpop";
}

// The element with this number, from the end if it is negative, as a place; nullopt: none has it.
std::optional<std::uint64_t> place_of(long long number, std::uint64_t size) {
  const auto all = static_cast<long long>(size);
  if (number < 0) number += all;
  if (number < 0 || number >= all) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}
struct part {
  std::uint64_t first = 0, count = 0;
};
part part_of(long long first, long long last, std::uint64_t size) {
  const auto all = static_cast<long long>(size);
  if (first < 0) first = std::max(first + all, 0LL);
  if (last < 0) last += all;
  last = std::min(last, all - 1);
  if (first > last) return {};
  STELE_ASSERT(first >= 0 && last < all);
  return {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last - first + 1)};
}

// --- at the ends ---

result<bool> push(const call& c, open_key& key, end at,
                  std::span<const std::string_view> elements) {
  std::size_t bytes = 2048;         // a block
  STELE_ASSERT(!elements.empty());  // a list without elements is none
  for (const std::string_view e : elements) bytes += e.size() + bytes_of_element;
  return change<stored_sequence>(c, key, bytes, [&](stored_sequence& list) {
    for (const std::string_view e : elements)
      if (at == end::left)
        list.content.push_front(e);
      else
        list.content.push_back(e);
  });
}

int push_arguments(const call& c, const char* name, end at, bool only_there) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, name, true)) return api::ok;
  if (only_there && !key.exists()) return answer_unchanged(c, key, 0);
  std::vector<std::string_view> elements;
  for (int i = 2; i < c.count; ++i) elements.push_back(c[i]);
  if (auto done = push(c, key, at, elements); !done) return answer_error(c, done.error());
  replicate(c, name);
  notify(c, kind, at == end::left ? "lpush" : "rpush", c.text(1));
  return answer_number(c, static_cast<long long>(size_of(key)));
}

std::string element_at(const open_key& key, end at) {
  STELE_ASSERT(size_of(key) != 0);
  return look<stored_sequence>(key, [&](const stored_sequence& list) {
    return list.content.at(at == end::left ? 0 : list.content.size() - 1);
  });
}

// Removes this many elements, or all, and notifies the events.
result<texts> take(const call& c, open_key& key, end at, std::uint64_t count) {
  texts taken;
  const auto went = change<stored_sequence>(c, key, 0, [&](stored_sequence& list) {
    const std::uint64_t size = list.content.size(), n = std::min(count, size);
    const std::uint64_t first = at == end::left ? 0 : size - n;
    taken.clear();
    list.content.for_each(first, n, [&](std::string element) {
      taken.push_back(std::move(element));
      return true;
    });
    STELE_ASSERT(n != 0 && taken.size() == n);
    list.content.erase(first, n);
  });
  if (!went) return std::unexpected(went.error());
  STELE_ASSERT(!taken.empty() && taken.size() <= count);
  STELE_ASSERT(*went == (key.item() == nullptr));
  if (at == end::right) std::ranges::reverse(taken);
  notify_taken(c, kind, pop_event(at), key.name(), *went);
  return taken;
}

void reply_texts(api::context* to, const texts& all) {
  api::ReplyWithArray(to, static_cast<long>(all.size()));
  for (const std::string& t : all) reply_text(to, t);
}

int pop(const call& c, end at) {
  const auto count = pop_count_of(c);
  if (!count) return api::ok;
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, pop_name(at), true)) return api::ok;
  answer a(c);
  if (!key.exists() || *count == 0) {
    a.rests_on(key.item());
    if (c.count == 2) return api::ReplyWithNull(a.to());
    return key.exists() ? api::ReplyWithArray(a.to(), 0) : api::ReplyWithNullArray(a.to());
  }
  const auto t = take(c, key, at, *count);
  if (!t) return answer_error(c, t.error());
  replicate(c, pop_name(at));
  a.end_unit();
  if (c.count == 2)
    reply_text(a.to(), (*t)[0]);
  else
    reply_texts(a.to(), *t);
  return api::ok;
}

// --- commands that wait for a list ---

template <end At>
void pop_first(const call& c, open_key& key) {
  answer a(c);
  const auto t = take(c, key, At, 1);
  if (!t) return void(answer_error(c, t.error()));
  replicate_as(c, pop_name(At), "s", key.name());
  a.end_unit();
  api::ReplyWithArray(a.to(), 2);
  reply_text(a.to(), view(key.name()));
  reply_text(a.to(), (*t)[0]);
}
template <end At>
int pop_or_wait(const call& c) {
  return serve_or_wait(c, pop_first<At>, {kind, 1, c.count - 2, c[c.count - 1]});
}

// Moves one element from a list to the second argument's, and answers.
void move(const call& c, open_key& source, end from, end to) {
  answer a(c);
  const std::string element = element_at(source, from);
  const std::string_view moved = element;
  const bool same = c[1] == c[2];
  std::optional<open_key> target;
  if (!same) {
    target.emplace(c, c.text(2), api::for_reading | api::for_writing);
    if (is_wrong_kind(c, *target, kind)) return;
  }
  // The push is first: without room for it nothing has been removed.
  if (auto done = push(c, same ? source : *target, to, {&moved, 1}); !done)
    return void(answer_error(c, done.error()));
  const auto went = change<stored_sequence>(c, source, 0, [&](stored_sequence& list) {
    // In the same list, what was pushed at that end is first there.
    const std::uint64_t pushed = same && from == to ? 1 : 0;
    STELE_ASSERT(list.content.size() > pushed);
    list.content.erase(from == end::left ? pushed : list.content.size() - 1 - pushed);
  });
  must(went);
  STELE_ASSERT(!same || !*went);  // what was pushed is there
  notify(c, kind, to == end::left ? "lpush" : "rpush", c.text(2));
  notify_taken(c, kind, pop_event(from), c.text(1), *went);
  replicate_as(c, "LMOVE", "sscc", c.text(1), c.text(2), from == end::left ? "LEFT" : "RIGHT",
               to == end::left ? "LEFT" : "RIGHT");
  a.end_unit();
  reply_text(a.to(), element);
}

int move_or_null(const call& c, end from, end to) {
  const auto serve = [&](const call& of, open_key& source) { move(of, source, from, to); };
  if (serve_first(c, kind, 1, 1, serve)) return api::ok;
  answer a(c);
  a.rests_on(nullptr);
  return api::ReplyWithNull(a.to());
}
int lmove(const call& c) {
  const auto from = end_of(c[3]), to = end_of(c[4]);
  if (!from || !to) return api::ReplyWithError(c.context, syntax_error);
  return move_or_null(c, *from, *to);
}
int blmove(const call& c) {
  if (!end_of(c[3]) || !end_of(c[4])) return api::ReplyWithError(c.context, syntax_error);
  const auto serve = [](const call& of, open_key& source) {
    move(of, source, *end_of(of[3]), *end_of(of[4]));
  };
  return serve_or_wait(c, serve, {kind, 1, 1, c[5], false});
}
int brpoplpush(const call& c) {
  const auto serve = [](const call& of, open_key& source) {
    move(of, source, end::right, end::left);
  };
  return serve_or_wait(c, serve, {kind, 1, 1, c[3], false});
}

void pop_several(const call& c, open_key& key, const pop_arguments& how) {
  STELE_ASSERT(how.most != 0 && key.is(kind));
  answer a(c);
  const end at = how.at_second ? end::right : end::left;
  const auto t = take(c, key, at, how.most);
  if (!t) return void(answer_error(c, t.error()));
  replicate_as(c, pop_name(at), "sl", key.name(), static_cast<long long>(t->size()));
  a.end_unit();
  api::ReplyWithArray(a.to(), 2);
  reply_text(a.to(), view(key.name()));
  reply_texts(a.to(), *t);
}

// --- by number and by value ---

int lindex(const call& c) {
  return read_only<stored_sequence>(c, "LINDEX", [&](api::context* to, const open_key& key) {
    if (!key.exists()) return void(api::ReplyWithNull(to));
    const auto number = integer_of(c[2]);
    if (!number) return void(api::ReplyWithError(to, not_an_integer));
    const auto found =
        look<stored_sequence>(key, [&](const stored_sequence& list) -> std::optional<std::string> {
          const auto place = place_of(*number, list.content.size());
          if (!place) return std::nullopt;
          return list.content.at(*place);
        });
    reply_text_or_null(to, found);
  });
}

texts elements_from(const open_key& key, part of) {
  texts found;
  (void)look<stored_sequence>(key, [&](const stored_sequence& list) {
    list.content.for_each(of.first, of.count, [&](std::string element) {
      found.push_back(std::move(element));
      return true;
    });
    return true;
  });
  return found;
}

int lrange(const call& c) {
  const auto first = integer_of(c[2]), last = integer_of(c[3]);
  if (!first || !last) return api::ReplyWithError(c.context, not_an_integer);
  return read_only<stored_sequence>(c, "LRANGE", [&](api::context* to, const open_key& key) {
    reply_texts(to, elements_from(key, part_of(*first, *last, size_of(key))));
  });
}

int lset(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "LSET", true)) return api::ok;
  if (!key.exists()) return answer_refusal(c, no_key);
  const auto number = integer_of(c[2]);
  if (!number) return api::ReplyWithError(c.context, not_an_integer);
  const auto place = place_of(*number, size_of(key));
  if (!place) return answer_refusal(c, "ERR index out of range");
  if (auto done =
          change<stored_sequence>(c, key, c[3].size() + bytes_of_element,
                                  [&](stored_sequence& list) { list.content.set(*place, c[3]); });
      !done)
    return answer_error(c, done.error());
  replicate(c, "LSET");
  notify(c, kind, "lset", c.text(1));
  answer a(c);
  a.end_unit();
  return api::ReplyWithSimpleString(a.to(), "OK");
}

// The places of elements with this value, from the left or, in that order, from the right; some.
std::vector<std::uint64_t> places_of(const open_key& key, std::string_view value, bool from_right,
                                     std::uint64_t most, std::uint64_t looked_at) {
  std::vector<std::uint64_t> found;
  (void)look<stored_sequence>(key, [&](const stored_sequence& list) {
    const std::uint64_t size = list.content.size(), n = std::min(looked_at, size);
    std::uint64_t i = 0;
    const auto visit = [&](const std::string& element) {
      if (element == value) found.push_back(from_right ? size - 1 - i : i);
      return ++i, found.size() < most;
    };
    STELE_ASSERT(size != 0);
    if (from_right)
      list.content.for_each_backwards(size - 1, n, visit);
    else
      list.content.for_each(0, n, visit);
    STELE_ASSERT(found.size() <= most && i <= size);
    return true;
  });
  return found;
}
constexpr std::uint64_t all_of_them = ~std::uint64_t{0};

int linsert(const call& c) {
  const bool after = equal_ignoring_case(c[2], "AFTER");
  if (!after && !equal_ignoring_case(c[2], "BEFORE"))
    return api::ReplyWithError(c.context, syntax_error);
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "LINSERT", true)) return api::ok;
  if (!key.exists()) return answer_unchanged(c, key, 0);
  const auto pivot = places_of(key, c[3], false, 1, all_of_them);
  if (pivot.empty()) return answer_unchanged(c, key, -1);
  if (auto done = change<stored_sequence>(c, key, c[4].size() + 2048,
                                          [&](stored_sequence& list) {
                                            STELE_ASSERT(pivot[0] < list.content.size());
                                            list.content.insert(pivot[0] + after, c[4]);
                                          });
      !done)
    return answer_error(c, done.error());
  replicate(c, "LINSERT");
  notify(c, kind, "linsert", c.text(1));
  return answer_number(c, static_cast<long long>(size_of(key)));
}

int lrem(const call& c) {
  const auto count = integer_of(c[2]);
  if (!count) return api::ReplyWithError(c.context, not_an_integer);
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "LREM", true)) return api::ok;
  const std::uint64_t most = *count == 0  ? all_of_them
                             : *count > 0 ? static_cast<std::uint64_t>(*count)
                                          : ~static_cast<std::uint64_t>(*count) + 1;
  if (places_of(key, c[3], *count < 0, 1, all_of_them).empty()) return answer_unchanged(c, key, 0);
  std::uint64_t removed = 0;
  const auto went = change<stored_sequence>(c, key, 0, [&](stored_sequence& list) {
    removed = list.content.erase_equal(c[3], most, *count < 0);
    STELE_ASSERT(removed != 0 && removed <= most);  // one was found before
  });
  if (!went) return answer_error(c, went.error());
  replicate(c, "LREM");
  notify_taken(c, kind, "lrem", c.text(1), *went);
  return answer_number(c, static_cast<long long>(removed));
}

int ltrim(const call& c) {
  const auto first = integer_of(c[2]), last = integer_of(c[3]);
  if (!first || !last) return api::ReplyWithError(c.context, not_an_integer);
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, kind, "LTRIM", true)) return api::ok;
  answer a(c);
  if (!key.exists()) {
    a.rests_on(nullptr);
    return api::ReplyWithSimpleString(a.to(), "OK");
  }
  const part kept = part_of(*first, *last, size_of(key));
  const auto went = change<stored_sequence>(c, key, 0, [&](stored_sequence& list) {
    const std::uint64_t end = kept.first + kept.count;
    STELE_ASSERT(end <= list.content.size());
    list.content.erase(end, list.content.size() - end);
    list.content.erase(0, kept.first);
    STELE_ASSERT(list.content.size() == kept.count);
  });
  if (!went) return answer_error(c, went.error());
  replicate(c, "LTRIM");
  notify_taken(c, kind, "ltrim", c.text(1), *went);
  a.end_unit();
  return api::ReplyWithSimpleString(a.to(), "OK");
}

struct position_arguments {
  long long rank = 1, most = -1, looked_at = 0;  // most -1: one, and not in an array
};
std::variant<position_arguments, const char*> position_arguments_of(const call& c) {
  position_arguments p;
  for (int i = 3; i < c.count; i += 2) {
    if (i + 1 == c.count) return syntax_error;
    const auto number = integer_of(c[i + 1]);
    if (equal_ignoring_case(c[i], "RANK")) {
      if (!number) return not_an_integer;
      if (*number == 0)
        return "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second "
               "... or use negative to start from the end of the list";
      if (*number == LLONG_MIN) return "ERR value is out of range";
      p.rank = *number;
    } else if (equal_ignoring_case(c[i], "COUNT")) {
      if (!number || *number < 0) return "ERR COUNT can't be negative";
      p.most = *number;
    } else if (equal_ignoring_case(c[i], "MAXLEN")) {
      if (!number || *number < 0) return "ERR MAXLEN can't be negative";
      p.looked_at = *number;
    } else {
      return syntax_error;
    }
  }
  return p;
}

int lpos(const call& c) {
  const auto read_arguments = position_arguments_of(c);
  if (const auto* const wrong = std::get_if<const char*>(&read_arguments))
    return api::ReplyWithError(c.context, *wrong);
  const auto p = std::get<position_arguments>(read_arguments);
  STELE_ASSERT(p.rank != 0 && p.most >= -1 && p.looked_at >= 0);
  const auto skipped = static_cast<std::uint64_t>(std::abs(p.rank) - 1);
  const std::uint64_t wanted = p.most == -1  ? 1
                               : p.most == 0 ? all_of_them - skipped
                                             : static_cast<std::uint64_t>(p.most);
  return read_only<stored_sequence>(c, "LPOS", [&](api::context* to, const open_key& key) {
    auto found =
        places_of(key, c[2], p.rank < 0, skipped + wanted,
                  p.looked_at == 0 ? all_of_them : static_cast<std::uint64_t>(p.looked_at));
    found.erase(found.begin(),
                found.begin() + static_cast<long>(std::min<std::uint64_t>(skipped, found.size())));
    if (p.most != -1) {
      api::ReplyWithArray(to, static_cast<long>(found.size()));
      for (const std::uint64_t place : found)
        api::ReplyWithLongLong(to, static_cast<long long>(place));
    } else if (found.empty()) {
      api::ReplyWithNull(to);
    } else {
      api::ReplyWithLongLong(to, static_cast<long long>(found[0]));
    }
  });
}

constexpr command commands[] = {
    {"llen", with<reply_size<stored_sequence>, literal("LLEN")>, "readonly fast", 1, 1, 1, 2, 2},
    {"lindex", lindex, "readonly", 1, 1, 1, 3, 3},
    {"lrange", lrange, "readonly", 1, 1, 1, 4, 4},
    {"lpos", lpos, "readonly", 1, 1, 1, 3, 0},
    {"lpush", with<push_arguments, literal("LPUSH"), end::left, false>, "write deny-oom fast", 1, 1,
     1, 3, 0},
    {"rpush", with<push_arguments, literal("RPUSH"), end::right, false>, "write deny-oom fast", 1,
     1, 1, 3, 0},
    {"lpushx", with<push_arguments, literal("LPUSHX"), end::left, true>, "write deny-oom fast", 1,
     1, 1, 3, 0},
    {"rpushx", with<push_arguments, literal("RPUSHX"), end::right, true>, "write deny-oom fast", 1,
     1, 1, 3, 0},
    {"lpop", with<pop, end::left>, "write fast", 1, 1, 1, 2, 3},
    {"rpop", with<pop, end::right>, "write fast", 1, 1, 1, 2, 3},
    {"blpop", pop_or_wait<end::left>, "write deny-script", 1, -2, 1, 3, 0},
    {"brpop", pop_or_wait<end::right>, "write deny-script", 1, -2, 1, 3, 0},
    {"lmove", lmove, "write deny-oom", 1, 2, 1, 5, 5},
    {"blmove", blmove, "write deny-oom deny-script", 1, 2, 1, 6, 6},
    {"rpoplpush", with<move_or_null, end::right, end::left>, "write deny-oom", 1, 2, 1, 3, 3},
    {"brpoplpush", brpoplpush, "write deny-oom deny-script", 1, 2, 1, 4, 4},
    {"lmpop", pop_from_several<kind, "LEFT", "RIGHT", pop_several>, "write getkeys-api", 0, 0, 0, 4,
     0},
    {"blmpop", wait_for_several<kind, "LEFT", "RIGHT", pop_several>, "write getkeys-api", 0, 0, 0,
     5, 0},
    {"lset", lset, "write deny-oom", 1, 1, 1, 4, 4},
    {"linsert", linsert, "write deny-oom", 1, 1, 1, 5, 5},
    {"lrem", lrem, "write", 1, 1, 1, 4, 4},
    {"ltrim", ltrim, "write", 1, 1, 1, 4, 4},
};

}  // namespace

constinit const std::span<const command> list_commands(commands);

}  // namespace stele::redis
