// Kills a process with SIGKILL that writes to a database in a pool with one connection while four
// threads read it. Every time the database opens with all acknowledged commits, and with all
// invariants.
//
// Commit n says n in the table `progress`. Transfers keep the sum of all balances, and count in the
// accounts' versions; an order has as many lines as it says. With ordered commits every tenth is
// durable, and a kill may lose those after it, but no one before another that is there. Among the
// transactions are large ones that spill SQLite's cache, savepoints, rollbacks and VACUUM.
// STELE_SQLITE_KILLS sets the number of kills of all settings together; STELE_SEED repeats the
// choices.
#include <base/mutant.h>
#include <base/rng.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace stele::testing {
namespace {

constexpr std::uint64_t accounts = 200, kept_orders = 40;
constexpr unsigned readers = 4;
constexpr std::uint64_t wrong_word = ~std::uint64_t{0};  // a reader saw what may not be

const std::string start =
    "BEGIN;"
    "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT, version INT, pad BLOB);"
    "CREATE TABLE progress(id INTEGER PRIMARY KEY, n INT, touched INT);"
    "CREATE TABLE orders(id INTEGER PRIMARY KEY, lines INT);"
    "CREATE TABLE line(o INT, number INT, note TEXT, PRIMARY KEY(o, number)) WITHOUT ROWID;"
    "CREATE INDEX by_balance ON account(balance);"
    "INSERT INTO progress VALUES(0, 0, 0);"
    "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i + 1 < 200)"
    "INSERT INTO account SELECT i, 1000, 0, printf('%0900d', 0) FROM c;"
    "COMMIT;";

// Each of these is a sentence of what is wrong, or nothing.
const std::string invariants =
    "SELECT CASE WHEN (SELECT sum(balance) FROM account) <> 200000 THEN 'sum of balances' "
    "WHEN (SELECT sum(version) FROM account) <> (SELECT touched FROM progress) THEN 'versions' "
    "WHEN EXISTS(SELECT 1 FROM account WHERE CAST(pad AS TEXT) <> printf('%0900d', version)) "
    "THEN 'a torn account' "
    "WHEN EXISTS(SELECT 1 FROM orders WHERE lines <> (SELECT count(*) FROM line WHERE o = id)) "
    "THEN 'lines of an order' "
    "WHEN (SELECT count(*) FROM line) <> (SELECT ifnull(sum(lines), 0) FROM orders) "
    "THEN 'lines without an order' ELSE '' END";

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

class writer {
 public:
  writer(connection& db, std::uint64_t seed) : db_(db), random_(seed) {
    db_.must("PRAGMA cache_size=10");
    n_ = static_cast<std::uint64_t>(db_.number("SELECT n FROM progress"));
  }

  // One transaction. Returns its number. Under PRAGMA synchronous=NORMAL, unless `durable`.
  std::uint64_t commit(bool durable = true) {
    if (durable != durable_)
      db_.must(std::string("PRAGMA synchronous=") + (durable ? "FULL" : "NORMAL"));
    durable_ = durable;
    if (random_.below(60) == 0) db_.must("VACUUM");
    if (random_.below(12) == 0) roll_back();
    db_.must("BEGIN IMMEDIATE");
    const std::uint64_t what = random_.below(16);
    touched_ = 0;
    if (what < 8)
      transfer();
    else if (what < 13)
      order();
    else if (what < 15)
      with_savepoint();
    else
      touch_all();
    db_.must("UPDATE progress SET n = " + number(n_ + 1) + ", touched = touched + " +
             number(touched_));
    db_.must("COMMIT");
    return ++n_;
  }

 private:
  void add(std::uint64_t to, std::int64_t amount) {
    db_.must(
        "UPDATE account SET balance = balance + " + std::to_string(amount) +
        ", version = version + 1, pad = printf('%0900d', version + 1) WHERE id = " + number(to));
    ++touched_;
  }
  void transfer() {
    const auto amount = static_cast<std::int64_t>(random_.below(100));
    const std::uint64_t from = random_.below(accounts);
    add(from, -amount);
    add((from + 1 + random_.below(accounts - 1)) % accounts, amount);
  }
  void order() {
    const std::uint64_t lines = random_.below(12);
    db_.must("INSERT INTO orders VALUES(" + number(n_ + 1) + "," + number(lines) + ")");
    for (std::uint64_t i = 0; i < lines; ++i)
      db_.must("INSERT INTO line VALUES(" + number(n_ + 1) + "," + number(i) + ", hex(zeroblob(" +
               number(random_.below(300)) + ")))");
    const std::string old = number(n_ < 16 * kept_orders ? 0 : n_ - 16 * kept_orders);
    db_.must("DELETE FROM line WHERE o < " + old + "; DELETE FROM orders WHERE id < " + old);
  }
  void touch_all() {
    db_.must(
        "UPDATE account SET balance = balance + (id % 2) * 2 - 1, version = version + 1, "
        "pad = printf('%0900d', version + 1)");
    touched_ += accounts;
  }
  void with_savepoint() {
    transfer();
    db_.must("SAVEPOINT s");
    const std::uint64_t touched = touched_;
    touch_all();
    db_.must("DELETE FROM line");
    db_.must("ROLLBACK TO s; RELEASE s");
    touched_ = touched;
    transfer();
  }
  void roll_back() {
    db_.must(
        "BEGIN IMMEDIATE; DELETE FROM orders; UPDATE account SET balance = 7, pad = zeroblob(3000);"
        "UPDATE progress SET n = 0; ROLLBACK");
  }

