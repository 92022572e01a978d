// A pool grows twice and uses again what held the former chunk table and checksum array. Their
// blocks counted as never written, so the pool was refused as damaged after a clean close.
#include <pool/block_checksums.h>
#include <stele/kv.h>
#include <tests/conformance/command.h>
#include <tests/conformance/exercise.h>
#include <tx/inspect.h>

#include <set>

namespace stele::testing {
namespace {

constexpr std::size_t page = 4096;

pool_options options_for(std::size_t size, const std::string& media = "process") {
  return {.create_size = size,
          .engine = {.media = media,
                     .log_size = 4096,
                     .log_count = 2,
                     .block_checksums = checksums::on,
                     .verify = verification::always}};
}

// Sizes at which the place behind the last chunk begins or ends, and at which the checksum array
// gets one block more, each with a page less and a page more.
std::set<std::size_t> sizes_near(std::size_t base) {
  const auto h = *storage::pool_file::make_header(
      {.size = base, .log_size = 4096, .log_count = 2, .layout = "", .sums = true});
  constexpr std::size_t spoken_for = format::checksum_block_size / 8 * format::checksum_block_size;
  const std::size_t chunk = std::size_t{1} << h.chunk_shift;
  std::set<std::size_t> sizes;
  const auto add = [&](std::size_t from, std::size_t unit) {
    const std::size_t edge = from + (base - from) / unit * unit;
    for (const std::size_t size : {edge - page, edge - 1, edge, edge + page, edge + unit - page})
      sizes.insert(std::max(size, base));
  };
  add(h.chunks_offset, chunk);
  add(h.home_offset, spoken_for);
  for (std::size_t slack = page; slack < chunk; slack += page)
    sizes.insert(h.chunks_offset + (h.chunk_count << h.chunk_shift) + slack);
  return sizes;
}

// Puts texts until the pool is full, so that it has no free chunk.
void fill(pool<texts_root>& p, std::uint64_t& n) {
  result<> put;
  for (; put; n += put.has_value() ? 1 : 0) put = p.update([&](texts_root& r) { put_text(r, n); });
  ASSERT_EQ(put.error().code, errc::full) << put.error().message;
}

void grow_and_fill(pool<texts_root>& p, std::uint64_t& n, std::size_t by) {
  ASSERT_TRUE(succeeds(p.grow(p.space().size_bytes + by)));
  fill(p, n);
  ASSERT_TRUE(succeeds(p.check()));
}

class grown_again : public ::testing::TestWithParam<std::tuple<std::size_t, std::string>> {
 protected:
  template <class Body>
  void for_each_size(Body&& body) {
    for (const std::size_t size : sizes_near(std::get<0>(GetParam()))) {
      SCOPED_TRACE(size);
      const std::string path = dir_.file("pool");
      body(path, options_for(size, std::get<1>(GetParam())));
      if (HasFatalFailure()) return;
      std::filesystem::remove(path);
    }
  }
  scratch_directory dir_;
};

TEST_P(grown_again, pool_is_sound_after_a_clean_close) {
  for_each_size([](const std::string& path, const pool_options& options) {
    std::uint64_t n = 0;
    for (const std::size_t by : {std::size_t{1}, options.create_size / 2}) {
      auto p = open_pool<texts_root>(path, options);
      fill(p, n);
      for (unsigned growth = 0; growth < 3; ++growth) grow_and_fill(p, n, by);
      ASSERT_TRUE(succeeds(p.close()));
      ASSERT_TRUE(succeeds(detail::check_pool(path)));
    }
    ASSERT_EQ(expect_whole(path, options, {.acknowledged = n, .tried = n}), n);
  });
}

// The former array is in use again in a later session only.
TEST_P(grown_again, pool_is_sound_after_a_session_that_only_grew) {
  for_each_size([](const std::string& path, const pool_options& options) {
    std::uint64_t n = 0;
    for (unsigned session = 0; session < 2; ++session) {
      {
        auto p = open_pool<texts_root>(path, options);
        for (unsigned growth = 0; growth < 2; ++growth)
          ASSERT_TRUE(succeeds(p.grow(p.space().size_bytes + 1)));
      }
      auto p = open_pool<texts_root>(path, options);
      fill(p, n);
      ASSERT_TRUE(succeeds(p.close()));
      ASSERT_TRUE(succeeds(detail::check_pool(path)));
    }
    ASSERT_EQ(expect_whole(path, options, {.acknowledged = n, .tried = n}), n);
  });
}

// The copy's own checksum array counts as what it was copied from.
TEST_P(grown_again, copy_of_a_grown_pool_is_sound) {
  for_each_size([](const std::string& path, const pool_options& options) {
    const std::string copy = path + ".copy";
    std::uint64_t n = 0;
    {
      auto p = open_pool<texts_root>(path, options);
      fill(p, n);
      grow_and_fill(p, n, options.create_size / 4);
      ASSERT_TRUE(succeeds(p.backup(copy)));
    }
    auto p = open_pool<texts_root>(copy, options);
    for (unsigned growth = 0; growth < 2; ++growth) grow_and_fill(p, n, 1);
    ASSERT_TRUE(succeeds(p.close()));
    ASSERT_TRUE(succeeds(detail::check_pool(copy)));
    ASSERT_EQ(expect_whole(copy, options, {.acknowledged = n, .tried = n}), n);
    std::filesystem::remove(copy);
  });
}

INSTANTIATE_TEST_SUITE_P(each, grown_again,
                         ::testing::Values(std::tuple{std::size_t{64} << 10, "process"},
                                           std::tuple{std::size_t{4} << 20, "process"},
                                           std::tuple{std::size_t{4} << 20, "adr"}),
                         [](const auto& one) {
                           return std::get<1>(one.param) + "_" +
                                  std::to_string(std::get<0>(one.param) >> 10) + "k";
                         });

// --- front ends ---

TEST(grown_again_by, a_full_store_and_the_command) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const std::size_t size = *std::next(sizes_near(4 << 20).begin(), 2);
  const std::string value(60'000, 'v');
  int items = 0;
  {
    auto store =
        kv::open(path, {.create_size = size, .max_size = 8 * size, .engine = {.media = "process"}});
    ASSERT_TRUE(succeeds(store));
    while (store->space().size_bytes < 3 * size)
      ASSERT_TRUE(succeeds(store->put("key " + std::to_string(items++), value)));
  }
  EXPECT_EQ(run_command("pool check " + path).status, 0);
  for (int more = 1; more <= 2; ++more)
    ASSERT_EQ(
        run_command("pool resize " + path + " --size " + std::to_string((3 + more) * size)).status,
        0);
  auto store = kv::open(path, {.engine = {.media = "process", .verify = verification::always}});
  ASSERT_TRUE(succeeds(store));
  while (store->put("key " + std::to_string(items), value)) ++items;
  EXPECT_EQ(*store->size(), static_cast<std::size_t>(items));
  ASSERT_TRUE(succeeds(store->close()));
  const auto checked = run_command("pool check " + path);
  EXPECT_EQ(checked.status, 0) << checked.said;
}

}  // namespace
}  // namespace stele::testing
