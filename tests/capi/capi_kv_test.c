/* The key-value store of stele.h from C: items, order, errors, transactions over several items,
 * nested stores.
 */
#define _DEFAULT_SOURCE
#include "kv_check.h"

#include <stdlib.h>
#include <unistd.h>

static char directory[64];
static char path[96], path_of_other[96];

static void items_come_and_go(void) {
  stele_kv* kv = open_kv(path);
  const char* text = NULL;
  CHECK(stele_kv_durability(kv, &text) == STELE_OK && strlen(text) > 3);
  CHECK(put(kv, "b", "two") == STELE_OK && put(kv, "a", "one") == STELE_OK &&
        put(kv, "c", "") == STELE_OK);
  CHECK(has(kv, "a", "one") && has(kv, "c", "") && has(kv, "d", NULL));
  CHECK(put(kv, "a", "ONE") == STELE_OK && has(kv, "a", "ONE"));
  char few[2] = {0, 0};
  size_t size = 0;
  CHECK(stele_kv_get(kv, "b", 1, few, 1, &size) == STELE_OK && size == 3 && few[0] == 't' &&
        few[1] == 0);
  CHECK(stele_kv_get(kv, "b", 1, NULL, 0, &size) == STELE_OK && size == 3);
  CHECK(stele_kv_erase(kv, "b", 1, STELE_ORDERED) == STELE_OK &&
        stele_kv_erase(kv, "b", 1, STELE_DURABLE) == STELE_NOT_FOUND);
  uint64_t count = 0;
  CHECK(stele_kv_count(kv, &count) == STELE_OK && count == 2);
  CHECK(stele_kv_sync(kv) == STELE_OK && stele_kv_check(kv) == STELE_OK &&
        stele_kv_close(kv) == STELE_OK);
  kv = open_kv(path);
  CHECK(has(kv, "a", "ONE") && has(kv, "b", NULL) && has(kv, "c", ""));
  CHECK(stele_kv_close(kv) == STELE_OK && stele_kv_close(NULL) == STELE_OK);
}

static void a_walk_goes_in_order(void) {
  stele_kv* kv = open_kv(path_of_other);
  char key[16];
  for (int i = 0; i < 1000; ++i) {
    snprintf(key, sizeof key, "%03d", i * 7 % 1000);
    CHECK(put(kv, key, key) == STELE_OK);
  }
  stele_kv_cursor* cursor = NULL;
  stele_kv_item item;
  CHECK(stele_kv_walk(kv, "100", 3, "800", 3, &cursor) == STELE_OK);
  int at = 100;
  for (; stele_kv_next(cursor, &item) == STELE_OK; ++at) {
    snprintf(key, sizeof key, "%03d", at);
    CHECK(item.key_size == 3 && item.value_size == 3 && memcmp(item.key, key, 3) == 0 &&
          memcmp(item.value, key, 3) == 0);
  }
  CHECK(at == 800 && stele_kv_next(cursor, &item) == STELE_NOT_FOUND);
  stele_kv_cursor_free(cursor);
  stele_kv_cursor_free(NULL);
  CHECK(stele_kv_close(kv) == STELE_OK);
}

static int move(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx;
  if (!has(kv, "missing", NULL)) return 3; /* not an error of the transaction */
  int code = stele_kv_erase(kv, "a", 1, STELE_DURABLE);
  if (code == STELE_OK) code = put(kv, "moved", "x");
  if (code == STELE_OK && has(kv, "a", NULL) && has(kv, "moved", "x")) code = *(int*)arg;
  return code;
}

static int put_too_long_a_key(stele_tx* tx, stele_kv* kv, void* arg) {
  static char key[70000];
  (void)tx;
  ((int*)arg)[0] = stele_kv_put(kv, key, sizeof key, "", 0, STELE_DURABLE);
  ((int*)arg)[1] = put(kv, "after", "x");
  return 0;
}

static int use_another(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx, (void)kv;
  return put(arg, "a", "x");
}

static int put_while_reading(stele_tx* tx, stele_kv* kv, void* arg) {
  return (void)tx, (void)arg, put(kv, "r", "x");
}

