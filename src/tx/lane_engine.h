// What mechanisms with lanes share on a medium.
//
// lane_engine: the lanes (a medium object and a ring for each log), storing home, block checksums,
// and spills (records that are longer than their ring). torn_bit_engine: recovery of torn-bit
// logs. The commit protocols are in mechanism/.
#pragma once

#include <base/check.h>
#include <base/mutant.h>
#include <base/relaxed_counter.h>
#include <fmt/format.h>
#include <tx/log/block_log.h>
#include <tx/log/dirty_line_queue.h>
#include <tx/log/line_set.h>
#include <tx/log/ring.h>
#include <tx/media_engine.h>
#include <tx/transaction.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <mutex>

namespace stele::detail {

template <class Media>
class lane_engine : public media_engine<Media> {
 public:
  using media_engine<Media>::state_;
  using media_engine<Media>::control_;
  using media_engine<Media>::fence_ok;
  using media_engine<Media>::read_word;
  using media_engine<Media>::write_word;

  lane_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared, log_kind kind)
      : media_engine<Media>(state, std::move(shared), kind) {
    for (unsigned i = 0; i < state.file.header().log_count; ++i)
      lanes_.emplace_back(*this->shared_, i, state.file);
  }

  void set_up(const engine_tuning&) override {
    updates_checksums_ = this->maintains_block_checksums() && this->block_checksums_.present();
  }
  [[nodiscard]] result<> recover() override { return {}; }
  [[nodiscard]] result<> reserve_log(transaction&) override { return {}; }

  engine_totals totals() const noexcept override {
    engine_totals t = media_engine<Media>::totals();
    for (const lane& l : lanes_) {
      t.media += l.media.count;
      t.log_spills += l.spill_count;
    }
    t.truncations = truncations_;
    return t;
  }

  void note(unsigned log, media::tape_mark m, std::uint64_t argument) override {
    lanes_[log].media.note(m, argument);
  }

 protected:
  struct spill {
    std::uint64_t position;       // of its record in the ring
    std::uint64_t offset, bytes;  // of its chunks
  };

  struct aborted_range {
    std::uint64_t from, to;  // positions in the ring
  };

  // One thread at a time uses a lane.
  struct alignas(64) lane {
    lane(typename Media::shared& shared, unsigned n, const storage::pool_file& file)
        : number(n),
          media(shared, n),
          log(media, file, n),
          blocks(media, log, file.header().id),
          file_(file) {}
    const unsigned number;
    Media media;
    ring<Media> log;
    block_log<Media> blocks;
    dirty_line_queue dirty_lines;
    bool has_blocks = false;  // the log holds blocks, not lines
    std::uint64_t flags() const noexcept { return has_blocks ? format::log_blocks_bit : 0; }

    // Reads the next committed transaction from `position` on, up to the published tail `end`.
    // False: only aborted transactions are left.
    [[nodiscard]] result<bool> read(std::uint64_t& position, std::uint64_t end,
                                    log_record& record) const {
      if (has_blocks) return read_block_record(file_, log.view(), position, end, record);
      auto whole = log.read(position, record);
      base::check(whole && *whole, "a log record of this session cannot be read back");
      return whole;
    }
    // Chunks for the payload of the running commit's record; no bytes: none are reserved.
    std::uint64_t reserved_spill = 0, reserved_bytes = 0;
    std::list<spill> reserved;  // the list node for `spills`: a commit allocates no memory
    std::mutex spills_mutex;    // protects spills and aborted_ranges
    std::list<spill> spills;    // chunks that records in the ring point to
    std::deque<aborted_range> aborted_ranges;  // not flushed yet
    base::relaxed_counter spill_count;
    bool spilled = false;  // the record of the running commit is spilled

   private:
    const storage::pool_file& file_;
  };

  bool any_failed() noexcept override {
    return std::ranges::any_of(lanes_, [](const lane& l) { return l.media.failed(); });
  }
  bool fence_ok(lane& l, const std::source_location& at = std::source_location::current()) {
    return fence_ok(l.media, at);
  }

  // Empties the ring and stores its head word. The owner of the lane may be running, so the store
  // goes through the control medium.
  void write_head(lane& l, std::uint64_t position, std::uint64_t flags = 0) {
    l.log.reset(position);
    l.blocks.reset(position);
    write_word(log_offset(l), position | flags);
  }
  std::uint64_t log_offset(const lane& l) const {
    return state_.file.header().log_offset + l.number * state_.file.header().log_size;
  }

