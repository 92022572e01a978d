// The same work on a pool and on SQLite's own files: each answer and each code must be equal, and
// from time to time all that the databases have.
//
// A world has several connections of one thread. Each has the database `main` and has attached
// `two`; none waits for a lock, so what a conflict gives is an answer, too.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>
#include <stele/sqlite.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stele::testing {

struct answer {
  int code = SQLITE_OK;  // extended
  std::string rows;
  bool in_transaction = false;  // afterwards
  bool operator==(const answer&) const = default;
};

inline std::string text_of(sqlite3_stmt* s) {
  std::string row;
  for (int i = 0; i < sqlite3_column_count(s); ++i) {
    const int size = sqlite3_column_bytes(s, i);
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(s, i));
    row += fmt::format("{}{}:", i == 0 ? "" : "|", sqlite3_column_type(s, i));
    if (size > 0) row.append(bytes, static_cast<std::size_t>(size));
  }
  return row + "\n";
}

// One connection, its open cursor, its open blob and its unfinished copy.
class session {
 public:
  session(const std::string& main, const std::string& two)
      : attach_("ATTACH '" + two + "' AS two") {
    stele_sqlite_register(0);
    opened_ = sqlite3_open_v2(
        main.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr);
    sqlite3_extended_result_codes(db_, 1);
    if (opened_ == SQLITE_OK) opened_ = run(attach_).code;
  }
  ~session() {
    close_cursor();
    (void)end_copy();
    sqlite3_close(db_);
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  int opened() const { return opened_; }
  sqlite3* handle() const { return db_; }

  // All statements of the text, until one fails.
  answer run(const std::string& sql) {
    answer a;
    for (const char* rest = sql.c_str(); *rest != '\0' && a.code == SQLITE_OK;) {
      sqlite3_stmt* s = nullptr;
      a.code = sqlite3_prepare_v2(db_, rest, -1, &s, &rest);
      if (s == nullptr) break;
      while (a.code == SQLITE_OK || a.code == SQLITE_ROW)
        if (a.code = sqlite3_step(s); a.code == SQLITE_ROW) a.rows += text_of(s);
      if (a.code == SQLITE_DONE) a.code = SQLITE_OK;
      sqlite3_finalize(s);
    }
    a.in_transaction = sqlite3_get_autocommit(db_) == 0;
    return a;
  }

  answer open_cursor(const std::string& sql) {
    close_cursor();
    answer a;
    a.code = sqlite3_prepare_v2(db_, sql.c_str(), -1, &cursor_, nullptr);
    return a;
  }
  answer step(unsigned rows) {
    answer a;
    for (; rows != 0 && cursor_ != nullptr; --rows) {
      a.code = sqlite3_step(cursor_);
      if (a.code != SQLITE_ROW) {
        close_cursor();
        break;
      }
      a.rows += text_of(cursor_);
    }
    return a;
  }
  void close_cursor() { sqlite3_finalize(std::exchange(cursor_, nullptr)); }

  // Writes into a value in place.
  answer write_blob(const std::string& schema, std::int64_t row, int at, const std::string& bytes) {
    answer a;
    sqlite3_blob* blob = nullptr;
    a.code = sqlite3_blob_open(db_, schema.c_str(), "c", "v", row, 1, &blob);
    if (a.code == SQLITE_OK) {
      a.rows = std::to_string(sqlite3_blob_bytes(blob));
      a.code = sqlite3_blob_write(blob, bytes.data(), static_cast<int>(bytes.size()), at);
    }
    const int closed = sqlite3_blob_close(blob);
    if (a.code == SQLITE_OK) a.code = closed;
    return a;
  }

  // A copy of a schema into memory, some pages a call. It begins again after a commit of others
  // only where that changed what it has copied, so its progress is no answer.
  answer copy(const std::string& schema, int pages) {
    answer a;
    if (copy_ == nullptr) {
      sqlite3_open(":memory:", &copied_);
      copy_ = sqlite3_backup_init(copied_, "main", db_, schema.c_str());
      if (copy_ == nullptr) {
        a.code = sqlite3_extended_errcode(copied_);
        sqlite3_close(std::exchange(copied_, nullptr));
        return a;
      }
    }
    a.code = sqlite3_backup_step(copy_, pages);
    if (a.code == SQLITE_DONE) a.code = SQLITE_OK;
    return a;
  }
  // What the copy has when the rest is copied at once.
  answer end_copy() {
    answer a;
    if (copy_ == nullptr) return a;
    a.code = sqlite3_backup_step(copy_, -1);
    sqlite3_backup_finish(std::exchange(copy_, nullptr));
    if (a.code == SQLITE_DONE) a.rows = content_of_copy();
    sqlite3_close(std::exchange(copied_, nullptr));
    return a;
  }

 private:
  std::string content_of_copy() {
    std::string all;
    sqlite3_stmt* s = nullptr;
    for (const char* const sql :
         {"PRAGMA integrity_check", "SELECT * FROM a", "SELECT * FROM b", "SELECT * FROM c"}) {
      if (sqlite3_prepare_v2(copied_, sql, -1, &s, nullptr) == SQLITE_OK)
        while (sqlite3_step(s) == SQLITE_ROW) all += text_of(s);
      sqlite3_finalize(std::exchange(s, nullptr));
    }
    return all;
  }

  const std::string attach_;
  sqlite3* db_ = nullptr;
  int opened_ = SQLITE_OK;
  sqlite3_stmt* cursor_ = nullptr;
  sqlite3* copied_ = nullptr;
  sqlite3_backup* copy_ = nullptr;
};

// All rows of all tables, the schema, the numbers in the header, and what integrity_check says.
// `is_whole` becomes false if a statement fails.
inline std::string content_of(session& s, const std::string& schema, bool* is_whole = nullptr) {
  std::string all;
  const auto add = [&](const std::string& what, const answer& a) {
    all += fmt::format("{} {}\n{}", what, a.code, a.rows);
    if (is_whole != nullptr) *is_whole &= a.code == SQLITE_OK;
  };
  const answer tables = s.run("SELECT name FROM " + schema +
                              ".sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
                              "ORDER BY name");
  if (is_whole != nullptr) *is_whole = tables.code == SQLITE_OK;
  for (std::size_t at = 0; at + 2 < tables.rows.size();) {
    const std::size_t end = tables.rows.find('\n', at);
    if (end == std::string::npos) break;
    const std::string name = tables.rows.substr(at + 2, end - at - 2);  // behind its type
    add(schema + "." + name, s.run("SELECT * FROM " + schema + ".\"" + name + "\""));
    at = end + 1;
  }
  for (const char* const sql :
       {"SELECT type, name, sql FROM {}.sqlite_schema ORDER BY name", "PRAGMA {}.user_version",
        "PRAGMA {}.application_id", "PRAGMA {}.page_count", "PRAGMA {}.freelist_count",
        "PRAGMA {}.integrity_check"}) {
    add(sql, s.run(fmt::format(fmt::runtime(sql), schema)));
  }
  return all;
}

class world {
 public:
  world(std::string main, std::string two, std::size_t sessions)
      : main_(std::move(main)), two_(std::move(two)), sessions_(sessions) {
    for (std::size_t n = 0; n < sessions; ++n) reopen(n);
  }
  session& at(std::size_t n) { return *sessions_[n]; }
  std::size_t size() const { return sessions_.size(); }
  void reopen(std::size_t n) {
    sessions_[n].reset();
    sessions_[n] = std::make_unique<session>(main_, two_);
  }
  void reopen_all() {
    for (auto& one : sessions_) one.reset();
    for (std::size_t n = 0; n < size(); ++n) reopen(n);
  }
  // Of the newest commit; with one connection, which may lock out others, as that one sees it.
  std::string content() {
    std::optional<session> own;
    if (size() != 1) own.emplace(main_, two_);
    session& s = own ? *own : at(0);
    return content_of(s, "main") + content_of(s, "two");
  }

 private:
  const std::string main_, two_;
  std::vector<std::unique_ptr<session>> sessions_;
};

}  // namespace stele::testing
