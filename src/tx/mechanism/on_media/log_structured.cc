// Compiles the mechanism log_structured for each of the library's media.
#include <tx/mechanism/log_structured.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_log_structured(pool_state& state, const media_choice& choice) {
  return build_on<log_structured>(state, choice);
}

}  // namespace stele::detail
