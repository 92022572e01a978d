// Redis on pools beside Redis on its own files: `stele bench redis`. Without Redis in the build
// there is nothing to measure.
#include <bench/host.h>
#include <bench/targets_parts.h>

#ifdef STELE_HAVE_REDIS
#include <base/check.h>
#include <base/rng.h>
#include <bench/redis/connection.h>
#include <bench/redis/server.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>
#endif

namespace stele::bench {

#ifdef STELE_HAVE_REDIS
namespace {

using clock = std::chrono::steady_clock;
using redis::connection;
using redis::server;
using settings = std::vector<std::string>;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

constexpr std::size_t value_bytes = 100;

std::string name_of(std::uint64_t key) {
  return fmt::format("key:{:012}", key);
}
// Random letters: an RDB file keeps other texts compressed.
std::string text_of(base::rng& random, std::size_t size) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('!' + random.below(90));
  return text;
}

settings with_module(const target_options& o) {
  return redis::module_settings("adr", (std::size_t{64} << 20) + o.keys * 300, "default");
}

// A server and a connection to it.
class node {
 public:
  [[nodiscard]] result<> start(const std::string& folder, const settings& s) {
    auto started = server::start(folder, s);
    if (!started) return std::unexpected(std::move(started.error()));
    server_ = std::move(*started);
    return connect();
  }
  [[nodiscard]] result<> fill(const target_options& o, std::string_view what) {
    base::rng random(1);
    for (std::uint64_t key = 0; key < o.keys; ++key) {
      if (key % 65'536 == 0) o.progress(fmt::format("{}: {} of {} keys", what, key, o.keys));
      if (o.cancelled()) return base::fail(errc::cancelled, "interrupted");
      if (auto sent = to().append({"SET", name_of(key), text_of(random, value_bytes)}); !sent)
        return sent;
    }
    return to().finish();
  }
  void kill() {
    to_.reset();
    server_->kill();
  }
  // After kill(). The seconds until it answers, with the keys.
  [[nodiscard]] result<double> restart(std::uint64_t keys) {
    const auto begin = clock::now();
    auto done = server_->start_again();
    if (done) done = connect();
    const auto read = done ? to().run({"GET", name_of(keys / 2)}) : std::unexpected(done.error());
    const double took = seconds_since(begin);
    if (!read) return std::unexpected(read.error());
    const auto count = to().run({"DBSIZE"});
    if (!count) return std::unexpected(count.error());
    if (read->text.size() != value_bytes || static_cast<std::uint64_t>(count->number) != keys)
      return base::fail(errc::corrupt,
                        fmt::format("a restarted server has {} keys, not {}", count->number, keys));
    return took;
  }
  connection& to() { return *to_; }

 private:
  [[nodiscard]] result<> connect() {
    auto opened = connection::open(server_->socket());
    if (!opened) return std::unexpected(std::move(opened.error()));
    to_ = std::move(*opened);
    return {};
  }
  std::unique_ptr<server> server_;
  std::shared_ptr<connection> to_;
};

// --- ycsb-a ---

struct served {
  double over_none = 0, over_aof = 0, p99_over_aof = 0;
  std::string detail;
};

result<served> ycsb_a(const target_options& o, unsigned clients, bool on_file) {
  o.progress(fmt::format("ycsb-a, {} clients, {}", clients, on_file ? "file" : "memory"));
  comparison c = of(o, "ycsb-a", 128, 1);
  c.what.host = "redis";
  c.what.threads = clients;
  c.what.parameters.keys = std::min<std::size_t>(std::size_t{1} << 16, o.keys);
  c.what.media = on_file ? "file" : "adr";
  c.what.dir = on_file ? o.file_dir : o.dir;
  c.limits = true;
  if (on_file) c.rivals = {"aof-always"};
  const auto r = compare(c);
  if (!r) return std::unexpected(r.error());
  const row *ours = find_row(*r, "default"), *none = find_row(*r, "no-persistence"),
            *aof = find_row(*r, "aof-always");
  served s;
  s.over_none = ours->tx_per_s.median / none->tx_per_s.median;
  s.detail = fmt::format("default {:.1f} k/s, no persistence {:.1f}", ours->tx_per_s.median / 1e3,
                         none->tx_per_s.median / 1e3);
  if (aof != nullptr) {
    s.over_aof = ours->tx_per_s.median / aof->tx_per_s.median;
    s.p99_over_aof = ours->p99_ns / aof->p99_ns;
    s.detail += fmt::format(", AOF always {:.1f}; p99 {:.2f}, {:.2f}, {:.2f} ms",
                            aof->tx_per_s.median / 1e3, ours->p99_ns / 1e6, none->p99_ns / 1e6,
                            aof->p99_ns / 1e6);
  }
  return s;
}

result<> commands(const target_options& o, std::vector<performance_target>& targets) {
  for (const unsigned clients : {2u, 50u}) {
    const auto s = ycsb_a(o, clients, false);
    if (!s) return std::unexpected(s.error());
    targets.push_back({fmt::format("ycsb-a, {} clients, memory, over none", clients), "x", 0.9,
                       s->over_none, false, s->detail});
  }
  for (const unsigned clients : {2u, 50u}) {
    const auto s = ycsb_a(o, clients, true);
    if (!s) return std::unexpected(s.error());
    const std::string what = fmt::format("ycsb-a, {} clients, file, ", clients);
    targets.push_back(
        {what + "over AOF always", "x", clients == 2 ? 1.5 : 2, s->over_aof, false, s->detail});
    if (clients == 2) continue;
    targets.push_back({what + "over none", "x", 0.6, s->over_none, false, s->detail});
    targets.push_back({what + "p99 over AOF always", "x", 1, s->p99_over_aof, true, s->detail});
  }
  return {};
}

// --- restarts ---

result<> restarts(const target_options& o, std::vector<performance_target>& targets) {
  const struct {
    const char* name;
    settings of;
  } kinds[] = {
      {"pool", with_module(o)},
      {"RDB", {}},
      // With everysec a write may still be postponed when the server is killed.
      {"AOF",
       {"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"}}};
  node nodes[std::size(kinds)];
  std::vector<double> seconds[std::size(kinds)];
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    auto ready = nodes[i].start(fmt::format("{}/{}", o.dir, kinds[i].name), kinds[i].of);
    if (ready) ready = nodes[i].fill(o, fmt::format("filling for a restart, {}", kinds[i].name));
    if (!ready) return ready;
    if (kinds[i].of.empty())
      if (const auto saved = nodes[i].to().run({"SAVE"}); !saved)
        return std::unexpected(saved.error());
    nodes[i].kill();
  }
  for (unsigned run = 0; run < o.runs; ++run)
    for (std::size_t i = 0; i < std::size(kinds); ++i) {
      if (o.cancelled()) return base::fail(errc::cancelled, "interrupted");
      o.progress(fmt::format("restart, {}, run {} of {}", kinds[i].name, run + 1, o.runs));
      const auto took = nodes[i].restart(o.keys);
      if (!took) return std::unexpected(took.error());
      seconds[i].push_back(*took);
      nodes[i].kill();
    }
  const double pool = spread_of(seconds[0]).median, rdb = spread_of(seconds[1]).median,
               aof = spread_of(seconds[2]).median;
  const std::string detail = fmt::format(
      "{} keys of {} B, after a kill, from exec to the first GET: pool (adr) {:.2f} s, RDB {:.2f}, "
      "AOF {:.2f}",
      o.keys, value_bytes, pool, rdb, aof);
  targets.push_back({"restart", "s", 1, pool, true, detail});
  targets.push_back({"restart, RDB over pool", "x", 3, rdb / pool, false, detail});
  targets.push_back({"restart, AOF over pool", "x", 5, aof / pool, false, detail});
  return {};
}

// --- full syncs and memory ---

// The seconds until a new replica has all keys.
result<double> full_sync(const target_options& o, const settings& s, const std::string& port) {
  constexpr double limit_s = 600;
  node replica;
  if (auto started = replica.start(o.dir + "/replica", s); !started)
    return std::unexpected(started.error());
  const auto begin = clock::now();
  if (auto told = replica.to().run({"REPLICAOF", "127.0.0.1", port}); !told)
    return std::unexpected(told.error());
  // While it loads, it answers with errors.
  for (; seconds_since(begin) < limit_s;
       std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    const auto link = redis::info_of(replica.to(), "replication", "master_link_status");
    const auto count = replica.to().run({"DBSIZE"});
    if (link && *link == "up" && count && static_cast<std::uint64_t>(count->number) == o.keys)
      return seconds_since(begin);
    if (o.cancelled()) return base::fail(errc::cancelled, "interrupted");
  }
  return base::fail(errc::io, fmt::format("a replica is not synced after {} s", limit_s));
}

result<> tell_memory(node& pool, node& plain, std::vector<performance_target>& targets) {
  constexpr double mb = 1e6;
  const auto rss = redis::number_of_info(pool.to(), "memory", "used_memory_rss"),
             plain_rss = redis::number_of_info(plain.to(), "memory", "used_memory_rss"),
             size = redis::number_of_info(pool.to(), "stele", "stele_size_bytes"),
             used = redis::number_of_info(pool.to(), "stele", "stele_used_bytes");
  for (const auto* told : {&rss, &plain_rss, &size, &used})
    if (!*told) return std::unexpected(told->error());
  targets.push_back({"resident memory over plain Redis", "x", 0, *rss / *plain_rss, true,
                     fmt::format("{:.0f} over {:.0f} MB, the pool's pages in memory (adr) included",
                                 *rss / mb, *plain_rss / mb),
                     false});
  targets.push_back({"the pool's own space", "MB", 0, *used / mb, true,
                     fmt::format("used, of {:.0f} MB", *size / mb), false});
  return {};
}

result<> replicas(const target_options& o, std::vector<performance_target>& targets) {
  const settings kinds[] = {with_module(o), {}};
  const char* const names[] = {"pool", "plain"};
  node masters[2];
  std::string ports[2];
  std::vector<double> seconds[2];
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    auto port = redis::free_port();
    if (!port) return std::unexpected(port.error());
    ports[i] = std::move(*port);
    settings s = kinds[i];
    s.insert(s.end(),
             {"--bind", "127.0.0.1", "--port", ports[i], "--repl-diskless-sync-delay", "0"});
    auto ready = masters[i].start(fmt::format("{}/master-{}", o.dir, names[i]), s);
    if (ready) ready = masters[i].fill(o, fmt::format("filling for a sync, {}", names[i]));
    if (!ready) return ready;
  }
  if (auto told = tell_memory(masters[0], masters[1], targets); !told) return told;
  for (unsigned run = 0; run < o.runs; ++run)
    for (std::size_t i = 0; i < std::size(kinds); ++i) {
      o.progress(fmt::format("full sync, {}, run {} of {}", names[i], run + 1, o.runs));
      const auto took = full_sync(o, kinds[i], ports[i]);
      if (!took) return std::unexpected(took.error());
      seconds[i].push_back(*took);
    }
  const double pool = spread_of(seconds[0]).median, plain = spread_of(seconds[1]).median;
  targets.push_back({"full sync of a replica, over plain Redis", "x", 0.7, plain / pool, false,
                     fmt::format("{} keys: plain to plain {:.2f} s, pool to pool {:.2f} s", o.keys,
                                 plain, pool)});
  return {};
}

