// Pools that grow by themselves: a full one takes more up to max_size, beside other threads, on a
// full device and when its process is killed meanwhile.
#include <base/rng.h>
#include <signal.h>
#include <sys/resource.h>
#include <tests/conformance/child.h>
#include <tests/conformance/exercise.h>
#include <tx/inspect.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::size_t small = 384 << 10, large = 6 << 20;

bool keeps_its_size(const std::string& mechanism) {
  return mechanism == "log_structured" || mechanism.starts_with("archapt");
}

class growth : public ::testing::TestWithParam<std::string> {
 protected:
  pool_options options(concurrency policy = concurrency::stm,
                       const std::string& media = "adr") const {
    auto o = setting{GetParam(), media, policy}.options(small);
    o.max_size = large, o.engine.log_size = 4096, o.engine.log_count = 4;
    return o;
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
};

// Also where the size and max_size are whole chunks, and the place of the first chunk is not.
TEST_P(growth, of_large_pools_to_far_larger_ones) {
  if (keeps_its_size(GetParam())) return;
  auto o = setting{GetParam(), "process", concurrency::external}.options(std::size_t{64} << 20);
  o.max_size = std::size_t{1} << 40;
  auto p = open_pool<texts_root>(path_, o);
  const std::size_t before = p.space().size_bytes;
  while (p.space().size_bytes == before)
    ASSERT_TRUE(
        succeeds(p.update([](texts_root&) { detail::allocate(std::size_t{1} << 20, 64); })));
}

TEST_P(growth, of_a_full_pool_ends_at_its_largest_size) {
  const std::pair<concurrency, const char*> settings[] = {{concurrency::stm, "adr"},
                                                          {concurrency::single_writer, "file"},
                                                          {concurrency::external, "eadr"}};
  for (const auto& [policy, media] : settings) {
    const std::string path = dir_.file(media);
    const pool_options o = options(policy, media);
    if (keeps_its_size(GetParam())) {
      EXPECT_TRUE(fails_with(pool<texts_root>::open(path, o), errc::unsupported));
      EXPECT_FALSE(std::filesystem::exists(path));
      continue;
    }
    std::uint64_t n = 0;
    {
      auto p = open_pool<texts_root>(path, o);
      result<> put;
      for (; put; n += put.has_value()) put = p.update([&](texts_root& r) { put_text(r, n); });
      EXPECT_EQ(put.error().code, errc::full);
      EXPECT_NE(put.error().message.find("max_size"), std::string::npos) << put.error().message;
      EXPECT_LE(p.space().size_bytes, large);
      EXPECT_GT(p.space().size_bytes, large - large / 8);
      EXPECT_GT(p.space().used_bytes, large / 2);
      EXPECT_TRUE(fails_with(p.update([&](texts_root& r) { put_text(r, n); }), errc::full));
      EXPECT_TRUE(succeeds(p.check()));  // it truncates logs, which may free chunks of long records
    }
    EXPECT_EQ(expect_whole(path, o, {.acknowledged = n, .tried = n}), n);
    auto fixed = o;
    fixed.max_size = 0;
    auto p = open_pool<texts_root>(path, fixed);
    const std::size_t before = p.space().size_bytes;
    const std::uint64_t most = n + 100;  // opening has gathered free blocks
    result<> put;
    for (; put && n < most; ++n) put = p.update([&](texts_root& r) { put_text(r, n); });
    EXPECT_TRUE(fails_with(put, errc::full));
    EXPECT_EQ(p.space().size_bytes, before);
  }
}

TEST_P(growth, lets_threads_go_on_and_loses_nothing) {
  if (keeps_its_size(GetParam())) return;
  struct stacks {
    struct item {
      field<std::uint64_t> n;
      field<item*> next;
      field<std::uint64_t> filler[60];
    };
    field<item*> last[3];
  };
  constexpr std::uint64_t each = 2000;
  auto p = open_pool<stacks>(path_, options());
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t n = 0; n < each; ++n)
          EXPECT_TRUE(succeeds(p.update([&](stacks& s) {
            auto* const i = make<stacks::item>();
            i->n = n, i->next = s.last[t];
            s.last[t] = i;
          })));
      });
  }
  EXPECT_TRUE(succeeds(p.read([&](const stacks& s) {
    for (const auto& last : s.last) {
      std::uint64_t n = each;
      for (auto* i = last.load(); i != nullptr; i = i->next) EXPECT_EQ(i->n, --n);
      EXPECT_EQ(n, 0u);
    }
  })));
  EXPECT_TRUE(succeeds(p.check()));
}

