// Measures the targets: each is one interleaved comparison, or a short measurement of its own.
#include <bench/compare.h>
#include <bench/contender.h>
#include <bench/targets_parts.h>
#include <explore/explorer.h>
#include <fmt/format.h>
#include <stele/array.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

namespace stele::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct against_memory {
  const char* workload;
  std::size_t value_size, operations;
};
constexpr against_memory memory_targets[] = {{"sps", 8, 1}, {"hash", 8, 1}, {"rbtree", 8, 1}};

result<report> compared(const target_options& o, const against_memory& m, concurrency policy,
                        std::vector<std::string> mechanisms) {
  comparison c;
  c.what.workload = m.workload;
  c.what.parameters.value_size = m.value_size;
  c.what.ops_per_tx = m.operations;
  c.what.policy = policy;
  c.what.dir = o.dir;
  c.mechanisms = std::move(mechanisms);
  c.runs = o.runs;
  c.seconds = o.seconds;
  c.limits = true;
  c.cancelled = o.cancelled;
  return compare(c);
}

result<> beside_volatile(const target_options& o, std::vector<performance_target>& targets) {
  for (const against_memory& m : memory_targets) {
    const std::string what = fmt::format("{} 8 B x 1, none over ordinary memory", m.workload);
    o.progress(what);
    const auto r = compared(o, m, concurrency::single_writer, {"none"});
    if (!r) return std::unexpected(r.error());
    const row *none = find_row(*r, "none"), *ordinary = find_row(*r, "volatile");
    if (none == nullptr || ordinary == nullptr) continue;
    targets.push_back({what, "x", 0.6, none->tx_per_s.median / ordinary->tx_per_s.median, false,
                       fmt::format("{:.0f} over {:.0f} tx/s; single_writer", none->tx_per_s.median,
                                   ordinary->tx_per_s.median)});
  }
  return {};
}

struct numbers {
  field<field<std::uint64_t>*> values;
};
constexpr std::size_t number_count = 1024;

// Nanoseconds to load a field in a read transaction: sums values that are in the cache.
result<> field_reads(const target_options& o, std::vector<performance_target>& targets) {
  o.progress("a field read");
  for (const auto& [policy, name] : {std::pair{concurrency::single_writer, "single_writer"},
                                     std::pair{concurrency::stm, "stm"}}) {
    const std::string path = fmt::format("{}/reads-{}.stele", o.dir, getpid());
    auto p = pool<numbers>::open(
        path, {.create_size = std::size_t{4} << 20, .policy = policy, .engine = {.media = "adr"}});
    std::filesystem::remove(path);
    if (!p) return std::unexpected(p.error());
    if (auto made = p->update(
            [](numbers& n) { n.values = make_array<field<std::uint64_t>>(number_count); });
        !made)
      return made;
    std::vector<double> ns;
    for (unsigned run = 0; run < o.runs; ++run) {
      const auto begin = clock::now();
      std::uint64_t sum = 0;
      auto done = p->read([&](const numbers& n) {
        const auto* values = n.values.load();
        for (unsigned rep = 0; rep < 2000; ++rep)
          for (std::size_t i = 0; i < number_count; ++i) sum += values[i];
      });
      if (!done || sum != 0)
        return std::unexpected(error{errc::corrupt, "zeroed values do not sum to zero"});
      ns.push_back(seconds_since(begin) * 1e9 / (2000.0 * number_count));
    }
    targets.push_back({fmt::format("a field read, {}", name), "ns", 3, median(ns), true,
                       "1024 values in the cache, one read transaction of 2 million loads"});
  }
  return {};
}

result<double> transactions_per_s(const std::string& pool, const std::string& tape,
                                  double seconds) {
  auto w = workloads::make_workload("sps", {.keys = 4096});
  if (!w) return std::unexpected(w.error());
  auto handle =
      detail::pool_handle::open(pool,
                                {.create_size = std::size_t{8} << 20,
                                 .policy = concurrency::single_writer,
                                 .engine = {.mechanism = "default", .media = "adr", .tape = tape}},
                                (*w)->root_size());
  std::filesystem::remove(pool);
  if (!handle) return std::unexpected(handle.error());
  (*w)->attach(std::move(*handle));
  if (auto filled = (*w)->set_up(); !filled) return std::unexpected(filled.error());
  base::rng random(1);
  std::uint64_t done = 0;
  const auto begin = clock::now();
  for (; done % 64 != 0 || seconds_since(begin) < seconds; ++done) {
    const auto op = (*w)->draw(random);
    if (auto applied = (*w)->apply({&op, 1}); !applied) return std::unexpected(applied.error());
  }
  const double rate = static_cast<double>(done) / seconds_since(begin);
  (*w)->detach();
  return rate;
}

result<> tape_cost(const target_options& o, std::vector<performance_target>& targets) {
  o.progress("recording a tape");
  const std::string pool = fmt::format("{}/taped-{}.stele", o.dir, getpid()),
                    tape = fmt::format("{}/marks-{}.tape", o.dir, getpid());
  std::vector<double> ratios;
  for (unsigned run = 0; run < o.runs; ++run) {
    const auto plain = transactions_per_s(pool, "", o.seconds),
               taped = transactions_per_s(pool, tape, o.seconds);
    std::filesystem::remove(tape);
    if (!plain) return std::unexpected(plain.error());
    if (!taped) return std::unexpected(taped.error());
    ratios.push_back(*plain / *taped);
  }
  targets.push_back({"slower by a tape, sps 8 B x 1", "x", 5, median(ratios), true,
                     "default, every store with its bytes, onto a file in memory"});
  return {};
}

// The largest of these pools that the folder has room for twice.
std::size_t opened_pool_size(const std::string& dir) {
  std::error_code none;
  const auto room = std::filesystem::space(dir, none).available;
  return std::size_t{room > std::uintmax_t{8} << 30 ? 4u : 1u} << 30;
}

