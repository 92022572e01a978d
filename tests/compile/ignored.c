/* Does not compile: what these calls say is not looked at. */
#include <stele/stele.h>

void ignores(stele_pool* pool, stele_kv* kv) {
  stele_pool_sync(pool);
  stele_kv_put(kv, "key", 3, "value", 5, STELE_DURABLE);
}
