// A pool is recovered and marked when it is opened, so opening it writes. A private copy of its
// pages can be recovered without that.
#include <cli/command.h>
#include <cli/output.h>
#include <cli/reading.h>
#include <tx/inspect.h>
#include <tx/open.h>

namespace stele::cli {

std::unique_ptr<detail::runtime> open_for_reading(const std::string& path) {
  auto opened = detail::open_path(path, {});
  if (opened) return std::move(*opened);
  const bool cannot_write =
      opened.error().code == errc::read_only || opened.error().code == errc::permission;
  if (!cannot_write) fail(opened.error());
  auto copy = detail::open_copy_of(path, verification::automatic);
  if (!copy) fail(copy.error().code == errc::permission ? opened.error() : copy.error());
  print_error("stele: {} cannot be written, so it is read from a copy in memory\n", path);
  return std::move(*copy);
}

}  // namespace stele::cli
