// Compiles the mechanism blurred for each of the library's media.
#include <tx/mechanism/blurred.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_blurred(pool_state& state, const media_choice& choice) {
  return build_on<blurred>(state, choice);
}

}  // namespace stele::detail
