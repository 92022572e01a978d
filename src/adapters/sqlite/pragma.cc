// Answers to pragmas.
#include "pragma.h"

#include <strings.h>

#include "file.h"

namespace stele::sqlite {

int answer(char** arguments, const std::string& text) {
  arguments[0] = sqlite3_mprintf("%s", text.c_str());
  return arguments[0] != nullptr ? SQLITE_OK : SQLITE_NOMEM;
}

namespace {

bool same(const char* a, const char* b) {
  return ::strcasecmp(a, b) == 0;
}

int answer_outcome(char** arguments, const result<>& done) {
  if (done) return answer(arguments, "ok");
  const int code = report(done.error(), SQLITE_IOERR);
  arguments[0] = sqlite3_mprintf("%s", done.error().message.c_str());
  return code;
}

// WAL and off are answered with the mode in force: there is no WAL, and a rollback journal costs
// nothing on media.
int set_journal_mode(connection& c, char** arguments) {
  const char* const mode = arguments[2];
  if (mode == nullptr) return SQLITE_NOTFOUND;
  if (same(mode, "wal") || same(mode, "off")) return answer(arguments, c.journal_mode);
  for (const char* known : {"delete", "truncate", "persist", "memory"})
    if (same(mode, known)) c.journal_mode = known;
  return SQLITE_NOTFOUND;
}

int set_synchronous(connection& c, const char* level) {
  if (level == nullptr || c.in_transaction()) return SQLITE_NOTFOUND;
  if (same(level, "off") || same(level, "0") || same(level, "no") || same(level, "false"))
    c.synchronous = 0;
  else if (same(level, "normal") || same(level, "1") || same(level, "yes") || same(level, "true") ||
           same(level, "on"))
    c.synchronous = 1;
  else
    c.synchronous = connection::synchronous_full;
  return SQLITE_NOTFOUND;
}

std::string counters_of(connection& c) {
  const pool_counters n = c.pool().content().counters();
  std::string text;
  const auto add = [&](std::string_view name, std::uint64_t value) {
    text += (text.empty() ? "" : "\n") + std::string(name) + " " + std::to_string(value);
  };
  add("commits", n.commits), add("fences", n.fences), add("flushed_lines", n.flushed_lines),
      add("streamed_bytes", n.streamed_bytes), add("stored_bytes", n.stored_bytes),
      add("truncations", n.truncations);
  for (const auto& own : n.of_mechanism) add(own.name, own.value);
  return text;
}

std::string information_of(connection& c) {
  const auto& pool = c.pool().content();
  const pool_space space = pool.space();
  return "path " + c.path() + "\nmechanism " + pool.mechanism() + "\ndurability " +
         name_of(pool.durability_in_force()) + "\nsize_bytes " + std::to_string(space.size_bytes) +
         "\nused_bytes " + std::to_string(space.used_bytes) + "\nfree_bytes " +
         std::to_string(space.free_bytes);
}

}  // namespace

int run_pragma(connection& c, char** arguments) {
  const char *const name = arguments[1], *const value = arguments[2];
  if (same(name, "journal_mode")) return set_journal_mode(c, arguments);
  if (same(name, "synchronous")) return set_synchronous(c, value);
  if (same(name, "locking_mode")) {
    if (value != nullptr && (same(value, "exclusive") || same(value, "normal")))
      c.for_all_of_handle([&](connection& one) { one.exclusive = same(value, "exclusive"); });
    return SQLITE_NOTFOUND;
  }
  if (same(name, "data_version")) c.tell_all_commits();
  if (same(name, "stele_error")) return answer(arguments, last_report());
  if (same(name, "stele_counters")) return answer(arguments, counters_of(c));
  if (same(name, "stele_info")) return answer(arguments, information_of(c));
  if (same(name, "stele_check")) return answer_outcome(arguments, c.pool().check());
  if (same(name, "stele_backup")) {
    if (value == nullptr)
      return answer_outcome(
          arguments,
          std::unexpected(error{errc::invalid_argument,
                                "PRAGMA stele_backup='PATH' needs the path of the copy"}));
    return answer_outcome(arguments, c.pool().backup(value));
  }
  return SQLITE_NOTFOUND;
}

}  // namespace stele::sqlite
