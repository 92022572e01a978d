// The charging rules of a publication's timed figures: what its text may mean by the latency of its
// emulated memory. All timed figures are drawn under one rule; the first is used unless another is
// named.
#pragma once

#include <bench/figures/sweep.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

struct charge_rule {
  const char *name, *media;  // media: what it adds to the name of the medium
  const char* meaning;       // in a sentence without its end
};

// Null: no rule has this name; "" is the first.
const charge_rule* find_charge(std::span<const charge_rule> rules, std::string_view name) noexcept;
// A sentence without its end, which names the rules that there are.
std::string unknown_charge(std::span<const charge_rule> rules, std::string_view name);
// For a chart's name, and those of its files: "" of the first rule, else "-once".
std::string charge_suffix(std::span<const charge_rule> rules, const sweep_options& o);
// For its verdicts: "" of the first rule, else "the charging rule once".
std::string under_charge(std::span<const charge_rule> rules, const sweep_options& o);

// Gives the chart its rule, and adds it to its name, if the figure is timed on the medium. Errors:
// invalid_argument, of an unknown rule, and of another than the first for a figure that no rule
// acts on.
[[nodiscard]] result<> set_charge(std::span<const charge_rule> rules, const sweep_options& o,
                                  bool timed, chart& c);

}  // namespace stele::bench
