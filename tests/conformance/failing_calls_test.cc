// Every system call on a pool file fails in turn, once or from then on: an error comes back each time, and what was acknowledged is there
// when the pool is opened again.
#include <media/os.h>
#include <stele/hash_map.h>
#include <stele/string.h>
#include <tests/conformance/pools.h>

#include <filesystem>

namespace stele::testing {
namespace {

namespace os = media::os;

// Fails the k-th call, or that and all that follow.
class failing final : public os::watcher {
 public:
  failing(std::uint64_t k, bool for_good, int number) : k_(k), for_good_(for_good), number_(number) { os::watch(this); }
  ~failing() override { os::watch(nullptr); }
  int before(const os::request&) noexcept override {
    const std::uint64_t n = ++seen_;
    const bool fails = n == k_ || (for_good_ && n > k_);
    if (fails) hit_ = true;
    return fails ? number_ : 0;
  }
  bool hit() const { return hit_; }

 private:
  const std::uint64_t k_;
  const bool for_good_;
  const int number_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<bool> hit_{false};
};

struct root {
  using pool_resident = void;
  hash_map<std::uint64_t, string> texts;
};
std::string text(std::uint64_t n) { return std::string(40 + n % 200, static_cast<char>('a' + n % 26)); }

struct outcome {
  std::uint64_t acknowledged = 0, tried = 0;
};

// Opens, puts in order until something fails, grows, copies, closes. Whatever is refused must say so.
outcome use(const std::string& path, const pool_options& options) {
  outcome o;
  auto p = pool<root>::open(path, options);
  if (!p) {
    EXPECT_FALSE(p.error().message.empty());
    return o;
  }
  const auto held = p->read([](const root& r) { return r.texts.size(); });
  if (!held) return o;
  o.acknowledged = o.tried = *held;
  for (unsigned i = 0; i < 24; ++i) {
    const std::uint64_t n = o.tried;
    const auto put = p->update([&](root& r) { r.texts.insert(n, text(n)); });
    o.tried = n + 1;
    if (!put) break;
    o.acknowledged = n + 1;
  }
  (void)p->sync();
  (void)p->grow(p->space().size_bytes + (64 << 10));
  (void)p->backup(path + ".copy");
  (void)p->close();
  return o;
}

// What is there: all that was acknowledged, in order, and of the one in flight all or nothing.
void expect_whole(const std::string& path, const pool_options& options, const outcome& o) {
  auto p = pool<root>::open(path, options);
  if (!p && o.acknowledged == 0 && !std::filesystem::exists(path)) return;
  ASSERT_TRUE(holds(p));
  ASSERT_TRUE(holds(p->check()));
  const auto read = p->read([](const root& r) -> result<std::uint64_t> {
    if (auto sound = r.texts.check(); !sound) return std::unexpected(sound.error());
    for (std::uint64_t n = 0; n < r.texts.size(); ++n)
      if (auto found = r.texts.find(n); found == r.texts.end() || !found->second.equal(text(n))) return std::unexpected(error{errc::corrupt, "text " + std::to_string(n) + " is not what was put"});
    return r.texts.size();
  });
  ASSERT_TRUE(holds(read));
  EXPECT_GE(*read, o.acknowledged);
  EXPECT_LE(*read, std::max(o.tried, o.acknowledged));
}

class failing_calls : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(failing_calls, are_errors_and_lose_nothing) {
  const auto& [media, for_good] = GetParam();
  scratch_directory dir;
  const std::string path = dir.file("pool"), copy = path + ".copy";
  const pool_options options{.create_size = 128 << 10, .media = media, .log_size = 4096, .log_count = 2, .sums = checksums::on, .verify = verification::always, .background = false};
  for (const int number : {EIO, ENOSPC}) {
    std::uint64_t k = 1;
    for (bool hit = true; hit; ++k) {
      SCOPED_TRACE("call " + std::to_string(k) + " fails");
      outcome o;
      {
        const failing call(k, for_good, number);
        o = use(path, options);
        hit = call.hit();
      }
      expect_whole(path, options, o);
      if (std::filesystem::exists(copy)) expect_whole(copy, options, {0, o.tried});
      std::filesystem::remove(copy);
      if (k % 4 == 0) std::filesystem::remove(path);  // creation fails too, and pools that have been used
      if (HasFailure()) return;
    }
    EXPECT_GT(k, 20u) << "there are more calls than that";
    std::filesystem::remove(path);
  }
}

INSTANTIATE_TEST_SUITE_P(of, failing_calls, ::testing::Combine(::testing::Values("file", "process"), ::testing::Bool()),
                         [](const auto& one) { return std::get<0>(one.param) + (std::get<1>(one.param) ? "_for_good" : "_once"); });

}  // namespace
}  // namespace stele::testing
