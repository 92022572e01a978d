/* `create POOL MAP`, `run POOL MAP STEPS` and `check IMAGE MAP OUTPUT [FURTHER STEPS]` of a map of
   PMDK's examples; see history.h. A check opens the pool, which recovers it, and lets the map's own
   init and check have their say. */
#include <libpmemobj.h>
#include <map.h>
#include <map_btree.h>
#include <map_ctree.h>
#include <map_hashmap_atomic.h>
#include <map_hashmap_rp.h>
#include <map_hashmap_tx.h>
#include <map_rbtree.h>
#include <map_rtree.h>
#include <map_skiplist.h>
#include <stdlib.h>

#include "history.h"

POBJ_LAYOUT_BEGIN(stele_client);
POBJ_LAYOUT_ROOT(stele_client, struct root);
POBJ_LAYOUT_TOID(stele_client, uint64_t);
POBJ_LAYOUT_END(stele_client);

struct root {
  TOID(struct map) map;
};

static PMEMobjpool* pool;
static struct map_ctx* context;
static TOID(struct map) map;

static const struct {
  const char* name;
  const struct map_ops* operations;
} maps[] = {{"btree", MAP_BTREE},           {"ctree", MAP_CTREE},
            {"rbtree", MAP_RBTREE},         {"rtree", MAP_RTREE},
            {"skiplist", MAP_SKIPLIST},     {"hashmap_atomic", MAP_HASHMAP_ATOMIC},
            {"hashmap_rp", MAP_HASHMAP_RP}, {"hashmap_tx", MAP_HASHMAP_TX}};

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, pmemobj_errormsg());
  return 1;
}

static uint64_t find(uint64_t key) {
  const PMEMoid value = map_get(context, map, key);
  return OID_IS_NULL(value) ? 0 : *(uint64_t*)pmemobj_direct(value);
}

static int construct(PMEMobjpool* in, void* at, void* argument) {
  *(uint64_t*)at = *(uint64_t*)argument;
  pmemobj_persist(in, at, sizeof(uint64_t));
  return 0;
}

/* The value is allocated by itself, as the map's interface demands: a crash between the two leaks
 * it. */
static void insert(uint64_t key, uint64_t value) {
  PMEMoid made = OID_NULL;
  if (pmemobj_alloc(pool, &made, sizeof(uint64_t), TOID_TYPE_NUM(uint64_t), construct, &value) !=
          0 ||
      map_insert(context, map, key, made) != 0)
    exit(fail("insert"));
}

static void remove_key(uint64_t key) {
  map_remove(context, map, key);
}

static const client_index index_of_map = {find, insert, remove_key};

static int count_one(uint64_t key, PMEMoid value, void* count) {
  (void)key;
  *(uint64_t*)count += !OID_IS_NULL(value);
  return 0;
}

static int check(uint64_t done, uint64_t further) {
  if (TOID_IS_NULL(map)) return done != 0;
  if (map_check(context, map) != 0) return fail("map_check");
  if (map_init(context, map) != 0) return fail("map_init");
  uint64_t listed = 0, present = 0;
  map_foreach(context, map, count_one, &listed);
  for (uint64_t number = 0; number <= done; ++number) present += find(client_key(number)) != 0;
  if (listed != present) {
    fprintf(stderr, "the map lists %" PRIu64 " keys and finds %" PRIu64 "\n", listed, present);
    return 1;
  }
  const size_t count = context->ops->count == NULL ? listed : map_count(context, map);
  if (count != listed) {
    fprintf(stderr, "the map counts %zu keys and has %" PRIu64 "\n", count, listed);
    return 1;
  }
  return !client_check(&index_of_map, done, further);
}

int main(int argc, char** argv) {
  const char* const act = argc >= 4 ? argv[1] : "";
  const struct map_ops* operations = NULL;
  for (unsigned i = 0; argc >= 4 && i < sizeof maps / sizeof *maps; ++i)
    if (strcmp(maps[i].name, argv[3]) == 0) operations = maps[i].operations;
  if (operations == NULL) {
    fprintf(
        stderr,
        "usage: %s create POOL MAP | run POOL MAP STEPS | check IMAGE MAP OUTPUT [FURTHER STEPS]\n",
        argv[0]);
    return 2;
  }
  const bool creates = strcmp(act, "create") == 0;
  pool = creates ? pmemobj_create(argv[2], POBJ_LAYOUT_NAME(stele_client), PMEMOBJ_MIN_POOL, 0600)
                 : pmemobj_open(argv[2], POBJ_LAYOUT_NAME(stele_client));
  if (pool == NULL) return fail("open");
  TOID(struct root) root = POBJ_ROOT(pool, struct root);
  context = map_ctx_init(operations, pool);
  int status = 0;
  if (strcmp(act, "run") == 0) {
    if (map_create(context, &D_RW(root)->map, NULL) != 0) return fail("map_create");
    map = D_RO(root)->map;
    client_run(&index_of_map, strtoull(argv[4], NULL, 10));
  } else if (!creates) {
    map = D_RO(root)->map;
    status = check(client_acknowledged(argv[4]), argc > 5 ? strtoull(argv[5], NULL, 10) : 0);
  }
  pmemobj_close(pool);
  return status;
}
