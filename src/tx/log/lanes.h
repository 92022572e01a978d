// The logs of a pool: for each a lane, which one thread at a time owns and which has a medium
// object, a ring, and the spills of that ring (records that are longer than it).
//
// A spilled record's payload is streamed to free chunks of the heap, and a short record in the ring
// says where. The chunks are reserved in memory only, so a crash leaves no trace of them.
#pragma once

#include <base/assert.h>
#include <base/check.h>
#include <base/flatten.h>
#include <base/mutant.h>
#include <base/relaxed_counter.h>
#include <fmt/format.h>
#include <tx/engine.h>
#include <tx/home_checksums.h>
#include <tx/log/dirty_line_queue.h>
#include <tx/log/ring.h>
#include <tx/pool_medium.h>
#include <tx/transaction.h>

#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <source_location>

namespace stele::detail {

template <class Media>
class log_lanes {
 public:
  using mutant = base::mutant;
  struct spill {
    std::uint64_t position;       // of its record in the ring
    std::uint64_t offset, bytes;  // of its chunks
  };
  // Positions in the ring whose lines an aborted transaction left unflushed.
  struct aborted_range {
    std::uint64_t from, to;
  };

  // So aligned that its size is a power of two: a commit computes the address five times.
  struct alignas(512) lane {
    lane(typename Media::shared& shared, unsigned n, const storage::pool_file& file)
        : number(n), media(shared, n), log(media, file, n), file_(file) {}
    const unsigned number;
    Media media;
    ring<Media> log;
    dirty_line_queue dirty_lines;
    const record_form* form = nullptr;  // of the records in the log; null: lines of the ring
    std::uint64_t flags() const noexcept { return form != nullptr ? format::log_blocks_bit : 0; }

