// The mechanism redo, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/redo.h>

namespace stele::detail {

std::unique_ptr<engine> lab_redo(pool_state& state, const media_choice& choice) {
  return build_on_lab<redo>(state, choice);
}

}  // namespace stele::detail
