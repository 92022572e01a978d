// Connections to SQLite for tests: statements are texts, errors are exceptions unless they are
// asked for.
#pragma once

#include <containers/test_bed.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stele/sqlite.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stele::testing {

class sqlite_failure : public std::runtime_error {
 public:
  sqlite_failure(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// Of a database in a pool; `parameters` are those of its URI, as "size=8M&mechanism=redo".
inline std::string uri_of(const std::string& path, const std::string& parameters = "") {
  return "file:" + path + "?vfs=stele" + (parameters.empty() ? "" : "&" + parameters);
}

// Whether this program has the mechanism that the parameters name; true if they name none.
inline bool has_mechanism_of(const std::string& parameters) {
  const std::string key = "mechanism=";
  const std::size_t at = parameters.find(key);
  if (at == std::string::npos) return true;
  const std::size_t from = at + key.size();
  return !known_of({parameters.substr(from, parameters.find('&', from) - from)}).empty();
}

// What the opening gave is asked for by open_code().
class sqlite_connection {
 public:
  // `name`: a path, or a URI.
  explicit sqlite_connection(const std::string& name,
                             int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) {
    stele_sqlite_register(0);
    open_code_ = sqlite3_open_v2(name.c_str(), &handle_, flags | SQLITE_OPEN_URI, nullptr);
    if (handle_ != nullptr) sqlite3_extended_result_codes(handle_, 1);  // null: no memory
  }
  ~sqlite_connection() { close(); }
  sqlite_connection(const sqlite_connection&) = delete;
  sqlite_connection& operator=(const sqlite_connection&) = delete;
  void close() { sqlite3_close(std::exchange(handle_, nullptr)); }

  int open_code() const { return open_code_; }
  sqlite3* handle() const { return handle_; }
  std::string message() const { return sqlite3_errmsg(handle_); }
  // SQLite's code of the statements.
  int run(const std::string& sql) noexcept {
    return sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  // The rows, their columns joined by '|'. Throws on an error.
  std::vector<std::string> rows(const std::string& sql) {
    std::vector<std::string> all;
    const auto add = [](void* to, int columns, char** values, char**) {
      std::string row;
      for (int i = 0; i < columns; ++i)
        row += (i == 0 ? "" : "|") + std::string(values[i] != nullptr ? values[i] : "null");
      static_cast<std::vector<std::string>*>(to)->push_back(row);
      return 0;
    };
    execute(sql, add, &all);
    return all;
  }
  std::string row(const std::string& sql) {
    const auto all = rows(sql);
    return all.empty() ? "no row" : all[0];
  }
  void must(const std::string& sql) { execute(sql, nullptr, nullptr); }
  // The first column of the first row; empty: there is none.
  std::string text(const std::string& sql) {
    std::string answer;
    const auto take = [](void* to, int, char** columns, char**) {
      auto& first = *static_cast<std::string*>(to);
      if (first.empty() && columns[0] != nullptr) first = columns[0];
      return 0;
    };
    execute(sql, take, &answer);
    return answer;
  }
  std::int64_t number(const std::string& sql) {
    const std::string answer = text(sql);
    return answer.empty() ? 0 : std::stoll(answer);
  }

 private:
  void execute(const std::string& sql, int (*on_row)(void*, int, char**, char**), void* to) {
    const int code = sqlite3_exec(handle_, sql.c_str(), on_row, to, nullptr);
    if (code != SQLITE_OK)
      throw sqlite_failure(code,
                           message() + " (" + std::to_string(code) + ") at: " + sql.substr(0, 200));
  }
  sqlite3* handle_ = nullptr;
  int open_code_ = SQLITE_OK;
};

// An opening that fails is an exception too.
struct connection : sqlite_connection {
  explicit connection(const std::string& uri) : sqlite_connection(uri) {
    if (open_code() != SQLITE_OK) throw sqlite_failure(open_code(), "open: " + message());
  }
};

}  // namespace stele::testing
