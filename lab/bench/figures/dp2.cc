// The table of figures of the DP2 evaluation.
#include <bench/figures/claims.h>
#include <bench/figures/dp2.h>
#include <bench/figures/dp2_parts.h>
#include <bench/figures/dp2_stated.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stele::bench {
namespace dp2 {
namespace {

struct figure_entry {
  const char *name, *title, *section, *setting;
  bool simulated, charged;  // charged: a rule of dp2_charges() acts on it
  result<> (*measure)(const sweep_options& o, chart& c);
};

constexpr figure_entry figures[] = {
    {"2", "What of a transaction's time goes into log, data and others", "2.3",
     "mechanism base, medium pcm:strict:waits", false, false, measure_breakdown},
    {"5", "Write bandwidth under the scheduling rules, by value size", "4.2.1", "hash", true, false,
     measure_rules},
    {"6", "Write bandwidth under the scheduling rules, by threads", "4.2.1", "hash", true, false,
     measure_threads},
    {"7", "Throughput with a shorter retention of logs", "4.2.2",
     "hash, mechanism base, medium pcm:strict:SPEEDUP", false, true, measure_retention},
    {"8", "Write bandwidth under the scheduling rules, logs kept for 10^4 s", "4.2.2", "hash", true,
     false, measure_rules_with_dual},
    {"9", "Throughput by value size", "4.2.3", "hash, medium pcm", false, true,
     measure_value_sizes},
    {"10", "Throughput by workload", "4.2.3", "8 B values, medium pcm", false, true,
     measure_workloads},
    {"endurance", "Lifetime, logs kept for 10^4 s", "4.2.4", "8 B values, one thread", true, false,
     measure_endurance},
};

std::string note_of(const figure_entry& f, const sweep_options& o) {
  if (f.simulated)
    return fmt::format(
        "tapes of {} transactions with the mechanism base, {} keys, played into the simulated "
        "controller as fast as it takes them",
        o.traced_operations, o.traced_keys);
  return fmt::format("medians of {} run{} of {} s, in turn; {} keys; seed {}; emulated banks",
                     o.runs, o.runs == 1 ? "" : "s", o.seconds, o.large_keys, o.seed);
}

}  // namespace
}  // namespace dp2

std::vector<std::string> dp2_figures() {
  std::vector<std::string> names;
  for (const auto& f : dp2::figures) names.emplace_back(f.name);
  return names;
}

std::span<const charge_rule> dp2_charges() noexcept {
  static constexpr charge_rule rules[] = {
      {"ordered", "", "a fence orders and returns, and so does a commit"},
      {"waits", ":waits", "a fence waits until what it orders is persistent"}};
  return rules;
}
std::vector<std::string> dp2_timed_figures() {
  std::vector<std::string> names;
  for (const auto& f : dp2::figures)
    if (f.charged) names.emplace_back(f.name);
  return names;
}

result<chart> measure_dp2(std::string_view figure, const sweep_options& o) {
  const auto* f = std::ranges::find(dp2::figures, figure, &dp2::figure_entry::name);
  if (f == std::ranges::end(dp2::figures))
    return std::unexpected(error{errc::invalid_argument,
                                 fmt::format("there is no figure '{}' to redraw; choose one of {}",
                                             figure, fmt::join(dp2_figures(), ", "))});
  chart c;
  c.name = fmt::format("dp2-{}", f->name);
  if (auto set = set_charge(dp2_charges(), o, f->charged, c); !set)
    return std::unexpected(std::move(set.error()));
  c.title = f->name == std::string_view("endurance")
                ? f->title
                : fmt::format("Figure {}: {}", f->name, f->title);
  c.source = fmt::format(
      "Sun, Lu, Shu, \"DP2: Reducing Transaction Overhead with Differential and Dual Persistency "
      "in Persistent Memory\" (2015), section {}",
      f->section);
  c.setting = fmt::format(
      "{}; where neither this nor the axis nor a note says otherwise: 8 B values, 1 operation a "
      "transaction, 1 thread, stm",
      f->setting);
  c.notes = {dp2::note_of(*f, o)};
  if (auto done = f->simulated ? over_seeds(o, c, f->measure) : f->measure(o, c); !done)
    return std::unexpected(std::move(done.error()));
  if (!c.complete) c.notes.emplace_back("interrupted: the places measured until then");
  c.claims = claims_of(c, figure, stated::dp2_statements);
  c.verdicts =
      verdicts_of(c, "dp2", figure, stated::dp2_statements, under_charge(dp2_charges(), o));
  return c;
}

}  // namespace stele::bench
