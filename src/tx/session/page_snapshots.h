// The snapshots that keep pages of an open pool before they are stored to: those of a running
// backup, of long reads and of readers in other processes.
//
// Snapshots are added and removed under a pause, while no transaction runs; transactions call
// any() and keep(). A moment is the place that a long read or a held snapshot reserves before it
// makes its snapshot; the backup has one place more.
#pragma once

#include <tx/page_snapshot.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace stele::detail {

class page_snapshots {
 public:
  static constexpr unsigned max_moments = 15;  // with those of other processes

  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  // On return the page of this pool offset may be stored to.
  void keep(std::uint64_t offset) noexcept {
    for (page_snapshot* const s : places_)
      if (s != nullptr) s->before_store(offset);
  }

  // Under a pause. A backup that ends gives its place back after another one may have begun.
  bool has_place() const noexcept;
  void add(page_snapshot& s) noexcept;  // precondition: has_place()
  void remove(page_snapshot& s) noexcept;

  // False: there are max_moments already. Thread-safe.
  [[nodiscard]] bool reserve_moment() noexcept;
  void return_moment() noexcept;
  unsigned moments() const noexcept { return moments_.load(); }

 private:
  bool counts_places() const noexcept;  // for assertions, under a pause

  std::array<page_snapshot*, 1 + max_moments> places_{};  // null: a free place
  std::atomic<unsigned> count_{0};
  std::atomic<unsigned> moments_{0};
};

}  // namespace stele::detail
