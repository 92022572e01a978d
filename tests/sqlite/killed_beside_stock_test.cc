// A process that writes to two databases of a pool is killed; what the next one finds is what
// SQLite's own files have after a prefix of the transactions, which holds every one that was
// acknowledged as durable. A reader in a third process sees such prefixes all the time.
//
// A transaction depends on its number and what the databases have, so SQLite's own files tell
// beforehand what they contain after each. The databases have different PRAGMA synchronous; a
// COMMIT is durable if one that it changes has FULL. STELE_SQLITE_KILLS sets the number of kills of
// all settings together; STELE_SEED repeats the transactions.
#include <signal.h>
#include <tests/budget.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/random_statements.h>
#include <tests/sqlite/two_worlds.h>

#include <functional>
#include <optional>

namespace stele::testing {
namespace {

constexpr std::uint64_t transactions = 160, wrong_word = ~std::uint64_t{0};
constexpr const char* levels[] = {"OFF", "NORMAL", "FULL"};

void start(session& s) {
  for (const std::string schema : {"main", "two"}) {
    s.run(random_statements::start(schema, 1024, 1));
    s.run("CREATE TABLE " + schema + ".progress(n); INSERT INTO " + schema + ".progress VALUES(0)");
    s.run("PRAGMA " + schema + ".cache_size=8");
  }
}

// Transaction number n, after a VACUUM that commits by itself or none; `between` is called between
// the two. True: its acknowledgement says that it is durable.
bool commit(
    session& s, std::uint64_t seed, std::uint64_t n, const std::function<void()>& between = [] {}) {
  random_statements work(base::mix(seed) ^ base::mix(n));
  const std::uint64_t main = work.below(3), two = work.below(3);
  s.run(
      fmt::format("PRAGMA cache_size=8; PRAGMA two.cache_size=8; PRAGMA main.synchronous={}; "
                  "PRAGMA two.synchronous={}",
                  levels[main], levels[two]));
  if (work.one_in(25)) s.run("VACUUM " + work.schema());
  between();
  for (bool is_committed = false; !is_committed;) {
    s.run("BEGIN IMMEDIATE");
    for (std::uint64_t left = work.below(6); left != 0; --left) {
      switch (work.below(12)) {
        case 0:
          s.run(work.spill());
          break;
        case 1:
          s.run(work.schema_change());
          break;
        case 2:
          s.run("SAVEPOINT s");
          s.run(work.spill());
          s.run(work.change());
          s.run("ROLLBACK TO s; RELEASE s");
          break;
        case 3:
          s.run("PRAGMA " + work.schema() + ".incremental_vacuum(5)");
          break;
        default:
          s.run(work.change());
      }
      if (sqlite3_get_autocommit(s.handle()) != 0) break;  // a conflict has rolled it back
    }
    if (sqlite3_get_autocommit(s.handle()) != 0) continue;
    const bool is_rolled_back = work.one_in(8);
    s.run(fmt::format("UPDATE main.progress SET n = {}", n));
    const bool changes_two = work.one_in(2);
    if (changes_two) s.run(fmt::format("UPDATE two.progress SET n = {}", n));
    is_committed = !is_rolled_back && s.run("COMMIT").code == SQLITE_OK;
    if (!is_committed) s.run("ROLLBACK");
    if (is_committed) return main == 2 || (changes_two && two == 2);
  }
  return false;
}

std::uint64_t number_in(session& s) {
  const answer a = s.run("SELECT n FROM main.progress");
  return a.rows.size() < 3 ? 0 : std::strtoull(a.rows.c_str() + 2, nullptr, 10);
}

struct contents {
  std::string main, two;
  bool operator==(const contents&) const = default;
};

class trial {
 public:
  trial(const std::string& parameters, std::uint64_t seed) : parameters_(parameters), seed_(seed) {
    session stock("file:" + dir_.file("main.db") + "?vfs=unix",
                  "file:" + dir_.file("two.db") + "?vfs=unix");
    start(stock);
    stock.run("PRAGMA main.journal_mode=memory; PRAGMA two.journal_mode=memory");
    const auto now = [&] { return contents{content_of(stock, "main"), content_of(stock, "two")}; };
    after_.push_back({now()});
    for (std::uint64_t n = 1; n <= transactions; ++n) {
      commit(stock, seed_, n, [&] {
        if (contents vacuumed = now(); vacuumed != after_.back()[0])
          after_.back().push_back(std::move(vacuumed));
      });
      after_.push_back({now()});
    }
    session pool(uri("main"), uri("two"));
    start(pool);
    pool.run("PRAGMA synchronous=FULL; UPDATE main.progress SET n = 0");
  }
  bool is_done() const { return found_ == transactions; }
  std::uint64_t found() const { return found_; }

