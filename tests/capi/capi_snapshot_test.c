/* Snapshots of stele.h: reads of one moment in many transactions, of stores and of pools. */
#define _DEFAULT_SOURCE
#include "kv_check.h"

#include <stdlib.h>
#include <unistd.h>

static char directory[64];
static char path[96];

struct stores {
  stele_kv *unnamed, *named;
  const char* value; /* that both must have */
};

static int look(stele_tx* tx, void* arg) {
  (void)tx;
  struct stores* s = arg;
  return has(s->unnamed, "k", s->value) && has(s->named, "k", s->value) ? 0 : 7;
}
static int change(stele_tx* tx, void* arg) {
  (void)tx;
  return put(((struct stores*)arg)->unnamed, "k", "changed");
}
static int use_in_update(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx, (void)kv;
  CHECK(stele_snapshot_read(arg, look, NULL) == STELE_NESTED);
  return 0;
}
static int free_in_update(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx, (void)kv;
  CHECK(stele_snapshot_free(arg) == STELE_NESTED);
  return 0;
}

static void a_store_is_read_as_it_was(void) {
  struct stores s = {open_kv(path), NULL, "old"};
  CHECK(stele_kv_open_store(s.unnamed, "named", 5, 1, &s.named) == STELE_OK);
  CHECK(put(s.unnamed, "k", "old") == STELE_OK && put(s.named, "k", "old") == STELE_OK);
  stele_snapshot* then = NULL;
  CHECK(stele_kv_snapshot(s.unnamed, &then) == STELE_OK);
  CHECK(put(s.unnamed, "k", "new") == STELE_OK && put(s.named, "k", "new") == STELE_OK);
  CHECK(stele_snapshot_read(then, look, &s) == STELE_OK);
  CHECK(stele_snapshot_read(then, change, &s) == STELE_READ_ONLY);
  CHECK(stele_snapshot_read(then, look, &s) == STELE_OK);
  CHECK(stele_kv_update(s.unnamed, use_in_update, then, STELE_DURABLE) == STELE_NESTED);
  CHECK(stele_kv_update(s.unnamed, free_in_update, then, STELE_DURABLE) == STELE_NESTED);
  s.value = "new";
  CHECK(stele_snapshot_read(then, look, &s) == 7);
  CHECK(stele_snapshot_read(NULL, look, &s) == STELE_INVALID_ARGUMENT);
  CHECK(stele_snapshot_read(then, NULL, &s) == STELE_INVALID_ARGUMENT);
  CHECK(stele_kv_snapshot(s.unnamed, NULL) == STELE_INVALID_ARGUMENT);
  CHECK(stele_snapshot_free(NULL) == STELE_OK);
  CHECK(stele_kv_close(s.named) == STELE_OK);
  CHECK(stele_kv_close(s.unnamed) == STELE_IN_USE);
  CHECK(stele_snapshot_free(then) == STELE_OK);
  CHECK(stele_kv_close(s.unnamed) == STELE_OK);
}

struct number {
  stele_pool* pool;
  uint64_t seen;
};
static int set(stele_tx* tx, void* root, void* arg) {
  return stele_store_u64(tx, root, *(uint64_t*)arg);
}
static int load(stele_tx* tx, const void* root, void* arg) {
  return stele_load_u64(tx, &((struct number*)arg)->seen, root);
}
static int load_in_snapshot(stele_tx* tx, void* arg) {
  (void)tx;
  return stele_read(((struct number*)arg)->pool, load, arg);
}

static void a_pool_is_read_as_it_was(void) {
  struct number n = {NULL, 0};
  uint64_t value = 1;
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 1 << 20;
  CHECK(stele_pool_open(path, &options, sizeof(uint64_t), &n.pool) == STELE_OK);
  CHECK(stele_update(n.pool, set, &value, STELE_DURABLE) == STELE_OK);
  stele_snapshot* then = NULL;
  CHECK(stele_pool_snapshot(n.pool, &then) == STELE_OK);
  value = 2;
  CHECK(stele_update(n.pool, set, &value, STELE_DURABLE) == STELE_OK);
  CHECK(stele_snapshot_read(then, load_in_snapshot, &n) == STELE_OK && n.seen == 1);
  CHECK(stele_read(n.pool, load, &n) == STELE_OK && n.seen == 2);
  CHECK(stele_snapshot_free(then) == STELE_OK);
  CHECK(stele_pool_close(n.pool) == STELE_OK);
}

int main(void) {
  snprintf(directory, sizeof directory, "%s/stele-capi-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(directory) == NULL) return perror(directory), 1;
  snprintf(path, sizeof path, "%s/pool", directory);
  a_store_is_read_as_it_was();
  unlink(path);
  a_pool_is_read_as_it_was();
  unlink(path);
  rmdir(directory);
  if (failures == 0) printf("all checks held\n");
  return failures == 0 ? 0 : 1;
}
