// stele sqlite import|export|check|backup: SQLite databases in pools, from the shell.
//
// import and export copy by SQLite's backup API, in one transaction of the target. The target is
// new; it is removed if the copy is not finished.
#include <cli/command.h>
#include <cli/reading.h>
#include <fmt/format.h>

#ifdef STELE_HAVE_SQLITE
#include <adapters/sqlite/file.h>
#include <adapters/sqlite/stored.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stele/sqlite.h>
#include <sys/stat.h>
#include <tx/inspect.h>
#include <tx/open.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>
#endif

namespace stele::cli {

#ifdef STELE_HAVE_SQLITE
namespace {

constexpr int pages_of_a_step = 1024;

struct options {
  std::string from, to, json, size, mechanism, database = "main";
};

struct closes {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
using connection = std::unique_ptr<sqlite3, closes>;

std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += std::string_view("%?#&=").contains(c)
                   ? fmt::format("%{:02x}", static_cast<unsigned char>(c))
                   : std::string(1, c);
  return escaped;
}

std::string uri_of_pool(const std::string& path, const options& o) {
  std::string uri =
      fmt::format("file:{}?vfs=stele&database={}", escaped(path), escaped(o.database));
  if (!o.size.empty()) uri += fmt::format("&size={}", parse_size(o.size));
  if (!o.mechanism.empty()) uri += "&mechanism=" + escaped(o.mechanism);
  return uri;
}

// What SQLite says, or the sentence of the pool where there is one.
[[noreturn]] void fail_of(sqlite3* db, const std::string& what) {
  const std::string reported = sqlite::last_report();
  if (!reported.empty()) fail(fmt::format("{}: {}", what, reported));
  const int number = db != nullptr ? sqlite3_system_errno(db) : 0;
  fail(fmt::format("{}: {}{}", what, sqlite3_errmsg(db),
                   number == 0 ? "" : " (" + std::generic_category().message(number) + ")"));
}

connection opened(const std::string& name, int flags, const std::string& what) {
  stele_sqlite_register(0);
  sqlite::forget_report();
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &db, flags | SQLITE_OPEN_URI, nullptr);
  connection own(db);
  if (code != SQLITE_OK) fail_of(db, what);
  sqlite3_extended_result_codes(db, 1);
  return own;
}

int add_row(void* to, int, char** values, char**) {
  static_cast<std::vector<std::string>*>(to)->emplace_back(values[0] != nullptr ? values[0] : "");
  return 0;
}
std::vector<std::string> rows(sqlite3* db, const char* sql, const std::string& what) {
  std::vector<std::string> all;
  sqlite::forget_report();
  if (sqlite3_exec(db, sql, add_row, &all, nullptr) != SQLITE_OK) fail_of(db, what);
  return all;
}

void need_file(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none))
    fail(fmt::format("{} is not there; give the path of an existing file", path));
  if (!std::filesystem::is_regular_file(path, none))
    fail(fmt::format("{} is not an ordinary file; give the path of a file", path));
}
void need_free(const std::string& path) {
  std::error_code none;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, none)))
    fail(fmt::format("{} exists, and is not overwritten; remove it, or give another name", path));
}
void need_pool(const std::string& path) {
  const auto info = detail::info_of(path);
  const bool is_layout =
      info && std::string_view(info->header.layout.data()) == sqlite::layout_name;
  if (is_layout) return;
  need_file(path);
  if (info)
    fail(
        fmt::format("{} is a pool of the layout '{}', and SQLite databases are in pools of the "
                    "layout '{}'; `stele pool info {}` says more",
                    path, info->header.layout.data(), sqlite::layout_name, path));
  fail(fmt::format("{} (to make a pool of an ordinary SQLite file: `stele sqlite import {} POOL`)",
                   info.error().message, path));
}

