// Looks charging rules up, and records them in charts.
#include <bench/figures/charge_rule.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stele::bench {
namespace {

bool is_first(std::span<const charge_rule> rules, const sweep_options& o) {
  return o.charge.empty() || o.charge == rules.front().name;
}

}  // namespace

const charge_rule* find_charge(std::span<const charge_rule> rules, std::string_view name) noexcept {
  if (name.empty()) return rules.data();
  const auto found = std::ranges::find(rules, name, &charge_rule::name);
  return found == rules.end() ? nullptr : &*found;
}

std::string unknown_charge(std::span<const charge_rule> rules, std::string_view name) {
  std::vector<std::string_view> names;
  for (const charge_rule& r : rules) names.emplace_back(r.name);
  return fmt::format("there is no charging rule '{}'; choose one of {}", name,
                     fmt::join(names, ", "));
}

std::string charge_suffix(std::span<const charge_rule> rules, const sweep_options& o) {
  return is_first(rules, o) ? "" : "-" + o.charge;
}

std::string under_charge(std::span<const charge_rule> rules, const sweep_options& o) {
  return is_first(rules, o) ? "" : "the charging rule " + o.charge;
}

result<> set_charge(std::span<const charge_rule> rules, const sweep_options& o, bool timed,
                    chart& c) {
  const charge_rule* const rule = find_charge(rules, o.charge);
  if (rule == nullptr)
    return std::unexpected(error{errc::invalid_argument, unknown_charge(rules, o.charge)});
  if (!timed && rule != rules.data())
    return std::unexpected(error{
        errc::invalid_argument,
        fmt::format("no charging rule acts on {}, which is not timed on emulated memory with one; "
                    "leave out --charge",
                    c.name)});
  if (!timed) return {};
  c.charge = {rule->name, rule->meaning};
  c.name += charge_suffix(rules, o);
  return {};
}

}  // namespace stele::bench
