/* stele.h: pools and key-value stores for programs in C, and for languages that call C.
 *
 *   static int set(stele_tx* tx, void* root, void* arg) { return stele_store_u64(tx, root, 42); }
 *
 *   stele_options options = STELE_OPTIONS_INIT;
 *   stele_pool* pool = NULL;
 *   options.create_size = 16 << 20;
 *   int code = stele_pool_open("answer.stele", &options, sizeof(uint64_t), &pool);
 *   if (code == STELE_OK) code = stele_update(pool, set, NULL, STELE_DURABLE);
 *
 * Start with stele_pool_open() and stele_update(), or stele_kv_open() for a key-value store. Every
 * function returns STELE_OK (0) or a negative error code; stele_error_message() has the message. A
 * pool is the same file that stele::pool<Root> of <stele/pool.h> opens: a root of root_size bytes,
 * zero at first, and everything it points to. Access its memory only through the functions that
 * take a stele_tx: a plain load may see any value, and a crash can tear a plain store.
 *
 * Thread safety: any number of threads may use a handle at once, except for close. No C++ exception
 * leaves this library, and none may pass through it: a body must not throw and must not longjmp
 * out. A child process after fork must open its pools again.
 */
#ifndef STELE_STELE_H
#define STELE_STELE_H

#include <stddef.h>
#include <stdint.h>

/* Marks functions whose code must be checked; a cast to void ignores it on purpose. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202000L)
#define STELE_CHECKED [[nodiscard]]
#elif defined(__GNUC__)
#define STELE_CHECKED __attribute__((warn_unused_result))
#else
#define STELE_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Error codes. The names are those of stele::errc; <stele/error.h> explains them. */
enum {
  STELE_OK = 0,
  STELE_INVALID_ARGUMENT = -1,
  STELE_NOT_FOUND = -2,
  STELE_EXISTS = -3,
  STELE_PERMISSION = -4,
  STELE_READ_ONLY = -5,
  STELE_IN_USE = -6,
  STELE_NOT_A_POOL = -7,
  STELE_VERSION_DIFFERS = -8,
  STELE_CORRUPT = -9,
  STELE_LOST = -10,
  STELE_LAYOUT = -11,
  STELE_FULL = -12,
  STELE_IO = -13,
  STELE_UNSUPPORTED = -14,
  STELE_NESTED = -15,
  STELE_CANCELLED = -16,
  STELE_POISONED = -17,
  STELE_CONFLICT = -18,
  STELE_NO_MEMORY = -100, /* in the process, not in the pool */
  STELE_RETRY = -101      /* in a body only: return, and it is run again */
};

/* The version of the library, "0.1.0". */
const char* stele_version(void);
/* The name of a code, e.g. "in_use"; "ok" for 0, "unknown" for an unknown code. */
const char* stele_code_name(int code);
/* The message of this thread's last error, never null: what, where, what to do. Valid until the
 * thread's next call. */
const char* stele_error_message(void);

/* ---- Pools ---- */

typedef struct stele_pool stele_pool;

enum { STELE_STM = 0, STELE_SINGLE_WRITER = 1, STELE_EXTERNAL = 2 }; /* stele::concurrency */
enum { STELE_DURABLE = 0, STELE_ORDERED = 1 };                       /* stele::durability */
/* Whether opening verifies home by its block checksums: up to 256 MiB, always, never. */
enum { STELE_VERIFY_AUTOMATIC = 0, STELE_VERIFY_ALWAYS = 1, STELE_VERIFY_NEVER = 2 };

typedef struct stele_tx stele_tx;
/* Called while a pool with an older layout version is opened: changes its data from `version` to
 * stele_options.layout_version. The rules of an update's body hold; all changes are one transaction
 * with the opening. *root and *root_size are the pool's root; for one of another size, allocate it,
 * free the former one, and set both. Another value than 0: the pool is unchanged and not opened. */
typedef int (*stele_migrate)(stele_tx* tx, uint64_t version, void** root, size_t* root_size,
                             void* arg);

/* Initialize with STELE_OPTIONS_INIT; later versions of the library add members at the end. A null
 * string means the default. */
