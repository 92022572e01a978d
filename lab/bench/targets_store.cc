// The targets of the key-value store and of pool maintenance: puts and gets beside other embedded
// stores at equal durability, on the device's file system and in memory; commits of many threads on
// a file; tail latency during checkpoints; checking and copying a pool in use.
#include <bench/targets_parts.h>
#include <fmt/format.h>
#include <stele/kv.h>
#include <tx/inspect.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

namespace stele::bench {
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

struct rival_target {
  const char* rival;
  double mark;
};

comparison of_store(const target_options& o, std::size_t value_size, const char* media,
                    const std::string& dir) {
  comparison c;
  c.what.workload = "store";
  c.what.parameters.value_size = value_size;
  c.what.media = media;
  c.what.dir = dir;
  c.mechanisms = {"default"};
  c.runs = o.runs;
  c.seconds = o.seconds;
  c.cancelled = o.cancelled;
  return c;
}
comparison puts_on_file(const target_options& o) {
  comparison c = of_store(o, 1024, "file", o.file_dir);
  c.what.parameters.keys = 16384;
  return c;
}

result<> on_file(const target_options& o, std::vector<performance_target>& targets) {
  o.progress("puts of 1 KB on a file");
  comparison c = puts_on_file(o);
  c.rivals = those_built({"leveldb", "rocksdb", "lmdb", "libpmemobj"});
  const auto one = compare(c);
  if (!one) return std::unexpected(one.error());
  const row& ours = *find_row(*one, "default");
  const double device =
      one->hardware.synced_block_ns ? 1e9 / one->hardware.synced_block_ns->median : 0;
  targets.push_back(
      {"puts of 1 KB, each durable, over the device", "x", 0.95, ours.tx_per_s.median / device,
       false,
       fmt::format(
           "{:.0f} puts/s; a 4 KiB block overwritten + fdatasync {:.0f}/s; {:.2f} fences a put",
           ours.tx_per_s.median, device, ours.fences_per_tx.value_or(0))});
  for (const auto& [rival, mark] :
       {rival_target{"leveldb", 1.05}, {"rocksdb", 2}, {"lmdb", 2}, {"libpmemobj", 10}})
    targets.push_back({fmt::format("puts of 1 KB, each durable, over {}", rival), "x", mark,
                       over_rival(*one, rival), false, "one thread, media file"});
  targets.push_back({"99th percentile of a put over its median", "x", 3, ours.p99_ns / ours.p50_ns,
                     true, fmt::format("{:.0f} us, checkpoints meanwhile", ours.p99_ns / 1e3)});
  o.progress("eight threads on a file");
  c = puts_on_file(o);
  c.limits = false;
  const auto alone = compare(c);
  c.what.threads = 8;
  const auto eight = alone ? compare(c) : alone;
  if (!eight) return std::unexpected(eight.error());
  const row& many = *find_row(*eight, "default");
  targets.push_back({"puts of 1 KB, eight threads over one", "x", 4,
                     many.tx_per_s.median / find_row(*alone, "default")->tx_per_s.median, false,
                     fmt::format("{:.0f} puts/s, {:.2f} fences a put", many.tx_per_s.median,
                                 many.fences_per_tx.value_or(0))});
  return {};
}

result<> in_memory(const target_options& o, std::vector<performance_target>& targets) {
  for (const double read_share : {0.0, 1.0}) {
    const std::string what = read_share == 0 ? "puts of 100 B" : "gets of 100 B";
    o.progress(what + " in memory");
    comparison c = of_store(o, 100, "adr", o.dir);
    c.what.parameters.read_share = read_share;
    c.rivals = those_built({"leveldb", "lmdb"});
    c.limits = false;
    c.batch = 16;
    const auto r = compare(c);
    if (!r) return std::unexpected(r.error());
    c.batch = 0;
    c.what.policy = concurrency::external;  // like libpmemobj, without isolation of threads
    c.rivals = those_built({"libpmemobj"});
    const auto alone = compare(c);
    if (!alone) return std::unexpected(alone.error());
    targets.push_back({what + " a second, media adr", "M/s", read_share == 0 ? 1.3 : 3.5,
                       find_row(*r, "default")->tx_per_s.median / 1e6, false,
                       fmt::format("2^20 keys of 8 B, one thread, stm; external {:.2f}",
                                   find_row(*alone, "default")->tx_per_s.median / 1e6)});
    if (read_share == 1)
      targets.push_back({what + " by get_many", "M/s", 6,
                         find_row(*r, "default, 16 a call")->tx_per_s.median / 1e6, false,
                         "16 keys a call, stm"});
    if (read_share == 0)
      targets.push_back({what + " over leveldb", "x", 1.7, over_rival(*r, "leveldb"), false,
                         "each at the durability 'process', for many threads"});
    else
      targets.push_back({what + " over libpmemobj", "x", 1.5, over_rival(*alone, "libpmemobj"),
                         false, "each at the durability 'process', for one thread"});
  }
  return {};
}

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// A store of 1 KB values that nearly fills a pool of 256 MiB.
result<kv> full_store(const std::string& path) {
  auto store =
      kv::open(path, {.create_size = std::size_t{256} << 20, .engine = {.media = "process"}});
  if (!store) return store;
  const std::string value(1024, 'v');
  for (std::uint64_t k = 0; k < 180'000; k += 100) {
    kv::batch some;
    for (std::uint64_t i = 0; i < 100; ++i) some.put(fmt::format("{:08}", k + i), value);
    if (auto put = store->write(some); !put) return std::unexpected(put.error());
  }
  return store;
}

// Puts per second of one thread while `work` runs.
template <class Work>
double puts_beside(kv& store, Work&& work) {
  std::atomic<bool> stop{false};
  std::uint64_t puts = 0;
  const auto begin = clock::now();
  std::jthread writer([&] {
    const std::string value(1024, 'w');
    for (std::uint64_t k = 0; !stop.load(); k = (k + 7919) % 180'000, ++puts)
      (void)store.put(fmt::format("{:08}", k), value);
  });
  work();
  stop = true;
  writer.join();
  return static_cast<double>(puts) / seconds_since(begin);
}

result<> care(const target_options& o, std::vector<performance_target>& targets) {
  o.progress("judging and copying a pool");
  const std::string path = fmt::format("{}/care-{}", o.dir, ::getpid()), copy = path + ".copy";
  auto store = full_store(path);
  if (!store) return std::unexpected(store.error());
  std::vector<double> check, quiet, backup, share;
  for (unsigned i = 0; i < o.runs && !o.cancelled(); ++i) {
    const double alone =
        puts_beside(*store, [] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); });
    result<> made;
    double took = 0;
    const double beside = puts_beside(*store, [&] {
      const auto begin = clock::now();
      made = store->backup(copy);
      took = seconds_since(begin);
    });
    if (!made) return made;
    const auto begin_check = clock::now();
    const auto judged = detail::check_pool(copy);
    if (!judged) return std::unexpected(judged.error());
    check.push_back(static_cast<double>(judged->verified_bytes) / seconds_since(begin_check) / 1e9);
    fs::remove(copy);
    const auto begin_alone = clock::now();
    if (made = store->backup(copy); !made) return made;
    const double took_alone = seconds_since(begin_alone);
    fs::remove(copy);
    const auto begin_copy = clock::now();
    fs::copy_file(path, copy);
    const double cp = seconds_since(begin_copy);
    quiet.push_back(cp / took_alone);
    backup.push_back(cp / took);
    share.push_back(beside / alone);
    fs::remove(copy);
  }
  (void)store->close();
  fs::remove(path);
  if (check.empty()) return std::unexpected(error{errc::cancelled, "interrupted"});
  targets.push_back({"check of a pool", "GB/s", 1, spread_of(check).median, false,
                     "header, logs, heap, sums of 256 MiB in memory"});
  targets.push_back(
      {"backup over cp", "x", 0.7, spread_of(quiet).median, false, "nobody beside it"});
  targets.push_back({"backup over cp, writers beside it", "x", 0.7, spread_of(backup).median, false,
                     "the copy is synced and has ids and sums of its own"});
  targets.push_back({"puts beside a backup over puts alone", "x", 0.7, spread_of(share).median,
                     false, "one writer, values of 1 KB"});
  return {};
}

}  // namespace

result<std::vector<performance_target>> measure_store_targets(const target_options& o) {
  std::vector<performance_target> targets;
  for (const auto part : {on_file, in_memory, care}) {
    const std::size_t before = targets.size();
    if (auto measured = part(o, targets); !measured) return std::unexpected(measured.error());
    for (std::size_t i = before; i < targets.size(); ++i) o.measured(targets[i]);
  }
  return targets;
}

}  // namespace stele::bench
