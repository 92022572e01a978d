// The fixture of the tests of block logs: a log on a pool in memory, and what a crash may leave of
// it.
#pragma once

#include <base/checksum.h>
#include <base/rng.h>
#include <gtest/gtest.h>
#include <media/adr.h>
#include <pool/memory_pool.h>
#include <published/blurred/block_log.h>

#include <deque>
#include <memory>
#include <optional>

namespace stele::detail {

using format::block_kind;
using format::block_record;
using format::blocks_per_line;
using format::log_block;
using format::log_place;
using stored = std::vector<block_record>;  // data records of one transaction

class block_log_test : public ::testing::Test {
 protected:
  static constexpr std::size_t size = 512 << 10;

  block_log_test() { fresh(0); }

  // A zeroed log whose first record goes to this line.
  void fresh(std::uint64_t head) {
    log_.reset();
    ring_ = std::make_unique<ring<media::adr>>(media_, *file_, 0);
    std::memset(ring_->bytes(), 0, ring_->capacity_lines() * line_size);
    log_ = std::make_unique<block_log<media::adr>>(media_, *ring_, file_->header().id);
    log_->configure(runs_, abort_interval_);
    truncate(0);
    committed_end_ = 0;
    while (committed_end_ < head)
      // The way that a log gets there: every line is written in every lap.
      truncate(committed_end_ = commit(1, {word(0, 0)}));
  }
  void truncate(std::uint64_t head) {
    if (head == 0)
      ring_->reset(0);
    else
      ring_->truncate(head);
  }

  block_record word(std::uint64_t number, std::uint64_t value, std::uint8_t mask = 0xFF) const {
    return {block_kind::data, mask, value, file_->header().chunks_offset + 8 * number};
  }
  stored words(std::uint64_t count, std::uint64_t salt) const {
    stored all;
    for (std::uint64_t i = 0; i < count; ++i) all.push_back(word(i, base::rng(salt * 1000 + i)()));
    return all;
  }

  log_place put(const block_record& r) {
    EXPECT_TRUE(log_->has_room());
    return r.kind == block_kind::data ? log_->append_word(r) : format::place_of(log_->append(r));
  }
  std::vector<log_place> put(const stored& records) {
    log_->begin();
    std::vector<log_place> at;
    for (const block_record& r : records) at.push_back(put(r));
    return at;
  }
  std::uint64_t commit(std::uint64_t txid, const stored& records) {
    put(records);
    log_->commit(txid);
    ring_->publish();
    return ring_->tail();
  }
  std::uint64_t abort(const stored& records) {
    put(records);
    return log_->abort();
  }

  result<bool> read(std::uint64_t& position, log_record& record, std::uint64_t end = no_end) const {
    return read_block_record(*file_, ring_->view(), position, end, record);
  }
  // The TxIDs that recovery would find, from committed_end_ on; empty if it reports an error.
  std::optional<std::vector<std::uint64_t>> found() const {
    std::vector<std::uint64_t> all;
    log_record record;
    for (std::uint64_t position = committed_end_;;) {
      const auto whole = read(position, record, committed_end_ + ring_->capacity_lines());
      if (!whole) {
        EXPECT_EQ(whole.error().code, errc::corrupt);
        return std::nullopt;
      }
      if (!*whole) return all;
      all.push_back(record.txid);
    }
  }
  using txids = std::vector<std::uint64_t>;

  static void expect_same(const log_record& record, const stored& expected) {
    std::size_t words = 0;
    for (std::size_t at = 0; at < record.payload.size();) {
      const auto head = format::run_header::unpack(record.payload[at++]);
      for (std::uint32_t i = 0; i < head.count; ++i, ++words, ++at) {
        ASSERT_LT(words, expected.size());
        ASSERT_LT(at, record.payload.size());
        EXPECT_EQ(head.offset + 8 * i, expected[words].address);
        EXPECT_EQ(head.mask, expected[words].mask);
        EXPECT_EQ(record.payload[at], expected[words].data);
      }
    }
    ASSERT_EQ(words, expected.size());
  }
  // Commits the running transaction and reads it back.
  void commit_and_expect(const stored& records) {
    log_->commit(9);
    ring_->publish();
    log_record record;
    std::uint64_t position = committed_end_;
    const auto whole = read(position, record);
    ASSERT_TRUE(whole && *whole);
    expect_same(record, records);
  }

  std::byte* line_at(std::uint64_t position) const {
    return ring_->bytes() + position % ring_->capacity_lines() * line_size;
  }
  log_block* block_at(std::uint64_t number) const {
    return reinterpret_cast<log_block*>(ring_->bytes()) +
           number % (ring_->capacity_lines() * blocks_per_line);
  }
  using content = std::vector<std::byte>;
  content log_content() const {
    return {ring_->bytes(), ring_->bytes() + ring_->capacity_lines() * line_size};
  }
  void restore(const content& c) const { std::memcpy(ring_->bytes(), c.data(), c.size()); }
  void lose_line(const content& old, std::uint64_t position) const {
    std::memcpy(line_at(position), old.data() + position % ring_->capacity_lines() * line_size,
                line_size);
  }
  void lose_block(const content& old, std::uint64_t number) const {
    std::memcpy(
        block_at(number),
        old.data() + number % (ring_->capacity_lines() * blocks_per_line) * sizeof(log_block),
        sizeof(log_block));
  }
  // Makes each of a line's words old or new, at random.
  void tear_line(const content& old, std::uint64_t position, base::rng& random) const {
    for (std::size_t w = 0; w < line_size; w += 8)
      if (random.below(2) != 0)
        std::memcpy(line_at(position) + w,
                    old.data() + position % ring_->capacity_lines() * line_size + w, 8);
  }

  // Heads to begin at: the start, some with the end of the lap in the middle of what follows, and
  // some one and two laps on.
  std::vector<std::uint64_t> heads() const {
    const std::uint64_t lines = ring_->capacity_lines();
    return {0,     5,         lines - 1,     lines - 2, lines - 5,
            lines, lines + 7, 2 * lines - 3, 2 * lines, 3 * lines - 1};
  }

  // Commits a transaction of records that a block log does not write, with a right checksum.
  std::uint64_t forge(const std::vector<block_record>& records, std::uint64_t txid = 7) {
    put(records);
    log_->commit(txid);
    ring_->publish();
    return ring_->tail();
  }

  // Whether recovery finds these TxIDs and nothing else.
  void expect_found(const txids& expected, const std::string& where) const {
    const auto all = found();
    ASSERT_TRUE(all) << where;
    ASSERT_EQ(*all, expected) << where;
  }

  bool runs_ = false;
  std::uint64_t abort_interval_ = default_abort_interval;
  testing::memory_pool pool_{{.size = size, .log_size = 4096, .log_count = 1, .layout = ""}};
  storage::pool_file* const file_ = &pool_.file();
  media::adr::shared shared_;
  media::adr media_{shared_, 0};
  std::unique_ptr<ring<media::adr>> ring_;
  std::unique_ptr<block_log<media::adr>> log_;
  std::uint64_t committed_end_ = 0;
};

}  // namespace stele::detail