typedef struct stele_options {
  size_t size;           /* sizeof this struct when the program was compiled */
  size_t create_size;    /* bytes; 0: the pool must exist. Otherwise a missing pool is created */
  const char* layout;    /* name of the data's layout; must match the pool's */
  const char* mechanism; /* "default", if it is NULL, or "none" */
  const char* media;     /* default: "auto" */
  int policy;            /* STELE_STM, ... */
  int no_background;     /* not 0: the library starts no thread */
  size_t log_size;       /* bytes of each thread's log; 0: by pool size. Only at creation */
  size_t log_count;      /* how many threads can commit at once; 0: by pool size. At creation */
  size_t max_size;       /* bytes that a full pool may grow to by itself; 0: it keeps its size */
  const char* require; /* "power" or "process": what commits must survive, else it is not opened */
  uint64_t layout_version; /* of the layout that this program knows; another one is refused */
  int verify;              /* STELE_VERIFY_AUTOMATIC, ... */
  stele_migrate migrate;   /* null: a pool with an older layout version is refused */
  void* migrate_arg;
} stele_options;
#define STELE_OPTIONS_INIT                                                 \
  {sizeof(stele_options),  0,    NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0, \
   STELE_VERIFY_AUTOMATIC, NULL, NULL}

/* Opens the pool at `path` into *pool. If the file does not exist and create_size is set, creates
 * it first. A null `options` means STELE_OPTIONS_INIT. root_size: bytes of the root object, as at
 * creation. A pool that was not closed is recovered: every acknowledged commit is complete, no
 * other commit is there in part. On an error *pool is null and the file is unchanged. */
STELE_CHECKED int stele_pool_open(const char* path, const stele_options* options, size_t root_size,
                                  stele_pool** pool);
/* Opens the pool for reading, beside the process that has it open for writing, if one has. Each
 * stele_read() sees one state, with every commit that any process had acknowledged before it began;
 * no writer waits for a reader, and none is harmed by a killed one. stele_update(),
 * stele_pool_grow() and stele_pool_check() return STELE_READ_ONLY; stele_pool_backup() works while
 * another process has the pool open. Of the options only layout and layout_version count.
 * STELE_NOT_FOUND: also a pool without a root yet; STELE_IN_USE: the process that has it open does
 * not answer for two seconds; STELE_UNSUPPORTED: a pool of log_structured. */
STELE_CHECKED int stele_pool_open_read_only(const char* path, const stele_options* options,
                                            size_t root_size, stele_pool** pool);
/* Makes every commit durable, marks the pool as closed and frees the handle, also on an error.
 * Exception: STELE_IN_USE, a transaction is running; then nothing has happened. Null does nothing.
 */
STELE_CHECKED int stele_pool_close(stele_pool* pool);
/* On STELE_OK every commit that had returned before the call is durable. */
STELE_CHECKED int stele_pool_sync(stele_pool* pool);
/* Verifies the heap and the block checksums; transactions wait meanwhile. STELE_CORRUPT: the
 * message says what is wrong and where. */
STELE_CHECKED int stele_pool_check(stele_pool* pool);
/* Lengthens the pool to size_bytes; does nothing if it is that long. Transactions wait meanwhile.
 * After a crash the pool has the old size or the new one. STELE_FULL: the device has no room. */
STELE_CHECKED int stele_pool_grow(stele_pool* pool, size_t size_bytes);
/* Called from time to time in the calling thread, with bytes done and bytes in all. Another value
 * than 0 ends the backup with STELE_CANCELLED. */
typedef int (*stele_progress)(uint64_t done, uint64_t all, void* arg);
/* Writes a copy of the pool, as it is at the start, to `path`, where nothing may be. Transactions
 * go on. Durable on return; after a crash or an error there is no file. `report` may be null. */
STELE_CHECKED int stele_pool_backup(stele_pool* pool, const char* path, stele_progress report,
                                    void* arg);
/* "power", "power, cache included", "process" or "none": the strongest event that a commit
 * survives. The string is valid as long as the handle. */
STELE_CHECKED int stele_pool_durability(const stele_pool* pool, const char** to);
/* The name of the mechanism; valid as long as the handle. */
STELE_CHECKED int stele_pool_mechanism(const stele_pool* pool, const char** to);