TEST_P(growth, takes_an_object_and_a_transaction_larger_than_the_pool) {
  if (keeps_its_size(GetParam())) return;
  auto p = open_pool<texts_root>(path_, options());
  const std::string huge(1 << 20, 'x');
  EXPECT_TRUE(succeeds(p.update([&](texts_root& r) { r.texts.insert(1, huge); })));
  EXPECT_TRUE(succeeds(p.update([&](texts_root& r) {
    for (std::uint64_t n = 100; n < 2100; ++n) r.texts.insert(n, std::string(300, 'y'));
  })));
  EXPECT_TRUE(fails_with(
      p.update([&](texts_root& r) { r.texts.insert(2, std::string(large, 'z')); }), errc::full));
  EXPECT_TRUE(succeeds(p.read([&](const texts_root& r) {
    EXPECT_EQ(r.texts.size(), 2001u);
    EXPECT_TRUE(r.texts.at(1) == huge);
  })));
  EXPECT_TRUE(succeeds(p.check()));
}

TEST_P(growth, that_the_process_may_not_do_is_told_and_loses_nothing) {
  if (keeps_its_size(GetParam())) return;
  child limited([&](const word_sender& send) {
    auto p = open_pool<texts_root>(path_, options());
    const struct rlimit limit{small * 2, small * 2};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::uint64_t n = 0;
    result<> put;
    for (; put; n += put.has_value()) put = p.update([&](texts_root& r) { put_text(r, n); });
    EXPECT_EQ(put.error().code, errc::full);
    EXPECT_NE(put.error().message.find("it cannot grow"), std::string::npos) << put.error().message;
    EXPECT_TRUE(succeeds(p.check()));
    EXPECT_TRUE(succeeds(p.close()));
    send(::testing::Test::HasFailure() ? 0 : n);
  });
  const std::uint64_t n = limited.drain(0);
  ASSERT_NE(n, 0u);
  EXPECT_EQ(expect_whole(path_, options(), {.acknowledged = n, .tried = n}), n);
}

TEST_P(growth, cut_off_by_a_kill_loses_nothing_acknowledged) {
  if (keeps_its_size(GetParam()) || GetParam() == "none") return;
  const std::uint64_t seed = seed_from("STELE_SEED");
  base::rng random(seed);
  for (unsigned kill = 0; kill < 8; ++kill) {
    const std::string path = dir_.file(std::to_string(kill));
    const pool_options o = options(concurrency::stm, kill % 2 == 0 ? "adr" : "file");
    child writer([&](const word_sender& send) {
      auto p = open_pool<texts_root>(path, o);
      for (std::uint64_t n = 0;; ++n) {
        if (!p.update([&](texts_root& r) { put_text(r, n); })) return;
        send(n + 1);
      }
    });
    std::uint64_t acknowledged = 0;
    for (std::uint64_t until = 200 + random.below(4000);
         acknowledged < until && writer.receive(acknowledged);) {
    }
    acknowledged = writer.kill_and_drain(acknowledged);
    SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
    expect_whole(path, o, {.acknowledged = acknowledged, .tried = acknowledged + 1});
    EXPECT_TRUE(succeeds(detail::check_pool(path)));
  }
}

TEST(growth_limits, to_an_impossible_size_is_refused) {
  scratch_directory dir;
  EXPECT_TRUE(fails_with(
      pool<texts_root>::open(dir.file("pool"), {.create_size = small, .max_size = ~std::size_t{0}}),
      errc::invalid_argument));
  EXPECT_FALSE(std::filesystem::exists(dir.file("pool")));
}

INSTANTIATE_TEST_SUITE_P(each, growth, ::testing::ValuesIn(all_mechanisms()), plain_name);

}  // namespace
}  // namespace stele::testing
