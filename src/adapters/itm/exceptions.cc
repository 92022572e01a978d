// The _ITM_cxa_ functions, and the roll-back of the C++ runtime's state for an attempt's
// exceptions; see exceptions.h.
#include <adapters/itm/block.h>
#include <base/reserve.h>
#include <cxxabi.h>
#include <unwind.h>

#include <algorithm>
#include <typeinfo>

// Provided by libstdc++ for this purpose: frees an exception in flight, and ends `caught` handlers
// without running destructors.
extern "C" void __cxa_tm_cleanup(void* unthrown, void* in_flight, unsigned int caught) noexcept;

namespace stele::itm {

namespace {

void* header_of(void* exception) noexcept {
  return static_cast<_Unwind_Exception*>(exception) - 1;
}

}  // namespace

// The C++ ABI places the count of exceptions between throw and handler after the stack of caught
// ones.
unsigned& exceptions::uncaught_of_this_thread() noexcept {
  return *reinterpret_cast<unsigned*>(
      reinterpret_cast<std::byte*>(__cxxabiv1::__cxa_get_globals()) + sizeof(void*));
}

bool exceptions::is_unthrown(const void* exception) const noexcept {
  return std::find(unthrown_.begin(), unthrown_.end(), exception) != unthrown_.end();
}

void exceptions::forget(void* exception) noexcept {
  STELE_ASSERT_WHOLE(is_unthrown(exception));
  std::erase(unthrown_, exception);
}

void* exceptions::allocate(std::size_t size) {
  base::reserve_more(unthrown_, 1);
  void* const exception = __cxxabiv1::__cxa_allocate_exception(size);
  STELE_ASSERT_WHOLE(!is_unthrown(exception));
  unthrown_.push_back(exception);
  return exception;
}

void exceptions::free(void* exception) noexcept {
  forget(exception);
  __cxxabiv1::__cxa_free_exception(exception);
}

void exceptions::raise(void* exception, void* type, void (*destroy)(void*)) {
  forget(exception);
  in_flight_ = header_of(exception);
  __cxxabiv1::__cxa_throw(exception, static_cast<std::type_info*>(type), destroy);
}

void* exceptions::begin_catch(void* header) noexcept {
  STELE_ASSERT(header != nullptr);
  ++caught_;
  in_flight_ = nullptr;
  return __cxxabiv1::__cxa_begin_catch(header);
}

void exceptions::end_catch() {
  STELE_ASSERT(caught_ != 0);
  --caught_;
  __cxxabiv1::__cxa_end_catch();
}

void exceptions::roll_back_to(const mark& to) noexcept {
  // Exceptions from before the mark belong to code around the block, which has not ended.
  STELE_ASSERT(unthrown_.size() >= to.unthrown);
  STELE_ASSERT(caught_ >= to.caught);
  for (; unthrown_.size() > to.unthrown; unthrown_.pop_back())
    __cxxabiv1::__cxa_free_exception(unthrown_.back());
  if (in_flight_ != nullptr || caught_ > to.caught)
    __cxa_tm_cleanup(nullptr, in_flight_, caught_ - to.caught);
  in_flight_ = nullptr;
  caught_ = to.caught;
  uncaught_ = to.uncaught;
  // Exceptions thrown since are gone; earlier ones may still be caught or rethrown.
  if (failures_.size() > to.failures) failures_.resize(to.failures);
}

// Another exception may get the address of this one.
void exceptions::destroy_failure(void* exception) noexcept {
  static_cast<failure*>(exception)->~failure();
  if (block* const b = block::current()) std::erase(b->thrown().failures_, header_of(exception));
}

void exceptions::make_room_for_failure() {
  base::reserve_more(failures_, 1);
}

void exceptions::throw_failure(error why) {
  void* const memory = __cxxabiv1::__cxa_allocate_exception(sizeof(failure));
  in_flight_ = header_of(::new (memory) failure(std::move(why)));
  STELE_ASSERT(failures_.size() < failures_.capacity());
  failures_.push_back(in_flight_);
  __cxxabiv1::__cxa_throw(memory, const_cast<std::type_info*>(&typeid(failure)), &destroy_failure);
}

}  // namespace stele::itm

using stele::itm::block;

extern "C" {

void* _ITM_cxa_allocate_exception(std::size_t size) {
  return stele::itm::guarded([&] { return block::current()->thrown().allocate(size); });
}
void _ITM_cxa_free_exception(void* exception) {
  block::current()->thrown().free(exception);
}
void _ITM_cxa_throw(void* exception, void* type, void (*destroy)(void*)) {
  block::current()->thrown().raise(exception, type, destroy);
}
void* _ITM_cxa_begin_catch(void* header) {
  return block::current()->thrown().begin_catch(header);
}
void _ITM_cxa_end_catch() {
  block::current()->thrown().end_catch();
}
}