typedef struct stele_space {
  uint64_t size_bytes;   /* the file */
  uint64_t log_bytes;    /* the header and all logs */
  uint64_t used_bytes;   /* allocated blocks */
  uint64_t free_bytes;   /* allocatable */
  uint64_t largest_free; /* the largest single allocation that fits now */
} stele_space;
typedef struct stele_counters { /* since open; exact while no transaction runs */
  uint64_t commits, aborts, reads;
  uint64_t fences, flushed_lines, streamed_bytes, stored_bytes;
  uint64_t truncations, log_spills;
} stele_counters;
/* `size`: sizeof *to when the program was compiled. */
STELE_CHECKED int stele_pool_space(stele_pool* pool, stele_space* to, size_t size);
STELE_CHECKED int stele_pool_counters(const stele_pool* pool, stele_counters* to, size_t size);

/* ---- Transactions ---- */

/* stele_tx is the running transaction: valid until the body ends, and only in the body's thread. */

typedef int (*stele_update_body)(stele_tx* tx, void* root, void* arg);
typedef int (*stele_read_body)(stele_tx* tx, const void* root, void* arg);

/* Runs the body as one atomic transaction and commits it. On STELE_OK the change is durable (with
 * STELE_ORDERED: ordered); on any other code nothing has changed.
 *
 * After a conflict the body runs again. So it must release what it acquires outside the pool before
 * it returns, and it must set results, not add to them. It must not wait for another thread, which
 * may be waiting for this transaction. If a call inside returns another code than STELE_OK, the
 * attempt has ended: all further calls return the same code, and the body must return soon, with
 * any value. The library then runs the body again, or rolls back and returns the error. If the body
 * returns a value of its own other than 0 (a positive one, for example), the transaction is rolled
 * back and that value is returned.
 *
 * Inside a body of the same pool the call joins that transaction: the inner body runs on the outer
 * tx, and the outer body handles its value. Inside a body of another pool: STELE_NESTED. */
STELE_CHECKED int stele_update(stele_pool* pool, stele_update_body body, void* arg, int durability);
/* As stele_update, on one consistent state and without changes: stores return STELE_READ_ONLY. */
STELE_CHECKED int stele_read(stele_pool* pool, stele_read_body body, void* arg);

/* Copy n bytes from the pool, as the transaction sees them, to ordinary memory, and back. A pool
 * address outside the pool returns STELE_INVALID_ARGUMENT. Aligned words of 8 bytes are fastest. */
STELE_CHECKED int stele_load(stele_tx* tx, void* to, const void* from, size_t n);
STELE_CHECKED int stele_store(stele_tx* tx, void* to, const void* from, size_t n);
STELE_CHECKED int stele_load_u64(stele_tx* tx, uint64_t* to,
                                 const uint64_t* from); /* the pool address is a multiple of 8 */
STELE_CHECKED int stele_store_u64(stele_tx* tx, uint64_t* to, uint64_t value);

/* Stores in *block the address of a zeroed block of the pool, aligned to 16 bytes. The block is
 * allocated only if the transaction commits. STELE_FULL if there is no room. */
STELE_CHECKED int stele_alloc(stele_tx* tx, size_t size, void** block);
/* Frees a block from stele_alloc when the transaction commits; null does nothing. */
STELE_CHECKED int stele_free(stele_tx* tx, void* block);

/* A pointer in a pool: the distance from itself to its target, 0 for null, as stele::field<T*>. So
 * a pool can be mapped at any address. */
typedef struct stele_ptr {
  int64_t distance;
} stele_ptr;
STELE_CHECKED int stele_get_ptr(stele_tx* tx, const stele_ptr* from, void** to);
STELE_CHECKED int stele_set_ptr(stele_tx* tx, stele_ptr* at, void* target);

/* ---- Leaks ---- */

/* For tests and maintenance: which blocks are in use, and are not reached from the root? */

