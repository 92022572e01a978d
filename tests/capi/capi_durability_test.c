/* What each function of C that takes a durability leaves of a process that is killed when it has
 * returned: all of what was asked for durably, and of ordered changes what a sync covered. Other
 * ordered changes are lost here, which shows that the kills are seen: the medium is a file, and no
 * thread makes anything durable later.
 *
 * Before each change there are ordered ones, on the same pages and on others.
 */
#define _DEFAULT_SOURCE
#include "kv_check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char path[96];

static stele_options options_of_file(void) {
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 8 << 20;
  options.media = "file";
  options.no_background = 1;
  return options;
}
static stele_kv* open_file(void) {
  const stele_options options = options_of_file();
  stele_kv* kv = NULL;
  CHECK(stele_kv_open(path, &options, &kv) == STELE_OK);
  return kv;
}

/* The changes of the key "it", which has the value "12345678" before. `d`: a durability. */
static int by_put(stele_kv* kv, int d) {
  return stele_kv_put(kv, "it", 2, "new", 3, d);
}
static int by_erase(stele_kv* kv, int d) {
  return stele_kv_erase(kv, "it", 2, d);
}
static int by_put_many(stele_kv* kv, int d) {
  const stele_kv_item items[] = {{"other", 5, "new", 3}, {"it", 2, "new", 3}};
  return stele_kv_put_many(kv, items, 2, d);
}
static int by_put_for(stele_kv* kv, int d) {
  return stele_kv_put_for(kv, "it", 2, "new", 3, 1000 * 3600, d);
}
static int by_put_until(stele_kv* kv, int d) {
  return stele_kv_put_until(kv, "it", 2, "new", 3, INT64_MAX, d);
}
static int by_put_if(stele_kv* kv, int d) {
  int done = 0;
  const int code = stele_kv_put_if(kv, "it", 2, "12345678", 8, "new", 3, &done, d);
  CHECK(done == 1);
  return code;
}
static int by_add(stele_kv* kv, int d) {
  return stele_kv_add(kv, "it", 2, 1, NULL, d);
}
static int make_new(stele_kv_value* value, void* arg) {
  (void)arg;
  value->bytes = "new";
  value->size = 3;
  return 0;
}
static int by_modify(stele_kv* kv, int d) {
  return stele_kv_modify(kv, "it", 2, make_new, NULL, d);
}
static int put_in_body(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx, (void)arg;
  return stele_kv_put(kv, "it", 2, "new", 3, STELE_ORDERED); /* the body's durability counts */
}
static int by_body(stele_kv* kv, int d) {
  return stele_kv_update(kv, put_in_body, NULL, d);
}
static int by_named_store(stele_kv* kv, int d) {
  stele_kv* named = NULL;
  int code = stele_kv_open_store(kv, "named", 5, 1, &named);
  if (code == STELE_OK) code = stele_kv_put(named, "it", 2, "named", 5, STELE_ORDERED);
  return code == STELE_OK ? stele_kv_put(kv, "it", 2, "new", 3, d) : code;
}

static const struct change {
  const char* name;
  int (*make)(stele_kv* kv, int d);
  const char* after; /* NULL: the key is gone */
} changes[] = {
    {"put", by_put, "new"},
    {"erase", by_erase, NULL},
    {"put_many", by_put_many, "new"},
    {"put_for", by_put_for, "new"},
    {"put_until", by_put_until, "new"},
    {"put_if", by_put_if, "new"},
    {"add", by_add, "22345678"}, /* '1' + 1 */
    {"modify", by_modify, "new"},
    {"update", by_body, "new"},
    {"put beside a named store", by_named_store, "new"},
};

enum { how_durable, how_synced, how_ordered, hows };

