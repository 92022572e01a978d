/* What stores of stele.h have beyond items: names, cursors in both directions, items that expire,
 * changes of one item by what it is, statistics.
 */
#define _DEFAULT_SOURCE
#include "kv_check.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char directory[64];
static char path[96];

static stele_kv* open_store(stele_kv* kv, const char* name) {
  stele_kv* store = NULL;
  CHECK(stele_kv_open_store(kv, name, strlen(name), 1, &store) == STELE_OK);
  return store;
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- named stores ---- */

static void add_name(const char* name, size_t size, void* arg) {
  CHECK(strlen(name) == size);
  strcat(strcat(arg, name), " ");
}

static int put_in_both(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx;
  stele_kv** stores = arg;
  stele_kv* none = NULL;
  if (stores[2] != NULL) return stele_kv_open_store(kv, "new", 3, 1, &none);
  int code = put(stores[0], "1", "ann");
  if (code == STELE_OK) code = put(stores[1], "1", "order");
  if (code == STELE_OK) code = put(kv, "last", "1");
  CHECK(stele_kv_close(stores[0]) == STELE_IN_USE); /* a body runs */
  return code == STELE_OK && has(kv, "stop", "1") ? 5 : code;
}

static void stores_have_names(void) {
  stele_kv* kv = open_kv(path);
  stele_kv* stores[3] = {open_store(kv, "users"), open_store(kv, "orders"), NULL};
  CHECK(put(kv, "stop", "1") == STELE_OK);
  CHECK(stele_kv_update(kv, put_in_both, stores, STELE_DURABLE) == 5);
  CHECK(has(stores[0], "1", NULL) && has(stores[1], "1", NULL) && has(kv, "last", NULL));
  CHECK(stele_kv_erase(kv, "stop", 4, STELE_DURABLE) == STELE_OK);
  CHECK(stele_kv_update(stores[1], put_in_both, stores, STELE_DURABLE) == STELE_OK);
  CHECK(has(stores[0], "1", "ann") && has(stores[1], "last", "1") && has(kv, "1", NULL));
  stores[2] = kv;
  CHECK(stele_kv_update(kv, put_in_both, stores, STELE_DURABLE) == STELE_NESTED);
  char names[64] = "";
  CHECK(stele_kv_stores(kv, add_name, names) == STELE_OK && !strcmp(names, "orders users "));
  CHECK(stele_kv_drop_store(kv, "users", 5) == STELE_IN_USE);
  CHECK(strstr(stele_error_message(), "::") == NULL);
  CHECK(stele_kv_close(kv) == STELE_OK); /* the pool stays open for the others */
  CHECK(has(stores[0], "1", "ann") && stele_kv_close(stores[0]) == STELE_OK);
  CHECK(stele_kv_drop_store(stores[1], "users", 5) == STELE_OK);
  CHECK(stele_kv_drop_store(stores[1], "users", 5) == STELE_NOT_FOUND);
  stele_kv* missing = stores[1];
  CHECK(stele_kv_open_store(stores[1], "users", 5, 0, &missing) == STELE_NOT_FOUND);
  CHECK(missing == NULL && stele_kv_open_store(stores[1], "", 0, 1, &missing) < 0);
  CHECK(stele_kv_close(stores[1]) == STELE_OK);
  kv = open_kv(path); /* so it was closed */
  CHECK(has(kv, "last", NULL) && stele_kv_check(kv) == STELE_OK && stele_kv_close(kv) == STELE_OK);
}

/* ---- cursors ---- */

static int at_key(const stele_kv_item* item, int n) {
  char key[16];
  snprintf(key, sizeof key, "%03d", n);
  return item->key_size == 3 && memcmp(item->key, key, 3) == 0;
}

static void cursors_go_both_ways(void) {
  stele_kv* kv = open_kv(path);
  stele_kv* store = open_store(kv, "numbers");
  char key[16];
  for (int i = 0; i < 1000; ++i) {
    snprintf(key, sizeof key, "%03d", i * 7 % 1000);
    CHECK(put(store, key, key) == STELE_OK);
  }
  stele_kv_cursor* cursor = NULL;
  stele_kv_item item;
  CHECK(stele_kv_walk(store, NULL, 0, "800", 3, &cursor) == STELE_OK);
  int n = 800;
  while (stele_kv_prev(cursor, &item) == STELE_OK) CHECK(at_key(&item, --n));
  CHECK(n == 0 && stele_kv_next(cursor, &item) == STELE_OK && at_key(&item, 0));
  CHECK(stele_kv_seek(cursor, "3555", 4, &item) == STELE_OK && at_key(&item, 356));
  CHECK(stele_kv_prev(cursor, &item) == STELE_OK && at_key(&item, 355));
  CHECK(stele_kv_seek_before(cursor, "355", 3, &item) == STELE_OK && at_key(&item, 354));
  CHECK(stele_kv_next(cursor, &item) == STELE_OK && at_key(&item, 355));
  CHECK(stele_kv_seek(cursor, "800", 3, &item) == STELE_NOT_FOUND);
  CHECK(stele_kv_seek_before(cursor, "000", 3, &item) == STELE_NOT_FOUND);
  stele_kv_cursor_free(cursor);
  CHECK(stele_kv_walk_prefix(store, "12", 2, &cursor) == STELE_OK);
  for (n = 120; stele_kv_next(cursor, &item) == STELE_OK; ++n) CHECK(at_key(&item, n));
  CHECK(n == 130);
  stele_kv_cursor_free(cursor);
  CHECK(stele_kv_walk_prefix(store, NULL, 2, &cursor) == STELE_INVALID_ARGUMENT && cursor == NULL);
  CHECK(stele_kv_prev(NULL, &item) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_close(store) == STELE_OK && stele_kv_close(kv) == STELE_OK);
}

/* ---- items that expire ---- */

static void items_expire(void) {
  stele_kv* kv = open_kv(path);
  int64_t when = 7;
  uint64_t count = 0;
  const int64_t later = now_ms() + 3600000;
  CHECK(put(kv, "a", "1") == STELE_OK && stele_kv_expiry(kv, "a", 1, &when) == STELE_OK);
  CHECK(when == 0 && stele_kv_expiry(kv, "none", 4, &when) == STELE_NOT_FOUND);
  CHECK(stele_kv_put_until(kv, "a", 1, "2", 1, later, STELE_DURABLE) == STELE_OK);
  CHECK(stele_kv_expiry(kv, "a", 1, &when) == STELE_OK && when == later && has(kv, "a", "2"));
  CHECK(stele_kv_put_until(kv, "a", 1, "3", 1, INT64_MAX, STELE_DURABLE) == STELE_OK);
  CHECK(has(kv, "a", "3")); /* far from now, not long ago */
  CHECK(stele_kv_put_until(kv, "a", 1, "3", 1, INT64_MIN, STELE_DURABLE) == STELE_OK);
  CHECK(has(kv, "a", NULL));
  CHECK(stele_kv_put_for(kv, "a", 1, "3", 1, 0, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_put_for(kv, "long", 4, "3", 1, UINT64_MAX, STELE_DURABLE) == STELE_OK);
  CHECK(has(kv, "long", "3"));
  for (char key = 'a'; key <= 'z'; ++key)
    CHECK(stele_kv_put_for(kv, &key, 1, "x", 1, 1, STELE_DURABLE) == STELE_OK);
  usleep(5000);
  CHECK(has(kv, "z", NULL) && stele_kv_remove_expired(kv, 10, &count) == STELE_OK && count <= 10);
  CHECK(stele_kv_remove_expired(kv, 1000, NULL) == STELE_OK);
  CHECK(stele_kv_remove_expired(kv, 1000, &count) == STELE_OK && count == 0);
  CHECK(stele_kv_count(kv, &count) == STELE_OK);
  CHECK(stele_kv_close(kv) == STELE_OK);
}

static int put_large(stele_tx* tx, stele_kv* kv, void* arg) {
  static char large[1 << 18];
  (void)tx;
  return stele_kv_put_for(kv, arg, 1, large, sizeof large, 1, STELE_DURABLE);
}

/* A store that only bodies change gets rid of what has expired, too. */
static void a_body_finds_the_room_of_expired_items(void) {
  stele_kv* kv = open_kv(path);
  for (int round = 0; round < 4; ++round)
    for (char key = 'a'; key <= 'z'; ++key) {
      CHECK(stele_kv_update(kv, put_large, &key, STELE_DURABLE) == STELE_OK);
      usleep(2000);
    }
  CHECK(stele_kv_close(kv) == STELE_OK);
}

/* ---- changes of one item ---- */

static int append_x(stele_kv_value* value, void* arg) {
  static char longer[64];
  if (arg != NULL) return *(int*)arg;
  const size_t size = value->bytes ? value->size : 0;
  if (size == 3) return value->bytes = NULL, 0;
  if (size != 0) memcpy(longer, value->bytes, size);
  longer[size] = 'x';
  *value = (stele_kv_value){longer, size + 1};
  return 0;
}

static int cut_first(stele_kv_value* value, void* arg) {
  (void)arg;
  return ++value->bytes, --value->size, 0;
}

static void one_item_changes_by_what_it_is(void) {
  stele_kv* kv = open_kv(path);
  int done = 7, own = 9;
  int64_t sum = 0;
  CHECK(stele_kv_put_if(kv, "p", 1, NULL, 0, "1", 1, &done, STELE_DURABLE) == STELE_OK && done);
  CHECK(stele_kv_put_if(kv, "p", 1, NULL, 0, "2", 1, &done, STELE_DURABLE) == STELE_OK && !done);
  CHECK(stele_kv_put_if(kv, "p", 1, "1", 1, "", 0, &done, STELE_DURABLE) == STELE_OK && done);
  CHECK(stele_kv_put_if(kv, "p", 1, "", 0, "3", 1, &done, STELE_DURABLE) == STELE_OK && done);
  CHECK(has(kv, "p", "3"));
  CHECK(stele_kv_put_if(kv, "p", 1, NULL, 0, "", 0, NULL, STELE_DURABLE) < 0);
  CHECK(stele_kv_add(kv, "n", 1, 40, NULL, STELE_ORDERED) == STELE_OK);
  CHECK(stele_kv_add(kv, "n", 1, 2, &sum, STELE_DURABLE) == STELE_OK && sum == 42);
  CHECK(stele_kv_add(kv, "n", 1, INT64_MAX, &sum, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_add(kv, "p", 1, 1, &sum, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_modify(kv, "m", 1, append_x, NULL, STELE_DURABLE) == STELE_OK);
  CHECK(stele_kv_modify(kv, "m", 1, append_x, NULL, STELE_DURABLE) == STELE_OK);
  CHECK(has(kv, "m", "xx") && stele_kv_modify(kv, "m", 1, append_x, &own, STELE_DURABLE) == 9);
  CHECK(has(kv, "m", "xx") && stele_kv_modify(kv, "m", 1, cut_first, NULL, STELE_DURABLE) == 0);
  CHECK(has(kv, "m", "x") && put(kv, "m", "xxx") == STELE_OK);
  CHECK(stele_kv_modify(kv, "m", 1, append_x, NULL, STELE_DURABLE) == STELE_OK);
  CHECK(has(kv, "m", NULL));
  CHECK(stele_kv_modify(kv, "", 0, append_x, NULL, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_modify(kv, "m", 1, NULL, NULL, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_close(kv) == STELE_OK);
}

static void a_store_tells_what_it_consists_of(void) {
  stele_kv* kv = open_kv(path);
  stele_kv* store = open_store(kv, "counted");
  stele_statistics s;
  CHECK(put(store, "ab", "cde") == STELE_OK);
  CHECK(stele_kv_put_for(store, "f", 1, "", 0, 3600000, STELE_DURABLE) == STELE_OK);
  CHECK(stele_kv_statistics(store, &s, sizeof s) == STELE_OK);
  CHECK(s.items == 2 && s.key_bytes == 3 && s.value_bytes == 3 && s.expiring_items == 1);
  CHECK(s.item_space >= 6 && s.hash_space > 0 && s.tree_nodes > 0 && s.expired_items == 0);
  s.key_bytes = 77; /* a caller of an earlier header */
  CHECK(stele_kv_statistics(store, &s, sizeof s.items) == STELE_OK && s.key_bytes == 77);
  CHECK(stele_kv_statistics(store, NULL, sizeof s) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_close(kv) == STELE_OK && stele_kv_close(store) == STELE_OK);
}

int main(void) {
  snprintf(directory, sizeof directory, "%s/stele-capi-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(directory) == NULL) return perror(directory), 1;
  snprintf(path, sizeof path, "%s/kv", directory);
  stores_have_names();
  cursors_go_both_ways();
  items_expire();
  a_body_finds_the_room_of_expired_items();
  one_item_changes_by_what_it_is();
  a_store_tells_what_it_consists_of();
  unlink(path);
  rmdir(directory);
  if (failures == 0) printf("all checks held\n");
  return failures == 0 ? 0 : 1;
}
