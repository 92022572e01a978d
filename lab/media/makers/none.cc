// The mechanism none, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/none.h>

namespace stele::detail {

std::unique_ptr<engine> lab_none(pool_state& state, const media_choice& choice) {
  return build_on_lab<none>(state, choice);
}

}  // namespace stele::detail
