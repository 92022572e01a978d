// Compiles the mechanism base for each of the library's media.
#include <tx/mechanism/base.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_base_log(pool_state& state, const media_choice& choice) {
  return build_on<base_log>(state, choice);
}

}  // namespace stele::detail
