// libstele_sqlite.so: a loadable extension; preloaded, the default VFS of an unchanged program.
#include "api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "file.h"
#include "vfs.h"

extern "C" {

SQLITE_EXTENSION_INIT1

// select stele_error(): the sentence of the last error in this process, also after a failed open,
// which leaves no connection for PRAGMA stele_error.
static void answer_error(sqlite3_context* to, int, sqlite3_value**) {
  const std::string sentence = stele::sqlite::last_report();
  sqlite3_result_text(to, sentence.data(), static_cast<int>(sentence.size()), SQLITE_TRANSIENT);
}

// The same for programs that cannot load extensions. Valid until the thread's next call.
const char* stele_sqlite_error() {
  static thread_local std::string sentence;
  sentence = stele::sqlite::last_report();
  return sentence.c_str();
}

// By load_extension('libstele_sqlite').
int sqlite3_stelesqlite_init(sqlite3* db, char** message, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  int code = stele::sqlite::register_vfs(false);
  if (code == SQLITE_OK)
    code = sqlite3_create_function(db, "stele_error", 0, SQLITE_UTF8, nullptr, answer_error,
                                   nullptr, nullptr);
  if (code == SQLITE_OK) return SQLITE_OK_LOAD_PERMANENTLY;
  if (message != nullptr) *message = sqlite3_mprintf("the VFS \"stele\" cannot be registered");
  return code;
}
}

namespace {

// SQLite calls it as an automatic extension and passes its interface.
int become_default(sqlite3*, char**, const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  return stele::sqlite::register_vfs(true);
}

bool is_preloaded() {
  const char* const list = std::getenv("LD_PRELOAD");
  return list != nullptr && std::strstr(list, "libstele_sqlite") != nullptr;
}

// A function of the program's SQLite, also of one that only a plugin has loaded (Python's).
template <class Function>
Function next(const char* name) {
  void* at = dlsym(RTLD_NEXT, name);
  if (at == nullptr)
    if (void* const library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD))
      at = dlsym(library, name);
  if (at == nullptr) {
    std::fprintf(stderr,
                 "libstele_sqlite: the program has no %s of SQLite's; link it with the shared "
                 "libsqlite3, or load the extension\n",
                 name);
    std::abort();
  }
  return reinterpret_cast<Function>(at);
}

using open_function = int (*)(const char*, sqlite3**, int, const char*);

open_function register_and_find_open() {
  const auto open = next<open_function>("sqlite3_open_v2");
  if (!is_preloaded()) return open;
  const auto initialize = reinterpret_cast<void (*)()>(reinterpret_cast<void*>(become_default));
  next<int (*)(void (*)())>("sqlite3_auto_extension")(initialize);
  sqlite3* memory = nullptr;
  open(":memory:", &memory, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY,
       nullptr);
  next<int (*)(sqlite3*)>("sqlite3_close")(memory);
  next<int (*)(void (*)())>("sqlite3_cancel_auto_extension")(initialize);
  return open;
}

open_function ready() {
  static const open_function open = register_and_find_open();
  return open;
}

}  // namespace

// SQLite's functions that open a database: they register the VFS first.
#undef sqlite3_open
#undef sqlite3_open16
#undef sqlite3_open_v2
extern "C" {
int sqlite3_open_v2(const char* name, sqlite3** handle, int flags, const char* vfs) {
  return ready()(name, handle, flags, vfs);
}
int sqlite3_open(const char* name, sqlite3** handle) {
  ready();
  static const auto open = next<int (*)(const char*, sqlite3**)>("sqlite3_open");
  return open(name, handle);
}
// PHP's plugins look for functions in their own libraries first, not here.
// A tail call, so that the C library sees the real caller and searches that caller's folders.
void* dlopen(const char* file, int mode) noexcept {
  static const auto open =
      reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  if (is_preloaded()) mode &= ~RTLD_DEEPBIND;
  return open(file, mode);
}
int sqlite3_open16(const void* name, sqlite3** handle) {
  ready();
  static const auto open = next<int (*)(const void*, sqlite3**)>("sqlite3_open16");
  return open(name, handle);
}
}
