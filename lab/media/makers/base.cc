// The mechanism base, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/base.h>

namespace stele::detail {

std::unique_ptr<engine> lab_base_log(pool_state& state, const media_choice& choice) {
  return build_on_lab<base_log>(state, choice);
}

}  // namespace stele::detail
