// SQLite's interface: linked with libsqlite3 in the static library, fetched from the program's
// SQLite in the loadable module.
#pragma once

#ifdef STELE_SQLITE_MODULE
#include <sqlite3ext.h>
extern "C" {
SQLITE_EXTENSION_INIT3
}
#else
#include <sqlite3.h>
#endif