/* In the child: returns only if something went wrong. */
static void change_and_die(const struct change* c, int how) {
  stele_kv* kv = open_file();
  char key[16];
  for (int i = 0; i < 20; ++i) {
    snprintf(key, sizeof key, "more %d", i);
    CHECK(stele_kv_put(kv, key, strlen(key), key, strlen(key), STELE_ORDERED) == STELE_OK);
  }
  CHECK(c->make(kv, how == how_durable ? STELE_DURABLE : STELE_ORDERED) == STELE_OK);
  if (how == how_synced) CHECK(stele_kv_sync(kv) == STELE_OK);
  if (failures == 0) raise(SIGKILL);
}

static int dies(void (*work)(const struct change*, int), const struct change* c, int how) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    work(c, how);
    _exit(1);
  }
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

static unsigned lost_ordered;

static void test_change(const struct change* c, int how) {
  stele_kv* kv = NULL;
  unlink(path);
  kv = open_kv(path);
  CHECK(put(kv, "it", "12345678") == STELE_OK);
  CHECK(stele_kv_close(kv) == STELE_OK);
  CHECK(dies(change_and_die, c, how));
  kv = open_kv(path);
  if (how != how_ordered) {
    CHECK(has(kv, "it", c->after));
    CHECK(has(kv, "more 0", "more 0"));
    CHECK(has(kv, "more 19", "more 19"));
  } else if (has(kv, "it", "12345678")) {
    ++lost_ordered;
  } else {
    CHECK(has(kv, "it", c->after));
  }
  CHECK(stele_kv_check(kv) == STELE_OK);
  CHECK(stele_kv_close(kv) == STELE_OK);
  if (failures != 0) printf("  after %s, %d\n", c->name, how);
}

/* Bodies on a pool. */
static int store_one(stele_tx* tx, void* root, void* arg) {
  return stele_store_u64(tx, (uint64_t*)root + *(const size_t*)arg, 1);
}
static int load_all(stele_tx* tx, const void* root, void* arg) {
  return stele_load(tx, arg, root, 1024 * sizeof(uint64_t));
}
static stele_pool* open_words(void) {
  const stele_options options = options_of_file();
  stele_pool* pool = NULL;
  CHECK(stele_pool_open(path, &options, 1024 * sizeof(uint64_t), &pool) == STELE_OK);
  return pool;
}
static void store_and_die(const struct change* unused, int how) {
  stele_pool* pool = open_words();
  const int last = how == how_durable ? STELE_DURABLE : STELE_ORDERED;
  (void)unused;
  for (size_t i = 0; i < 1024; i += 93)
    CHECK(stele_update(pool, store_one, &i, i < 1023 ? STELE_ORDERED : last) == STELE_OK);
  if (how == how_synced) CHECK(stele_pool_sync(pool) == STELE_OK);
  if (failures == 0) raise(SIGKILL);
}
static void test_body(int how) {
  uint64_t words[1024];
  uint64_t before = 1;
  stele_pool* pool = NULL;
  unlink(path);
  CHECK(dies(store_and_die, NULL, how));
  pool = open_words();
  CHECK(stele_read(pool, load_all, words) == STELE_OK);
  for (size_t i = 0; i < 1024; i += 93) {
    CHECK(words[i] <= before); /* none without those before it */
    CHECK(how == how_ordered || words[i] == 1);
    before = words[i];
  }
  if (how == how_ordered) lost_ordered += before == 0;
  CHECK(stele_pool_close(pool) == STELE_OK);
}

int main(void) {
  const char* const at = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(directory, sizeof directory, "%s/stele-c-XXXXXX", at);
  if (mkdtemp(directory) == NULL) return 1;
  snprintf(path, sizeof path, "%s/pool", directory);
  for (int how = 0; how < hows; ++how) {
    for (size_t i = 0; i < sizeof changes / sizeof *changes; ++i) test_change(&changes[i], how);
    test_body(how);
  }
  CHECK(lost_ordered != 0);
  unlink(path);
  rmdir(directory);
  printf("%d failures\n", failures);
  return failures != 0;
}
