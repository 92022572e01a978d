// Volatile checkpoint with bulk persistence: commits store home unflushed; later all of home is
// made durable at once, for the whole pool, and the logs are truncated. Page:
// docs/protocol/bulk.md, steps T1 to T6. Source: Lu, Shu and Sun, "Blurred Persistence" (2016),
// section 3.3. The pool-wide watermark is a departure.
//
// Three ways to make home durable: read the logs back and flush each line that they name once; take
// the lines from the dirty-line queues; or persist the whole of home at once, where the medium can
// (a file's sync; the paper's wbinvd on simulated media). A background thread truncates when a ring
// is half full (the two halves are the epochs), or a commit does when its ring has no room.
//
// A truncation that runs out of memory has truncated nothing and lost nothing. A line that cannot
// be added to the set is flushed at once. Logs that are read back are read again next time.
#pragma once

#include <tx/background_thread.h>
#include <tx/lane_engine.h>
#include <tx/log/line_set.h>

namespace stele::detail {

template <class Media>
class bulk_engine : public torn_bit_engine<Media> {
 public:
  using torn_bit_engine<Media>::torn_bit_engine;
  using typename lane_engine<Media>::lane;
  ~bulk_engine() override { stop(); }

  void set_up(const engine_tuning& tuning) override {
    persist_whole_home_ = Media::whole_cache == media::whole_cache::preferred
                              ? tuning.bulk != bulk_persistence::log_walk
                              : Media::whole_cache == media::whole_cache::supported &&
                                    tuning.bulk == bulk_persistence::whole_cache;
    this->logs_checksum_deltas_ = this->block_checksums_.present() && maintains_block_checksums();
    heads_.reserve(this->lanes_.size());
    record_.payload.reserve(this->lanes_.front().log.capacity_lines() * format::payload_words);
    if (tuning.background && may_run_in_background())
      background_.start([this] { background_step(); },
                        [this] { return this->state_.deferred_logs.load() != 0; });
  }

  [[nodiscard]] result<> close() override {
    stop();
    truncate();
    if (auto sound = this->check_medium(); !sound) return sound;
    for (auto& l : this->lanes_)
      base::check(l.log.head() == l.log.tail(), "a log is not empty after its last truncation");
    return lane_engine<Media>::close();
  }

  [[nodiscard]] result<> refresh_block_checksums() override { return checkpoint(); }
  // Excludes truncations: they use the same medium and read the end of home from the header.
  [[nodiscard]] result<> grow(const format::growth& to) override {
    const auto hold = lock_truncation();
    return lane_engine<Media>::grow(to);
  }
  [[nodiscard]] result<> checkpoint() override {
    while (truncate() < this->state_.clock.load() && !this->state_.poisoned.load())
      this->state_.await_announced(no_log);
    return this->check_medium();
  }

 protected:
  bool maintains_block_checksums() const noexcept override { return !checksums_lost_; }

  // may_run_in_background: a background thread may truncate. queues_dirty_lines: the dirty-line
  // queues name what to flush, so the logs are not read. commits_flush_home: home is durable when a
  // commit returns, so truncation flushes nothing.
  virtual bool may_run_in_background() const noexcept { return false; }
  virtual bool queues_dirty_lines() const noexcept { return false; }
  virtual void background_step() { truncate(); }
  virtual bool commits_flush_home() const noexcept { return false; }

  // Waits for log space and truncates as needed. Errors: poisoned, io.
  [[nodiscard]] result<> wait_for_log_space(lane& l, std::uint64_t lines) {
    if (l.log.free_lines() < l.log.capacity_lines() / 2) [[unlikely]]
      background_.wake();
    while (l.log.free_lines() < lines) [[unlikely]] {
      truncate();
      if (this->state_.poisoned.load()) return this->check_medium();
      if (l.log.free_lines() < lines) this->state_.await_announced(l.number);
    }
    return {};
  }
  static constexpr unsigned no_log = ~0u;
  // The same, and reserves chunks for a record that outgrows the ring.
  [[nodiscard]] result<> reserve_spill_chunks(lane& l, transaction& t, Media& media) {
    const std::uint64_t words =
        payload_words(t.lines()) + max_checksum_delta_words(t.lines().size());
    {
      const std::lock_guard hold(truncation_mutex_);
      record_.payload.reserve(words);  // a truncation reads the record back into it
    }
    if (auto reserved = this->reserve_spill(l, t, words); !reserved) return reserved;
    const std::uint64_t newest = this->state_.clock.load();
    // Until no record above the watermark names bytes in these chunks: replay would overwrite them.
    while (truncate() < newest) {
      if (this->state_.poisoned.load()) return this->check_medium();
      this->state_.await_announced(l.number);
    }
    // S6: the checksums of these blocks are unknown before the record is written to them.
    return this->invalidate_block_checksums(media, l) ? result<>{} : this->check_medium();
  }

