// Registration in a program that links SQLite and this library.
#include <stele/sqlite.h>

#include "vfs.h"

extern "C" int stele_sqlite_register(int make_default) {
  return stele::sqlite::register_vfs(make_default != 0);
}
