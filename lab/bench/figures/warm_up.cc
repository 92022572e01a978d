// Table II: the time that the adaptive mechanism takes to choose a mode: its first transactions,
// equally many in each mode.
//
// The pool is filled, closed and opened again before each run, because the mechanism starts anew at
// each opening.
#include <bench/figures/blurred_parts.h>
#include <bench/figures/stated.h>
#include <fmt/format.h>

#include <array>
#include <chrono>

namespace stele::bench {
namespace {

constexpr const char* mechanism = "adaptive";

struct outcome {
  std::array<std::vector<double>, 3> ms;  // of both modes, of the first, of the second
  std::string mode;                       // chosen in the last run
};

result<> open_on(workloads::workload& w, const task& t, const std::string& path) {
  auto handle = detail::pool_handle::open(path, stele_options(t, mechanism), w.root_size());
  if (!handle) return std::unexpected(std::move(handle.error()));
  w.attach(std::move(*handle));
  return {};
}

result<double> ms_of(workloads::workload& w, base::rng& random, std::size_t transactions) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < transactions; ++i) {
    const auto op = w.draw(random);
    if (auto done = w.apply({&op, 1}); !done) return std::unexpected(std::move(done.error()));
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

result<> time_once(workloads::workload& w, const task& t, const std::string& path, outcome& into) {
  w.detach();
  if (auto opened = open_on(w, t, path); !opened) return opened;
  base::rng random(base::mix(t.seed));
  const auto first = ms_of(w, random, t.adaptive.warm_up),
             second = ms_of(w, random, t.adaptive.warm_up);
  if (!first || !second) return std::unexpected(!first ? first.error() : second.error());
  into.ms[0].push_back(*first + *second);
  into.ms[1].push_back(*first);
  into.ms[2].push_back(*second);
  // Commits are counted in batches: the mode is chosen after a few more.
  if (auto more = ms_of(w, random, 512); !more) return std::unexpected(std::move(more.error()));
  into.mode = detail::counters_of(w.core()).mode;
  return {};
}

result<outcome> time_modes(const task& t, const sweep_options& o) {
  const scratch_file pool(pool_path(t, "warm-up"));
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  if (auto opened = open_on(**w, t, pool.path); !opened)
    return std::unexpected(std::move(opened.error()));
  outcome times;
  auto done = (*w)->set_up();
  for (unsigned run = 0; done && run < o.runs; ++run) done = time_once(**w, t, pool.path, times);
  (*w)->detach();
  if (!done) return std::unexpected(std::move(done.error()));
  return times;
}

// A series for each workload, without measured values; optionally with the stated times beside it.
panel empty_panel(const char* name, const char* y, bool with_stated) {
  panel p{name, "latency, ns", y, {}, {}, false};
  const std::size_t places = stated::latencies_ns.size();
  for (const unsigned ns : stated::latencies_ns) p.xs.push_back(fmt::format("{}", ns));
  for (std::size_t w = 0; w < stated::workloads.size(); ++w) {
    const std::string workload = stated::workloads[w];
    p.lines.push_back({workload, workload, false, std::vector<std::optional<spread>>(places)});
    if (!with_stated) continue;
    series& theirs = p.lines.emplace_back(series{workload + " stated", workload, true, {}});
    for (const auto& row : stated::warm_up_ms) theirs.points.emplace_back(known(row[w]));
  }
  return p;
}

series& series_of(panel& p, std::string_view workload) {
  return *std::ranges::find(p.lines, workload, &series::name);
}

task task_at(const sweep_options& o, std::string_view workload, unsigned latency_ns) {
  task t;
  t.workload = workload;
  t.media = medium_of(o, latency_ns);
  take_common(t, o);
  t.parameters.keys = o.keys;
  t.adaptive.warm_up = o.warm_up_transactions;
  t.log_size_bytes = std::size_t{1} << 20;
  return t;
}

}  // namespace

result<> measure_warm_up(const sweep_options& o, chart& into) {
  std::array<panel, 3> panels = {empty_panel("warm-up", "milliseconds", true),
                                 empty_panel("first half, blurred", "milliseconds", false),
                                 empty_panel("second half, vcbp", "milliseconds", false)};
  for (std::size_t i = 0; i < stated::latencies_ns.size() && into.complete; ++i) {
    std::string modes;
    for (const char* workload : stated::workloads) {
      into.complete = into.complete && !o.cancelled();
      if (!into.complete) break;
      o.progress(fmt::format("latency {} ns, {}", stated::latencies_ns[i], workload));
      const auto times = time_modes(task_at(o, workload, stated::latencies_ns[i]), o);
      if (!times) return std::unexpected(times.error());
      for (std::size_t k = 0; k < panels.size(); ++k)
        series_of(panels[k], workload).points[i] = spread_of(times->ms[k]);
      modes += fmt::format("{}{} {}", modes.empty() ? "" : ", ", workload, times->mode);
    }
    if (!modes.empty())
      into.notes.push_back(fmt::format("chosen at {} ns: {}", stated::latencies_ns[i], modes));
  }
  into.panels.assign(panels.begin(), panels.end());
  into.notes.push_back(fmt::format(
      "the first {} transactions in each mode, after the pool was filled, closed and opened again",
      o.warm_up_transactions));
  return {};
}

}  // namespace stele::bench
