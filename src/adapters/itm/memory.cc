// malloc and new in blocks, and the pool's own allocation.
//
// Ordinary memory stays ordinary: it is given back when the block is rolled back, and what the block frees is freed after its
// commit, when no older block can be reading it. free and delete of an object in the pool free it there.
#include <adapters/itm/routing.h>
#include <stele/itm.h>

#include <cstdlib>
#include <new>

namespace stele::itm {

namespace {

void delete_one(void* memory) { ::operator delete(memory); }
void delete_array(void* memory) { ::operator delete[](memory); }

void* kept(void* memory, block::action give_back) {
  if (memory != nullptr) block::known()->took(memory, give_back);
  return memory;
}

void release(void* memory, block::action give_back) {
  if (memory == nullptr) return;
  if (in_pool(reinterpret_cast<std::uintptr_t>(memory)))
    guarded([&] { block::known()->deallocate(memory); });
  else
    block::known()->free_later(memory, give_back);
}

error outside_a_block(const char* what) { return {errc::invalid_argument, std::string(what) + " outside an atomic block; put it inside __transaction_atomic"}; }

// Runs `act`; a failure of the program's comes back as an error, and conflicts do not come back.
template <class Act>
std::optional<error> told(Act&& act) {
  try {
    act();
    return {};
  } catch (const detail::restart&) {
  } catch (const failure& f) {
    return f.why();
  }
  block::known()->start_over();
}

}  // namespace

void* allocate(std::size_t size, std::size_t alignment) {
  block* const b = block::known();
  if (b == nullptr || !b->running()) throw failure(outside_a_block("an allocation in the pool"));
  void* object = nullptr;
  auto wrong = !is_open() ? std::optional<error>({errc::invalid_argument, "an allocation in the pool, and none is open; call stele::itm::open first"})
                          : told([&] { object = b->allocate(size, alignment); });
  if (wrong) b->thrown().raise_failure(std::move(*wrong));
  return object;
}

void deallocate(void* object) {
  if (object == nullptr) return;
  block* const b = block::known();
  if (b == nullptr || !b->running()) throw failure(outside_a_block("freeing an object of the pool"));
  if (auto wrong = told([&] { b->deallocate(object); })) b->thrown().raise_failure(std::move(*wrong));
}

}  // namespace stele::itm

extern "C" {

void* stele_itm_malloc(std::size_t size) noexcept {
  using namespace stele::itm;
  block* const b = block::known();
  void* object = nullptr;
  if (b == nullptr || !b->running() || !is_open()) return object;
  (void)told([&] { object = b->allocate(size, 16); });
  return object;
}
void stele_itm_free(void* object) noexcept { stele::itm::release(object, std::free); }

void* _ITM_malloc(std::size_t size) { return stele::itm::kept(std::malloc(size), std::free); }
void* _ITM_calloc(std::size_t count, std::size_t size) { return stele::itm::kept(std::calloc(count, size), std::free); }
void _ITM_free(void* memory) { stele::itm::release(memory, std::free); }

// Transactional clones of operator new and delete, by their mangled names.
void* _ZGTtnwm(std::size_t size) { return stele::itm::kept(::operator new(size), stele::itm::delete_one); }
void* _ZGTtnam(std::size_t size) { return stele::itm::kept(::operator new[](size), stele::itm::delete_array); }
void* _ZGTtnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t& n) { return stele::itm::kept(::operator new(size, n), stele::itm::delete_one); }
void* _ZGTtnamRKSt9nothrow_t(std::size_t size, const std::nothrow_t& n) { return stele::itm::kept(::operator new[](size, n), stele::itm::delete_array); }
void _ZGTtdlPv(void* memory) { stele::itm::release(memory, stele::itm::delete_one); }
void _ZGTtdaPv(void* memory) { stele::itm::release(memory, stele::itm::delete_array); }
void _ZGTtdlPvm(void* memory, std::size_t) { stele::itm::release(memory, stele::itm::delete_one); }
void _ZGTtdaPvm(void* memory, std::size_t) { stele::itm::release(memory, stele::itm::delete_array); }
void _ZGTtdlPvRKSt9nothrow_t(void* memory, const std::nothrow_t&) { stele::itm::release(memory, stele::itm::delete_one); }
void _ZGTtdaPvRKSt9nothrow_t(void* memory, const std::nothrow_t&) { stele::itm::release(memory, stele::itm::delete_array); }
void _ZGTtdlPvmRKSt9nothrow_t(void* memory, std::size_t, const std::nothrow_t&) { stele::itm::release(memory, stele::itm::delete_one); }

}
