// The watermark's write fails while another thread writes its log. The head in the same block had
// moved in memory already, so that write made it durable without the watermark. Recovery then
// replayed the older records of another log over what the cut log had held.
#include <media/os.h>
#include <tests/conformance/pools.h>

#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>

namespace stele::testing {
namespace {

using namespace std::chrono_literals;

struct root {
  using pool_resident = void;
  alignas(64) field<std::uint64_t> both;    // 1 by the first thread, then 2 by the second
  alignas(64) field<std::uint64_t> first;   // counts commits of the first thread
  alignas(64) field<std::uint64_t> second;  // the commit of the second that is being written
};

// From begin() on, the second thread's next write begins but does not end before release(), and a
// write of another watermark fails.
class failing_watermark final : public media::os::syscall_hook {
 public:
  failing_watermark() { media::os::install_hook(this); }
  ~failing_watermark() override { media::os::install_hook(nullptr); }

  void begin(const std::string& path, std::thread::id second) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(format::watermark_offset);
    file.read(before_.data(), before_.size());
    second_ = second;
    on_ = true;
  }
  void await_second() { held_.get_future().wait(); }
  void release() { released_.set_value(); }
  bool has_failed() const { return failed_; }

  int before(const media::os::request& r) noexcept override {
    if (!on_ || r.what != media::os::call::write) return 0;
    if (std::this_thread::get_id() == second_ && !holds_.exchange(true)) {
      held_.set_value();
      (void)released_.get_future().wait_for(60s);
    }
    const bool mark = r.offset <= format::watermark_offset &&
                      format::watermark_offset < r.offset + r.size &&
                      std::memcmp(r.bytes + format::watermark_offset - r.offset, before_.data(),
                                  before_.size()) != 0;
    if (mark) failed_ = true;
    return mark ? EIO : 0;
  }

 private:
  std::atomic<bool> on_ = false, holds_ = false, failed_ = false;
  std::array<char, 8> before_{};
  std::thread::id second_;
  std::promise<void> held_, released_;
};

class failed_watermark : public ::testing::TestWithParam<std::string> {};

TEST_P(failed_watermark, leaves_no_log_cut) {
  scratch_directory dir;
  pool_options options{
      .create_size = 1 << 20,
      .engine = {.mechanism = GetParam(),
                 .media = "file",
                 .log_size = 4096,
                 .log_count = 2,
                 .block_checksums = checksums::off,  // their state lies in the same block
                 .background = false}};
  std::uint64_t acknowledged = 0;
  {
    auto p = open_pool<root>(dir.file("pool"), options);
    EXPECT_TRUE(succeeds(p.update([](root& r) { r.both = 1; })));
    failing_watermark hook;
    std::promise<void> may_write;
    std::jthread second([&] {
      EXPECT_TRUE(succeeds(p.update([](root& r) { r.both = 2; })));
      may_write.get_future().wait();
      (void)p.update([](root& r) { r.second = 1; });  // its fate is open
    });
    while (p.read([](const root& r) { return r.both.load(); }).value_or(0) != 2)
      std::this_thread::yield();
    hook.begin(dir.file("pool"), second.get_id());
    may_write.set_value();
    hook.await_second();
    while (p.update([](root& r) { r.first += 1; }) && acknowledged < 1000) ++acknowledged;
    EXPECT_TRUE(hook.has_failed()) << "the first thread's log was never full";
    hook.release();
    second.join();
  }
  options.create_size = 0;
  auto p = open_pool<root>(dir.file("pool"), options);
  (void)p.read([&](const root& r) {
    EXPECT_EQ(r.both, 2u) << "an older value came back";
    EXPECT_GE(r.first, acknowledged);
    EXPECT_LE(r.first, acknowledged + 1);
  });
}

// Those with a watermark in which a thread commits beside one that waits for its own write.
INSTANTIATE_TEST_SUITE_P(of, failed_watermark,
                         ::testing::Values("redo-async", "xil", "vcbp", "blurred", "adaptive",
                                           "archapt-redo"),
                         plain_name);

}  // namespace
}  // namespace stele::testing