// Removes the new file unless the copy was finished.
class new_file {
 public:
  explicit new_file(std::string path) : path_(std::move(path)) {}
  ~new_file() {
    if (finished_) return;
    std::error_code none;
    for (const char* end : {"", "-journal"}) std::filesystem::remove(path_ + end, none);
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;
  const std::string& path() const noexcept { return path_; }
  void finish() noexcept { finished_ = true; }

 private:
  const std::string path_;
  bool finished_ = false;
};

// The content is as private as the pool's: SQLite takes an empty file for a new database.
void make_empty_like(const std::string& pool, const std::string& path) {
  struct stat of_pool = {};
  const bool known = ::stat(pool.c_str(), &of_pool) == 0;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 || (known && ::fchmod(fd, of_pool.st_mode & 0777) != 0)) {
    const int number = errno;
    if (fd >= 0) ::close(fd);
    fail(fmt::format("cannot create {}: {}", path, std::generic_category().message(number)));
  }
  ::close(fd);
}

// The name must not lead to another file by now.
void give_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EINVAL && ::access(to.c_str(), F_OK) != 0 &&
      std::rename(from.c_str(), to.c_str()) == 0)
    return;
  fail(fmt::format("cannot give the copy its name {}: {}", to,
                   std::generic_category().message(errno)));
}

// Returns the bytes of the copy.
std::uint64_t copy(sqlite3* from, sqlite3* to, const char* verb, const std::string& what) {
  const auto report = progress_on_stderr(verb);
  const std::uint64_t page = std::stoull(rows(from, "pragma page_size", what).at(0));
  sqlite::forget_report();
  sqlite3_backup* const work = sqlite3_backup_init(to, "main", from, "main");
  if (work == nullptr) fail_of(to, what);
  int code = SQLITE_OK;
  std::uint64_t all = 0;
  bool stopped = false;
  while (!stopped && (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED)) {
    code = sqlite3_backup_step(work, pages_of_a_step);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) sqlite3_sleep(10);
    all = static_cast<std::uint64_t>(sqlite3_backup_pagecount(work)) * page;
    const auto left = static_cast<std::uint64_t>(sqlite3_backup_remaining(work)) * page;
    stopped = code != SQLITE_DONE && !report(all - left, all);
  }
  sqlite3_backup_finish(work);
  if (stopped) fail(fmt::format("{}: interrupted; nothing is left of the copy", what));
  if (code != SQLITE_DONE) fail_of(to, what);
  report(all, all);
  return all;
}

void print_copied(const options& o, std::uint64_t bytes) {
  if (o.json != "-") fmt::print("{}\n  copied     {} bytes of {}\n", o.to, bytes, o.from);
  if (!o.json.empty())
    write_json(
        o.json,
        {{"path", o.to}, {"from", o.from}, {"database", o.database}, {"copied_bytes", bytes}});
}

void import_database(options& o) {
  need_file(o.from), need_free(o.to);
  interrupted();  // from here on the first ^C ends the copy
  const std::string what = fmt::format("{} cannot be imported into {}", o.from, o.to);
  const auto from =
      opened(fmt::format("file:{}?vfs=unix", escaped(o.from)), SQLITE_OPEN_READWRITE, what);
  rows(from.get(), "select count(*) from sqlite_schema", what);
  if (o.size.empty()) {
    const std::uint64_t bytes = std::filesystem::file_size(o.from);
    o.size = std::to_string(std::max<std::uint64_t>(16 << 20, bytes + bytes / 4 + (8 << 20)));
  }
  new_file made(o.to);
  auto to = opened(uri_of_pool(o.to, o), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, what);
  const std::uint64_t bytes = copy(from.get(), to.get(), "importing", what);
  to.reset();
  made.finish();
  print_copied(o, bytes);
}

void export_database(const options& o) {
  need_pool(o.from), need_free(o.to);
  interrupted();
  const std::string what = fmt::format("{} cannot be exported to {}", o.from, o.to);
  const auto from = opened(uri_of_pool(o.from, o), SQLITE_OPEN_READONLY, what);
  new_file made(fmt::format("{}.writing.{}", o.to, ::getpid()));
  make_empty_like(o.from, made.path());
  auto to =
      opened(fmt::format("file:{}?vfs=unix", escaped(made.path())), SQLITE_OPEN_READWRITE, what);
  const std::uint64_t bytes = copy(from.get(), to.get(), "exporting", what);
  to.reset();
  give_name(made.path(), o.to);
  made.finish();
  print_copied(o, bytes);
}

