// The mechanism blurred, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/blurred.h>

namespace stele::detail {

std::unique_ptr<engine> lab_blurred(pool_state& state, const media_choice& choice) {
  return build_on_lab<blurred>(state, choice);
}

}  // namespace stele::detail
