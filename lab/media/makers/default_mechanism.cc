// The mechanism default, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/default_mechanism.h>

namespace stele::detail {

std::unique_ptr<engine> lab_default_mechanism(pool_state& state, const media_choice& choice) {
  return build_on_lab<default_mechanism>(state, choice);
}

}  // namespace stele::detail