typedef struct stele_visitor stele_visitor;
/* Reports a block from stele_alloc that the pool's data refers to; null does nothing. */
STELE_CHECKED int stele_visit(stele_visitor* to, const void* block);
/* The body of a read: calls stele_visit for every block that the root leads to, in any order; the
 * root itself is known. The rules of bodies hold. Another value than 0 ends the search. */
typedef int (*stele_walk)(stele_tx* tx, const void* root, stele_visitor* to, void* arg);
/* Called with a leaked block, in bytes from the begin of the pool; or with size_bytes 0, if the
 * walk has visited a place where no block in use begins: it was freed, and is still pointed to. */
typedef void (*stele_each_block)(uint64_t offset, uint64_t size_bytes, void* arg);
typedef struct stele_leaks {
  uint64_t reached_blocks; /* the root is one */
  uint64_t leaked_blocks, leaked_bytes;
  uint64_t dangling; /* visited, but not in use */
} stele_leaks;
/* Compares the blocks in use with those that the walk visits; changes nothing. `each` and `leaks`
 * may be null; `size`: sizeof *leaks when the program was compiled; `arg` is for both functions.
 * Other threads may commit meanwhile; if they do so all the time: STELE_IN_USE. STELE_CORRUPT, if
 * the heap is; STELE_NESTED inside a body; the walk's own value, if that is not 0. */
STELE_CHECKED int stele_pool_find_leaks(stele_pool* pool, stele_walk walk, stele_each_block each,
                                        void* arg, stele_leaks* leaks, size_t size);

/* ---- Key-value stores ---- */

/* stele::kv of <stele/kv.h>: byte strings under keys of 1 to 65,536 bytes, in the order of the
 * keys' bytes. Every call is a transaction of its own, or a part of the transaction whose body runs
 * in this thread on the same store. */
typedef struct stele_kv stele_kv;

/* As stele_pool_open; the layout must be "stele.kv" or null. */
STELE_CHECKED int stele_kv_open(const char* path, const stele_options* options, stele_kv** kv);
/* As stele_pool_open_read_only: changes return STELE_READ_ONLY. */
STELE_CHECKED int stele_kv_open_read_only(const char* path, stele_kv** kv);
/* Frees the handle, also on an error; with the last handle of a pool's stores the pool is closed,
 * as by stele_pool_close. Exception: STELE_IN_USE, a transaction is running; then nothing has
 * happened. Null does nothing. */
STELE_CHECKED int stele_kv_close(stele_kv* kv);
STELE_CHECKED int stele_kv_sync(stele_kv* kv);
STELE_CHECKED int stele_kv_durability(const stele_kv* kv, const char** to);
/* STELE_CORRUPT if indexes and items are inconsistent. O(size of the store), as is stele_kv_count.
 */
STELE_CHECKED int stele_kv_check(const stele_kv* kv);
STELE_CHECKED int stele_kv_count(const stele_kv* kv, uint64_t* items);

/* Inserts or overwrites. STELE_FULL if there is no room. */
STELE_CHECKED int stele_kv_put(stele_kv* kv, const void* key, size_t key_size, const void* value,
                               size_t value_size, int durability);
/* STELE_NOT_FOUND if there is no such key: nothing has changed, and a body may go on. */
STELE_CHECKED int stele_kv_erase(stele_kv* kv, const void* key, size_t key_size, int durability);
/* Copies at most `room` bytes of the value and stores its length in *size. STELE_NOT_FOUND as for
 * erase. `to` may be null if room is 0. */
STELE_CHECKED int stele_kv_get(const stele_kv* kv, const void* key, size_t key_size, void* to,
                               size_t room, size_t* size);

typedef struct stele_kv_item {
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
} stele_kv_item;
/* Puts all items in one transaction, in order, or none: of equal keys the last wins. */
STELE_CHECKED int stele_kv_put_many(stele_kv* kv, const stele_kv_item* items, size_t count,
                                    int durability);
/* Called with the number of an item and its value; null: the key is not there. The value is valid
 * during the call. The function must not change the store. */
typedef void (*stele_kv_each_value)(size_t i, const char* value, size_t value_size, void* arg);
/* Gets the keys of all items (their values are not looked at), all of one state, faster than one by
 * one: calls `each` for every item, in order. After a conflict it begins again with the first item,
 * so the last call for an item counts. */