static void bodies_are_transactions(void) {
  stele_kv *kv = open_kv(path), *other = open_kv(path_of_other);
  int own = 17, codes[2] = {0, 0};
  CHECK(put(kv, "a", "one") == STELE_OK);
  CHECK(stele_kv_update(kv, move, &own, STELE_DURABLE) == 17);
  CHECK(has(kv, "a", "one") && has(kv, "moved", NULL));
  own = 0;
  CHECK(stele_kv_update(kv, move, &own, STELE_DURABLE) == STELE_OK);
  CHECK(has(kv, "a", NULL) && has(kv, "moved", "x"));
  CHECK(stele_kv_update(kv, put_too_long_a_key, codes, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(codes[0] == STELE_INVALID_ARGUMENT && codes[1] == codes[0] && has(kv, "after", NULL));
  CHECK(stele_kv_update(kv, use_another, other, STELE_DURABLE) == STELE_NESTED);
  CHECK(stele_kv_read(kv, put_while_reading, NULL) == STELE_READ_ONLY);
  CHECK(stele_kv_close(kv) == STELE_OK && stele_kv_close(other) == STELE_OK);
}

static void note_value(size_t i, const char* value, size_t size, void* arg) {
  snprintf(((char(*)[8])arg)[i], 8, "%.*s", value ? (int)size : 4, value ? value : "none");
}

static void many_items_are_one_call(void) {
  stele_kv* kv = open_kv(path);
  const stele_kv_item items[] = {{"m1", 2, "a", 1}, {"m2", 2, NULL, 0}, {"m1", 2, "b", 1}};
  const stele_kv_item keys[] = {{"m1", 2, NULL, 0}, {"m9", 2, NULL, 0}, {"m2", 2, NULL, 0}};
  const stele_kv_item wrong[] = {{"m3", 2, "c", 1}, {"", 0, "c", 1}, {NULL, 2, "c", 1}};
  char seen[3][8] = {"", "", "x"};
  CHECK(stele_kv_put_many(kv, items, 3, STELE_DURABLE) == STELE_OK);
  CHECK(stele_kv_get_many(kv, keys, 3, note_value, seen) == STELE_OK);
  CHECK(!strcmp(seen[0], "b") && !strcmp(seen[1], "none") && !strcmp(seen[2], ""));
  CHECK(stele_kv_put_many(kv, wrong, 2, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_put_many(kv, wrong + 2, 1, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(has(kv, "m3", NULL));
  CHECK(stele_kv_put_many(kv, NULL, 0, STELE_DURABLE) == STELE_OK);
  CHECK(stele_kv_put_many(kv, NULL, 1, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_get_many(kv, keys, 1, NULL, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_get_many(NULL, keys, 1, note_value, seen) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_close(kv) == STELE_OK);
}

static void what_is_wrong_is_refused(void) {
  stele_kv *kv = NULL, *second = NULL;
  stele_kv_cursor* cursor = NULL;
  size_t size = 0;
  CHECK(stele_kv_open("/nowhere/at/all", NULL, &kv) == STELE_NOT_FOUND && kv == NULL);
  kv = open_kv(path);
  CHECK(stele_kv_open(path, NULL, &second) == STELE_IN_USE);
  CHECK(stele_kv_open(path, NULL, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_put(NULL, "a", 1, "", 0, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_put(kv, NULL, 1, "", 0, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_put(kv, "", 0, "", 0, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_put(kv, "a", 1, "", 0, 9) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_get(kv, "a", 1, NULL, 5, &size) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_get(kv, "a", 1, NULL, 0, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_walk(kv, NULL, 3, NULL, 0, &cursor) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_next(NULL, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_update(kv, NULL, NULL, STELE_DURABLE) == STELE_INVALID_ARGUMENT);
  static char large[1 << 20];
  int code = STELE_OK;
  for (char key = 'A'; code == STELE_OK && key < 'Z'; ++key)
    code = stele_kv_put(kv, &key, 1, large, sizeof large, STELE_DURABLE);
  CHECK(code == STELE_FULL);
  CHECK(stele_kv_erase(kv, "A", 1, STELE_DURABLE) == STELE_OK && put(kv, "A", "fits") == STELE_OK);
  CHECK(stele_kv_check(kv) == STELE_OK && stele_kv_close(kv) == STELE_OK);
}

int main(void) {
  snprintf(directory, sizeof directory, "%s/stele-capi-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(directory) == NULL) return perror(directory), 1;
  snprintf(path, sizeof path, "%s/kv", directory);
  snprintf(path_of_other, sizeof path_of_other, "%s/other", directory);
  items_come_and_go();
  a_walk_goes_in_order();
  bodies_are_transactions();
  many_items_are_one_call();
  what_is_wrong_is_refused();
  unlink(path);
  unlink(path_of_other);
  rmdir(directory);
  if (failures == 0) printf("all checks held\n");
  return failures == 0 ? 0 : 1;
}
