// Figure 14: the time of recovery of a nearly full log, by the log's size.
//
// A process commits small transactions of a workload until the log has been truncated twice, which
// tells how many fit, then commits nine tenths of that number again and is killed. The recovery
// step of opening is timed alone on its pool. On copies are timed: this step without the added
// latency; reading the log alone, without replay; and opening as a whole, beside the opening of an
// empty pool. The text shows one workload, because the others' times are close to it: here all are
// measured.
#include <bench/figures/blurred_parts.h>
#include <bench/figures/stated.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <tx/inspect.h>
#include <tx/log/record.h>
#include <tx/open.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

namespace stele::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr const char* mechanism = "blurred";
constexpr std::array<double, 5> log_sizes_mb = {0.1, 0.25, 0.5, 1, 2};

struct recovery_times {
  double recovery_us = 0, undelayed_us = 0, reading_us = 0, killed_us = 0, empty_us = 0,
         log_bytes = 0;
};

double us_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

task recovery_task(const sweep_options& o, const char* workload, double log_mb) {
  task t;
  t.workload = workload;
  t.media = medium_of(o, 150);
  take_common(t, o);
  t.parameters.keys = std::size_t{1} << 12;
  t.log_size_bytes = static_cast<std::size_t>(log_mb * (1 << 20));
  return t;
}

// No background thread: the log keeps its content.
pool_options options_for(const task& t) {
  pool_options o = stele_options(t, mechanism);
  o.engine.log_count = 2;
  o.engine.background = false;
  return o;
}

// Commits until the log is truncated; returns the number of commits.
result<std::uint64_t> commits_until_truncation(workloads::workload& w, base::rng& random,
                                               std::size_t log_bytes) {
  const std::uint64_t before = detail::counters_of(w.core()).truncations,
                      most = log_bytes / 16 + 1000;
  for (std::uint64_t n = 1; n <= most; ++n) {
    const auto op = w.draw(random);
    if (auto done = w.apply({&op, 1}); !done) return std::unexpected(std::move(done.error()));
    if (detail::counters_of(w.core()).truncations != before) return n;
  }
  return std::unexpected(error{
      errc::unsupported, fmt::format("{} commits do not fill a log of {} bytes with mechanism {}",
                                     most, log_bytes, mechanism)});
}

result<> fill_log(workloads::workload& w, const task& t) {
  base::rng random(base::mix(t.seed));
  if (auto first = commits_until_truncation(w, random, t.log_size_bytes); !first)
    return std::unexpected(std::move(first.error()));
  const auto fits = commits_until_truncation(w, random, t.log_size_bytes);
  if (!fits) return std::unexpected(fits.error());
  for (std::uint64_t n = 0; n < *fits * 9 / 10; ++n) {
    const auto op = w.draw(random);
    if (auto done = w.apply({&op, 1}); !done) return done;
  }
  return {};
}

// Creates the pool at `path` and fills its log. On success the pool is still open and must stay
// open.
result<> leave_full_log(workloads::workload& w, const task& t, const std::string& path) {
  auto handle = detail::pool_handle::open(path, options_for(t), w.root_size());
  if (!handle) return std::unexpected(std::move(handle.error()));
  w.attach(std::move(*handle));
  if (auto filled = w.set_up(); !filled) return filled;
  return fill_log(w, t);
}

// Runs leave_full_log in a process that kills itself with SIGKILL; an earlier failure comes back as
// a sentence.
result<> killed_with_full_log(workloads::workload& w, const task& t, const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) return std::unexpected(error{errc::io, "cannot make a pipe"});
  const pid_t child = ::fork();
  if (child == 0) {
    const auto filled = leave_full_log(w, t, path);
    const std::string said = filled ? "" : filled.error().message;
    [[maybe_unused]] const auto written = ::write(ends[1], said.data(), said.size());
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  std::string said(4096, '\0');
  const auto length = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (child > 0 && length == 0) return {};
  said.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return std::unexpected(
      error{errc::io, child < 0 ? "cannot start the process that is to be killed" : said});
}

