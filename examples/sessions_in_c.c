/* Sessions of a web site in a key-value store, in C: a store of its own whose items expire, a
 * counter, and a walk from the newest one back. Prints them. */
#include <stele/stele.h>

#include <stdio.h>
#include <string.h>

/* Keeps the last eight bytes of a value. May run more than once. */
static int keep_the_end(stele_kv_value* value, void* arg) {
  (void)arg;
  if (value->bytes == NULL) return 0;
  if (value->size > 8) value->bytes += value->size - 8, value->size = 8;
  return 0;
}

/* Both stores change, or neither. */
static int log_in(stele_tx* tx, stele_kv* kv, void* arg) {
  stele_kv* sessions = arg;
  int64_t visit = 0;
  char key[32];
  (void)tx;
  int code = stele_kv_add(kv, "visits", 6, 1, &visit, STELE_DURABLE);
  if (code != STELE_OK) return code;
  snprintf(key, sizeof key, "session/%08lld", (long long)visit);
  return stele_kv_put_for(sessions, key, strlen(key), "ann", 3, 30 * 60 * 1000, STELE_DURABLE);
}

static int print_sessions(stele_kv* sessions) {
  stele_kv_cursor* cursor = NULL;
  stele_kv_item item;
  int code = stele_kv_walk_prefix(sessions, "session/", 8, &cursor);
  while (code == STELE_OK && (code = stele_kv_prev(cursor, &item)) == STELE_OK)
    printf("%.*s: %.*s\n", (int)item.key_size, item.key, (int)item.value_size, item.value);
  stele_kv_cursor_free(cursor);
  return code == STELE_NOT_FOUND ? STELE_OK : code;
}

static int use(stele_kv* kv, stele_kv* sessions) {
  int code = stele_kv_update(kv, log_in, sessions, STELE_DURABLE);
  if (code == STELE_OK) code = stele_kv_modify(kv, "log", 3, keep_the_end, NULL, STELE_DURABLE);
  return code == STELE_OK ? print_sessions(sessions) : code;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: %s POOL\n", argv[0]), 2;
  stele_options options = STELE_OPTIONS_INIT;
  stele_kv *kv = NULL, *sessions = NULL;
  options.create_size = 16 << 20;
  int code = stele_kv_open(argv[1], &options, &kv);
  if (code == STELE_OK) code = stele_kv_open_store(kv, "sessions", 8, 1, &sessions);
  if (code == STELE_OK) code = use(kv, sessions);
  if (code != STELE_OK) fprintf(stderr, "%s\n", stele_error_message());
  const int closed = stele_kv_close(sessions), closed_too = stele_kv_close(kv);
  return code == STELE_OK && closed == STELE_OK && closed_too == STELE_OK ? 0 : 1;
}
