// Volatile checkpoint with bulk persistence: commits store home unflushed; later all of home is
// made durable at once, for the whole pool, and the logs are truncated. Page:
// docs/protocol/bulk.md, steps T1 to T6. Source: Lu, Shu and Sun, "Blurred Persistence" (2016),
// section 3.3. The pool-wide watermark is a departure.
//
// Three ways to make home durable: read the logs back and flush each line that they name once; take
// the lines from the dirty-line queues; or persist the whole of home at once, where the medium can
// (a file's sync; the paper's wbinvd on simulated media).
//
// A truncation that runs out of memory has truncated nothing and lost nothing. A line that cannot
// be added to the set is flushed at once. Logs that are read back are read again next time.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/log/truncation.h>

namespace stele::detail {

// Where truncation finds the lines that commits have stored home.
enum class dirty_lines : std::uint8_t {
  in_log,    // read the log back
  in_queue,  // commits queue them: log_lanes::queue_dirty_lines
  flushed,   // commits flush them: truncation flushes nothing
};

template <class Media>
class bulk_write_back {
 public:
  using mutant = base::mutant;
  using logs = log_lanes<Media>;
  using lane = typename logs::lane;

  bulk_write_back(pool_medium<Media>& medium, home_checksums<Media>& sums, logs& of,
                  log_truncation<Media>& truncation, bulk_persistence how, dirty_lines where)
      : medium_(medium),
        file_(medium.state.file),
        sums_(sums),
        logs_(of),
        truncation_(truncation),
        where_(where),
        persists_whole_home_(Media::whole_cache == media::whole_cache::preferred
                                 ? how != bulk_persistence::log_walk
                                 : Media::whole_cache == media::whole_cache::supported &&
                                       how == bulk_persistence::whole_cache) {
    heads_.reserve(of.size());
    if (where == dirty_lines::in_queue)
      for (lane& l : of) l.dirty_lines.resize_for_log(l.log.capacity_lines());
  }

  // B1 and B2, for the owner of a log that no other thread writes: flushes home lines of its
  // earlier commits, if there are many that nobody has flushed. They are durable with the next
  // fence of its medium; the call after that says so. All its earlier commits have stored home.
  [[gnu::always_inline]] void write_back_earlier(lane& l) {
    if (l.dirty_lines.has_untaken(owner_batch_words)) [[unlikely]]
      flush_batch(l);
  }

  // Truncates every log through one TxID and returns that TxID.
  std::uint64_t truncate() {
    const auto hold = truncation_.lock();
    // T1: all commits through it have stored home
    const std::uint64_t through = truncation_.advance_completed();
    collect(through);  // T2
    STELE_ASSERT(heads_.size() == logs_.size());
    STELE_ASSERT_WHOLE(medium_.state.poisoned.load() || heads_are_published());
    if (medium_.state.poisoned.load()) return through;  // what home needs is not known
    STELE_ASSERT(sums_.logged() || deltas_.empty());
    const bool moves = sums_.logged() && sums_.kept() && !deltas_.empty();
    if (moves) sums_.mark_moving();  // S3
    if (moves && medium_.control.failed())
      // Unmarked, recovery would apply the deltas twice
      return (void)medium_.check(), through;
    if (!planted<Media>(mutant::sums_after_mark)) apply_deltas(through);
    persist_home();           // T3
    medium_.control.fence();  // home is durable before the watermark moves
    if (medium_.state.poisoned.load()) return through;  // home may not be durable
    medium_.write_word(format::watermark_offset,
                       through + planted<Media>(mutant::bulk_mark_ahead));  // T4
    if (moves && planted<Media>(mutant::sums_said_early)) sums_.write_state(checksums_valid);
    // The watermark is durable before any head moves and before checksums are marked valid
    medium_.control.fence();
    // A commit of another thread may be writing the block that a head lies in: no head moves in
    // memory unless the watermark is on media
    if (medium_.control.failed()) return (void)medium_.check(), through;
    if (planted<Media>(mutant::sums_after_mark)) apply_deltas(through);
    if (moves && sums_.kept()) sums_.write_state(checksums_valid);
    truncation_.advance_heads(heads_);  // T5, T6
    deltas_.clear();
    (void)medium_.check();
    return through;
  }

 private:
  // Some 100 to 250 commits of a few lines; the flushes of a batch take some microseconds.
  static constexpr std::uint64_t owner_batch_words = Media::under_exploration ? 6 : 512;
  static constexpr auto checksums_valid = format::block_checksum_state::valid;

  // For assertions.
  [[maybe_unused]] bool is_in_home(std::uint64_t line) const noexcept {
    const auto& h = file_.header();
    return line % line_size == 0 && line >= h.home_offset && line < h.size;
  }
  [[maybe_unused]] bool heads_are_published() const noexcept {
    for (std::size_t i = 0; i < heads_.size(); ++i)
      if (heads_[i] < logs_[i].log.head() || heads_[i] > logs_[i].log.tail()) return false;
    return true;
  }

  [[gnu::noinline]] void flush_batch(lane& l) {
    const auto count_flushed = [&] { l.dirty_lines.set_flushed(); };  // B1
    const auto flush_next = [&] {                                     // B2
      l.dirty_lines.take(owner_batch_words, [&](std::uint64_t line) {
        STELE_ASSERT(is_in_home(line));
        l.media.flush(file_.at(line), line_size);
      });
    };
    base::in_order(planted<Media>(mutant::bulk_flushed_early), count_flushed, flush_next);
  }

