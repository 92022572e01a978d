/* stele.h from C: successes, every kind of error, roll-back, a forced conflict, and the content
 * after reopening. Prints each failed check, and exits with the number of failures.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct node {
  uint64_t key;
  stele_ptr next;
} node;
typedef struct root {
  uint64_t count, other;
  stele_ptr first;
  char text[100];
} root;

static char directory[64];
static char path[96], path_of_other[96];

static stele_pool* open_at(const char* where) {
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 8 << 20;
  stele_pool* pool = NULL;
  CHECK(stele_pool_open(where, &options, sizeof(root), &pool) == STELE_OK);
  return pool;
}

/* ---- bodies ---- */

static int push(stele_tx* tx, void* at, void* arg) {
  root* r = at;
  void *block = NULL, *first = NULL;
  uint64_t count = 0;
  int code = stele_alloc(tx, sizeof(node), &block);
  if (code == STELE_OK) code = stele_get_ptr(tx, &r->first, &first);
  if (code == STELE_OK) code = stele_store_u64(tx, &((node*)block)->key, *(uint64_t*)arg);
  if (code == STELE_OK) code = stele_set_ptr(tx, &((node*)block)->next, first);
  if (code == STELE_OK) code = stele_set_ptr(tx, &r->first, block);
  if (code == STELE_OK) code = stele_load_u64(tx, &count, &r->count);
  return code == STELE_OK ? stele_store_u64(tx, &r->count, count + 1) : code;
}

static int pop(stele_tx* tx, void* at, void* arg) {
  root* r = at;
  void *first = NULL, *next = NULL;
  uint64_t count = 0;
  int code = stele_get_ptr(tx, &r->first, &first);
  if (code == STELE_OK && first == NULL) return 1;
  if (code == STELE_OK) code = stele_load_u64(tx, arg, &((node*)first)->key);
  if (code == STELE_OK) code = stele_get_ptr(tx, &((node*)first)->next, &next);
  if (code == STELE_OK) code = stele_set_ptr(tx, &r->first, next);
  if (code == STELE_OK) code = stele_free(tx, first);
  if (code == STELE_OK) code = stele_load_u64(tx, &count, &r->count);
  return code == STELE_OK ? stele_store_u64(tx, &r->count, count - 1) : code;
}

/* Adds up the keys of the list, and checks that the root has its length. */
static int sum(stele_tx* tx, const void* at, void* arg) {
  const root* r = at;
  uint64_t total = 0, length = 0, count = 0, key = 0;
  void* n = NULL;
  for (int code = stele_get_ptr(tx, &r->first, &n); n != NULL; ++length) {
    if (code == STELE_OK) code = stele_load_u64(tx, &key, &((node*)n)->key);
    if (code == STELE_OK) code = stele_get_ptr(tx, &((node*)n)->next, &n);
    if (code != STELE_OK) return code;
    total += key;
  }
  int code = stele_load_u64(tx, &count, &r->count);
  *(uint64_t*)arg = total;
  return code != STELE_OK ? code : length == count ? 0 : 9;
}

static uint64_t sum_of(stele_pool* pool) {
  uint64_t total = 0;
  CHECK(stele_read(pool, sum, &total) == STELE_OK);
  return total;
}

/* ---- tests ---- */

static void changes_survive_closing(void) {
  stele_pool* pool = open_at(path);
  for (uint64_t key = 1; key <= 100; ++key)
    CHECK(stele_update(pool, push, &key, key % 2 ? STELE_DURABLE : STELE_ORDERED) == STELE_OK);
  CHECK(sum_of(pool) == 5050);
  uint64_t popped = 0;
  CHECK(stele_update(pool, pop, &popped, STELE_DURABLE) == STELE_OK);
  CHECK(popped == 100);
  CHECK(stele_pool_sync(pool) == STELE_OK);
  CHECK(stele_pool_close(pool) == STELE_OK);
  pool = open_at(path);
  CHECK(sum_of(pool) == 4950);
  CHECK(stele_pool_close(pool) == STELE_OK);
}

static int stop_at_once(uint64_t done, uint64_t all, void* arg) {
  ++*(int*)arg;
  return done <= all;
}

