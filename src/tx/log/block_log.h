// The writing side of a block log: a running transaction stores its records in place in its ring
// (execution in log). Page: docs/format/blocks.md. Source: Lu, Shu and Sun, "Blurred Persistence"
// (2016), sections 3.2 and 4.2.1.
//
// A transaction begins on a fresh line and its last line is padded, so a line belongs to one
// transaction and every block of a lap is written. A record may be stored many times before the
// commit. Nothing is flushed before the commit. Lines of an aborted transaction stay in the cache;
// those not evicted are missing on media (an aborted range). Only the owner thread calls these
// functions.
#pragma once

#include <base/checksum.h>
#include <base/mutant.h>
#include <format/log_block.h>
#include <tx/log/ring.h>

#include <vector>

namespace stele::detail {

template <class Media>
class block_log {
 public:
  block_log(Media& media, ring<Media>& r, std::uint64_t pool_id)
      : media_(media), ring_(r), pool_id_(pool_id) {}

  // Begins a transaction: its first record goes to the line after the last transaction.
  void begin() noexcept {
    first_line_ = ring_.tail();
    next_ = first_line_ * format::blocks_per_line;
  }
  bool has_records() const noexcept { return records() != 0; }
  // Of the running transaction.
  std::uint64_t records() const noexcept { return next_ - first_line_ * format::blocks_per_line; }
  std::uint64_t lines_used() const noexcept {
    return (next_ + format::blocks_per_line - 1) / format::blocks_per_line - first_line_;
  }
  // Whether `more` records fit and leave a line for the records that end the transaction.
  bool has_room(std::uint64_t more = 1) const noexcept {
    return (next_ + more - 1) / format::blocks_per_line - ring_.tail() + 1 < ring_.free_lines();
  }

  // Appends a record to the log. Precondition: has_room().
  format::log_block* append(const format::block_record& r) {
    format::log_block* const at = block(next_);
    overwrite(at, next_, r);
    ++next_;
    return at;
  }
  // Stores a record of the running transaction again.
  void rewrite(format::log_block* at, const format::block_record& r) {
    overwrite(at, position_of(at), r);
  }

  // Ends the transaction with its commit record and flushes all log lines that recovery needs to
  // find it. Durable after the next fence; then call publish().
  void commit(std::uint64_t txid) {
    using base::mutant;
    using base::planted;
    base::checksum sum(pool_id_ ^ first_line_);
    for (std::uint64_t b = first_line_ * format::blocks_per_line; b < next_; ++b)
      sum.add(block(b)->data), sum.add(block(b)->metadata);
    append({format::block_kind::commit, 0, txid, sum.value() >> 16});
    pad_line();
    const std::uint64_t end = next_ / format::blocks_per_line;
    for (std::uint64_t line = first_line_;
         line < end - planted<Media>(mutant::xil_commit_unflushed); ++line)
      flush(line);
    for (std::uint64_t line : unflushed_abort_lines_)
      if (!planted<Media>(mutant::xil_abort_unflushed)) flush(line);
    unflushed_abort_lines_.clear();
    committed_end_ = end;
  }
  void publish() noexcept { ring_.set_tail(committed_end_); }

  // Ends the transaction with abort records: one at the end and one every abort_record_interval
  // blocks. They are not flushed here: the next commit or a truncation does that. Returns the line
  // after the transaction.
  std::uint64_t abort() noexcept {
    const std::uint64_t first = first_line_ * format::blocks_per_line;
    const format::block_record r{format::block_kind::abort, 0, committed_end_, 0};
    for (std::uint64_t b = first + abort_record_interval - 1; b < next_;
         b += abort_record_interval) {
      overwrite(block(b), b, r);
      remember_abort(b / format::blocks_per_line);
    }
    append(r);
    pad_line();
    remember_abort(next_ / format::blocks_per_line - 1);
    ring_.set_tail(next_ / format::blocks_per_line);
    return ring_.tail();
  }

  // Takes over an empty ring.
  void reset(std::uint64_t head) noexcept {
    committed_end_ = head;
    unflushed_abort_lines_.clear();
  }
  std::uint64_t first_line() const noexcept { return first_line_; }

 private:
  format::log_block* block(std::uint64_t number) const noexcept {
    return reinterpret_cast<format::log_block*>(ring_.bytes()) +
           number % (ring_.capacity_lines() * format::blocks_per_line);
  }
  // The block number of a block of the running transaction.
  std::uint64_t position_of(const format::log_block* at) const noexcept {
    const std::uint64_t all = ring_.capacity_lines() * format::blocks_per_line,
                        first = first_line_ * format::blocks_per_line;
    const auto index =
        static_cast<std::uint64_t>(at - reinterpret_cast<const format::log_block*>(ring_.bytes()));
    return first + (index + all - first % all) % all;
  }
  void overwrite(format::log_block* at, std::uint64_t number, format::block_record r) {
    using base::mutant;
    using base::planted;
    const std::uint64_t lap = number / (ring_.capacity_lines() * format::blocks_per_line);
    const bool sense = (lap & 1) == 0 || planted<Media>(mutant::xil_torn_sense);
    format::log_block packed = format::pack(r, sense);
    if (planted<Media>(mutant::xil_tail_bit)) packed.metadata &= ~std::uint64_t{2};
    media_.store(&at->data, &packed.data, 8);
    media_.store(&at->metadata, &packed.metadata, 8);
  }
  void pad_line() {
    while (next_ % format::blocks_per_line != 0) {
      if (base::planted<Media>(base::mutant::xil_no_filler))
        ++next_;
      else
        append({});
    }
  }
  // Without memory to remember the line, flushes it now; the next fence covers it too.
  void remember_abort(std::uint64_t line) noexcept {
    try {
      unflushed_abort_lines_.push_back(line);
    } catch (const std::bad_alloc&) {
      flush(line);
    }
  }
  void flush(std::uint64_t line) {
    media_.flush(ring_.bytes() + line % ring_.capacity_lines() * line_size, line_size);
  }

  Media& media_;
  ring<Media>& ring_;
  const std::uint64_t pool_id_;
  std::uint64_t first_line_ = 0;     // line of the running transaction's first block
  std::uint64_t next_ = 0;           // number of the next block
  std::uint64_t committed_end_ = 0;  // line after the last commit record
  // Lines with abort records that no fence has covered yet.
  std::vector<std::uint64_t> unflushed_abort_lines_;
};

}  // namespace stele::detail
