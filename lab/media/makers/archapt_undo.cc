// The mechanism archapt-undo, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/archapt.h>

namespace stele::detail {

std::unique_ptr<engine> lab_archapt_undo(pool_state& state, const media_choice& choice) {
  return build_on_lab<archapt_undo>(state, choice);
}

}  // namespace stele::detail
