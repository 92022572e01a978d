// Logs with correct checksums that no program writes. Recovery refuses what it cannot replay, and
// reports that the pool is damaged.
#include <format/log_block.h>
#include <format/log_chunk.h>
#include <format/log_line.h>
#include <format/slot_log.h>
#include <tests/regress/hostile.h>

namespace stele::testing {
namespace {

using format::block_kind;
using format::log_type;
using format::record_kind;
using format::run_header;

class hostile_logs : public hostile {
 protected:
  static constexpr std::uint64_t txid = 1 << 20;  // above every watermark

  // Returns the first log, emptied.
  std::uint64_t empty_log(const std::string& name, std::uint64_t flags = 0) {
    const image pool = start_with(name);
    const auto h = pool.header();
    for (std::uint64_t at = h.log_offset; at < h.log_offset + h.log_size; at += 8) pool.put(at, 0);
    pool.put(h.log_offset, flags);
    return h.log_offset;
  }
  // Puts a record of these words, in lines. Unless `finished`, its last line is not marked as the
  // last.
  void put_record(std::uint64_t log, record_kind kind, const std::vector<std::uint64_t>& words,
                  bool finished = true) {
    for (std::size_t at = 0; at < words.size(); at += format::payload_words) {
      const std::size_t count = std::min<std::size_t>(words.size() - at, format::payload_words);
      format::log_line line{};
      std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(at), count, line.words.begin() + 1);
      const bool last = finished && at + count == words.size();
      format::seal(
          line,
          {.words = static_cast<std::uint8_t>(count), .first = at == 0, .last = last, .kind = kind},
          true);
      for (unsigned i = 0; i < 8; ++i)
        image(bytes_).put(log + 64 + at / format::payload_words * 64 + 8 * i, line.words[i]);
    }
  }
  errc refusal_of_record(record_kind kind, const std::vector<std::uint64_t>& words,
                         bool finished = true) {
    put_record(empty_log("redo-open"), kind, words, finished);
    return refusal();
  }
  errc refusal_of_blocks(const std::vector<format::block_record>& records) {
    const std::uint64_t log = empty_log("xil-open", format::log_blocks_bit);
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto block = format::pack(records[i], true);
      image(bytes_).put(log + 64 + 16 * i, block.data);
      image(bytes_).put(log + 64 + 16 * i + 8, block.metadata);
    }
    return refusal();
  }
  // The first block in a log of a log-structured pool.
  std::uint64_t first_block(log_type type) {
    const image pool = start_with("log_structured-open");
    const auto h = pool.header();
    for (std::uint64_t chunk = h.log_offset; pool.has(chunk, h.log_size); chunk += h.log_size)
      if (pool.word(chunk + 16) != 0 &&
          (pool.word(chunk + 8) & 0xFF) == static_cast<std::uint64_t>(type))
        return chunk + 64;
    ADD_FAILURE() << "there is no such log";
    return 0;
  }
};

TEST_F(hostile_logs, a_record_that_is_as_it_should_be_is_replayed) {
  const std::uint64_t home = start_with("redo-open").header().chunks_offset;
  EXPECT_EQ(refusal_of_record(record_kind::redo, {txid}), errc{}) << "of nothing";
  EXPECT_EQ(refusal_of_record(record_kind::redo, {txid, run_header{0, 0, 1}.pack(), 7}), errc{})
      << "what nothing weighed";
  const std::uint64_t same = start_with("redo-closed").word(home);
  EXPECT_EQ(refusal_of_record(record_kind::redo, {txid, run_header{home, 0xFF, 1}.pack(), same}),
            errc{});
}

TEST_F(hostile_logs, runs_that_are_not_in_home) {
  const auto h = start_with("redo-open").header();
  const std::vector<std::vector<std::uint64_t>> all = {
      {run_header{h.size - 8, 0xFF, 2}.pack(), 1, 2},       // over the pool's end
      {run_header{h.size, 0xFF, 1}.pack(), 1},              // behind the pool's end
      {run_header{h.home_offset - 8, 0xFF, 1}.pack(), 1},   // before home
      {run_header{h.chunks_offset, 0xFF, 0}.pack(), 1},     // of no word
      {run_header{h.chunks_offset, 0xFF, 3}.pack(), 1, 2},  // of more words than the record has
      {run_header{h.chunks_offset, 0x0F, 2}.pack(), 1, 2},  // parts of two words
      {run_header{h.chunks_offset, 0, 2}.pack(), 1, 2},     // of no byte
      {run_header{h.chunks_offset, 0, 1}.pack()},           // a checksum delta that is missing
      {run_header{0, 0, 2}.pack(), 1},                      // checksum deltas that are missing
      {run_header{0, 0xFF, 1}.pack(), 1},                   // over the pool's header
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::uint64_t> words = {txid};
    words.insert(words.end(), all[i].begin(), all[i].end());
    EXPECT_EQ(refusal_of_record(record_kind::redo, words), errc::corrupt) << i;
  }
}

