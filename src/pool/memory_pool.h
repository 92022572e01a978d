// A pool in ordinary memory, for tests of what works on a pool file.
#pragma once

#include <pool/pool_file.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace stele::testing {

class memory_pool {
 public:
  // Zeroes behind a header with this id, or a random one.
  explicit memory_pool(const storage::pool_geometry& geometry,
                       std::optional<std::uint64_t> id = {}) {
    auto header = storage::pool_file::make_header(geometry);
    if (!header) throw std::runtime_error(header.error().message);
    if (id) {
      header->id = *id;
      header->checksum = format::header_checksum(*header);
    }
    image_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, header->size)));
    std::memset(image_.get(), 0, header->size);
    storage::pool_file::write_header(image_.get(), *header);
    auto file = storage::pool_file::adopt(image_.get(), header->size);
    if (!file) throw std::runtime_error(file.error().message);
    file_.emplace(std::move(*file));
  }

  storage::pool_file& file() noexcept { return *file_; }
  const storage::pool_file& file() const noexcept { return *file_; }

 private:
  struct free_memory {
    void operator()(std::byte* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::byte, free_memory> image_;
  std::optional<storage::pool_file> file_;
};

}  // namespace stele::testing
