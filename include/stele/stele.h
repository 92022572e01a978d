/* stele.h: pools and key-value stores for programs in C, and for languages that call C.
 *
 * Start with stele_pool_open() and stele_update(). Every function returns STELE_OK (0) or a
 * negative error code; stele_error_message() has the sentence. stele_kv_open() is the way to a
 * key-value store. A pool is the same file that stele::pool<Root> of <stele/pool.h> opens: a root
 * of root_size bytes, zero at first, and what it points to. Its memory is read and changed only by
 * the functions that take a stele_tx; a plain load may see anything, a plain store is torn by a
 * crash.
 *
 * Thread safety: a handle may be used from any number of threads at once, except by close. No
 * exception of C++ leaves this library, and none may cross it: bodies must not throw, nor leave by
 * longjmp. A child of fork must open its pools anew.
 */
#ifndef STELE_STELE_H
#define STELE_STELE_H

#include <stddef.h>
#include <stdint.h>

/* On functions whose code must be looked at; a cast to void says that it need not be. */
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

/* What went wrong; the names are those of stele::errc (<stele/error.h>), where each is explained.
 */
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
  STELE_NO_MEMORY = -100, /* of the process, not of the pool */
  STELE_RETRY = -101      /* inside a body only: return, it is run again */
};

/* The version of the library, "0.1.0". */
const char* stele_version(void);
/* The name of a code, "in_use"; "ok" for 0, "unknown" for others. */
const char* stele_code_name(int code);
/* The sentence of the last error of this thread, never null: what, where, what to do. Good until
 * the thread's next call. */
const char* stele_error_message(void);

/* ---- Pools ---- */

typedef struct stele_pool stele_pool;

enum { STELE_STM = 0, STELE_SINGLE_WRITER = 1, STELE_EXTERNAL = 2 }; /* stele::concurrency */
enum { STELE_DURABLE = 0, STELE_ORDERED = 1 };                       /* stele::durability */

/* Set by STELE_OPTIONS_INIT; later versions of the library add members at the end. A null text is
 * the default. */
typedef struct stele_options {
  size_t size;           /* of this struct, as the program was compiled with it */
  size_t create_size;    /* bytes; 0: the pool must exist. Otherwise it is created when the path is
                            free */
  const char* layout;    /* name of the data's layout; must match the pool's */
  const char* mechanism; /* default: "default" */
  const char* media;     /* default: "auto" */
  int policy;            /* STELE_STM, ... */
  int no_background;     /* not 0: no thread of the library's own */
  size_t log_size;       /* bytes of each thread's log, only when creating; 0: by pool size */
  size_t log_count; /* logs, so threads that commit at once, only when creating; 0: by pool size */
} stele_options;
#define STELE_OPTIONS_INIT {sizeof(stele_options), 0, NULL, NULL, NULL, 0, 0, 0, 0}

/* Opens the pool at `path` into *pool; creates it first when it does not exist and create_size is
 * set. A null `options` is STELE_OPTIONS_INIT. root_size: bytes of the root object, as when the
 * pool was made. An unclean pool is recovered: every acknowledged commit is there, no other is in
 * part. On an error *pool is null and the file as it was. */
STELE_CHECKED int stele_pool_open(const char* path, const stele_options* options, size_t root_size,
                                  stele_pool** pool);
/* Ends the pool's use: everything durable, marked clean. The handle is gone also when an error
 * comes back, except with STELE_IN_USE: a transaction runs, nothing has happened. Null is nothing.
 */
STELE_CHECKED int stele_pool_close(stele_pool* pool);
/* When this returns STELE_OK, every commit that had returned before is durable. */
STELE_CHECKED int stele_pool_sync(stele_pool* pool);
/* "power", "power, cache included", "process" or "none": the strongest event that a commit
 * survives. The text lives as long as the handle. */
STELE_CHECKED int stele_pool_durability(const stele_pool* pool, const char** to);
/* The name of the mechanism; likewise. */
STELE_CHECKED int stele_pool_mechanism(const stele_pool* pool, const char** to);

typedef struct stele_space {
  uint64_t size_bytes;   /* of the file */
  uint64_t log_bytes;    /* header and logs */
  uint64_t used_bytes;   /* in allocated blocks */
  uint64_t free_bytes;   /* allocatable */
  uint64_t largest_free; /* the largest single allocation that fits now */
} stele_space;
typedef struct stele_counters { /* since the pool was opened; exact when no transaction runs */
  uint64_t commits, aborts, reads;
  uint64_t fences, flushed_lines, streamed_bytes, stored_bytes;
  uint64_t truncations, log_spills;
} stele_counters;
/* `size`: sizeof *to, as the program was compiled with it. */
STELE_CHECKED int stele_pool_space(stele_pool* pool, stele_space* to, size_t size);
STELE_CHECKED int stele_pool_counters(const stele_pool* pool, stele_counters* to, size_t size);

/* ---- Transactions ---- */

/* The running transaction, good until the body ends and in the body's thread only. */
typedef struct stele_tx stele_tx;

typedef int (*stele_update_body)(stele_tx* tx, void* root, void* arg);
typedef int (*stele_read_body)(stele_tx* tx, const void* root, void* arg);

