// The omitted site and the callback.
#include <media/fence_sites.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace stele::media {

namespace {
std::string omitted_site;
unsigned omitted_line = 0;  // its line; a fence on another line needs no name
std::function<void(const std::string&)> fence_callback;
}  // namespace

void fence_sites::omit(const std::string& site) {
  omitted_site = site;
  omitted_line =
      site.empty()
          ? 0
          : static_cast<unsigned>(std::strtoul(site.c_str() + site.find(':') + 1, nullptr, 10));
}
void fence_sites::on_fence(std::function<void(const std::string&)> callback) {
  fence_callback = std::move(callback);
}

std::string fence_sites::name_of(const std::source_location& at) {
  const std::string_view path = at.file_name();
  std::string_view function = at.function_name();  // includes return type, class and arguments
  function = function.substr(0, function.find('('));
  function = function.substr(std::min(function.size(), function.find_last_of(": *&") + 1));
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(at.line()) + ":" +
         std::string(function);
}

bool fence_sites::is_omitted(const std::source_location& at) {
  if (fence_callback) fence_callback(name_of(at));
  return at.line() == omitted_line && name_of(at) == omitted_site;
}

}  // namespace stele::media
