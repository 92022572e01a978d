// A connection to SQLite for tests: statements are texts, an error ends the test unless it is asked
// for.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stele/sqlite.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stele::testing {

class sqlite_connection {
 public:
  // `name`: a path, or a URI.
  explicit sqlite_connection(const std::string& name,
                             int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) {
    stele_sqlite_register(0);
    open_code_ = sqlite3_open_v2(name.c_str(), &handle_, flags | SQLITE_OPEN_URI, nullptr);
    sqlite3_extended_result_codes(handle_, 1);
  }
  ~sqlite_connection() { close(); }
  sqlite_connection(const sqlite_connection&) = delete;
  sqlite_connection& operator=(const sqlite_connection&) = delete;
  void close() { sqlite3_close(std::exchange(handle_, nullptr)); }

  int open_code() const { return open_code_; }
  sqlite3* handle() const { return handle_; }
  std::string message() const { return sqlite3_errmsg(handle_); }
  // SQLite's code of the statements.
  int run(const std::string& sql) {
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
    if (sqlite3_exec(handle_, sql.c_str(), add, &all, nullptr) != SQLITE_OK)
      throw std::runtime_error(sql + ": " + message());
    return all;
  }
  std::string row(const std::string& sql) {
    const auto all = rows(sql);
    return all.empty() ? "no row" : all[0];
  }
  void must(const std::string& sql) { rows(sql); }

 private:
  sqlite3* handle_ = nullptr;
  int open_code_ = SQLITE_OK;
};

}  // namespace stele::testing
