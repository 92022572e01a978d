// Several transactions outgrow their logs at the same time, where all threads share one log. Each
// record used the chunks that the owner of the ring had reserved for its own record, so two of them
// could lie in one place.
#include <media/os.h>
#include <stele/string.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <thread>

namespace stele::testing {
namespace {

constexpr unsigned writers = 4;

// Each slot has its own lines, so that no writer waits for another.
struct alignas(64) slot {
  using pool_resident = void;
  string text;
  field<std::uint64_t> round;
};
struct root {
  using pool_resident = void;
  slot slots[writers];
};
std::string text_of(unsigned writer, std::uint64_t round) {
  return std::string(6000 + 100 * writer, static_cast<char>('a' + (writer * 7 + round) % 26));
}

void expect_whole(const std::string& path, const pool_options& options) {
  auto p = open_pool<root>(path, options);
  EXPECT_TRUE(succeeds(p.check()));
  (void)p.read([](const root& r) {
    for (unsigned w = 0; w < writers; ++w)
      EXPECT_TRUE(r.slots[w].round == 0 || r.slots[w].text.equal(text_of(w, r.slots[w].round)))
          << "writer " << w;
  });
}

// A slow device, so that threads meet between the reservation and the record.
struct slow_device final : media::os::syscall_hook {
  slow_device() { media::os::install_hook(this); }
  ~slow_device() override { media::os::install_hook(nullptr); }
  int before(const media::os::request& r) noexcept override {
    if (r.what == media::os::call::sync || r.what == media::os::call::write)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    return 0;
  }
};

TEST(spilled_together, keep_to_their_own_chunks) {
  scratch_directory dir;
  const std::string path = dir.file("pool"), left = path + ".left";
  const pool_options options{.create_size = 4 << 20,
                             .engine = {.media = "file", .log_size = 4096, .log_count = writers}};
  const slow_device device;
  auto p = open_pool<root>(path, options);
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < writers; ++w)
    threads.emplace_back([&p, w] {
      for (std::uint64_t round = 1; round <= 150; ++round)
        EXPECT_TRUE(succeeds(p.update([&](root& r) {
          r.slots[w].text.assign(text_of(w, round)), r.slots[w].round = round;
        })));
    });
  for (auto& t : threads) t.join();
  std::filesystem::copy_file(path, left);
  EXPECT_TRUE(succeeds(p.close()));
  expect_whole(path, options);
  expect_whole(left, options);
}

}  // namespace
}  // namespace stele::testing