static void a_pool_is_checked_copied_and_grown(void) {
  char copy[300];
  (void)snprintf(copy, sizeof copy, "%s.copy", path);
  stele_pool *pool = open_at(path), *second = NULL;
  const uint64_t before = sum_of(pool);
  CHECK(stele_pool_check(pool) == STELE_OK);
  int calls = 0;
  CHECK(stele_pool_backup(pool, copy, stop_at_once, &calls) == STELE_CANCELLED && calls == 1);
  CHECK(stele_pool_open(copy, NULL, sizeof(root), &second) == STELE_NOT_FOUND);
  CHECK(stele_pool_backup(pool, copy, NULL, NULL) == STELE_OK);
  CHECK(stele_pool_backup(pool, copy, NULL, NULL) == STELE_EXISTS);
  CHECK(stele_pool_open(copy, NULL, sizeof(root), &second) == STELE_OK);
  stele_space space;
  CHECK(stele_pool_grow(second, 12 << 20) == STELE_OK && stele_pool_grow(second, 1) == STELE_OK);
  CHECK(stele_pool_space(second, &space, sizeof space) == STELE_OK);
  CHECK(space.size_bytes >= 12 << 20 && sum_of(second) == before);
  CHECK(stele_pool_grow(second, SIZE_MAX) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_close(second) == STELE_OK);
  CHECK(stele_pool_check(NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_grow(NULL, 1) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_backup(pool, NULL, NULL, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_close(pool) == STELE_OK);
  CHECK(remove(copy) == 0);
}

static void options_say_what_a_pool_must_be(void) {
  char other[300];
  (void)snprintf(other, sizeof other, "%s.other", path);
  stele_options options = STELE_OPTIONS_INIT;
  stele_pool* pool = NULL;
  options.create_size = 1 << 20;
  options.verify = 3;
  CHECK(stele_pool_open(other, &options, sizeof(root), &pool) == STELE_INVALID_ARGUMENT);
  options.verify = STELE_VERIFY_ALWAYS;
  options.require = "miracles";
  CHECK(stele_pool_open(other, &options, sizeof(root), &pool) == STELE_INVALID_ARGUMENT);
  options.require = "process";
  options.layout_version = 2;
  options.max_size = 4 << 20;
  CHECK(stele_pool_open(other, &options, sizeof(root), &pool) == STELE_OK);
  for (uint64_t key = 1; key <= 30000; ++key) /* more than fit at first */
    CHECK(stele_update(pool, push, &key, STELE_DURABLE) == STELE_OK);
  CHECK(stele_pool_close(pool) == STELE_OK);
  options.layout_version = 1;
  CHECK(stele_pool_open(other, &options, sizeof(root), &pool) == STELE_LAYOUT);
  CHECK(remove(other) == 0);
}

static void opening_tells_what_is_wrong(void) {
  stele_pool *pool = open_at(path), *second = (stele_pool*)&failures;
  CHECK(stele_pool_open("/nowhere/at/all", NULL, sizeof(root), &second) == STELE_NOT_FOUND);
  CHECK(second == NULL && strstr(stele_error_message(), "/nowhere/at/all") != NULL);
  CHECK(stele_pool_open(path, NULL, sizeof(root), &second) == STELE_IN_USE);
  CHECK(stele_pool_open(NULL, NULL, sizeof(root), &second) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_open(path, NULL, sizeof(root), NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_open(path, NULL, 0, &second) == STELE_INVALID_ARGUMENT);
  stele_options options = STELE_OPTIONS_INIT;
  options.policy = 7;
  CHECK(stele_pool_open(path, &options, sizeof(root), &second) == STELE_INVALID_ARGUMENT);
  options.policy = STELE_SINGLE_WRITER;
  options.mechanism = "wishful";
  CHECK(stele_pool_open(path_of_other, &options, sizeof(root), &second) == STELE_NOT_FOUND);
  options.mechanism = "redo";
  CHECK(stele_pool_open(path_of_other, &options, sizeof(root), &second) == STELE_UNSUPPORTED);
  CHECK(strstr(stele_error_message(), "libstele_published") != NULL);
  CHECK(stele_pool_close(pool) == STELE_OK);
  CHECK(stele_pool_open(path, NULL, 2 * sizeof(root), &second) == STELE_LAYOUT);
  CHECK(stele_pool_close(NULL) == STELE_OK);
}

/* A program compiled with an older header passes a shorter struct. */
static void options_may_be_of_an_older_header(void) {
  struct {
    size_t size, create_size;
    const char* layout;
  } old = {sizeof old, 8 << 20, NULL};
  stele_pool* pool = NULL;
  CHECK(stele_pool_open(path_of_other, (const stele_options*)&old, sizeof(root), &pool) ==
        STELE_OK);
  CHECK(stele_pool_close(pool) == STELE_OK);
  old.size = 4096;
  CHECK(stele_pool_open(path_of_other, (const stele_options*)&old, sizeof(root), &pool) ==
        STELE_INVALID_ARGUMENT);
  old.size = 3;
  CHECK(stele_pool_open(path_of_other, (const stele_options*)&old, sizeof(root), &pool) ==
        STELE_INVALID_ARGUMENT);
}

static void a_pool_says_what_it_is(void) {
  stele_pool* pool = open_at(path);
  const char* text = NULL;
  CHECK(stele_pool_durability(pool, &text) == STELE_OK && strlen(text) > 3);
  CHECK(stele_pool_mechanism(pool, &text) == STELE_OK && strcmp(text, "default") == 0);
  CHECK(stele_pool_mechanism(pool, NULL) == STELE_INVALID_ARGUMENT);
  stele_space space;
  CHECK(stele_pool_space(pool, &space, sizeof space) == STELE_OK);
  CHECK(space.size_bytes == 8 << 20 && space.used_bytes > 0 &&
        space.largest_free <= space.free_bytes);
  uint64_t key = 1;
  CHECK(stele_update(pool, push, &key, STELE_DURABLE) == STELE_OK);
  stele_counters counters = {.reads = 77};
  CHECK(stele_pool_counters(pool, &counters, offsetof(stele_counters, reads)) == STELE_OK);
  CHECK(counters.commits >= 1 && counters.reads == 77);
  CHECK(stele_pool_close(pool) == STELE_OK);
  CHECK(strcmp(stele_version(), "0.1.0") == 0);
  CHECK(strcmp(stele_code_name(STELE_FULL), "full") == 0 &&
        strcmp(stele_code_name(STELE_POISONED), "poisoned") == 0 &&
        strcmp(stele_code_name(STELE_CONFLICT), "conflict") == 0 && STELE_CONFLICT == -18);
  CHECK(strcmp(stele_code_name(STELE_OK), "ok") == 0 &&
        strcmp(stele_code_name(-55), "unknown") == 0 && strcmp(stele_code_name(3), "unknown") == 0);
}

static int push_and_give_up(stele_tx* tx, void* at, void* arg) {
  uint64_t key = 1000;
  const int code = push(tx, at, &key);
  return code != STELE_OK ? code : *(int*)arg;
}

static void a_body_that_gives_up_changes_nothing(void) {
  stele_pool* pool = open_at(path);
  const uint64_t before = sum_of(pool);
  int reason = 42;
  CHECK(stele_update(pool, push_and_give_up, &reason, STELE_DURABLE) == 42);
  CHECK(strstr(stele_error_message(), "42") != NULL);
  CHECK(sum_of(pool) == before);
  stele_space space, later;
  CHECK(stele_pool_space(pool, &space, sizeof space) == STELE_OK);
  for (int i = 0; i < 50; ++i)
    CHECK(stele_update(pool, push_and_give_up, &reason, STELE_DURABLE) == 42);
  CHECK(stele_pool_space(pool, &later, sizeof later) == STELE_OK);
  CHECK(space.used_bytes == later.used_bytes);
  CHECK(stele_pool_close(pool) == STELE_OK);
}

/* Allocates until the pool is full, then goes on as if nothing had happened: the transaction must
 * not commit. */
static int fill(stele_tx* tx, void* at, void* arg) {
  void* block = NULL;
  int code = STELE_OK;
  uint64_t key = 5;
  if (push(tx, at, &key) != STELE_OK) return 0;
  while ((code = stele_alloc(tx, 64 << 10, &block)) == STELE_OK) continue;
  ((int*)arg)[0] = code;
  ((int*)arg)[1] = push(tx, at, &key);
  return 0;
}

static int allocate_this_much(stele_tx* tx, void* at, void* arg) {
  void* block = NULL;
  (void)at;
  return stele_alloc(tx, *(size_t*)arg, &block);
}

static void a_full_pool_rolls_back(void) {
  stele_pool* pool = open_at(path);
  const uint64_t before = sum_of(pool);
  int codes[2] = {0, 0};
  CHECK(stele_update(pool, fill, codes, STELE_DURABLE) == STELE_FULL);
  CHECK(codes[0] == STELE_FULL && codes[1] == STELE_FULL);
  CHECK(sum_of(pool) == before);
  size_t size = (size_t)-1;
  CHECK(stele_update(pool, allocate_this_much, &size, STELE_DURABLE) == STELE_FULL);
  size = 0;
  CHECK(stele_update(pool, allocate_this_much, &size, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  uint64_t key = 0;
  CHECK(stele_update(pool, push, &key, STELE_DURABLE) == STELE_OK);
  CHECK(sum_of(pool) == before);
  CHECK(stele_pool_close(pool) == STELE_OK);
}

/* ---- errors of bodies ---- */

typedef int (*mistake)(stele_tx* tx, root* r);
static int stores_to_plain_memory(stele_tx* tx, root* r) {
  uint64_t plain = 0;
  return (void)r, stele_store(tx, &plain, &plain, sizeof plain);
}
static int loads_past_the_end(stele_tx* tx, root* r) {
  char byte[1];
  return stele_load(tx, byte, (char*)r + (64 << 20), 1);
}
/* What lies so far before the root is in the pool and not in its heap. */
static int stores_to_the_log(stele_tx* tx, root* r) {
  return stele_store(tx, (char*)r - (64 << 10), r, 8);
}
static int loads_from_the_log(stele_tx* tx, root* r) {
  char bytes[8];
  return stele_load(tx, bytes, (char*)r - (64 << 10), sizeof bytes);
}
static int stores_from_nowhere(stele_tx* tx, root* r) {
  return stele_store(tx, &r->count, NULL, 8);
}
static int loads_to_nowhere(stele_tx* tx, root* r) {
  return stele_load_u64(tx, NULL, &r->count);
}
static int stores_a_word_askew(stele_tx* tx, root* r) {
  return stele_store_u64(tx, (uint64_t*)(void*)(r->text + 1), 1);
}
static int points_out_of_the_pool(stele_tx* tx, root* r) {
  return stele_set_ptr(tx, &r->first, directory);
}
static int frees_what_is_no_block(stele_tx* tx, root* r) {
  return stele_free(tx, (char*)r + 8);
}
static int frees_plain_memory(stele_tx* tx, root* r) {
  return (void)r, stele_free(tx, directory);
}
static int takes_no_block(stele_tx* tx, root* r) {
  return (void)r, stele_alloc(tx, 8, NULL);
}

static int make_mistake(stele_tx* tx, void* at, void* arg) {
  root* r = at;
  uint64_t count = 0;
  CHECK(stele_store_u64(tx, &r->other, 99) == STELE_OK);
  const int code = (*(mistake*)arg)(tx, r);
  CHECK(code == STELE_INVALID_ARGUMENT);
  CHECK(stele_load_u64(tx, &count, &r->count) == code); /* later calls return it too */
  return 0;
}

static int other_is_zero(stele_tx* tx, const void* at, void* arg) {
  uint64_t other = 1;
  (void)arg;
  return stele_load_u64(tx, &other, &((const root*)at)->other) == STELE_OK && other != 0 ? 1 : 0;
}

static void mistakes_of_a_body_end_it(void) {
  static mistake all[] = {stores_to_plain_memory, loads_past_the_end,     stores_to_the_log,
                          loads_from_the_log,     stores_from_nowhere,    loads_to_nowhere,
                          stores_a_word_askew,    points_out_of_the_pool, frees_what_is_no_block,
                          frees_plain_memory,     takes_no_block};
  stele_pool* pool = open_at(path);
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    CHECK(stele_update(pool, make_mistake, &all[i], STELE_DURABLE) == STELE_INVALID_ARGUMENT);
    CHECK(stele_read(pool, other_is_zero, NULL) == STELE_OK);
  }
  CHECK(stele_update(NULL, push, NULL, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_update(pool, NULL, NULL, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_update(pool, push, NULL, 5) == STELE_INVALID_ARGUMENT);
  CHECK(stele_read(NULL, sum, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_load_u64(NULL, NULL, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_close(pool) == STELE_OK);
}

/* ---- nested transactions ---- */

typedef struct pair {
  stele_pool *own, *other;
  int codes[3];
} pair;

static int nest(stele_tx* tx, void* at, void* arg) {
  pair* p = arg;
  uint64_t key = 7, total = 0;
  p->codes[0] = stele_update(p->own, push, &key, STELE_DURABLE);
  p->codes[1] = stele_read(p->own, sum, &total); /* sees the pushed node */
  p->codes[2] = stele_pool_close(p->own) == STELE_IN_USE ? STELE_OK : 1;
  (void)tx, (void)at;
  return 5;
}
static int change_the_other(stele_tx* tx, void* at, void* arg) {
  pair* p = arg;
  uint64_t key = 7;
  (void)tx, (void)at;
  p->codes[0] = stele_update(p->other, push, &key, STELE_DURABLE);
  return 0;
}
static int push_while_reading(stele_tx* tx, const void* at, void* arg) {
  return push(tx, (void*)at, arg);
}

static void inner_transactions_join_the_outer(void) {
  pair p = {open_at(path), open_at(path_of_other), {1, 1, 1}};
  const uint64_t before = sum_of(p.own);
  CHECK(stele_update(p.own, nest, &p, STELE_DURABLE) != STELE_OK);
  CHECK(p.codes[0] == STELE_OK && p.codes[1] == STELE_OK);
  CHECK(sum_of(p.own) == before); /* the inner transaction did not commit by itself */
  CHECK(stele_update(p.own, change_the_other, &p, STELE_DURABLE) == STELE_NESTED);
  CHECK(p.codes[0] == STELE_NESTED);
  uint64_t key = 3;
  CHECK(stele_read(p.own, push_while_reading, &key) == STELE_READ_ONLY);
  CHECK(stele_pool_close(p.own) == STELE_OK && stele_pool_close(p.other) == STELE_OK);
}

/* ---- threads ---- */

typedef struct meeting {
  stele_pool* pool;
  atomic_int stage;
  int attempts, code_of_loser;
} meeting;

static int add_to_count(stele_tx* tx, void* at, void* arg) {
  root* r = at;
  uint64_t other = 0;
  const int code = stele_load_u64(tx, &other, &r->other);
  return code == STELE_OK ? stele_store_u64(tx, &r->other, other + *(uint64_t*)arg) : code;
}

/* In its first attempt, the other thread commits a store to the same word between the load and the
 * store. */
static int add_after_the_other(stele_tx* tx, void* at, void* arg) {
  meeting* m = arg;
  root* r = at;
  uint64_t other = 0;
  int code = stele_load_u64(tx, &other, &r->other);
  if (code != STELE_OK) return code;
  if (m->attempts++ == 0) {
    m->stage = 1;
    while (m->stage != 2) usleep(10);
  }
  code = stele_store_u64(tx, &r->other, other + 1);
  if (code != STELE_OK) m->code_of_loser = code;
  return code;
}

static void* the_other(void* arg) {
  meeting* m = arg;
  uint64_t by = 10;
  while (m->stage != 1) usleep(10);
  CHECK(stele_update(m->pool, add_to_count, &by, STELE_DURABLE) == STELE_OK);
  m->stage = 2;
  return NULL;
}

static int load_other(stele_tx* tx, const void* at, void* arg) {
  return stele_load_u64(tx, arg, &((const root*)at)->other);
}

static void a_conflict_runs_the_body_again(void) {
  meeting m = {.pool = open_at(path)};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, the_other, &m) == 0);
  CHECK(stele_update(m.pool, add_after_the_other, &m, STELE_DURABLE) == STELE_OK);
  pthread_join(thread, NULL);
  CHECK(m.attempts == 2 && m.code_of_loser == STELE_RETRY);
  uint64_t other = 0;
  CHECK(stele_read(m.pool, load_other, &other) == STELE_OK && other == 11);
  CHECK(stele_pool_close(m.pool) == STELE_OK);
}

static void* add_often(void* pool) {
  uint64_t one = 1;
  for (int i = 0; i < 5000; ++i)
    CHECK(stele_update(pool, add_to_count, &one, i % 3 ? STELE_DURABLE : STELE_ORDERED) ==
          STELE_OK);
  return NULL;
}

static void no_addition_of_two_threads_is_lost(void) {
  stele_pool* pool = open_at(path);
  uint64_t before = 0, after = 0;
  CHECK(stele_read(pool, load_other, &before) == STELE_OK);
  pthread_t threads[2];
  for (int t = 0; t < 2; ++t) CHECK(pthread_create(&threads[t], NULL, add_often, pool) == 0);
  for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
  CHECK(stele_read(pool, load_other, &after) == STELE_OK && after == before + 10000);
  CHECK(stele_pool_close(pool) == STELE_OK);
}

typedef struct wide_root {
  uint64_t twice, added;
} wide_root;

static int widen(stele_tx* tx, uint64_t version, void** at, size_t* size, void* arg) {
  uint64_t old = 0;
  wide_root* wide = NULL;
  CHECK(version == 1 && *size == sizeof(uint64_t));
  int code = stele_load_u64(tx, &old, *at);
  if (code == STELE_OK) code = stele_alloc(tx, sizeof *wide, (void**)&wide);
  if (code == STELE_OK) code = stele_store_u64(tx, &wide->twice, 2 * old);
  if (code == STELE_OK) code = stele_free(tx, *at);
  if (code != STELE_OK) return code;
  *at = wide, *size = *(int*)arg == 2 ? sizeof(uint64_t) : sizeof *wide;
  return *(int*)arg == 1 ? stele_store_u64(tx, (uint64_t*)arg, 1) : *(int*)arg == 3 ? 3 : STELE_OK;
}

static int set_word(stele_tx* tx, void* at, void* arg) {
  return stele_store_u64(tx, at, *(uint64_t*)arg);
}
static int get_word(stele_tx* tx, const void* at, void* arg) {
  return stele_load_u64(tx, arg, at);
}

static void an_older_layout_is_migrated(void) {
  char place[200];
  stele_pool* pool = NULL;
  stele_options o = STELE_OPTIONS_INIT;
  uint64_t word = 21;
  int what = 1;
  snprintf(place, sizeof place, "%s/layout", directory);
  o.create_size = 1 << 20, o.layout = "words", o.layout_version = 1;
  CHECK(stele_pool_open(place, &o, sizeof(uint64_t), &pool) == STELE_OK);
  CHECK(stele_update(pool, set_word, &word, STELE_DURABLE) == STELE_OK);
  CHECK(stele_pool_close(pool) == STELE_OK);
  o.layout_version = 2;
  CHECK(stele_pool_open(place, &o, sizeof(wide_root), &pool) == STELE_LAYOUT);
  o.migrate = widen, o.migrate_arg = &what;
  CHECK(stele_pool_open(place, &o, sizeof(wide_root), &pool) == STELE_INVALID_ARGUMENT);
  what = 2; /* a root of another size than this program's */
  CHECK(stele_pool_open(place, &o, sizeof(wide_root), &pool) == STELE_LAYOUT);
  what = 3;
  CHECK(stele_pool_open(place, &o, sizeof(wide_root), &pool) == STELE_CANCELLED && pool == NULL);
  CHECK(strstr(stele_error_message(), "ended with 3") != NULL);
  what = 0;
  CHECK(stele_pool_open(place, &o, sizeof(wide_root), &pool) == STELE_OK);
  CHECK(stele_read(pool, get_word, &word) == STELE_OK && word == 42);
  CHECK(stele_pool_close(pool) == STELE_OK);
  o.migrate = NULL;
  CHECK(stele_pool_open(place, &o, sizeof(wide_root), &pool) == STELE_OK);
  CHECK(stele_pool_close(pool) == STELE_OK);
  unlink(place);
}

static int visit_list(stele_tx* tx, const void* at, stele_visitor* to, void* arg) {
  void* n = NULL;
  int code = stele_get_ptr(tx, &((const root*)at)->first, &n);
  (void)arg;
  while (code == STELE_OK && n != NULL) {
    code = stele_visit(to, n);
    if (code == STELE_OK) code = stele_get_ptr(tx, &((node*)n)->next, &n);
  }
  return code;
}

static int visit_outside(stele_tx* tx, const void* at, stele_visitor* to, void* arg) {
  (void)tx, (void)at;
  return *(uint64_t*)arg = (uint64_t)-stele_visit(to, arg), stele_visit(to, NULL);
}

static int give_up(stele_tx* tx, const void* at, stele_visitor* to, void* arg) {
  return (void)tx, (void)at, (void)to, (void)arg, 8;
}

static int forget_first(stele_tx* tx, void* at, void* arg) {
  root* r = at;
  void *first = NULL, *next = NULL;
  int code = stele_get_ptr(tx, &r->first, &first);
  if (code == STELE_OK) code = stele_get_ptr(tx, &((node*)first)->next, &next);
  if (code == STELE_OK && arg == NULL) code = stele_set_ptr(tx, &r->first, next);
  return code == STELE_OK && arg != NULL ? stele_free(tx, next) : code;
}

static void note_block(uint64_t offset, uint64_t size, void* arg) {
  ((uint64_t*)arg)[size == 0] += offset != 0 ? 1 + size : 0;
}

static int find_inside(stele_tx* tx, void* at, void* arg) {
  (void)tx, (void)at;
  return stele_pool_find_leaks(arg, visit_list, NULL, NULL, NULL, 0);
}

static void leaks_are_found(void) {
  unlink(path);
  stele_pool* pool = open_at(path);
  stele_leaks found;
  uint64_t seen[2] = {0, 0};
  for (uint64_t key = 1; key <= 10; ++key)
    CHECK(stele_update(pool, push, &key, STELE_DURABLE) == STELE_OK);
  CHECK(stele_pool_find_leaks(pool, visit_list, note_block, seen, &found, sizeof found) == 0);
  CHECK(found.reached_blocks == 11 && found.leaked_blocks == 0 && found.dangling == 0);
  CHECK(seen[0] == 0 && seen[1] == 0);
  CHECK(stele_update(pool, forget_first, NULL, STELE_DURABLE) == STELE_OK);
  CHECK(stele_update(pool, forget_first, NULL, STELE_DURABLE) == STELE_OK);
  CHECK(stele_pool_find_leaks(pool, visit_list, note_block, seen, &found, sizeof found) == 0);
  CHECK(found.reached_blocks == 9 && found.leaked_blocks == 2 && found.leaked_bytes >= 32);
  CHECK(seen[0] == 2 + found.leaked_bytes && seen[1] == 0);
  CHECK(stele_update(pool, forget_first, seen, STELE_DURABLE) == STELE_OK);
  CHECK(stele_pool_find_leaks(pool, visit_list, note_block, seen, &found, sizeof found) == 0);
  CHECK(found.dangling == 1 && seen[1] == 1);
  found.dangling = 77; /* a caller of an earlier header */
  CHECK(stele_pool_find_leaks(pool, visit_list, NULL, NULL, &found, 24) == 0);
  CHECK(found.dangling == 77 && stele_pool_find_leaks(pool, visit_list, NULL, NULL, NULL, 0) == 0);
  CHECK(stele_pool_find_leaks(pool, give_up, NULL, NULL, NULL, 0) == 8);
  CHECK(stele_pool_find_leaks(pool, visit_outside, NULL, seen, NULL, 0) == STELE_INVALID_ARGUMENT);
  CHECK(seen[0] == -STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_find_leaks(pool, NULL, NULL, NULL, NULL, 0) == STELE_INVALID_ARGUMENT);
  CHECK(stele_update(pool, find_inside, pool, STELE_DURABLE) == STELE_NESTED);
  CHECK(stele_visit(NULL, pool) == STELE_INVALID_ARGUMENT);
  CHECK(stele_pool_close(pool) == STELE_OK);
}

int main(void) {
  snprintf(directory, sizeof directory, "%s/stele-capi-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(directory) == NULL) return perror(directory), 1;
  snprintf(path, sizeof path, "%s/pool", directory);
  snprintf(path_of_other, sizeof path_of_other, "%s/other", directory);
  changes_survive_closing();
  a_pool_is_checked_copied_and_grown();
  options_say_what_a_pool_must_be();
  opening_tells_what_is_wrong();
  options_may_be_of_an_older_header();
  a_pool_says_what_it_is();
  a_body_that_gives_up_changes_nothing();
  a_full_pool_rolls_back();
  mistakes_of_a_body_end_it();
  inner_transactions_join_the_outer();
  a_conflict_runs_the_body_again();
  no_addition_of_two_threads_is_lost();
  an_older_layout_is_migrated();
  leaks_are_found();
  unlink(path);
  unlink(path_of_other);
  rmdir(directory);
  if (failures == 0) printf("all checks held\n");
  return failures == 0 ? 0 : 1;
}