STELE_CHECKED int stele_kv_get_many(const stele_kv* kv, const stele_kv_item* items, size_t count,
                                    stele_kv_each_value each, void* arg);

/* As stele_update and stele_read: all calls on `kv` in the body are one transaction. */
typedef int (*stele_kv_body)(stele_tx* tx, stele_kv* kv, void* arg);
STELE_CHECKED int stele_kv_update(stele_kv* kv, stele_kv_body body, void* arg, int durability);
STELE_CHECKED int stele_kv_read(stele_kv* kv, stele_kv_body body, void* arg);

/* ---- Snapshots ---- */

/* A pool, or all stores of a store's pool, as it was at one moment, kept until it is freed. Writers
 * go on, and keep the pages of 4 KiB that they change in memory for it. It is nothing on media. */
typedef struct stele_snapshot stele_snapshot;
/* Waits until running transactions have ended. The snapshot has every commit that had returned.
 * STELE_NESTED inside a body; STELE_IN_USE, when there are 15; STELE_UNSUPPORTED, of pools of
 * log_structured and of pools that are open for reading only. */
STELE_CHECKED int stele_pool_snapshot(stele_pool* pool, stele_snapshot** snapshot);
STELE_CHECKED int stele_kv_snapshot(stele_kv* kv, stele_snapshot** snapshot);
/* Calls body(tx, arg) once. In it stele_read() and the reads of stores see the moment; changes
 * return STELE_READ_ONLY. The rules of bodies hold. One thread reads a snapshot at a time, others
 * wait. STELE_NESTED inside another body. */
typedef int (*stele_snapshot_body)(stele_tx* tx, void* arg);
STELE_CHECKED int stele_snapshot_read(stele_snapshot* snapshot, stele_snapshot_body body,
                                      void* arg);
/* Frees a snapshot; null does nothing. Before its pool is closed, which returns STELE_IN_USE while
 * there are snapshots. STELE_NESTED inside a body: then it is still there. */
STELE_CHECKED int stele_snapshot_free(stele_snapshot* snapshot);

/* Visits the items with from <= key < to, or those whose key begins with `prefix`, in either
 * direction; an empty `to` means no bound. Items are read in pages, each of one state. The store
 * may change between pages and must outlive the cursor. One thread at a time may use a cursor. */
typedef struct stele_kv_cursor stele_kv_cursor;
STELE_CHECKED int stele_kv_walk(const stele_kv* kv, const void* from, size_t from_size,
                                const void* to, size_t to_size, stele_kv_cursor** cursor);
STELE_CHECKED int stele_kv_walk_prefix(const stele_kv* kv, const void* prefix, size_t prefix_size,
                                       stele_kv_cursor** cursor);
/* Moves to the next item, or to the one before; a new cursor stands before the first and behind the
 * last. The item is valid until the next call with this cursor. STELE_NOT_FOUND: there is no
 * further one in this direction. After another error the cursor stands where it was. */
STELE_CHECKED int stele_kv_next(stele_kv_cursor* cursor, stele_kv_item* item);
STELE_CHECKED int stele_kv_prev(stele_kv_cursor* cursor, stele_kv_item* item);
/* Moves to the first item of the walk with a key not less than `key`; to the last one with a key
 * less than `key`. Otherwise as stele_kv_next. */
STELE_CHECKED int stele_kv_seek(stele_kv_cursor* cursor, const void* key, size_t key_size,
                                stele_kv_item* item);
STELE_CHECKED int stele_kv_seek_before(stele_kv_cursor* cursor, const void* key, size_t key_size,
                                       stele_kv_item* item);
void stele_kv_cursor_free(stele_kv_cursor* cursor); /* null does nothing */

/* Named stores of the pool, beside the one that stele_kv_open gave. They share its transactions: a
 * body of one may change several. A name has 1 to 255 bytes, none of them zero. */

/* A handle of the store of this name, to be closed. Not 0 in `create`: makes it if it is missing,
 * durable on return; else STELE_NOT_FOUND. STELE_NESTED inside a body. */