    // Reads the next committed transaction from `position` on, up to the published tail `end`.
    // False: only aborted transactions are left. Errors: corrupt, if another program has written to
    // the log.
    [[nodiscard]] result<bool> read(std::uint64_t& position, std::uint64_t end,
                                    log_record& record) const {
      if (form != nullptr) return form->read(file_, log.view(), position, end, record);
      auto whole = log.read(position, record);
      if (whole && !*whole)
        return base::fail(errc::corrupt, "a log record of this session cannot be read back");
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

  log_lanes(pool_medium<Media>& medium, home_checksums<Media>& sums)
      : log_lanes(medium, sums, medium.state.file.header().log_count) {
    // The object is there already: an exception runs its destructor.
    for (; count_ < room_; ++count_)
      std::construct_at(first_ + count_, *medium.shared, static_cast<unsigned>(count_), file_);
    STELE_ASSERT_ALWAYS(count_ != 0 && count_ == medium.state.committing.size());
  }
  ~log_lanes() {
    std::destroy_n(first_, count_);
    std::allocator<lane>().deallocate(first_, room_);
  }
  log_lanes(const log_lanes&) = delete;
  log_lanes& operator=(const log_lanes&) = delete;

  lane& of(const transaction& t) const noexcept { return (*this)[t.log()]; }
  lane& operator[](std::size_t i) const noexcept {
    STELE_ASSERT(i < count_ && first_[i].number == i);
    return first_[i];
  }
  lane* begin() const noexcept { return first_; }
  lane* end() const noexcept { return first_ + count_; }
  std::size_t size() const noexcept { return count_; }
  // Of each ring, in lines.
  std::uint64_t capacity() const noexcept { return first_->log.capacity_lines(); }
  bool any_half_full() const noexcept {
    return std::any_of(begin(), end(), [](const lane& l) {
      return l.log.free_lines_seen() < l.log.capacity_lines() / 2;
    });
  }
  void add_totals(engine_totals& t) const noexcept {
    for (const lane& l : *this) {
      t.media += l.media.count;
      t.log_spills += l.spill_count;
    }
  }
  void note(unsigned log, media::tape_mark m, std::uint64_t argument) {
    first_[log].media.note(m, argument);
  }

  // --- records ---

  // Appends the record of t to lane l; word_of: see encode_runs. prefix: the prefix word of kinds
  // that have one. Chunks that lane `own` has reserved take the payload.
  template <store_mode mode = store_mode::non_temporal, class WordOf>
  void append(lane& own, lane& l, format::record_kind kind, std::uint64_t txid,
              const transaction& t, WordOf&& word_of, std::uint64_t prefix = 0) {
    STELE_ASSERT(txid != 0 && txid < format::txid_limit && !t.lines().empty());
    STELE_ASSERT(kind != format::record_kind::spilled && l.form == nullptr);
    if (own.reserved_bytes != 0) [[unlikely]]
      return append_spilled<mode>(own, l, kind, txid, t, word_of, prefix);
    if constexpr (mode == store_mode::non_temporal)
      if (!format::has_prefix_word(kind) && !sums_.logged() &&
          l.log.append_few(kind, txid, t.lines(), word_of)) [[likely]]
        return;
    append_runs<mode>(l, kind, txid, t, word_of, prefix);
  }
  template <class WordOf>
  void append(lane& l, format::record_kind kind, std::uint64_t txid, const transaction& t,
              WordOf&& word_of, std::uint64_t prefix = 0) {
    append(l, l, kind, txid, t, word_of, prefix);
  }
  // Not inline: small commits would save registers for it.
  template <store_mode mode, class WordOf>
  [[gnu::noinline]] STELE_FLATTEN void append_runs(lane& l, format::record_kind kind,
                                                   std::uint64_t txid, const transaction& t,
                                                   WordOf&& word_of, std::uint64_t prefix) {
    l.log.template append<mode>(kind, txid, [&](auto& out) {
      if (format::has_prefix_word(kind)) out.append_word(prefix);
      encode_runs(t.lines(), out, word_of);
      if (sums_.logged()) [[unlikely]]
        sums_.write_deltas(t, out);
    });
  }
  // Queues the dirty lines of the record that was appended last, for truncation; before it is
  // published. A spilled record queues no lines: truncation reads them from the log.
  static void queue_dirty_lines(lane& l, const transaction& t, std::uint64_t txid) {
    queue_dirty_lines(l, t, txid, l.log.appended_end());
  }
  // The same for a record of either form that ends at this position.
  [[gnu::always_inline]] static void queue_dirty_lines(lane& l, const transaction& t,
                                                       std::uint64_t txid, std::uint64_t end) {
    const bool spilled = l.spilled;
    if (spilled) [[unlikely]]
      l.spilled = false;
    l.dirty_lines.push(txid, end, spilled ? std::span<const written_line>() : t.lines());
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

  // --- spills ---

  // For mechanisms whose ring is empty between commits: reserves chunks if t's record is longer
  // than the ring. Errors: full, poisoned, io.
  [[nodiscard]] result<> reserve(transaction& t) {
    lane& l = of(t);
    release_reserved(l);
    if (lines_needed(t, capacity()) <= capacity()) return {};
    if (auto reserved = reserve_spill(l, t, payload_words(t.lines())); !reserved) return reserved;
    return invalidate_checksums(l.media, l);
  }
  // Reserves chunks for `words` of payload. Transactions that began before the chunks were freed
  // may still use objects there: claim() makes them end or retry, or makes this one retry.
  [[nodiscard]] result<> reserve_spill(lane& l, transaction& t, std::uint64_t words) {
    STELE_ASSERT(l.reserved_bytes == 0 && words != 0);
    if (l.reserved.empty()) l.reserved.emplace_back();
    auto reserved = medium_.state.heap.reserve_chunks(words * 8);
    if (!reserved)
      return base::fail(errc::full, fmt::format("{}: no room for the log of a transaction of {} "
                                                "bytes; make smaller transactions or a larger pool",
                                                file_.path(), words * 8));
    l.reserved_spill = *reserved;
    l.reserved_bytes = words * 8;
    try {
      if (!planted<Media>(mutant::heap_claimless)) t.claim(l.reserved_spill, l.reserved_bytes);
    } catch (...) {
      release_reserved(l);
      throw;
    }
    STELE_ASSERT(l.reserved.size() == 1 && l.reserved_spill % line_size == 0);
    STELE_ASSERT(l.reserved_spill >= file_.header().chunks_offset);
    ++l.spill_count;
    return {};
  }
  // The checksums of the reserved chunks are unknown before the record is written there.
  [[nodiscard]] result<> invalidate_checksums(Media& media, const lane& l) {
    STELE_ASSERT(l.reserved_bytes != 0);  // sums.md S6
    return sums_.invalidate(media, l.reserved_spill, l.reserved_bytes) ? result<>{}
                                                                       : medium_.check();
  }
  // Releases chunks that an earlier attempt reserved and did not use.
  void release_reserved(lane& l) {
    if (l.reserved_bytes != 0) {
      sums_.recompute_unknown(l.media, l.reserved_spill, l.reserved_bytes);
      medium_.state.heap.release_chunks(l.reserved_spill, l.reserved_bytes);
    }
    l.reserved_spill = l.reserved_bytes = 0;
    l.reserved.clear();
  }
  // Streams t's runs to the chunks that lane `own` has reserved. On return they are durable, and
  // the chunks belong to lane l, whose ring gets the record. Allocates no memory.
  template <class WordOf>
  spilled_payload stream_spill(lane& own, lane& l, const transaction& t, WordOf&& word_of) {
    STELE_ASSERT(own.reserved_bytes != 0 && own.reserved.size() == 1);
    t.before_store(own.reserved_spill, own.reserved_bytes);
    base::checksum sum(file_.header().id ^ own.reserved_spill);
    std::byte* const to = file_.at(own.reserved_spill);
    std::uint64_t words = 0;
    format::log_line line{};
    word_buffer out([&](std::span<const std::uint64_t> some) {
      for (const std::uint64_t w : some) {
        sum.add(w);
        line.words[words++ % 8] = w;
        if (words % 8 == 0) l.media.stream(to + words * 8 - line_size, &line, line_size);
      }
    });
    encode_runs(t.lines(), out, word_of);
    if (sums_.logged()) sums_.write_deltas(t, out);
    out.finish();
    STELE_ASSERT(words != 0 && words * 8 <= own.reserved_bytes);
    if (words % 8 != 0) l.media.stream(to + words / 8 * line_size, &line, line_size);
    l.media.fence();  // the payload is durable before a record points to it
    const spilled_payload where{own.reserved_spill, words, sum.value()};
    {
      const std::lock_guard hold(l.spills_mutex);
      own.reserved.front() = {l.log.tail(), own.reserved_spill, own.reserved_bytes};
      STELE_ASSERT(l.spills.empty() || l.spills.back().position < own.reserved.front().position);
      l.spills.splice(l.spills.end(), own.reserved);
      STELE_ASSERT(own.reserved.empty());
    }
    l.spilled = true;
    own.reserved_spill = own.reserved_bytes = 0;
    return where;
  }
  // Releases the chunks of spilled records before `head`. A head of at least that is durable.
  void release_spills(lane& l, std::uint64_t head) {
    STELE_ASSERT(head <= l.log.head());
    const std::lock_guard hold(l.spills_mutex);
    while (!l.spills.empty() && l.spills.front().position < head) {
      const spill& s = l.spills.front();
      sums_.recompute_unknown(sums_.logged() ? medium_.control : l.media, s.offset, s.bytes);
      medium_.state.heap.release_chunks(s.offset, s.bytes);
      l.spills.pop_front();
    }
  }

  // --- truncation and recovery ---

  // The last steps of a commit that stores home durably itself: the head moves past its record.
  // False: the medium failed.
  bool truncate_in_commit(lane& l,
                          const std::source_location& at = std::source_location::current()) {
    l.log.write_head(l.log.tail());
    if (!medium_.fence_ok(l.media, at)) return false;
    l.log.release_truncated();
    // redo.md 6, undo.md 6: no record is left
    STELE_ASSERT(l.log.free_lines() == l.log.capacity_lines());
    release_spills(l, l.log.head());
    return true;
  }
  // Truncated lines must have this lap's torn bits on media before the next lap begins. Lines of
  // aborted transactions may still be in the cache only, so this flushes them. Durable after the
  // control medium's next fence.
  void flush_aborted_ranges(lane& l, std::uint64_t head) {
    const std::lock_guard hold(l.spills_mutex);
    for (; !l.aborted_ranges.empty() && l.aborted_ranges.front().from < head;
         l.aborted_ranges.pop_front())
      flush_lines(medium_.control, l, l.aborted_ranges.front().from, l.aborted_ranges.front().to);
  }
  static void flush_lines(Media& media, const lane& l, std::uint64_t from, std::uint64_t to) {
    STELE_ASSERT(from <= to && to - from <= l.log.capacity_lines());
    for (std::uint64_t line = from; line < to; ++line)
      media.flush(l.log.bytes() + line % l.log.capacity_lines() * line_size, line_size);
  }

  // Takes over rings of this mechanism's kind and form at their heads. If any ring is not, all of
  // them are emptied first. Errors: corrupt.
  [[nodiscard]] result<> attach(bool same_kind, const record_form* form = nullptr) {
    bool ours = same_kind;
    for (lane& l : *this) {
      const auto head = l.log.read_head();
      if (!head) return std::unexpected(head.error());
      ours = ours && (*head & format::log_void_bit) == 0 &&
             (*head & format::log_position_mask) < max_head_position &&
             ((*head & format::log_blocks_bit) != 0) == (form != nullptr);
    }
    for (lane& l : *this) {
      l.form = form;
      l.log.reset(*l.log.read_head() & format::log_position_mask);
    }
    if (!ours) empty();
    for ([[maybe_unused]] const lane& l : *this) {
      STELE_ASSERT_ALWAYS(l.log.head() == l.log.tail() && l.log.head() < max_head_position);
      STELE_ASSERT_ALWAYS(l.log.free_lines() == l.log.capacity_lines());
      STELE_ASSERT_ALWAYS(l.spills.empty() && l.aborted_ranges.empty() && l.reserved_bytes == 0);
    }
    return {};
  }
  // R5: marks every ring void. R6: zeroes the rings, so that no word of a torn record is left, and
  // starts them at 0.
  void empty() {
    for (lane& l : *this)
      write_head(l, 0, planted<Media>(mutant::recover_heads_first) ? 0 : format::log_void_bit);
    medium_.control.fence();  // rings are void before the first line is zeroed
    for (lane& l : *this) zero(l, l.log.capacity_lines());  // recovery.md R6
    medium_.control.fence();                                // zeroes are durable before the heads
    for (lane& l : *this) write_head(l, 0, l.flags());
    medium_.control.fence();  // heads are durable before the first record
  }
  void zero(lane& l, std::uint64_t lines) {
    STELE_ASSERT(lines <= l.log.capacity_lines());
    for (std::uint64_t i = 0; i < lines; ++i)
      if (std::memcmp(l.log.bytes() + i * line_size, &zeroes, line_size) != 0)
        medium_.control.stream(l.log.bytes() + i * line_size, &zeroes, line_size);
  }
  // Empties the ring and stores its head word. The owner of the lane may be running, so the store
  // goes through the control medium.
  void write_head(lane& l, std::uint64_t position, std::uint64_t flags = 0) {
    STELE_ASSERT((flags & format::log_position_mask) == 0 && position < max_head_position);
    l.log.reset(position);
    medium_.write_word(log_offset(l), position | flags);
  }
  std::uint64_t log_offset(const lane& l) const {
    return file_.header().log_offset + l.number * file_.header().log_size;
  }

 private:
  log_lanes(pool_medium<Media>& medium, home_checksums<Media>& sums, std::size_t room)
      : medium_(medium),
        file_(medium.state.file),
        sums_(sums),
        first_(std::allocator<lane>().allocate(room)),
        room_(room) {}

  // A ring whose head is above this is emptied and starts at 0, so that positions do not overflow.
  static constexpr std::uint64_t max_head_position = format::log_position_mask / 2;

  static constexpr format::log_line zeroes{};

  template <store_mode mode, class WordOf>
  [[gnu::noinline]] void append_spilled(lane& own, lane& l, format::record_kind kind,
                                        std::uint64_t txid, const transaction& t, WordOf&& word_of,
                                        std::uint64_t prefix) {
    const spilled_payload at = stream_spill(own, l, t, word_of);
    auto fill = [&](auto& record) {
      if (format::has_prefix_word(kind)) record.append_word(prefix);
      record.append_word(at.offset), record.append_word(at.words), record.append_word(at.checksum);
    };
    l.log.template append<mode>(format::record_kind::spilled, txid, fill, kind);
    STELE_ASSERT(l.spilled && own.reserved_bytes == 0);
  }

  pool_medium<Media>& medium_;
  const storage::pool_file& file_;
  home_checksums<Media>& sums_;
  // An array of its own: a lane cannot be moved, and a commit asks for its lane often.
  lane* const first_;
  const std::size_t room_;
  std::size_t count_ = 0;
};

}  // namespace stele::detail
