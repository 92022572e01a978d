// Threads with connections of their own, on two databases of one pool, under a history check. Also
// with ordered commits, which a thread of the pool makes durable beside them.
//
// Each writing transaction increments cells and so draws their next versions; it notes the versions
// that it read of all cells. Writers are serial, so a history is right exactly if the noted vectors
// of versions form a chain: each writer read what the writer before left, and each reader read one
// of those states. STELE_SEED repeats the choices, STELE_SQLITE_SECONDS the length of the run.
#include <base/rng.h>
#include <tests/budget.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::size_t cells = 6, threads = 6;
using versions = std::array<std::int64_t, cells>;

struct observation {
  versions read;
  std::optional<versions> left;  // by a writer that has committed
};

// The cells lie on pages of their own, beside rows that come and go.
const std::string start =
    "CREATE TABLE cell(id INTEGER PRIMARY KEY, version INT, pad BLOB);"
    "CREATE TABLE bulk(id INTEGER PRIMARY KEY, pad BLOB);"
    "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i + 1 < 6)"
    "INSERT INTO cell SELECT i, 0, zeroblob(3000) FROM c;";

class actor {
 public:
  actor(const std::string& main, const std::string& other, std::uint64_t seed, bool ordered)
      : db_(main), random_(seed) {
    ::sqlite3_busy_timeout(db_.handle(), 20);
    db_.must("ATTACH '" + other + "' AS other");
    if (seed % 2 == 0) db_.must("PRAGMA cache_size=10; PRAGMA other.cache_size=10");
    if (ordered) db_.must("PRAGMA synchronous=NORMAL; PRAGMA other.synchronous=NORMAL");
  }

  void act() {
    const std::uint64_t what = random_.below(16);
    const bool done = what < 6    ? read()
                      : what < 11 ? write("BEGIN IMMEDIATE", "")
                      : what < 14 ? write("BEGIN", "")
                      : what < 15 ? write("BEGIN IMMEDIATE", "other.")
                                  : shrink();
    if (!done && ::sqlite3_get_autocommit(db_.handle()) == 0) db_.must("ROLLBACK");
  }

  std::vector<observation> seen;
  std::uint64_t busy = 0, both = 0;

