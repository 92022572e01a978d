// Runs statements and makes sentences of SQLite's codes.
#include <adapters/sqlite/file.h>
#include <base/check.h>
#include <bench/sqlite/connection.h>
#include <fmt/format.h>

#include <thread>

namespace stele::bench::sql {
namespace {

// SQLite's own way to wait sleeps for milliseconds, which is many transactions.
int wait_for_lock(void*, int calls) {
  constexpr int yields = 200, sleeps = 10'000;
  if (calls < yields)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return calls < yields + sleeps;
}

errc code_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return errc::in_use;
    case SQLITE_FULL:
      return errc::full;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return errc::corrupt;
    default:
      return errc::io;
  }
}

}  // namespace

std::string_view row_view::bytes(int column) const noexcept {
  const auto* const begin = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
  return {begin, static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column))};
}

statement::~statement() {
  ::sqlite3_finalize(prepared_);
}

int statement::begin() {
  if (prepared_ != nullptr) return SQLITE_OK;
  return ::sqlite3_prepare_v3(of_->handle(), sql_, -1, SQLITE_PREPARE_PERSISTENT, &prepared_,
                              nullptr);
}

int statement::bind(int index, std::string_view bytes) {
  return ::sqlite3_bind_blob64(prepared_, index, bytes.data(), bytes.size(), SQLITE_STATIC);
}

result<> statement::end(int code) {
  result<> done;
  if (code != SQLITE_DONE) done = of_->failed(code, sql_);
  ::sqlite3_reset(prepared_);
  return done;
}

std::unexpected<error> statement::no_row() const {
  return base::fail(errc::corrupt, fmt::format("there is no row for: {}", sql_));
}

result<std::shared_ptr<connection>> connection::open(const std::string& name) {
  sqlite3* handle = nullptr;
  constexpr int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int code = ::sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  const std::shared_ptr<connection> made(new connection(handle, name));
  if (code != SQLITE_OK) return made->failed(code, "open " + name);
  ::sqlite3_extended_result_codes(handle, 1);
  ::sqlite3_busy_handler(handle, wait_for_lock, nullptr);
  if (auto set = made->run("PRAGMA page_size=4096; PRAGMA cache_size=-2000"); !set)
    return std::unexpected(std::move(set.error()));
  return made;
}

// SQLite closes the connection when its last statement is gone.
connection::~connection() {
  ::sqlite3_close_v2(handle_);
}

result<> connection::run(const std::string& statements) {
  const int code = ::sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failed(code, statements);
  return {};
}

result<std::string> connection::text(const std::string& sql) {
  statement s(*this, sql.c_str());
  std::string found;
  bool any = false;
  auto done = s.each_row([&](const row_view& row) {
    if (!std::exchange(any, true)) found = row.bytes(0);
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return found;
}

std::unexpected<error> connection::failed(int code, std::string_view at) const {
  std::string sentence =
      fmt::format("SQLite says {} ({}) at: {}", ::sqlite3_errmsg(handle_), code, at);
  if (const std::string report = is_pool_ ? stele::sqlite::last_report() : ""; !report.empty())
    sentence += "; " + report;
  return base::fail(code_of(code), std::move(sentence));
}

result<> connection::begin(transaction_kind kind) {
  switch (kind) {
    case transaction_kind::reads:
      return begin_.run();
    case transaction_kind::writes:
      return begin_immediate_.run();
    case transaction_kind::one_statement:
      break;
  }
  return {};
}

result<> connection::end(transaction_kind kind, result<> done) {
  if (kind == transaction_kind::one_statement) return done;
  if (done) done = commit_.run();
  if (!done && ::sqlite3_get_autocommit(handle_) == 0)
    if (auto back = roll_back_.run(); !back) return back;
  return done;
}

bool connection::may_run_again(const error& why, std::optional<clock::time_point>& first_failure) {
  if (why.code != errc::in_use) return false;
  const auto now = clock::now();
  if (!first_failure) first_failure = now;
  return now - *first_failure < std::chrono::seconds(10);
}

}  // namespace stele::bench::sql