result<double> recovery_us(const std::string& path, const std::string& medium) {
  const auto how = detail::find_mechanism(mechanism);
  if (!how) return std::unexpected(how.error());
  const auto media = detail::parse_media(medium);
  if (!media) return std::unexpected(media.error());
  auto file = storage::pool_file::open(path, (*how)->map);
  if (!file) return std::unexpected(std::move(file.error()));
  detail::pool_state state(std::move(*file));
  const auto begin = clock::now();
  if (auto done = detail::recover_if_open(state, *media); !done)
    return std::unexpected(std::move(done.error()));
  return us_since(begin);
}

// The committed transactions of all logs, in the order of their TxIDs: steps 1 and 2 of the text's
// recovery.
result<std::vector<std::uint64_t>> sorted_txids(const storage::pool_file& file) {
  std::vector<std::uint64_t> txids;
  detail::log_record record;
  const auto* const other = detail::other_form_of(detail::log_kind::lines_or_blocks);
  for (std::uint32_t log = 0; log < file.header().log_count; ++log) {
    const auto ring = detail::ring_of_log(file, log);
    const auto head = detail::read_log_head(file, ring.log_offset);
    if (!head) return std::unexpected(head.error());
    for (std::uint64_t position = *head & format::log_position_mask;;) {
      const auto whole = detail::read_record_by_head(file, ring, *head, other, position, record);
      if (!whole) return std::unexpected(whole.error());
      if (!*whole) break;
      txids.push_back(record.txid);
    }
  }
  std::ranges::sort(txids);
  return txids;
}

// Of a log whose pages are mapped and cached: the second of two readings.
result<double> reading_us(const std::string& path) {
  const auto how = detail::find_mechanism(mechanism);
  if (!how) return std::unexpected(how.error());
  const auto file = storage::pool_file::open(path, (*how)->map);
  if (!file) return std::unexpected(file.error());
  if (const auto first = sorted_txids(*file); !first) return std::unexpected(first.error());
  const auto begin = clock::now();
  if (const auto second = sorted_txids(*file); !second) return std::unexpected(second.error());
  return us_since(begin);
}

result<double> opening_us(const std::string& path, const task& t, std::size_t root_size) {
  const auto begin = clock::now();
  const auto handle = detail::pool_handle::open(path, options_for(t), root_size);
  if (!handle) return std::unexpected(handle.error());
  return us_since(begin);
}

result<double> bytes_in_logs(const std::string& path) {
  const auto report = detail::check_pool(path);
  if (!report) return std::unexpected(report.error());
  double bytes = 0;
  for (const auto& log : report->logs) bytes += static_cast<double>(log.bytes);
  return bytes;
}

result<> copy_pool(const std::string& from, const std::string& to) {
  std::error_code problem;
  if (std::filesystem::copy_file(from, to, problem)) return {};
  return std::unexpected(
      error{errc::io, fmt::format("cannot copy {} to {}: {}", from, to, problem.message())});
}

result<recovery_times> measure_once(const task& t) {
  const scratch_file pool(pool_path(t, "recovery")), copy(pool.path + ".copy"),
      second(pool.path + ".second"), empty(pool.path + ".empty");
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  const std::size_t root_size = (*w)->root_size();
  if (auto killed = killed_with_full_log(**w, t, pool.path); !killed)
    return std::unexpected(std::move(killed.error()));
  for (const scratch_file* to : {&copy, &second})
    if (auto copied = copy_pool(pool.path, to->path); !copied)
      return std::unexpected(std::move(copied.error()));
  if (auto made = opening_us(empty.path, t, root_size); !made) return std::unexpected(made.error());
  const auto bytes = bytes_in_logs(pool.path), reading = reading_us(pool.path);
  const auto recovery = recovery_us(pool.path, t.media),
             undelayed = recovery_us(second.path, "adr");
  const auto killed = opening_us(copy.path, t, root_size),
             opened = opening_us(empty.path, t, root_size);
  for (const auto* one : {&bytes, &reading, &recovery, &undelayed, &killed, &opened})
    if (!*one) return std::unexpected(one->error());
  return recovery_times{*recovery, *undelayed, *reading, *killed, *opened, *bytes};
}

