// The site that is left out, and who watches.
#include <media/fence_sites.h>

#include <string_view>

namespace stele::media {

namespace {
std::string dropped;
std::function<void(const std::string&)> watching;
}  // namespace

void fence_sites::drop(const std::string& site) {
  dropped = site;
}
void fence_sites::watch(std::function<void(const std::string&)> told) {
  watching = std::move(told);
}

std::string fence_sites::name_of(const std::source_location& at) {
  const std::string_view path = at.file_name();
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(at.line());
}

bool fence_sites::drops(const std::source_location& at) {
  if (dropped.empty() && !watching) return false;
  const std::string name = name_of(at);
  if (watching) watching(name);
  return name == dropped;
}

}  // namespace stele::media
