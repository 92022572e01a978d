// Random work for one connection to SQLite: statements, open cursors, copies, blobs. What it draws
// depends on the seed alone, so the same work can be done on two databases and compared.
//
// Tables are few and small, so that statements meet: `a` (index, default rowid), `b` (WITHOUT
// ROWID, unique), `c` (large values), each in main and in two, and temporary ones.
#pragma once

#include <base/rng.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stele::testing {

class random_statements {
 public:
  explicit random_statements(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_.below(n); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  // What both schemas have before anything else; `page_size` and `auto_vacuum` take effect in an
  // empty database.
  static std::string start(std::string_view schema, unsigned page_size, unsigned auto_vacuum) {
    return fmt::format(
        "PRAGMA {0}.page_size={1}; PRAGMA {0}.auto_vacuum={2};"
        "CREATE TABLE {0}.a(id INTEGER PRIMARY KEY, k INT, v);"
        "CREATE INDEX {0}.a_by_k ON a(k, v);"
        "CREATE TABLE {0}.b(k TEXT PRIMARY KEY, n INT UNIQUE, v) WITHOUT ROWID;"
        "CREATE TABLE {0}.c(id INTEGER PRIMARY KEY, v BLOB);"
        "CREATE TRIGGER {0}.a_deleted AFTER DELETE ON a BEGIN"
        " INSERT INTO c(v) VALUES(old.v); DELETE FROM c WHERE id < (SELECT max(id) FROM c) - 20; "
        "END;",
        schema, page_size, auto_vacuum);
  }

  std::string change() {
    const std::string s = schema(), k = number(40), v = value();
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
        return fmt::format("INSERT INTO {}.a(k, v) VALUES({}, {})", s, k, v);
      case 3:
        return fmt::format("INSERT OR {} INTO {}.a VALUES({}, {}, {})", conflict(), s, number(60),
                           k, v);
      case 4:
        return fmt::format("UPDATE {}.a SET v = {} WHERE k = {}", s, v, k);
      case 5:
        return fmt::format("UPDATE {}.a SET k = k + 1 WHERE id % {} = 0", s, 1 + below(7));
      case 6:
        return fmt::format("DELETE FROM {}.a WHERE k = {}", s, k);
      case 7:
        return fmt::format("DELETE FROM {}.a WHERE id % {} = {}", s, 2 + below(5), below(5));
      case 8:
      case 9:
        return fmt::format(
            "INSERT INTO {}.b VALUES('{}', {}, {}) ON CONFLICT(k) DO UPDATE SET n = n + 100, v = "
            "excluded.v",
            s, text(30), number(50), v);
      case 10:
        return fmt::format("INSERT OR {} INTO {}.b VALUES('{}', {}, {})", conflict(), s, text(30),
                           number(50), v);
      case 11:
        return fmt::format("DELETE FROM {}.b WHERE k >= '{}'", s, text(30));
      case 12:
        return fmt::format("UPDATE OR {} {}.b SET n = n + {}", conflict(), s, 1 + below(3));
      case 13:
        return fmt::format("INSERT INTO {}.c(v) VALUES({})", s, large());
      case 14:
        return fmt::format("UPDATE {}.c SET v = {} WHERE id % {} = 0", s, large(), 1 + below(9));
      case 15:
        return fmt::format("DELETE FROM {}.c WHERE id % {} = 0", s, 1 + below(6));
      case 16:
        return fmt::format("INSERT INTO {}.a(k, v) SELECT k + 1, v FROM {}.a ORDER BY id LIMIT {}",
                           s, schema(), below(30));
      case 17:
        return fmt::format("INSERT OR IGNORE INTO {}.b SELECT k || 'x', n + 7, v FROM {}.b", s,
                           schema());
      case 18:
        return fmt::format("UPDATE {}.a SET v = (SELECT v FROM {}.b LIMIT 1) WHERE k < {}", s,
                           schema(), below(10));
      default:
        return fmt::format("DELETE FROM {}.a WHERE id > {}", s, below(200));
    }
  }
  std::string question() {
    const std::string s = schema();
    switch (below(9)) {
      case 0:
        return fmt::format("SELECT * FROM {}.a WHERE k = {}", s, number(40));
      case 1:
        return fmt::format("SELECT count(*), sum(k), max(id) FROM {}.a", s);
      case 2:
        return fmt::format("SELECT k, n, length(v) FROM {}.b ORDER BY n DESC", s);
      case 3:
        return fmt::format("SELECT id, length(v), substr(hex(v), 1, 20) FROM {}.c", s);
      case 4:
        return fmt::format("SELECT a.id, b.k FROM {}.a a JOIN {}.b b ON a.k = b.n", s, schema());
      case 5:
        return "SELECT changes(), total_changes(), last_insert_rowid()";
      case 6:
        return fmt::format("SELECT type, name, tbl_name, sql FROM {}.sqlite_schema", s);
      case 7:
        return fmt::format("SELECT * FROM {}.b WHERE k > '{}'", s, text(30));
      default:
        return fmt::format("SELECT count(*), sum(length(v)) FROM {}.c", s);
    }
  }
  std::string schema_change() {
    const std::string s = schema(), n = std::to_string(below(3));
    constexpr std::array forms = {
        "CREATE TABLE {0}.t{1}(x, y DEFAULT 5)",
        "CREATE TABLE IF NOT EXISTS {0}.t{1} AS SELECT * FROM {0}.a",
        "DROP TABLE IF EXISTS {0}.t{1}",
        "INSERT INTO {0}.t{1}(x) SELECT v FROM {0}.a",
        "CREATE INDEX {0}.i{1} ON a(v)",
        "DROP INDEX IF EXISTS {0}.i{1}",
        "ALTER TABLE {0}.t{1} ADD COLUMN z",
        "ALTER TABLE {0}.t{1} RENAME TO u{1}",
        "CREATE TEMP TABLE IF NOT EXISTS temp{1} AS SELECT * FROM {0}.b",
        "INSERT INTO temp{1} SELECT * FROM {0}.b",
        "DROP TABLE temp{1}",
        "REINDEX {0}.a",
        "ANALYZE {0}.a",
        "DROP TABLE IF EXISTS {0}.u{1}",
    };
    return fmt::format(fmt::runtime(forms[below(forms.size())]), s, n);
  }
  std::string setting() {
    const std::string s = schema();
    constexpr std::array forms = {"PRAGMA {0}.user_version={1}",
                                  "PRAGMA {0}.user_version",
                                  "PRAGMA {0}.application_id={1}",
                                  "PRAGMA {0}.cache_size={1}",
                                  "PRAGMA {0}.synchronous=OFF",
                                  "PRAGMA {0}.synchronous=NORMAL",
                                  "PRAGMA {0}.synchronous=FULL",
                                  "PRAGMA {0}.page_count",
                                  "PRAGMA {0}.freelist_count",
                                  "PRAGMA {0}.incremental_vacuum({1})",
                                  "PRAGMA {0}.integrity_check",
                                  "PRAGMA {0}.max_page_count=100000",
                                  "PRAGMA {0}.cache_spill={1}",
                                  "PRAGMA {0}.schema_version",
                                  "PRAGMA foreign_keys=ON",
                                  "PRAGMA secure_delete={1}",
                                  "PRAGMA shrink_memory",
                                  "PRAGMA {0}.quick_check",
                                  "PRAGMA encoding"};
    return fmt::format(fmt::runtime(forms[below(forms.size())]), s, 1 + below(12));
  }
  std::string boundary() {
    constexpr std::array forms = {
        "BEGIN",      "BEGIN",      "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT",
        "COMMIT",     "COMMIT",     "ROLLBACK",        "SAVEPOINT s1",    "SAVEPOINT s2",
        "RELEASE s1", "RELEASE s2", "ROLLBACK TO s1",  "ROLLBACK TO s2",  "END"};
    return forms[below(forms.size())];
  }
  // A change whose pages do not fit a small cache.
  std::string spill() {
    const std::string s = schema();
    return fmt::format(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0})"
        "INSERT INTO {1}.c(v) SELECT printf('%0*d', {2}, i) FROM n",
        5 + below(25), s, 200 + below(3000));
  }
  std::string schema() { return one_in(3) ? "two" : "main"; }

 private:
  std::string number(std::uint64_t most) {
    return one_in(20) ? "NULL" : std::to_string(below(most));
  }
  std::string text(std::uint64_t most) {
    return fmt::format("key {:0{}}", below(most), 1 + most % 4);
  }
  std::string value() {
    switch (below(6)) {
      case 0:
        return "NULL";
      case 1:
        return std::to_string(random_());
      case 2:
        return fmt::format("{}.5", below(1000));
      case 3:
        return fmt::format("x'{:016x}'", random_());
      default:
        return fmt::format("printf('%0*d', {}, {})", 1 + below(below(4) == 0 ? 900 : 40),
                           below(1000));
    }
  }
  std::string large() {
    const std::uint64_t size = one_in(8) ? 20000 + below(60000) : below(3000);
    return one_in(2) ? fmt::format("zeroblob({})", size)
                     : fmt::format("printf('%0*d', {}, {})", size, below(1000));
  }
  std::string_view conflict() {
    constexpr std::array all = {"REPLACE", "IGNORE", "ABORT", "FAIL", "ROLLBACK"};
    return all[below(all.size())];
  }

  base::rng random_;
};

}  // namespace stele::testing
