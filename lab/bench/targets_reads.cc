// Long reads beside writers: how long a read of everything takes while other threads commit, and
// what that costs them; the same of an update that reads everything, and of a held snapshot. `stele
// bench reads`.
//
// The writers move amounts between accounts, so each read checks that it saw one state: the sum of
// all is constant.
#include <bench/targets_parts.h>
#include <fmt/format.h>
#include <stele/hash_map.h>
#include <stele/pool.h>
#include <stele/snapshot.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

namespace stele::bench {
namespace {

using clock = std::chrono::steady_clock;
using accounts = hash_map<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t accounts_read = 100'000, amount_each = 1000;

struct bank {
  std::optional<pool<accounts>> of;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> transfers{0};
  std::atomic<bool> failed{false};
  std::optional<pool_snapshot> held;  // destroyed before the pool
};

result<> fill(bank& b) {
  for (std::uint64_t from = 0; from < accounts_read; from += 1000) {
    auto made = b.of->update([&](accounts& all) {
      if (from == 0) all.reserve(accounts_read);
      for (std::uint64_t i = from; i < from + 1000; ++i) all.insert(i, amount_each);
    });
    if (!made) return made;
  }
  return {};
}

enum class work : std::uint8_t { none, reads, updates, held_reads };

// Milliseconds of a read of all accounts, one lookup after the other, as of now or of the held
// snapshot; or of an update that reads them and stores one item.
result<double> read_all(bank& b, work what) {
  const auto sum_of = [](const accounts& all) {
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < accounts_read; ++i)
      total += all.find(i * 7919 % accounts_read)->second.load();
    return total;
  };
  const auto begin = clock::now();
  const auto read = [&] { return b.of->read(sum_of); };
  const auto sum = what == work::reads        ? read()
                   : what == work::held_reads ? b.held->read(read)
                                              : b.of->update([&](accounts& all) {
                                                  const std::uint64_t total = sum_of(all);
                                                  all.insert_or_assign(accounts_read, total);
                                                  return total;
                                                });
  const double ms = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
  if (!sum) return std::unexpected(sum.error());
  if (*sum != accounts_read * amount_each)
    return std::unexpected(error{errc::corrupt, "a read saw accounts of different moments"});
  return ms;
}

void write(bank& b, std::uint64_t seed, double a_second) {
  std::uint64_t random = seed;
  const auto begin = clock::now();
  for (std::uint64_t n = 0; !b.stop.load(std::memory_order_relaxed); ++n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t from = (random >> 20) % accounts_read,
                        to = (from + 1 + (random >> 50)) % accounts_read;
    const auto moved = b.of->update([&](accounts& all) {
      auto& payer = all.find(from)->second;
      if (payer.load() == 0) return;
      payer = payer.load() - 1;
      auto& payee = all.find(to)->second;
      payee = payee.load() + 1;
    });
    if (!moved) b.failed = true;
    b.transfers.fetch_add(1, std::memory_order_relaxed);
    if (a_second != 0)
      std::this_thread::sleep_until(
          begin + std::chrono::duration<double>(static_cast<double>(n + 1) / a_second));
  }
}

struct outcome {
  double read_ms = 0;  // the median; 0: there was none
  double transfers_a_second = 0;
};

// Writers run for at least o.seconds; with other work, until o.runs of it have ended.
result<outcome> run(const target_options& o, bank& b, unsigned writers, double a_second,
                    work what) {
  b.stop = false;
  b.transfers = 0;
  outcome out;
  result<> how;
  std::vector<double> times;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < writers; ++i)
      threads.emplace_back([&, i] { write(b, i + 1, a_second); });
    if (writers != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto begin = clock::now();
    const std::uint64_t before = b.transfers.load();
    while (what != work::none && times.size() < o.runs && !o.cancelled()) {
      const auto ms = read_all(b, what);
      if (!ms) {
        how = std::unexpected(ms.error());
        break;
      }
      times.push_back(*ms);
    }
    if (what == work::none) std::this_thread::sleep_for(std::chrono::duration<double>(o.seconds));
    out.transfers_a_second = static_cast<double>(b.transfers.load() - before) /
                             std::chrono::duration<double>(clock::now() - begin).count();
    b.stop = true;
  }
  if (!how) return std::unexpected(how.error());
  if (b.failed) return std::unexpected(error{errc::io, "a transfer failed"});
  if (!times.empty()) {
    std::ranges::sort(times);
    out.read_ms = times[times.size() / 2];
  }
  return out;
}

// Nanoseconds of a lookup in a transaction of its own.
template <class Read>
double lookup_ns(Read&& read) {
  constexpr std::uint64_t lookups = 200'000;
  const auto begin = clock::now();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < lookups; ++i) sum += read(i * 7919 % accounts_read).value_or(0);
  return sum == 0 ? 0
                  : std::chrono::duration<double, std::nano>(clock::now() - begin).count() /
                        static_cast<double>(lookups);
}

