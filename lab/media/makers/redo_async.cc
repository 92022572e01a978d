// The mechanism redo-async, on the laboratory's media.
#include <media/makers/build_on_lab.h>
#include <tx/mechanism/redo_async.h>

namespace stele::detail {

std::unique_ptr<engine> lab_redo_async(pool_state& state, const media_choice& choice) {
  return build_on_lab<redo_async>(state, choice);
}

}  // namespace stele::detail
