// Pool files with correct checksums that no program writes. Each once caused a signal, an abort, a
// hang or a pool that its next user lost. tests/fuzz found them; each test is named after its
// cause.
#include <format/heap_layout.h>
#include <format/log_block.h>
#include <lab_media/tape.h>
#include <stele/document.h>
#include <stele/kv.h>
#include <tests/regress/hostile.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace stele::testing {
namespace {

class hostile_pool : public hostile {
 protected:
  // The target of a store's reference: the word at `at` counts in units of 8 bytes from `base`.
  static std::uint64_t referred(image pool, std::uint64_t base, std::uint64_t at) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(base) +
                                      (static_cast<std::int64_t>(pool.word(at) << 20) >> 20) * 8);
  }
  static std::uint64_t root_of(image pool) { return pool.word(pool.header().home_offset); }
};

TEST_F(hostile_pool, a_hash_bucket_that_is_its_own_successor) {
  const image pool = start_with("default-closed");
  const std::uint64_t index = root_of(pool) + 8, bucket = referred(pool, index, index + 8);
  pool.put(bucket + 56, (bucket - index) / 8);
  EXPECT_EQ(refusal(), errc::corrupt);
}

TEST_F(hostile_pool, an_ordered_index_in_a_circle) {
  const image pool = start_with("default-closed");
  const std::uint64_t tree = root_of(pool) + 336, node = referred(pool, tree, tree);
  const unsigned byte_words[] = {1, 3, 6, 0};  // for each kind of node
  // Its first child is the node itself.
  pool.put(node + 24 + 8 * byte_words[pool.word(node) & 3], pool.word(tree));
  EXPECT_EQ(refusal(), errc::corrupt);
}

