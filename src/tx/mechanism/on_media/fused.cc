// The mechanism default, on every medium.
#include <tx/mechanism/fused.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_fused(pool_state& state, const media_choice& choice) {
  return build_on<fused>(state, choice);
}

}  // namespace stele::detail
