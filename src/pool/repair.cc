// Overwrites damaged bytes of a pool file. See repair.h.
#include <base/assert.h>
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <pool/header_version.h>
#include <pool/repair.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

namespace stele::storage {

namespace {

constexpr std::uint64_t saved_bytes = format::header_area_size;  // a page
constexpr std::uint64_t sector_bytes = 512;
using page_content = std::array<std::byte, saved_bytes>;
static_assert(saved_bytes % sector_bytes == 0 && format::front_size % sector_bytes == 0,
              "the page that is kept has all of the sector that changes");

bool holds(const descriptor& file, const page_content& content) {
  page_content found;
  return file.fd >= 0 && media::os::read_all(file.fd, found.data(), found.size(), 0) &&
         found == content;
}

}  // namespace

result<repair_file> repair_file::open(const std::string& path) {
  repair_file opened(path,
                     descriptor(open_named(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)));
  if (opened.file_.fd < 0) return path_error("open", path);
  struct stat status = {};
  if (media::os::fstat(opened.file_.fd, status) != 0) return path_error("examine", path);
  if (!S_ISREG(status.st_mode) || status.st_size < off_t{format::front_size})
    return base::fail(
        errc::not_a_pool,
        fmt::format(
            "{} is no pool file: it is too short, or not an ordinary file; nothing was changed",
            path));
  if (auto locked = lock_pool_file(opened.file_.fd, path); !locked)
    return std::unexpected(locked.error());
  opened.size_ = static_cast<std::uint64_t>(status.st_size);
  STELE_ASSERT_ALWAYS(opened.size_ >= opened.front_.size() && opened.steps_.empty());
  if (!media::os::read_all(opened.file_.fd, opened.front_.data(), opened.front_.size(), 0))
    return path_error("read", path);
  return opened;
}

// An earlier repair that was interrupted may have kept the same page already, and not have made its
// name durable.
result<std::string> repair_file::save_page(std::uint64_t offset) {
  STELE_ASSERT_ALWAYS(offset % saved_bytes == 0 && file_.fd >= 0);
  constexpr unsigned max_names = 1000;
  page_content content;
  if (!media::os::read_all(file_.fd, content.data(), content.size(), offset))
    return path_error("read", path_);
  for (unsigned i = 1; i <= max_names; ++i) {
    std::string name =
        fmt::format("{}.page-{}{}", path_, offset, i == 1 ? "" : fmt::format(".{}", i));
    if (const descriptor kept(open_named(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        holds(kept, content)) {
      if (auto synced = sync_named(kept, name); !synced) return std::unexpected(synced.error());
      return name;
    }
    auto file = new_file::make(name, content.size());
    if (!file && file.error().code == errc::exists) continue;
    if (!file) return std::unexpected(file.error());
    if (auto written = file->write(content, 0); !written) return std::unexpected(written.error());
    if (auto named = file->publish(); !named) return std::unexpected(named.error());
    return name;
  }
  return base::fail(
      errc::exists,
      fmt::format(
          "{}.page-{} and {} more of such names exist; remove those that are not needed any more",
          path_, offset, max_names - 1));
}

result<> repair_file::overwrite(std::uint64_t offset, std::span<const std::byte> bytes,
                                std::string what) {
  STELE_ASSERT_ALWAYS(!bytes.empty() && !what.empty());
  base::check(offset / sector_bytes == (offset + bytes.size() - 1) / sector_bytes,
              "a repair overwrites more than a sector");
  auto saved = save_page(offset / saved_bytes * saved_bytes);  // 1
  if (!saved) return std::unexpected(saved.error());
  STELE_ASSERT_ALWAYS(!saved->empty());  // repair.md 1: the page is kept before it changes
  if (!media::os::write_all(file_.fd, bytes.data(), bytes.size(),
                            offset) ||      // 2
      media::os::sync_data(file_.fd) != 0)  // 3
    return path_error("write", path_);
  STELE_ASSERT_ALWAYS(offset >= front_.size() || bytes.size() <= front_.size() - offset);
  if (offset < front_.size()) std::memcpy(front_.data() + offset, bytes.data(), bytes.size());
  steps_.push_back({std::move(what), std::move(*saved), offset / saved_bytes * saved_bytes});
  return {};
}

result<> repair_header(repair_file& file) {
  format::pool_header h;
  std::memcpy(&h, file.front(), sizeof h);
  const auto copy = find_header_copy(file.front());
  const auto bytes_of = [](const format::pool_header& from) {
    return std::as_bytes(std::span(&from, 1));
  };
  if (!is_whole(h)) {
    const auto parsed = parse_header(file.front(), file.size(), file.path());
    if (!parsed && parsed.error().code == errc::version) return std::unexpected(parsed.error());
    if (!copy)
      return base::fail(
          errc::corrupt,
          fmt::format("{}: neither the header nor its copy is whole; restore the pool from a copy",
                      file.path()));
    // repair.md: the checksum says which of the two is whole.
    STELE_ASSERT_ALWAYS(is_whole(*copy));
    return file.overwrite(0, bytes_of(*copy),
                          "the header was damaged; it is what its copy says again");
  }
  if (copy && std::memcmp(&*copy, &h, sizeof h) == 0) return {};
  const std::uint64_t copy_at = format::header_copy_offset_of(h);
  STELE_ASSERT_ALWAYS(copy_at >= sizeof h && copy_at + sizeof h <= format::front_size);
  return file.overwrite(copy_at, bytes_of(h),
                        "the copy of the header was damaged; it is what the header says again");
}

}  // namespace stele::storage
