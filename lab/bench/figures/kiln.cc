// The table of figures of Kiln's evaluation.
#include <bench/figures/claims.h>
#include <bench/figures/kiln.h>
#include <bench/figures/kiln_parts.h>
#include <bench/figures/kiln_stated.h>
#include <bench/figures/verdicts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stele::bench {
namespace kiln {
namespace {

struct figure_entry {
  const char *name, *title, *section;
  result<> (*measure)(const sweep_options& o, chart& c);
};

constexpr figure_entry figures[] = {
    {"1", "What logs cost", "1", measure_logging},
    {"6", "A last-level cache of STT-MRAM or of SRAM, without persistence", "6.1", measure_sram},
    {"7", "Logs in memory and logs in the nonvolatile cache", "6.2", measure_logs_in_cache},
    {"8", "How far logs in the nonvolatile cache fall short of no persistence", "6.2", measure_gap},
    {"9", "Kiln's throughput and its nonvolatile cache", "6.3", measure_in_place},
    {"10", "Slower nonvolatile cache and memory", "6.3", measure_latency},
    {"11", "Dynamic power", "6.4", measure_power},
    {"overflow", "Transactions that overflow the nonvolatile cache", "6.3", measure_overflow},
    {"sensitivity", "What the results owe to values that the text does not state", "5",
     measure_sensitivity},
};

std::string note_of(const figure_entry& f, const sweep_options& o) {
  if (f.measure == measure_overflow)
    return fmt::format(
        "simulated, caches and values a 64th of what they are called here (an L3 of 1 MiB stands "
        "for 64 MiB); a hash table of 32 keys for each thread; isolation none");
  return fmt::format(
      "simulated; small: 512 B, {} keys, {} transactions, htm; large: {} B, {} keys, {} "
      "transactions, mutex; a third warms up, after plain stores to "
      "the last {} MiB of the structure; means over {}",
      o.kiln_keys, o.kiln_transactions, o.kiln_large_bytes, o.kiln_large_keys,
      o.kiln_large_transactions, o.kiln_written_before >> 20, fmt::join(workloads_of(o), ", "));
}

}  // namespace
}  // namespace kiln

std::vector<std::string> kiln_figures() {
  std::vector<std::string> names;
  for (const auto& f : kiln::figures) names.emplace_back(f.name);
  return names;
}

result<chart> measure_kiln(std::string_view figure, const sweep_options& o) {
  const auto* f = std::ranges::find(kiln::figures, figure, &kiln::figure_entry::name);
  if (f == std::ranges::end(kiln::figures))
    return std::unexpected(error{errc::invalid_argument,
                                 fmt::format("there is no figure '{}' to redraw; choose one of {}",
                                             figure, fmt::join(kiln_figures(), ", "))});
  chart c;
  c.name = fmt::format("kiln-{}", f->name);
  c.title = std::string_view("0123456789").contains(f->name[0])
                ? fmt::format("Figure {}: {}", f->name, f->title)
                : f->title;
  c.source = fmt::format(
      "Zhao, Li, Yoon, Xie, Jouppi, \"Kiln: Closing the Performance Gap Between Systems With and "
      "Without Persistence Support\" (2013), section {}",
      f->section);
  c.setting = "the machine configs/kiln.toml, 16 threads where nothing else is said";
  c.notes = {kiln::note_of(*f, o)};
  if (auto done = over_seeds(o, c, f->measure); !done)
    return std::unexpected(std::move(done.error()));
  if (!c.complete) c.notes.emplace_back("interrupted: what was measured until then");
  c.claims = claims_of(c, figure, stated::kiln_statements);
  c.verdicts = verdicts_of(c, "kiln", figure, stated::kiln_statements);
  return c;
}

}  // namespace stele::bench
