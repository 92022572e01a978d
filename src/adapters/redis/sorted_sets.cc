// Commands on sorted sets. Every range of them is one of ranks: see window.
#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <variant>

#include "scores.h"

namespace stele::redis {

namespace {

void reply_score(api::context* to, const scored& one, bool with_scores, bool nested) {
  if (nested) api::ReplyWithArray(to, 2);
  reply_text(to, one.member);
  if (with_scores) api::ReplyWithDouble(to, one.score);
}

}  // namespace

void reply_scores(const call& c, api::context* to, const scores& all, bool with_scores,
                  bool nested) {
  nested &= with_scores && speaks_resp3(c);
  api::ReplyWithArray(to, static_cast<long>(all.size() * (with_scores && !nested ? 2 : 1)));
  for (const scored& one : all) reply_score(to, one, with_scores, nested);
}

int store_scores(const call& c, const scores& all, const char* name, const char* event) {
  std::vector<element> elements;
  for (const auto& [member, score] : all) {
    STELE_ASSERT(!std::isnan(score));
    elements.emplace_back(member, text_of_score(score));
  }
  return store_result(c, c.text(1), item_kind::sorted_set, elements, name, event);
}

namespace {

std::optional<double> score_in(const open_key& key, std::string_view member) {
  return look<stored_ranking>(key, [&](const stored_ranking& r) { return r.content.find(member); });
}

// --- ZADD, ZINCRBY ---

struct add_arguments {
  bool only_new = false, only_there = false, only_greater = false, only_less = false;
  bool tells_changed = false, increments = false;
  int first = 2;  // score
};
std::variant<add_arguments, const char*> add_arguments_of(const call& c) {
  add_arguments a;
  for (; a.first < c.count; ++a.first) {
    const auto is = [&](const char* word) { return equal_ignoring_case(c[a.first], word); };
    if (is("NX"))
      a.only_new = true;
    else if (is("XX"))
      a.only_there = true;
    else if (is("GT"))
      a.only_greater = true;
    else if (is("LT"))
      a.only_less = true;
    else if (is("CH"))
      a.tells_changed = true;
    else if (is("INCR"))
      a.increments = true;
    else
      break;
  }
  const int rest = c.count - a.first;
  if (rest == 0 || rest % 2 != 0) return syntax_error;
  if (a.only_new && a.only_there)
    return "ERR XX and NX options at the same time are not compatible";
  if (a.only_new + a.only_greater + a.only_less > 1)
    return "ERR GT, LT, and/or NX options at the same time are not compatible";
  if (a.increments && rest > 2) return "ERR INCR option supports a single increment-element pair";
  STELE_ASSERT(!(a.only_new && (a.only_there || a.only_greater || a.only_less)));
  return a;
}

constexpr const char* not_a_score = "ERR resulting score is not a number (NaN)";

// What ZADD does with one pair.
struct outcome {
  std::optional<double> score;  // that it gets; none: it stays as it is
  bool is_new = false;
};
std::variant<outcome, const char*> outcome_of(const add_arguments& how,
                                              std::optional<double> before, double given) {
  STELE_ASSERT(!std::isnan(given) && !(before && std::isnan(*before)));
  if (!before) return how.only_there ? outcome{} : outcome{given, true};
  if (how.only_new) return outcome{};
  const double after = how.increments ? *before + given : given;
  if (std::isnan(after)) return not_a_score;
  if ((how.only_greater && after <= *before) || (how.only_less && after >= *before))
    return outcome{};
  return outcome{after, false};
}

int answer_increment(const call& c, std::optional<double> score, const open_key& key,
                     bool changed) {
  answer a(c);
  if (changed)
    a.end_unit();
  else
    a.rests_on(key.item());
  return score ? api::ReplyWithDouble(a.to(), *score) : api::ReplyWithNull(a.to());
}

int add(const call& c, const add_arguments& how, const char* name) {
  std::vector<scored> given;
  STELE_ASSERT((c.count - how.first) % 2 == 0 && how.first < c.count);
  for (int i = how.first; i < c.count; i += 2) {
    const auto score = score_of(c[i]);
    if (!score) return api::ReplyWithError(c.context, not_a_float);
    given.push_back({std::string(c[i + 1]), *score});
  }
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::sorted_set, name, true)) return api::ok;
  // A member may be given twice.
  std::map<std::string_view, double> stored;
  long long added = 0, changed = 0;
  std::size_t bytes = 0;
  std::optional<double> last;
  for (const auto& [member, score] : given) {
    const auto again = stored.find(member);
    const auto before = again != stored.end() ? again->second : score_in(key, member);
    const auto found = outcome_of(how, before, score);
    if (const auto* const wrong = std::get_if<const char*>(&found))
      return answer_refusal(c, *wrong);
    const outcome& o = std::get<outcome>(found);
    last = o.score;
    if (!o.score || (before && *before == *o.score)) continue;
    stored[member] = *o.score;
    bytes += member.size() + 2 * bytes_of_element;
    (o.is_new ? added : changed) += 1;
  }
  const bool changes = !stored.empty();
  STELE_ASSERT(changes == (added + changed != 0));
  STELE_ASSERT(stored.size() <= given.size() && (!how.increments || given.size() == 1));
  if (changes) {
    if (auto done = change<stored_ranking>(c, key, bytes,
                                           [&](stored_ranking& r) {
                                             for (const auto& [member, score] : stored)
                                               r.content.put(member, score);
                                             STELE_ASSERT(r.content.size() >= stored.size());
                                           });
        !done)
      return answer_error(c, done.error());
    replicate(c, name);
    notify(c, item_kind::sorted_set, how.increments ? "zincr" : "zadd", c.text(1));
  }
  if (how.increments) return answer_increment(c, last, key, changes);
  const long long counted = how.tells_changed ? added + changed : added;
  return changes ? answer_number(c, counted) : answer_unchanged(c, key, counted);
}

