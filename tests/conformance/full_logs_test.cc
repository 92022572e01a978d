// Records as long as a log, a line shorter and a line longer, on every mechanism. Where the length
// is reached follows from the counter of spilled records, not from a mechanism's form of records.
// After each commit the pool is copied as a kill would leave it, and opened.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

struct many {
  field<std::uint64_t> words[768];
};

class full_logs : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  pool_options options() const {
    auto o = setting{std::get<0>(GetParam()), std::get<1>(GetParam())}.options();
    o.engine.log_size = 4096, o.engine.log_count = 1;
    return o;
  }
  static void store(pool<many>& p, std::uint64_t count) {
    ASSERT_TRUE(succeeds(p.update([&](many& m) {
      for (std::uint64_t i = 0; i < count; ++i) m.words[i] = count * 1000 + i;
    })));
  }
  // The words of the update with the fewest stores whose record outgrows an empty log.
  std::uint64_t first_that_spills() {
    auto p = open_pool<many>(dir_.file("first"), options());
    const auto before = p.counters().log_spills;  // the zeroes of the new root
    for (std::uint64_t count = 1; count <= std::size(many{}.words); ++count) {
      store(p, count);
      if (HasFatalFailure() || p.counters().log_spills != before) return count;
    }
    return 0;
  }
  static void expect_stored(const std::string& path, const pool_options& options,
                            std::uint64_t count) {
    const auto p = open_pool<many>(path, options);
    const auto wrong = p.read([&](const many& m) {
      std::uint64_t n = 0;
      for (std::uint64_t i = 0; i < count; ++i) n += m.words[i] != count * 1000 + i;
      return n;
    });
    EXPECT_EQ(wrong.value_or(~0u), 0u) << count;
  }
  scratch_directory dir_;
};

TEST_P(full_logs, are_whole_after_a_kill_with_a_line_more_and_less) {
  const std::uint64_t first = first_that_spills();
  ASSERT_GT(first, 16u);
  auto p = open_pool<many>(dir_.file("pool"), options());
  for (std::uint64_t count = first - 16; count < first + 16; ++count) {
    const auto before = p.counters().log_spills;
    store(p, count);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(p.counters().log_spills - before, count < first ? 0u : 1u) << count;
    const std::string killed = dir_.file("killed");
    std::filesystem::copy_file(dir_.file("pool"), killed,
                               std::filesystem::copy_options::overwrite_existing);
    expect_stored(killed, options(), count);
  }
}

std::vector<std::string> mechanisms_that_spill() {
  auto names = all_mechanisms();
  std::erase_if(names, [](const std::string& name) { return !spills(name); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(all, full_logs,
                         ::testing::Combine(::testing::ValuesIn(mechanisms_that_spill()),
                                            ::testing::Values("process", "file")),
                         setting_name);

}  // namespace
}  // namespace stele::testing
