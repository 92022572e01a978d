/* A log in a file mapped by libpmem: a count, and records that are valid below it.

   pmem_log run POOL BUG N appends N records; pmem_log check POOL OUTPUT says whether the pool holds
   every record that OUTPUT names, and none that is damaged. */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_records = 60 };

struct record {
  uint64_t words[8]; /* equal to each other */
};
struct log_file {
  uint64_t count;
  uint64_t padding[7];
  struct record records[most_records];
};

static struct log_file* open_log(const char* path) {
  size_t size = 0;
  int is_pmem = 0;
  void* const at =
      pmem_map_file(path, sizeof(struct log_file), PMEM_FILE_CREATE, 0600, &size, &is_pmem);
  if (at == NULL || size < sizeof(struct log_file)) {
    fprintf(stderr, "%s cannot be mapped: %s\n", path, pmem_errormsg());
    exit(2);
  }
  return at;
}

static void append(struct log_file* log, uint64_t value, const char* bug) {
  struct record* const r = &log->records[log->count];
  if (strcmp(bug, "early_count") == 0) {
    log->count++;
    pmem_persist(&log->count, sizeof log->count);
  }
  struct record filled;
  for (int i = 0; i < 8; ++i) filled.words[i] = value;
  if (strcmp(bug, "unflushed_record") == 0) {
    memcpy(r, &filled, sizeof filled);
  } else if (strcmp(bug, "undrained_record") == 0) {
    pmem_memcpy_nodrain(r, &filled, sizeof filled);
  } else {
    pmem_memcpy_persist(r, &filled, sizeof filled);
  }
  if (strcmp(bug, "early_count") != 0) {
    log->count++;
    if (strcmp(bug, "unflushed_count") != 0) pmem_persist(&log->count, sizeof log->count);
  }
  if (strcmp(bug, "early_count") == 0) pmem_persist(r, sizeof *r);
}

static int run(const char* path, const char* bug, uint64_t n) {
  struct log_file* const log = open_log(path);
  for (uint64_t i = 0; i < n && log->count < most_records; ++i) {
    append(log, 1000 + log->count, bug);
    printf("appended %llu\n", (unsigned long long)log->count);
    fflush(stdout);
  }
  return 0;
}

static uint64_t acknowledged(const char* output) {
  unsigned long long last = 0;
  FILE* const in = fopen(output, "r");
  while (in != NULL && fscanf(in, "appended %llu\n", &last) == 1) {
  }
  if (in != NULL) fclose(in);
  return last;
}

static int check(const char* path, const char* output) {
  const struct log_file* const log = open_log(path);
  if (log->count > most_records)
    return printf("count %llu is too large\n", (unsigned long long)log->count), 1;
  for (uint64_t i = 0; i < log->count; ++i)
    for (int k = 0; k < 8; ++k)
      if (log->records[i].words[k] != 1000 + i) return printf("a valid record is damaged\n"), 1;
  if (log->count < acknowledged(output)) return printf("an acknowledged record is missing\n"), 1;
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[1], "run") == 0)
    return run(argv[2], argv[3], strtoull(argv[4], NULL, 10));
  if (argc == 4 && strcmp(argv[1], "check") == 0) return check(argv[2], argv[3]);
  fprintf(stderr, "usage: pmem_log run POOL BUG N | check POOL OUTPUT\n");
  return 2;
}
