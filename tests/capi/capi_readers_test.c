/* Pools and stores that are open for reading, from C: beside a process that writes, when it is
 * killed, and beside the next one. Each read sees one state; what would change one is refused.
 */
#define _DEFAULT_SOURCE
#include "kv_check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct pair {
  uint64_t one, two; /* equal */
  char space[4096];
  uint64_t three; /* equal too, elsewhere */
} pair;

static char directory[64];
static char path[96];

static int count_up(stele_tx* tx, void* at, void* arg) {
  pair* p = at;
  uint64_t n = 0;
  (void)arg;
  int code = stele_load_u64(tx, &n, &p->one);
  if (code == STELE_OK) code = stele_store_u64(tx, &p->one, n + 1);
  if (code == STELE_OK) code = stele_store_u64(tx, &p->two, n + 1);
  return code == STELE_OK ? stele_store_u64(tx, &p->three, n + 1) : code;
}

/* 7 if they differ. */
static int get_count(stele_tx* tx, const void* at, void* arg) {
  const pair* p = at;
  uint64_t n[3];
  int code = stele_load_u64(tx, &n[0], &p->one);
  if (code == STELE_OK) code = stele_load_u64(tx, &n[1], &p->two);
  if (code == STELE_OK) code = stele_load_u64(tx, &n[2], &p->three);
  if (code != STELE_OK) return code;
  *(uint64_t*)arg = n[0];
  return n[0] == n[1] && n[1] == n[2] ? 0 : 7;
}

static uint64_t count_in(stele_pool* pool) {
  uint64_t n = 0;
  CHECK(stele_read(pool, get_count, &n) == STELE_OK);
  return n;
}

static stele_pool* open_to_write(void) {
  stele_options options = STELE_OPTIONS_INIT;
  options.create_size = 8 << 20;
  stele_pool* pool = NULL;
  CHECK(stele_pool_open(path, &options, sizeof(pair), &pool) == STELE_OK);
  return pool;
}

/* A process that counts up until it is killed; it has begun when this returns. */
static pid_t start_writer(void) {
  int ready[2];
  char byte = 0;
  CHECK(pipe(ready) == 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    stele_pool* pool = open_to_write();
    for (uint64_t n = 0; failures == 0; ++n) {
      CHECK(stele_update(pool, count_up, NULL, STELE_DURABLE) == STELE_OK);
      if (n == 0) CHECK(write(ready[1], "x", 1) == 1);
    }
    _exit(1);
  }
  CHECK(child > 0 && read(ready[0], &byte, 1) == 1);
  close(ready[0]), close(ready[1]);
  return child;
}

static void kill_writer(pid_t child) {
  int status = 0;
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

static void what_changes_is_refused(stele_pool* pool) {
  CHECK(stele_update(pool, count_up, NULL, STELE_DURABLE) == STELE_READ_ONLY);
  CHECK(strstr(stele_error_message(), "open for reading only") != NULL);
  CHECK(strstr(stele_error_message(), "::") == NULL); /* names nothing of C++ */
  CHECK(stele_pool_grow(pool, 16 << 20) == STELE_READ_ONLY);
  CHECK(stele_pool_check(pool) == STELE_READ_ONLY);
  CHECK(stele_pool_sync(pool) == STELE_OK);
}

static void readers_see_one_state_whoever_is_killed(void) {
  stele_pool* reader = NULL;
  CHECK(stele_pool_open_read_only(path, NULL, sizeof(pair), &reader) == STELE_NOT_FOUND);
  CHECK(reader == NULL);
  pid_t writer = start_writer();
  CHECK(stele_pool_open_read_only(path, NULL, sizeof(pair) + 8, &reader) == STELE_LAYOUT);
  CHECK(stele_pool_open_read_only(path, NULL, sizeof(pair), &reader) == STELE_OK);
  uint64_t last = count_in(reader);
  const uint64_t first = last;
  CHECK(first > 0);
  for (int i = 0; i < 20000 || last == first; ++i) {
    const uint64_t now = count_in(reader);
    CHECK(now >= last);
    last = now;
  }
  what_changes_is_refused(reader);
  kill_writer(writer);
  CHECK(count_in(reader) >= last);
  last = count_in(reader);
  CHECK(count_in(reader) == last);
  writer = start_writer();
  CHECK(count_in(reader) > last);
  kill_writer(writer);
  last = count_in(reader);
  stele_pool* pool = open_to_write();
  CHECK(count_in(pool) >= last);
  CHECK(stele_update(pool, count_up, NULL, STELE_DURABLE) == STELE_OK);
  CHECK(count_in(reader) == count_in(pool));
  CHECK(stele_pool_close(pool) == STELE_OK);
  CHECK(count_in(reader) > last && stele_pool_close(reader) == STELE_OK);
}

static int put_in_body(stele_tx* tx, stele_kv* kv, void* arg) {
  return (void)tx, (void)arg, put(kv, "b", "x");
}

static void stores_are_read_too(void) {
  stele_kv* reader = NULL;
  CHECK(stele_kv_open_read_only(path, &reader) == STELE_LAYOUT && reader == NULL);
  unlink(path);
  stele_kv* kv = open_kv(path);
  CHECK(put(kv, "a", "one") == STELE_OK);
  CHECK(stele_kv_open_read_only(path, &reader) == STELE_OK && has(reader, "a", "one"));
  CHECK(put(kv, "a", "four") == STELE_OK && has(reader, "a", "four"));
  CHECK(put(reader, "b", "x") == STELE_READ_ONLY);
  CHECK(stele_kv_erase(reader, "a", 1, STELE_DURABLE) == STELE_READ_ONLY);
  CHECK(stele_kv_update(reader, put_in_body, NULL, STELE_DURABLE) == STELE_READ_ONLY);
  CHECK(stele_kv_read(reader, put_in_body, NULL) == STELE_READ_ONLY);
  CHECK(stele_kv_check(reader) == STELE_OK);
  CHECK(stele_kv_close(kv) == STELE_OK);
  CHECK(has(reader, "a", "four") && has(reader, "b", NULL));
  CHECK(stele_kv_close(reader) == STELE_OK);
}

int main(void) {
  snprintf(directory, sizeof directory, "%s/stele-capi-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(directory) == NULL) return perror(directory), 1;
  snprintf(path, sizeof path, "%s/pool", directory);
  readers_see_one_state_whoever_is_killed();
  stores_are_read_too();
  unlink(path);
  rmdir(directory);
  if (failures == 0) printf("all checks held\n");
  return failures == 0 ? 0 : 1;
}