  // Stores the bytes of the line's mask home.
  static void store_home(Media& media, const storage::pool_file& file, const written_line& line) {
    std::byte* const home = file.at(line.offset);
    if (const unsigned w = single_whole_word(line.mask); w != 8) [[likely]]
      return media.store(home + 8 * w, &line.words[w], 8);
    if (std::has_single_bit(line.mask)) {  // the state byte of a block
      const auto byte = static_cast<unsigned>(std::countr_zero(line.mask));
      return media.store(home + byte, reinterpret_cast<const std::byte*>(line.words.data()) + byte,
                         1);
    }
    unsigned left = 0;
    if (!all_words_whole(line.mask, left)) [[unlikely]]
      return store_parts_home(media, home, line);
    if (left == 0xFF) return media.store(home, line.words.data(), line_size);
    for (; left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      media.store(home + 8 * w, &line.words[w], 8);
    }
  }
  [[gnu::noinline]] static void store_parts_home(Media& media, std::byte* home,
                                                 const written_line& line) {
    for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      store_word_home(media, home + 8 * w, &line.words[w], line.word_mask(w));
    }
  }
  static void store_word_home(Media& media, std::byte* to, const std::uint64_t* word,
                              std::uint8_t mask) {
    if (mask == 0xFF) return media.store(to, word, 8);
    for (unsigned left = mask; left != 0;) {
      const auto begin = static_cast<unsigned>(std::countr_zero(left)),
                 bytes = static_cast<unsigned>(std::countr_one(left >> begin));
      media.store(to + begin, reinterpret_cast<const std::byte*>(word) + begin, bytes);
      left &= left + (1u << begin);
    }
  }
  // Stores t's lines home and flushes them. If commits update block checksums, S7: adds the deltas.
  void store_home_flushed(lane& l, const transaction& t, base::mutant skips_last) {
    const auto lines = t.lines();
    std::uint64_t by = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (updates_checksums_)
        by += checksum_delta_of(lines[i], new_words) - checksum_delta_of(lines[i], home_words(t));
      store_home(l.media, state_.file, lines[i]);
      const bool last = i + 1 == lines.size();
      if (updates_checksums_ && (last || block_of(lines[i + 1]) != block_of(lines[i])))
        add_to_checksum(l.media, block_of(lines[i]), std::exchange(by, 0));
      if (last && base::planted<Media>(skips_last)) break;
      l.media.flush(state_.file.at(lines[i].offset), line_size);
    }
  }

  // --- block checksums of home: docs/protocol/sums.md ---

  static std::uint64_t block_of(const written_line& line) noexcept {
    return line.offset / format::checksum_block_size * format::checksum_block_size;
  }
  // Not lambdas, here and below: the engines are instantiated in one file and declared in others.
  struct word_of_line {
    std::uint64_t operator()(const written_line& line, unsigned w) const noexcept {
      return line.words[w];
    }
  };
  static constexpr word_of_line new_words{};
  // The words that the transaction replaces, with the values of deferred commits before it.
  auto home_words(const transaction& t) const {
    return [this, &t](const written_line& line, unsigned w) {
      const std::uint64_t offset = line.offset + 8 * w;
      return t.read_through_overlay(
          offset, __atomic_load_n(reinterpret_cast<const std::uint64_t*>(state_.file.at(offset)),
                                  __ATOMIC_RELAXED));
    };
  }
  template <class WordOf>
  static std::uint64_t checksum_delta_of(const written_line& line, WordOf&& word_of) {
    std::uint64_t sum = 0;
    for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      sum += format::checksum_term(word_of(line, w) & expand_mask(line.word_mask(w)),
                                   line.offset + 8 * w);
    }
    return sum;
  }
  // Written after the runs of a record: for each segment of them in one block, the checksum terms
  // of the old words.
  template <class Writer>
  [[gnu::noinline]] void write_checksum_deltas(const transaction& t, Writer& out) const {
    // left: words that have no head yet; to_come: words that the last head announces.
    std::uint64_t left = checksum_delta_count(t), to_come = 0;
    for_each_checksum_delta(t, [&](std::uint64_t, std::uint64_t weight) {
      if (to_come == 0) {
        to_come = std::min<std::uint64_t>(left, format::max_run_words);
        left -= to_come;
        out.append_word(format::run_header{0, 0, static_cast<std::uint32_t>(to_come)}.pack());
      }
      out.append_word(weight);
      --to_come;
    });
  }
  // The number of segments: neighbours in the list of t's lines that lie in one block.
  static std::uint64_t checksum_delta_count(const transaction& t) {
    const auto lines = t.lines();
    std::uint64_t stretches = 0;
    for (std::size_t i = 0; i < lines.size(); ++i)
      stretches += i == 0 || block_of(lines[i]) != block_of(lines[i - 1]) ? 1 : 0;
    return stretches;
  }
  // Calls each(block, sum of the checksum terms of the old words) for each segment.
  template <class Each>
  void for_each_checksum_delta(const transaction& t, Each&& each) const {
    const auto lines = t.lines();
    std::uint64_t weight = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      weight += checksum_delta_of(lines[i], home_words(t));
      if (i + 1 == lines.size() || block_of(lines[i + 1]) != block_of(lines[i]))
        each(block_of(lines[i]), std::exchange(weight, 0));
    }
  }
  // A line lock does not cover the block checksum: commits to other lines of the block add to it
  // too, so a mutex does.
  void add_to_checksum(Media& media, std::uint64_t block, std::uint64_t by) {
    if (by == 0 || base::planted<Media>(base::mutant::sums_not_counted)) return;
    const std::lock_guard one(
        checksum_mutexes_[block / format::checksum_block_size % std::size(checksum_mutexes_)]);
    this->block_checksums_.apply_delta(media, block, by);
  }
  // S6: before a spilled record is written to free chunks, their block checksums become `unknown`,
  // and durably so. When the chunks are free again, their checksums are recomputed.
  bool invalidate_block_checksums(Media& media, const lane& l) {
    if (!block_checksums_active() || base::planted<Media>(base::mutant::sums_spill_kept))
      return true;
    this->block_checksums_.invalidate(media, l.reserved_spill, l.reserved_bytes);
    return fence_ok(media);
  }
  void recompute_unknown_checksums(Media& media, std::uint64_t offset, std::uint64_t bytes) {
    if (!block_checksums_active()) return;
    for (std::uint64_t block = this->block_checksums_.block_of(offset); block < offset + bytes;
         block += format::checksum_block_size)
      if (this->block_checksums_.stored(block) == format::block_checksum_unknown)
        // Others are valid and stay: records above the watermark may name their blocks.
        this->block_checksums_.recompute(media, block);
  }

  // Releases chunks that an earlier attempt reserved and did not use.
  void release_reserved(lane& l) {
    if (l.reserved_bytes != 0)
      recompute_unknown_checksums(l.media, l.reserved_spill, l.reserved_bytes);
    if (l.reserved_bytes != 0) state_.heap.release_chunks(l.reserved_spill, l.reserved_bytes);
    l.reserved_spill = l.reserved_bytes = 0;
    l.reserved.clear();
  }

  // Reserves chunks for a record that is longer than the ring. The reservation is in memory only,
  // so a crash leaves no trace of it. Transactions that began before the chunks were freed may
  // still use objects there: claim() makes them end or retry, or makes this one retry.
  [[nodiscard]] result<> reserve_spill(lane& l, transaction& t, std::uint64_t words) {
    if (l.reserved.empty()) l.reserved.emplace_back();
    auto reserved = state_.heap.reserve_chunks(words * 8);
    if (!reserved)
      return base::fail(errc::full, fmt::format("{}: no room for the log of a transaction of {} "
                                                "bytes; make smaller transactions or a larger pool",
                                                state_.file.path(), words * 8));
    l.reserved_spill = *reserved;
    l.reserved_bytes = words * 8;
    try {
      if (!base::planted<Media>(base::mutant::heap_claimless))
        t.claim(l.reserved_spill, l.reserved_bytes);
    } catch (...) {
      release_reserved(l);
      throw;
    }
    ++l.spill_count;
    return {};
  }

  // The word_of of redo records, and of undo records.
  struct second_argument {
    std::uint64_t operator()(std::uint64_t, std::uint64_t value) const noexcept { return value; }
  };
  static constexpr second_argument new_value{};
  auto old_value() const noexcept {
    return [this](std::uint64_t offset, std::uint64_t) {
      return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(this->state_.file.at(offset)),
                             __ATOMIC_RELAXED);
    };
  }

  // Appends the record of t. word_of(offset, new value) returns what the record holds for a word:
  // its new or its old value.
  template <class WordOf>
  void append(lane& l, format::record_kind kind, std::uint64_t txid, const transaction& t,
              WordOf&& word_of) {
    if (l.reserved_bytes != 0) [[unlikely]]
      return append_spilled(l, l, kind, txid, t, word_of);
    l.log.append(kind, txid, [&](auto& out) {
      write_runs(t, out, word_of);
      if (logs_checksum_deltas_) [[unlikely]]
        write_checksum_deltas(t, out);
    });
  }
  // Writes the payload of a redo record of t.
  template <class Writer>
  [[gnu::always_inline]] void write_redo(const transaction& t, Writer& out) const {
    write_runs(t, out, new_value);
    if (logs_checksum_deltas_) [[unlikely]]
      write_checksum_deltas(t, out);
  }
  // Writes the runs of t. Consecutive words make one run, also across a line boundary, unless the
  // writer has already drained the head of that run.
  template <class Writer, class WordOf>
  [[gnu::always_inline]] static void write_runs(const transaction& t, Writer& out,
                                                WordOf&& word_of) {
    std::uint64_t* to = out.end();
    // The head of the last run, which a word at offset `goes_on` continues; null: drained.
    std::uint64_t* run = nullptr;
    std::uint64_t goes_on = 0;
    for (const written_line& line : t.lines()) {
      std::uint64_t* const room = out.reserve(to, 2 * 8);
      if (room != to || line.offset != goes_on) [[likely]]
        run = nullptr;
      to = room;
      if (const unsigned w = single_whole_word(line.mask); w != 8 && run == nullptr) [[likely]] {
        *(run = to++) = format::run_header{line.offset + 8 * w, 0xFF, 1}.pack();
        *to++ = word_of(line.offset + 8 * w, line.words[w]);
        goes_on = line.offset + 8 * w + 8;
        continue;
      }
      unsigned whole = 0, left = 0;
      if (all_words_whole(line.mask, whole)) [[likely]]
        left = whole;
      else
        whole = whole_words(line.mask), left = stored_words(line.mask);
      while (left != 0) {
        const auto w = static_cast<unsigned>(std::countr_zero(left));
        const std::uint64_t offset = line.offset + 8 * w;
        if ((whole >> w & 1) == 0) [[unlikely]] {
          const std::uint8_t mask = line.word_mask(w);
          *to++ = format::run_header{offset, mask, 1}.pack();
          *to++ = word_of(offset, line.words[w] & expand_mask(mask));
          left &= left - 1;
          run = nullptr;
          continue;
        }
        const auto count = static_cast<unsigned>(std::countr_one(whole >> w));
        if (run != nullptr && w == 0) [[unlikely]]
          *run += format::run_header{0, 0, count}.pack();
        else
          *(run = to++) = format::run_header{offset, 0xFF, count}.pack();
        for (unsigned k = 0; k < count; ++k) *to++ = word_of(offset + 8 * k, line.words[w + k]);
        goes_on = offset + 8 * count;
        left &= ~((1u << (w + count)) - 1);
      }
    }
    out.set_end(to);
  }
  template <class Out, class WordOf>
  [[gnu::noinline]] static void write_any_runs(std::span<const written_line> lines, Out& out,
                                               WordOf&& word_of) {
    std::uint64_t offset = 0;
    for_each_run(
        lines, format::max_run_words,
        [&](std::uint64_t at, std::uint8_t mask, std::uint32_t count) {
          out.append_word(format::run_header{offset = at, mask, count}.pack());
        },
        [&](std::uint64_t value) { out.append_word(word_of(offset, value)), offset += 8; });
  }
  template <store_mode way = store_mode::non_temporal, class WordOf>
  [[gnu::noinline]] void append_spilled(lane& own, lane& l, format::record_kind kind,
                                        std::uint64_t txid, const transaction& t, WordOf&& word_of,
                                        std::uint64_t front = 0) {
    const spilled_payload at = stream_spill(own, l, t, word_of);
    auto fill = [&](auto& record) {
      if (format::has_prefix_word(kind)) record.append_word(front);
      record.append_word(at.offset), record.append_word(at.words), record.append_word(at.checksum);
    };
    l.log.template append<way>(format::record_kind::spilled, txid, fill, kind);
  }
  // Streams t's runs to the chunks that lane `own` has reserved. On return they are durable, and
  // the chunks belong to lane l, whose ring gets the record. Allocates no memory.
  template <class WordOf>
  spilled_payload stream_spill(lane& own, lane& l, const transaction& t, WordOf&& word_of) {
    struct spill_writer {
      Media* media;
      std::byte* to;
      base::checksum sum;
      std::uint64_t words = 0;
      format::log_line line{};
      void append_word(std::uint64_t w) {
        sum.add(w);
        line.words[words++ % 8] = w;
        if (words % 8 == 0) media->stream(to + words * 8 - line_size, &line, line_size);
      }
    };
    t.before_store(own.reserved_spill, own.reserved_bytes);
    spill_writer out{&l.media, state_.file.at(own.reserved_spill),
                     base::checksum(state_.file.header().id ^ own.reserved_spill)};
    write_any_runs(t.lines(), out, word_of);
    if (logs_checksum_deltas_) write_checksum_deltas(t, out);
    const std::uint64_t words = out.words;
    if (words % 8 != 0) l.media.stream(out.to + words / 8 * line_size, &out.line, line_size);
    if (!base::planted<Media>(base::mutant::log_spill_unfenced))
      l.media.fence();  // the payload is durable before a record points to it
    const spilled_payload where{own.reserved_spill, words, out.sum.value()};
    {
      const std::lock_guard hold(l.spills_mutex);
      own.reserved.front() = {l.log.tail(), own.reserved_spill, own.reserved_bytes};
      l.spills.splice(l.spills.end(), own.reserved);
    }
    l.spilled = true;
    own.reserved_spill = own.reserved_bytes = 0;
    return where;
  }
  // Releases the chunks of spilled records before `head`. A head of at least that is durable.
  void release_spills(lane& l, std::uint64_t head) {
    const std::lock_guard hold(l.spills_mutex);
    while (!l.spills.empty() && l.spills.front().position < head) {
      recompute_unknown_checksums(logs_checksum_deltas_ ? control_ : l.media,
                                  l.spills.front().offset, l.spills.front().bytes);
      state_.heap.release_chunks(l.spills.front().offset, l.spills.front().bytes);
      l.spills.pop_front();
    }
  }
  // Truncated lines must have this lap's torn bits on media before the next lap begins. Lines of
  // aborted transactions may still be in the cache only, so this flushes them. Durable after the
  // control medium's next fence.
  void flush_aborted_ranges(lane& l, std::uint64_t head) {
    const std::lock_guard hold(l.spills_mutex);
    for (; !l.aborted_ranges.empty() && l.aborted_ranges.front().from < head;
         l.aborted_ranges.pop_front())
      flush_log_lines(control_, l, l.aborted_ranges.front());
  }
  static void flush_log_lines(Media& media, const lane& l, aborted_range lines) {
    for (std::uint64_t line = lines.from; line < lines.to; ++line)
      media.flush(l.log.bytes() + line % l.log.capacity_lines() * line_size, line_size);
  }
  // Log lines for t's record, or an upper bound of them that is at most `plenty`. The bound is
  // cheap and mostly enough: 16 words a line, a head and a word for each of eight parts.
  static std::uint64_t lines_needed(const transaction& t, std::uint64_t plenty) {
    constexpr std::uint64_t front = 2;  // the TxID, and that of the ordered commit before it
    const std::uint64_t weights = max_checksum_delta_words(t.lines().size());
    const std::uint64_t bound = lines_for_words(front + 16 * t.lines().size() + weights);
    if (bound <= plenty) return bound;
    const std::uint64_t words = payload_words(t.lines()) + weights;
    // A run may be split once in min_contiguous_words words; each split adds a head.
    return lines_for_words(front + words + words / line_writer<Media>::min_contiguous_words);
  }

  std::deque<lane> lanes_;
  base::relaxed_counter truncations_;
  bool block_checksums_active() const noexcept {
    return logs_checksum_deltas_ || updates_checksums_;
  }
  bool logs_checksum_deltas_ = false;  // records hold the checksum terms of the old words
  bool updates_checksums_ = false;     // commits add to the block checksums
  std::array<std::mutex, 16> checksum_mutexes_;
};

