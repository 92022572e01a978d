// The mechanism default, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/fused.h>

namespace stele::detail {

std::unique_ptr<engine> lab_fused(pool_state& state, const media_choice& choice) {
  return build_on_lab<fused>(state, choice);
}

}  // namespace stele::detail
