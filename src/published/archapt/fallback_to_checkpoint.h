// The part of archapt's recovery that gives up: home goes back to the checkpoint.
// docs/protocol/archapt.md, F1 to F4.
//
// Invariant: from F1 to F4 the state on media is `under_way`, and recovery does nothing but finish.
#pragma once

#include <base/assert.h>
#include <published/archapt/archapt_recovery.h>
#include <published/archapt/home_copy.h>
#include <published/mutant.h>
#include <tx/log/recovery.h>

namespace stele::detail {

template <class Media>
class fallback_to_checkpoint {
 public:
  fallback_to_checkpoint(pool_medium<Media>& medium, home_checksums<Media>& sums,
                         log_lanes<Media>& logs, home_copy<Media>& copy, const parity_area& area)
      : medium_(medium), sums_(sums), logs_(logs), copy_(copy), area_(area) {}

  // Whether an earlier recovery was interrupted between F1 and F4.
  [[nodiscard]] result<bool> is_under_way() const {
    const auto state = medium_.read_word(format::fallback_state_offset);
    if (!state) return std::unexpected(state.error());
    const bool under_way =
        static_cast<format::fallback_state>(*state) == format::fallback_state::under_way;
    if (under_way && !copy_.present())
      return base::fail(errc::corrupt,
                        fmt::format("{}: it says that it goes back to a checkpoint, and has none; "
                                    "restore the pool from a copy",
                                    area_.file().path()));
    return under_way;
  }

  // `newest`: the newest TxID known. Without a checkpoint returns `why` and changes nothing.
  [[nodiscard]] result<> run(const error& why, std::uint64_t newest) {
    const auto to = medium_.read_word(format::checkpoint_offset);
    if (!to) return std::unexpected(to.error());
    if (!copy_.present() || *to == 0) return std::unexpected(why);
    STELE_ASSERT_ALWAYS(why.code == errc::lost);  // archapt.md: only if R2 found a loss
    medium_.state.fallback_reason = why.message;
    if (planted<Media>(mutant::archapt_fallback_undecided)) return finish(newest);
    medium_.write_word(format::fallback_to_offset, *to);  // F1
    medium_.write_word(format::fallback_from_offset, newest);
    write_state(format::fallback_state::under_way);  // durable before home changes
    return finish(newest);
  }

  // F2 to F4.
  [[nodiscard]] result<> finish(std::uint64_t newest) {
    const auto first = medium_.read_word(format::parity_epoch_offset),
               from = medium_.read_word(format::fallback_from_offset);
    if (!first) return std::unexpected(first.error());
    if (!from) return std::unexpected(from.error());
    const auto epoch = newest_epoch(area_, *first);
    if (!epoch) return std::unexpected(epoch.error());
    copy_.restore_home();  // F2
    // archapt.md, F3: no block counts any more.
    STELE_ASSERT_ALWAYS(*epoch == 0 || (*epoch >= *first && *epoch < format::txid_limit));
    if (*epoch != 0 && !planted<Media>(mutant::archapt_fallback_covered))
      medium_.write_word(format::parity_epoch_offset, *epoch + 1);  // F3
    log_recovery<Media> nothing(medium_, sums_, logs_);
    nothing.newest = std::max(newest, *from);
    if (auto emptied =
            planted<Media>(mutant::archapt_fallback_replayed) ? medium_.check() : nothing.restart();
        !emptied)
      return emptied;
    write_state(format::fallback_state::done);  // F4
    return medium_.check();
  }

 private:
  using mutant = published::mutant;

  // Durable on return.
  void write_state(format::fallback_state s) {
    STELE_ASSERT_ALWAYS(s != format::fallback_state::none);  // that is acknowledge_fallback()'s
    medium_.write_word(format::fallback_state_offset, static_cast<std::uint64_t>(s));
    medium_.control.fence();  // the state before home changes (F1), or all of it before `done` (F4)
  }

  pool_medium<Media>& medium_;
  home_checksums<Media>& sums_;
  log_lanes<Media>& logs_;
  home_copy<Media>& copy_;
  const parity_area& area_;
};

}  // namespace stele::detail
