// Figure 12 of the log-structured evaluation: the time to open a killed pool, by threads.
//
// A process fills a pool until its chunks in use hold the wanted bytes, and is killed. Each
// measurement opens a copy of the file, because a second recovery finds less to do. It does so in
// its own process, which is killed too: the cost of closing is not measured.
#include <bench/figures/blurred_parts.h>
#include <bench/figures/lsnvmm_parts.h>
#include <fmt/format.h>
#include <published/log_structured/log_home.h>
#include <sys/wait.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

namespace stele::bench::lsnvmm {
namespace {

using clock = std::chrono::steady_clock;

constexpr double ten_gigabytes = 1e10;

// The answer of a process that is killed afterwards.
struct answer {
  double value = -1;
  char problem[256] = {};
};

// Runs `work` in a process that kills itself when it has answered.
template <class Work>
result<double> in_killed_process(Work&& work) {
  int ends[2];
  if (::pipe(ends) != 0) return std::unexpected(error{errc::io, "cannot make a pipe"});
  const pid_t child = ::fork();
  if (child == 0) {
    answer a;
    const result<double> done = work();
    if (done) a.value = *done;
    if (!done) std::strncpy(a.problem, done.error().message.c_str(), sizeof a.problem - 1);
    [[maybe_unused]] const auto written = ::write(ends[1], &a, sizeof a);
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  answer a;
  const bool said = child > 0 && ::read(ends[0], &a, sizeof a) == sizeof a;
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (said && a.problem[0] == '\0') return a.value;
  return std::unexpected(
      error{errc::io, said ? a.problem : "the process that was to be killed failed before"});
}

task recovered_task(const sweep_options& o, std::size_t value_size) {
  // Three fifths of the log are the initial content; an element takes its value and about 64 bytes.
  task t = task_on(o, {"hash", "hash", workloads::key_choice::uniform},
                   2 * (o.recovered_bytes * 3 / 5) / (value_size + 64));
  t.media = "adr";
  t.parameters.value_size = value_size;
  t.log_size_bytes = chunk_bytes;
  t.pool_size_bytes = o.recovered_bytes * 3 / 2 + (std::size_t{1} << 20);
  t.log_structured.clean_from = 2;  // nothing is cleaned
  t.log_structured.fast_cleaning = false;
  return t;
}

// Fills the log; returns the bytes of chunks in use.
result<double> fill_log(const task& t, const std::string& path, std::uint64_t bytes) {
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  pool_options options = stele_options(t, mechanism);
  options.engine.background = false;
  auto handle = detail::pool_handle::open(path, options, (*w)->root_size());
  if (!handle) return std::unexpected(std::move(handle.error()));
  const storage::log_space& log = *detail::log_space_of(handle->core().mechanism());
  (*w)->attach(std::move(*handle));
  if (auto filled = (*w)->set_up(); !filled) return std::unexpected(std::move(filled.error()));
  const auto in_use = [&] {
    return (log.chunk_count() - log.free_chunks()) * std::uint64_t{log.chunk_words()} * 8;
  };
  base::rng random(base::mix(t.seed));
  while (in_use() < bytes) {
    const auto op = (*w)->draw(random);
    if (auto done = (*w)->apply({&op, 1}); !done) return std::unexpected(std::move(done.error()));
  }
  const auto used = static_cast<double>(in_use());
  (*w).release();  // never closed: the pool stays as a crash leaves it
  return used;
}

result<double> opening_seconds(const task& t, const std::string& path, unsigned threads) {
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  pool_options options = stele_options(t, mechanism);
  options.create_size = 0;
  options.engine.media = t.media;
  options.engine.tuning.of<log_structured_options>().recovery_threads = threads;
  const auto begin = clock::now();
  auto handle = detail::pool_handle::open(path, options, (*w)->root_size());
  if (!handle) return std::unexpected(std::move(handle.error()));
  const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
  (*w)->attach(std::move(*handle));
  (*w).release();
  return seconds;
}

result<double> opening_a_copy(const task& t, const std::string& path, unsigned threads) {
  const scratch_file copy(path + ".copy");
  std::error_code problem;
  if (!std::filesystem::copy_file(path, copy.path, problem))
    return std::unexpected(
        error{errc::io, fmt::format("cannot copy {}: {}", path, problem.message())});
  return in_killed_process([&] { return opening_seconds(t, copy.path, threads); });
}

spread spread_of_runs(const std::vector<recovered>& runs, double (*value)(const recovered& r)) {
  std::vector<double> values;
  for (const recovered& r : runs) values.push_back(value(r));
  return spread_of(values);
}

}  // namespace

result<std::vector<std::vector<recovered>>> recover_killed(const sweep_options& o,
                                                           std::size_t value_size,
                                                           std::span<const unsigned> threads) {
  const task t = recovered_task(o, value_size);
  const scratch_file file(pool_path(t, fmt::format("killed-{}", value_size)));
  o.progress(fmt::format("{} B: filling the log", value_size));
  const auto bytes = in_killed_process([&] { return fill_log(t, file.path, o.recovered_bytes); });
  if (!bytes) return std::unexpected(bytes.error());
  task opened = t;
  opened.media = medium_of(o);
  std::vector<std::vector<recovered>> times(threads.size());
  for (unsigned run = 0; run < o.runs && !o.cancelled(); ++run)
    for (std::size_t i = 0; i < threads.size(); ++i) {
      o.progress(
          fmt::format("{} B, {} threads, run {} of {}", value_size, threads[i], run + 1, o.runs));
      const auto seconds = opening_a_copy(opened, file.path, threads[i]);
      if (!seconds) return std::unexpected(seconds.error());
      times[i].push_back({*seconds, static_cast<std::uint64_t>(*bytes)});
    }
  return times;
}

result<> measure_recovery(const sweep_options& o, chart& into) {
  static constexpr unsigned threads[] = {1, 2, 4, 8};
  panel time{
      "time", "threads", "seconds for 10 GB of log, at the rate measured", {"1", "2", "4", "8"},
      {},     false};
  panel rate{"rate", "threads", "GB of log a second", {"1", "2", "4", "8"}, {}, false};
  for (const std::size_t value_size : {std::size_t{128}, std::size_t{1024}}) {
    const auto times = recover_killed(o, value_size, threads);
    if (!times) return std::unexpected(times.error());
    for (panel* p : {&time, &rate})
      p->lines.push_back(
          {fmt::format("{} B", value_size), fmt::format("{} B", value_size), false, {}});
    for (const auto& runs : *times) {
      into.complete = into.complete && !runs.empty();
      if (runs.empty()) {
        for (panel* p : {&time, &rate}) p->lines.back().points.emplace_back();
        continue;
      }
      const auto seconds = [](const recovered& r) {
        return r.seconds * ten_gigabytes / static_cast<double>(r.log_bytes);
      };
      const auto gigabytes = [](const recovered& r) {
        return static_cast<double>(r.log_bytes) / 1e9 / r.seconds;
      };
      time.lines.back().points.emplace_back(spread_of_runs(runs, seconds));
      rate.lines.back().points.emplace_back(spread_of_runs(runs, gigabytes));
    }
  }
  into.panels = {time, rate};
  into.notes.push_back(
      fmt::format("{:g} GiB of log (the paper: 10 GB), three fifths of it the first content, then "
                  "updates; opening as a whole after a kill",
                  static_cast<double>(o.recovered_bytes) / (1 << 30)));
  return {};
}

}  // namespace stele::bench::lsnvmm
