// Tests runs in block logs: records of several words. As block_log_test.cc: what a writer wrote is
// read back, and a crash may have left lines as they were at different moments.
#include <published/blurred/block_log_test.h>

#include <algorithm>

namespace stele::detail {
namespace {

// Adjacent words share records.
class run_log_test : public block_log_test {
 protected:
  run_log_test() {
    runs_ = true;
    fresh(0);
  }
  // Stretches of adjacent words with gaps, single words, parts of words and words downwards; some
  // values look like records.
  stored mixture(std::uint64_t salt, std::size_t at_least) const {
    base::rng random(salt);
    stored all;
    std::uint64_t next = 0;
    while (all.size() < at_least) {
      next += 2 + random.below(3);
      for (std::uint64_t left = 1 + random.below(random.below(3) == 0 ? 30 : 6); left != 0; --left)
        all.push_back(word(next++, value(random)));
      if (random.below(4) == 0) all.push_back(word(next++, value(random) & 0xFF00, 0b0000'0010));
      if (random.below(4) == 0) {
        all.push_back(word(next + 1, value(random)));
        all.push_back(word(next, value(random)));
        next += 3;
      }
    }
    return all;
  }
  std::uint64_t value(base::rng& random) const {
    const std::uint64_t lap = random.below(2);
    switch (random.below(6)) {
      case 0:  // metadata of a commit, of an abort, of no record
        return format::flags_of(block_kind::commit) | random.below(4) | random() << 16;
      case 1:
        return format::flags_of(block_kind::abort) | random.below(2);
      case 2:
        return 0xFC00 | random.below(4);
      case 3:  // a back pointer
        return lap << 63 | random.below(3);
      case 4:
        return ~std::uint64_t{0} << random.below(64);
      default:
        return random();
    }
  }
  std::uint64_t lines_of(std::uint64_t words) {
    fresh(0);
    put(this->words(words, 1));
    const std::uint64_t lines = log_->lines_used();
    log_->abort();
    return lines;
  }
};

TEST_F(run_log_test, holds_seven_adjacent_words_in_a_line) {
  EXPECT_EQ(lines_of(7), 1u);
  EXPECT_EQ(lines_of(8), 2u);
  EXPECT_EQ(lines_of(14), 2u);
  EXPECT_EQ(lines_of(70), 10u);
  EXPECT_EQ(lines_of(71), 11u);
  fresh(0);
  // A run with its head in block 1 takes five words, and the next line goes on.
  put({word(0, 1), word(2, 2), word(3, 3), word(4, 4), word(5, 5), word(6, 6), word(7, 7)});
  EXPECT_EQ(log_->blocks(), 5u);
}

TEST_F(run_log_test, gives_back_values_masks_and_displaced_bits) {
  for (const std::uint64_t head : heads())
    for (std::uint64_t salt = 0; salt < 20; ++salt) {
      fresh(head);
      const stored written = mixture(salt, 1 + salt * 3);
      commit(42, written);
      log_record record;
      std::uint64_t position = committed_end_;
      const auto whole = read(position, record);
      ASSERT_TRUE(whole && *whole) << "from line " << head << ", " << salt;
      EXPECT_EQ(position, ring_->tail());
      expect_same(record, written);
    }
}

TEST_F(run_log_test, stores_many_words_at_once_as_it_stores_one_by_one) {
  base::rng random(8);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::uint64_t> values;
    for (std::uint64_t i = 0; i < 40; ++i) values.push_back(value(random));
    content contents[2];
    std::vector<log_place> places[2];
    const std::uint64_t alone = random.below(5), salt = random();
    for (const bool at_once : {false, true}) {
      fresh(trial % 2 == 0 ? 0 : ring_->capacity_lines() - 3);
      base::rng parts(salt);
      log_->begin();
      for (std::uint64_t i = 0; i < alone; ++i) places[at_once].push_back(put(word(2 * i, i)));
      for (std::size_t done = 0; done < values.size();) {
        const std::size_t part = std::min<std::size_t>(1 + parts.below(12), values.size() - done);
        places[at_once].resize(alone + done + part);
        if (at_once)
          log_->append_words(word(100 + done, 0).address, std::span(values).subspan(done, part),
                             &places[at_once][alone + done]);
        else
          for (std::size_t i = done; i < done + part; ++i)
            places[at_once][alone + i] = put(word(100 + i, values[i]));
        done += part;
      }
      log_->commit(3);
      contents[at_once] = log_content();
      ring_->publish();
    }
    ASSERT_EQ(contents[0], contents[1]) << trial;
    ASSERT_EQ(places[0].size(), places[1].size());
    for (std::size_t i = 0; i < places[0].size(); ++i)  // another fresh ring, the same places
      ASSERT_EQ(places[0][i] % line_size, places[1][i] % line_size) << trial;
  }
}

TEST_F(run_log_test, gives_back_the_last_value_of_a_word_stored_many_times) {
  for (const std::uint64_t head : heads()) {
    fresh(head);
    base::rng random(head);
    const stored all = mixture(head, 60);
    stored records;
    std::vector<log_place> at;
    log_->begin();
    for (const block_record& r : all) {
      at.push_back(put(r));
      records.push_back(r);
      // Also of the run that is still open.
      for (int i = 0; i < 4; ++i) {
        const std::size_t which =
            i == 0 ? records.size() - 1 : static_cast<std::size_t>(random.below(records.size()));
        records[which].data = value(random);
        if (records[which].mask != 0xFF) records[which].data &= 0xFF00;
        log_->rewrite(at[which], records[which]);
        ASSERT_EQ(format::word_at(at[which]), records[which].data);
      }
    }
    for (std::size_t i = 0; i < at.size(); ++i)
      ASSERT_EQ(format::word_at(at[i]), records[i].data) << i;
    ASSERT_NO_FATAL_FAILURE(commit_and_expect(records)) << "from line " << head;
  }
}

TEST_F(run_log_test, tells_each_lap_from_the_one_before) {
  base::rng random(1);
  stored last;
  for (std::uint64_t txid = 1; txid <= 600; ++txid) {
    truncate(committed_end_ = ring_->tail());
    if (random.below(3) == 0) abort(mixture(random(), 1 + random.below(40)));
    last = mixture(random(), 1 + random.below(60));
    commit(txid, last);
    log_record record;
    std::uint64_t position = committed_end_;
    const auto whole = read(position, record);
    ASSERT_TRUE(whole && *whole) << txid;
    ASSERT_EQ(record.txid, txid);
    expect_same(record, last);
    const auto more = read(position, record);
    ASSERT_TRUE(more && !*more) << "a record of an earlier lap was read as one of this lap";
  }
  EXPECT_GT(ring_->tail(), 20 * ring_->capacity_lines());
}

TEST_F(run_log_test, does_not_return_a_commit_that_lacks_any_word) {
  for (const std::uint64_t head : heads()) {
    fresh(head);
    commit(10, words(5, 4));
    const auto old = log_content();
    const std::uint64_t first = ring_->tail() * blocks_per_line;
    put(mixture(3, 20));
    const std::uint64_t blocks = log_->blocks();
    log_->commit(11);
    ring_->publish();
    const auto whole = log_content();
    for (std::uint64_t b = first; b <= first + blocks; ++b)
      for (const bool data : {false, true}) {
        restore(whole);
        const log_block there = *block_at(b);
        lose_block(old, b);
        (data ? block_at(b)->data : block_at(b)->metadata) = data ? there.data : there.metadata;
        expect_found({10},
                     "from line " + std::to_string(head) + ", block " + std::to_string(b - first));
      }
  }
}

TEST_F(run_log_test, does_not_return_a_commit_with_an_earlier_value_of_a_word) {
  for (const std::uint64_t head : heads())
    for (std::size_t which = 0; which < 12; ++which)
      for (const std::uint64_t changed : {std::uint64_t{1}, std::uint64_t{1} << 63}) {
        fresh(head);
        commit(10, words(5, 4));
        stored records = words(12, 5);
        const auto at = put(records);
        const auto before = log_content();
        records[which].data ^= changed;
        log_->rewrite(at[which], records[which]);
        log_->commit(11);
        ring_->publish();
        expect_found({10, 11}, "whole");
        lose_line(before, (at[which] - reinterpret_cast<log_place>(ring_->bytes())) / line_size);
        expect_found({10}, "from line " + std::to_string(head) + ", word " + std::to_string(which));
      }
}

// Media has each line of the aborted transaction as it was at some moment: a head may count fewer
// words than the next line has. Some values look like records.
TEST_F(run_log_test, steps_over_aborted_runs_whatever_moment_each_line_is_of) {
  base::rng random(6);
  for (const std::uint64_t interval : {4u, 16u, 64u, 1024u})
    for (const std::uint64_t head : heads())
      for (int trial = 0; trial < 12; ++trial) {
        abort_interval_ = interval;
        fresh(head);
        const std::uint64_t first = ring_->tail();
        const stored records = mixture(random(), 1 + random.below(random.below(2) * 150 + 20));
        std::vector<content> moments = {log_content()};
        log_->begin();
        for (const block_record& r : records) {
          put(r);
          if (random.below(4) == 0) moments.push_back(log_content());
        }
        const auto before = log_content();
        const std::uint64_t end = log_->abort();
        commit(11, mixture(random(), 3));
        commit(12, words(6, 7));
        const auto after = log_content();
        for (std::uint64_t l = first; l + 1 < end; ++l) {
          const std::uint64_t at = l % ring_->capacity_lines() * line_size;
          const bool holds_abort =
              std::memcmp(before.data() + at, after.data() + at, line_size) != 0;
          if (!holds_abort) lose_line(moments[random.below(moments.size())], l);
        }
        expect_found({11, 12}, "from line " + std::to_string(head) + ", interval " +
                                   std::to_string(interval) + ", trial " + std::to_string(trial));
      }
}

// No later transaction depends on it. A reader must not take its words for records, or for damage.
TEST_F(run_log_test, finds_nothing_in_a_transaction_that_did_not_end) {
  base::rng random(7);
  for (const std::uint64_t head : heads())
    for (int trial = 0; trial < 60; ++trial) {
      fresh(head);
      commit(10, words(5, 4));
      const std::uint64_t first = ring_->tail();
      std::vector<content> moments = {log_content()};
      log_->begin();
      for (const block_record& r : mixture(random(), 1 + random.below(120))) {
        put(r);
        if (random.below(3) == 0) moments.push_back(log_content());
      }
      const std::uint64_t lines = log_->lines_used();
      for (std::uint64_t l = first; l < first + lines; ++l)
        lose_line(moments[random.below(moments.size())], l);
      expect_found({10}, "from line " + std::to_string(head) + ", trial " + std::to_string(trial));
      restore(moments.back());
      log_->abort();
    }
}

// Lines that media lacks hold records of earlier laps: of an even number of laps before, with torn
// bits that look right a lap later.
TEST_F(run_log_test, reads_nothing_of_earlier_laps_into_holes) {
  base::rng random(9);
  for (std::uint64_t txid = 1; txid <= 400; ++txid) {
    truncate(committed_end_ = ring_->tail());  // media has all lines before the head
    const auto old = log_content();
    std::vector<std::uint64_t> may_be_lost;
    for (std::uint64_t aborts = random.below(3); aborts != 0; --aborts) {
      const std::uint64_t first = ring_->tail(), end = abort(mixture(random(), random.below(40)));
      for (std::uint64_t l = first; l + 1 < end && l + 1 - first < default_abort_interval / 4; ++l)
        may_be_lost.push_back(l);
    }
    commit(txid, mixture(random(), 1 + random.below(30)));
    const std::uint64_t tail = ring_->tail();
    put(mixture(random(), 1 + random.below(30)));
    if (random.below(2) == 0) log_->commit(txid + 1);
    const auto whole = log_content();
    for (std::uint64_t l = tail; l < tail + log_->lines_used(); ++l)
      if (l == tail || random.below(2) == 0) lose_line(old, l);
    for (const std::uint64_t l : may_be_lost)
      if (random.below(2) == 0) lose_line(old, l);
    expect_found({txid}, "transaction " + std::to_string(txid));
    restore(whole);
    ring_->publish();
    if (ring_->tail() == tail) log_->abort();
  }
  EXPECT_GT(ring_->tail(), 20 * ring_->capacity_lines());
}

TEST_F(run_log_test, calls_a_run_of_another_shape_an_error) {
  for (const std::uint64_t further : {0u, 5u, 6u, 7u}) {
    fresh(0);
    put({word(9, 1), word(0, 1), word(1, 2), word(2, 3)});
    log_->commit(5);
    ring_->publish();
    ASSERT_EQ(found(), txids{5});
    log_block& head = *block_at(1);
    head.metadata = (head.metadata & ~(std::uint64_t{7} << 16)) | further << 16;
    EXPECT_EQ(found(), std::nullopt) << further;
  }
}

// A long ring, so that aborted transactions of more blocks than the largest interval fit.
class abort_interval_test : public run_log_test {
 protected:
  abort_interval_test() { abort_interval_ = max_abort_interval; }
};

TEST_F(abort_interval_test, readers_look_as_far_as_the_largest_interval) {
  testing::memory_pool large(
      {.size = 2 << 20, .log_size = 128 << 10, .log_count = 1, .layout = ""});
  for (const bool runs : {false, true})
    for (const std::uint64_t interval : {4u, 8u, 64u, 512u, 1024u})
      for (const std::uint64_t blocks :
           {interval - 1, interval, interval + 1, 4 * interval, 4000ul}) {
        ring<media::adr> r(media_, large.file(), 0);
        std::memset(r.bytes(), 0, r.capacity_lines() * line_size);
        r.reset(0);
        block_log<media::adr> log(media_, r, large.file().header().id);
        log.configure(runs, interval);
        log.begin();
        const std::uint64_t from = large.file().header().chunks_offset;
        for (std::uint64_t i = 0; log.blocks() < std::min<std::uint64_t>(blocks, 4000); ++i)
          (void)log.append_word({block_kind::data, 0xFF, i, from + 8 * i});
        const content before(r.bytes(), r.bytes() + r.capacity_lines() * line_size);
        const std::uint64_t end = log.abort();
        for (std::uint64_t l = 0; l + 1 < end; ++l)  // media has the abort records and nothing else
          if (std::memcmp(before.data() + l * line_size, r.bytes() + l * line_size, line_size) == 0)
            std::memset(r.bytes() + l * line_size, 0, line_size);
        log.begin();
        (void)log.append_word({block_kind::data, 0xFF, 1, from});
        log.commit(5);
        r.publish();
        log_record record;
        std::uint64_t position = 0;
        const auto whole = read_block_record(large.file(), r.view(), position, no_end, record);
        ASSERT_TRUE(whole && *whole) << interval << ", " << blocks << " blocks, runs " << runs;
        EXPECT_EQ(record.txid, 5u);
      }
}

}  // namespace
}  // namespace stele::detail
