// redo-published, undo-published: redo and undo logging as their publications have it, where each
// store of a transaction is logged by itself. They are what the evaluations of later designs
// compare with; redo and undo (redo.h) log a transaction as one batch and write less. Pages:
// docs/protocol/redo-published.md, undo-published.md. Sources: Volos, Tack and Swift, "Mnemosyne:
// Lightweight Persistent Memory" (2011), section 5; Hu, Ren, Badam, Shu and Moscibroda,
// "Log-Structured Non-Volatile Main Memory" (2017), sections 2 and 5.3.
//
// A transaction whose stores outgrow its log starts again and is logged as one batch.
#pragma once

#include <base/assert.h>
#include <published/mutant.h>
#include <published/redo.h>

namespace stele::detail {

template <class Media, logged_values values>
class each_store_logged {
 public:
  using medium = Media;
  using batch = home_in_commit<Media, values>;
  static constexpr log_kind kind = batch::kind;
  static constexpr auto upkeep = batch::upkeep;

  each_store_logged(pool_medium<Media>& m, home_checksums<Media>& sums, const engine_tuning& tuning)
      : medium_(m), batch_(m, sums, tuning), logs(batch_.logs), journals_(logs.size()) {}

  // --- a transaction ---

  bool begin(transaction& t) {
    STELE_ASSERT(t.log() < journals_.size());
    // undo-published.md, A2: no record of an aborted transaction counts any more.
    STELE_ASSERT(base::holds(is_empty(logs.of(t)) ||
                             medium_.state.poisoned.load(std::memory_order_relaxed)));
    journals_[t.log()].clear();
    return !t.exceeds_log;
  }

  void store(transaction& t, written_line& line, const written_line& stored) {
    STELE_ASSERT(t.observed() && line.offset == stored.offset);
    if constexpr (undo)
      keep_old_value(t, stored, line.mask);
    else
      journal(t, stored);
    line.put(stored);
  }

  // undo: the records of a transaction that does not commit must not count once its locks are
  // released.
  void abort(transaction& t) noexcept {
    lane& l = logs.of(t);
    if (undo && l.log.tail() != l.log.head() && !planted<Media>(mutant::published_abort_uncut))
      (void)logs.truncate_in_commit(l);  // A1, A2
  }

  [[nodiscard]] result<> reserve_log(transaction& t) {
    return t.observed() ? result<>{} : batch_.reserve_log(t);
  }

  bool commit(transaction& t, std::uint64_t txid) {
    if (!t.observed()) return batch_.commit(t, txid);
    if constexpr (!undo) {
      lane& l = logs.of(t);
      STELE_ASSERT(is_empty(l));         // redo.md, after 6
      append_journal(l, t.log(), txid);  // 1
      // 2: the record is durable before home changes
      if (!medium_.fence_ok(l.media)) return false;
      l.log.publish();
    }
    return batch_.store_home(t);  // 3 to 6
  }

  // Redo: replays; undo: rolls back. A log has the records of one transaction.
  [[nodiscard]] result<> recover() { return batch_.recover(); }

 private:
  using mutant = published::mutant;
  using lane = typename log_lanes<Media>::lane;
  static constexpr bool undo = values == logged_values::old_ones;
  // Of a record: the TxID, and a head for each word.
  static constexpr std::uint64_t most_lines = lines_for_words(1 + 2 * 8);
  // Only for assertions.
  [[maybe_unused]] static bool is_empty(const lane& l) noexcept {
    return l.log.head() == l.log.tail();
  }

  // One stored word: the bytes of its mask.
  struct stored_word {
    std::uint64_t head, word;
  };

  // Steps 1 and 2 of undo: a record of what home holds in the bytes that are stored for the first
  // time is durable before the store.
  void keep_old_value(transaction& t, const written_line& stored, std::uint64_t before) {
    const written_line first(stored.offset, stored.mask & ~before);
    if (first.mask == 0) return;
    STELE_ASSERT(stored.offset % line_size == 0);
    lane& l = logs.of(t);
    if (l.log.free_lines() < most_lines) start_again(t);
    // A TxID above all that recovery ignores; the transaction's own is not drawn yet.
    const std::uint64_t txid = medium_.state.clock.load() + 1;
    l.log.append(format::record_kind::undo, txid,
                 [&](auto& out) { encode_runs({&first, 1}, out, batch_.home.old_word()); });
    // A record never outgrows the room that was looked for.
    STELE_ASSERT(l.log.appended_end() > l.log.tail() &&
                 l.log.appended_end() - l.log.tail() <= most_lines);
    if (!medium_.fence_ok(l.media)) throw failure(medium_.check().error());
    l.log.publish();
  }

  // Redo: each word stored gets a run of its own in the record of the commit.
  void journal(transaction& t, const written_line& stored) {
    std::vector<stored_word>& j = journals_[t.log()];
    for (unsigned w = next_word(stored.mask, 0); w < 8; w = next_word(stored.mask, w + 1)) {
      const std::uint8_t mask = stored.word_mask(w);
      j.push_back({format::run_header{stored.offset + 8 * w, mask, 1}.pack(),
                   stored.words[w] & expand_mask(mask)});
    }
    // redo-published.md: an entry is a head that names its bytes, and a word without others.
    STELE_ASSERT(j.empty() || format::run_header::unpack(j.back().head).count == 1);
    STELE_ASSERT(j.empty() || (j.back().word &
                               ~expand_mask(format::run_header::unpack(j.back().head).mask)) == 0);
    if (lines_for_words(1 + 2 * j.size()) > logs.capacity()) start_again(t);
  }
  void append_journal(lane& l, unsigned log, std::uint64_t txid) {
    std::span<const stored_word> j = journals_[log];
    STELE_ASSERT(lines_for_words(1 + 2 * j.size()) <= l.log.free_lines());
    if (planted<Media>(mutant::published_last_store)) j = j.first(j.size() - 1);
    l.log.append(format::record_kind::redo, txid, [&](auto& out) {
      for (const stored_word& s : j) out.append_word(s.head), out.append_word(s.word);
    });
    STELE_ASSERT(l.log.appended_end() - l.log.tail() == lines_for_words(1 + 2 * j.size()));
  }

  [[noreturn]] static void start_again(transaction& t) {
    t.exceeds_log = true;
    lose_attempt();
  }

  pool_medium<Media>& medium_;
  batch batch_;

 public:
  log_lanes<Media>& logs;

 private:
  std::vector<std::vector<stored_word>> journals_;  // redo: of the running transaction of each log
};

template <class Media>
using redo_published = each_store_logged<Media, logged_values::new_ones>;
template <class Media>
using undo_published = each_store_logged<Media, logged_values::old_ones>;

}  // namespace stele::detail
