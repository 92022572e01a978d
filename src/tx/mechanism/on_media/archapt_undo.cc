// Compiles the mechanism archapt-undo for each of the library's media.
#include <tx/mechanism/archapt.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_archapt_undo(pool_state& state, const media_choice& choice) {
  return build_on<archapt_undo>(state, choice);
}

}  // namespace stele::detail
