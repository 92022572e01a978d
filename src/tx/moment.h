// The pool as it was at one moment: what a transaction loads that is a long
// read (docs/protocol/long-reads.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::detail {

class moment {
 public:
  virtual ~moment() = default;
  // The word, or bytes of one line, as they were. Called by the reader's
  // thread. Throw std::bad_alloc if there was no memory to keep the page.
  virtual std::uint64_t word(std::uint64_t offset) const = 0;
  virtual void copy(std::uint64_t offset, std::byte* to, std::size_t size) const = 0;
};

}  // namespace stele::detail
