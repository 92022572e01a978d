// Compiles the mechanism default for each of the library's media.
#include <tx/mechanism/default_mechanism.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_default_mechanism(pool_state& state, const media_choice& choice) {
  return build_on<default_mechanism>(state, choice);
}

}  // namespace stele::detail
