// Whether the name that a pool was opened by still leads to its file, as seen last. Once it does
// not, updates are refused until the pool is closed. Thread-safe.
#pragma once

#include <pool/pool_file.h>
#include <stele/error.h>

#include <atomic>
#include <string>

namespace stele::detail {

class file_watch {
 public:
  explicit file_watch(bool plain_updates) noexcept : has_plain_updates_(plain_updates) {}

  storage::file_place place() const noexcept { return place_.load(std::memory_order_relaxed); }
  // Updates may take the short way, which does not ask for the place.
  bool has_plain_updates() const noexcept {
    return has_plain_updates_.load(std::memory_order_relaxed);
  }
  void note(storage::file_place now) noexcept;
  // Of updates. `path`, `fd`: the pool's name and its open file. Precondition: it is not in place.
  error refusal(const std::string& path, int fd) const;

 private:
  std::atomic<bool> has_plain_updates_;
  std::atomic<storage::file_place> place_{storage::file_place::in_place};
};

}  // namespace stele::detail
