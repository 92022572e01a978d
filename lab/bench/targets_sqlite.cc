// SQLite on pools beside SQLite on its own files: `stele bench sqlite`. Without SQLite in the build
// there is nothing to measure.
#include <bench/host.h>
#include <bench/targets_parts.h>

#ifdef STELE_HAVE_SQLITE
#include <bench/sqlite/sessions.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <stele/sqlite.h>
#include <sys/wait.h>
#include <unistd.h>
#include <workloads/store.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <thread>
#endif

namespace stele::bench {

#ifdef STELE_HAVE_SQLITE
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;
using workloads::operation;

constexpr const char* rival = "wal-full";

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// The mechanism default and the rival, on memory or on a file of the device.
comparison hosted(const target_options& o, const char* workload, std::size_t value_size,
                  bool on_file) {
  comparison c = of(o, workload, value_size, 1);
  c.what.host = "sqlite";
  c.what.parameters.keys = std::size_t{1} << 16;
  c.what.media = on_file ? "file" : "adr";
  c.what.dir = on_file ? o.file_dir : o.dir;
  c.mechanisms = {"default"};
  c.rivals = {rival};
  c.limits = false;
  return c;
}

performance_target over_rival_target(std::string what, double bound, const report& r) {
  const row &ours = *find_row(r, "default"), &theirs = *find_row(r, rival);
  return {std::move(what),
          "x",
          bound,
          ours.tx_per_s.median / theirs.tx_per_s.median,
          false,
          fmt::format("{:.0f} over {:.0f} transactions/s; media {} and {}, durability {} and {}",
                      ours.tx_per_s.median, theirs.tx_per_s.median, ours.media, theirs.media,
                      name_of(ours.survives), name_of(theirs.survives))};
}

// Of ycsb-a, whose updates write a record in place, and whose other half reads.
result<> media_bytes(const target_options& o, std::vector<performance_target>& targets) {
  constexpr double transactions_per_update = 2;
  o.progress("media bytes of an update");
  comparison c = hosted(o, "ycsb-a", 1024, false);
  c.rivals.clear();
  const auto r = compare(c);
  if (!r) return std::unexpected(r.error());
  const row& ours = r->rows.front();
  const double streamed = transactions_per_update * ours.streamed_bytes_per_tx.value_or(0),
               flushed = transactions_per_update * 64 * ours.lines_per_tx.value_or(0);
  targets.push_back({"media bytes of an update of 1 KB", "B", 2048, streamed + flushed, true,
                     fmt::format("{:.0f} B streamed, {:.0f} B in lines flushed; ycsb-a, media {}",
                                 streamed, flushed, ours.media)});
  return {};
}

result<> selects(const target_options& o, std::vector<performance_target>& targets) {
  const std::string what = fmt::format("selects by key of 1 KB over {}, memory", rival);
  o.progress(what);
  comparison c = hosted(o, "store", 1024, false);
  c.what.parameters.read_share = 1;
  const auto r = compare(c);
  if (!r) return std::unexpected(r.error());
  targets.push_back(over_rival_target(what, 2, *r));
  return {};
}

result<> tpcc(const target_options& o, std::vector<performance_target>& targets) {
  for (const bool on_file : {false, true}) {
    const std::string what = fmt::format("tpcc over {}, {}", rival, on_file ? "file" : "memory");
    o.progress(what);
    const auto r = compare(hosted(o, "tpcc", 512, on_file));
    if (!r) return std::unexpected(r.error());
    targets.push_back(over_rival_target(what, on_file ? 1.1 : 1.5, *r));
  }
  return {};
}

// The seconds that speedtest1 says it took. Errors: io, with its last line.
result<double> speedtest(const std::string& program, const std::string& dir,
                         const std::string& arguments) {
  constexpr std::string_view heading = "TOTAL";
  const std::string database = fmt::format("{}/speedtest-{}.db", dir, getpid());
  FILE* const out =
      ::popen(fmt::format("STELE_SQLITE_OPTIONS='media=adr&size=128M' '{}' {} '{}' 2>&1 </dev/null",
                          program, arguments, database)
                  .c_str(),
              "r");
  if (out == nullptr) return std::unexpected(error{errc::io, program + " cannot be started"});
  std::array<char, 512> line{};
  std::string last;
  double seconds = 0;
  while (std::fgets(line.data(), line.size(), out) != nullptr) {
    last = line.data();
    const auto at = last.find(heading);
    if (at != last.npos)
      seconds =
          std::strtod(last.c_str() + last.find_first_not_of('.', at + heading.size()), nullptr);
  }
  const int status = ::pclose(out);
  for (const char* end : {"", "-journal", "-wal", "-shm"}) fs::remove(database + end);
  if (status != 0 || seconds == 0)
    return std::unexpected(error{errc::io, fmt::format("{} failed: {}", program, last)});
  return seconds;
}

result<> whole_speedtest(const target_options& o, std::vector<performance_target>& targets) {
  const std::string what = "speedtest1 over WAL NORMAL, memory";
  const std::string ours = STELE_SQLITE_SUITE "/stele/speedtest1",
                    theirs = STELE_SQLITE_SUITE "/unix/speedtest1";
  performance_target target{what, "x", 1.2, 0, false, ""};
  if (!fs::exists(ours) || !fs::exists(theirs)) {
    target.detail =
        "not built: tools/sqlite-suite --build-only, and again with --vfs unix, build it";
    targets.push_back(target);
    return {};
  }
  o.progress(what);
  std::vector<double> pool_s, file_s;
  for (unsigned run = 0; run < std::min(o.runs, 3u) && !o.cancelled(); ++run) {
    const auto pool = speedtest(ours, o.dir, ""),
               file = speedtest(theirs, o.dir, "--journal 'wal; PRAGMA synchronous=NORMAL'");
    if (!pool) return std::unexpected(pool.error());
    if (!file) return std::unexpected(file.error());
    pool_s.push_back(*pool);
    file_s.push_back(*file);
  }
  if (pool_s.empty()) return std::unexpected(error{errc::cancelled, "interrupted"});
  const double pool = spread_of(pool_s).median, file = spread_of(file_s).median;
  target.measured = file / pool;
  target.detail = fmt::format(
      "{:.2f} s over {:.2f} s, size 100, a pool of 128 MiB, media adr; a commit is durable at "
      "once, "
      "in the WAL not",
      file, pool);
  targets.push_back(target);
  return {};
}

// A database with the rows of `store`, by its URI and pragmas.
class database {
 public:
  database(std::string path, std::string uri, std::string pragmas, const workloads::parameters& p)
      : path_(std::move(path)), uri_(std::move(uri)), pragmas_(std::move(pragmas)), p_(p) {}
  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database() {
    sessions_.clear();
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(path_ + end);
  }

