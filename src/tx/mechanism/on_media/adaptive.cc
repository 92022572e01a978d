// Compiles the mechanism adaptive for each of the library's media.
#include <tx/mechanism/blurred.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_adaptive(pool_state& state, const media_choice& choice) {
  return build_on<adaptive>(state, choice);
}

}  // namespace stele::detail