STELE_CHECKED int stele_kv_open_store(stele_kv* kv, const void* name, size_t name_size, int create,
                                      stele_kv** store);
/* Calls `each` with every name, in their order; valid during the call, with a zero byte after it.
 */
typedef void (*stele_kv_each_name)(const char* name, size_t name_size, void* arg);
STELE_CHECKED int stele_kv_stores(const stele_kv* kv, stele_kv_each_name each, void* arg);
/* Drops a store with all its items: at once for those who look, its space in steps. A crash on the
 * way leaves the rest to the next call, or the next opening. STELE_NOT_FOUND; STELE_IN_USE, while a
 * handle of that store is open; STELE_NESTED inside a body. */
STELE_CHECKED int stele_kv_drop_store(stele_kv* kv, const void* name, size_t name_size);

/* Items that expire: from their time on, by the system's clock, no call sees them. A plain put
 * takes the time away; the calls below keep it. Changes of the store remove expired items little by
 * little; so does a full pool. */

/* As stele_kv_put; the item expires after lifetime_ms milliseconds, at least 1. */
STELE_CHECKED int stele_kv_put_for(stele_kv* kv, const void* key, size_t key_size,
                                   const void* value, size_t value_size, uint64_t lifetime_ms,
                                   int durability);
/* The item expires at when_ms, in milliseconds since 1970; if that has passed, this is an erase. */
STELE_CHECKED int stele_kv_put_until(stele_kv* kv, const void* key, size_t key_size,
                                     const void* value, size_t value_size, int64_t when_ms,
                                     int durability);
/* When the item expires, in milliseconds since 1970; 0: never. STELE_NOT_FOUND as for erase. */
STELE_CHECKED int stele_kv_expiry(const stele_kv* kv, const void* key, size_t key_size,
                                  int64_t* when_ms);
/* Removes up to `limit` expired items, the earliest first. Stores how many in *removed, which may
 * be null. */
STELE_CHECKED int stele_kv_remove_expired(stele_kv* kv, uint64_t limit, uint64_t* removed);

/* Changes of one item by what it is; each is atomic. */

/* Puts if the value is `expected`; a null `expected`: if the key is not there. Stores in *put
 * whether it has put. */
STELE_CHECKED int stele_kv_put_if(stele_kv* kv, const void* key, size_t key_size,
                                  const void* expected, size_t expected_size, const void* value,
                                  size_t value_size, int* put, int durability);
/* Adds n to a counter, a value of eight bytes, little-endian; a missing key counts as 0. Stores the
 * new value in *sum, which may be null. STELE_INVALID_ARGUMENT: a value of another length, or the
 * sum overflows. */
STELE_CHECKED int stele_kv_add(stele_kv* kv, const void* key, size_t key_size, int64_t n,
                               int64_t* sum, int durability);
typedef struct stele_kv_value {
  const char* bytes; /* null: the key is not there */
  size_t size;
} stele_kv_value;
/* Called with the value of the key, once in each attempt; it may use no other call on the pool. It
 * may set *value to other bytes, which stay valid until stele_kv_modify returns, or to null bytes,
 * which erases the key. Another value than 0: the item stays as it is. */
typedef int (*stele_kv_change)(stele_kv_value* value, void* arg);
/* Puts what `change` makes of the key's value. Returns the value of `change`, or an error. */
STELE_CHECKED int stele_kv_modify(stele_kv* kv, const void* key, size_t key_size,
                                  stele_kv_change change, void* arg, int durability);

/* What a store consists of. Space is in bytes, as allocated. Expired items that have not been
 * removed count. */
typedef struct stele_statistics {
  uint64_t items, key_bytes, value_bytes, item_space;
  uint64_t hash_buckets, hash_space, tree_nodes, tree_space;
  uint64_t expiring_items, expired_items; /* with an expiry time; of these, whose time has passed */
  uint64_t clock_behind_ms; /* by how much the system's clock is behind that of the items */
} stele_statistics;
/* `size`: sizeof *to when the program was compiled. O(items). */
STELE_CHECKED int stele_kv_statistics(const stele_kv* kv, stele_statistics* to, size_t size);

#ifdef __cplusplus
}
#endif

#endif
