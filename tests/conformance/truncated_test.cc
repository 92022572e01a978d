// A pool file is truncated while it is open. The next call must return an error that says so, or a
// right answer; never a signal, an abort or a wrong answer. This holds for every call of a pool,
// every mechanism, and lengths from 0 to all but a page.
#include <stele/hash_map.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <filesystem>

namespace stele::testing {
namespace {

struct root {
  using pool_resident = void;
  hash_map<std::uint64_t, std::uint64_t> numbers;
  field<std::uint64_t> sum;
};
constexpr std::uint64_t count = 3000, whole_sum = count * (count - 1) / 2;

// A call with must_refuse false may succeed when it does not touch the missing part.
struct next_call {
  const char* name;
  bool must_refuse;
  result<> (*make)(pool<root>& p, const std::string& path);
};

result<std::uint64_t> sum_of(pool<root>& p) {
  return p.read([](const root& r) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      if (auto found = r.numbers.find(i); found != r.numbers.end()) sum += found->second;
    return sum;
  });
}
result<> read_all(pool<root>& p) {
  const auto sum = sum_of(p);
  if (!sum) return std::unexpected(sum.error());
  EXPECT_EQ(*sum, whole_sum) << "a wrong answer";
  return {};
}

constexpr next_call calls[] = {
    {"read", false, [](pool<root>& p, const std::string&) { return read_all(p); }},
    {"update", false,
     [](pool<root>& p, const std::string&) {
       return p.update([](root& r) { r.numbers.insert_or_assign(7, 7); });
     }},
    {"update of all", false,
     [](pool<root>& p, const std::string&) {
       return p.update([](root& r) {
         for (std::uint64_t i = 0; i < count; ++i) r.numbers.insert_or_assign(i, i);
       });
     }},
    {"insert", false,
     [](pool<root>& p, const std::string&) {
       return p.update([](root& r) {
         for (std::uint64_t i = count; i < 2 * count; ++i) r.numbers.insert(i, 0);
       });
     }},
    {"erase", false,
     [](pool<root>& p, const std::string&) {
       return p.update([](root& r) {
         for (std::uint64_t i = 0; i < count; ++i) r.numbers.erase(i);
       });
     }},
    {"ordered update", false,
     [](pool<root>& p, const std::string&) {
       return p.update([](root& r) { r.sum += 0; }, durability::ordered);
     }},
    {"sync", false, [](pool<root>& p, const std::string&) { return p.sync(); }},
    {"wait", false, [](pool<root>& p, const std::string&) { return p.wait(p.committed()); }},
    {"space", false,
     [](pool<root>& p, const std::string&) -> result<> { return (void)p.space(), result<>{}; }},
    {"counters", false,
     [](pool<root>& p, const std::string&) -> result<> { return (void)p.counters(), result<>{}; }},
    {"grow", true,
     [](pool<root>& p, const std::string&) { return p.grow(p.space().size_bytes + (1 << 20)); }},
    {"backup", true,
     [](pool<root>& p, const std::string& path) { return p.backup(path + ".copy"); }},
    {"check", true, [](pool<root>& p, const std::string&) { return p.check(); }},
    {"close", true, [](pool<root>& p, const std::string&) { return p.close(); }},
};

using setting_of_truncation = std::tuple<std::string, std::string>;
class truncated : public ::testing::TestWithParam<setting_of_truncation> {
 protected:
  static constexpr std::size_t size = 512 << 10;
  pool_options options() const {
    return {.create_size = size,
            .engine = {.mechanism = std::get<0>(GetParam()), .media = std::get<1>(GetParam())}};
  }
  void make(const std::string& path) const {
    auto p = open_pool<root>(path, options());
    for (std::uint64_t from = 0; from < count; from += 100)
      ASSERT_TRUE(succeeds(p.update([&](root& r) {
        for (std::uint64_t i = from; i < from + 100; ++i) r.numbers.insert(i, i);
      })));
    ASSERT_TRUE(succeeds(p.close()));
  }
  // Ends in the header, logs and home of this mechanism's pools, and a page before the end.
  std::vector<std::size_t> lengths(const std::string& path) const {
    const auto h = storage::pool_file::peek(path).value();
    const std::size_t log = h.log_offset + h.log_size,
                      home = std::min<std::size_t>(h.home_offset, h.size / 2);
    return {0, 100, 4096, log - 2048, home + 4096, (home + size) / 2, size - 4096};
  }
  scratch_directory dir_;
};

TEST_P(truncated, files_are_errors_of_the_next_call_and_no_signal) {
  const std::string made = dir_.file("made"), path = dir_.file("pool");
  make(made);
  for (const std::size_t left : lengths(made))
    for (const next_call& next : calls) {
      SCOPED_TRACE(std::string(next.name) + " when " + std::to_string(left) + " bytes are left");
      std::filesystem::remove(path + ".copy");
      std::filesystem::copy_file(made, path, std::filesystem::copy_options::overwrite_existing);
      child user([&](const word_sender&) {
        auto p = open_pool<root>(path, options());
        ASSERT_TRUE(succeeds(p.update([](root& r) { r.sum = whole_sum; })));
        ASSERT_TRUE(succeeds(p.update([](root& r) { r.sum += 0; }, durability::ordered)));
        std::filesystem::resize_file(path, left);
        const auto outcome = next.make(p, path);
        EXPECT_TRUE(!outcome || !next.must_refuse) << "it was accepted";
        EXPECT_TRUE(outcome || !outcome.error().message.empty());
        EXPECT_FALSE(std::filesystem::exists(path + ".copy"));
        EXPECT_TRUE(std::string_view(next.name) == "close" || !p.close()) << "it was closed";
      });
      ASSERT_EQ(user.wait(), 0);
      const auto opened = pool<root>::open(path, options());
      EXPECT_FALSE(opened) << "what is left of it was opened";
    }
}

INSTANTIATE_TEST_SUITE_P(on, truncated,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::Values("adr", "process", "file")),
                         setting_name);

}  // namespace
}  // namespace stele::testing
