// The C functions that run transactions and that are called inside them.
//
// Addresses are checked against the pool of the running transaction: an access elsewhere would
// bypass the transaction.
#include <base/assert.h>
#include <capi/pool.h>
#include <stele/memory.h>

std::size_t stele::capi::check_range(const void* place, std::size_t size, const char* what) {
  const detail::heap_range heap = detail::running_heap();
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(place);
  if (at >= heap.begin && at < heap.end && heap.end - at >= size) return size;
  throw_invalid_argument(
      std::string("the place to ") + what +
      " is not in the pool of the running transaction; plain memory is loaded and stored as ever");
}

namespace {

using namespace stele;
using capi::check_range;

template <class T>
T& word_at(const T* place, const char* what) {
  check_range(place, sizeof(T), what);
  if (reinterpret_cast<std::uintptr_t>(place) % alignof(T) != 0)
    capi::throw_invalid_argument(std::string("the word to ") + what + " is not at a multiple of 8");
  return const_cast<T&>(*place);
}

using word_field = field<std::uint64_t>;
using pointer_field = field<char*>;
static_assert(sizeof(stele_ptr) == sizeof(pointer_field) &&
              alignof(stele_ptr) == alignof(pointer_field));
static_assert(sizeof(word_field) == 8);

template <class Field, class T>
Field& field_at(const T* place, const char* what) {
  return reinterpret_cast<Field&>(word_at(place, what));
}

constexpr std::size_t max_bytes = std::size_t{1} << 46;

void* allocate_zeroed(std::size_t size) {
  if (size == 0) capi::throw_invalid_argument("a block has at least one byte; size is 0");
  if (size > max_bytes)
    throw failure(
        {errc::full, "a block of " + std::to_string(size) + " bytes does not fit a pool"});
  void* const block = pool_memory::allocate(size, 16);
  STELE_ASSERT(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % 16 == 0);
  pool_memory::fill_zero(block, size);
  return block;
}

// The body is a C function that receives the pool's root.
template <class Function>
int run(stele_pool* pool, bool writes, int d, Function* body, void* arg) {
  auto how = durability::durable;
  const int refused = capi::call([&]() -> result<> {
    capi::required(pool, "pool"), capi::required(body, "body");
    how = capi::durability_of(d);
    return {};
  });
  if (refused != STELE_OK) return refused;
  return capi::run_body(pool->handle.core(), writes, how,
                        [&](stele_tx* tx) { return body(tx, pool->handle.root(), arg); });
}

}  // namespace

extern "C" {

int stele_update(stele_pool* pool, stele_update_body body, void* arg, int durability) {
  return run(pool, true, durability, body, arg);
}

int stele_read(stele_pool* pool, stele_read_body body, void* arg) {
  return run(pool, false, STELE_DURABLE, body, arg);
}

int stele_load(stele_tx* tx, void* to, const void* from, size_t n) {
  return capi::call_in_transaction(
      tx, [&] { load_bytes(capi::required(to, "to"), from, check_range(from, n, "load")); });
}

int stele_store(stele_tx* tx, void* to, const void* from, size_t n) {
  return capi::call_in_transaction(
      tx, [&] { store_bytes(to, capi::required(from, "from"), check_range(to, n, "store")); });
}

int stele_load_u64(stele_tx* tx, uint64_t* to, const uint64_t* from) {
  return capi::call_in_transaction(
      tx, [&] { *capi::required(to, "to") = field_at<word_field>(from, "load").load(); });
}

int stele_store_u64(stele_tx* tx, uint64_t* to, uint64_t value) {
  return capi::call_in_transaction(tx, [&] { field_at<word_field>(to, "store").store(value); });
}

int stele_alloc(stele_tx* tx, size_t size, void** block) {
  return capi::call_in_transaction(
      tx, [&] { *capi::required(block, "block") = allocate_zeroed(size); });
}

int stele_free(stele_tx* tx, void* block) {
  return capi::call_in_transaction(tx, [&] { pool_memory::deallocate(block); });
}

int stele_get_ptr(stele_tx* tx, const stele_ptr* from, void** to) {
  return capi::call_in_transaction(
      tx, [&] { *capi::required(to, "to") = field_at<pointer_field>(from, "load").load(); });
}

int stele_set_ptr(stele_tx* tx, stele_ptr* at, void* target) {
  return capi::call_in_transaction(tx, [&] {
    if (target != nullptr) check_range(target, 1, "point to");
    field_at<pointer_field>(at, "store").store(static_cast<char*>(target));
  });
}

}  // extern "C"
