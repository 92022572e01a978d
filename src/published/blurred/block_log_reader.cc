// Reads transactions back from block logs.
#include <base/assert.h>
#include <base/check.h>
#include <base/checksum.h>
#include <fmt/format.h>
#include <format/log_block.h>
#include <published/blurred/block_records.h>
#include <published/mutant.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace stele::detail {

namespace {

using format::block_kind;
using format::blocks_per_line;

class block_reader {
 public:
  block_reader(const storage::pool_file& file, const ring_view& ring, std::uint64_t committed_end,
               std::uint64_t end)
      : file_(file),
        ring_(ring),
        committed_end_(committed_end),
        end_(end * blocks_per_line),
        lap_(committed_end / ring.lines * ring.lines * blocks_per_line),
        sense_((committed_end / ring.lines & 1) == 0) {}

  // Finds the next committed transaction and sets `position` to the line after it. False: there is
  // none.
  //
  // A commit record may fail its checksum although all blocks before it are whole: a block was
  // stored twice, and media has its first value. Then the commit was not acknowledged, unless
  // another one follows it: that one waited for it.
  result<bool> next(std::uint64_t& position, log_record& record) {
    const auto found = scan(position, record);
    if (!found || *found != outcome::bad_checksum)
      return found ? result<bool>(*found == outcome::committed) : std::unexpected(found.error());
    log_record later;
    // Each reader scans up to the next commit record that fails.
    STELE_ASSERT(failed_at_ >= committed_end_ * blocks_per_line);
    for (std::uint64_t from = failed_at_ / blocks_per_line + 1;;) {
      block_reader following(file_, ring_, from, end_ / blocks_per_line);
      const auto follows = following.scan(position, later);
      if (follows && *follows == outcome::none) return false;
      if (!follows || *follows == outcome::committed)
        return damaged(failed_at_, "a committed transaction fails the checksum");
      from = following.failed_at_ / blocks_per_line + 1;
    }
  }

 private:
  enum class outcome : std::uint8_t { none, committed, bad_checksum };

  result<outcome> scan(std::uint64_t& position, log_record& record) {
    begin_at(committed_end_, record);
    for (std::uint64_t at = committed_end_ * blocks_per_line;
         at < end_ && at - committed_end_ * blocks_per_line < ring_.lines * blocks_per_line; ++at) {
      format::block_record r;
      const auto block = written_block_at(at);
      const std::uint64_t further = block ? format::further_words(block->metadata) : 0;
      if (!block || !are_written(at, further)) {
        const auto abort = find_abort_after(at);
        if (!abort) return outcome::none;
        STELE_ASSERT(*abort > at);  // reading goes on
        at = *abort;
        begin_at(at / blocks_per_line + 1, record);
        continue;
      }
      if (!format::unpack(*block, r)) return damaged(at, "a record's flags make no sense");
      if (const char* const what = fault_of(at, r)) return damaged(at, what);
      if (r.kind == block_kind::commit || r.kind == block_kind::commit_by_columns)
        return finish(at, r, position, record);
      if (r.kind == block_kind::abort) {
        if (r.data > committed_end_) return damaged(at, "an abort record points past itself");
        at |= blocks_per_line - 1;
        begin_at(at / blocks_per_line + 1, record);
        continue;
      }
      // What fault_of() found sound: a run ends in its line.
      STELE_ASSERT(at % blocks_per_line + format::further_blocks(further) < blocks_per_line);
      add_block(at, *block, r, record);
      at += format::further_blocks(further);
    }
    return outcome::none;
  }

  static const char* fault_of(std::uint64_t at, const format::block_record& r) noexcept {
    const bool names_words = r.kind == block_kind::data || r.kind == block_kind::run ||
                             r.kind == block_kind::checksum_delta;
    if (names_words && !is_word_address(r.address)) return "a record's address is none of a word";
    return at % blocks_per_line + format::further_blocks(r.further) >= blocks_per_line
               ? "a run crosses the end of its line"
               : nullptr;
  }
  // A run header has fewer bits for an address: a wrong one would be read as some other word's.
  static constexpr bool is_word_address(std::uint64_t address) noexcept {
    return address % 8 == 0 && address >> 47 == 0;
  }

