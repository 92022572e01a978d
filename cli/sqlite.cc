// stele sqlite import|export|check: SQLite databases into pools, out of them, and whether they are
// whole. docs/guide/sqlite.md.
#include <cli/command.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <stele/sqlite.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

struct options {
  std::string from, to, database = "main", size, mechanism, media, json;
};

using connection = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

// As part of a URI.
std::string quoted(const std::string& text) {
  std::string all;
  for (const char c : text)
    all += c == '%' || c == '?' || c == '#' || c == '&' ? fmt::format("%{:02x}", c)
                                                        : std::string(1, c);
  return all;
}

// The first column; on an error no row.
std::vector<std::string> rows(sqlite3* db, const std::string& sql) {
  std::vector<std::string> all;
  const auto add = [](void* to, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(values[0] != nullptr ? values[0] : "");
    return 0;
  };
  sqlite3_exec(db, sql.c_str(), add, &all, nullptr);
  return all;
}

// What Stele said of the last error, which SQLite knows only as a number.
std::string& last_logged() {
  static std::string last;
  return last;
}

// Before the first use of SQLite.
void begin_sqlite() {
  void (*const note)(void*, int, const char*) = [](void*, int, const char* text) {
    last_logged() = text;
  };
  sqlite3_config(SQLITE_CONFIG_LOG, note, nullptr);
  stele_sqlite_register(0);
}

[[noreturn]] void fail_at(const std::string& path, sqlite3* db) {
  const std::string why = db != nullptr ? sqlite3_errmsg(db) : "no memory";
  fail(fmt::format("{}: {}{}", path, why, last_logged().empty() ? "" : " (" + last_logged() + ")"));
}

connection open(const std::string& path, const std::string& uri, int flags) {
  sqlite3* db = nullptr;
  last_logged().clear();
  const int code = sqlite3_open_v2(uri.c_str(), &db, flags | SQLITE_OPEN_URI, nullptr);
  connection opened(db, sqlite3_close);
  if (code != SQLITE_OK) {
    if (!last_logged().empty()) fail(last_logged());
    fail_at(path, db);
  }
  return opened;
}
connection open_pool(const std::string& path, const options& o, int flags) {
  std::string uri = "file:" + quoted(path) + "?vfs=stele&database=" + quoted(o.database);
  for (const auto& [name, value] : {std::pair("size", o.size), std::pair("mechanism", o.mechanism),
                                    std::pair("media", o.media)})
    if (!value.empty()) uri += fmt::format("&{}={}", name, quoted(value));
  return open(path, uri, flags);
}
connection open_ordinary(const std::string& path, int flags) {
  return open(path, "file:" + quoted(path) + "?vfs=unix", flags);
}

void show(int left, int all, bool done) {
  if (::isatty(STDERR_FILENO) == 0 || all == 0) return;
  fmt::print(stderr, "\r{:3} % of {} pages{}", 100 * (all - left) / all, all, done ? "\n" : "");
}

// Returns the number of pages.
int copy(sqlite3* from, const std::string& from_path, sqlite3* to, const std::string& to_path) {
  constexpr int pages_of_a_step = 1000;
  sqlite3_backup* const b = sqlite3_backup_init(to, "main", from, "main");
  if (b == nullptr) fail_at(to_path, to);
  int code = SQLITE_OK;
  while (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    if (interrupted()) break;
    if (code != SQLITE_OK) sqlite3_sleep(20);
    code = sqlite3_backup_step(b, pages_of_a_step);
    show(sqlite3_backup_remaining(b), sqlite3_backup_pagecount(b), code == SQLITE_DONE);
  }
  const int pages = sqlite3_backup_pagecount(b);
  const int ended = sqlite3_backup_finish(b);
  if (code != SQLITE_DONE && interrupted()) fail("interrupted: nothing is left of the copy");
  if (ended != SQLITE_OK || code != SQLITE_DONE)
    fail_at(sqlite3_errcode(from) != SQLITE_OK ? from_path : to_path,
            sqlite3_errcode(from) != SQLITE_OK ? from : to);
  return pages;
}

