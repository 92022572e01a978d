// The note on media that recovery went back to a checkpoint: docs/protocol/archapt.md, F1 to F4.
#include <stele/archapt_fallback.h>
#include <tx/open.h>

namespace stele::detail {

std::optional<archapt_fallback> fallback_of(runtime& r) {
  const auto& file = r.state().file;
  const auto found = format::read_fallback(file.base(), file.header().id);
  if (!found || found->state == format::fallback_state::none) return std::nullopt;
  return archapt_fallback{{found->to}, {found->from}, r.state().fallback_reason};
}

result<> acknowledge_fallback(runtime& r) {
  const auto begun = begin_maintenance(r, "marked as acknowledged");
  if (!begun) return std::unexpected(begun.error());
  if (!fallback_of(r)) return {};
  const pool_pause paused = r.pause();
  return r.mechanism().write_control_word(format::fallback_state_offset,
                                          static_cast<std::uint64_t>(format::fallback_state::none));
}

}  // namespace stele::detail
