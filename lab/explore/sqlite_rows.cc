// The workloads `sqlite` and `sqlite-512`: see sqlite_rows.h.
#include <base/check.h>
#include <explore/sqlite_rows.h>
#include <fmt/format.h>
#include <workloads/on_sqlite.h>
#include <workloads/value.h>

#include <array>
#include <map>

namespace stele::explore {

namespace {

using namespace workloads;
using kind_of = operation::kind;

constexpr std::array<const char*, 2> schemas = {"main", "two"};
constexpr std::uint64_t first_rows = 4, many_rows = 8;

// What an operation does, as one transaction of SQLite; `a` is a row, `b` the seed of its value:
//   put, insert: the row of the first database, of the second;  erase: it goes from both
//   swap: the rows of both databases change places;  append: rows from `a` on get values, in both
//   read_modify: the row gets a value after a savepoint that changed much was rolled back
//   toggle: the upper half of the rows goes from both; or both databases are vacuumed
bool vacuums(const operation& op) {
  return op.b % 2 != 0;
}

class values {
 public:
  explicit values(std::size_t size) : size_(size) {}
  std::span<const std::byte> of(std::uint64_t seed) {
    bytes_.resize(size_ + seed % size_);
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::byte>(base::mix(seed + i / 8) >> i % 8 * 8);
    return bytes_;
  }

 private:
  std::size_t size_;
  std::vector<std::byte> bytes_;
};

std::uint64_t digest_of(std::size_t database, std::uint64_t row, const void* value,
                        std::size_t size) {
  return digest_item(schemas.size() * row + database, value, size);
}

class rows_model final : public model {
 public:
  explicit rows_model(const parameters& p) : keys_(p.keys), value_size_(p.value_size) {
    for (auto& rows : databases_)
      for (std::uint64_t row = 0; row < first_rows; ++row) rows[row] = row;
  }

  void apply(const operation& op) override {
    auto& [one, two] = databases_;
    if (op.what == kind_of::put || op.what == kind_of::read_modify) one[op.a] = op.b;
    if (op.what == kind_of::insert) two[op.a] = op.b;
    if (op.what == kind_of::swap) {
      auto from = one.extract(op.a), to = two.extract(op.a);
      one.insert(std::move(to)), two.insert(std::move(from));
    }
    for (auto& rows : databases_) {
      if (op.what == kind_of::erase) rows.erase(op.a);
      if (op.what == kind_of::append)
        for (std::uint64_t i = 0; i < many_rows; ++i) rows[op.a + i] = op.b + i;
      if (op.what == kind_of::toggle && !vacuums(op))
        rows.erase(rows.lower_bound(keys_ / 2), rows.end());
    }
  }

  std::uint64_t digest() const override {
    values v(value_size_);
    std::uint64_t sum = 0;
    for (std::size_t d = 0; d < databases_.size(); ++d)
      for (const auto& [row, seed] : databases_[d]) {
        const auto bytes = v.of(seed);
        sum += digest_of(d, row, bytes.data(), bytes.size());
      }
    return sum;
  }

 private:
  std::uint64_t keys_;
  std::size_t value_size_;
  std::array<std::map<std::uint64_t, std::uint64_t>, schemas.size()> databases_;
};

class sqlite_rows final : public workload_on_sqlite {
 public:
  sqlite_rows(const parameters& p, unsigned page_size)
      : keys_(p.keys), params_(p), page_size_(page_size) {}

  std::string_view name() const override { return page_size_ == 512 ? "sqlite-512" : "sqlite"; }

  void attach(detail::pool_handle handle) override {
    workload_on_sqlite::attach(std::move(handle));
    const std::string database = uri() + "&pending=8K&database=";
    const int code =
        ::sqlite3_open_v2((database + "main").c_str(), &db_,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr);
    result<> done = code == SQLITE_OK
                        ? run("ATTACH '" + database +
                              "two' AS two; PRAGMA cache_size=10; PRAGMA two.cache_size=10")
                        : problem(code, "open");
    is_durable_ = true;
    if (!done) {
      detach();
      throw failure(done.error());
    }
  }
  void detach() override {
    ::sqlite3_close(std::exchange(db_, nullptr));
    workload_on_sqlite::detach();
  }

  result<> set_up() override {
    for (const char* schema : schemas) {
      auto done =
          run(fmt::format("PRAGMA {0}.page_size={1}; PRAGMA {0}.auto_vacuum=FULL;"
                          "CREATE TABLE {0}.item(row INTEGER PRIMARY KEY, value BLOB)",
                          schema, page_size_));
      for (std::uint64_t row = 0; row < first_rows && done; ++row) done = put(schema, row, row);
      if (!done) return done;
    }
    return {};
  }

  operation draw(base::rng& random) const override {
    constexpr kind_of kinds[] = {kind_of::put,    kind_of::put,    kind_of::insert,
                                 kind_of::swap,   kind_of::swap,   kind_of::erase,
                                 kind_of::append, kind_of::toggle, kind_of::read_modify};
    return {kinds[random.below(std::size(kinds))], random.below(keys_), random()};
  }