  // Reserves log space, and chunks if needed, for a record of lines.
  [[nodiscard]] result<> prepare_lines(lane& l, transaction& t) {
    // A line stored in eight parts takes sixteen words of a record.
    const std::uint64_t bound = 3 * t.lines().size() + 1;
    return has_plenty(l, bound) ? result<>{} : prepare_lines_slow(l, t);
  }
  // Whether a record of at most so many lines needs no truncation, and no spill is reserved.
  static bool has_plenty(const lane& l, std::uint64_t lines) noexcept {
    return lines <= l.log.free_lines() && l.log.free_lines() >= l.log.capacity_lines() / 2 &&
           l.reserved_bytes == 0;
  }
  [[gnu::noinline]] result<> prepare_lines_slow(lane& l, transaction& t) {
    this->release_reserved(l);
    const std::uint64_t lines = this->lines_needed(t, l.log.capacity_lines() / 2);
    if (lines > l.log.capacity_lines()) [[unlikely]]
      if (auto made = reserve_spill_chunks(l, t, l.media); !made) return made;
    return wait_for_log_space(l, std::min(lines, l.log.capacity_lines()));
  }

  // Commits with a streamed record of lines: one fence, home unflushed. before_fence() runs when
  // the record is appended; do there what can be done before the fence, since stores after it wait
  // for it.
  template <class BeforeFence>
  bool commit_lines(lane& l, transaction& t, std::uint64_t txid, BeforeFence&& before_fence) {
    using base::mutant;
    using base::planted;
    this->append(l, format::record_kind::redo, txid, t, this->new_value);  // 1
    before_fence();
    if (planted<Media>(mutant::bulk_home_first)) store_home_unflushed(l, t);
    if (!planted<Media>(mutant::bulk_no_log_fence) && !this->fence_ok(l))
      return false;  // 2: the log is durable before home changes
    t.begin_home_stores();
    store_home_unflushed(l, t);  // 3
    l.log.publish();
    return true;
  }
  void store_home_unflushed(lane& l, const transaction& t) {
    for (const written_line& line : t.lines()) this->store_home(l.media, this->state_.file, line);
  }

  // No truncation runs while the lock is held.
  std::unique_lock<std::mutex> lock_truncation() { return std::unique_lock(truncation_mutex_); }

  // Truncates every log through one TxID and returns that TxID.
  virtual std::uint64_t truncate() {
    using base::mutant;
    using base::planted;
    const std::lock_guard hold(truncation_mutex_);
    if (this->state_.deferred_logs.load() != 0)
      this->flush_deferred();  // deferred commits are stored home before their log lines go
    // T1: all commits through it have stored home
    const std::uint64_t through = advance_completed();
    dirty_lines_.clear();
    heads_.clear();
    // An earlier truncation did not finish: what its records change is no longer known.
    if (!checksum_deltas_.empty()) abandon_checksums();
    checksum_deltas_.clear();
    for (lane& l : this->lanes_) heads_.push_back(collect_dirty_lines(l, through));  // T2
    checksummed_through_ = through;
    const bool moves = this->logs_checksum_deltas_ && !checksums_lost_ && !checksum_deltas_.empty();
    if (moves) this->mark_checksums_moving(mutant::sums_move_unsaid);  // S3
    if (moves && this->control_.failed())
      // Unmarked, recovery would apply the deltas twice
      return (void)this->check_medium(), through;
    if (!planted<Media>(mutant::sums_after_mark)) apply_checksum_deltas(through);
    persist_home();  // T3
    if (!planted<Media>(mutant::bulk_no_data_fence))
      this->control_.fence();                          // home is durable before the watermark moves
    if (this->state_.poisoned.load()) return through;  // home may not be durable
    this->write_word(format::watermark_offset,
                     through + planted<Media>(mutant::bulk_mark_ahead));  // T4
    if (moves && planted<Media>(mutant::sums_said_early))
      this->write_checksum_state(format::block_checksum_state::valid);
    if (!planted<Media>(mutant::bulk_no_mark_fence))
      // The watermark is durable before any head moves and before checksums are marked valid
      this->control_.fence();
    if (planted<Media>(mutant::sums_after_mark)) apply_checksum_deltas(through);
    if (moves && !checksums_lost_) this->write_checksum_state(format::block_checksum_state::valid);
    advance_heads(heads_);  // T5, T6
    checksum_deltas_.clear();
    (void)this->check_medium();
    return through;
  }

