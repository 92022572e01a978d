// Builds a pool in a file without a name. See new_pool.h.
#include <base/assert.h>
#include <base/check.h>
#include <sys/mman.h>
#include <tx/new_pool.h>
#include <tx/open.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace stele::detail {

format::pool_header shortened(format::pool_header h, std::uint64_t chunk_count) noexcept {
  STELE_ASSERT_ALWAYS(chunk_count != 0 && chunk_count <= h.chunk_count);
  STELE_ASSERT_ALWAYS(h.table_offset < h.chunks_offset);  // it has not grown
  h.chunk_count = chunk_count;
  h.size = h.chunks_offset + (chunk_count << h.chunk_shift);
  STELE_ASSERT_ALWAYS(h.size % format::header_area_size == 0);
  h.checksum = format::header_checksum(h);
  return h;
}

new_pool::new_pool(storage::new_file file, std::byte* memory, std::size_t size)
    : file_(std::move(file)), memory_(memory), size_(size) {}
new_pool::new_pool(new_pool&& other) noexcept
    : file_(std::move(other.file_)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_(other.size_),
      runtime_(std::move(other.runtime_)) {}
new_pool::~new_pool() {
  runtime_.reset();
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

result<new_pool> new_pool::make(const std::string& path, const storage::pool_geometry& geometry) {
  const auto header = storage::pool_file::make_header(geometry);
  if (!header) return std::unexpected(header.error());
  auto file = storage::new_file::make(path, header->size);
  if (!file) return std::unexpected(file.error());
  if (auto space = file->reserve(header->size); !space) return std::unexpected(space.error());
  auto memory = file->map(header->size);
  if (!memory) return std::unexpected(memory.error());
  new_pool made(std::move(*file), *memory, header->size);
  storage::pool_file::write_header(*memory, *header);
  auto image = storage::pool_file::adopt(*memory, header->size);
  if (!image) return std::unexpected(image.error());
  const auto mechanism =
      find_mechanism(geometry.home == format::home_kind::log ? "log_structured" : "default");
  if (!mechanism) return std::unexpected(mechanism.error());
  auto state = std::make_unique<pool_state>(std::move(*image));
  state->lost_pages_guard = media::sigbus_guard(*memory, header->size, state->poisoned);
  media_choice media{.what = media_choice::kind::process};
  media.tuning.background = false;
  auto opened = open_on(std::move(state), media, **mechanism, {.engine = {.background = false}});
  if (!opened) return std::unexpected(opened.error());
  made.runtime_ = std::move(*opened);
  return made;
}

std::unique_ptr<runtime> new_pool::take_runtime() noexcept {
  STELE_ASSERT_ALWAYS(runtime_ != nullptr && memory_ != nullptr);
  return std::move(runtime_);
}

result<> new_pool::cut(std::uint64_t room_chunks) {
  const auto image = storage::pool_file::adopt(memory_, size_);
  if (!image) return std::unexpected(image.error());
  if (!can_grow(image->header())) return {};
  const storage::heap heap(*image);
  const auto& h = image->header();
  std::uint64_t end = h.chunks_offset;
  if (auto walked = heap.for_each_used_run(
          [&](std::uint64_t offset, std::uint64_t bytes) { end = offset + bytes; });
      !walked)
    return walked;
  STELE_ASSERT_ALWAYS(end >= h.chunks_offset && end <= h.chunks_end());
  const std::uint64_t used = (end - h.chunks_offset) >> h.chunk_shift;
  const std::uint64_t count = std::clamp<std::uint64_t>(used + room_chunks, 1, h.chunk_count);
  STELE_ASSERT_ALWAYS(count >= used);
  const auto shorter = shortened(h, count);
  std::memcpy(memory_, &shorter, sizeof shorter);
  std::memcpy(memory_ + format::header_copy_offset_of(shorter), &shorter, sizeof shorter);
  return file_.truncate(shorter.size);
}

result<> new_pool::publish(std::uint64_t room_chunks) {
  STELE_ASSERT_ALWAYS(memory_ != nullptr);  // once
  runtime_.reset();
  if (auto shorter = cut(room_chunks); !shorter) return shorter;
  ::munmap(std::exchange(memory_, nullptr), size_);
  return file_.publish();
}

}  // namespace stele::detail
