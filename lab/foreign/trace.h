// The recording of a foreign program, read from its file; trace_format.h has the format.
#pragma once

#include <foreign/trace_format.h>
#include <stele/error.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stele::foreign {

struct event {
  foreign_event_kind kind;
  unsigned thread;
  unsigned site;
  std::uint64_t offset;
  std::span<const std::byte> bytes;  // of the trace, which must outlive it
};

class trace {
 public:
  // Errors: not_found (no such file), corrupt (no recording, or one that was cut off), full (a pool
  // larger than most_pool_bytes).
  [[nodiscard]] static result<trace> read(const std::string& path);

  static constexpr std::uint64_t most_pool_bytes = std::uint64_t{512} << 20;

  // False: the program mapped no pool. Then there are no events.
  bool has_pool() const noexcept { return !pool_.empty(); }
  const std::string& pool() const noexcept { return pool_; }
  // Of the file when it was largest.
  std::uint64_t pool_size() const noexcept { return size_; }
  // From the first content on.
  std::span<const event> events() const noexcept { return events_; }
  // Where in the program, in the words "function (file:line)". Of the program itself rather than of
  // a library of the system that it calls.
  std::string site(unsigned number) const;

 private:
  result<void> take(const foreign_event& head, std::span<const std::byte> bytes);

  std::vector<std::byte> content_;
  std::vector<event> events_;
  std::map<unsigned, std::string> sites_;
  std::string pool_;
  std::uint64_t size_ = 0;
};

}  // namespace stele::foreign