  // T1: H. H never decreases, even if a commit announces an old clock value. With a lower watermark
  // recovery would replay, or roll back, records that are already truncated.
  std::uint64_t advance_completed() {
    const std::uint64_t now = this->state_.completed();
    completed_through_ = base::planted<Media>(base::mutant::bulk_mark_back)
                             ? now
                             : std::max(completed_through_, now);
    return completed_through_;
  }

  // T5 and T6: truncates the logs to these positions.
  void advance_heads(std::span<const std::uint64_t> heads) {
    for (std::size_t i = 0; i < heads.size(); ++i)
      if (heads[i] != this->lanes_[i].log.head())
        this->write_word(this->log_offset(this->lanes_[i]), heads[i] | this->lanes_[i].flags());
    if (!base::planted<Media>(base::mutant::bulk_no_head_fence))
      this->control_.fence();  // heads are durable before their log lines are reused
    for (std::size_t i = 0; i < heads.size(); ++i) {
      lane& l = this->lanes_[i];
      if (heads[i] == l.log.head()) continue;
      l.log.truncate(heads[i]);
      this->release_spills(l, heads[i]);
    }
    ++this->truncations_;
  }

  // Queues a record's dirty lines for truncation. A spilled record queues no lines: truncation
  // reads them from the log.
  void queue_dirty_lines(lane& l, const transaction& t, std::uint64_t txid) {
    const bool spilled = l.spilled;
    if (spilled) l.spilled = false;
    l.dirty_lines.push(txid, l.log.appended_end(),
                       spilled ? std::span<const written_line>() : t.lines());
  }

  bool is_any_log_low() const {
    return std::ranges::any_of(this->lanes_, [](const lane& l) {
      return l.log.free_lines() < l.log.capacity_lines() / 2;
    });
  }
  // A derived class with overrides calls it in its own destructor, while the overrides still exist.
  void stop() { background_.stop(); }
  background_thread background_;

 private:
  void apply_checksum_deltas(std::uint64_t through) {
    if (!this->logs_checksum_deltas_ || checksums_lost_) return;
    lane_engine<Media>::apply_checksum_deltas(checksum_deltas_);
    checksum_deltas_.for_each([&](std::uint64_t block, checksum_deltas::delta) {
      compute_unknown_checksum(block, through);
    });
  }
  // Computes an unknown block checksum, unless a commit may be storing to the block meanwhile.
  void compute_unknown_checksum(std::uint64_t block, std::uint64_t through) {
    if (this->block_checksums_.stored(block) != format::block_checksum_unknown ||
        this->state_.clock.load() != through)
      return;
    const std::uint64_t sum = this->block_checksums_.compute(block);
    if (this->state_.clock.load() == through)
      this->block_checksums_.set(this->control_, block, sum);
  }
  // Without memory for the deltas, this session's block checksums do not count; close() recomputes
  // them.
  void abandon_checksums() {
    if (checksums_lost_) return;
    checksums_lost_ = true;
    this->write_checksum_state(format::block_checksum_state::none);
    this->control_.fence();  // the state is durable before home changes without checksums
  }
  void add_checksum_deltas(const log_record& r) {
    if (!this->logs_checksum_deltas_ || checksums_lost_ || r.txid <= checksummed_through_) return;
    try {
      (void)checksum_deltas_.add(this->state_.file, r.payload);
    } catch (const std::bad_alloc&) {
      abandon_checksums();
    }
  }

