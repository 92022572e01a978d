// A connection of SQLite for tests of crashes: errors are exceptions, answers are numbers.
#pragma once

#include <sqlite3.h>
#include <stele/sqlite.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

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

class connection {
 public:
  explicit connection(const std::string& uri) {
    if (::stele_sqlite_register(0) != SQLITE_OK) throw std::runtime_error("no VFS");
    const int code =
        ::sqlite3_open_v2(uri.c_str(), &handle_,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr);
    if (code == SQLITE_OK) return;
    const std::string why = handle_ != nullptr ? ::sqlite3_errmsg(handle_) : "no memory";
    ::sqlite3_close(std::exchange(handle_, nullptr));
    throw sqlite_failure(code, "open: " + why);
  }
  ~connection() { ::sqlite3_close(handle_); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  sqlite3* handle() const noexcept { return handle_; }

  int try_run(const std::string& sql) noexcept {
    return ::sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  void run(const std::string& sql) {
    if (const int code = try_run(sql); code != SQLITE_OK) fail(code, sql);
  }
  // The first column of the first row; empty: there is none.
  std::string text(const std::string& sql) {
    std::string answer;
    const auto take = [](void* to, int, char** columns, char**) {
      auto& first = *static_cast<std::string*>(to);
      if (first.empty() && columns[0] != nullptr) first = columns[0];
      return 0;
    };
    const int code = ::sqlite3_exec(handle_, sql.c_str(), take, &answer, nullptr);
    if (code != SQLITE_OK) fail(code, sql);
    return answer;
  }
  std::int64_t number(const std::string& sql) {
    const std::string answer = text(sql);
    return answer.empty() ? 0 : std::stoll(answer);
  }

 private:
  [[noreturn]] void fail(int code, const std::string& sql) const {
    throw sqlite_failure(code, std::string(::sqlite3_errmsg(handle_)) + " (" +
                                   std::to_string(::sqlite3_extended_errcode(handle_)) +
                                   ") at: " + sql.substr(0, 200));
  }
  sqlite3* handle_ = nullptr;
};

}  // namespace stele::testing
