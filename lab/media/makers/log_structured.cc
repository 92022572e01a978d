// The mechanism log_structured, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/log_structured.h>

namespace stele::detail {

std::unique_ptr<engine> lab_log_structured(pool_state& state, const media_choice& choice) {
  return build_on_lab<log_structured>(state, choice);
}

}  // namespace stele::detail
