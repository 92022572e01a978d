// Compiles the mechanism archapt-undo for each of the library's media.
#include <tx/mechanism/archapt.h>
#include <tx/mechanism/on_media/build_on.h>

namespace stele::detail {

std::unique_ptr<engine> make_archapt_undo(pool_state& state, const media_choice& choice) {
  return build_on<archapt_undo>(state, choice);
}

void add_archapt_geometry(storage::pool_geometry& geometry, const mechanism_options& options) {
  const auto own = options.get<archapt_options>();
  geometry.parity_block_size = own.halves ? format::halves_block_size : format::plain_block_size;
  geometry.checkpoint_commits = own.checkpoint_commits;
}

}  // namespace stele::detail
