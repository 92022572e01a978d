// Reads claims off a chart, and judges them.
#include <bench/figures/claimed.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace stele::bench {
namespace {

bool meet(const interval& a, const interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

verdict unmeasured(std::string_view paper, const published_claim& c) {
  return {std::string(paper), c.figure, c.sentence, c.unit, c.expected, {}};
}

std::string rule_of(const std::string& under, const char* rule) {
  if (under.empty() || *rule == '\0') return under + rule;
  return fmt::format("{}, {}", under, rule);
}

std::string words_of_expected(const verdict& v) {
  const auto& [low, high] = v.expected;
  const std::string unit = v.unit.empty() ? "" : ' ' + v.unit;
  if (std::isinf(high)) return fmt::format(">= {:.4g}{}", low, unit);
  if (std::isinf(low)) return fmt::format("<= {:.4g}{}", high, unit);
  return fmt::format("{:.4g}..{:.4g}{}", low, high, unit);
}

std::string words_of_reading(const measured_reading& r) {
  return words_of(r.value) + (r.within ? ' ' + words_of(*r.within) : "");
}
std::string words_of_ours(const verdict& v) {
  const measured_reading* r = v.deciding();
  return r == nullptr ? "-" : words_of_reading(*r);
}

interval within(const measured_reading& r) {
  return r.within.value_or(interval{r.value, r.value});
}
bool is_same_claim(const verdict& a, const verdict& b) {
  return a.paper == b.paper && a.figure == b.figure && a.sentence == b.sentence;
}

// JSON has no infinity: null.
nlohmann::json number_json(double v) {
  return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr);
}
nlohmann::json json_of(const interval& i) {
  return {{"low", number_json(i.low)}, {"high", number_json(i.high)}};
}

constexpr double infinity = std::numeric_limits<double>::infinity();

interval interval_in(const nlohmann::json& j) {
  const auto end = [&](const char* key, double otherwise) {
    const auto found = j.value(key, nlohmann::json());
    return found.is_number() ? found.get<double>() : otherwise;
  };
  return {end("low", -infinity), end("high", infinity)};
}

measured_reading reading_in(const nlohmann::json& j) {
  measured_reading r{j.at("rule"), j.at("value"), {}, j.at("disturbed")};
  if (j.at("interval").is_object()) r.within = interval_in(j.at("interval"));
  return r;
}

}  // namespace

bool verdict::meets(const measured_reading& r) const noexcept {
  return meet(within(r), expected);
}

const measured_reading* verdict::deciding() const noexcept {
  const auto by_default = std::ranges::find(readings, "", &measured_reading::rule);
  const auto agreeing = std::ranges::find_if(readings, [&](const auto& r) { return meets(r); });
  if (by_default != readings.end() && (meets(*by_default) || agreeing == readings.end()))
    return &*by_default;
  if (agreeing != readings.end()) return &*agreeing;
  return readings.empty() ? nullptr : &readings.front();
}

std::string verdict::words() const {
  const measured_reading* r = deciding();
  if (r == nullptr) return "not measured";
  const std::string how = !meets(*r)        ? "does not hold"
                          : r->rule.empty() ? "agrees"
                                            : "holds under " + r->rule;
  return how + (r->disturbed ? ", on a busy machine" : "");
}

std::vector<verdict> verdicts_of(const chart& c, std::string_view paper, std::string_view figure,
                                 std::span<const stated::statement> statements,
                                 const std::string& under) {
  std::vector<verdict> verdicts;
  for (const published_claim& claimed : claimed_by(paper)) {
    if (claimed.figure != figure) continue;
    verdict& v = verdicts.emplace_back(unmeasured(paper, claimed));
    for (const claim_reading& one : claimed.readings) {
      if (one.what == nullptr) break;
      const auto s = std::ranges::find_if(statements, [&](const stated::statement& of) {
        return of.figure == figure && of.what == std::string_view(one.what);
      });
      if (s == statements.end()) continue;
      if (const auto r = read(c, *s, claimed.sum_up))
        v.readings.push_back({rule_of(under, one.rule), r->value, r->within, false});
    }
  }
  return verdicts;
}

