/* Lets SQLite's tests look into pools as they look into database files: pool_size, pool_read and
 *pool_write, which
 ** pool_files.tcl puts under `file size`, hexio_read and hexio_write. tools/sqlite-suite links it
 *into testfixture, in the place of
 ** SQLite's TestRecover_Init, the last function that makes Tcl commands. */
#include <stdio.h>
#include <string.h>
#include <tcl.h>

#include "sqlite3.h"

int TestRecover_Init(Tcl_Interp*);
int suite_test_init(Tcl_Interp*);

static int is_pool(const char* name) {
  static const char magic[8] = {'S', 'T', 'E', 'L', 'E', 'P', '\r', '\n'};
  char begin[8] = "";
  FILE* const file = fopen(name, "rb");
  if (file == 0) return 0;
  const size_t count = fread(begin, 1, sizeof begin, file);
  fclose(file);
  return count == sizeof begin && memcmp(begin, magic, sizeof magic) == 0;
}

/* A database as a file of SQLite's VFS. */
typedef struct {
  const char* name;
  sqlite3_file* file;
} opened;

static int open_pool(const char* name, opened* to) {
  char path[1024];
  int flags = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE;
  sqlite3_vfs* const vfs = sqlite3_vfs_find("stele");
  int code = vfs == 0 ? SQLITE_ERROR : vfs->xFullPathname(vfs, name, sizeof path, path);
  if (code != SQLITE_OK) return code;
  to->name = sqlite3_create_filename(path, "", "", 0, 0);
  to->file = sqlite3_malloc(vfs->szOsFile);
  memset(to->file, 0, vfs->szOsFile);
  code = vfs->xOpen(vfs, to->name, to->file, flags, &flags);
  return code;
}

static void close_pool(opened* pool) {
  if (pool->file->pMethods != 0) pool->file->pMethods->xClose(pool->file);
  sqlite3_free(pool->file);
  sqlite3_free_filename((char*)pool->name);
}

static int write_pool(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  const sqlite3_io_methods* const m = file->pMethods;
  int code = m->xLock(file, SQLITE_LOCK_SHARED);
  if (code == SQLITE_OK) code = m->xLock(file, SQLITE_LOCK_RESERVED);
  if (code == SQLITE_OK) code = m->xLock(file, SQLITE_LOCK_EXCLUSIVE);
  if (code == SQLITE_OK) code = m->xWrite(file, from, size, at);
  if (code == SQLITE_OK) code = m->xFileControl(file, SQLITE_FCNTL_SYNC, 0);
  if (code == SQLITE_OK) code = m->xFileControl(file, SQLITE_FCNTL_COMMIT_PHASETWO, 0);
  m->xUnlock(file, SQLITE_LOCK_NONE);
  return code;
}

static int fail(Tcl_Interp* tcl, const char* name, int code) {
  Tcl_AppendResult(tcl, name, ": ", sqlite3_errstr(code), (char*)0);
  return TCL_ERROR;
}

static int pool_is(ClientData d, Tcl_Interp* tcl, int count, Tcl_Obj* const words[]) {
  (void)d;
  Tcl_SetObjResult(tcl, Tcl_NewBooleanObj(count == 2 && is_pool(Tcl_GetString(words[1]))));
  return TCL_OK;
}

/* pool_here: whether databases are pools. */
static int pool_here(ClientData d, Tcl_Interp* tcl, int count, Tcl_Obj* const words[]) {
  (void)d, (void)count, (void)words;
  Tcl_SetObjResult(tcl, Tcl_NewBooleanObj(sqlite3_vfs_find("stele") != 0));
  return TCL_OK;
}

/* pool_size NAME; pool_read NAME OFFSET COUNT; pool_write NAME OFFSET BYTES */
static int pool_do(ClientData d, Tcl_Interp* tcl, int count, Tcl_Obj* const words[]) {
  const char what = *(const char*)d;
  opened pool = {0, 0};
  Tcl_WideInt at = 0;
  int size = 0;
  if (count != (what == 's' ? 2 : 4)) return fail(tcl, Tcl_GetString(words[0]), SQLITE_MISUSE);
  const char* const name = Tcl_GetString(words[1]);
  if (count == 4 && Tcl_GetWideIntFromObj(tcl, words[2], &at) != TCL_OK) return TCL_ERROR;
  if (what == 'r' && Tcl_GetIntFromObj(tcl, words[3], &size) != TCL_OK) return TCL_ERROR;
  int code = open_pool(name, &pool);
  if (code == SQLITE_OK && what == 's') {
    sqlite3_int64 bytes = 0;
    code = pool.file->pMethods->xFileSize(pool.file, &bytes);
    Tcl_SetObjResult(tcl, Tcl_NewWideIntObj(bytes));
  } else if (code == SQLITE_OK && what == 'r') {
    Tcl_Obj* const bytes = Tcl_NewObj();
    code = pool.file->pMethods->xRead(pool.file, Tcl_SetByteArrayLength(bytes, size), size, at);
    if (code == SQLITE_IOERR_SHORT_READ) code = SQLITE_OK;
    Tcl_SetObjResult(tcl, bytes);
  } else if (code == SQLITE_OK) {
    const void* const bytes = Tcl_GetByteArrayFromObj(words[3], &size);
    code = write_pool(pool.file, bytes, size, at);
  }
  if (pool.file != 0) close_pool(&pool);
  return code == SQLITE_OK ? TCL_OK : fail(tcl, name, code);
}

int suite_test_init(Tcl_Interp* tcl) {
  Tcl_CreateObjCommand(tcl, "pool_is", pool_is, 0, 0);
  Tcl_CreateObjCommand(tcl, "pool_here", pool_here, 0, 0);
  Tcl_CreateObjCommand(tcl, "pool_size", pool_do, (ClientData) "s", 0);
  Tcl_CreateObjCommand(tcl, "pool_read", pool_do, (ClientData) "r", 0);
  Tcl_CreateObjCommand(tcl, "pool_write", pool_do, (ClientData) "w", 0);
  const int code = TestRecover_Init(tcl);
  return code != TCL_OK ? code : Tcl_EvalFile(tcl, PRELUDE);
}