  connection& db_;
  base::rng random_;
  std::uint64_t n_ = 0, touched_ = 0;
  bool durable_ = true;
};

// Reads until the process ends. What it reads may not change within a transaction.
void read_for_ever(const std::string& uri, const word_sender& send) try {
  connection db(uri);
  for (std::int64_t last = 0;;) {
    db.must("BEGIN");
    const std::int64_t n = db.number("SELECT n FROM progress");
    const std::string wrong = db.text(invariants);
    if (!wrong.empty() || n < last || db.number("SELECT n FROM progress") != n ||
        db.text(invariants) != wrong) {
      std::fprintf(stderr, "a reader: %s; commit %ld after %ld\n", wrong.c_str(), n, last);
      send(wrong_word);
    }
    db.must("COMMIT");
    last = n;
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "a reader: %s\n", e.what());
  send(wrong_word);
}

class trial {
 public:
  explicit trial(const std::string& parameters, bool ordered = false)
      : uri_(uri_of(dir_.file("db"), parameters)), ordered_(ordered) {
    connection db(uri_);
    db.must("PRAGMA auto_vacuum=INCREMENTAL");
    db.must(start);
  }

  // Returns what is wrong; empty: nothing.
  std::string kill(base::rng& random) {
    const std::uint64_t seed = random();
    std::uint64_t durable = acknowledged_, newest = acknowledged_;
    bool wrong = false;
    {
      child process([&](const word_sender& send) {
        std::vector<std::jthread> all;
        for (unsigned r = 0; r < readers; ++r) all.emplace_back(read_for_ever, uri_, send);
        try {
          connection db(uri_);
          writer w(db, seed);
          for (std::uint64_t n = 1;; ++n) {
            const bool is_durable = !ordered_ || n % 10 == 0;
            send(w.commit(is_durable) << 1 | std::uint64_t{is_durable});
          }
        } catch (const std::exception& e) {
          std::fprintf(stderr, "the writer: %s\n", e.what());
          send(wrong_word);
          ::_exit(2);  // the readers do not end
        }
      });
      const auto take = [&](std::uint64_t word) {
        if (word == wrong_word) {
          wrong = true;
          return;
        }
        newest = word >> 1;
        if ((word & 1) != 0) durable = newest;
      };
      std::uint64_t word;
      if (random.below(4) != 0)
        for (std::uint64_t wait = 1 + random.below(60); wait != 0 && process.receive(word); --wait)
          take(word);
      ::usleep(static_cast<useconds_t>(random.below(20000)));
      ::kill(process.pid(), SIGKILL);
      while (process.receive(word)) take(word);
      process.wait();
    }
    if (wrong) return "a reader or the writer failed; see above";
    commits_ += newest - acknowledged_;
    return look(durable, newest);
  }

  std::uint64_t commits() const { return commits_; }
  std::uint64_t lost() const { return lost_; }  // ordered ones

 private:
  std::string look(std::uint64_t durable, std::uint64_t newest) try {
    connection db(uri_);
    const auto found = static_cast<std::uint64_t>(db.number("SELECT n FROM progress"));
    if (found < durable || found > newest + 1)
      return number(found) + " commits were found, " + number(newest) +
             " had been acknowledged, of these durable " + number(durable);
    lost_ += newest - std::min(found, newest);
    acknowledged_ = found;
    if (const auto wrong = db.text(invariants); !wrong.empty()) return wrong;
    if (const auto told = db.text("PRAGMA integrity_check"); told != "ok") return told;
    const auto told = db.text("PRAGMA stele_check");
    return told == "ok" ? "" : told;
  } catch (const std::exception& e) {
    return e.what();
  }

  scratch_directory dir_;
  std::string uri_;
  const bool ordered_;
  std::uint64_t acknowledged_ = 0, commits_ = 0, lost_ = 0;
};

TEST(sqlite_killed_writer, that_skips_changed_lines_is_found_out) {
  base::rng random(seed_from("STELE_SEED"));
  trial t("size=4M&media=process");
  base::planted_mutant = base::mutant::sqlite_line_skipped;
  std::string wrong;
  for (int k = 0; k < 20 && wrong.empty(); ++k) wrong = t.kill(random);
  base::planted_mutant = base::mutant::none;
  EXPECT_NE(wrong, "");
}

const std::string ordered = "ordered, ";
const std::vector<std::string> settings = {
    "size=4M&media=process",
    "size=4M&mechanism=redo&media=adr",
    "size=4M&mechanism=undo&media=process",
    "size=4M&media=file",
    ordered + "size=4M&media=file",
    ordered + "size=4M&media=file&mechanism=redo",
    "size=16M&mechanism=archapt-redo&media=process",
};

class sqlite_killed_writers : public ::testing::TestWithParam<std::string> {};

TEST_P(sqlite_killed_writers, loses_nothing_acknowledged_and_leaves_no_half) {
  const std::uint64_t seed = seed_from("STELE_SEED"),
                      kills = (count_from("STELE_SQLITE_KILLS", 60) + settings.size() - 1) /
                              settings.size();
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  const bool is_ordered = GetParam().starts_with(ordered);
  trial t(GetParam().substr(is_ordered ? ordered.size() : 0), is_ordered);
  for (std::uint64_t k = 1; k <= kills; ++k) {
    const std::string wrong = t.kill(random);
    ASSERT_TRUE(wrong.empty()) << "after " << k << " kills: " << wrong;
  }
  std::printf("  %s: %lu kills, %lu commits, of these %lu ordered ones lost; STELE_SEED=%lu\n",
              GetParam().c_str(), kills, t.commits(), t.lost(), seed);
}

INSTANTIATE_TEST_SUITE_P(all, sqlite_killed_writers, ::testing::ValuesIn(settings),
                         [](const auto& one) {
                           std::string name = one.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace stele::testing
