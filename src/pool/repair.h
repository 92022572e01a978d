// Repairs of a pool file, a few bytes at a time. Each repair is provably right: it follows from
// another part of the file. What is not known to be right is left alone.
//
// Before bytes are overwritten, the page that holds them is kept beside the pool, in a file of its
// own. The bytes overwritten lie in one sector, so a crash leaves them as before or repaired.
// docs/protocol/repair.md is the page.
#pragma once

#include <pool/new_file.h>
#include <pool/pool_file.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace stele::storage {

struct repair_step {
  std::string what;          // a sentence
  std::string saved_page;    // the file that has the page as it was; empty: no
                             // page was overwritten
  std::uint64_t offset = 0;  // of that page in the pool
};

// A pool file that is locked and open for repairs. Not thread-safe.
class repair_file {
 public:
  // Errors: in_use, not_found, permission, read_only, not_a_pool, io.
  [[nodiscard]] static result<repair_file> open(const std::string& path);

  // Keeps the page that holds `offset` beside the pool, overwrites the bytes and syncs. The bytes
  // lie in one sector. Durable on return; after a crash or an error they are as before or
  // overwritten. Errors: io, full, permission.
  [[nodiscard]] result<> overwrite(std::uint64_t offset, std::span<const std::byte> bytes,
                                   std::string what);
  // The first front_size bytes, as repaired so far.
  const std::byte* front() const noexcept { return front_.data(); }
  int fd() const noexcept { return file_.fd; }
  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  std::vector<repair_step>& steps() noexcept { return steps_; }

 private:
  repair_file(std::string path, descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] result<std::string> save_page(std::uint64_t offset);

  std::string path_;
  descriptor file_;
  std::uint64_t size_ = 0;
  std::array<std::byte, format::front_size> front_{};
  std::vector<repair_step> steps_;
};

// Replaces a damaged header by its copy, or a damaged copy by the header. Errors: corrupt, if both
// are damaged; version; not_a_pool; those of overwrite().
[[nodiscard]] result<> repair_header(repair_file& file);

}  // namespace stele::storage
