/* What every client does, and what its checker demands.

   A run does one step after the other and acknowledges each: it inserts a key that is new or
   removes one that was inserted. After a crash the steps that were acknowledged must be there, the
   step after them may be there in full or not at all, and no later step may be there. */
#ifndef STELE_CLIENT_HISTORY_H
#define STELE_CLIENT_HISTORY_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  bool removes;
  uint64_t number; /* of the key */
} client_step;

typedef struct {
  uint64_t (*find)(uint64_t key); /* 0: absent */
  void (*insert)(uint64_t key, uint64_t value);
  void (*remove)(uint64_t key); /* NULL: no step removes */
} client_index;

/* Of 32 bits, all different, none 0, in no order. */
static inline uint64_t client_key(uint64_t number) {
  return (number + 1) * 2654435761u % 4294967296u;
}

static inline uint64_t client_value(uint64_t key) {
  return 2 * key + 64;
}

/* With removals every third step removes. */
static inline client_step client_step_at(uint64_t i, bool with_removals) {
  const bool removes = with_removals && i % 3 == 2;
  const client_step s = {removes, removes ? i / 3 : with_removals ? i - i / 3 : i};
  return s;
}

static inline void client_do(const client_index* index, uint64_t i) {
  const client_step s = client_step_at(i, index->remove != NULL);
  const uint64_t key = client_key(s.number);
  if (s.removes)
    index->remove(key);
  else
    index->insert(key, client_value(key));
}

static inline void client_run(const client_index* index, uint64_t steps) {
  char line[32];
  for (uint64_t i = 0; i < steps; ++i) {
    client_do(index, i);
    const int size = snprintf(line, sizeof line, "%" PRIu64 "\n", i + 1);
    if (write(1, line, (size_t)size) != size) return;
  }
}

/* The last number that the run acknowledged. */
static inline uint64_t client_acknowledged(const char* path) {
  uint64_t last = 0;
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  for (uint64_t n; fscanf(file, "%" SCNu64, &n) == 1;) last = n;
  fclose(file);
  return last;
}

/* Whether all keys are as after `done` steps; `open_step`: the next step may have happened, too. */
static inline bool client_judge(const client_index* index, uint64_t done, bool open_step,
                                const char* when) {
  enum { beyond = 8, most = 4096 };
  static signed char present[most]; /* -1: either */
  memset(present, 0, sizeof present);
  for (uint64_t i = 0; i < done + open_step && i < most; ++i) {
    const client_step s = client_step_at(i, index->remove != NULL);
    present[s.number] = i == done ? -1 : !s.removes;
  }
  for (uint64_t number = 0; number < done + beyond && number < most; ++number) {
    const uint64_t key = client_key(number), value = index->find(key);
    const char* const wrong = value == 0             ? (present[number] == 1 ? "is lost" : NULL)
                              : present[number] == 0 ? "is there, and must not be"
                              : value != client_value(key) ? "has another value"
                                                           : NULL;
    if (wrong != NULL) {
      fprintf(stderr, "%s: key number %" PRIu64 " %s\n", when, number, wrong);
      return false;
    }
  }
  return true;
}

/* The state after the crash, and after going on from there. */
static inline bool client_check(const client_index* index, uint64_t done, uint64_t further) {
  if (!client_judge(index, done, true, "after the crash")) return false;
  if (further == 0) return true;
  const client_step s = client_step_at(done, index->remove != NULL);
  if (s.removes == (index->find(client_key(s.number)) != 0)) client_do(index, done);
  for (uint64_t i = done + 1; i <= done + further; ++i) client_do(index, i);
  return client_judge(index, done + further + 1, false, "after further steps");
}

#endif