 private:
  // False: another connection is in the way.
  bool attempt(const std::string& sql) {
    const int code = db_.run(sql);
    if (code == SQLITE_OK) return true;
    if ((code & 0xff) != SQLITE_BUSY) db_.must(sql), throw std::runtime_error("only once: " + sql);
    ++busy;
    return false;
  }
  versions read_cells() {
    versions v{};
    for (std::size_t c = 0; c < cells; ++c)
      v[c] = db_.number("SELECT version FROM cell WHERE id = " + std::to_string(c));
    return v;
  }
  bool read() {
    db_.must("BEGIN");
    const versions v = read_cells();
    if (random_.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (read_cells() != v) throw std::runtime_error("a read transaction saw two states");
    if (db_.number("SELECT count(*) FROM bulk WHERE length(pad) <> 3000") != 0)
      throw std::runtime_error("a torn row");
    db_.must("COMMIT");
    seen.push_back({v, std::nullopt});
    return true;
  }
  bool write(const std::string& begin, const std::string& also) {
    if (!attempt(begin)) return false;
    observation o{read_cells(), {}};
    versions left = o.read;
    for (std::uint64_t i = 1 + random_.below(3); i != 0; --i) {
      const std::size_t c = random_.below(cells);
      if (!attempt("UPDATE cell SET version = version + 1, pad = randomblob(3000) WHERE id = " +
                   std::to_string(c)))
        return false;
      ++left[c];
    }
    if (!attempt("INSERT INTO bulk(pad) VALUES(randomblob(3000))")) return false;
    if (!also.empty() && !attempt("UPDATE other.cell SET version = version + 1 WHERE id = 0"))
      return false;
    if (random_.below(8) == 0) return false;  // rolled back
    if (!attempt("COMMIT")) return false;
    both += !also.empty();
    o.left = left;
    seen.push_back(o);
    return true;
  }
  bool shrink() {
    return attempt("BEGIN IMMEDIATE") && attempt("DELETE FROM bulk") && attempt("COMMIT") &&
           (random_.below(2) != 0 || attempt("VACUUM"));
  }

  connection db_;
  base::rng random_;
};

// What is wrong with the history; empty: nothing.
std::string problem(const std::vector<observation>& all, const versions& last) {
  std::map<versions, versions> next;
  for (const observation& o : all)
    if (o.left && !next.emplace(o.read, *o.left).second)
      return "two writers read one state: an update is lost";
  std::map<versions, bool> states;
  versions now{};
  states[now] = true;
  for (auto at = next.find(now); at != next.end(); at = next.find(now))
    states[now = at->second] = true;
  if (now != last) return "the last state is not that after all commits";
  if (states.size() != next.size() + 1)
    return "a writer read a state that no order of the commits gives";
  for (const observation& o : all)
    if (!states.contains(o.read)) return "a reader saw a state that no order of the commits gives";
  return "";
}

struct setting {
  const char *name, *parameters;
  bool ordered;  // two of three threads
};

// Runs the threads, closes the pool and opens it again. Returns what is wrong; empty: nothing.
std::string run_threads(const setting& how, std::uint64_t seed, std::chrono::seconds length) {
  const scratch_directory dir;
  const std::string uri = uri_of(dir.file("db"), how.parameters + std::string("&database="));
  const std::string main = uri + "one", other = uri + "other";
  for (const std::string& one : {main, other}) {
    connection db(one);
    db.must("PRAGMA auto_vacuum=FULL");
    db.must(start);
  }
  const auto end = std::chrono::steady_clock::now() + length;
  std::vector<observation> all;
  std::uint64_t busy = 0, both = 0, writes = 0;
  std::string failed;
  std::mutex mutex;
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        try {
          actor a(main, other, seed + t, how.ordered && t % 3 != 0);
          while (std::chrono::steady_clock::now() < end) a.act();
          const std::scoped_lock one(mutex);
          all.insert(all.end(), a.seen.begin(), a.seen.end());
          busy += a.busy, both += a.both;
        } catch (const std::exception& e) {
          const std::scoped_lock one(mutex);
          failed = e.what();
        }
      });
  }
  if (!failed.empty()) return failed;
  try {
    connection db(main);
    versions last{};
    for (std::size_t c = 0; c < cells; ++c)
      last[c] = db.number("SELECT version FROM cell WHERE id = " + std::to_string(c));
    if (const auto wrong = problem(all, last); !wrong.empty()) return wrong;
    for (const char* check : {"PRAGMA integrity_check", "PRAGMA stele_check"})
      if (const auto told = db.text(check); told != "ok") return told;
  } catch (const std::exception& e) {
    return e.what();
  }
  if (connection(other).number("SELECT version FROM cell WHERE id = 0") !=
      static_cast<std::int64_t>(both))
    return "the other database has not all commits of both, or more";
  for (const observation& o : all) writes += o.left.has_value();
  std::printf(
      "  %s: %lu writers and %lu readers committed, %lu of both databases; busy %lu times; "
      "STELE_SEED=%lu\n",
      how.name, writes, all.size() - writes, both, busy, seed);
  return writes == 0 ? "nothing was written" : "";
}

TEST(sqlite_concurrent, history_is_serializable) {
  const std::uint64_t seed = seed_from("STELE_SEED");
  const std::chrono::seconds length(count_from("STELE_SQLITE_SECONDS", 3));
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  EXPECT_EQ(run_threads({"durable, process", "size=32M&media=process", false}, seed, length), "");
  EXPECT_EQ(run_threads({"ordered, file", "size=32M&media=file", true}, seed, length), "");
}

TEST(sqlite_concurrent, wrong_histories_are_found_out) {
  const versions none{}, one{1}, two{2}, aside{0, 1};
  EXPECT_EQ(problem({{none, one}, {one, two}, {one, {}}}, two), "");
  EXPECT_NE(problem({{none, one}, {none, aside}}, one), "");
  EXPECT_NE(problem({{none, one}, {aside, {}}}, one), "");
  EXPECT_NE(problem({{none, one}, {aside, two}}, one), "");
  EXPECT_NE(problem({{none, one}}, two), "");
}

}  // namespace
}  // namespace stele::testing
