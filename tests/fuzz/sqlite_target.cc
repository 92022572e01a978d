// SQLite databases in a pool whose content contradicts itself, with repaired checksums: read beside
// and by the pool's own process, changed, vacuumed, checked, copied, and opened again.
//
// Promises: an opening that is refused says why. SQLite's answers are rows or codes of damage, of
// room or of a limit, never that it was misused or that an exception came through. A pool that is
// sound stays so. The pages change as those of a copy in SQLite's memory, which is beside it.
#include <adapters/sqlite/file.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <stele/sqlite.h>
#include <tests/fuzz/target.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::fuzz {

namespace {

constexpr int most_value_bytes = 1 << 20, most_steps = 200'000;
constexpr const char* second = "a database whose name takes a block";

class connection {
 public:
  // `name`: a path, or a URI.
  connection(const std::string& name, int flags) {
    stele_sqlite_register(0);
    code_ = sqlite3_open_v2(name.c_str(), &db_, flags | SQLITE_OPEN_URI, nullptr);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, most_value_bytes);
    sqlite3_progress_handler(db_, most_steps, [](void*) { return 1; }, nullptr);
  }
  ~connection() { sqlite3_close(db_); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  sqlite3* handle() const { return db_; }
  int code() const { return code_; }  // of the opening
  int run(const std::string& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  // Of one row with one column; empty: an error, or none.
  std::string text(const std::string& sql) {
    std::string answer;
    const auto take = [](void* to, int, char** values, char**) {
      if (values[0] != nullptr) *static_cast<std::string*>(to) += values[0];
      return 0;
    };
    const int code = sqlite3_exec(db_, sql.c_str(), take, &answer, nullptr);
    return code == SQLITE_OK ? answer : "";
  }

 private:
  sqlite3* db_ = nullptr;
  int code_ = SQLITE_OK;
};

std::string uri_of(const std::string& path, const char* database) {
  return fmt::format("file:{}?vfs=stele&media=process&background=0&max_size=4M&database={}", path,
                     database);
}

// What an answer to damaged content may be.
std::string judged(const std::string& what, int code) {
  if (code == SQLITE_INTERNAL || code == SQLITE_MISUSE || code == SQLITE_NOMEM)
    return fmt::format("{} gives {}, {}", what, code, sqlite3_errstr(code));
  return "";
}
std::string judged_opening(const connection& c) {
  if (c.code() == SQLITE_OK) return "";
  if (auto bad = judged("opening", c.code()); !bad.empty()) return bad;
  const std::string why = sqlite::last_report();
  return why.size() < 12 ? fmt::format("opening says '{}', which is no sentence", why) : "";
}

constexpr const char* readings[] = {
    "SELECT count(*), sum(length(text)), max(n) FROM item",
    "SELECT count(*) FROM item WHERE n > 3",
    "SELECT * FROM item ORDER BY text LIMIT 20",
    "SELECT sum(length(bytes)) FROM large",
    "SELECT group_concat(sql) FROM sqlite_schema",
};
constexpr const char* changes[] = {
    "INSERT INTO item(n, text) VALUES(7, 'a text')",
    "UPDATE item SET text = text || 'and more' WHERE n % 3 = 0",
    "INSERT INTO large VALUES(zeroblob(70000))",
    "BEGIN; DELETE FROM item WHERE n < 5; CREATE TABLE new AS SELECT * FROM item; ROLLBACK",
    "DELETE FROM large WHERE rowid < 3",
    "CREATE TABLE another(a); INSERT INTO another SELECT text FROM item",
    "VACUUM",
};

template <std::size_t N>
std::string run_all(connection& c, const char* const (&statements)[N]) {
  for (const char* const sql : statements)
    if (auto bad = judged(sql, c.run(sql)); !bad.empty()) return bad;
  return "";
}

// As `stele sqlite export` copies. False: it was refused.
bool copy(connection& from, connection& to) {
  sqlite3_backup* const work = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
  if (work == nullptr) return false;
  (void)sqlite3_backup_step(work, -1);
  return sqlite3_backup_finish(work) == SQLITE_OK;
}

std::string read_beside(const std::string& path, const char* database) {
  connection c(uri_of(path, database), SQLITE_OPEN_READONLY);
  if (c.code() != SQLITE_OK) return judged_opening(c);
  if (auto bad = run_all(c, readings); !bad.empty()) return bad;
  connection to(":memory:", SQLITE_OPEN_READWRITE);
  (void)copy(c, to);
  return "";
}

// Runs the changes on the database, and on its copy if there is one.
std::string change(connection& c, connection* beside) {
  for (const char* const sql : changes) {
    const int code = c.run(sql), expected = beside != nullptr ? beside->run(sql) : code;
    if (auto bad = judged(sql, code); !bad.empty()) return bad;
    if (code == SQLITE_FULL) beside = nullptr;
    if (beside != nullptr && code != expected)
      return fmt::format("{} gives {}, and {} on a copy in memory", sql, code, expected);
    for (connection* const one : {&c, beside})
      if (one != nullptr && sqlite3_get_autocommit(one->handle()) == 0) (void)one->run("ROLLBACK");
  }
  constexpr const char* check = "PRAGMA integrity_check";
  if (beside != nullptr && c.text(check) != beside->text(check))
    return fmt::format("'{}' is damaged where a copy in memory has '{}'", c.text(check),
                       beside->text(check));
  return "";
}

std::string use(const std::string& path, const char* database) {
  connection c(uri_of(path, database), SQLITE_OPEN_READWRITE),
      beside(":memory:", SQLITE_OPEN_READWRITE);
  if (c.code() != SQLITE_OK) return judged_opening(c);
  if (auto bad = run_all(c, readings); !bad.empty()) return bad;
  const bool was_sound = c.text("PRAGMA stele_check") == "ok", is_copied = copy(c, beside);
  if (auto bad = change(c, is_copied ? &beside : nullptr); !bad.empty()) return bad;
  const char* const other = database == second ? "main" : second;
  (void)c.run(fmt::format("ATTACH '{}' AS two", uri_of(path, other)));
  (void)c.run("BEGIN; INSERT INTO item(n) VALUES(1); INSERT INTO two.item(n) VALUES(2); COMMIT");
  return was_sound && c.text("PRAGMA stele_check") != "ok" ? "a sound pool is damaged by a change"
                                                           : "";
}

bytes make_pool(const std::string& options) {
  const std::string path = scratch() + "/sqlite-seed";
  std::filesystem::remove(path);
  for (const char* const database : {"main", second}) {
    connection c(
        fmt::format("file:{}?vfs=stele&background=0&{}&database={}", path, options, database),
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    (void)c.run(
        "PRAGMA auto_vacuum=INCREMENTAL;"
        "CREATE TABLE item(n, text); CREATE INDEX by_text ON item(text); CREATE TABLE large(bytes);"
        "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 150)"
        "INSERT INTO item SELECT i, printf('%0*d', i % 90, i) FROM c;"
        "INSERT INTO large VALUES(zeroblob(40000)), (zeroblob(9000)), ('short');"
        "DELETE FROM item WHERE n % 7 = 0");
  }
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(all.data());
  return {first, first + all.size()};
}

}  // namespace

std::string run_sqlite(std::span<const std::byte> input) {
  if (input.size() < format::front_size) return "";
  const std::string path = scratch() + "/sqlite";
  for (const char* const database : {"main", second}) {
    write_file(path, input);
    if (auto bad = read_beside(path, database); !bad.empty()) return bad;
    if (auto bad = use(path, database); !bad.empty()) return bad;
    const connection again(uri_of(path, database), SQLITE_OPEN_READWRITE);
    if (auto bad = judged_opening(again); !bad.empty()) return bad;
  }
  return "";
}

std::vector<bytes> sqlite_seeds() {
  return {make_pool("size=512K&media=process"), make_pool("size=512K&media=adr"),
          make_pool("size=512K&media=process&mechanism=undo"),
          make_pool("size=512K&media=adr&mechanism=redo")};
}

}  // namespace stele::fuzz
