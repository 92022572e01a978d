// Does not compile: it ignores the results of these calls.
#include <stele/kv.h>
#include <stele/pool.h>

struct root {
  stele::field<int> n;
};

void ignores(stele::pool<root>& pool, stele::kv& store) {
  pool.update([](root& r) { r.n = 1; });
  pool.read([](const root& r) { return r.n.load(); });
  pool.sync();
  pool.close();
  store.put("key", "value");
}