TEST_F(hostile_pool, a_record_longer_than_the_pool) {
  const image pool = start_with("default-closed");
  const std::uint64_t tree = root_of(pool) + 336;
  std::uint64_t record = referred(pool, tree, tree);  // a node; its first child may be one, too
  for (int i = 0; i < 4; ++i) record = referred(pool, tree, record + 32);
  const std::uint64_t index = root_of(pool) + 8, bucket = referred(pool, index, index + 8);
  for (unsigned slot = 0; slot < 7; ++slot)
    if (pool.word(bucket + 8 * slot) != 0) record = referred(pool, index, bucket + 8 * slot);
  pool.put(record, 0x3FFF'FFFF'0000'0005);
  EXPECT_EQ(refusal(), errc::corrupt);
  store();  // a caller that asks for it anyway gets an error
  auto opened = kv::open(path_, {.engine = {.media = "process", .verify = verification::never}});
  ASSERT_TRUE(opened) << opened.error().message;
  unsigned told = 0;
  for (int i = 0; i < 12; ++i) told += opened->get("key " + std::to_string(i)).has_value() ? 0 : 1;
  EXPECT_GE(told, 1u);
}

// Reads and changes of a store with contradictory content return errors. They were signals, endless
// walks or stores to any address.
class hostile_store : public hostile_pool {
 protected:
  static constexpr std::uint64_t link = (std::uint64_t{1} << 44) - 1;
  image start() {
    const image pool = start_with("default-closed");
    index_ = root_of(pool) + 8;
    tree_ = root_of(pool) + 336;
    return pool;
  }
  kv open() {
    store();
    auto opened = kv::open(
        path_,
        {.engine = {.media = "process", .verify = verification::never, .background = false}});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  std::uint64_t index_ = 0, tree_ = 0;
};

TEST_F(hostile_store, buckets_that_lie_outside_of_the_pool) {
  start().put(index_ + 8, 0x7FF'0000'0000);
  kv s = open();
  EXPECT_EQ(code_of(s.get("key 1")), errc::corrupt);
  EXPECT_EQ(code_of(s.put("key 1", "v")), errc::corrupt);
  EXPECT_EQ(code_of(s.size()), errc::corrupt);
}

TEST_F(hostile_store, buckets_that_lie_in_the_header) {
  const image pool = start();
  pool.put(index_ + 8, static_cast<std::uint64_t>(-static_cast<std::int64_t>(index_ / 8)) & link);
  kv s = open();
  EXPECT_EQ(code_of(s.put("new", "v")), errc::corrupt);
}

TEST_F(hostile_store, more_buckets_than_segments_can_have) {
  start().put(index_, std::uint64_t{1} << 60);
  kv s = open();
  for (int i = 0; i < 12; ++i) (void)s.get("key " + std::to_string(i));
  EXPECT_EQ(code_of(s.size()), errc::corrupt);
}

TEST_F(hostile_store, a_chain_that_is_read_on_and_on) {
  const image pool = start();
  const std::uint64_t first = referred(pool, index_, index_ + 8);
  for (std::uint64_t b = first; b < first + 8 * 64; b += 64)
    pool.put(b + 56, (b - index_) / 8 & link);
  kv s = open();
  EXPECT_EQ(code_of(s.get("not there")), errc::corrupt);
  EXPECT_EQ(code_of(s.size()), errc::corrupt);
}

TEST_F(hostile_store, a_record_whose_value_ends_behind_the_pool) {
  const image pool = start();
  const std::uint64_t first = referred(pool, index_, index_ + 8);
  for (std::uint64_t slot = first; slot < first + 8 * 64; slot += 8)
    if (slot % 64 != 56 && pool.word(slot) != 0)
      pool.put(referred(pool, index_, slot), 5 | std::uint64_t{1} << 61);
  kv s = open();
  EXPECT_EQ(code_of(s.get("key 1")), errc::corrupt);
  EXPECT_EQ(code_of(s.put("key 1", "v")), errc::corrupt);
}

// A node for each length of a key of a's leads to the next node and to a record. When it leads to
// the next node twice, the last one has 2^39 ways to it, and no circle.
TEST_F(hostile_store, an_ordered_index_whose_nodes_share_their_children) {
  std::filesystem::remove(path_);
  auto made = kv::open(path_, {.create_size = 1 << 20, .engine = {.media = "process"}});
  ASSERT_TRUE(made) << made.error().message;
  for (std::size_t length = 0; length < 41; ++length)
    ASSERT_TRUE(made->put(std::string(length, 'a') + 'b', "value"));
  ASSERT_TRUE(made->close());
  const image pool = start_with_own();
  const std::uint64_t tree = root_of(pool) + 336, is_record = std::uint64_t{1} << 44;
  std::uint64_t node = referred(pool, tree, tree);
  for (int level = 0; level < 39; ++level) {
    const std::uint64_t one = pool.word(node + 32), other = pool.word(node + 40);
    ASSERT_NE((one ^ other) & is_record, 0u);
    const std::uint64_t next = (one & is_record) != 0 ? other : one;
    const std::uint64_t at = (one & is_record) != 0 ? node + 40 : node + 32;
    pool.put(at == node + 32 ? node + 40 : node + 32, next);
    node = referred(pool, tree, at);
  }
  kv s = open();
  EXPECT_EQ(code_of(s.range({}, {}, 10'000'000)), errc::corrupt);
  EXPECT_EQ(code_of(s.statistics()), errc::corrupt);  // does not look at the order of keys
}

TEST_F(hostile_store, an_ordered_index_that_is_walked_on_and_on) {
  const image pool = start();
  const std::uint64_t node = referred(pool, tree_, tree_);
  for (std::uint64_t child = node + 32; child < node + 64; child += 8)
    pool.put(child, pool.word(tree_));
  kv s = open();
  EXPECT_EQ(code_of(s.range({}, {}, 100)), errc::corrupt);
  auto cursor = s.walk({}, {});
  EXPECT_EQ(code_of(cursor.next()), errc::corrupt);
}

TEST_F(hostile_store, an_ordered_index_that_leads_to_another_record) {
  const image pool = start();
  const std::uint64_t node = referred(pool, tree_, tree_);
  pool.put(tree_, pool.word(node + 32));  // the first child replaces all children
  kv s = open();
  unsigned told = 0;
  for (int i = 0; i < 5; ++i)
    told += code_of(s.erase("key " + std::to_string(i))) == errc::corrupt ? 1 : 0;
  EXPECT_GE(told, 1u);
}

TEST_F(hostile_store, a_node_of_no_kind) {
  const image pool = start();
  const std::uint64_t node = referred(pool, tree_, tree_);
  pool.put(node, pool.word(node) | 0xFF);
  kv s = open();
  EXPECT_EQ(code_of(s.put("key 9", "v")), errc::corrupt);
  EXPECT_EQ(code_of(s.range({}, {}, 100)), errc::corrupt);
}

TEST_F(hostile_pool, content_in_memory_that_the_heap_calls_free) {
  const image pool = start_with("default-closed");
  const auto h = pool.header();
  for (std::uint64_t i = 0; i < h.chunk_count; ++i) pool.put(h.table_offset + 8 * i, 0);
  EXPECT_EQ(refusal(), errc::corrupt);
}

TEST_F(hostile_pool, a_dict_whose_buckets_are_more_than_a_word_can_count) {
  const image pool = start_with("document");
  pool.put(root_of(pool) + 8, 0xFFFF'FFFF'FFFF'FF03);
  EXPECT_EQ(refusal(), errc::corrupt);
}

TEST_F(hostile_pool, a_document_deeper_than_a_stack) {
  std::filesystem::remove(path_);
  auto p = pool<document_dict>::open(path_, {.create_size = 8 << 20,
                                             .layout = std::string(document_layout),
                                             .engine = {.media = "process"}});
  ASSERT_TRUE(p);
  ASSERT_TRUE(p->update([](document_dict& d) {
    document_list* l = &d["deep"].make_list();
    for (int i = 0; i < 20'000; ++i) l = &l->append(0).make_list();
  }));
  ASSERT_TRUE(p->close());
  const auto text = content_text(path_);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, errc::unsupported) << text.error().message;
}

TEST_F(hostile_pool, a_session_of_logs_that_such_a_pool_cannot_have) {
  start_with("default-open").put(format::session_offset, format::session{true, 4}.pack());
  EXPECT_EQ(refusal(), errc::corrupt);
  for (const std::uint8_t kind :
       {std::uint8_t{6},
        std::uint8_t{7}}) {  // archapt may have been used in a pool without checksums over home
    start_with("default-open").put(format::session_offset, format::session{true, kind}.pack());
    EXPECT_EQ(refusal(), errc{}) << unsigned{kind};
  }
  start_with("log_structured-open").put(160, std::uint64_t{1} << 48);  // a home of 256 TiB
  EXPECT_EQ(refusal(), errc::corrupt);
}

TEST_F(hostile_pool, transaction_numbers_at_the_end_of_their_word) {
  start_with("default-closed").put(format::watermark_offset, format::guarded_limit - 1);
  EXPECT_EQ(refusal(), errc::corrupt);
  start_with("archapt-redo-open").put(format::parity_epoch_offset, 1);
  const image pool(bytes_);
  const auto h = pool.header();
  for (std::uint64_t at = h.parity_offset; at < h.home_offset; at += h.parity_block_size)
    pool.put(at + 8, ~std::uint64_t{0}), pool.put(at + 16, 1);
  EXPECT_EQ(refusal(), errc::corrupt);
}

// The first open made a root with that version, and the second refused the pool.
TEST_F(hostile_pool, a_layout_version_without_a_root) {
  const image pool = start_with("plain");
  const std::uint64_t home = pool.header().home_offset;
  for (const std::uint64_t field : {0, 8}) pool.put(home + field, 0);
  pool.put(home + 16, 77);
  store();
  for (int i = 0; i < 2; ++i) {
    auto opened = detail::open_path(path_, {.engine = {.media = "process", .background = false}});
    ASSERT_TRUE(opened) << opened.error().message;
    const auto handle = detail::pool_handle::from_runtime(std::move(*opened), 64);
    ASSERT_TRUE(handle) << handle.error().message;
  }
}

TEST_F(hostile_pool, a_chunk_table_in_chunks_that_are_free) {
  const image pool = start_with("grown");
  const auto h = *format::read_growth(bytes_.data(), pool.header().id);
  const std::uint64_t table =
      pool.header().chunks_offset + (h.table_chunk << pool.header().chunk_shift);
  pool.put(table + 8 * h.table_chunk, 0);
  EXPECT_EQ(refusal(), errc::corrupt);
}

TEST_F(hostile_pool, a_closed_log_with_a_record_still_to_come) {
  const image pool = start_with("default-closed");
  const std::uint64_t log = pool.header().log_offset;
  // The head is further back.
  pool.put(log, pool.word(log) & ((std::uint64_t{1} << 48) - 1) & ~std::uint64_t{0x7F});
  EXPECT_EQ(refusal(), errc::corrupt);
}

// A wrong saved map is ignored: the log itself says where home is.
TEST_F(hostile_pool, a_mapping_that_leads_behind_the_last_chunk) {
  const image pool = start_with("log_structured-closed");
  fuzz::write_file(path_, bytes_);
  const auto content = content_text(path_);
  ASSERT_TRUE(content);
  const std::uint64_t chunk =
      pool.header().log_offset +
      ((pool.word(format::saved_map_offset) & 0xFFFF) - 1) * pool.header().log_size;
  for (const std::uint64_t word :
       {pool.size() / 8 - 1, std::uint64_t{1} << 40, pool.header().log_offset / 8}) {
    pool.put(chunk + 64 + 24 + 8, word);
    store();
    EXPECT_EQ(content_text(path_).value_or("refused"), *content) << word;
  }
}

// Recovery called itself for each commit record whose checksum failed, and so went on through the
// ring.
TEST_F(hostile_pool, a_ring_full_of_commit_records_that_fail) {
  constexpr std::size_t size = 64 << 20, log_size = 16 << 20;
  storage::pool_geometry shape{.size = size, .log_size = log_size, .log_count = 1, .layout = ""};
  std::filesystem::remove(path_);
  ASSERT_TRUE(storage::pool_file::create(path_, shape));
  auto file = storage::pool_file::open(path_, storage::map_kind::shared);
  ASSERT_TRUE(file);
  const std::uint64_t id = file->header().id, log = file->header().log_offset;
  const auto put = [&](std::uint64_t offset, std::uint64_t value) {
    const std::uint64_t word = format::guard(value, id, offset);
    std::memcpy(file->base() + offset, &word, 8);
  };
  put(log, format::log_blocks_bit);
  put(format::session_offset, format::session{true, 3}.pack());
  for (std::uint64_t line = 0; line < log_size / 64 - 1; ++line)
    for (unsigned i = 0; i < 4; ++i) {
      const auto block =
          format::pack({.kind = i == 0 ? format::block_kind::commit : format::block_kind::data,
                        .mask = 0,
                        .data = i == 0 ? line + 1 : 0,
                        .address = 0},
                       true);
      std::memcpy(file->base() + log + 64 + line * 64 + i * 16, &block, sizeof block);
    }
  file->unlock();
  EXPECT_TRUE(detail::check_pool(path_)) << "no transaction has committed";
  std::filesystem::remove(path_);
}

TEST(hostile_tape, an_access_that_is_longer_than_its_pool) {
  const auto tape = media::tape_writer::to_memory({.pool_size = 8192,
                                                   .home_offset = 4096,
                                                   .log_offset = 0,
                                                   .log_size = 0,
                                                   .record_bytes = false});
  tape->event(media::tape_op::stream, 0, 4096, 0xFFFF'FFFF);
  ASSERT_TRUE(tape->finish());
  auto reader = media::tape_reader::from_memory(tape->memory());
  ASSERT_TRUE(reader);
  const auto event = reader->next();
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, errc::corrupt);
}

}  // namespace
}  // namespace stele::testing
