// Tests the block log: block_log writes it, read_block_record reads it back. Covers what a crash
// may have left on media, line by line, block by block and word by word, and bytes that no writer
// wrote.
//
// A power failure may "lose" a line that nobody flushed: the line has its old content, or that of
// any moment since.
#include <published/blurred/block_log_test.h>

namespace stele::detail {
namespace {

// B1
TEST_F(block_log_test, gives_back_values_masks_and_top_bits) {
  const stored written = {word(0, 0),
                          word(1, ~std::uint64_t{0}),
                          word(2, std::uint64_t{1} << 63),
                          word(3, ~(std::uint64_t{1} << 63)),
                          word(9, 0xFF00, 0b0000'0010),
                          word(65, 0x8000'0000'0000'0000, 0b1000'0000)};
  for (const std::uint64_t head : heads()) {
    SCOPED_TRACE("from line " + std::to_string(head));
    fresh(head);
    commit(42 | std::uint64_t{1} << 60, written);
    log_record record;
    std::uint64_t position = committed_end_;
    const auto whole = read(position, record);
    ASSERT_TRUE(whole && *whole);
    EXPECT_EQ(record.txid, 42 | std::uint64_t{1} << 60);
    EXPECT_EQ(record.kind, format::record_kind::redo);
    EXPECT_EQ(position, ring_->tail());
    expect_same(record, written);
    const auto more = read(position, record);
    EXPECT_TRUE(more && !*more);
    EXPECT_EQ(position, ring_->tail()) << "a position moved over nothing";
  }
}

// B3
TEST_F(block_log_test, tells_each_lap_from_the_one_before) {
  struct committed {
    std::uint64_t txid, end;
    stored records;
  };
  std::deque<committed> model;
  base::rng random(1);
  for (std::uint64_t txid = 1; txid <= 1500; ++txid) {
    const stored records = words(1 + random.below(random.below(10) == 0 ? 100 : 10), txid);
    const std::uint64_t lines = (records.size() + 1) / blocks_per_line + 2;
    while (ring_->free_lines() < lines || random.below(4) == 0) {
      if (model.empty()) break;
      committed_end_ = model.front().end;
      model.pop_front();
      truncate(committed_end_);
    }
    model.push_back({txid, commit(txid, records), records});
    log_record record;
    std::uint64_t position = committed_end_;
    for (const committed& c : model) {
      const auto whole = read(position, record);
      ASSERT_TRUE(whole) << whole.error().message;
      ASSERT_TRUE(*whole) << c.txid << " of " << txid;
      ASSERT_EQ(record.txid, c.txid);
      ASSERT_EQ(position, c.end);
      expect_same(record, c.records);
      if (HasFatalFailure()) return;
    }
    const auto more = read(position, record);
    ASSERT_TRUE(more) << more.error().message;
    ASSERT_FALSE(*more) << "a record of an earlier lap was read as one of this lap, after " << txid;
  }
  EXPECT_GT(ring_->tail(), 20 * ring_->capacity_lines());
}

TEST_F(block_log_test, gives_back_the_last_value_of_a_block_stored_many_times) {
  for (const std::uint64_t head : heads()) {
    fresh(head);
    stored records = words(12, 3);
    const auto at = put(records);
    base::rng random(head);
    for (int i = 0; i < 200; ++i) {
      const std::size_t which = random.below(records.size());
      records[which].data = random();
      records[which].mask |= static_cast<std::uint8_t>(random.below(256));
      log_->rewrite(at[which], records[which]);
    }
    ASSERT_NO_FATAL_FAILURE(commit_and_expect(records)) << "from line " << head;
  }
}

TEST_F(block_log_test, steps_over_an_aborted_transaction_whichever_of_its_lines_are_lost) {
  for (const std::uint64_t head : heads())
    for (const std::uint64_t blocks : {1u, 3u, 4u, 7u, 20u, 30u}) {
      fresh(head);
      SCOPED_TRACE("from line " + std::to_string(committed_end_) + ", " + std::to_string(blocks) +
                   " blocks");
      const auto old = log_content();
      // The last line has the abort record: durable with the next commit.
      const std::uint64_t first = ring_->tail(), last = abort(words(blocks, 5)) - 1;
      const stored after = words(3, 6);
      commit(11, after);
      const auto whole = log_content();
      for (std::uint64_t lost = 0; lost < std::uint64_t{1} << (last - first); ++lost) {
        restore(whole);
        for (std::uint64_t l = first; l < last; ++l)
          if ((lost >> (l - first) & 1) != 0) lose_line(old, l);
        log_record record;
        std::uint64_t position = committed_end_;
        const auto is = read(position, record);
        ASSERT_TRUE(is) << is.error().message;
        ASSERT_TRUE(*is) << "lost lines " << lost;
        ASSERT_EQ(record.txid, 11u);
        expect_same(record, after);
        ASSERT_EQ(found(), txids{11}) << "lost lines " << lost;
      }
    }
}

// B3
TEST_F(block_log_test, steps_over_long_aborted_transactions_with_lost_and_torn_lines) {
  base::rng random(2);
  for (const std::uint64_t head : heads())
    for (const std::uint64_t blocks : {63u, 64u, 65u, 127u, 128u, 150u, 200u})
      for (int trial = 0; trial < 40; ++trial) {
        fresh(head);
        const auto old = log_content();
        const std::uint64_t first = ring_->tail(), end = abort(words(blocks, 5));
        commit(11, words(2, 6));
        commit(12, words(6, 7));
        for (std::uint64_t l = first; l < end; ++l) {
          const bool holds_abort =
              l + 1 == end || (l - first) % (default_abort_interval / blocks_per_line) ==
                                  default_abort_interval / blocks_per_line - 1;
          if (holds_abort) continue;
          if (trial % 4 == 0 || random.below(3) == 0)
            lose_line(old, l);
          else if (trial % 4 != 1)
            tear_line(old, l, random);
        }
        ASSERT_EQ(found(), (txids{11, 12}))
            << "from line " << committed_end_ << ", " << blocks << " blocks, trial " << trial;
      }
}

TEST_F(block_log_test, steps_over_several_aborted_transactions_at_once) {
  base::rng random(3);
  for (const std::uint64_t head : heads())
    for (int trial = 0; trial < 100; ++trial) {
      fresh(head);
      const auto old = log_content();
      std::vector<std::uint64_t> may_be_lost;
      for (int a = 0; a < 3; ++a) {
        const std::uint64_t first = ring_->tail(), end = abort(words(1 + random.below(40), 5));
        for (std::uint64_t l = first; l + 1 < end; ++l) may_be_lost.push_back(l);
      }
      commit(11, words(2, 6));
      abort(words(5, 8));
      commit(12, words(5, 8));
      for (const std::uint64_t l : may_be_lost)
        if (random.below(2) != 0) lose_line(old, l);
      ASSERT_EQ(found(), (txids{11, 12})) << "from line " << committed_end_ << ", trial " << trial;
    }
}

// No later transaction depends on it: the next commit would have made the abort records durable.
TEST_F(block_log_test, finds_nothing_after_an_abort_that_no_commit_followed) {
  base::rng random(4);
  for (const std::uint64_t head : heads())
    for (const std::uint64_t blocks : {1u, 9u, 100u})
      for (int trial = 0; trial < 50; ++trial) {
        fresh(head);
        commit(10, words(5, 4));
        const auto old = log_content();
        const std::uint64_t first = ring_->tail(), end = abort(words(blocks, 5));
        for (std::uint64_t l = first; l < end; ++l) tear_line(old, l, random);
        ASSERT_EQ(found(), txids{10});
      }
}

// B2
TEST_F(block_log_test, does_not_return_a_commit_that_lacks_any_block) {
  for (const std::uint64_t head : heads())
    for (const std::uint64_t blocks : {1u, 2u, 3u, 4u, 30u}) {
      fresh(head);
      commit(10, words(5, 4));
      const auto old = log_content();
      const std::uint64_t first = ring_->tail() * blocks_per_line;
      commit(11, words(blocks, 5));
      const auto whole = log_content();
      for (std::uint64_t b = first; b <= first + blocks; ++b)
        for (const int part : {0, 1, 2}) {
          restore(whole);
          const log_block there = *block_at(b);
          lose_block(old, b);
          if (part == 0) block_at(b)->data = there.data;
          if (part == 1) block_at(b)->metadata = there.metadata;
          ASSERT_EQ(found(), txids{10}) << "from line " << head << ", block " << b - first << " of "
                                        << blocks << ", part " << part;
        }
      restore(whole);
      ASSERT_EQ(found(), (txids{10, 11}));
    }
}

// B2
TEST_F(block_log_test, does_not_return_a_commit_with_the_first_value_of_a_block_stored_twice) {
  for (const std::uint64_t head : heads())
    for (std::uint64_t which = 0; which < 9; ++which)
      for (const bool top_bit_alone : {false, true}) {
        fresh(head);
        commit(10, words(5, 4));
        stored records = words(9, 5);
        const auto at = put(records);
        auto& block = *reinterpret_cast<log_block*>(at[which]);
        const log_block first = block;
        records[which].data ^= top_bit_alone ? std::uint64_t{1} << 63 : 1;
        log_->rewrite(at[which], records[which]);
        log_->commit(11);
        ring_->publish();
        ASSERT_EQ(found(), (txids{10, 11}));
        const log_block second = block;
        block = first;
        ASSERT_EQ(found(), txids{10}) << "from line " << head << ", block " << which;
        block = {first.data, second.metadata};
        if (!top_bit_alone) {
          ASSERT_EQ(found(), txids{10});
        }
      }
}

TEST_F(block_log_test, calls_damage_before_another_commit_an_error) {
  for (const std::uint64_t head : heads())
    for (const bool abort_between : {false, true}) {
      fresh(head);
      const std::uint64_t first = committed_end_ * blocks_per_line;
      commit(11, words(9, 5));
      if (abort_between) abort(words(9, 6));
      commit(12, words(2, 7));
      const auto whole = log_content();
      for (std::uint64_t b = first; b < first + 10; ++b) {
        restore(whole);
        block_at(b)->data ^= 1 << 20;
        if (b != first + 9) {  // block 9 has the TxID, which the checksum does not cover
          ASSERT_EQ(found(), std::nullopt) << "from line " << head << ", block " << b - first;
        }
        restore(whole);
        block_at(b)->metadata ^= 1 << 20;
        ASSERT_EQ(found(), std::nullopt)
            << "from line " << head << ", address of block " << b - first;
      }
    }
}

// As earlier programs wrote it.
TEST_F(block_log_test, reads_a_long_transaction_that_is_not_summed_by_columns) {
  for (const std::uint64_t head : heads()) {
    fresh(head);
    const std::uint64_t first = ring_->tail();
    const stored records = words(50, 3);
    put(records);
    base::checksum sum(file_->header().id ^ first);
    for (std::uint64_t b = first * blocks_per_line; b < first * blocks_per_line + 50; ++b)
      sum.add(block_at(b)->data), sum.add(block_at(b)->metadata);
    log_->append({block_kind::commit, 0, 7, sum.value() >> 16});
    log_record record;
    std::uint64_t position = committed_end_;
    const auto whole = read(position, record);
    ASSERT_TRUE(whole && *whole) << "from line " << head;
    expect_same(record, records);
  }
}

TEST_F(block_log_test, reads_no_further_than_asked) {
  const std::uint64_t first = commit(1, words(3, 1)), second = commit(2, words(3, 2));
  log_record record;
  for (std::uint64_t end = 0; end <= second; ++end) {
    std::uint64_t position = 0;
    const auto whole = read(position, record, end);
    ASSERT_TRUE(whole);
    EXPECT_EQ(*whole, end >= first) << end;
    EXPECT_EQ(position, *whole ? first : 0u);
  }
}

TEST_F(block_log_test, calls_flags_that_no_record_has_an_error) {
  for (std::uint64_t flags = 0; flags < 64; ++flags) {
    fresh(0);
    put(words(3, 1));
    log_->commit(5);
    ring_->publish();
    log_block& b = *block_at(1);
    b.metadata = (b.metadata & ~std::uint64_t{0xFC00}) | flags << 10;
    block_record r;
    if (format::unpack(b, r)) continue;
    EXPECT_EQ(found(), std::nullopt) << flags;
  }
}

TEST_F(block_log_test, calls_an_abort_record_that_points_past_itself_an_error) {
  abort(words(3, 1));
  ASSERT_EQ(found(), txids{});
  block_at(3)->data = (block_at(3)->data & (std::uint64_t{1} << 63)) | 1000;
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(block_log_test, survives_random_bytes) {
  base::rng random(5);
  const auto fill = [&](int kind) {
    auto* const words = reinterpret_cast<std::uint64_t*>(ring_->bytes());
    for (std::uint64_t i = 0; i < ring_->capacity_lines() * 8; ++i) words[i] = random();
    // Whole in the first lap, with valid flags.
    for (std::uint64_t i = 0; kind != 0 && i < ring_->capacity_lines() * 8; i += 2) {
      words[i] |= std::uint64_t{1} << 63;
      const block_kind k = kind == 1               ? static_cast<block_kind>(random.below(8))
                           : random.below(20) == 0 ? static_cast<block_kind>(random.below(8))
                                                   : block_kind::data;
      words[i + 1] = (words[i + 1] & ~std::uint64_t{0xFC00}) | format::flags_of(k) | 1;
      if (k == block_kind::abort)
        words[i] = (std::uint64_t{1} << 63) | random.below(3), words[i + 1] &= ~std::uint64_t{2};
    }
  };
  for (int trial = 0; trial < 2000; ++trial) {
    fill(trial % 3);
    for (const std::uint64_t from : {std::uint64_t{0}, random.below(1000),
                                     (std::uint64_t{1} << 46) - 1 - random.below(1000)}) {
      log_record record;
      for (std::uint64_t position = from;;) {
        const std::uint64_t before = position;
        const auto whole = read(position, record);
        if (!whole || !*whole) break;
        ASSERT_GT(position, before);
        (void)for_each_stored_run(*file_, record.payload,
                                  [&](format::run_header head, const std::uint64_t*) {
                                    ASSERT_GE(head.offset, file_->header().home_offset);
                                    ASSERT_LE(head.offset + 8 * head.count, size);
                                  });
      }
    }
  }
}

TEST_F(block_log_test, calls_a_store_outside_home_an_error) {
  const auto& h = file_->header();
  const std::uint64_t good = h.chunks_offset;
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{512}, h.home_offset - 8, h.size, h.size + 8,
        (std::uint64_t{1} << 48) - 8, std::uint64_t{1} << 47, std::uint64_t{1} << 47 | good,
        std::uint64_t{1} << 46 | good, std::uint64_t{1} << 45 | good, good + 1, good + 7})
    for (const std::uint8_t mask : {std::uint8_t{0xF0}, std::uint8_t{0xFF}}) {
      fresh(0);
      forge({{block_kind::data, mask, 1, address}});
      log_record record;
      std::uint64_t position = 0;
      const auto whole = read(position, record);
      const bool refused = !whole || !*whole ||
                           !for_each_stored_run(*file_, record.payload,
                                                [](format::run_header, const std::uint64_t*) {});
      EXPECT_TRUE(refused) << "address " << address << " was taken for "
                           << format::run_header::unpack(record.payload[0]).offset << " with mask "
                           << static_cast<int>(format::run_header::unpack(record.payload[0]).mask);
    }
}

class spilled_block_log_test : public block_log_test {
 protected:
  // Stores a payload in the heap. Returns its checksum.
  std::uint64_t stream(std::uint64_t offset, const std::vector<std::uint64_t>& payload) {
    base::checksum sum(file_->header().id ^ offset);
    for (const std::uint64_t w : payload) sum.add(w);
    std::memcpy(file_->at(offset), payload.data(), 8 * payload.size());
    return sum.value();
  }
  bool refused(const std::vector<block_record>& records) {
    fresh(0);
    forge(records);
    return found() == std::nullopt;
  }
  const std::uint64_t at_ = file_->header().chunks_offset;
  const std::vector<std::uint64_t> payload_ = {format::run_header{at_ + 4096, 0xFF, 3}.pack(), 1, 2,
                                               3};
  const std::uint64_t sum_ = stream(at_, payload_);
};

TEST_F(spilled_block_log_test, gives_the_payload_back) {
  for (const std::uint64_t head : heads()) {
    fresh(head);
    forge({{block_kind::spill, 0, payload_.size(), at_}, {block_kind::spill_checksum, 0, sum_, 0}});
    log_record record;
    std::uint64_t position = committed_end_;
    const auto whole = read(position, record);
    ASSERT_TRUE(whole) << whole.error().message;
    ASSERT_TRUE(*whole);
    EXPECT_EQ(record.payload, payload_);
    EXPECT_EQ(record.spill_offset, at_);
    EXPECT_EQ(record.spill_bytes, 8 * payload_.size());
    commit(8, words(2, 2));
    ASSERT_TRUE(read(position, record).value_or(false));
    EXPECT_EQ(record.spill_bytes, 0u) << "the spill of one record stuck to the next";
  }
}

TEST_F(spilled_block_log_test, calls_a_payload_that_is_elsewhere_or_another_an_error) {
  const auto& h = file_->header();
  const block_record sum{block_kind::spill_checksum, 0, sum_, 0};
  ASSERT_FALSE(refused({{block_kind::spill, 0, payload_.size(), at_}, sum}));
  for (const std::uint64_t offset : {std::uint64_t{0}, h.home_offset, at_ - 64, at_ + 8, at_ + 64,
                                     h.size, h.size - 64, (std::uint64_t{1} << 48) - 64})
    EXPECT_TRUE(refused({{block_kind::spill, 0, payload_.size(), offset}, sum})) << offset;
  for (const std::uint64_t words :
       {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{5}, (h.size - at_) / 8 + 1,
        std::uint64_t{1} << 61, std::uint64_t{1} << 63, ~std::uint64_t{0}})
    EXPECT_TRUE(refused({{block_kind::spill, 0, words, at_}, sum})) << words;
  EXPECT_TRUE(refused({{block_kind::spill, 0, payload_.size(), at_},
                       {block_kind::spill_checksum, 0, sum_ ^ 1, 0}}));
  EXPECT_TRUE(refused({{block_kind::spill, 0, payload_.size(), at_},
                       {block_kind::spill_checksum, 0, sum_ ^ std::uint64_t{1} << 63, 0}}));
  *file_->at(at_ + 9) ^= std::byte{1};
  EXPECT_TRUE(refused({{block_kind::spill, 0, payload_.size(), at_}, sum}));
}

TEST_F(spilled_block_log_test, calls_spill_records_that_do_not_come_as_a_pair_an_error) {
  const block_record spill{block_kind::spill, 0, payload_.size(), at_},
      sum{block_kind::spill_checksum, 0, sum_, 0};
  EXPECT_TRUE(refused({spill}));
  EXPECT_TRUE(refused({sum}));
  EXPECT_TRUE(refused({sum, spill}));
  EXPECT_TRUE(refused({spill, sum, spill}));
  EXPECT_TRUE(refused({spill, sum, word(0, 1)}));
  EXPECT_TRUE(refused({word(0, 1), spill, sum}));
}

}  // namespace
}  // namespace stele::detail
