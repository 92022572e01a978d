// Reads transactions back from block logs.
#include <base/check.h>
#include <base/checksum.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <format/log_block.h>
#include <tx/log/record.h>

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
      if (!block) {
        const auto abort = find_abort_after(at);
        if (!abort) return outcome::none;
        at = *abort;
        begin_at(at / blocks_per_line + 1, record);
        continue;
      }
      if (!format::unpack(*block, r)) return damaged(at, "a record's flags make no sense");
      if ((r.kind == block_kind::data || r.kind == block_kind::checksum_delta) &&
          !is_word_address(r.address))
        return damaged(at, "a record's address is none of a word");
      if (r.kind == block_kind::commit) return finish(at, r, position, record);
      if (r.kind == block_kind::abort) {
        if (r.data > committed_end_) return damaged(at, "an abort record points past itself");
        at |= blocks_per_line - 1;
        begin_at(at / blocks_per_line + 1, record);
        continue;
      }
      add_block(*block, r, record);
    }
    return outcome::none;
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
    record.payload.clear();
    record.spill_offset = record.spill_bytes = record.front = 0;
    record.position = line;
    checksum_ = base::checksum(file_.header().id ^ line);
    spilled_.clear();
  }

  // The block at this position, if both words were written in its lap.
  std::optional<format::log_block> written_block_at(std::uint64_t at) const {
    std::uint64_t index = at - lap_;  // avoids a division for each block
    bool sense = sense_;
    for (; index >= ring_.lines * blocks_per_line; sense = !sense)
      index -= ring_.lines * blocks_per_line;
    const auto* words = reinterpret_cast<const std::uint64_t*>(ring_.bytes) + index * 2;
    const format::log_block b{__atomic_load_n(words, __ATOMIC_RELAXED),
                              __atomic_load_n(words + 1, __ATOMIC_RELAXED)};
    return format::is_untorn(b, sense) ? std::optional(b) : std::nullopt;
  }

  // Finds the abort record which shows that a gap belongs to an aborted transaction. Returns the
  // last block of its line.
  std::optional<std::uint64_t> find_abort_after(std::uint64_t gap) const {
    const std::uint64_t reach =
        base::planted(base::mutant::xil_short_reach) ? 1 : abort_record_interval;
    for (std::uint64_t at = gap + 1; at <= gap + reach && at < end_; ++at) {
      format::block_record r;
      const auto block = written_block_at(at);
      if (!block || !format::unpack(*block, r) || r.kind != block_kind::abort ||
          r.data > committed_end_)
        continue;
      return at | (blocks_per_line - 1);
    }
    return std::nullopt;
  }

  void add_block(const format::log_block& block, const format::block_record& r,
                 log_record& record) {
    if (r.kind == block_kind::data && r.mask == 0) return;  // filler
    checksum_.add(block.data);
    checksum_.add(block.metadata);
    if (r.kind != block_kind::data && r.kind != block_kind::checksum_delta)
      return spilled_.push_back(r);
    record.payload.push_back(format::run_header{r.address, r.mask, 1}.pack());
    record.payload.push_back(r.data);
  }

  result<outcome> finish(std::uint64_t at, const format::block_record& r, std::uint64_t& position,
                         log_record& record) {
    const std::uint64_t end = at / blocks_per_line + 1;
    if (checksum_.value() >> 16 != r.address && !base::planted(base::mutant::xil_no_checksum)) {
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
  const std::uint64_t end_;  // block number
  const std::uint64_t lap_;  // the first block of the lap of committed_end_
  const bool sense_;         // torn bit of that lap
  base::checksum checksum_{0};
  std::uint64_t failed_at_ = 0;  // block of the commit record whose checksum failed
  std::vector<format::block_record> spilled_;
};

}  // namespace

result<bool> read_block_record(const storage::pool_file& file, const ring_view& ring,
                               std::uint64_t& position, std::uint64_t end, log_record& record) {
  std::uint64_t after = position;
  const auto found = block_reader(file, ring, position, end).next(after, record);
  if (found && *found) position = after;
  return found;
}

}  // namespace stele::detail