  // Collects the home lines of one log's records up to `through`, and flushes its aborted ranges.
  // Returns the position after those records.
  std::uint64_t collect_dirty_lines(lane& l, std::uint64_t through) {
    if (queues_dirty_lines()) return pop_dirty_lines(l, through);
    const std::uint64_t tail = l.log.tail();
    std::uint64_t position = l.log.head();
    while (position < tail) {
      std::uint64_t next = position;
      const auto whole = l.read(next, tail, record_);
      base::check(whole.has_value(), "a log record of this session cannot be read back");
      if (!*whole) {  // only aborted transactions are left
        position = tail;
        break;
      }
      if (record_.txid > through) break;
      if (needs_dirty_lines_of(l)) add_dirty_lines(record_);
      add_checksum_deltas(record_);
      position = next;
    }
    if (!base::planted<Media>(base::mutant::xil_aborted_left))
      this->flush_aborted_ranges(l, position);
    return position;
  }

  // Whether truncation needs the home lines that a log's records name.
  bool needs_dirty_lines_of(const lane& l) const {
    return !persist_whole_home_ && !commits_flush_home() &&
           (!base::planted<Media>(base::mutant::bulk_first_log_only) ||
            &l == &this->lanes_.front());
  }

  // The same from the dirty-line queue.
  std::uint64_t pop_dirty_lines(lane& l, std::uint64_t through) {
    std::uint64_t position = l.log.head();
    const bool wanted = needs_dirty_lines_of(l);
    for (dirty_line_queue::entry n; l.dirty_lines.peek(n) && n.txid <= through;) {
      if (this->logs_checksum_deltas_ || (n.lines == 0 && wanted))
        add_logged_record(l, position, n.lines == 0 && wanted);
      position = n.next;
      l.dirty_lines.pop(n, [&](std::uint64_t line) {
        if (wanted) add_dirty_line(line);
      });
    }
    if (this->logs_checksum_deltas_) add_overtaken_deltas(l, position, through);
    return position;
  }
  void add_logged_record(lane& l, std::uint64_t position, bool with_lines) {
    // record_ has room: set_up() and reserve_spill_chunks() reserved it.
    (void)l.read(position, l.log.tail(), record_);
    if (with_lines) add_dirty_lines(record_);
    add_checksum_deltas(record_);
  }
  // In a log shared by many threads, records up to `through` may lie behind later ones. They stay
  // in the log, but the watermark passes them now.
  void add_overtaken_deltas(lane& l, std::uint64_t position, std::uint64_t through) {
    for (const std::uint64_t tail = l.log.tail(); position < tail;) {
      (void)l.read(position, tail, record_);
      if (record_.txid <= through) add_checksum_deltas(record_);
    }
  }
  void add_dirty_lines(const log_record& r) {
    for_each_stored_line(this->state_.file, r.payload,
                         [&](std::uint64_t line) { add_dirty_line(line); });
  }
  // Without memory to remember it, a line is flushed at once, each time it is named.
  void add_dirty_line(std::uint64_t line) noexcept {
    if (dirty_lines_.try_add(line)) return;
    this->control_.flush(this->state_.file.at(line), line_size);
  }

  void persist_home() {
    if (base::planted<Media>(base::mutant::bulk_last_home_line)) dirty_lines_.drop_last();
    const auto& h = this->state_.file.header();
    if (persist_whole_home_) {
      const media::range home{this->state_.file.at(h.home_offset), h.size - h.home_offset};
      return this->control_.bulk_persist({&home, 1});
    }
    for (std::uint64_t line : dirty_lines_.all())
      this->control_.flush(this->state_.file.at(line), line_size);
  }

  bool persist_whole_home_ = false;
  bool checksums_lost_ = false;          // under truncation_mutex_
  std::uint64_t completed_through_ = 0;  // the last H; under truncation_mutex_
  // Under truncation_mutex_: block checksums contain what records up to this TxID change.
  std::uint64_t checksummed_through_ = 0;
  std::mutex truncation_mutex_;
  line_set dirty_lines_;  // this and the next three are truncate()'s: members to keep their memory
  checksum_deltas checksum_deltas_;
  std::vector<std::uint64_t> heads_;
  log_record record_;
};

}  // namespace stele::detail
