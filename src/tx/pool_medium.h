// The medium of an open pool: control words, fences that a commit depends on, and whether a write
// has failed.
#pragma once

#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <format/pool_layout.h>
#include <media/media.h>
#include <tx/pool_state.h>

#include <memory>
#include <source_location>

namespace stele::detail {

template <class Media>
class pool_medium {
 public:
  pool_medium(pool_state& s, std::unique_ptr<typename Media::shared> of_medium)
      : state(s), shared(std::move(of_medium)), control(*shared, s.file.header().log_count) {}

  pool_state& state;
  const std::unique_ptr<typename Media::shared> shared;
  // For work that no lane's owner does: control words, truncation, recovery, growth.
  Media control;

  // The errno of the medium's failure; 0: it has none.
  static int error_number_of(const Media& m) noexcept {
    if constexpr (requires { m.error_number(); })
      return m.error_number();
    else
      return 0;
  }
  // A fence that a commit depends on. False: it failed, and the pool is poisoned.
  bool fence_ok(Media& m, const std::source_location& at = std::source_location::current()) {
    media::fence_at(m, at);
    if (!m.failed()) [[likely]]
      return true;
    state.poison(pool_state::poison_cause::write_failed, error_number_of(m));
    STELE_ASSERT(state.poisoned.load());  // nothing is acknowledged any more
    return false;
  }
  // Errors: io, if a write failed; poisoned, if that was earlier, or if a page of the mapping is
  // lost, whose bytes have been read as zeroes since.
  [[nodiscard]] result<> check() {
    if (control.failed()) {
      state.poison(pool_state::poison_cause::write_failed, error_number_of(control));
      return base::fail(errc::io, fmt::format("{}: {}; reopen the pool: recovery decides from what "
                                              "reached the device",
                                              state.file.path(), state.poison_reason()));
    }
    if (!state.poisoned.load()) return {};
    return base::fail(errc::poisoned,
                      fmt::format("{}: {}; reopen the pool, or restore it from a copy",
                                  state.file.path(), state.poison_reason()));
  }

  // Control words carry check bits; what is written is durable after control's next fence.
  [[nodiscard]] result<std::uint64_t> read_word(std::uint64_t offset) const {
    STELE_ASSERT(offset % 8 == 0 && offset + 8 <= state.file.header().home_offset);
    const auto value = format::read_control_word(state.file.base(), state.file.header().id, offset);
    if (!value)
      return base::fail(errc::corrupt, fmt::format("{}: the control word at offset {} is damaged "
                                                   "(check bits); restore the pool from a copy",
                                                   state.file.path(), offset));
    return *value;
  }
  void write_word(std::uint64_t offset, std::uint64_t value) {
    STELE_ASSERT(offset % 8 == 0 && offset + 8 <= state.file.header().home_offset);
    STELE_ASSERT(value < format::guarded_limit);
    const std::uint64_t word = format::guard(value, state.file.header().id, offset);
    put(state.file.base() + offset, &word, 8);
  }
  // Stores and flushes; durable after control's next fence.
  void put(std::byte* to, const void* from, std::size_t size) {
    STELE_ASSERT(size != 0 && to >= state.file.base());
    control.store(to, from, size);
    control.flush(to, size);
  }
};

}  // namespace stele::detail
