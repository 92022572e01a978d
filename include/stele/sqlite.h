/* SQLite on a pool, registered in a program that links SQLite and libstele_sqlite_static.a.
 *
 *   #include <sqlite3.h>
 *   sqlite3* db = NULL;
 *   stele_sqlite_register(0);
 *   int code = sqlite3_open_v2("file:shop.stele?vfs=stele", &db,
 *                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL);
 *   if (code != SQLITE_OK) return code;
 *
 * Then a database is a pool file, a COMMIT is one durable transaction of the pool, and there is no
 * journal on media. Programs that link nothing load libstele_sqlite.so: docs/guide/sqlite.md. */
#ifndef STELE_SQLITE_H
#define STELE_SQLITE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the VFS "stele" known to SQLite; if make_default, databases that name no VFS use it.
 * Returns SQLITE_OK or SQLite's code. Calls after the first only change what is the default. Call
 * it before other threads use SQLite. */
int stele_sqlite_register(int make_default);

#ifdef __cplusplus
}
#endif

#endif
