// Compiles the mechanism redo-async for each of the library's media.
#include <tx/mechanism/on_media/build_on.h>
#include <tx/mechanism/redo_async.h>

namespace stele::detail {

std::unique_ptr<engine> make_redo_async(pool_state& state, const media_choice& choice) {
  return build_on<redo_async>(state, choice);
}

}  // namespace stele::detail