  [[nodiscard]] result<> fill() {
    const auto db = open();
    return db ? content_->fill(**db) : std::unexpected(db.error());
  }
  [[nodiscard]] result<> apply(const operation& op) { return sessions_.apply({&op, 1}); }
  [[nodiscard]] result<std::shared_ptr<sql::connection>> open() const {
    auto db = sql::connection::open(uri_);
    if (db)
      if (auto set = (*db)->run(pragmas_); !set) return std::unexpected(std::move(set.error()));
    return db;
  }

 private:
  const std::string path_, uri_, pragmas_;
  const workloads::parameters p_;
  const std::unique_ptr<sql::sql_workload> content_ = sql::make_store(p_);
  sql::session_pool sessions_{*content_, [this] { return open(); }};
};

// On memory or a file, under PRAGMA synchronous.
struct place {
  bool on_file = false;
  const char* synchronous = "FULL";
};
std::string database_path(const target_options& o, const place& where, const char* end) {
  static unsigned count = 0;
  return fmt::format("{}/bench-{}-{}{}", where.on_file ? o.file_dir : o.dir, getpid(), ++count,
                     end);
}
std::unique_ptr<database> in_pool(const target_options& o, const workloads::parameters& p,
                                  const char* size, const place& where = {}) {
  const std::string path = database_path(o, where, ".stele");
  stele_sqlite_register(0);
  return std::make_unique<database>(
      path,
      fmt::format("file:{}?vfs=stele&media={}&size={}", path, where.on_file ? "file" : "adr", size),
      fmt::format("PRAGMA synchronous={}", where.synchronous), p);
}
std::unique_ptr<database> in_wal(const target_options& o, const workloads::parameters& p,
                                 const place& where = {}) {
  const std::string path = database_path(o, where, ".db");
  return std::make_unique<database>(
      path, path, fmt::format("PRAGMA journal_mode=WAL; PRAGMA synchronous={}", where.synchronous),
      p);
}

// Transactions a second of some threads: by the clock on the wall, and of their own processor time.
struct speeds {
  double wall = 0, processor = 0;
};

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Threads that select, and threads that update, each kind on one database.
class beside_run {
 public:
  beside_run(database& read, database& written, const workloads::parameters& p)
      : read_(read), written_(written), p_(p) {}
  beside_run(database& db, const workloads::parameters& p) : beside_run(db, db, p) {}