using column = double recovery_times::*;
struct named_column {
  const char *name, *label;
  column value;
};
constexpr named_column times[] = {{"recovery", "recovery", &recovery_times::recovery_us},
                                  {"undelayed", "recovery, adr", &recovery_times::undelayed_us},
                                  {"reading", "reading, mapped", &recovery_times::reading_us},
                                  {"killed", "opening after the kill", &recovery_times::killed_us},
                                  {"empty", "opening an empty pool", &recovery_times::empty_us}};
constexpr named_column bytes[] = {{"log", "bytes of records", &recovery_times::log_bytes}};

using runs_of_sizes = std::array<std::vector<recovery_times>, log_sizes_mb.size()>;

panel empty_panel(const char* name, const char* y) {
  panel p{name, "log size, MiB", y, {}, {}, false};
  for (const double mb : log_sizes_mb) p.xs.push_back(fmt::format("{:g}", mb));
  return p;
}

void add_series(panel& p, const char* name, const char* label, column value,
                const runs_of_sizes& measured) {
  series& s = p.lines.emplace_back(series{name, label, false, {}});
  for (const auto& runs : measured) {
    std::vector<double> values;
    for (const recovery_times& r : runs) values.push_back(r.*value);
    s.points.push_back(values.empty() ? std::nullopt : std::optional(spread_of(values)));
  }
}

panel panel_of(const char* name, const char* y, std::span<const named_column> columns,
               const runs_of_sizes& measured) {
  panel p = empty_panel(name, y);
  for (const named_column& c : columns) add_series(p, c.name, c.label, c.value, measured);
  return p;
}

using runs_of_workloads = std::array<runs_of_sizes, stated::workloads.size()>;

// One run of each workload with each size.
result<> measure_each(const sweep_options& o, unsigned run, runs_of_workloads& measured,
                      chart& into) {
  for (std::size_t w = 0; w < measured.size(); ++w)
    for (std::size_t i = 0; i < log_sizes_mb.size(); ++i) {
      into.complete = into.complete && !o.cancelled();
      if (!into.complete) return {};
      o.progress(fmt::format("{}, log size {:g} MiB, run {} of {}", stated::workloads[w],
                             log_sizes_mb[i], run + 1, o.runs));
      const auto once = measure_once(recovery_task(o, stated::workloads[w], log_sizes_mb[i]));
      if (!once) return std::unexpected(once.error());
      measured[w][i].push_back(*once);
    }
  return {};
}

}  // namespace

result<> measure_recovery(const sweep_options& o, chart& into) {
  runs_of_workloads measured;
  for (unsigned run = 0; run < o.runs && into.complete; ++run)
    if (auto done = measure_each(o, run, measured, into); !done) return done;
  const auto hash = std::ranges::find(stated::workloads, std::string_view("hash"));
  const auto& shown = measured[static_cast<std::size_t>(hash - stated::workloads.begin())];
  into.panels.push_back(panel_of("recovery", "microseconds", times, shown));
  panel& all = into.panels.emplace_back(empty_panel("each workload", "microseconds"));
  for (std::size_t w = 0; w < measured.size(); ++w)
    add_series(all, stated::workloads[w], stated::workloads[w], &recovery_times::recovery_us,
               measured[w]);
  into.panels.push_back(panel_of("log", "bytes that recovery reads", bytes, shown));
  into.notes.push_back(fmt::format(
      "one process committed without background work, its log nine tenths full, and was killed; "
      "medium {}",
      medium_of(o, 150)));
  return {};
}

}  // namespace stele::bench