// A file that has its name when it is whole; removed otherwise.
class new_file {
 public:
  explicit new_file(const std::string& path) : path_(path), part_(path + ".part") {
    for (const auto& taken : {path_, part_})
      if (std::filesystem::exists(taken))
        fail(fmt::format("{} exists already; remove it, or choose another name", taken));
  }
  ~new_file() {
    std::error_code none;
    if (!kept_) std::filesystem::remove(part_, none);
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;
  const std::string& part() const { return part_; }
  void keep() {
    std::filesystem::rename(part_, path_);
    kept_ = true;
  }

 private:
  const std::string path_, part_;
  bool kept_ = false;
};

void report(const options& o, int pages) {
  if (!o.json.empty())
    return write_json(o.json, {{"from", o.from}, {"to", o.to}, {"pages", pages}});
  fmt::print("{}: {} pages of {}\n", o.to, pages, o.from);
}

void import(const options& o) {
  begin_sqlite();
  (void)interrupted();
  const connection from = open_ordinary(o.from, SQLITE_OPEN_READONLY);
  if (rows(from.get(), "pragma schema_version").empty()) fail_at(o.from, from.get());
  new_file made(o.to);
  connection to = open_pool(made.part(), o, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const int pages = copy(from.get(), o.from, to.get(), o.to);
  to.reset();
  made.keep();
  report(o, pages);
}

void export_database(const options& o) {
  begin_sqlite();
  (void)interrupted();
  const connection from = open_pool(o.from, o, SQLITE_OPEN_READWRITE);
  new_file made(o.to);
  connection to = open_ordinary(made.part(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const int pages = copy(from.get(), o.from, to.get(), o.to);
  to.reset();
  made.keep();
  report(o, pages);
}

void check(const options& o) {
  begin_sqlite();
  const connection db = open_pool(o.from, o, SQLITE_OPEN_READWRITE);
  std::vector<std::string> findings;
  if (const auto said = rows(db.get(), "pragma stele_check");
      said != std::vector{std::string("ok")})
    findings.push_back(said.empty() ? last_logged() : said[0]);
  if (const auto said = rows(db.get(), "pragma integrity_check");
      said != std::vector{std::string("ok")}) {
    findings.insert(findings.end(), said.begin(), said.end());
    if (said.empty()) findings.emplace_back(sqlite3_errmsg(db.get()));
  }
  if (!o.json.empty()) write_json(o.json, {{"path", o.from}, {"findings", findings}});
  if (!findings.empty()) fail(fmt::format("{}: {}", o.from, fmt::join(findings, "\n")));
  if (o.json.empty()) fmt::print("{}: the pool and the database are whole\n", o.from);
}

void add_common(CLI::App& command, options& o) {
  command.add_option("--database", o.database, "name of the database in the pool; default: main");
  command.add_option("--json", o.json, "write the report as JSON to FILE; - is standard output");
}

}  // namespace

void add_sqlite(CLI::App& app) {
  auto* const sqlite =
      app.add_subcommand("sqlite", "SQLite databases in pools: copy them in and out, check them");
  sqlite->require_subcommand(1);
  const auto o = std::make_shared<options>();
  auto* const in = sqlite->add_subcommand("import", "make a pool of an ordinary SQLite database");
  in->add_option("DB", o->from, "the database file")->required();
  in->add_option("POOL", o->to, "the pool; no such file may exist")->required();
  in->add_option("--size", o->size, "of the pool at first, as 64M; it grows");
  in->add_option("--mechanism", o->mechanism, "as of `stele pool create`");
  in->add_option("--media", o->media, "as of `stele pool create`");
  add_common(*in, *o);
  in->callback([o] { import(*o); });
  auto* const out =
      sqlite->add_subcommand("export", "make an ordinary SQLite database of one in a pool");
  out->add_option("POOL", o->from, "the pool")->required();
  out->add_option("DB", o->to, "the database file; no such file may exist")->required();
  add_common(*out, *o);
  out->callback([o] { export_database(*o); });
  auto* const whole = sqlite->add_subcommand(
      "check", "verify the pool, then the database by SQLite's integrity_check");
  whole->add_option("POOL", o->from, "the pool")->required();
  add_common(*whole, *o);
  whole->callback([o] { check(*o); });
}

}  // namespace stele::cli