  std::unexpected<error> damaged(std::uint64_t at, const char* what) const {
    return base::fail(
        errc::corrupt,
        fmt::format(
            "{}: the log at offset {} is damaged at block {}: {}; restore the pool from a copy",
            file_.path(), ring_.log_offset, at % (ring_.lines * blocks_per_line), what));
  }

  void begin_at(std::uint64_t line, log_record& record) {
    STELE_ASSERT(line >= committed_end_);
    record.payload.clear();
    record.spill_offset = record.spill_bytes = record.front = 0;
    record.position = line;
    spilled_.clear();
    run_end_ = no_address;
  }

  // Of a transaction's first blocks.
  std::uint64_t checksum_of(std::uint64_t first, std::uint64_t blocks, bool columns) const {
    std::array<std::uint64_t, 2 * blocks_per_line> words;
    return format::blocks_checksum(
               base::checksum(file_.header().id ^ first / blocks_per_line), columns, blocks,
               [&](std::uint64_t line) {
                 const std::uint64_t* from = words_at(first + line * blocks_per_line).words;
                 for (std::uint64_t& w : words) w = __atomic_load_n(from++, __ATOMIC_RELAXED);
                 return words.data();
               })
        .value();
  }

  // The block at this position, if both words were written in its lap.
  std::optional<format::log_block> written_block_at(std::uint64_t at) const {
    const auto [words, sense] = words_at(at);
    const format::log_block b = load(words);
    return format::is_untorn(b, sense) ? std::optional(b) : std::nullopt;
  }
  // The same of all blocks that hold the further words of a run, if they are in its line.
  bool are_written(std::uint64_t at, std::uint64_t further) const {
    const std::uint64_t last =
        std::min(at + format::further_blocks(further), at | (blocks_per_line - 1));
    while (at < last)
      if (!written_block_at(++at)) return false;
    return true;
  }
  // Without a division for each block.
  struct block_words {
    const std::uint64_t* words;
    bool sense;
  };
  block_words words_at(std::uint64_t at) const {
    STELE_ASSERT(at >= lap_);
    std::uint64_t index = at - lap_;
    bool sense = sense_;
    for (; index >= ring_.lines * blocks_per_line; sense = !sense)
      index -= ring_.lines * blocks_per_line;
    return {reinterpret_cast<const std::uint64_t*>(ring_.bytes) + index * 2, sense};
  }
  static format::log_block load(const std::uint64_t* words) {
    return {__atomic_load_n(words, __ATOMIC_RELAXED), __atomic_load_n(words + 1, __ATOMIC_RELAXED)};
  }

  // Finds the abort record which shows that a gap belongs to an aborted transaction. Returns the
  // last block of its line.
  std::optional<std::uint64_t> find_abort_after(std::uint64_t gap) const {
    const std::uint64_t reach =
        planted(published::mutant::xil_short_reach) ? 0 : max_abort_interval;
    const std::uint64_t end = std::min(gap + reach + 1, end_);
    for (std::uint64_t line = gap / blocks_per_line + 1; line * blocks_per_line < end; ++line)
      if (has_abort(line)) return (line + 1) * blocks_per_line - 1;
    return std::nullopt;
  }
  // Record by record: the words of a run are no records, whatever they look like.
  bool has_abort(std::uint64_t line) const {
    for (std::uint64_t at = line * blocks_per_line; at < (line + 1) * blocks_per_line; ++at) {
      format::block_record r;
      const auto block = written_block_at(at);
      if (!block || !format::unpack(*block, r)) return false;
      if (r.kind == block_kind::abort) return r.data <= committed_end_;
      if (!planted(published::mutant::xil_run_read_as_records))
        at += format::further_blocks(r.further);
    }
    return false;
  }