std::vector<verdict> unmeasured_verdicts(std::string_view paper, std::string_view figure) {
  return verdicts_of({}, paper, figure, {});
}

void set_load(chart& c, const std::optional<machine_load>& load) {
  c.load = load;
  const bool timed = !c.of_seeds && std::ranges::any_of(c.panels, [](const panel& p) {
    return std::ranges::any_of(p.lines, [](const series& s) {
      return std::ranges::any_of(s.points,
                                 [](const auto& at) { return at && at->runs.size() > 1; });
    });
  });
  for (verdict& v : c.verdicts)
    for (measured_reading& r : v.readings) r.disturbed = timed && load && load->disturbed();
}

void merge(std::vector<verdict>& to, const std::vector<verdict>& from) {
  for (const verdict& v : from) {
    const auto same =
        std::ranges::find_if(to, [&](const verdict& t) { return is_same_claim(t, v); });
    if (same == to.end())
      to.push_back(v);
    else
      same->readings.insert(same->readings.end(), v.readings.begin(), v.readings.end());
  }
}

std::string table_of(const std::vector<verdict>& verdicts) {
  std::vector<std::vector<std::string>> lines = {
      {"claim of the text", "paper", "figure", "expected", "measured here", "verdict"}};
  for (const verdict& v : verdicts)
    lines.push_back(
        {v.sentence, v.paper, v.figure, words_of_expected(v), words_of_ours(v), v.words()});
  return aligned(lines);
}

std::string comparison_of(const std::vector<verdict>& now, const std::vector<verdict>& then) {
  std::vector<std::vector<std::string>> lines = {
      {"claim of the text", "paper", "figure", "rule", "then", "now"}};
  std::size_t both = 0;
  for (const verdict& v : now) {
    const auto before =
        std::ranges::find_if(then, [&](const verdict& t) { return is_same_claim(t, v); });
    if (before == then.end()) continue;
    for (const measured_reading& r : v.readings) {
      const auto old = std::ranges::find(before->readings, r.rule, &measured_reading::rule);
      if (old == before->readings.end()) continue;
      ++both;
      if (!meet(within(r), within(*old)))
        lines.push_back({v.sentence, v.paper, v.figure, r.rule.empty() ? "-" : r.rule,
                         words_of_reading(*old), words_of_reading(r)});
    }
  }
  const std::size_t apart = lines.size() - 1;
  return fmt::format(
             "{} readings of claims measured then and now; the intervals of {} do not meet\n", both,
             apart) +
         (apart == 0 ? "" : aligned(lines));
}

nlohmann::json json_of(const verdict& v) {
  nlohmann::json readings = nlohmann::json::array();
  for (const measured_reading& r : v.readings)
    readings.push_back({{"rule", r.rule},
                        {"value", r.value},
                        {"interval", r.within ? json_of(*r.within) : nlohmann::json(nullptr)},
                        {"meets", v.meets(r)},
                        {"disturbed", r.disturbed}});
  return {{"paper", v.paper},
          {"figure", v.figure},
          {"claim", v.sentence},
          {"unit", v.unit},
          {"expected", json_of(v.expected)},
          {"expected_words", words_of_expected(v)},
          {"measured_words", words_of_ours(v)},
          {"readings", std::move(readings)},
          {"verdict", v.words()}};
}

std::optional<verdict> verdict_in(const nlohmann::json& j) {
  try {
    verdict v{j.at("paper"),
              j.at("figure"),
              j.at("claim"),
              j.at("unit"),
              interval_in(j.at("expected")),
              {}};
    for (const nlohmann::json& r : j.at("readings")) v.readings.push_back(reading_in(r));
    return v;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace stele::bench