  // T2: the home lines, the checksum deltas and the ends of the records up to `through`.
  void collect(std::uint64_t through) {
    lines_.clear();
    heads_.clear();
    STELE_ASSERT(through >= checksummed_through_);  // bulk.md T1: H never decreases
    // An earlier truncation did not finish: what its records change is no longer known.
    if (!deltas_.empty()) sums_.abandon();
    deltas_.clear();
    for (lane& l : logs_)
      heads_.push_back(where_ == dirty_lines::in_queue ? collect_queued(l, through)
                                                       : collect_logged(l, through));
    checksummed_through_ = through;
  }
  // Of one log, from its records. Flushes its aborted ranges, too. Returns the position after the
  // records.
  std::uint64_t collect_logged(lane& l, std::uint64_t through) {
    log_record& record = truncation_.record;
    const std::uint64_t tail = l.log.tail();
    std::uint64_t position = l.log.head();
    while (position < tail) {
      std::uint64_t next = position;
      const auto whole = read_back(l, next, tail);
      if (!whole) return position;
      if (!*whole) {  // only aborted transactions are left
        position = tail;
        break;
      }
      if (record.txid > through) break;
      if (needs_lines_of(l)) add_lines(record);
      add_deltas(record);
      position = next;
    }
    return flush_aborted(l, position);
  }
  // The same from the dirty-line queue.
  std::uint64_t collect_queued(lane& l, std::uint64_t through) {
    std::uint64_t position = l.log.head();
    const std::uint64_t tail = l.log.tail();
    const bool wanted = needs_lines_of(l);
    dirty_line_queue::entry n;
    while (l.dirty_lines.peek(n) && n.txid <= through) {
      const bool flushed = l.dirty_lines.is_flushed(),
                 unnamed = n.lines == 0 &&
                           !(flushed && planted<Media>(mutant::bulk_spill_flushed)) && wanted;
      // The entries follow the log. A record that is not published is of a commit that failed
      STELE_ASSERT(n.next > position);
      STELE_ASSERT(n.next <= tail || medium_.state.poisoned.load());
      if (sums_.logged() || unnamed) add_logged_record(l, position, unnamed);
      position = n.next;
      l.dirty_lines.pop(n, [&](std::uint64_t line) {
        if (wanted && !flushed) add_line(line);
      });
    }
    if (l.form != nullptr)
      return flush_aborted(l, l.dirty_lines.peek(n) ? position : std::max(position, tail));
    if (sums_.logged()) add_overtaken_deltas(l, position, through);
    return position;
  }
  // The aborted ranges of a log before `position`, which it returns.
  std::uint64_t flush_aborted(lane& l, std::uint64_t position) {
    logs_.flush_aborted_ranges(l, position);
    return position;
  }
  // Reads a record that this session has published. An error poisons the pool.
  result<bool> read_back(lane& l, std::uint64_t& position, std::uint64_t end) {
    auto whole = l.read(position, end, truncation_.record);
    if (!whole) medium_.state.poison(pool_state::poison_cause::overwritten);
    return whole;
  }
  void add_logged_record(lane& l, std::uint64_t position, bool with_lines) {
    if (!read_back(l, position, l.log.tail())) return;
    if (with_lines) add_lines(truncation_.record);
    add_deltas(truncation_.record);
  }
  // In a log shared by many threads, records up to `through` may lie behind later ones. They stay
  // in the log, but the watermark passes them now.
  void add_overtaken_deltas(lane& l, std::uint64_t position, std::uint64_t through) {
    for (const std::uint64_t tail = l.log.tail(); position < tail;) {
      if (!read_back(l, position, tail)) return;
      if (truncation_.record.txid <= through) add_deltas(truncation_.record);
    }
  }

  // Whether truncation needs the home lines that a log's records name.
  bool needs_lines_of(const lane& l) const {
    return !persists_whole_home_ && where_ != dirty_lines::flushed &&
           (!planted<Media>(mutant::bulk_first_log_only) || l.number == 0);
  }
  void add_lines(const log_record& r) {
    for_each_stored_line(file_, r.payload, [&](std::uint64_t line) { add_line(line); });
  }
  // Without memory to remember it, a line is flushed at once, each time it is named.
  void add_line(std::uint64_t line) noexcept {
    STELE_ASSERT(is_in_home(line));
    if (!lines_.try_add(line)) medium_.control.flush(file_.at(line), line_size);
  }
  void add_deltas(const log_record& r) {
    if (!sums_.logged() || !sums_.kept() || r.txid <= checksummed_through_) return;
    try {
      (void)deltas_.add(file_, r.payload);
    } catch (const std::bad_alloc&) {
      sums_.abandon();
    }
  }
  void apply_deltas(std::uint64_t through) {
    STELE_ASSERT(through == checksummed_through_);
    if (!sums_.logged() || !sums_.kept()) return;
    sums_.apply(deltas_);
    deltas_.for_each([&](std::uint64_t block, checksum_deltas::delta) {
      sums_.compute_unknown(block, through);
    });
  }
  void persist_home() {
    const auto& h = file_.header();
    if (persists_whole_home_) {
      const media::range home{file_.at(h.home_offset), h.size - h.home_offset};
      return medium_.control.bulk_persist({&home, 1});
    }
    for (std::uint64_t line : lines_.all()) medium_.control.flush(file_.at(line), line_size);
  }

  pool_medium<Media>& medium_;
  const storage::pool_file& file_;
  home_checksums<Media>& sums_;
  logs& logs_;
  log_truncation<Media>& truncation_;
  const dirty_lines where_;
  const bool persists_whole_home_;
  // The rest is truncate()'s, under its lock; members to keep their memory.
  std::uint64_t checksummed_through_ = 0;  // checksums contain what records up to it change
  line_set lines_;
  checksum_deltas deltas_;
  std::vector<std::uint64_t> heads_;
};

}  // namespace stele::detail