int zadd(const call& c) {
  const auto how = add_arguments_of(c);
  if (const auto* const wrong = std::get_if<const char*>(&how))
    return api::ReplyWithError(c.context, *wrong);
  return add(c, std::get<add_arguments>(how), "ZADD");
}
int zincrby(const call& c) {
  add_arguments how;
  how.increments = true;
  return add(c, how, "ZINCRBY");
}

int zrem(const call& c) {
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::sorted_set, "ZREM", true)) return api::ok;
  long long removed = 0;
  bool any = false;
  for (int i = 2; i < c.count && !any; ++i) any = score_in(key, c[i]).has_value();
  if (!any) return answer_unchanged(c, key, 0);
  const auto went = change<stored_ranking>(c, key, 0, [&](stored_ranking& r) {
    removed = 0;
    for (int i = 2; i < c.count; ++i) removed += r.content.erase(c[i]);
    STELE_ASSERT(removed != 0);  // one was found before
  });
  if (!went) return answer_error(c, went.error());
  replicate(c, "ZREM");
  notify_taken(c, item_kind::sorted_set, "zrem", c.text(1), *went);
  return answer_number(c, removed);
}

// --- one member ---

void reply_score(api::context* to, std::optional<double> score) {
  if (score)
    api::ReplyWithDouble(to, *score);
  else
    api::ReplyWithNull(to);
}
int zscore(const call& c) {
  return read_only<stored_ranking>(c, "ZSCORE", [&](api::context* to, const open_key& key) {
    reply_score(to, score_in(key, c[2]));
  });
}
int zmscore(const call& c) {
  return read_only<stored_ranking>(c, "ZMSCORE", [&](api::context* to, const open_key& key) {
    api::ReplyWithArray(to, c.count - 2);
    for (int i = 2; i < c.count; ++i) reply_score(to, score_in(key, c[i]));
  });
}
int rank(const call& c, const char* name, bool from_highest) {
  return read_only<stored_ranking>(c, name, [&](api::context* to, const open_key& key) {
    const auto at =
        look<stored_ranking>(key, [&](const stored_ranking& r) { return r.content.rank_of(c[2]); });
    if (!at) return void(api::ReplyWithNull(to));
    STELE_ASSERT(*at < size_of(key));
    api::ReplyWithLongLong(to, static_cast<long long>(from_highest ? size_of(key) - 1 - *at : *at));
  });
}

// --- ranges ---

enum class order : std::uint8_t { rank, score, text };