  void add_block(std::uint64_t at, const format::log_block& block, const format::block_record& r,
                 log_record& record) {
    if (r.kind == block_kind::data && r.mask == 0) return;  // filler
    if (r.kind == block_kind::spill || r.kind == block_kind::spill_checksum)
      return spilled_.push_back(r);
    begin_run(r, record);
    record.payload.push_back(r.data);
    if (r.further != 0) add_further_words(at, block.metadata, r.further, record);
  }
  // Adjacent words of several records become one run: for each run truncation looks up its lines.
  void begin_run(const format::block_record& r, log_record& record) {
    const std::uint32_t words = 1u + r.further;
    const bool whole = r.kind != block_kind::checksum_delta && r.mask == 0xFF;
    if (whole && r.address == run_end_ && run_words_ + words <= format::max_run_words) {
      STELE_ASSERT(run_at_ < record.payload.size());
      record.payload[run_at_] += format::run_header{0, 0, words}.pack();
    } else {
      run_at_ = record.payload.size();
      run_words_ = 0;
      record.payload.push_back(format::run_header{r.address, r.mask, words}.pack());
    }
    run_words_ += words;
    STELE_ASSERT(run_words_ <= format::max_run_words);  // its head can count them
    run_end_ = whole ? r.address + 8 * words : no_address;
  }
  void add_further_words(std::uint64_t at, std::uint64_t metadata, std::uint64_t further,
                         log_record& record) {
    std::uint64_t place = (at % blocks_per_line) * 2 + 2;
    for (std::uint64_t number = 1; number <= further; number += 2) {
      const format::log_block b = load(words_at(++at).words);
      for (const std::uint64_t stored : {b.data, b.metadata}) {
        const std::uint64_t n = number + (place & 1);
        if (n <= further)
          record.payload.push_back(format::further_word(stored, place, metadata, n));
        ++place;
      }
    }
  }

  result<outcome> finish(std::uint64_t at, const format::block_record& r, std::uint64_t& position,
                         log_record& record) {
    const std::uint64_t end = at / blocks_per_line + 1;
    const std::uint64_t first = record.position * blocks_per_line;
    STELE_ASSERT(first <= at && record.position >= committed_end_);
    if (checksum_of(first, at - first, r.kind == block_kind::commit_by_columns) >> 16 !=
            r.address &&
        !planted(published::mutant::xil_no_checksum)) {
      failed_at_ = at;
      return outcome::bad_checksum;
    }
    record.kind = format::record_kind::redo;
    record.txid = r.data;
    if (!spilled_.empty())
      if (auto read = read_spill(at, record); !read)
        return std::unexpected(std::move(read.error()));
    position = end;
    return outcome::committed;
  }

  result<> read_spill(std::uint64_t at, log_record& record) const {
    if (spilled_.size() != 2 || spilled_[0].kind != block_kind::spill ||
        spilled_[1].kind != block_kind::spill_checksum || !record.payload.empty())
      return damaged(at, "a spilled transaction has another shape");
    if (read_spilled_payload(file_, {spilled_[0].address, spilled_[0].data, spilled_[1].data},
                             record))
      return {};
    return damaged(
        at, "the payload of a spilled transaction is outside the heap or fails its checksum");
  }

  const storage::pool_file& file_;
  const ring_view& ring_;
  // Line after the last commit record. This transaction, or aborted ones before it, begin there.
  const std::uint64_t committed_end_;
  const std::uint64_t end_;      // block number
  const std::uint64_t lap_;      // the first block of the lap of committed_end_
  const bool sense_;             // torn bit of that lap
  std::uint64_t failed_at_ = 0;  // block of the commit record whose checksum failed
  std::vector<format::block_record> spilled_;
  // The last run of the payload: its head, how many words it has, the address that continues it.
  std::size_t run_at_ = 0;
  std::uint32_t run_words_ = 0;
  static constexpr std::uint64_t no_address = ~std::uint64_t{0};
  std::uint64_t run_end_ = no_address;
};

}  // namespace

result<bool> read_block_record(const storage::pool_file& file, const ring_view& ring,
                               std::uint64_t& position, std::uint64_t end, log_record& record) {
  std::uint64_t after = position;
  const auto found = block_reader(file, ring, position, end).next(after, record);
  // A record is read once: the next one begins behind it.
  STELE_ASSERT(!found || !*found || (after > position && record.position >= position));
  if (found && *found) position = after;
  return found;
}

static bool has_written_block(const std::byte* line, bool sense) {
  std::array<format::log_block, blocks_per_line> blocks;
  std::memcpy(&blocks, line, sizeof blocks);
  return std::ranges::any_of(blocks, [&](const auto& b) { return format::is_untorn(b, sense); });
}

const record_form block_form = {read_block_record, has_written_block};

}  // namespace stele::detail
