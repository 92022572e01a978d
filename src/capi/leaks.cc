// The C functions that look for blocks that nothing reaches.
#include <base/assert.h>
#include <capi/pool.h>
#include <stele/leaks.h>

// What a walk reports to: valid while the walk runs.
struct stele_visitor {
  stele_tx* tx;
  const stele::block_visitor* visit;
};

namespace {

using namespace stele;

stele_leaks summary_of(const leak_report& r) {
  stele_leaks s{r.reached_blocks, r.leaked.size(), 0, r.dangling.size()};
  for (const pool_block& b : r.leaked) s.leaked_bytes += b.size_bytes;
  return s;
}

// One attempt of a walk. Throws what its calls have met; also if the walk gives up with `own`.
void walk_once(stele_pool& pool, stele_walk walk, const block_visitor& visit, int& own, void* arg) {
  const auto body = [&](stele_tx* tx) {
    stele_visitor to{tx, &visit};
    return walk(tx, pool.handle.root(), &to, arg);
  };
  own = capi::attempt_body(pool.handle.core(), body);
  if (own != 0) throw failure({errc::cancelled, "the walk ended with " + std::to_string(own)});
}

}  // namespace

extern "C" {

int stele_visit(stele_visitor* to, const void* block) {
  return capi::call_in_transaction(to == nullptr ? nullptr : to->tx, [&] {
    if (block == nullptr) return;
    capi::check_range(block, 1, "visit");
    STELE_ASSERT(to->visit != nullptr && *to->visit);
    (*to->visit)(block);
  });
}

int stele_pool_find_leaks(stele_pool* pool, stele_walk walk, stele_each_block each, void* arg,
                          stele_leaks* leaks, size_t size) {
  int own = 0;
  const int code = capi::call([&]() -> result<> {
    capi::required(pool, "pool"), capi::required(walk, "walk");
    const auto found = detail::find_leaks(
        pool->handle.core(), pool->handle.root(),
        [&](const block_visitor& visit) { walk_once(*pool, walk, visit, own, arg); });
    if (!found) return std::unexpected(found.error());
    if (leaks != nullptr) capi::copy_known(leaks, size, summary_of(*found));
    if (each == nullptr) return {};
    for (const pool_block& b : found->leaked) each(b.offset, b.size_bytes, arg);
    for (const pool_block& b : found->dangling) each(b.offset, 0, arg);
    return {};
  });
  return own != 0 ? own : code;
}

}  // extern "C"
