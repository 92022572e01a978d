/* A list on libpmemobj without transactions: a node is made, persisted, and then linked.

   pmemobj_list create POOL; run POOL BUG N pushes N values; check POOL OUTPUT. */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  PMEMoid next;
  uint64_t value, complement;
};
struct root {
  PMEMoid head;
};

static struct root* root_of(PMEMobjpool* pool) {
  return pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
}

static int push(PMEMobjpool* pool, uint64_t value, const char* bug) {
  struct root* const root = root_of(pool);
  PMEMoid made;
  if (pmemobj_alloc(pool, &made, sizeof(struct node), 1, NULL, NULL) != 0) return 1;
  struct node* const n = pmemobj_direct(made);
  if (strcmp(bug, "linked_first") == 0) {
    const PMEMoid old = root->head;
    root->head = made;
    pmemobj_persist(pool, &root->head, sizeof root->head);
    n->next = old;
  } else {
    n->next = root->head;
  }
  n->value = value;
  n->complement = ~value;
  if (strcmp(bug, "unpersisted_node") != 0) pmemobj_persist(pool, n, sizeof *n);
  if (strcmp(bug, "linked_first") == 0) return 0;
  root->head.pool_uuid_lo = made.pool_uuid_lo;
  root->head.off = made.off;
  if (strcmp(bug, "unpersisted_head") != 0) pmemobj_persist(pool, &root->head, sizeof root->head);
  return 0;
}

static int run(PMEMobjpool* pool, const char* bug, uint64_t n) {
  for (uint64_t i = 1; i <= n; ++i) {
    if (push(pool, i, bug) != 0) return 1;
    printf("pushed %llu\n", (unsigned long long)i);
    fflush(stdout);
  }
  return 0;
}

static int check(PMEMobjpool* pool, const char* output) {
  uint64_t last = 0, expected = 0;
  for (PMEMoid at = root_of(pool)->head; !OID_IS_NULL(at);) {
    const struct node* const n = pmemobj_direct(at);
    if (n->value != ~n->complement) return printf("a linked node was not initialised\n"), 1;
    if (expected != 0 && n->value != expected) return printf("the list is broken\n"), 1;
    if (last == 0) last = n->value;
    expected = n->value - 1;
    at = n->next;
  }
  if (expected != 0) return printf("the list ends early\n"), 1;
  unsigned long long pushed = 0;
  FILE* const in = fopen(output, "r");
  while (in != NULL && fscanf(in, "pushed %llu\n", &pushed) == 1) {
  }
  if (in != NULL) fclose(in);
  return last < pushed ? printf("an acknowledged node is missing\n"), 1 : 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "create") == 0) {
    PMEMobjpool* const made = pmemobj_create(argv[2], "list", PMEMOBJ_MIN_POOL, 0600);
    if (made == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 2;
    root_of(made);
    return pmemobj_close(made), 0;
  }
  if (argc < 4) return fprintf(stderr, "usage: pmemobj_list create|run|check POOL ...\n"), 2;
  PMEMobjpool* const pool = pmemobj_open(argv[2], "list");
  if (pool == NULL) return printf("the pool cannot be opened: %s\n", pmemobj_errormsg()), 1;
  const int status = strcmp(argv[1], "run") == 0
                         ? run(pool, argv[3], argc > 4 ? strtoull(argv[4], NULL, 10) : 3)
                         : check(pool, argv[3]);
  pmemobj_close(pool);
  return status;
}
