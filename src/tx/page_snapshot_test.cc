// A snapshot holds the pages as they were when it began, while other threads store to them.
#include <gtest/gtest.h>
#include <tx/page_snapshot.h>

#include <cstring>
#include <thread>
#include <vector>

namespace stele::detail {
namespace {

constexpr std::uint64_t page = page_snapshot::page_size, pages = 512;

// A snapshot that copies the pages of `source` to `copy`.
class copying final : public page_snapshot {
 public:
  explicit copying(std::vector<std::uint64_t>& source)
      : page_snapshot(pages * page), copy(source.size()), source_(source) {}
  void copy_rest() {
    for (std::uint64_t p = 0; p < pages;) {
      const std::uint64_t count = claim_run(p, 3);
      for (std::uint64_t i = 0; i < count; ++i) copy_before_store((p + i) * page);
      mark_copied(p, count);
      p += std::max<std::uint64_t>(count, 1);
    }
  }
  std::vector<std::uint64_t> copy;
  std::atomic<unsigned> for_stores{0};

 private:
  void copy_before_store(std::uint64_t offset) noexcept override {
    ++for_stores;
    std::memcpy(copy.data() + offset / 8, source_.data() + offset / 8, page);
  }
  std::vector<std::uint64_t>& source_;
};

TEST(page_snapshot, has_what_was_there_when_it_began) {
  std::vector<std::uint64_t> words(pages * page / 8, 1);
  const auto before = words;
  copying snapshot(words);
  snapshot.include_pages(0, pages * page);
  std::vector<std::jthread> writers;
  for (unsigned t = 0; t < 2; ++t)  // each stores to every second word, so both use every page
    writers.emplace_back([&, t] {
      for (std::uint64_t w = t; w < words.size(); w += 2 * 37) {
        const std::uint64_t at = (w * 7919) % words.size() / 2 * 2 + t;
        snapshot.before_store(at * 8);
        words[at] = 2;
      }
    });
  snapshot.copy_rest();
  writers.clear();
  EXPECT_EQ(snapshot.copy, before);
  EXPECT_EQ(snapshot.for_stores.load(), pages) << "each page once";
  EXPECT_NE(words, before);
}

TEST(page_snapshot, leaves_pages_alone_that_it_does_not_expect) {
  std::vector<std::uint64_t> words(pages * page / 8, 1);
  copying snapshot(words);
  snapshot.include_pages(page, 2 * page);
  for (std::uint64_t p = 0; p < pages; ++p) snapshot.before_store(p * page);
  EXPECT_EQ(snapshot.for_stores.load(), 2u);
}

}  // namespace
}  // namespace stele::detail
