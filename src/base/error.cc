// Names of error codes, and cancel().
#include <stele/error.h>

namespace stele {

const char* name_of(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return "invalid_argument";
    case errc::not_found:
      return "not_found";
    case errc::exists:
      return "exists";
    case errc::permission:
      return "permission";
    case errc::read_only:
      return "read_only";
    case errc::in_use:
      return "in_use";
    case errc::not_a_pool:
      return "not_a_pool";
    case errc::version:
      return "version";
    case errc::corrupt:
      return "corrupt";
    case errc::lost:
      return "lost";
    case errc::layout:
      return "layout";
    case errc::full:
      return "full";
    case errc::io:
      return "io";
    case errc::unsupported:
      return "unsupported";
    case errc::nested:
      return "nested";
    case errc::cancelled:
      return "cancelled";
    case errc::poisoned:
      return "poisoned";
    case errc::conflict:
      return "conflict";
  }
  return "unknown";
}

void cancel(std::string message) {
  throw failure({errc::cancelled, std::move(message)});
}

}  // namespace stele