  struct outcome {
    speeds readers, writers;
  };
  result<outcome> run(unsigned readers, unsigned writers, double seconds) {
    std::vector<part> parts(readers + writers);
    std::atomic<bool> stop{false};
    const auto begin = clock::now();
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < parts.size(); ++i)
        threads.emplace_back([&, i] { work(i < readers, i + 1, stop, parts[i]); });
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      stop = true;
    }
    const double took = seconds_since(begin);
    for (part& p : parts)
      if (p.failure) return std::unexpected(std::move(*p.failure));
    const std::span all(parts);
    return outcome{sum(all.first(readers), took), sum(all.subspan(readers), took)};
  }

 private:
  struct alignas(64) part {  // in lines of its own, as its thread counts
    double transactions = 0, processor_s = 0;
    std::optional<error> failure;
  };
  void work(bool reads, unsigned seed, const std::atomic<bool>& stop, part& to) {
    using enum operation::kind;
    database& of = reads ? read_ : written_;
    base::rng random(base::mix(seed));
    const double begin = processor_seconds();
    for (; !to.failure && !stop.load(std::memory_order_relaxed); ++to.transactions)
      if (auto done = of.apply({reads ? read : put, random.below(p_.keys), random()}); !done)
        to.failure = std::move(done.error());
    to.processor_s = processor_seconds() - begin;
  }
  static speeds sum(std::span<const part> parts, double took) {
    part all;
    for (const part& p : parts) {
      all.transactions += p.transactions;
      all.processor_s += p.processor_s;
    }
    return {all.transactions / took, all.processor_s == 0 ? 0 : all.transactions / all.processor_s};
  }

  database &read_, &written_;
  const workloads::parameters p_;
};

constexpr workloads::parameters small_rows{.value_size = 1024, .keys = std::size_t{1} << 16};

