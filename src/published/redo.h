// redo and undo: a record in a torn-bit log, then home, then the truncation of the log, all in the
// commit. They differ in what the record holds and in when they have committed: redo logs new
// values and has committed with the record (2); undo logs old values and has committed with the
// truncation (6). Pages: docs/protocol/redo.md, undo.md. Source of redo: Volos, Tack and Swift,
// "Mnemosyne" (2011), sections 4.4 and 5, synchronous truncation.
//
// Execution is write-back, as in the other mechanisms, so home is first changed at commit: undo
// logs the old values of all ranges as one batch with one fence. An in-place undo log pays one
// fence for each range.
#pragma once

#include <base/assert.h>
#include <published/mutant.h>
#include <tx/log/recovery.h>
#include <tx/mechanism_engine.h>

namespace stele::detail {

enum class logged_values : bool { new_ones, old_ones };

template <class Media, logged_values values>
class home_in_commit {
 public:
  using medium = Media;
  static constexpr log_kind kind = log_kind::torn_bit;
  static constexpr auto upkeep = checksum_upkeep::in_commit;

  home_in_commit(pool_medium<Media>& m, home_checksums<Media>& sums, const engine_tuning&)
      : medium_(m), sums_(sums), logs(m, sums), home(m.state.file) {}

  // The ring holds one record at a time, so only the record's length matters.
  [[nodiscard]] result<> reserve_log(transaction& t) { return logs.reserve(t); }

  bool commit(transaction& t, std::uint64_t txid) {
    auto& l = logs.of(t);
    // redo.md: the log is empty from 6 to the next commit, so it holds one record at a time.
    STELE_ASSERT(l.log.head() == l.log.tail());
    append_record(l, t, txid);  // 1
    STELE_ASSERT(l.log.appended_end() > l.log.tail() &&
                 l.log.appended_end() - l.log.head() <= l.log.capacity_lines());
    // 2: the record is durable before home changes
    if (!medium_.fence_ok(l.media)) return false;
    l.log.publish();
    return store_home(t);
  }
  // Steps 3 to 6, of a commit whose record is durable and published.
  bool store_home(transaction& t) {
    auto& l = logs.of(t);
    // redo.md, 2: what was appended last is published before home changes.
    STELE_ASSERT(l.log.tail() == l.log.appended_end());
    t.begin_home_stores();
    if (planted<Media>(undo ? mutant::undo_truncate_first : mutant::redo_truncate_first))
      l.log.write_head(l.log.tail());
    home.store_flushed(l.media, t, sums_);  // 3
    // 4: home is durable before the log is truncated
    if (!medium_.fence_ok(l.media)) return false;
    // 5, 6: the truncation is durable before locks are released and the commit is acknowledged
    const bool kept = logs.truncate_in_commit(l);
    // redo.md, after 6: the whole ring may be written again, and no spilled payload is kept.
    STELE_ASSERT(!kept || l.log.free_lines() == l.log.capacity_lines());
    STELE_ASSERT(!kept || l.spills.empty());
    return kept;
  }

  // Redo: replays; undo: rolls back. A log has at most one record.
  [[nodiscard]] result<> recover() { return log_recovery<Media>(medium_, sums_, logs).run(); }

 private:
  using mutant = published::mutant;
  static constexpr bool undo = values == logged_values::old_ones;

  void append_record(typename log_lanes<Media>::lane& l, const transaction& t, std::uint64_t txid) {
    STELE_ASSERT(txid != 0);
    if constexpr (undo)
      logs.append(l, format::record_kind::undo, txid, t,
                  [&, old = home.old_word()](std::uint64_t offset, std::uint64_t value) {
                    const bool last = offset >= t.lines().back().offset;
                    return last && planted<Media>(mutant::undo_last_old_line) ? value
                                                                              : old(offset, value);
                  });
    else
      logs.append(l, format::record_kind::redo, txid, t, typename home_writer<Media>::new_word{});
  }

  pool_medium<Media>& medium_;
  home_checksums<Media>& sums_;

 public:
  log_lanes<Media> logs;
  home_writer<Media> home;
};

template <class Media>
using redo = home_in_commit<Media, logged_values::new_ones>;
template <class Media>
using undo = home_in_commit<Media, logged_values::old_ones>;

}  // namespace stele::detail
