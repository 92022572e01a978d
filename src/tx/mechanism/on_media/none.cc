// Compiles the mechanism none for each of the library's media.
#include <tx/mechanism/none.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_none(pool_state& state, const media_choice& choice) {
  return build_on<none>(state, choice);
}

}  // namespace stele::detail
