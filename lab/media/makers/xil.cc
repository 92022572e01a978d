// The mechanism xil, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/blurred.h>

namespace stele::detail {

std::unique_ptr<engine> lab_xil(pool_state& state, const media_choice& choice) {
  return build_on_lab<xil>(state, choice);
}

}  // namespace stele::detail
