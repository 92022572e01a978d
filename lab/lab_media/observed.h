// observed: another medium, with a store_observer that sees every store to home and every mark. It
// is under exploration: planted bugs are active.
//
// For media with mapped home: a store there is no system call, so os::syscall_hook does not see it.
// Everything else goes through system calls and is seen by the syscall_hook. The store and the
// report of it happen under the observer's lock. So a thread that holds the lock finds in home
// exactly what was reported.
#pragma once

#include <lab_media/omitting.h>

#include <utility>

namespace stele::media {

class store_observer {
 public:
  virtual ~store_observer() = default;
  virtual void lock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  // Under the lock, for a store to home; base + offset already holds the new value.
  virtual void store_recorded(const std::byte* base, std::uint64_t home_offset,
                              std::uint64_t offset, std::size_t size) = 0;
  virtual void mark_recorded(unsigned thread, tape_mark m, std::uint64_t argument) = 0;
};

template <class Inner>
class observed : public omitting<observed<Inner>> {
 public:
  struct shared {
    store_observer& observer;
    pool_mapping mapping;
    typename Inner::shared inner;

    shared(store_observer& w, const pool_mapping& r) : observer(w), mapping(r), inner(r) {}
  };
  static constexpr bool under_exploration = true;
  static constexpr auto whole_cache = Inner::whole_cache;

  observed(shared& s, unsigned thread)
      : shared_(s), thread_(thread), inner_(s.inner, thread), count(inner_.count) {}

  void store(void* to, const void* from, std::size_t size) {
    observed_store(to, size, [&] { inner_.store(to, from, size); });
  }
  void bulk_persist(std::span<const range> ranges) noexcept {
    this->drop_held_line();
    inner_.bulk_persist(ranges);
  }
  void note(tape_mark m, std::uint64_t argument) {
    shared_.observer.lock();
    shared_.observer.mark_recorded(thread_, m, argument);
    shared_.observer.unlock();
  }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  friend omitting<observed>;
  void stream_now(void* to, const void* from, std::size_t size) {
    observed_store(to, size, [&] { inner_.stream(to, from, size); });
  }
  void flush_now(const void* at, std::size_t size) noexcept { inner_.flush(at, size); }
  void fence_now() noexcept { inner_.fence(); }

  // Header and logs are private memory, which a crash does not keep.
  template <class Store>
  void observed_store(void* to, std::size_t size, Store&& store) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(to) - shared_.mapping.base);
    if (offset < shared_.mapping.home_offset) return store();
    shared_.observer.lock();
    store();
    shared_.observer.store_recorded(shared_.mapping.base, shared_.mapping.home_offset, offset,
                                    size);
    shared_.observer.unlock();
  }

  shared& shared_;
  unsigned thread_;
  Inner inner_;

 public:
  counters& count;
};

}  // namespace stele::media