// One end of a range of scores or texts.
struct score_bound {
  double value;
  bool is_open;
};
std::optional<score_bound> score_bound_of(std::string_view text) {
  const bool is_open = text.starts_with('(');
  if (is_open) text.remove_prefix(1);
  const auto value = bound_of(text);
  if (!value) return std::nullopt;
  return score_bound{*value, is_open};
}
struct text_bound {
  std::string_view text;
  bool is_open = false;
  int infinite = 0;  // -1: before all; 1: after all
};
std::optional<text_bound> text_bound_of(std::string_view text) {
  if (text == "-" || text == "+") return text_bound{{}, false, text == "-" ? -1 : 1};
  if (text.empty() || (text[0] != '[' && text[0] != '(')) return std::nullopt;
  return text_bound{text.substr(1), text[0] == '(', 0};
}

// Ranks from `first` to before `end`, counted from the lowest.
struct window {
  std::uint64_t first = 0, end = 0;
  std::uint64_t size() const { return end > first ? end - first : 0; }
};
// A range as it was given, and the window of a sorted set that it is.
struct range {
  order by = order::rank;
  bool reversed = false;
  long long first = 0, last = 0;
  score_bound low{}, high{};
  text_bound from{}, to{};
  long long offset = 0, limit = -1;

  window in(const stored_scores& all) const;
};

// How many members are before this end of a range of texts.
std::uint64_t rank_of(const stored_scores& all, const text_bound& bound, bool after) {
  if (bound.infinite != 0) return bound.infinite < 0 ? 0 : all.size();
  return all.rank_of_member_bytes(bound.text, after);
}

window range::in(const stored_scores& all) const {
  const std::uint64_t size = all.size();
  window w;
  if (by == order::rank) {
    const auto n = static_cast<long long>(size);
    const long long begin = first < 0 ? std::max(first + n, 0LL) : first,
                    end = std::min(last < 0 ? last + n : last, n - 1);
    if (begin > end) return {};
    w = {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end) + 1};
    STELE_ASSERT(w.first < w.end && w.end <= size);
    return reversed ? window{size - w.end, size - w.first} : w;
  }
  if (by == order::score)
    w = {all.rank_of_score(low.value, low.is_open), all.rank_of_score(high.value, !high.is_open)};
  else
    w = {rank_of(all, from, from.is_open), rank_of(all, to, !to.is_open)};
  STELE_ASSERT(w.first <= size && w.end <= size);
  if (offset < 0 || w.size() <= static_cast<std::uint64_t>(offset)) return {};
  const auto skipped = static_cast<std::uint64_t>(offset);
  const std::uint64_t kept = limit < 0
                                 ? w.size() - skipped
                                 : std::min(w.size() - skipped, static_cast<std::uint64_t>(limit));
  STELE_ASSERT(skipped + kept <= w.size());
  if (reversed) return {w.end - skipped - kept, w.end - skipped};
  return {w.first + skipped, w.first + skipped + kept};
}

// Reads the two ends of a range. Null, or what is wrong.
const char* read_bounds(range& r, std::string_view low, std::string_view high) {
  if (r.by == order::rank) {
    const auto first = integer_of(low), last = integer_of(high);
    if (!first || !last) return not_an_integer;
    r.first = *first, r.last = *last;
    return nullptr;
  }
  if (r.reversed) std::swap(low, high);
  if (r.by == order::score) {
    const auto from = score_bound_of(low), to = score_bound_of(high);
    if (!from || !to) return "ERR min or max is not a float";
    r.low = *from, r.high = *to;
    return nullptr;
  }
  const auto from = text_bound_of(low), to = text_bound_of(high);
  if (!from || !to) return "ERR min or max not valid string range item";
  r.from = *from, r.to = *to;
  return nullptr;
}

scores members_in(const open_key& key, const range& r) {
  return look<stored_ranking>(key, [&](const stored_ranking& ranking) {
    scores found;
    const window w = r.in(ranking.content);
    const auto visit = [&](std::string_view member, double score) {
      found.push_back({std::string(member), score});
      return true;
    };
    if (w.size() != 0 && r.reversed)
      ranking.content.for_each_backwards(w.end - 1, w.size(), visit);
    else if (w.size() != 0)
      ranking.content.for_each(w.first, w.size(), visit);
    STELE_ASSERT(found.size() == w.size());
    return found;
  });
}

