// Media of the library and the laboratory: counters, stored bytes, the wait of a delayed medium, a
// file medium's fence reaching the file, and group commit.
#include <containers/test_bed.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <lab_media/delayed.h>
#include <lab_media/image.h>
#include <media/adr.h>
#include <media/eadr.h>
#include <media/file.h>
#include <media/process.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

namespace stele::media {
namespace {

using clock = std::chrono::steady_clock;

struct alignas(64) lines {
  std::byte bytes[64 * 16] = {};
};

TEST(line_count, counts_the_lines_that_a_range_touches) {
  const auto* at = reinterpret_cast<const std::byte*>(std::uintptr_t{4096});
  EXPECT_EQ(line_count(at, 0), 0u);
  EXPECT_EQ(line_count(at, 1), 1u);
  EXPECT_EQ(line_count(at, 64), 1u);
  EXPECT_EQ(line_count(at, 65), 2u);
  EXPECT_EQ(line_count(at + 63, 2), 2u);
  EXPECT_EQ(line_count(at + 1, 64), 2u);
}

TEST(store_untorn, copies_any_length_to_any_place) {
  std::byte from[100], to[120];
  for (std::size_t i = 0; i < sizeof from; ++i) from[i] = std::byte(i + 1);
  for (std::size_t skip = 0; skip < 9; ++skip)
    for (std::size_t size = 0; size <= 80; ++size) {
      std::memset(to, 0, sizeof to);
      store_untorn(to + skip, from + skip % 3, size);
      ASSERT_EQ(std::memcmp(to + skip, from + skip % 3, size), 0);
      ASSERT_EQ(to[skip + size], std::byte{0}) << "a byte too many";
      ASSERT_TRUE(skip == 0 || to[skip - 1] == std::byte{0});
    }
}

template <class Medium>
counters exercise(typename Medium::shared& shared, std::byte* memory) {
  Medium m(shared, 0);
  lines source;
  std::memset(source.bytes, 5, sizeof source.bytes);
  m.store(memory, source.bytes, 100);
  m.flush(memory, 100);
  m.stream(memory + 256, source.bytes, 128);
  m.fence();
  const range all[] = {{memory, 256}};
  m.bulk_persist(all);
  EXPECT_EQ(std::memcmp(memory, source.bytes, 100), 0);
  EXPECT_EQ(std::memcmp(memory + 256, source.bytes, 128), 0);
  EXPECT_EQ(memory[100], std::byte{0});
  EXPECT_FALSE(m.failed());
  return m.count;
}

template <class Medium>
counters exercise_in_memory() {
  lines memory;
  typename Medium::shared shared{};
  return exercise<Medium>(shared, memory.bytes);
}

TEST(media, count_what_they_do) {
  const counters on_adr = exercise_in_memory<adr>(), on_eadr = exercise_in_memory<eadr>(),
                 on_process = exercise_in_memory<process>();
  for (const counters& c : {on_adr, on_eadr, on_process}) {
    EXPECT_EQ(c.stored_bytes, 100u);
    EXPECT_EQ(c.streamed_bytes, 128u);
  }
  EXPECT_EQ(on_adr.flushed_lines, 2u + 4u);
  EXPECT_EQ(on_adr.fences, 2u);
  EXPECT_EQ(on_eadr.flushed_lines, 0u) << "caches are durable there";
  EXPECT_EQ(on_eadr.fences, 2u);
  EXPECT_EQ(on_process.flushed_lines + on_process.fences, 0u) << "nothing is waited for";
}

TEST(image, undoes_what_was_written) {
  lines memory;
  std::memset(memory.bytes, 9, sizeof memory.bytes);
  const lines before = memory;
  image_view view(memory.bytes, sizeof memory.bytes);
  image::shared shared{view};
  image m(shared, 0);
  const lines zero;
  m.store(memory.bytes + 60, zero.bytes, 8);
  m.stream(memory.bytes + 512, zero.bytes, 64);
  m.store(memory.bytes + 64, zero.bytes, 8);
  EXPECT_EQ(view.written.size(), 3u);
  view.undo();
  EXPECT_EQ(std::memcmp(memory.bytes, before.bytes, sizeof memory.bytes), 0);
  EXPECT_TRUE(view.written.empty());
}

clock::duration time_of_fence(delay cost, std::size_t count) {
  delayed<adr>::shared shared{{}, cost};
  delayed<adr> m(shared, 0);
  lines memory;
  m.flush(memory.bytes, count * 64);
  const auto begin = clock::now();
  m.fence();
  return clock::now() - begin;
}

// B10, L11
TEST(delayed, a_fence_takes_at_least_the_latency_of_its_lines) {
  using std::chrono::microseconds;
  EXPECT_GE(time_of_fence({50'000, 0}, 1), microseconds(50));
  EXPECT_GE(time_of_fence({50'000, 0}, 10), microseconds(500)) << "each line pays";
  EXPECT_GE(time_of_fence({50'000, 1}, 10), microseconds(50))
      << "with a bandwidth they share one latency";
  EXPECT_GE(time_of_fence({10, 0.001}, 10), microseconds(640))
      << "640 bytes at a byte a microsecond";
}

// B5
TEST(delayed, the_whole_cache_takes_a_latency_and_the_lines_of_home_changed_since) {
  lines memory;
  const lines some;
  delayed<adr>::shared shared{{}, {50'000, 0, 0.001}, memory.bytes + 64};
  delayed<adr> one(shared, 0), other(shared, 1);
  one.store(memory.bytes, some.bytes, 8);  // before home
  for (const std::size_t at : {64, 72, 128, 64}) one.store(memory.bytes + at, some.bytes, 8);
  other.store(memory.bytes + 192, some.bytes, 128);
  one.fence();
  const range home[] = {{memory.bytes + 64, 448}};
  EXPECT_EQ(shared.changed_lines, 3u);
  for (const std::uint64_t lines : {5u, 0u}) {
    const auto begin = clock::now();
    other.bulk_persist(home);
    EXPECT_GE(clock::now() - begin, std::chrono::microseconds(50 + 64 * lines));
    EXPECT_EQ(shared.changed_lines, 0u);
  }
  EXPECT_EQ(one.count.flushed_lines + other.count.flushed_lines, 0u) << "it is emulated";
}

TEST(delayed, threads_share_the_bandwidth) {
  using std::chrono::microseconds;
  constexpr unsigned threads = 3;
  delayed<adr>::shared shared{{}, {10, 0.001}};  // 640 us for ten lines
  const auto begin = clock::now();
  {
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&shared, t] {
        delayed<adr> m(shared, t);
        lines memory;
        m.flush(memory.bytes, std::size_t{10} * 64);
        m.fence();
      });
  }
  EXPECT_GE(clock::now() - begin, microseconds(640 * threads));
}

TEST(delayed, counts_as_what_it_slows_down) {
  lines memory;
  delayed<adr>::shared shared{{}, {10, 0}};
  EXPECT_EQ(exercise<delayed<adr>>(shared, memory.bytes).flushed_lines, 6u);
}

class file_medium : public ::testing::Test {
 protected:
  static constexpr std::size_t home = 64 << 10, size = 128 << 10;

  file_medium() : path_(dir_.file("file")) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(::posix_fallocate(fd_, 0, size), 0);
    memory_ = static_cast<std::byte*>(std::aligned_alloc(4096, size));
    std::memset(memory_, 0, size);
  }
  ~file_medium() override {
    std::free(memory_);
    ::close(fd_);
  }
  pool_mapping mapping() const { return {memory_, size, home, fd_, path_}; }
  std::byte on_file(std::size_t offset) const {
    std::byte b{0xEE};
    EXPECT_EQ(::pread(fd_, &b, 1, static_cast<off_t>(offset)), 1);
    return b;
  }

  testing::scratch_directory dir_;
  std::string path_;
  int fd_ = -1;
  std::byte* memory_ = nullptr;
};

TEST_F(file_medium, a_log_line_is_on_the_file_after_the_fence_and_not_before) {
  file::shared shared(mapping());
  file m(shared, 0);
  const lines source{{std::byte{3}}};
  m.stream(memory_ + 8192, source.bytes, 64);
  m.store(memory_ + 20480, source.bytes, 8);
  m.flush(memory_ + 20480, 8);
  EXPECT_EQ(on_file(8192), std::byte{0});
  m.fence();
  EXPECT_EQ(on_file(8192), std::byte{3});
  EXPECT_EQ(on_file(20480), std::byte{3});
  m.store(memory_ + 40960, source.bytes, 8);
  m.fence();
  EXPECT_EQ(on_file(40960), std::byte{0}) << "nobody flushed it";
  EXPECT_EQ(m.count.fences, 2u);
}

TEST_F(file_medium, fences_of_many_threads_are_each_on_the_file) {
  file::shared shared(mapping());
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      file m(shared, t);
      for (unsigned i = 1; i <= 100; ++i) {
        lines source;
        std::memset(source.bytes, static_cast<int>(i), 64);
        const std::size_t offset = 4096 * (1 + 2 * t) + 64 * (i % 100);
        m.stream(memory_ + offset, source.bytes, 64);
        if (i % 10 == 0) m.flush(memory_ + home + 4096 * t, 64);
        m.fence();
        ASSERT_EQ(on_file(offset), std::byte(i));
      }
    });
  threads.clear();
  EXPECT_FALSE(shared.writer.failed());
}

// Runs in a child process with a file size limit, so that each write fails.
TEST_F(file_medium, a_failed_write_is_told_and_never_tried_again) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    file::shared shared(mapping());
    file m(shared, 0);
    const lines source{{std::byte{3}}};
    const rlimit none{4096, RLIM_INFINITY}, all{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &none);
    m.stream(memory_ + 8192, source.bytes, 64);
    m.fence();
    const bool told = m.failed();
    ::setrlimit(RLIMIT_FSIZE, &all);
    m.stream(memory_ + 8192, source.bytes, 64);
    m.fence();
    ::_exit(told && m.failed() && on_file(8192) == std::byte{0} ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stele::media
