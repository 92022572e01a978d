// Compiles the mechanism redo for each of the library's media.
#include <tx/mechanism/on_media/build_on.h>
#include <tx/mechanism/redo.h>

namespace stele::detail {

std::unique_ptr<engine> make_redo(pool_state& state, const media_choice& choice) {
  return build_on<redo>(state, choice);
}

}  // namespace stele::detail