// The arguments of ZRANGE and its relatives, from `at` on: two ends and options.
struct range_arguments {
  range of;
  bool with_scores = false;
};
struct range_form {
  std::optional<order> by;  // none: by options
  bool reversed = false, stores = false;
};
std::variant<range_arguments, const char*> range_arguments_of(const call& c, int at,
                                                              const range_form& form) {
  range_arguments r;
  r.of.by = form.by.value_or(order::rank);
  r.of.reversed = form.reversed;
  for (int i = at + 2; i < c.count; ++i) {
    const auto is = [&](const char* word) { return equal_ignoring_case(c[i], word); };
    if (!form.stores && is("WITHSCORES")) {
      r.with_scores = true;
    } else if (is("LIMIT") && i + 2 < c.count) {
      const auto offset = integer_of(c[i + 1]), limit = integer_of(c[i + 2]);
      if (!offset || !limit) return not_an_integer;
      r.of.offset = *offset, r.of.limit = *limit;
      i += 2;
    } else if (!form.by && !r.of.reversed && is("REV")) {
      r.of.reversed = true;
    } else if (!form.by && r.of.by == order::rank && is("BYSCORE")) {
      r.of.by = order::score;
    } else if (!form.by && r.of.by == order::rank && is("BYLEX")) {
      r.of.by = order::text;
    } else {
      return syntax_error;
    }
  }
  if (r.of.limit != -1 && r.of.by == order::rank)  // as Redis: -1 is no limit
    return "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
  if (r.with_scores && r.of.by == order::text)
    return "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
  if (const char* const wrong = read_bounds(r.of, c[at], c[at + 1])) return wrong;
  return r;
}

int reply_range(const call& c, const char* name, const range_form& form) {
  const auto arguments = range_arguments_of(c, 2, form);
  if (const auto* const wrong = std::get_if<const char*>(&arguments))
    return api::ReplyWithError(c.context, *wrong);
  const auto& how = std::get<range_arguments>(arguments);
  return read_only<stored_ranking>(c, name, [&](api::context* to, const open_key& key) {
    reply_scores(c, to, members_in(key, how.of), how.with_scores, true);
  });
}
int zrange(const call& c) {
  return reply_range(c, "ZRANGE", {});
}
int zrevrange(const call& c) {
  return reply_range(c, "ZREVRANGE", {order::rank, true, false});
}
int zrangebyscore(const call& c) {
  return reply_range(c, "ZRANGEBYSCORE", {order::score, false, false});
}
int zrevrangebyscore(const call& c) {
  return reply_range(c, "ZREVRANGEBYSCORE", {order::score, true, false});
}
int zrangebylex(const call& c) {
  return reply_range(c, "ZRANGEBYLEX", {order::text, false, false});
}
int zrevrangebylex(const call& c) {
  return reply_range(c, "ZREVRANGEBYLEX", {order::text, true, false});
}

int zrangestore(const call& c) {
  const auto arguments = range_arguments_of(c, 3, {std::nullopt, false, true});
  if (const auto* const wrong = std::get_if<const char*>(&arguments))
    return api::ReplyWithError(c.context, *wrong);
  scores found;
  {
    const open_key source(c, c.text(2), api::for_reading);
    if (is_wrong_kind(c, source, item_kind::sorted_set)) return api::ok;
    found = members_in(source, std::get<range_arguments>(arguments).of);
  }
  return store_scores(c, found, "ZRANGESTORE", "zrangestore");
}

int count_in(const call& c, const char* name, order by) {
  range r;
  r.by = by;
  if (const char* const wrong = read_bounds(r, c[2], c[3]))
    return api::ReplyWithError(c.context, wrong);
  return read_only<stored_ranking>(c, name, [&](api::context* to, const open_key& key) {
    const std::uint64_t count = look<stored_ranking>(
        key, [&](const stored_ranking& ranking) { return r.in(ranking.content).size(); });
    api::ReplyWithLongLong(to, static_cast<long long>(count));
  });
}

int remove_range(const call& c, const char* name, const char* event, order by) {
  range r;
  r.by = by;
  if (const char* const wrong = read_bounds(r, c[2], c[3]))
    return api::ReplyWithError(c.context, wrong);
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::sorted_set, name, true)) return api::ok;
  const window w = look<stored_ranking>(
      key, [&](const stored_ranking& ranking) { return r.in(ranking.content); });
  if (w.size() == 0) return answer_unchanged(c, key, 0);
  const auto went = change<stored_ranking>(
      c, key, 0, [&](stored_ranking& ranking) { ranking.content.erase_ranks(w.first, w.size()); });
  if (!went) return answer_error(c, went.error());
  replicate(c, name);
  notify_taken(c, item_kind::sorted_set, event, c.text(1), *went);
  return answer_number(c, static_cast<long long>(w.size()));
}

