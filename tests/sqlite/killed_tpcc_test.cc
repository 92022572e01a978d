// TPC-C on SQLite in a pool, beside SIGKILL: one thread runs the five transactions, four look at
// orders and stock. After each kill all acknowledged transactions are there, SQLite finds its
// database in order, and the specification's consistency conditions hold.
//
// STELE_TPCC_KILLS sets the number of kills of all settings together; STELE_SEED repeats the
// choices.
#include <bench/sqlite/sql_workload.h>
#include <stele/sqlite.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <thread>

namespace stele::testing {
namespace {

using bench::sql::operation;

constexpr workloads::parameters params{.value_size = 64, .keys = 1200};
constexpr unsigned readers = 4;
constexpr std::uint64_t failed_word = ~std::uint64_t{0};

class tpcc_trial {
 public:
  explicit tpcc_trial(const std::string& parameters) : uri_(uri_of(dir_.file("db"), parameters)) {
    stele_sqlite_register(0);
    must(content_->fill(*open()));
  }

  // Returns what is wrong; empty: nothing.
  std::string kill(base::rng& random) {
    const std::uint64_t seed = random();
    bool failed = false;
    {
      child process([&](const word_sender& send) { run(seed, send); });
      const auto take = [&](std::uint64_t word) {
        if (word == failed_word)
          failed = true;
        else
          acknowledged_ = word;
      };
      std::uint64_t word;
      for (std::uint64_t wait = random.below(200); wait != 0 && process.receive(word); --wait)
        take(word);
      ::usleep(static_cast<useconds_t>(random.below(5000)));
      ::kill(process.pid(), SIGKILL);
      while (process.receive(word)) take(word);
      process.wait();
    }
    return failed ? "a thread failed; see above" : look();
  }
  std::uint64_t acknowledged() const { return acknowledged_; }

 private:
  static void must(const result<>& done) {
    if (!done) throw std::runtime_error(done.error().message);
  }
  std::shared_ptr<bench::sql::connection> open() const {
    auto db = bench::sql::connection::open(uri_);
    if (!db) throw std::runtime_error(db.error().message);
    return std::move(*db);
  }
  // New orders and payments in the database.
  static std::uint64_t count(bench::sql::connection& db) {
    const auto told = db.text(
        "SELECT CAST((SELECT sum(d_next_o_id - 1) FROM district) + "
        "(SELECT count(*) FROM history) AS TEXT)");
    must(told ? result<>{} : std::unexpected(told.error()));
    return std::stoull(*told);
  }

  // In the child, until it is killed.
  void run(std::uint64_t seed, const word_sender& send) {
    std::vector<std::jthread> all;
    for (unsigned r = 0; r < readers; ++r)
      all.emplace_back([&, r] { run_thread(seed + 1 + r, true, send); });
    run_thread(seed, false, send);
  }
  void run_thread(std::uint64_t seed, bool reads, const word_sender& send) try {
    const auto db = open();
    const auto session = content_->make_session(db);
    base::rng random(seed);
    for (std::uint64_t done = reads ? 0 : count(*db);;) {
      const operation op = draws_->draw(random);
      if (reads && !workloads::only_reads(op)) continue;
      must(session->apply({&op, 1}));
      if (op.what == operation::kind::insert || op.what == operation::kind::put) send(++done);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", reads ? "a reader" : "the writer", e.what());
    send(failed_word);
  }

  std::string look() try {
    const auto db = open();
    const std::uint64_t found = count(*db);
    if (found < acknowledged_ || found > acknowledged_ + 1)
      return std::to_string(found) + " orders and payments were found, " +
             std::to_string(acknowledged_) + " had been acknowledged";
    acknowledged_ = found;
    must(content_->check(*db));
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }

  scratch_directory dir_;
  std::string uri_;
  std::unique_ptr<workloads::workload> draws_ = *workloads::make_workload("tpcc", params);
  std::unique_ptr<bench::sql::sql_workload> content_ =
      *bench::sql::make_sql_workload("tpcc", params);
  std::uint64_t acknowledged_ = 0;
};

const std::vector<std::string> settings = {"size=16M&media=process", "size=16M&media=file",
                                           "size=16M&media=adr&mechanism=undo"};

TEST(SQLiteTpcc, keeps_its_conditions_across_kills) {
  const std::uint64_t seed = seed_from("STELE_SEED"),
                      kills = (count_from("STELE_TPCC_KILLS", 24) + settings.size() - 1) /
                              settings.size();
  for (const std::string& setting : settings) {
    SCOPED_TRACE(setting + ", STELE_SEED=" + std::to_string(seed));
    base::rng random(seed);
    tpcc_trial t(setting);
    for (std::uint64_t k = 1; k <= kills; ++k) {
      const std::string wrong = t.kill(random);
      ASSERT_TRUE(wrong.empty()) << "after " << k << " kills: " << wrong;
    }
    std::printf("  %s: %lu kills, %lu orders and payments; STELE_SEED=%lu\n", setting.c_str(),
                kills, t.acknowledged(), seed);
    EXPECT_GT(t.acknowledged(), kills);
  }
}

}  // namespace
}  // namespace stele::testing