// The first run's inserts of the rows that were not there at the start are not counted.
result<> updates(const target_options& o, std::vector<performance_target>& targets) {
  static constexpr struct {
    place where;
    double bound;
    const char* name;
  } settings[] = {{{}, 2.5, "updates of 1 KB over wal-full, memory"},
                  {{true}, 1.1, "updates of 1 KB over wal-full, file"},
                  {{true, "NORMAL"}, 1, "updates of 1 KB over wal-normal, NORMAL, file"}};
  for (const auto& setting : settings) {
    const auto pool = in_pool(o, small_rows, "256M", setting.where),
               wal = in_wal(o, small_rows, setting.where);
    std::array<std::vector<double>, 2> rates;
    for (unsigned run = 0; run <= o.runs; ++run)
      for (std::size_t i = 0; i < rates.size(); ++i) {
        if (o.cancelled()) return std::unexpected(error{errc::cancelled, "interrupted"});
        o.progress(setting.name);
        database& db = i == 0 ? *pool : *wal;
        if (run == 0)
          if (auto filled = db.fill(); !filled) return filled;
        const auto measured = beside_run(db, small_rows).run(0, 1, o.seconds);
        if (!measured) return std::unexpected(measured.error());
        if (run != 0) rates[i].push_back(measured->writers.wall);
      }
    const double ours = spread_of(rates[0]).median, theirs = spread_of(rates[1]).median;
    targets.push_back(
        {setting.name, "x", setting.bound, ours / theirs, false,
         fmt::format("{:.0f} over {:.0f} transactions/s, one update each, media {}, "
                     "{} rows",
                     ours, theirs, setting.where.on_file ? "file" : "adr", small_rows.keys)});
  }
  return {};
}

constexpr unsigned reader_count = 4;

// What threads lose by using one database: their speed beside the others over that beside others
// that do the same on another database, so that both have the same share of the processors.
class sharing {
 public:
  [[nodiscard]] result<> fill(std::unique_ptr<database> one, std::unique_ptr<database> other) {
    one_ = std::move(one), other_ = std::move(other);
    auto filled = one_->fill();
    return filled ? other_->fill() : filled;
  }
  [[nodiscard]] result<> run(double seconds) {
    const auto together = beside_run(*one_, small_rows).run(reader_count, 1, seconds),
               apart = beside_run(*other_, *one_, small_rows).run(reader_count, 1, seconds),
               readers = beside_run(*one_, small_rows).run(reader_count, 0, seconds),
               writer = beside_run(*one_, small_rows).run(0, 1, seconds);
    for (const auto* measured : {&together, &apart, &readers, &writer})
      if (!*measured) return std::unexpected(measured->error());
    readers_.add(together->readers, apart->readers, readers->readers);
    writer_.add(together->writers, apart->writers, writer->writers);
    return {};
  }

  struct shares {
    double over_apart, over_alone, per_processor_second, alone;
  };
  shares readers() const { return readers_.medians(); }
  shares writer() const { return writer_.medians(); }

 private:
  struct runs {
    std::vector<double> over_apart, over_alone, per_processor_second, alone;
    void add(const speeds& together, const speeds& apart, const speeds& by_itself) {
      over_apart.push_back(together.wall / apart.wall);
      over_alone.push_back(together.wall / by_itself.wall);
      per_processor_second.push_back(together.processor / by_itself.processor);
      alone.push_back(by_itself.wall);
    }
    shares medians() const {
      return {spread_of(over_apart).median, spread_of(over_alone).median,
              spread_of(per_processor_second).median, spread_of(alone).median};
    }
  };

  std::unique_ptr<database> one_, other_;
  runs readers_, writer_;
};

performance_target sharing_target(std::string what, const sharing::shares& ours,
                                  const sharing::shares& theirs) {
  return {std::move(what),
          "x",
          0.8,
          ours.over_apart,
          false,
          fmt::format("over the same beside others on another database; over alone, {:.0f}/s: "
                      "{:.2f}, of a processor second {:.2f}, {} processors; {}: {:.2f}, {:.2f}, "
                      "{:.2f}",
                      ours.alone, ours.over_alone, ours.per_processor_second,
                      std::thread::hardware_concurrency(), rival, theirs.over_apart,
                      theirs.over_alone, theirs.per_processor_second)};
}