// --- ZPOPMIN and its relatives ---

enum class end : std::uint8_t { lowest, highest };
const char* pop_name(end at) {
  return at == end::lowest ? "ZPOPMIN" : "ZPOPMAX";
}

// Removes this many members, or all; notifies the events and replicates.
result<scores> take(const call& c, open_key& key, end at, std::uint64_t count) {
  range r;
  r.reversed = at == end::highest;
  STELE_ASSERT(count != 0);
  r.last = static_cast<long long>(std::min<std::uint64_t>(count, LLONG_MAX)) - 1;
  scores found = members_in(key, r);
  const auto went = change<stored_ranking>(c, key, 0, [&](stored_ranking& ranking) {
    const window w = r.in(ranking.content);
    STELE_ASSERT(w.size() == found.size());  // the answered ones are removed
    ranking.content.erase_ranks(w.first, w.size());
  });
  if (!went) return std::unexpected(went.error());
  STELE_ASSERT(!found.empty() && found.size() <= count);
  notify_taken(c, item_kind::sorted_set, at == end::lowest ? "zpopmin" : "zpopmax", key.name(),
               *went);
  replicate_as(c, pop_name(at), "sl", key.name(), static_cast<long long>(found.size()));
  return found;
}

int pop(const call& c, end at) {
  if (c.count > 3) return api::ReplyWithError(c.context, syntax_error);
  const auto count = pop_count_of(c);
  if (!count) return api::ok;
  open_key key(c, c.text(1), api::for_reading | api::for_writing);
  if (is_other_kind(c, key, item_kind::sorted_set, pop_name(at), true)) return api::ok;
  answer a(c);
  if (!key.exists() || *count == 0) {
    a.rests_on(key.item());
    return api::ReplyWithArray(a.to(), 0);
  }
  const auto found = take(c, key, at, *count);
  if (!found) return answer_error(c, found.error());
  a.end_unit();
  reply_scores(c, a.to(), *found, true, c.count == 3);
  return api::ok;
}

template <end At>
void pop_first(const call& c, open_key& key) {
  answer a(c);
  const auto found = take(c, key, At, 1);
  if (!found) return void(answer_error(c, found.error()));
  a.end_unit();
  api::ReplyWithArray(a.to(), 3);
  reply_text(a.to(), view(key.name()));
  reply_text(a.to(), (*found)[0].member);
  api::ReplyWithDouble(a.to(), (*found)[0].score);
}
template <end At>
int pop_or_wait(const call& c) {
  return serve_or_wait(c, pop_first<At>, {item_kind::sorted_set, 1, c.count - 2, c[c.count - 1]});
}

void pop_several(const call& c, open_key& key, const pop_arguments& how) {
  STELE_ASSERT(key.is(item_kind::sorted_set));
  answer a(c);
  const auto found = take(c, key, how.at_second ? end::highest : end::lowest, how.most);
  if (!found) return void(answer_error(c, found.error()));
  a.end_unit();
  api::ReplyWithArray(a.to(), 2);
  reply_text(a.to(), view(key.name()));
  api::ReplyWithArray(a.to(), static_cast<long>(found->size()));
  for (const auto& [member, score] : *found) {
    api::ReplyWithArray(a.to(), 2);
    reply_text(a.to(), member);
    api::ReplyWithDouble(a.to(), score);
  }
}
scored at_rank(const open_key& key, std::uint64_t rank) {
  return look<stored_ranking>(key, [&](const stored_ranking& ranking) {
    scored found{};
    ranking.content.for_each(rank, 1, [&](std::string_view member, double score) {
      found = {std::string(member), score};
      return true;
    });
    return found;
  });
}

int zrandmember(const call& c) {
  const auto how = random_arguments_of(c, "WITHSCORES");
  if (!how) return api::ok;
  return read_only<stored_ranking>(c, "ZRANDMEMBER", [&](api::context* to, const open_key& key) {
    const std::uint64_t size = size_of(key);
    if (how->is_single && size == 0) return void(api::ReplyWithNull(to));
    const bool nested = how->is_with_seconds && speaks_resp3(c);
    const long long count = count_of_random(size, how->count);
    if (!how->is_single)
      api::ReplyWithArray(to, static_cast<long>(count * (how->is_with_seconds && !nested ? 2 : 1)));
    for_each_random(c, size, how->count, [&](auto place) {
      reply_score(to, at_rank(key, place), how->is_with_seconds, nested);
    });
  });
}