// Makes a pool and fills about 1 MB of its log.
result<pool<numbers>> open_and_fill_log(const std::string& path, std::size_t pool_size) {
  auto p = pool<numbers>::open(path, {.create_size = pool_size,
                                      .engine = {.mechanism = "default",
                                                 .media = "adr",
                                                 .log_size = std::size_t{4} << 20,
                                                 .log_count = 4,
                                                 .background = false}});
  if (!p) return p;
  auto made =
      p->update([](numbers& n) { n.values = make_array<field<std::uint64_t>>(number_count); });
  const std::uint64_t before = p->counters().streamed_bytes;
  for (std::uint64_t i = 0; made && p->counters().streamed_bytes < before + 1'000'000; ++i)
    made = p->update([&](numbers& n) { n.values.load()[i * 7 % number_count] = i; });
  return made ? std::move(p) : std::unexpected(made.error());
}

// Another process makes the pool, and closes it or is killed. Returns the milliseconds that opening
// it takes here.
result<double> time_of_opening(const std::string& path, std::size_t pool_size, bool killed) {
  int ends[2];
  if (::pipe(ends) != 0) return std::unexpected(error{errc::io, "cannot make a pipe"});
  const pid_t child = ::fork();
  if (child == 0) {
    auto p = open_and_fill_log(path, pool_size);
    const bool ok = p && (killed || p->close());
    [[maybe_unused]] const auto said = ::write(ends[1], &ok, sizeof ok);
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  bool ok = false;
  ok = ::read(ends[0], &ok, sizeof ok) == sizeof ok && ok;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  const auto begin = clock::now();
  const auto p = pool<numbers>::open(path, {.engine = {.media = "adr"}});
  const double ms = seconds_since(begin) * 1e3;
  std::filesystem::remove(path);
  if (!p) return std::unexpected(p.error());
  if (!ok) return std::unexpected(error{errc::io, "the process that made the pool failed"});
  return ms;
}

result<> opening_time(const target_options& o, std::vector<performance_target>& targets) {
  const std::size_t size = opened_pool_size(o.dir);
  const std::string path = fmt::format("{}/opened-{}.stele", o.dir, getpid());
  for (const bool killed : {false, true}) {
    const std::string name = fmt::format("open a {} GiB pool, {}", size >> 30,
                                         killed ? "killed, 1 MB of log" : "closed");
    o.progress(name);
    std::vector<double> all;
    for (unsigned run = 0; run < 3; ++run) {
      const auto ms = time_of_opening(path, size, killed);
      if (!ms) return std::unexpected(ms.error());
      all.push_back(*ms);
    }
    targets.push_back({name, "ms", 20, median(all), true,
                       "default, adr on tmpfs: map, recover, read the chunk table"});
  }
  return {};
}

result<> explorer_rate(const target_options& o, std::vector<performance_target>& targets) {
  o.progress("the explorer");
  std::vector<double> rates;
  std::string detail;
  for (unsigned run = 0; run < 3; ++run) {
    const auto found =
        explore::explore({.mechanism = "default",
                          .workload = "hash",
                          .pool_size = 65536,
                          .operations = 150,
                          .seed = run + 1},
                         {.recovery_depth = 1, .cancelled = o.cancelled, .progress = {}});
    if (!found) return std::unexpected(found.error());
    if (!found->violations.empty())
      return std::unexpected(error{errc::corrupt, found->violations.front().what});
    rates.push_back(found->states_per_s());
    detail = fmt::format(
        "default on hash: {} crash states built, {} of them different and each recovered, {} "
        "judged after recovery",
        found->states, found->distinct, found->recovered);
  }
  targets.push_back(
      {"explorer, 64 KiB pools, one core", "states/s", 100'000, median(rates), false, detail});
  return {};
}

result<std::vector<performance_target>> measure_parts(const target_options& o,
                                                      const std::vector<target_group>& parts) {
  std::vector<performance_target> targets;
  for (const target_group part : parts) {
    if (o.cancelled()) return std::unexpected(error{errc::cancelled, "interrupted"});
    const std::size_t before = targets.size();
    if (auto measured = part(o, targets); !measured) return std::unexpected(measured.error());
    std::for_each(targets.begin() + static_cast<std::ptrdiff_t>(before), targets.end(), o.measured);
  }
  return targets;
}

}  // namespace

std::vector<std::string> those_built(std::vector<std::string> wanted) {
  const auto built = rival_names();
  std::erase_if(wanted, [&](const std::string& name) {
    return std::ranges::find(built, name) == built.end();
  });
  return wanted;
}

result<std::vector<performance_target>> measure_targets(const target_options& o) {
  std::vector<target_group> parts = default_targets();
  parts.insert(parts.end(), {beside_volatile, field_reads, tape_cost, opening_time, explorer_rate});
  return measure_parts(o, parts);
}

result<std::vector<performance_target>> measure_peer_targets(const target_options& o) {
  return measure_parts(o, peer_targets());
}

result<std::vector<performance_target>> measure_read_targets(const target_options& o) {
  return measure_parts(o, read_targets());
}

result<std::vector<performance_target>> measure_reader_targets(const target_options& o) {
  return measure_parts(o, reader_targets());
}

result<std::vector<performance_target>> measure_sqlite_targets(const target_options& o) {
  return measure_parts(o, sqlite_targets());
}

result<std::vector<performance_target>> measure_redis_targets(const target_options& o) {
  return measure_parts(o, redis_targets());
}

result<std::vector<performance_target>> measure_lsnvmm_targets(const target_options& o) {
  return measure_parts(o, lsnvmm_targets());
}

}  // namespace stele::bench
