// Truncation of logs whose home is made durable later, for the whole pool at once: who waits for
// log space, through which TxID a truncation goes, and its last steps. Pages:
// docs/protocol/bulk.md and archapt.md, steps T1, T5 and T6. How home becomes durable (T2 to T4) is
// the write-back policy's: it gives `truncate`.
//
// A truncation is an epoch of the pool, never of one log: if one log were cut alone, recovery would
// replay an older value from another log over a newer one.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/background_thread.h>
#include <tx/log/lanes.h>

#include <functional>
#include <mutex>
#include <vector>

namespace stele::detail {

template <class Media>
class log_truncation {
 public:
  using mutant = base::mutant;
  using lane = typename log_lanes<Media>::lane;
  static constexpr unsigned no_log = ~0u;

  // truncate() truncates every log through one TxID and returns that TxID.
  // background: truncates when a ring is half full, if it runs.
  log_truncation(pool_medium<Media>& medium, log_lanes<Media>& logs, background_thread& background,
                 std::function<std::uint64_t()> truncate)
      : medium_(medium), logs_(logs), background_(background), truncate_(std::move(truncate)) {
    record.payload.reserve(logs.capacity() * format::payload_words);
  }

  std::uint64_t truncate() { return truncate_(); }
  // No truncation runs while the lock is held.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // --- before a commit; errors of all: full, poisoned, io ---

  // Whether a record of at most so many lines needs no truncation, and no spill is reserved.
  static bool has_plenty(const lane& l, std::uint64_t lines) noexcept {
    return lines <= l.log.free_lines() && l.log.free_lines() >= l.log.capacity_lines() / 2 &&
           l.reserved_bytes == 0;
  }
  // Reserves log space, and chunks if needed, for a record of lines.
  [[nodiscard]] result<> reserve(lane& l, transaction& t) {
    // A line stored in eight parts takes sixteen words of a record.
    const std::uint64_t bound = 3 * t.lines().size() + 1;
    return has_plenty(l, bound) ? result<>{} : reserve_slow(l, t);
  }
  // Wakes the background thread, if it runs.
  void wake() noexcept { background_.wake(); }
  [[nodiscard]] result<> wait_for_space(lane& l, std::uint64_t lines) {
    STELE_ASSERT(lines != 0 && lines <= l.log.capacity_lines());  // else it would wait for ever
    if (l.log.free_lines() < l.log.capacity_lines() / 2) [[unlikely]]
      wake();
    while (l.log.free_lines() < lines) [[unlikely]] {
      truncate();
      if (medium_.state.poisoned.load()) return medium_.check();
      if (l.log.free_lines() < lines) medium_.state.await_announced(l.number);
    }
    return {};
  }
  // Reserves chunks for a record that outgrows the ring.
  [[nodiscard]] result<> reserve_spill(lane& l, transaction& t, Media& media) {
    const std::uint64_t words =
        payload_words(t.lines()) + max_checksum_delta_words(t.lines().size());
    {
      const auto hold = lock();
      record.payload.reserve(words);  // a truncation reads the record back into it
    }
    if (auto reserved = logs_.reserve_spill(l, t, words); !reserved) return reserved;
    STELE_ASSERT(l.reserved_bytes == words * 8);
    const std::uint64_t newest = medium_.state.clock.load();
    // Until no record above the watermark names bytes in these chunks: replay would overwrite them.
    while (truncate() < newest) {
      if (medium_.state.poisoned.load()) return medium_.check();
      medium_.state.await_announced(l.number);
    }
    return logs_.invalidate_checksums(media, l);
  }
  // On return no record counts any more. No transaction runs.
  [[nodiscard]] result<> empty_logs() {
    while (truncate() < medium_.state.clock.load() && !medium_.state.poisoned.load())
      medium_.state.await_announced(no_log);
    return medium_.check();
  }
  // The last truncation of a session; none if the pool is poisoned.
  [[nodiscard]] result<> close() {
    background_.stop();
    if (auto sound = medium_.check(); !sound) return sound;
    truncate();
    if (auto sound = medium_.check(); !sound) return sound;
    for (lane& l : logs_)
      base::check(l.log.head() == l.log.tail(), "a log is not empty after its last truncation");
    for ([[maybe_unused]] const lane& l : logs_)
      STELE_ASSERT(l.spills.empty() && l.log.free_lines() == l.log.capacity_lines());
    return {};
  }

  // --- in a truncation, under the lock ---

  // T1: all commits through the result have stored home. It never decreases, even if a commit
  // announces an old clock value. With a lower watermark recovery would replay, or roll back,
  // records that are already truncated.
  std::uint64_t advance_completed() {
    const std::uint64_t now = medium_.state.completed();
    completed_through_ =
        planted<Media>(mutant::bulk_mark_back) ? now : std::max(completed_through_, now);
    STELE_ASSERT(completed_through_ <= medium_.state.clock.load(std::memory_order_relaxed));
    return completed_through_;
  }
  // T5 and T6: truncates the logs to these positions. Precondition: the watermark is durable.
  void advance_heads(std::span<const std::uint64_t> heads) {
    STELE_ASSERT(heads.size() == logs_.size());
    for (std::size_t i = 0; i < heads.size(); ++i)
      if (heads[i] != logs_[i].log.head())
        medium_.write_word(logs_.log_offset(logs_[i]), heads[i] | logs_[i].flags());
    medium_.control.fence();  // heads are durable before their log lines are reused
    for (std::size_t i = 0; i < heads.size(); ++i) {
      STELE_ASSERT(heads[i] >= logs_[i].log.head());  // bulk.md T5
      if (heads[i] == logs_[i].log.head()) continue;
      logs_[i].log.truncate(heads[i]);
      logs_.release_spills(logs_[i], heads[i]);
    }
    ++count;
  }

  base::relaxed_counter count;  // of truncations
  log_record record;            // has room for every record in a log; under the lock

 private:
  [[gnu::noinline]] result<> reserve_slow(lane& l, transaction& t) {
    logs_.release_reserved(l);
    const std::uint64_t lines = logs_.lines_needed(t, logs_.capacity() / 2);
    if (lines > logs_.capacity()) [[unlikely]]
      if (auto made = reserve_spill(l, t, l.media); !made) return made;
    return wait_for_space(l, std::min(lines, logs_.capacity()));
  }

  pool_medium<Media>& medium_;
  log_lanes<Media>& logs_;
  background_thread& background_;
  const std::function<std::uint64_t()> truncate_;
  std::mutex mutex_;
  std::uint64_t completed_through_ = 0;  // under mutex_
};

}  // namespace stele::detail