int zscan(const call& c) {
  const auto step = [](stored_item* item, std::uint64_t cursor, const element_visit& visit) {
    const stored_scores& all = as<stored_ranking>(item).content;
    if (all.size() <= scanned_whole) {  // in their order, and integers without an exponent
      all.for_each(0, all.size(), [&](std::string_view member, double score) {
        visit(member, text_of_small_sets_score(score));
        return true;
      });
      return std::uint64_t{0};
    }
    return all.scan(cursor, [&](std::string_view member, double score) {
      visit(member, text_of_score(score));
    });
  };
  return scan(c, "ZSCAN", item_kind::sorted_set, step);
}

constexpr command commands[] = {
    {"zcard", with<reply_size<stored_ranking>, literal("ZCARD")>, "readonly fast", 1, 1, 1, 2, 2},
    {"zscore", zscore, "readonly fast", 1, 1, 1, 3, 3},
    {"zmscore", zmscore, "readonly fast", 1, 1, 1, 3, 0},
    {"zrank", with<rank, literal("ZRANK"), false>, "readonly fast", 1, 1, 1, 3, 3},
    {"zrevrank", with<rank, literal("ZREVRANK"), true>, "readonly fast", 1, 1, 1, 3, 3},
    {"zcount", with<count_in, literal("ZCOUNT"), order::score>, "readonly fast", 1, 1, 1, 4, 4},
    {"zlexcount", with<count_in, literal("ZLEXCOUNT"), order::text>, "readonly fast", 1, 1, 1, 4,
     4},
    {"zrange", zrange, "readonly", 1, 1, 1, 4, 0},
    {"zrevrange", zrevrange, "readonly", 1, 1, 1, 4, 0},
    {"zrangebyscore", zrangebyscore, "readonly", 1, 1, 1, 4, 0},
    {"zrevrangebyscore", zrevrangebyscore, "readonly", 1, 1, 1, 4, 0},
    {"zrangebylex", zrangebylex, "readonly", 1, 1, 1, 4, 0},
    {"zrevrangebylex", zrevrangebylex, "readonly", 1, 1, 1, 4, 0},
    {"zrandmember", zrandmember, "readonly", 1, 1, 1, 2, 4},
    {"zscan", zscan, "readonly", 1, 1, 1, 3, 0},
    {"zadd", zadd, "write deny-oom fast", 1, 1, 1, 4, 0},
    {"zincrby", zincrby, "write deny-oom fast", 1, 1, 1, 4, 4},
    {"zrem", zrem, "write fast", 1, 1, 1, 3, 0},
    {"zremrangebyrank",
     with<remove_range, literal("ZREMRANGEBYRANK"), literal("zremrangebyrank"), order::rank>,
     "write", 1, 1, 1, 4, 4},
    {"zremrangebyscore",
     with<remove_range, literal("ZREMRANGEBYSCORE"), literal("zremrangebyscore"), order::score>,
     "write", 1, 1, 1, 4, 4},
    {"zremrangebylex",
     with<remove_range, literal("ZREMRANGEBYLEX"), literal("zremrangebylex"), order::text>, "write",
     1, 1, 1, 4, 4},
    {"zrangestore", zrangestore, "write deny-oom", 1, 2, 1, 5, 0},
    {"zpopmin", with<pop, end::lowest>, "write fast", 1, 1, 1, 2, 0},
    {"zpopmax", with<pop, end::highest>, "write fast", 1, 1, 1, 2, 0},
    {"bzpopmin", pop_or_wait<end::lowest>, "write fast deny-script", 1, -2, 1, 3, 0},
    {"bzpopmax", pop_or_wait<end::highest>, "write fast deny-script", 1, -2, 1, 3, 0},
    {"zmpop", pop_from_several<item_kind::sorted_set, "MIN", "MAX", pop_several>,
     "write getkeys-api", 0, 0, 0, 4, 0},
    {"bzmpop", wait_for_several<item_kind::sorted_set, "MIN", "MAX", pop_several>,
     "write getkeys-api", 0, 0, 0, 5, 0},
};

}  // namespace

constinit const std::span<const command> sorted_set_commands(commands);

}  // namespace stele::redis