// --- growth ---

std::uint64_t changed_keys(const target_options& o) {
  return std::min<std::uint64_t>(16'384, o.operations / 64);  // each changes often before a half
}

// A string or a hash, by the key's name, is set, removed, or gets an expiry time.
result<> change_something(connection& to, base::rng& random, std::uint64_t keys) {
  const std::uint64_t key = random.below(keys), choice = random.below(100);
  const std::string name = name_of(key), value = text_of(random, 16 + random.below(400));
  if (choice < 10) return to.append({"DEL", name});
  if (choice < 20) return to.append({"PEXPIRE", name, fmt::format("{}", 1 + random.below(2000))});
  if (key % 2 == 0) return to.append({"SET", name, value});
  const std::string field = fmt::format("field {}", random.below(16));
  return choice < 35 ? to.append({"HDEL", name, field}) : to.append({"HSET", name, field, value});
}

result<> growth(const target_options& o, std::vector<performance_target>& targets) {
  constexpr double mb = 1e6;
  node server;
  if (auto started = server.start(o.dir + "/growth",
                                  redis::module_settings("adr", std::size_t{64} << 20, "default"));
      !started)
    return started;
  base::rng random(1);
  std::vector<double> used, size;
  std::vector<std::string> points;
  std::uint64_t done = 0;
  for (const std::uint64_t eighths : {1u, 2u, 4u, 8u}) {
    for (const std::uint64_t end = o.operations / 8 * eighths; done < end; ++done) {
      if (done % 16'384 == 0)
        o.progress(fmt::format("growth: {} of {} operations", done, o.operations));
      if (o.cancelled()) return base::fail(errc::cancelled, "interrupted");
      if (auto sent = change_something(server.to(), random, changed_keys(o)); !sent) return sent;
    }
    if (auto all = server.to().finish(); !all) return all;
    const auto now = redis::number_of_info(server.to(), "stele", "stele_used_bytes"),
               whole = redis::number_of_info(server.to(), "stele", "stele_size_bytes");
    if (!now) return std::unexpected(now.error());
    if (!whole) return std::unexpected(whole.error());
    used.push_back(*now);
    size.push_back(*whole);
    points.push_back(fmt::format("{} {:.2f}/{:.0f}", done, *now / mb, *whole / mb));
  }
  const std::string detail =
      fmt::format("sets, deletes, hashes, expiries on {} keys; operations, MB used of MB: {}",
                  changed_keys(o), fmt::join(points, ", "));
  targets.push_back(
      {"growth of what is used, end over a half", "x", 1.05, used[3] / used[2], true, detail});
  targets.push_back(
      {"growth of the pool, end over a quarter", "x", 1, size[3] / size[1], true, detail});
  return {};
}

}  // namespace

const std::vector<target_group>& redis_targets() {
  static const std::vector<target_group> parts = {commands, restarts, replicas, growth};
  return parts;
}

#else
const std::vector<target_group>& redis_targets() {
  static const std::vector<target_group> parts = {
      [](const target_options&, std::vector<performance_target>&) -> result<> {
        task t;
        t.host = "redis";
        return std::unexpected(make_host_limit(t).error());
      }};
  return parts;
}
#endif

}  // namespace stele::bench
