// SQLite on a pool beside SQLite on its own files, statement by statement: two_worlds.h,
// random_statements.h. What may differ is in differences.txt, a line and a reason each.
//
// STELE_SQLITE_STEPS sets the number of steps of all settings together, STELE_SEED other choices. A
// failure prints what repeats it, its step and the steps before it. STELE_SQLITE_TRACE prints every
// step.
#include <explore/planted.h>
#include <tests/budget.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/random_statements.h>
#include <tests/sqlite/two_worlds.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <regex>

namespace stele::testing {
namespace {

// A difference that is meant: of statements that match, with these codes.
struct difference {
  std::regex statement;
  std::string stock, pool;  // codes; *: any
};

std::vector<difference> read_differences() {
  std::vector<difference> all;
  std::ifstream in(STELE_SOURCE_DIR "/tests/sqlite/differences.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t one = line.find('\t'), two = line.find('\t', one + 1),
                      three = line.find('\t', two + 1);
    all.push_back({std::regex(line.substr(0, one)), line.substr(one + 1, two - one - 1),
                   line.substr(two + 1, three - two - 1)});
  }
  return all;
}

bool is_meant(const std::string& what, const answer& stock, const answer& pool) {
  static const std::vector<difference> known = read_differences();
  return std::ranges::any_of(known, [&](const difference& d) {
    return (d.stock == "*" || d.stock == std::to_string(stock.code)) &&
           (d.pool == "*" || d.pool == std::to_string(pool.code)) &&
           std::regex_search(what, d.statement);
  });
}

struct setting {
  const char *name, *parameters, *journal_mode;
  std::size_t sessions;
};
constexpr setting settings[] = {
    {"wal_memory", "media=process&size=8M", "wal", 3},
    {"wal_file", "media=file&size=8M&pending=16K", "wal", 3},
    {"wal_early", "media=process&size=8M&pending=16K&mechanism=undo", "wal", 2},
    {"delete_memory", "media=process&size=8M&pending=16K", "delete", 1},
    {"delete_redo", "media=adr&size=8M&mechanism=redo", "delete", 1},
};

std::vector<setting> known_settings() {
  std::vector<setting> known(std::begin(settings), std::end(settings));
  std::erase_if(known, [](const setting& s) { return !has_mechanism_of(s.parameters); });
  return known;
}

class beside_stock : public ::testing::TestWithParam<setting> {};

class comparison {
 public:
  comparison(const setting& s, std::uint64_t seed)
      : work_(base::mix(seed)),
        page_size_(512u << work_.below(5)),
        auto_vacuum_(static_cast<unsigned>(work_.below(3))),
        setting_(s) {
    make_stock_files();
    stock_.emplace("file:" + dir_.file("main.db") + "?vfs=unix",
                   "file:" + dir_.file("two.db") + "?vfs=unix", s.sessions);
    pool_.emplace(uri_of(dir_.file("pool"), s.parameters),
                  uri_of(dir_.file("pool"), s.parameters + std::string("&database=two")),
                  s.sessions);
    for (const std::string schema : {"main", "two"})
      must_agree(0, random_statements::start(schema, page_size_, auto_vacuum_));
  }

  // Returns what differs; empty: nothing.
  std::string step() {
    const std::size_t n = work_.below(setting_.sessions);
    switch (work_.below(64)) {
      case 0:
        return both("reopen", n, [n](world& w) { return w.reopen(n), answer{}; });
      case 1:
        if (!work_.one_in(4)) break;
        return both("reopen all", n, [](world& w) { return w.reopen_all(), answer{}; });
      case 2:
      case 3:
        return run(n, work_.spill());
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        return run(n, work_.schema_change());
      case 9:
        return run(n, work_.one_in(6) ? "VACUUM " + work_.schema() : work_.setting());
      case 10:
      case 11:
      case 12:
      case 13:
        return run(n, work_.setting());
      case 14:
      case 15:
      case 16: {
        const std::string sql = work_.question();
        return both("cursor " + sql, n, [&](world& w) { return w.at(n).open_cursor(sql); });
      }
      case 17:
      case 18:
      case 19:
      case 20:
      case 21: {
        const auto rows = static_cast<unsigned>(1 + work_.below(6));
        return both("step", n, [&](world& w) { return w.at(n).step(rows); });
      }
      case 22:
        return both("close cursor", n, [n](world& w) { return w.at(n).close_cursor(), answer{}; });
      case 23: {
        const std::string schema = work_.schema();
        const int pages = static_cast<int>(work_.below(30)) - 1;
        return both("copy " + schema, n, [&](world& w) { return w.at(n).copy(schema, pages); });
      }
      case 24:
        return both("end copy", n, [n](world& w) { return w.at(n).end_copy(), answer{}; });
      case 25: {
        const std::string schema = work_.schema();
        const auto row = static_cast<std::int64_t>(work_.below(30));
        const int at = static_cast<int>(work_.below(2000));
        return both("blob " + schema, n,
                    [&](world& w) { return w.at(n).write_blob(schema, row, at, "written"); });
      }
      default:
        break;
    }
    return run(n, work_.one_in(3)   ? work_.boundary()
                  : work_.one_in(3) ? work_.question()
                                    : work_.change());
  }

