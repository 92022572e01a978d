// A pool that is filled before its file has a name.
//
// The pool lies in an unnamed file beside its later place, mapped, and is filled through an
// ordinary runtime. publish() closes it, cuts off the free chunks at its end and links the file to
// its name. So the pool exists completely or not at all, whatever ends the process before.
#pragma once

#include <pool/new_file.h>
#include <tx/runtime.h>

#include <memory>
#include <string>

namespace stele::detail {

class new_pool {
 public:
  // Errors: exists, not_found, permission, full, io, invalid_argument (the geometry).
  [[nodiscard]] static result<new_pool> make(const std::string& path,
                                             const storage::pool_geometry& geometry);
  new_pool(new_pool&&) noexcept;
  ~new_pool();  // of a pool that was not published, nothing is left

  // For pool_handle::from_runtime, whose owner closes it before publish(). Once.
  std::unique_ptr<runtime> take_runtime() noexcept;

  // `room_chunks`: free chunks that are kept behind the last one in use; those behind them are cut
  // off. A log-structured pool, and one with parity blocks, keeps its size. On return the pool is
  // durable and has its name. Errors: io, exists.
  [[nodiscard]] result<> publish(std::uint64_t room_chunks);

 private:
  new_pool(storage::new_file file, std::byte* memory, std::size_t size);
  [[nodiscard]] result<> cut(std::uint64_t room_chunks);

  storage::new_file file_;
  std::byte* memory_;  // of the file, mapped; null after publish()
  std::size_t size_;
  std::unique_ptr<runtime> runtime_;
};

// The header, as written at creation, of a pool without the chunks from `chunk_count` on. Chunk
// table and block checksums keep their places, and have more room than they need.
format::pool_header shortened(format::pool_header h, std::uint64_t chunk_count) noexcept;

}  // namespace stele::detail