result<> add_snapshot_figures(const target_options& o, bank& b, double alone_ms,
                              double free_a_second, std::vector<performance_target>& targets) {
  o.progress("a snapshot is held");
  auto held = take_snapshot(*b.of);
  if (!held) return std::unexpected(held.error());
  b.held.emplace(std::move(*held));
  const auto written = run(o, b, 2, 0, work::none);
  if (!written) return std::unexpected(written.error());
  const auto read = run(o, b, 2, 0, work::held_reads);
  if (!read) return std::unexpected(read.error());
  const auto look_up = [&](std::uint64_t i) {
    return b.of->read([&](const accounts& all) { return all.find(i)->second.load(); });
  };
  const double now_ns = lookup_ns(look_up), held_ns = lookup_ns([&](std::uint64_t i) {
                                              return b.held->read([&] { return look_up(i); });
                                            });
  b.held.reset();
  targets.push_back({"two writers beside a held snapshot, over without", "x", 0.7,
                     written->transfers_a_second / free_a_second, false,
                     fmt::format("{:.2f} and {:.2f} M updates/s", written->transfers_a_second / 1e6,
                                 free_a_second / 1e6)});
  targets.push_back({"a read of all items in it beside such writers, over alone", "x", 10,
                     read->read_ms / alone_ms, true,
                     fmt::format("{:.1f} and {:.1f} ms", read->read_ms, alone_ms)});
  targets.push_back({"a lookup in it, over one in read(); nobody writes", "x", 2, held_ns / now_ns,
                     true, fmt::format("{:.0f} and {:.0f} ns", held_ns, now_ns)});
  return {};
}

result<> reads_beside_writers(const target_options& o, std::vector<performance_target>& targets) {
  const std::string path = fmt::format("{}/long-reads-{}.stele", o.dir, getpid());
  bank b;
  auto opened = pool<accounts>::open(
      path, {.create_size = std::size_t{64} << 20, .engine = {.media = "adr"}});
  std::filesystem::remove(path);
  if (!opened) return std::unexpected(opened.error());
  b.of.emplace(std::move(*opened));
  if (auto filled = fill(b); !filled) return filled;

  o.progress("a read of 100,000 items alone");
  const auto alone = run(o, b, 0, 0, work::reads);
  if (!alone) return std::unexpected(alone.error());
  o.progress("beside 1,000 updates a second");
  const auto slow = run(o, b, 1, 1000, work::reads);
  if (!slow) return std::unexpected(slow.error());
  o.progress("beside two writers that never rest");
  const auto free = run(o, b, 2, 0, work::none);
  if (!free) return std::unexpected(free.error());
  const auto busy = run(o, b, 2, 0, work::reads);
  if (!busy) return std::unexpected(busy.error());
  o.progress("updates that read as much");
  const auto alone_update = run(o, b, 0, 0, work::updates);
  if (!alone_update) return std::unexpected(alone_update.error());
  const auto busy_update = run(o, b, 2, 0, work::updates);
  if (!busy_update) return std::unexpected(busy_update.error());

  const auto cores = std::thread::hardware_concurrency();
  const auto detail = [&](const outcome& r) {
    return fmt::format("{:.1f} and {:.1f} ms; stm, {} cores", r.read_ms, alone->read_ms, cores);
  };
  targets.push_back({"a read of 100,000 items beside 1,000 updates a second, over alone", "x", 3,
                     slow->read_ms / alone->read_ms, true, detail(*slow)});
  targets.push_back({"the same beside two writers that never rest, over alone", "x", 10,
                     busy->read_ms / alone->read_ms, true, detail(*busy)});
  targets.push_back(
      {"these writers beside such reads, over without", "x", 0.7,
       busy->transfers_a_second / free->transfers_a_second, false,
       fmt::format("{:.2f} and {:.2f} M updates/s; {} threads on {} cores",
                   busy->transfers_a_second / 1e6, free->transfers_a_second / 1e6, 3, cores)});
  targets.push_back(
      {"an update that reads as much beside such writers, over alone", "x", 10,
       busy_update->read_ms / alone_update->read_ms, true,
       fmt::format("{:.1f} and {:.1f} ms; the writers make {:.2f} M updates/s meanwhile",
                   busy_update->read_ms, alone_update->read_ms,
                   busy_update->transfers_a_second / 1e6)});
  return add_snapshot_figures(o, b, alone->read_ms, free->transfers_a_second, targets);
}

}  // namespace

const std::vector<target_group>& read_targets() {
  static const std::vector<target_group> parts = {reads_beside_writers};
  return parts;
}

}  // namespace stele::bench