  result<> apply(std::span<const operation> operations) override {
    if (const bool durable = commit_durability() == durability::durable; durable != is_durable_) {
      const char* const level = durable ? "FULL" : "NORMAL";
      if (auto done = run(fmt::format("PRAGMA synchronous={0}; PRAGMA two.synchronous={0}", level));
          !done)
        return done;
      is_durable_ = durable;
    }
    for (const operation& op : operations) {
      if (only_reads(op)) continue;
      auto done = op.what == kind_of::toggle && vacuums(op) ? run("VACUUM main; VACUUM two")
                                                            : run_transaction(op);
      if (!done) return done;
    }
    return {};
  }

  result<std::uint64_t> digest() override {
    std::uint64_t sum = 0;
    for (std::size_t d = 0; d < schemas.size(); ++d) {
      std::string told;
      auto done =
          each_row(fmt::format("PRAGMA {}.integrity_check", schemas[d]), [&](sqlite3_stmt* s) {
            told += reinterpret_cast<const char*>(::sqlite3_column_text(s, 0));
          });
      if (done && told != "ok")
        return base::fail(errc::corrupt, "PRAGMA integrity_check says: " + told);
      if (done)
        done = each_row(
            fmt::format("SELECT row, value FROM {}.item", schemas[d]), [&](sqlite3_stmt* s) {
              sum += digest_of(d, static_cast<std::uint64_t>(::sqlite3_column_int64(s, 0)),
                               ::sqlite3_column_blob(s, 1),
                               static_cast<std::size_t>(::sqlite3_column_bytes(s, 1)));
            });
      if (!done) return std::unexpected(done.error());
    }
    return sum;
  }

  std::unique_ptr<model> make_model() const override {
    return std::make_unique<rows_model>(params_);
  }

 private:
  std::unexpected<error> problem(int code, std::string_view at) const {
    return base::fail((code & 0xff) == SQLITE_FULL ? errc::full : errc::corrupt,
                      fmt::format("SQLite says {} ({}) at: {}; {}", ::sqlite3_errmsg(db_), code, at,
                                  sqlite::last_report()));
  }
  result<> run(const std::string& sql) {
    const int code = ::sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return problem(code, sql);
    return {};
  }
  template <class Row>
  result<> each_row(const std::string& sql, Row&& row) {
    sqlite3_stmt* s = nullptr;
    int code = ::sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr);
    while (code == SQLITE_OK && (code = ::sqlite3_step(s)) == SQLITE_ROW) {
      row(s);
      code = SQLITE_OK;
    }
    result<> done;
    if (code != SQLITE_DONE) done = problem(code, sql);
    ::sqlite3_finalize(s);
    return done;
  }
  result<> put(const char* schema, std::uint64_t row, std::uint64_t seed) {
    sqlite3_stmt* s = nullptr;
    const std::string sql = fmt::format("INSERT OR REPLACE INTO {}.item VALUES(?, ?)", schema);
    int code = ::sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr);
    if (code == SQLITE_OK) {
      values v(params_.value_size);
      const auto bytes = v.of(seed);
      ::sqlite3_bind_int64(s, 1, static_cast<sqlite3_int64>(row));
      ::sqlite3_bind_blob(s, 2, bytes.data(), static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
      code = ::sqlite3_step(s);
    }
    result<> done;
    if (code != SQLITE_DONE) done = problem(code, sql);
    ::sqlite3_finalize(s);
    return done;
  }

  result<> run_transaction(const operation& op) {
    auto done = run("BEGIN IMMEDIATE");
    if (done) done = run_in_transaction(op);
    if (done) done = run("COMMIT");
    if (!done && ::sqlite3_get_autocommit(db_) == 0)
      if (auto back = run("ROLLBACK"); !back) return back;
    return done;
  }
  result<> run_in_transaction(const operation& op) {
    switch (op.what) {
      case kind_of::put:
        return put("main", op.a, op.b);
      case kind_of::insert:
        return put("two", op.a, op.b);
      case kind_of::swap:
        return run(
            fmt::format("CREATE TEMP TABLE kept AS SELECT * FROM main.item WHERE row = {0};"
                        "DELETE FROM main.item WHERE row = {0};"
                        "INSERT INTO main.item SELECT * FROM two.item WHERE row = {0};"
                        "DELETE FROM two.item WHERE row = {0};"
                        "INSERT INTO two.item SELECT * FROM kept; DROP TABLE kept",
                        op.a));
      case kind_of::erase:
        return run(fmt::format(
            "DELETE FROM main.item WHERE row = {0}; DELETE FROM two.item WHERE row = {0}", op.a));
      case kind_of::append:
        for (std::uint64_t i = 0; i < many_rows; ++i)
          for (const char* schema : schemas)
            if (auto done = put(schema, op.a + i, op.b + i); !done) return done;
        return {};
      case kind_of::read_modify:
        if (auto done = run(
                "SAVEPOINT s; UPDATE main.item SET value = zeroblob(2000); DELETE FROM two.item;"
                "ROLLBACK TO s; RELEASE s");
            !done)
          return done;
        return put("main", op.a, op.b);
      default:
        return run(fmt::format(
            "DELETE FROM main.item WHERE row >= {0}; DELETE FROM two.item WHERE row >= {0}",
            keys_ / 2));
    }
  }

  const std::uint64_t keys_;
  const parameters params_;
  const unsigned page_size_;
  sqlite3* db_ = nullptr;
  bool is_durable_ = true;
};

}  // namespace

std::unique_ptr<workloads::workload> make_sqlite_rows(const workloads::parameters& p,
                                                      unsigned page_size) {
  return std::make_unique<sqlite_rows>(p, page_size);
}

}  // namespace stele::explore
