/* Does not compile: it ignores the results of these calls. */
#include <stele/stele.h>

void ignores(stele_pool* pool, stele_kv* kv) {
  stele_pool_sync(pool);
  stele_kv_put(kv, "key", 3, "value", 5, STELE_DURABLE);
}
