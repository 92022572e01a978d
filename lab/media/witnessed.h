// witnessed: another medium, with a witness who is told of every store to home and every mark. Explores: planted bugs are
// real here.
//
// For media whose home is mapped: a store there is no system call, so os::watcher does not see it. What passes by system
// calls is the watcher's to see. The witness is told inside a turn that it takes itself, with the store between: whoever
// looks at home in a turn finds what the witness has been told.
#pragma once

#include <media/media.h>

#include <utility>

namespace stele::media {

class witness {
 public:
  virtual ~witness() = default;
  virtual void begin_turn() noexcept = 0;
  virtual void end_turn() noexcept = 0;
  // In a turn, of home: what is at base + offset now.
  virtual void stored(const std::byte* base, std::uint64_t home_offset, std::uint64_t offset, std::size_t size) = 0;
  virtual void marked(unsigned thread, mark m, std::uint64_t argument) = 0;
};

template <class Inner>
class witnessed {
 public:
  struct shared {
    witness& who;
    region where;
    typename Inner::shared inner;

    shared(witness& w, const region& r) : who(w), where(r), inner(r) {}
  };
  static constexpr bool explores = true;
  static constexpr auto whole_cache = Inner::whole_cache;

  witnessed(shared& s, unsigned thread) : shared_(s), thread_(thread), inner_(s.inner, thread), count(inner_.count) {}

  void store(void* to, const void* from, std::size_t size) {
    told(to, size, [&] { inner_.store(to, from, size); });
  }
  void stream(void* to, const void* from, std::size_t size) {
    told(to, size, [&] { inner_.stream(to, from, size); });
  }
  void flush(const void* at, std::size_t size) noexcept { inner_.flush(at, size); }
  void fence() noexcept { inner_.fence(); }
  void bulk_persist(std::span<const range> ranges) noexcept { inner_.bulk_persist(ranges); }
  void note(mark m, std::uint64_t argument) {
    shared_.who.begin_turn();
    shared_.who.marked(thread_, m, argument);
    shared_.who.end_turn();
  }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  // Header and logs are memory that no crash leaves anything of.
  template <class Store>
  void told(void* to, std::size_t size, Store&& store) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(to) - shared_.where.base);
    if (offset < shared_.where.home_offset) return store();
    shared_.who.begin_turn();
    store();
    shared_.who.stored(shared_.where.base, shared_.where.home_offset, offset, size);
    shared_.who.end_turn();
  }

  shared& shared_;
  unsigned thread_;
  Inner inner_;

 public:
  counters& count;
};

}  // namespace stele::media
