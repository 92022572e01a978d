// Commands that combine several sorted sets.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "scores.h"

namespace stele::redis {

namespace {

enum class combination : std::uint8_t { all, intersection, difference };
enum class aggregate : std::uint8_t { sum, lowest, highest };

struct combine_arguments {
  std::vector<double> weights;  // one a key
  aggregate how = aggregate::sum;
  bool with_scores = false;
};

// A set, or a sorted set; in a set all scores are 1.
using open_keys = std::vector<std::unique_ptr<open_key>>;

// The number of keys is the argument `at`. nullopt: answered with an error.
std::optional<open_keys> open_inputs(const call& c, int at, const char* name) {
  const auto fails = [&](const std::string& why) -> std::optional<open_keys> {
    api::ReplyWithError(c.context, why.c_str());
    return std::nullopt;
  };
  const auto count = integer_of(c[at]);
  if (!count) return fails(not_an_integer);
  if (*count < 1)
    return fails(std::string("ERR at least 1 input key is needed for '") + name + "' command");
  if (*count > c.count - at - 1) return fails(syntax_error);
  open_keys opened;
  for (int i = at + 1; i <= at + static_cast<int>(*count); ++i) {
    opened.push_back(std::make_unique<open_key>(c, c.text(i), api::for_reading));
    const open_key& key = *opened.back();
    if (!key.is(item_kind::set) && is_wrong_kind(c, key, item_kind::sorted_set))
      return std::nullopt;
  }
  return opened;
}

// The arguments from `i` on; as in Redis, after the keys were looked at. Null, or what is wrong.
const char* read_options(const call& c, int i, bool weighs, bool stores, combine_arguments& a) {
  STELE_ASSERT(i <= c.count && !a.weights.empty());
  for (; i < c.count; ++i) {
    const int left = c.count - i - 1;
    if (weighs && equal_ignoring_case(c[i], "WEIGHTS") &&
        left >= static_cast<int>(a.weights.size())) {
      for (double& weight : a.weights) {
        const auto given = score_of(c[++i]);
        if (!given) return "ERR weight value is not a float";
        weight = *given;
      }
    } else if (weighs && equal_ignoring_case(c[i], "AGGREGATE") && left >= 1) {
      ++i;
      if (equal_ignoring_case(c[i], "SUM"))
        a.how = aggregate::sum;
      else if (equal_ignoring_case(c[i], "MIN"))
        a.how = aggregate::lowest;
      else if (equal_ignoring_case(c[i], "MAX"))
        a.how = aggregate::highest;
      else
        return syntax_error;
    } else if (!stores && equal_ignoring_case(c[i], "WITHSCORES")) {
      a.with_scores = true;
    } else {
      return syntax_error;
    }
  }
  return nullptr;
}

double zero_if_nan(double score) {
  return std::isnan(score) ? 0 : score;
}

double combined(aggregate how, double a, double b) {
  STELE_ASSERT(!std::isnan(a));
  if (how == aggregate::lowest) return std::min(a, b);
  if (how == aggregate::highest) return std::max(a, b);
  return zero_if_nan(a + b);  // infinities of both signs
}

// A weight of 0 makes infinities NaN.
scores scores_of(const open_key& key, double weight) {
  scores all;
  for (auto& [member, text] : elements_of(key)) {
    const double score = weight * (key.is(item_kind::sorted_set) ? score_of(text).value_or(0) : 1);
    all.push_back({std::move(member), score});
  }
  return all;
}

// The smallest input first, as in Redis: a sum of doubles depends on the order.
std::vector<std::size_t> order_of(combination how, const open_keys& inputs) {
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (how == combination::difference) return order;
  const auto size = [&](std::size_t i) {
    stored_item* const item = inputs[i]->item();
    if (item == nullptr) return std::uint64_t{0};
    return inputs[i]->read([&] { return count_of(item); }).value_or(0);
  };
  std::ranges::stable_sort(order, {}, size);
  return order;
}

scores combine(combination how, const open_keys& inputs, const combine_arguments& a) {
  const auto order = order_of(how, inputs);
  STELE_ASSERT(!inputs.empty() && order.size() == inputs.size());
  STELE_ASSERT(a.weights.size() == inputs.size());
  std::map<std::string, double> all;
  for (auto& [member, score] : scores_of(*inputs[order[0]], a.weights[order[0]]))
    all.emplace(member, zero_if_nan(score));
  for (const std::size_t i : std::span(order).subspan(1)) {
    std::map<std::string, double> both;
    for (auto& [member, score] : scores_of(*inputs[i], a.weights[i])) {
      const auto at = all.find(member);
      if (how == combination::difference) {
        if (at != all.end()) all.erase(at);
      } else if (at != all.end()) {
        // Redis leaves NaN in an intersection to the aggregate.
        const double next = how == combination::intersection ? score : zero_if_nan(score);
        at->second = combined(a.how, at->second, next);
        if (how == combination::intersection) both.insert(*at);
      } else if (how == combination::all) {
        all.emplace(std::move(member), zero_if_nan(score));
      }
    }
    if (how == combination::intersection) all.swap(both);
  }
  scores sorted;
  for (const auto& [member, score] : all) sorted.push_back({member, score});
  STELE_ASSERT_WHOLE(
      std::ranges::none_of(sorted, [](const scored& s) { return std::isnan(s.score); }));
  std::ranges::stable_sort(sorted, {}, &scored::score);
  return sorted;
}

int reply_combined(const call& c, combination how, const char* name) {
  const auto inputs = open_inputs(c, 1, name);
  if (!inputs) return api::ok;
  const auto keys = static_cast<int>(inputs->size());
  combine_arguments a{.weights = std::vector<double>(inputs->size(), 1)};
  if (const char* const wrong = read_options(c, 2 + keys, how != combination::difference, false, a))
    return api::ReplyWithError(c.context, wrong);
  answer given(c);
  for (const auto& key : *inputs) given.rests_on(key->item());
  reply_scores(c, given.to(), combine(how, *inputs, a), a.with_scores, true);
  return api::ok;
}

int store_combined(const call& c, combination how, const char* name, const char* event) {
  scores found;
  {
    const auto inputs = open_inputs(c, 2, event);
    if (!inputs) return api::ok;
    const auto keys = static_cast<int>(inputs->size());
    combine_arguments a{.weights = std::vector<double>(inputs->size(), 1)};
    if (const char* const wrong =
            read_options(c, 3 + keys, how != combination::difference, true, a))
      return api::ReplyWithError(c.context, wrong);
    found = combine(how, *inputs, a);
  }
  return store_scores(c, found, name, event);
}

int zintercard(const call& c) {
  const auto inputs = open_inputs(c, 1, "zintercard");
  if (!inputs) return api::ok;
  std::uint64_t most = 0;
  if (const char* const wrong = read_limit(c, 2 + static_cast<int>(inputs->size()), most))
    return api::ReplyWithError(c.context, wrong);
  answer given(c);
  for (const auto& key : *inputs) given.rests_on(key->item());
  const combine_arguments a{.weights = std::vector<double>(inputs->size(), 1)};
  const std::uint64_t common = combine(combination::intersection, *inputs, a).size();
  return api::ReplyWithLongLong(given.to(), static_cast<long long>(std::min(common, most)));
}

constexpr command commands[] = {
    {"zunion", with<reply_combined, combination::all, literal("zunion")>, "readonly getkeys-api", 0,
     0, 0, 3, 0},
    {"zinter", with<reply_combined, combination::intersection, literal("zinter")>,
     "readonly getkeys-api", 0, 0, 0, 3, 0},
    {"zdiff", with<reply_combined, combination::difference, literal("zdiff")>,
     "readonly getkeys-api", 0, 0, 0, 3, 0},
    {"zintercard", zintercard, "readonly getkeys-api", 0, 0, 0, 3, 0},
    {"zunionstore",
     with<store_combined, combination::all, literal("ZUNIONSTORE"), literal("zunionstore")>,
     "write deny-oom getkeys-api", 0, 0, 0, 4, 0},
    {"zinterstore",
     with<store_combined, combination::intersection, literal("ZINTERSTORE"),
          literal("zinterstore")>,
     "write deny-oom getkeys-api", 0, 0, 0, 4, 0},
    {"zdiffstore",
     with<store_combined, combination::difference, literal("ZDIFFSTORE"), literal("zdiffstore")>,
     "write deny-oom getkeys-api", 0, 0, 0, 4, 0},
};

}  // namespace

constinit const std::span<const command> sorted_set_algebra_commands(commands);

}  // namespace stele::redis