  // Returns what is wrong; empty: nothing.
  std::string kill(base::rng& random) {
    child reader([&](const word_sender& send) { read_on(send); });
    std::uint64_t durable = found_, newest = found_, word = 0;
    child writer([&](const word_sender& send) {
      session s(uri("main"), uri("two"));
      for (std::uint64_t n = found_ + 1; n <= transactions; ++n)
        send(n << 1 | std::uint64_t{commit(s, seed_, n)});
    });
    const auto take = [&] {
      newest = word >> 1;
      if ((word & 1) != 0) durable = newest;
    };
    for (std::uint64_t wait = random.below(30); wait != 0 && writer.receive(word); --wait) take();
    ::usleep(static_cast<useconds_t>(random.below(15000)));
    ::kill(writer.pid(), SIGKILL);
    while (writer.receive(word)) take();
    writer.wait();
    ::kill(reader.pid(), SIGKILL);
    if (reader.receive(word)) return "a reader in another process saw what no prefix has";
    reader.wait();
    return look(durable, newest);
  }

 private:
  std::string uri(const std::string& database, const std::string& mode = "rwc") const {
    return uri_of(dir_.file("pool"), parameters_ + "&mode=" + mode + "&database=" + database);
  }
  // Of one database: each has a version of its own there.
  void read_on(const word_sender& send) const {
    for (;;) {
      session s(uri("main", "ro"), uri("two", "ro"));
      for (int i = 0; i < 20 && s.opened() == SQLITE_OK; ++i) {
        s.run("BEGIN");
        const std::uint64_t n = number_in(s);
        bool is_whole = false;
        const std::string seen = content_of(s, "main", &is_whole);
        s.run("ROLLBACK");
        is_whole &= number_in(s) == n;  // else a page was asked for after a commit
        if (is_whole && std::ranges::find(after_[n], seen, &contents::main) == after_[n].end()) {
          std::fprintf(stderr, "a reader, after %lu transactions: %s\n", n,
                       difference(after_[n][0].main, seen).c_str());
          send(n);
          return;
        }
      }
    }
  }
  static std::string difference(const std::string& expected, const std::string& found) {
    const auto at =
        static_cast<std::size_t>(std::ranges::mismatch(expected, found).in1 - expected.begin());
    const std::size_t from = at - std::min<std::size_t>(at, 60);
    return fmt::format("'{}' is expected, and '{}' is found", expected.substr(from, 200),
                       found.substr(std::min(from, found.size()), 200));
  }
  std::string look(std::uint64_t durable, std::uint64_t newest) {
    session s(uri("main"), uri("two"));
    if (s.opened() != SQLITE_OK) return fmt::format("opening gives {}", s.opened());
    found_ = number_in(s);
    if (found_ < durable || found_ > newest + 1)
      return fmt::format("{} transactions are found; {} were acknowledged, durable until {}",
                         found_, newest, durable);
    const contents seen{content_of(s, "main"), content_of(s, "two")};
    if (std::ranges::find(after_[found_], seen) == after_[found_].end())
      return fmt::format("after {} transactions: {}; in two: {}", found_,
                         difference(after_[found_][0].main, seen.main),
                         difference(after_[found_][0].two, seen.two));
    return s.run("PRAGMA stele_check").rows == "3:ok\n" ? "" : "stele_check finds damage";
  }

  scratch_directory dir_;
  const std::string parameters_;
  const std::uint64_t seed_;
  // What the databases have after each transaction, and after the VACUUM that follows it.
  std::vector<std::vector<contents>> after_;
  std::uint64_t found_ = 0;
};

const std::vector<std::string> settings = {
    "size=4M&media=file",
    "size=4M&media=process",
    "size=4M&media=file&mechanism=undo&pending=16K",
    "size=4M&media=adr&mechanism=redo&pending=16K",
};

class killed_beside_stock : public ::testing::TestWithParam<std::string> {};

TEST_P(killed_beside_stock, finds_a_prefix_that_holds_what_is_durable) {
  const std::uint64_t seed = budget::count_from("STELE_SEED", 1),
                      kills = (budget::count_from("STELE_SQLITE_KILLS", 60) + settings.size() - 1) /
                              settings.size();
  base::rng random(seed);
  std::uint64_t committed = 0;
  std::optional<trial> t;
  for (std::uint64_t k = 0, runs = 0; k < kills; ++k) {
    if (!t || t->is_done()) t.emplace(GetParam(), seed + runs++);
    const std::uint64_t before = t->found();
    ASSERT_EQ(t->kill(random), "")
        << "STELE_SEED=" << seed << ", kill " << k + 1 << ", after " << before << " transactions";
    committed += t->found() - before;
  }
  std::printf("  %s: %lu kills, %lu commits; STELE_SEED=%lu\n", GetParam().c_str(), kills,
              committed, seed);
}

INSTANTIATE_TEST_SUITE_P(all, killed_beside_stock, ::testing::ValuesIn(settings),
                         [](const auto& one) {
                           std::string name = one.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace stele::testing
