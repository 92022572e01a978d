// Snapshots of pages have a bounded number of places, and each one that has a place keeps pages.
#include <gtest/gtest.h>
#include <tx/session/page_snapshots.h>

#include <memory>
#include <vector>

namespace stele::detail {
namespace {

constexpr std::uint64_t page_bytes = page_snapshot::page_size;

class noting final : public page_snapshot {
 public:
  noting() : page_snapshot(4 * page_bytes) { include_pages(0, 4 * page_bytes); }
  std::vector<std::uint64_t> kept;

 private:
  void copy_before_store(std::uint64_t offset) noexcept override { kept.push_back(offset); }
};

TEST(page_snapshots, keep_a_page_once_each_while_they_have_a_place) {
  page_snapshots all;
  EXPECT_FALSE(all.any());
  noting early, late;
  all.add(early);
  all.keep(page_bytes);
  all.add(late);
  all.keep(page_bytes);
  all.keep(3 * page_bytes);
  EXPECT_EQ(early.kept, (std::vector<std::uint64_t>{page_bytes, 3 * page_bytes}));
  EXPECT_EQ(late.kept, early.kept);
  all.remove(early);
  EXPECT_TRUE(all.any());
  all.keep(0);
  EXPECT_EQ(early.kept.size(), 2u);
  EXPECT_EQ(late.kept.size(), 3u);
  all.remove(late);
  EXPECT_FALSE(all.any());
}

TEST(page_snapshots, have_a_place_for_each_moment_and_one_for_a_backup) {
  page_snapshots all;
  std::vector<std::unique_ptr<noting>> held;
  while (all.has_place()) {
    held.push_back(std::make_unique<noting>());
    all.add(*held.back());
  }
  EXPECT_EQ(held.size(), page_snapshots::max_moments + 1);
  all.remove(*held[3]);
  EXPECT_TRUE(all.has_place());
  all.add(*held[3]);
  EXPECT_FALSE(all.has_place());
}

TEST(page_snapshots, a_moment_that_is_refused_takes_no_place) {
  page_snapshots all;
  for (unsigned i = 0; i < page_snapshots::max_moments; ++i) EXPECT_TRUE(all.reserve_moment());
  EXPECT_FALSE(all.reserve_moment());
  EXPECT_EQ(all.moments(), page_snapshots::max_moments);
  all.return_moment();
  EXPECT_TRUE(all.reserve_moment());
}

}  // namespace
}  // namespace stele::detail