/* Runs the body as one atomic transaction and commits it: durable when STELE_OK comes back
 * (STELE_ORDERED: ordered), nothing changed when anything else does.
 *
 * The body may run several times (conflicts), so it gives back what it takes outside the pool
 * before it returns, and sets results instead of adding to them. A call inside that returns
 * anything but STELE_OK has ended the attempt: all further calls return the same, and the body
 * returns promptly, with any value; the library then runs it again or rolls back and returns the
 * error. A body that returns another value than 0 of its own (positive, say) rolls back, and that
 * value comes back.
 *
 * Inside a body of the same pool the call joins that transaction: the inner body runs on the outer
 * tx, and its value is the outer body's to act on. Inside one of another pool: STELE_NESTED. */
STELE_CHECKED int stele_update(stele_pool* pool, stele_update_body body, void* arg, int durability);
/* Likewise on one consistent state, without any change: stores are STELE_READ_ONLY. */
STELE_CHECKED int stele_read(stele_pool* pool, stele_read_body body, void* arg);

/* Copies n bytes of the pool, as the transaction sees them, to ordinary memory, and back. A place
 * of the pool outside it is STELE_INVALID_ARGUMENT. Words of 8 bytes at multiples of 8 are loaded
 * and stored fastest. */
STELE_CHECKED int stele_load(stele_tx* tx, void* to, const void* from, size_t n);
STELE_CHECKED int stele_store(stele_tx* tx, void* to, const void* from, size_t n);
STELE_CHECKED int stele_load_u64(
    stele_tx* tx, uint64_t* to,
    const uint64_t* from); /* the place in the pool is a multiple of 8 */
STELE_CHECKED int stele_store_u64(stele_tx* tx, uint64_t* to, uint64_t value);

/* A zeroed block of the pool, at a multiple of 16, into *block; it exists after the commit only.
 * STELE_FULL when it does not fit. */
STELE_CHECKED int stele_alloc(stele_tx* tx, size_t size, void** block);
/* Frees what stele_alloc gave, when the transaction commits; null is nothing. */
STELE_CHECKED int stele_free(stele_tx* tx, void* block);

/* A pointer in a pool: the distance from itself to its target, 0 for null; what stele::field<T*>
 * is. A pool maps at any address. */
typedef struct stele_ptr {
  int64_t distance;
} stele_ptr;
STELE_CHECKED int stele_get_ptr(stele_tx* tx, const stele_ptr* from, void** to);
STELE_CHECKED int stele_set_ptr(stele_tx* tx, stele_ptr* at, void* target);

/* ---- Key-value stores ---- */

/* stele::kv of <stele/kv.h>: byte strings under byte strings of 1 to 65,536 bytes, in the order of
 * the bytes. Every call is a transaction of its own, or a part of the body that runs in this thread
 * on the same store. */
typedef struct stele_kv stele_kv;

/* As stele_pool_open; the layout is "stele.kv" or null. Null is nothing to close. */
STELE_CHECKED int stele_kv_open(const char* path, const stele_options* options, stele_kv** kv);
STELE_CHECKED int stele_kv_close(stele_kv* kv);
STELE_CHECKED int stele_kv_sync(stele_kv* kv);
STELE_CHECKED int stele_kv_durability(const stele_kv* kv, const char** to);
/* STELE_CORRUPT when indexes and items contradict each other. Time goes with the store's size, as
 * that of stele_kv_count. */
STELE_CHECKED int stele_kv_check(const stele_kv* kv);
STELE_CHECKED int stele_kv_count(const stele_kv* kv, uint64_t* items);

/* Inserts or overwrites. STELE_FULL when it does not fit. */
STELE_CHECKED int stele_kv_put(stele_kv* kv, const void* key, size_t key_size, const void* value,
                               size_t value_size, int durability);
/* STELE_NOT_FOUND when there is no such key: nothing has changed, and a body goes on. */
STELE_CHECKED int stele_kv_erase(stele_kv* kv, const void* key, size_t key_size, int durability);
/* Copies the value, at most `room` bytes of it, and says in *size how long it is. STELE_NOT_FOUND
 * likewise. `to` may be null when room is 0. */
STELE_CHECKED int stele_kv_get(const stele_kv* kv, const void* key, size_t key_size, void* to,
                               size_t room, size_t* size);

/* stele_update and stele_read for stores: calls on `kv` in the body are parts of one transaction.
 */
typedef int (*stele_kv_body)(stele_tx* tx, stele_kv* kv, void* arg);
STELE_CHECKED int stele_kv_update(stele_kv* kv, stele_kv_body body, void* arg, int durability);
STELE_CHECKED int stele_kv_read(stele_kv* kv, stele_kv_body body, void* arg);

/* Goes over the items with from <= key < to in order; a `to` of no bytes has no bound. Items are
 * read in pages, each of one state; the store may change meanwhile, and must outlive the cursor.
 * One thread at a time. */
typedef struct stele_kv_cursor stele_kv_cursor;
typedef struct stele_kv_item {
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
} stele_kv_item;
STELE_CHECKED int stele_kv_walk(const stele_kv* kv, const void* from, size_t from_size,
                                const void* to, size_t to_size, stele_kv_cursor** cursor);
/* The next item, good until the next call with this cursor. STELE_NOT_FOUND behind the last. */
STELE_CHECKED int stele_kv_next(stele_kv_cursor* cursor, stele_kv_item* item);
void stele_kv_cursor_free(stele_kv_cursor* cursor); /* null is nothing */

#ifdef __cplusplus
}
#endif

#endif