void check(const options& o) {
  need_pool(o.from);
  const auto pool = detail::check_pool(o.from, progress_on_stderr("checking"));
  std::vector<std::string> findings;
  if (!pool) {
    findings.push_back(pool.error().message);
  } else {
    const std::string what = fmt::format("{} cannot be checked", o.from);
    const auto db = opened(uri_of_pool(o.from, o), SQLITE_OPEN_READONLY, what);
    findings = rows(db.get(), "pragma integrity_check", what);
    if (findings.size() == 1 && findings[0] == "ok") findings.clear();
  }
  if (!o.json.empty())
    write_json(o.json, {{"path", o.from},
                        {"database", o.database},
                        {"sound", findings.empty()},
                        {"findings", findings}});
  if (findings.empty()) {
    if (o.json != "-")
      fmt::print("{}: the pool is sound, and so is the database \"{}\"\n", o.from, o.database);
    return;
  }
  if (o.json != "-")
    for (const std::string& finding : findings) fmt::print("  FOUND      {}\n", finding);
  fail(
      fmt::format("{} is damaged: {} findings; restore a backup, or save what is left by the "
                  ".recover command of SQLite's shell",
                  o.from, findings.size()));
}

void backup(const options& o) {
  need_pool(o.from), need_free(o.to);
  const auto report = progress_on_stderr("copying");
  const auto from_open = detail::back_up_if_open(o.from, o.to, report);
  if (!from_open) fail(from_open.error());
  if (!*from_open) {
    const auto pool = open_for_reading(o.from);
    if (const auto made = detail::back_up(*pool, o.to, report); !made) fail(made.error());
    if (const auto closed = pool->close(); !closed) fail(closed.error());
  }
  print_copied(o, std::filesystem::file_size(o.to));
}

CLI::App* add(CLI::App& group, const char* name, const char* what,
              const std::shared_ptr<options>& o, const char* from, const char* to) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("from", o->from, from)->required();
  if (to != nullptr) command->add_option("to", o->to, to)->required();
  command->add_option("--json", o->json, "write the report to FILE; - is standard output");
  return command;
}

}  // namespace

void add_sqlite(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group = app.add_subcommand("sqlite", "copy and check SQLite databases in pools");
  group->require_subcommand(1);
  const auto with_database = [&](CLI::App* command) {
    command->add_option("--database", o->database, "the database of the pool")
        ->capture_default_str();
    return command;
  };
  CLI::App* made = with_database(add(*group, "import", "makes a pool of an ordinary SQLite file", o,
                                     "the SQLite file", "the pool; nothing may be there"));
  made->add_option("--size", o->size, "bytes of the pool; K, M, G, T are known; else by the file");
  made->add_option("--mechanism", o->mechanism, "the pool's mechanism");
  made->callback([o] { import_database(*o); });
  with_database(add(*group, "export", "makes an ordinary SQLite file of a pool", o, "the pool file",
                    "the SQLite file; nothing may be there"))
      ->callback([o] { export_database(*o); });
  with_database(add(*group, "check",
                    "whether the pool and the database in it (integrity_check) are sound; changes "
                    "nothing",
                    o, "the pool file", nullptr))
      ->callback([o] { check(*o); });
  add(*group, "backup", "a copy of the pool; it may be in use", o, "the pool file",
      "the copy; nothing may be there")
      ->callback([o] { backup(*o); });
}
#else
void add_sqlite(CLI::App& app) {
  CLI::App* group = app.add_subcommand("sqlite", "copy and check SQLite databases in pools");
  group->allow_extras();
  group->callback([] {
    fail(
        "this program was built without SQLite; install its headers (Debian: libsqlite3-dev) and "
        "build again");
  });
}
#endif

}  // namespace stele::cli
