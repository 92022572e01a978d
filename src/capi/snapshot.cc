// The C functions of snapshots that a program holds.
#include <capi/kv.h>
#include <capi/pool.h>
#include <stele/snapshot.h>

struct stele_snapshot {
  stele::pool_snapshot moment;
  stele::detail::runtime& pool;
};

namespace {

using namespace stele;

result<> take(detail::runtime& pool, stele_snapshot** snapshot) {
  *capi::required(snapshot, "snapshot") = nullptr;
  auto taken = detail::take_snapshot(pool);
  if (!taken) return std::unexpected(taken.error());
  *snapshot = new stele_snapshot{std::move(*taken), pool};
  return {};
}

}  // namespace

extern "C" {

int stele_pool_snapshot(stele_pool* pool, stele_snapshot** snapshot) {
  return capi::call([&] { return take(capi::required(pool, "pool")->handle.core(), snapshot); });
}

int stele_kv_snapshot(stele_kv* kv, stele_snapshot** snapshot) {
  return capi::call([&] { return take(capi::store_of(kv).core(), snapshot); });
}

int stele_snapshot_read(stele_snapshot* snapshot, stele_snapshot_body body, void* arg) {
  int own = 0;
  const int code = capi::call([&]() -> result<> {
    capi::required(snapshot, "snapshot"), capi::required(body, "body");
    return snapshot->moment.read([&]() -> result<> {
      const auto with_arg = [&](stele_tx* tx) { return body(tx, arg); };
      own = capi::attempt_body(snapshot->pool, with_arg);
      return {};
    });
  });
  return own != 0 ? own : code;
}

int stele_snapshot_free(stele_snapshot* snapshot) {
  return capi::call([&]() -> result<> {
    if (capi::running != nullptr)
      return std::unexpected(
          error{errc::nested, "a snapshot is freed inside a body; free it when that has ended"});
    delete snapshot;
    return {};
  });
}

}  // extern "C"