TEST_F(hostile_logs, records_of_another_shape) {
  EXPECT_EQ(refusal_of_record(record_kind::redo_dependent, {txid}), errc::corrupt)
      << "the word before the runs is not there";
  EXPECT_EQ(refusal_of_record(static_cast<record_kind>(7), {txid}), errc::corrupt) << "of no kind";
  EXPECT_EQ(refusal_of_record(record_kind::redo, {format::txid_limit}), errc::corrupt)
      << "a TxID that no program draws";
  const std::uint64_t lines = start_with("redo-open").header().log_size / 64 - 1;
  EXPECT_EQ(
      refusal_of_record(record_kind::redo,
                        std::vector<std::uint64_t>(lines * format::payload_words, txid), false),
      errc::corrupt)
      << "all of its log, and no end";
}

TEST_F(hostile_logs, spilled_blocks_of_another_shape) {
  const format::block_record spill{.kind = block_kind::spill,
                                   .data = 0,
                                   .address = start_with("xil-open").header().chunks_offset},
      checksum{.kind = block_kind::spill_checksum},
      data{.mask = 0xFF, .data = 1, .address = spill.address},
      commit{.kind = block_kind::commit, .data = txid};
  EXPECT_EQ(refusal_of_blocks({spill, commit}), errc::corrupt);
  EXPECT_EQ(refusal_of_blocks({checksum, checksum, commit}), errc::corrupt);
  EXPECT_EQ(refusal_of_blocks({spill, spill, commit}), errc::corrupt);
  EXPECT_EQ(refusal_of_blocks({spill, checksum, data, commit}), errc::corrupt);
  EXPECT_EQ(refusal_of_blocks({spill, checksum, commit}), errc::corrupt)
      << "the checksum of nothing is not 0";
}

TEST_F(hostile_logs, commit_lines_that_lead_elsewhere) {
  const auto commit = [&](std::uint64_t offset, std::uint64_t words) {
    const image pool = start_with("base-open");
    const std::uint64_t line = pool.header().log_offset + format::slot_commit_offset(0);
    pool.put(line, txid);
    pool.put(line + 8, offset);
    pool.put(line + 16, words);
    return refusal();
  };
  const auto h = start_with("base-open").header();
  for (const std::uint64_t offset :
       {h.chunks_offset - 64, h.chunks_offset + 8, h.size, h.size + 64})
    EXPECT_EQ(commit(offset, 1), errc::corrupt) << offset;
  EXPECT_EQ(commit(h.chunks_offset, h.size), errc::corrupt);
  EXPECT_EQ(commit(h.chunks_offset, 0), errc{}) << "of nothing";
}

TEST_F(hostile_logs, entries_that_are_not_in_home) {
  const auto h = start_with("log_structured-open").header();
  for (const std::uint64_t offset :
       {h.home_offset - 8, h.offset_end(), h.offset_end() - 8, h.home_offset + 4}) {
    const std::uint64_t head = first_block(log_type::update) + 8 * format::preamble_words;
    auto e = format::entry_header::unpack(image(bytes_).word(head));
    e.offset = offset;
    image(bytes_).put(head, e.pack());
    EXPECT_EQ(refusal(), errc::corrupt) << offset;
  }
  const std::uint64_t head = first_block(log_type::deallocation) + 8 * format::preamble_words;
  auto e = format::entry_header::unpack(image(bytes_).word(head));
  e.words = 0;
  image(bytes_).put(head, e.pack());
  EXPECT_EQ(refusal(), errc::corrupt) << "of no word";
  const std::uint64_t block = first_block(log_type::update);
  image(bytes_).put(block, format::txid_limit);
  EXPECT_EQ(refusal(), errc::corrupt) << "a TxID that no program draws";
}

// Opening ignores the saved map and reads the log.
TEST_F(hostile_logs, a_mapping_that_crosses_regions) {
  const image pool = start_with("log_structured-closed");
  fuzz::write_file(path_, bytes_);
  const auto content = content_text(path_);
  ASSERT_TRUE(content);
  const std::uint64_t chunk = pool.header().log_offset +
                              ((pool.word(format::saved_map_offset) & 0xFFFF) - 1) *
                                  pool.header().log_size,
                      pair = chunk + 64 + 24;
  auto e = format::entry_header::unpack(pool.word(pair));
  e.offset += 8 * (format::region_words - 1), e.words = 2;
  pool.put(pair, e.pack());
  store();
  EXPECT_EQ(content_text(path_).value_or("refused"), *content);
}

// A chunk header that promises more than the chunk has, with a version that no program writes:
// nothing was lost, so the pool opens.
TEST_F(hostile_logs, a_chunk_without_blocks_that_begins_with_an_impossible_version) {
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{format::txid_limit}}) {
    const std::uint64_t block = first_block(log_type::update);
    const image pool(bytes_);
    const std::uint64_t size = pool.header().log_size, chunk = block - 64;
    for (std::uint64_t at = block; at < chunk + size; at += 8) pool.put(at, 0);
    pool.put(chunk + offsetof(format::chunk_header, first), first);
    pool.put(chunk + offsetof(format::chunk_header, end), 0);
    store();
    const auto opened = detail::open_path(
        path_,
        {.engine = {.media = "process", .verify = verification::never, .background = false}});
    EXPECT_TRUE(opened) << opened.error().message;
  }
}

}  // namespace
}  // namespace stele::testing
