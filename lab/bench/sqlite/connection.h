// A connection to SQLite and its prepared statements, for one thread at a time.
//
// Errors are sentences with SQLite's message: in_use (another connection has had the lock for
// seconds), full, corrupt, else io.
#pragma once

#include <sqlite3.h>
#include <stele/error.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stele::bench::sql {

class connection;

// The present row of a statement.
class row_view {
 public:
  explicit row_view(sqlite3_stmt* s) noexcept : statement_(s) {}
  std::int64_t number(int column) const noexcept {
    return ::sqlite3_column_int64(statement_, column);
  }
  std::uint64_t word(int column) const noexcept {
    return static_cast<std::uint64_t>(number(column));
  }
  // Until the next row.
  std::string_view bytes(int column) const noexcept;

 private:
  sqlite3_stmt* statement_;
};

// Prepared when it is first run. Arguments are integers, and texts that are bound as blobs.
class statement {
 public:
  // The connection and the text outlive it.
  statement(connection& of, const char* sql) noexcept : of_(&of), sql_(sql) {}
  ~statement();
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;

  // Runs to the end, and calls each(row_view) for each row.
  template <class Each, class... Arguments>
  [[nodiscard]] result<> each_row(Each&& each, const Arguments&... arguments) {
    int code = begin();
    [[maybe_unused]] int index = 0;
    ((code = code == SQLITE_OK ? bind(++index, arguments) : code), ...);
    if (code == SQLITE_OK)
      while ((code = ::sqlite3_step(prepared_)) == SQLITE_ROW) each(row_view(prepared_));
    return end(code);
  }
  template <class... Arguments>
  [[nodiscard]] result<> run(const Arguments&... arguments) {
    return each_row([](const row_view&) {}, arguments...);
  }
  // The first column of the last row. Errors: corrupt, when there is no row.
  template <class... Arguments>
  [[nodiscard]] result<std::int64_t> number(const Arguments&... arguments) {
    std::optional<std::int64_t> found;
    auto done = each_row([&](const row_view& row) { found = row.number(0); }, arguments...);
    if (!done) return std::unexpected(std::move(done.error()));
    if (!found) return no_row();
    return *found;
  }

 private:
  int begin();
  template <std::integral Number>
  int bind(int index, Number value) {
    return ::sqlite3_bind_int64(prepared_, index, static_cast<sqlite3_int64>(value));
  }
  int bind(int index, std::string_view bytes);
  [[nodiscard]] result<> end(int code);
  std::unexpected<error> no_row() const;

  connection* of_;
  const char* sql_;
  sqlite3_stmt* prepared_ = nullptr;
};

enum class transaction_kind : std::uint8_t {
  one_statement,  // is a transaction by itself
  reads,          // BEGIN
  writes          // BEGIN IMMEDIATE
};

class connection {
 public:
  // `name`: a path, a URI or ":memory:". Sets what all systems have alike: pages of 4096 bytes, and
  // SQLite's own size of the cache.
  [[nodiscard]] static result<std::shared_ptr<connection>> open(const std::string& name);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  [[nodiscard]] result<> run(const std::string& statements);
  // The first column of the first row; empty, when there is none.
  [[nodiscard]] result<std::string> text(const std::string& statement);
  // Rows that the last statement changed, and the key of the last inserted row.
  int changes() const noexcept { return ::sqlite3_changes(handle_); }
  std::int64_t inserted_key() const noexcept { return ::sqlite3_last_insert_rowid(handle_); }
  void forget_inserted_key() noexcept { ::sqlite3_set_last_insert_rowid(handle_, -1); }

  // Runs body() as one transaction. When another connection has the lock: rolls back, and runs it
  // again.
  template <class Body>
  [[nodiscard]] result<> transaction(transaction_kind kind, Body&& body) {
    for (std::optional<clock::time_point> first_failure;;) {
      result<> done = begin(kind);
      if (done) done = end(kind, body());
      if (done || !may_run_again(done.error(), first_failure)) return done;
    }
  }

  sqlite3* handle() const noexcept { return handle_; }
  std::unexpected<error> failed(int code, std::string_view statement) const;

 private:
  using clock = std::chrono::steady_clock;

  connection(sqlite3* handle, const std::string& name)
      : handle_(handle), is_pool_(name.find("vfs=stele") != name.npos) {}
  [[nodiscard]] result<> begin(transaction_kind kind);
  [[nodiscard]] result<> end(transaction_kind kind, result<> done);
  static bool may_run_again(const error& why, std::optional<clock::time_point>& first_failure);

  sqlite3* handle_;
  const bool is_pool_;
  statement begin_{*this, "BEGIN"}, begin_immediate_{*this, "BEGIN IMMEDIATE"},
      commit_{*this, "COMMIT"}, roll_back_{*this, "ROLLBACK"};
};

}  // namespace stele::bench::sql
