// Pools that a program older than 2026-11-28 has left with wrong checksums after it had grown them
// twice: repair gives these checksums up, salvage loses nothing, and none is left to become wrong.
#include <pool/block_checksums.h>
#include <stele/kv.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>

#include <filesystem>
#include <fstream>

namespace stele::testing {
namespace {

// Of a pool whose last chunk ends almost a chunk before its end.
std::size_t size_with_room() {
  constexpr std::size_t page = 4096;
  const auto h = *storage::pool_file::make_header({.size = 4 << 20, .layout = "", .sums = true});
  return h.chunks_end() + (std::size_t{1} << h.chunk_shift) - page;
}

class left_by_an_older_program : public ::testing::Test {
 protected:
  // A full pool that has grown twice: the chunk where it first grew is free.
  void SetUp() override {
    fill({.create_size = size_with_room(), .engine = {.media = "process"}});
    auto store = kv::open(path(), {.engine = {.media = "process"}});
    ASSERT_TRUE(succeeds(store));
    for (unsigned growth = 0; growth < 2; ++growth)
      ASSERT_TRUE(succeeds(store->grow(store->space().size_bytes + 1)));
    ASSERT_TRUE(succeeds(store->close()));
  }
  // Puts items until the pool has no free chunk.
  void fill(const pool_options& options = {.engine = {.media = "process"}}) {
    auto store = kv::open(path(), options);
    ASSERT_TRUE(succeeds(store));
    for (const std::size_t bytes : {60'000, 9'000, 400})
      while (put(*store, bytes)) {
      }
    ASSERT_TRUE(succeeds(store->close()));
  }
  bool put(kv& store, std::size_t bytes) {
    const bool done =
        store.put("key " + std::to_string(items_), std::string(bytes, 'v')).has_value();
    items_ += done ? 1 : 0;
    return done;
  }
  std::string path() const { return dir_.file("pool"); }

  // Changes the checksum of each block of the first tail for which `which` says so.
  void write_checksums(
      const std::function<std::optional<std::uint64_t>(const storage::block_checksums&,
                                                       std::uint64_t block, bool used)>& word) {
    const auto copy = storage::pool_file::open_copy(path());
    ASSERT_TRUE(succeeds(copy));
    const auto& h = copy->header();
    const storage::block_checksums sums(*copy);
    const storage::heap heap(*copy);
    const auto tail = sums.first_tail();
    ASSERT_LT(tail.first, tail.end);
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t block = tail.first; block < tail.end; block += format::checksum_block_size) {
      const auto chunk = heap.descriptor((block - h.chunks_offset) >> h.chunk_shift);
      ASSERT_TRUE(succeeds(chunk));
      const auto put = word(sums, block, chunk->kind != format::chunk_kind::free);
      if (!put) continue;
      file.seekp(sums.slot(block) - copy->base());
      file.write(reinterpret_cast<const char*>(&*put), sizeof *put);
      ++changed_;
    }
  }
  void make_checksums_wrong() {
    fill();
    write_checksums([](const storage::block_checksums& sums, std::uint64_t block,
                       bool used) -> std::optional<std::uint64_t> {
      if (!used) return std::nullopt;
      return sums.compute(block) + 0x123456789;
    });
    ASSERT_NE(changed_, 0u) << "the pool uses the chunk";
  }
  void expect_whole() const {
    auto store = kv::open(path(), {.engine = {.media = "process", .verify = verification::always}});
    ASSERT_TRUE(succeeds(store));
    EXPECT_EQ(*store->size(), items_);
    EXPECT_TRUE(succeeds(store->check()));
  }
  scratch_directory dir_;
  std::size_t changed_ = 0, items_ = 0;
};

TEST_F(left_by_an_older_program, wrong_checksums_are_said_and_given_up_by_repair) {
  make_checksums_wrong();
  const auto refused = kv::open(path(), {.engine = {.media = "process"}});
  ASSERT_TRUE(fails_with(refused, errc::corrupt));
  EXPECT_NE(refused.error().message.find("--repair"), std::string::npos) << refused.error().message;
  std::vector<storage::repair_step> steps;
  ASSERT_TRUE(succeeds(detail::repair_pool(path(), steps)));
  ASSERT_FALSE(steps.empty());
  EXPECT_NE(steps[0].what.find("taken as it is"), std::string::npos) << steps[0].what;
  EXPECT_TRUE(std::filesystem::exists(steps[0].saved_page));
  expect_whole();
  steps.clear();
  EXPECT_TRUE(succeeds(detail::repair_pool(path(), steps)));
  EXPECT_TRUE(steps.empty()) << "once";
}

TEST_F(left_by_an_older_program, wrong_checksums_beside_damage_are_left_as_they_are) {
  make_checksums_wrong();
  const auto h = *storage::pool_file::peek(path());
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(
        static_cast<std::streamoff>(h.chunks_offset + (h.chunk_count / 4 << h.chunk_shift) + 99));
    file.put('\xee');
  }
  std::vector<storage::repair_step> steps;
  EXPECT_TRUE(fails_with(detail::repair_pool(path(), steps), errc::corrupt));
  EXPECT_TRUE(steps.empty());
}

TEST_F(left_by_an_older_program, wrong_checksums_lose_no_item_of_a_salvage) {
  make_checksums_wrong();
  const std::string saved = dir_.file("saved");
  const auto outcome = run_command("pool check " + path() + " --salvage " + saved);
  auto store = kv::open(saved, {.engine = {.media = "process", .verify = verification::always}});
  ASSERT_TRUE(succeeds(store)) << outcome.said;
  EXPECT_EQ(*store->size(), items_) << outcome.said;
  EXPECT_NE(outcome.said.find("first grew"), std::string::npos) << outcome.said;
}

// What is free there counts as never written, and is not zero.
TEST_F(left_by_an_older_program, free_blocks_are_unknown_before_they_are_in_use_again) {
  write_checksums([](const storage::block_checksums&, std::uint64_t,
                     bool used) -> std::optional<std::uint64_t> {
    return used ? std::nullopt : std::optional(format::block_checksum_never_written);
  });
  ASSERT_NE(changed_, 0u) << "the chunk is free";
  fill();
  EXPECT_TRUE(succeeds(detail::check_pool(path())));
  expect_whole();
}

}  // namespace
}  // namespace stele::testing
