// The mechanism undo, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/undo.h>

namespace stele::detail {

std::unique_ptr<engine> lab_undo(pool_state& state, const media_choice& choice) {
  return build_on_lab<undo>(state, choice);
}

}  // namespace stele::detail
