// Pools that another mechanism has made, opened with archapt. They have no parity blocks, and were
// allowed to grow: what archapt keeps of each matrix of home had the earlier size, and stores
// behind it went anywhere. Its list of matrices had no room at all, so that a truncation allocated.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

constexpr std::size_t lines = 4096;
struct grown_root {
  using pool_resident = void;
  field<std::uint64_t> words[lines * 8];
};

class grown_under_archapt : public ::testing::TestWithParam<std::string> {
 protected:
  pool_options options(const std::string& mechanism) const {
    return {.create_size = 1 << 20,
            .engine = {.mechanism = mechanism,
                       .media = "process",
                       .log_size = 16384,
                       .log_count = 2,
                       .background = false}};
  }
  static void fill(pool<grown_root>& p, std::uint64_t with) {
    for (std::size_t from = 0; from < lines; from += 16)
      ASSERT_TRUE(succeeds(p.update([&](grown_root& r) {
        for (std::size_t i = from; i < from + 16; ++i) r.words[i * 8] = with;
      })));
  }
  static std::uint64_t sum(const pool<grown_root>& p) {
    return p
        .read([](const grown_root& r) {
          std::uint64_t s = 0;
          for (std::size_t i = 0; i < lines; ++i) s += r.words[i * 8];
          return s;
        })
        .value_or(0);
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
};

TEST_P(grown_under_archapt, is_refused_and_nothing_is_changed) {
  fill(*std::make_unique<pool<grown_root>>(open_pool<grown_root>(path_, options("default"))), 1);
  auto wants = options(GetParam());
  wants.max_size = 64 << 20;
  EXPECT_TRUE(fails_with(pool<grown_root>::open(path_, wants), errc::unsupported));
  {
    auto p = open_pool<grown_root>(path_, options(GetParam()));
    EXPECT_TRUE(fails_with(p.grow(4 << 20), errc::unsupported));
    fill(p, 2);  // truncates many times
    EXPECT_EQ(sum(p), 2 * lines);
    EXPECT_TRUE(succeeds(p.check()));
  }
  auto p = open_pool<grown_root>(path_, options("default"));
  EXPECT_TRUE(succeeds(p.grow(4 << 20)));
  EXPECT_EQ(sum(p), 2 * lines);
}

INSTANTIATE_TEST_SUITE_P(of, grown_under_archapt, ::testing::Values("archapt-undo", "archapt-redo"),
                         plain_name);

}  // namespace
}  // namespace stele::testing