result<> readers_beside_writer(const target_options& o, std::vector<performance_target>& targets,
                               const char* detail) {
  sharing on_pool, on_wal;
  o.progress("filling databases for four readers beside a writer");
  if (auto filled = on_pool.fill(in_pool(o, small_rows, "256M"), in_pool(o, small_rows, "256M"));
      !filled)
    return filled;
  if (auto filled = on_wal.fill(in_wal(o, small_rows), in_wal(o, small_rows)); !filled)
    return filled;
  for (unsigned run = 0; run < o.runs; ++run) {
    if (o.cancelled()) return std::unexpected(error{errc::cancelled, "interrupted"});
    o.progress(fmt::format("four readers beside a writer, run {} of {}", run + 1, o.runs));
    for (sharing* of : {&on_pool, &on_wal})
      if (auto done = of->run(o.seconds); !done) return done;
  }
  targets.push_back(sharing_target(fmt::format("four readers beside a writer{}", detail),
                                   on_pool.readers(), on_wal.readers()));
  targets.push_back(sharing_target(fmt::format("a writer beside four readers{}", detail),
                                   on_pool.writer(), on_wal.writer()));
  return {};
}

// SQLite counts what it allocates under one mutex for all threads, unless it is told not to.
result<> with_and_without_statistics(const target_options& o,
                                     std::vector<performance_target>& targets) {
  if (auto done = readers_beside_writer(o, targets, ""); !done) return done;
  const auto count_memory = [](bool does) {
    return sqlite3_shutdown() == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_MEMSTATUS, static_cast<int>(does)) == SQLITE_OK &&
           sqlite3_initialize() == SQLITE_OK;
  };
  if (!count_memory(false))
    return std::unexpected(error{errc::io, "SQLite cannot be told to count no memory"});
  auto done = readers_beside_writer(o, targets, ", MEMSTATUS 0");
  count_memory(true);
  return done;
}

// Another process writes to the database, and is killed when it has committed.
[[nodiscard]] result<> write_and_be_killed(database& db, const workloads::parameters& p,
                                           bool fill) {
  constexpr unsigned transactions = 1000;
  const pid_t child = ::fork();
  if (child == 0) {
    bool ok = !fill || db.fill();
    const workloads::key_space keys(p);
    base::rng random(1);
    for (unsigned i = 0; ok && i < transactions; ++i)
      ok = db.apply(workloads::store::draw(keys, random)).has_value();
    if (ok) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (child < 0 || !WIFSIGNALED(status))
    return std::unexpected(error{errc::io, "the process that writes the database failed"});
  return {};
}

result<> opening(const target_options& o, std::vector<performance_target>& targets) {
  const workloads::parameters p{.value_size = 1024, .keys = std::size_t{1} << 20};
  const auto db = in_pool(o, p, "1536M");
  std::vector<double> ms;
  std::string pages;
  for (unsigned run = 0; run < 3; ++run) {
    if (o.cancelled()) return std::unexpected(error{errc::cancelled, "interrupted"});
    o.progress(fmt::format("opening after a kill, run {} of 3", run + 1));
    if (auto killed = write_and_be_killed(*db, p, run == 0); !killed) return killed;
    const auto begin = clock::now();
    const auto opened = db->open();
    if (!opened) return std::unexpected(opened.error());
    const auto found = (*opened)->text("SELECT value FROM blob LIMIT 1");
    ms.push_back(seconds_since(begin) * 1e3);
    if (!found) return std::unexpected(found.error());
    const auto counted = (*opened)->text("PRAGMA page_count");
    if (!counted) return std::unexpected(counted.error());
    pages = *counted;
  }
  targets.push_back(
      {"opening after a kill, with the first select", "ms", 100, spread_of(ms).median, true,
       fmt::format("a database of {} pages of 4096 B, media adr, mechanism default", pages)});
  return {};
}

}  // namespace

const std::vector<target_group>& sqlite_targets() {
  static const std::vector<target_group> parts = {
      updates, media_bytes, selects, whole_speedtest, with_and_without_statistics, tpcc, opening};
  return parts;
}

#else
const std::vector<target_group>& sqlite_targets() {
  static const std::vector<target_group> parts = {
      [](const target_options&, std::vector<performance_target>&) -> result<> {
        task t;
        t.host = "sqlite";
        return std::unexpected(make_host_limit(t).error());
      }};
  return parts;
}
#endif

}  // namespace stele::bench
