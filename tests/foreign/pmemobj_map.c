/* A hash map on libpmemobj's transactions: buckets, a count, and a value that is replaced in place.

   pmemobj_map create POOL; run POOL BUG N puts N keys and changes each; check POOL OUTPUT. */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { buckets = 8 };

struct entry {
  PMEMoid next;
  uint64_t key, low, high; /* low == high: both are changed in one transaction */
};
struct map {
  uint64_t count;
  uint64_t padding[7];
  PMEMoid heads[buckets];
};

static struct map* map_of(PMEMobjpool* pool) {
  return pmemobj_direct(pmemobj_root(pool, sizeof(struct map)));
}

/* What a transaction stores to, unless that is the planted bug. */
static void log_range(const char* bug, const char* left_out, const void* at, size_t size) {
  if (strcmp(bug, left_out) != 0) pmemobj_tx_add_range_direct(at, size);
}

static int put(PMEMobjpool* pool, uint64_t key, const char* bug) {
  struct map* const m = map_of(pool);
  PMEMoid* const head = &m->heads[key % buckets];
  TX_BEGIN(pool) {
    const PMEMoid made = pmemobj_tx_zalloc(sizeof(struct entry), 2);
    struct entry* const e = pmemobj_direct(made);
    e->key = key;
    e->low = e->high = key;
    e->next = *head;
    log_range(bug, "unlogged_head", head, sizeof *head);
    *head = made;
    log_range(bug, "unlogged_count", &m->count, sizeof m->count);
    m->count++;
  }
  TX_ONABORT {
    return 1;
  }
  TX_END
  return 0;
}

static int change(PMEMobjpool* pool, uint64_t key, const char* bug) {
  struct entry* const e = pmemobj_direct(map_of(pool)->heads[key % buckets]);
  TX_BEGIN(pool) {
    log_range(bug, "unlogged_value", &e->low, sizeof e->low);
    e->low += 100;
    pmemobj_tx_add_range_direct(&e->high, sizeof e->high);
    e->high += 100;
    if (strcmp(bug, "unlogged_value") == 0) pmemobj_persist(pool, &e->low, sizeof e->low);
  }
  TX_ONABORT {
    return 1;
  }
  TX_END
  return 0;
}

static int run(PMEMobjpool* pool, const char* bug, uint64_t n) {
  for (uint64_t key = 1; key <= n && key < buckets; ++key) {
    if (put(pool, key, bug) != 0 || change(pool, key, bug) != 0) return 1;
    printf("put %llu\n", (unsigned long long)key);
    fflush(stdout);
  }
  return 0;
}

static int check(PMEMobjpool* pool, const char* output) {
  const struct map* const m = map_of(pool);
  uint64_t found = 0;
  for (int b = 0; b < buckets; ++b)
    for (PMEMoid at = m->heads[b]; !OID_IS_NULL(at);) {
      const struct entry* const e = pmemobj_direct(at);
      if (e->key % buckets != (uint64_t)b) return printf("an entry is in a wrong bucket\n"), 1;
      if (e->low != e->high) return printf("half of a change is there\n"), 1;
      ++found;
      at = e->next;
    }
  if (found != m->count) return printf("the count differs from the entries\n"), 1;
  unsigned long long acknowledged = 0;
  FILE* const in = fopen(output, "r");
  while (in != NULL && fscanf(in, "put %llu\n", &acknowledged) == 1) {
  }
  if (in != NULL) fclose(in);
  return found < acknowledged ? printf("an acknowledged entry is missing\n"), 1 : 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "create") == 0) {
    PMEMobjpool* const made = pmemobj_create(argv[2], "map", PMEMOBJ_MIN_POOL, 0600);
    if (made == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 2;
    map_of(made);
    return pmemobj_close(made), 0;
  }
  if (argc < 4) return fprintf(stderr, "usage: pmemobj_map create|run|check POOL ...\n"), 2;
  PMEMobjpool* const pool = pmemobj_open(argv[2], "map");
  if (pool == NULL) return printf("the pool cannot be opened: %s\n", pmemobj_errormsg()), 1;
  const int status = strcmp(argv[1], "run") == 0
                         ? run(pool, argv[3], argc > 4 ? strtoull(argv[4], NULL, 10) : 2)
                         : check(pool, argv[3]);
  pmemobj_close(pool);
  return status;
}
