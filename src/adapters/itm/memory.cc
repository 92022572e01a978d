// malloc and new in blocks, and allocation in the pool.
//
// Ordinary memory is freed if its block is rolled back. Memory that a block frees is freed after
// its commit, when no older block can be reading it. free and delete of an object in the pool free
// it in the pool.
#include <base/assert.h>

#include <adapters/itm/routing.h>
#include <base/check.h>
#include <stele/itm.h>

#include <cstdlib>
#include <new>

namespace stele::itm {

namespace {

void delete_one(void* memory) {
  ::operator delete(memory);
}
void delete_array(void* memory) {
  ::operator delete[](memory);
}

// Null: no memory for the allocation, or for its record.
void* recorded(void* memory, block::action deallocator) noexcept {
  if (memory == nullptr) return memory;
  try {
    block::current()->record_allocation(memory, deallocator);
    return memory;
  } catch (const std::bad_alloc&) {
    deallocator(memory);
    return nullptr;
  }
}

void* recorded_or_throw(void* memory, block::action deallocator) {
  void* const kept = recorded(memory, deallocator);
  if (kept == nullptr) throw std::bad_alloc();
  return kept;
}

void release(void* memory, block::action deallocator) {
  if (memory == nullptr) return;
  guarded([&] {
    if (in_pool(reinterpret_cast<std::uintptr_t>(memory)))
      block::current()->deallocate(memory);
    else
      block::current()->free_after_commit(memory, deallocator);
  });
}

error outside_a_block(const char* what) {
  return {errc::invalid_argument,
          std::string(what) + " outside an atomic block; put it inside __transaction_atomic"};
}

// Runs `act`. Returns a failure as an error; on a conflict, or without memory, retries the block
// and does not return.
template <class Act>
std::optional<error> error_of(Act&& act) {
  try {
    act();
    return {};
  } catch (const conflict&) {
  } catch (const failure& f) {
    return f.why();
  } catch (const std::bad_alloc&) {
    block::current()->set_no_memory();
  }
  block::current()->retry();
}

}  // namespace

void* allocate(std::size_t size, std::size_t alignment) {
  block* const b = block::current();
  if (b == nullptr || !b->running()) throw failure(outside_a_block("an allocation in the pool"));
  guarded([&] { b->thrown().make_room_for_failure(); });
  void* object = nullptr;
  auto wrong =
      !is_open() ? std::optional<error>(
                       {errc::invalid_argument,
                        "an allocation in the pool, and none is open; call stele::itm::open first"})
                 : error_of([&] { object = b->allocate(size, alignment); });
  if (wrong) b->thrown().throw_failure(std::move(*wrong));
  STELE_ASSERT(in_pool(reinterpret_cast<std::uintptr_t>(object)));
  return object;
}

void deallocate(void* object) {
  if (object == nullptr) return;
  block* const b = block::current();
  if (b == nullptr || !b->running())
    throw failure(outside_a_block("freeing an object of the pool"));
  guarded([&] { b->thrown().make_room_for_failure(); });
  if (auto wrong = error_of([&] { b->deallocate(object); }))
    b->thrown().throw_failure(std::move(*wrong));
}

}  // namespace stele::itm

extern "C" {

void* stele_itm_malloc(std::size_t size) noexcept {
  using namespace stele::itm;
  block* const b = block::current();
  void* object = nullptr;
  if (b == nullptr || !b->running() || !is_open()) return object;
  (void)error_of([&] { object = b->allocate(size, 16); });
  STELE_ASSERT(reinterpret_cast<std::uintptr_t>(object) % 16 == 0);
  return object;
}
void stele_itm_free(void* object) noexcept {
  const stele::itm::block* const b = stele::itm::block::current();
  stele::base::check(object == nullptr || (b != nullptr && b->running()),
                     "stele_itm_free outside an atomic block; put it inside __transaction_atomic");
  stele::itm::release(object, std::free);
}

void* _ITM_malloc(std::size_t size) {
  return stele::itm::recorded(std::malloc(size), std::free);
}
void* _ITM_calloc(std::size_t count, std::size_t size) {
  return stele::itm::recorded(std::calloc(count, size), std::free);
}
void _ITM_free(void* memory) {
  stele::itm::release(memory, std::free);
}

// Transactional clones of operator new and delete, by their mangled names.
void* _ZGTtnwm(std::size_t size) {
  return stele::itm::recorded_or_throw(::operator new(size), stele::itm::delete_one);
}
void* _ZGTtnam(std::size_t size) {
  return stele::itm::recorded_or_throw(::operator new[](size), stele::itm::delete_array);
}
void* _ZGTtnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t& n) {
  return stele::itm::recorded(::operator new(size, n), stele::itm::delete_one);
}
void* _ZGTtnamRKSt9nothrow_t(std::size_t size, const std::nothrow_t& n) {
  return stele::itm::recorded(::operator new[](size, n), stele::itm::delete_array);
}
void _ZGTtdlPv(void* memory) {
  stele::itm::release(memory, stele::itm::delete_one);
}
void _ZGTtdaPv(void* memory) {
  stele::itm::release(memory, stele::itm::delete_array);
}
void _ZGTtdlPvm(void* memory, std::size_t) {
  stele::itm::release(memory, stele::itm::delete_one);
}
void _ZGTtdaPvm(void* memory, std::size_t) {
  stele::itm::release(memory, stele::itm::delete_array);
}
void _ZGTtdlPvRKSt9nothrow_t(void* memory, const std::nothrow_t&) {
  stele::itm::release(memory, stele::itm::delete_one);
}
void _ZGTtdaPvRKSt9nothrow_t(void* memory, const std::nothrow_t&) {
  stele::itm::release(memory, stele::itm::delete_array);
}
void _ZGTtdlPvmRKSt9nothrow_t(void* memory, std::size_t, const std::nothrow_t&) {
  stele::itm::release(memory, stele::itm::delete_one);
}
}
