// The C functions on pools: open, close, and queries.
#include <base/assert.h>
#include <capi/pool.h>

namespace {

using namespace stele;

// open: pool_handle::open or open_read_only.
result<> open_pool(decltype(detail::pool_handle::open)* open, const char* path,
                   const stele_options* options, std::size_t root_size, stele_pool** to) {
  *capi::required(to, "pool") = nullptr;
  if (root_size == 0)
    capi::throw_invalid_argument("a pool's root has at least one byte; root_size is 0");
  auto handle = open(capi::required(path, "path"), capi::options_of(options), root_size, nullptr);
  if (!handle) return std::unexpected(std::move(handle.error()));
  auto& core = handle->core();
  *to = new stele_pool{std::move(*handle), detail::mechanism_of(core)};
  STELE_ASSERT(&(*to)->handle.core() == &core && !(*to)->mechanism.empty());
  return {};
}

stele_space space_of(const pool_space& s) {
  return {s.size_bytes, s.log_bytes, s.used_bytes, s.free_bytes, s.largest_free};
}

stele_counters counters_of(const pool_counters& c) {
  return {c.commits,        c.aborts,       c.reads,       c.fences,    c.flushed_lines,
          c.streamed_bytes, c.stored_bytes, c.truncations, c.log_spills};
}

}  // namespace

extern "C" {

int stele_pool_open(const char* path, const stele_options* options, size_t root_size,
                    stele_pool** pool) {
  return capi::call(
      [&] { return open_pool(detail::pool_handle::open, path, options, root_size, pool); });
}

int stele_pool_open_read_only(const char* path, const stele_options* options, size_t root_size,
                              stele_pool** pool) {
  return capi::call([&] {
    return open_pool(detail::pool_handle::open_read_only, path, options, root_size, pool);
  });
}

int stele_pool_close(stele_pool* pool) {
  if (pool == nullptr) return STELE_OK;
  const int code = capi::call([&] { return detail::close_pool(pool->handle.core()); });
  if (code != STELE_IN_USE) delete pool;
  return code;
}

int stele_pool_sync(stele_pool* pool) {
  return capi::call([&] { return detail::sync_pool(capi::required(pool, "pool")->handle.core()); });
}

int stele_pool_check(stele_pool* pool) {
  return capi::call(
      [&] { return detail::check_storage(capi::required(pool, "pool")->handle.core()); });
}

int stele_pool_grow(stele_pool* pool, size_t size_bytes) {
  return capi::call(
      [&] { return detail::grow(capi::required(pool, "pool")->handle.core(), size_bytes); });
}

int stele_pool_backup(stele_pool* pool, const char* path, stele_progress report, void* arg) {
  return capi::call([&] {
    progress reported;
    if (report != nullptr)
      reported = [&](std::uint64_t done, std::uint64_t all) { return report(done, all, arg) == 0; };
    return detail::back_up(capi::required(pool, "pool")->handle.core(),
                           capi::required(path, "path"), reported);
  });
}

int stele_pool_durability(const stele_pool* pool, const char** to) {
  return capi::call([&]() -> result<> {
    *capi::required(to, "to") =
        name_of(detail::durability_of(capi::required(pool, "pool")->handle.core()));
    return {};
  });
}

int stele_pool_mechanism(const stele_pool* pool, const char** to) {
  return capi::call([&]() -> result<> {
    *capi::required(to, "to") = capi::required(pool, "pool")->mechanism.c_str();
    return {};
  });
}

int stele_pool_space(stele_pool* pool, stele_space* to, size_t size) {
  return capi::call([&]() -> result<> {
    capi::copy_known(to, size,
                     space_of(detail::space_of(capi::required(pool, "pool")->handle.core())));
    return {};
  });
}

int stele_pool_counters(const stele_pool* pool, stele_counters* to, size_t size) {
  return capi::call([&]() -> result<> {
    capi::copy_known(to, size,
                     counters_of(detail::counters_of(capi::required(pool, "pool")->handle.core())));
    return {};
  });
}

}  // extern "C"