  // Of what is committed.
  std::string compare_content() {
    const std::string stock = stock_->content(), pool = pool_->content();
    if (stock == pool) return "";
    const auto at =
        static_cast<std::size_t>(std::ranges::mismatch(stock, pool).in1 - stock.begin());
    const std::size_t from = at - std::min<std::size_t>(at, 60);
    return fmt::format("the contents differ from byte {} on: stock has '{}', the pool '{}'", at,
                       stock.substr(from, 200), pool.substr(from, 200));
  }
  std::string history() const {
    std::string all;
    for (const std::string& one : history_) all += "  " + one + "\n";
    return all;
  }

 private:
  void make_stock_files() {
    for (const char* const file : {"main.db", "two.db"})
      sqlite_connection(dir_.file(file))
          .must(fmt::format("PRAGMA page_size={}; PRAGMA auto_vacuum={}; PRAGMA journal_mode={}",
                            page_size_, auto_vacuum_, setting_.journal_mode));
  }
  void must_agree(std::size_t n, const std::string& sql) {
    if (const std::string wrong = run(n, sql); !wrong.empty()) throw std::runtime_error(wrong);
  }
  std::string run(std::size_t n, const std::string& sql) {
    return both(sql, n, [&](world& w) { return w.at(n).run(sql); });
  }
  template <class Call>
  std::string both(const std::string& what, std::size_t n, Call&& call) {
    const answer stock = call(*stock_), pool = call(*pool_);
    history_.push_back(
        fmt::format("{}: {} -> {} {}", n, what, stock.code, stock.rows.substr(0, 40)));
    if (std::getenv("STELE_SQLITE_TRACE") != nullptr) std::puts(history_.back().c_str());
    if (history_.size() > 40) history_.pop_front();
    if (stock == pool || is_meant(what, stock, pool)) return "";
    return fmt::format("connection {}: {}\nstock: {} {}\npool:  {} {}\n{}", n, what, stock.code,
                       stock.rows.substr(0, 400), pool.code, pool.rows.substr(0, 400),
                       sqlite3_errmsg(pool_->at(n).handle()));
  }

  random_statements work_;
  const unsigned page_size_, auto_vacuum_;
  const setting& setting_;
  scratch_directory dir_;
  std::optional<world> stock_, pool_;
  std::deque<std::string> history_;
};

constexpr std::uint64_t steps_of_a_run = 1500, steps_of_a_comparison = 100;

// What is wrong in a run of so many steps, and how to repeat it; empty: nothing.
std::string run(const setting& s, std::uint64_t seed, std::uint64_t steps) {
  comparison c(s, seed);
  for (std::uint64_t n = 1; n <= steps; ++n) {
    std::string wrong = c.step();
    if (wrong.empty() && n % steps_of_a_comparison == 0) wrong = c.compare_content();
    if (!wrong.empty())
      return fmt::format("{}\nSTELE_SEED={} STELE_SQLITE_STEPS={}, step {} of {}; before it:\n{}",
                         wrong, seed, std::size(settings) * n, n, s.name, c.history());
  }
  return "";
}

TEST_P(beside_stock, gives_the_same_answers) {
  const std::uint64_t seed = budget::count_from("STELE_SEED", 1),
                      steps = budget::count_from("STELE_SQLITE_STEPS", 90000) / std::size(settings);
  std::uint64_t done = 0;
  for (std::uint64_t k = 0; done < steps; ++k) {
    const std::uint64_t now = std::min(steps_of_a_run, steps - done);
    ASSERT_EQ(run(GetParam(), seed + k, now), "");
    done += now;
  }
  std::printf("  %s: %lu steps, STELE_SEED=%lu\n", GetParam().name, done, seed);
}

// Whether it can tell.
TEST(beside_stock_finds, planted_bugs) {
  for (const base::mutant bug : {base::mutant::sqlite_line_skipped, base::mutant::sqlite_cache_kept,
                                 base::mutant::sqlite_reader_forgotten}) {
    explore::plan with_bug;
    with_bug.mutant = bug;
    const explore::planted_bugs planted(with_bug);
    std::string wrong;
    for (std::uint64_t seed = 1; seed <= 5 && wrong.empty(); ++seed) try {
        wrong = run(settings[0], seed, steps_of_a_run);
      } catch (const std::exception& e) {
        wrong = e.what();
      }
    EXPECT_NE(wrong, "") << "mutant " << static_cast<int>(bug);
  }
}

INSTANTIATE_TEST_SUITE_P(all, beside_stock, ::testing::ValuesIn(known_settings()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace stele::testing
