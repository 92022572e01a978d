// Compiles the mechanism undo for each of the library's media.
#include <tx/mechanism/on_media/build_on.h>
#include <tx/mechanism/undo.h>

namespace stele::detail {

std::unique_ptr<engine> make_undo(pool_state& state, const media_choice& choice) {
  return build_on<undo>(state, choice);
}

}  // namespace stele::detail