// An engine whose logs are torn-bit rings. Recovery replays every whole record above the watermark
// that is not an orphan.
template <class Media>
class torn_bit_engine : public lane_engine<Media> {
 public:
  torn_bit_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared,
                  log_kind kind = log_kind::torn_bit)
      : lane_engine<Media>(state, std::move(shared), kind) {}

  // docs/protocol/recovery.md, steps R1 to R6. After a crash at any store it can run again: until
  // R4 the logs are unchanged and replay gives the same home; from R4 on every record is at or
  // below the watermark and is ignored.
  [[nodiscard]] result<> recover() override {
    using base::mutant;
    using base::planted;
    const auto mark = this->read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    std::vector<logged_record> records;
    std::vector<std::uint64_t> words;
    if (auto read = scan_logs(*mark, records, words); !read) return read;  // R1
    const bool sorted =
        planted<Media>(mutant::recover_unsorted) ||
        std::ranges::is_sorted(records, {}, &logged_record::txid);  // one thread: always sorted
    if (!sorted) std::ranges::stable_sort(records, {}, &logged_record::txid);  // R2
    std::uint64_t newest = *mark;
    for (const logged_record& r : records)
      newest = std::max(newest, r.txid);  // orphans too: their TxIDs must not be drawn again
    if (!planted<Media>(mutant::default_chain_ignored)) discard_orphans(*mark, records);
    if (planted<Media>(mutant::recover_truncate_first)) empty_logs();
    line_set lines;  // a set, so that each line is flushed once
    checksum_deltas changes;
    for (const logged_record& r : records) {
      const auto payload = std::span(words).subspan(r.first, r.words);
      if (auto replayed = replay(payload, lines); !replayed) return replayed;
      if (auto counted = changes.add(this->state_.file, payload); !counted) return counted;
    }
    return end_recovery(lines, newest, changes);  // R3 to R6
  }

 protected:
  // A ring whose head is above this is emptied and starts at 0, so that positions do not overflow.
  static constexpr std::uint64_t max_head_position = format::log_position_mask / 2;

  // Whether logs of this mechanism start as block logs.
  virtual bool begins_with_blocks() const noexcept { return false; }

  // Rings of this mechanism's kind and form are taken over at their heads. If any ring is not, all
  // of them are emptied first.
  [[nodiscard]] result<> attach_logs(log_kind logs_were) override {
    bool ours = logs_were == this->kind_;
    for (auto& l : this->lanes_) {
      const auto head = l.log.read_head();
      if (!head) return std::unexpected(head.error());
      ours = ours && (*head & format::log_void_bit) == 0 &&
             (*head & format::log_position_mask) < max_head_position &&
             ((*head & format::log_blocks_bit) != 0) == begins_with_blocks();
    }
    for (auto& l : this->lanes_) {
      l.has_blocks = begins_with_blocks();
      l.log.reset(*l.log.read_head() & format::log_position_mask);
      l.blocks.reset(l.log.head());
    }
    if (!ours) empty_logs();
    return {};
  }

  // A record above the watermark. `first` and `words` place its payload in the vector of all.
  struct logged_record {
    std::uint64_t txid, front;
    std::size_t first, words;
    format::record_kind kind;
  };

  // R1: reads the whole records above the watermark from every log.
  [[nodiscard]] result<> scan_logs(std::uint64_t mark, std::vector<logged_record>& records,
                                   std::vector<std::uint64_t>& words) {
    for (auto& l : this->lanes_) {
      const auto head = l.log.read_head();
      if (!head) return std::unexpected(head.error());
      if ((*head & format::log_void_bit) != 0) continue;  // recovery was emptying this ring
      log_record record;
      for (std::uint64_t position = *head & format::log_position_mask;;) {
        const auto whole =
            read_record_by_head(this->state_.file, l.log.view(), *head, position, record);
        if (!whole) return std::unexpected(std::move(whole.error()));
        if (!*whole) break;
        if (record.txid <= mark) continue;
        if (record.txid >= format::txid_limit ||
            words.size() + record.payload.size() > this->state_.file.header().size / 8)
          return base::fail(
              errc::corrupt,
              fmt::format(
                  "{}: the log at offset {} has a record with a TxID that no program draws, or "
                  "more of them than the pool has room for; restore the pool from a copy",
                  this->state_.file.path(), this->log_offset(l)));
        records.push_back(
            {record.txid, record.front, words.size(), record.payload.size(), record.kind});
        words.insert(words.end(), record.payload.begin(), record.payload.end());
      }
      if (base::planted<Media>(base::mutant::recover_first_log_only)) break;
    }
    return {};
  }

  // Drops each record that names a predecessor above the watermark which was not found or was
  // dropped. Precondition: `records` are sorted by TxID.
  static void discard_orphans(std::uint64_t mark, std::vector<logged_record>& records) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto end = records.begin() + static_cast<std::ptrdiff_t>(kept);
      const auto before = std::ranges::lower_bound(records.begin(), end, records[i].front, {},
                                                   &logged_record::txid);
      if (records[i].front > mark && (before == end || before->txid != records[i].front)) continue;
      records[kept++] = records[i];
    }
    records.resize(kept);
  }

  [[nodiscard]] result<> replay(std::span<const std::uint64_t> payload, line_set& lines) {
    auto& file = this->state_.file;
    return for_each_stored_run(
        file, payload, [&](format::run_header head, const std::uint64_t* words) {
          for (std::uint32_t i = 0; i < head.count; ++i)
            this->store_word_home(this->control_, file.at(head.offset + 8 * i), words + i,
                                  head.mask);
          for_each_line(head, [&](std::uint64_t line) { lines.add(line); });
        });
  }

  // R3 to R6: home is recovered, but its stores to `lines` are not durable yet. Makes them durable,
  // then empties the logs.
  [[nodiscard]] result<> end_recovery(const line_set& lines, std::uint64_t newest,
                                      const checksum_deltas& changes = {}) {
    using base::mutant;
    using base::planted;
    const auto sums = this->block_checksums_.state();
    if (!sums) return std::unexpected(sums.error());
    const bool moves = *sums == format::block_checksum_state::valid && !changes.empty();
    if (!planted<Media>(mutant::recover_unflushed))
      for (std::uint64_t line : lines.all())
        this->control_.flush(this->state_.file.at(line), line_size);
    if (moves)
      // A crash from here on must not make the next recovery add the deltas twice.
      this->mark_checksums_moving(mutant::sums_recovery_unsaid);
    if (this->control_.failed()) return this->check_medium();
    if (!planted<Media>(mutant::sums_not_recovered))
      moves ? this->apply_checksum_deltas(changes, true)
            : this->recompute_block_checksums(lines.all(), *sums);
    if (!planted<Media>(mutant::recover_no_home_fence))
      this->control_.fence();  // R3: home is durable before the logs are truncated
    this->state_.clock.store(newest);
    this->write_word(format::watermark_offset, newest);
    if (!planted<Media>(mutant::recover_no_mark_fence))
      this->control_.fence();  // R4: the watermark is durable before rings are emptied
    if (!planted<Media>(mutant::recover_truncate_first)) empty_logs();  // R5, R6
    if (moves || *sums == format::block_checksum_state::updating) {
      this->write_checksum_state(format::block_checksum_state::valid);
      this->control_.fence();  // the state word is durable before a commit changes home
    }
    return this->check_medium();
  }

  // R5: marks every ring void. R6: zeroes the rings, so that no word of a torn record is left, and
  // starts them at 0.
  void empty_logs() {
    for (auto& l : this->lanes_)
      this->write_head(
          l, 0, base::planted<Media>(base::mutant::recover_heads_first) ? 0 : format::log_void_bit);
    this->control_.fence();  // rings are void before the first line is zeroed
    for (auto& l : this->lanes_)
      if (!base::planted<Media>(base::mutant::recover_no_scrub))
        zero_log(l, l.log.capacity_lines());
    this->control_.fence();  // zeroes are durable before the heads
    for (auto& l : this->lanes_) this->write_head(l, 0, l.flags());
    this->control_.fence();  // heads are durable before the first record
  }
  void zero_log(typename lane_engine<Media>::lane& l, std::uint64_t lines) {
    static constexpr format::log_line zeroes{};
    for (std::uint64_t i = 0; i < lines; ++i)
      if (std::memcmp(l.log.bytes() + i * line_size, &zeroes, line_size) != 0)
        this->control_.stream(l.log.bytes() + i * line_size, &zeroes, line_size);
  }
};

}  // namespace stele::detail
