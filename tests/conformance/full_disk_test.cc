// A full device, and a process that may not write large files. Creating, growing and backing up
// return errors, the pool stays intact, and no partial file is left.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <tests/conformance/exercise.h>
#include <tests/conformance/own_mounts.h>

#include <array>
#include <fstream>

namespace stele::testing {
namespace {

constexpr std::size_t pool_size = 384 << 10;
const pool_options small{
    .create_size = pool_size,
    .engine = {.media = "process", .log_size = 4096, .log_count = 2, .background = false}};

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory),
                                                std::filesystem::directory_iterator{}));
}

// The directory has room for a pool of pool_size, but not for twice as much.
void run_out(const std::string& directory) {
  const std::string path = directory + "/pool";
  auto p = open_pool<texts_root>(path, small);
  for (std::uint64_t n = 0; n < 10; ++n)
    EXPECT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
  pool_options large = small;
  large.create_size = 8 << 20;
  EXPECT_TRUE(fails_with(pool<texts_root>::open(directory + "/large", large), errc::full));
  EXPECT_TRUE(fails_with(p.grow(8 << 20), errc::full));
  EXPECT_EQ(p.space().size_bytes, pool_size);
  for (std::uint64_t n = 10; n < 20; ++n)
    EXPECT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
  EXPECT_TRUE(succeeds(p.check()));
  EXPECT_TRUE(succeeds(p.close()));
  EXPECT_EQ(files_in(directory), 1u) << "something half-made is left";
  EXPECT_EQ(expect_whole(path, small, {.acknowledged = 20, .tried = 20}), 20u);
}

TEST(full_disk, is_an_error_and_leaves_nothing_behind) {
  scratch_directory dir;
  on_own_file_system(dir.file(""), "640k", [&] {
    run_out(dir.file(""));
    auto p = open_pool<texts_root>(dir.file("pool"), small);
    EXPECT_TRUE(fails_with(p.backup(dir.file("copy")), errc::full));
    EXPECT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, 20); })));
    EXPECT_TRUE(succeeds(p.close()));
    EXPECT_EQ(files_in(dir.file("")), 1u) << "something half-made is left";
  });
}

// Makes holes of the file's pages of zeroes, as a job that saves space does.
void dig_holes(const std::string& path) {
  constexpr std::size_t page = 4096;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  std::array<char, page> bytes;
  for (off_t at = 0; ::pread(fd, bytes.data(), page, at) == ssize_t{page}; at += page)
    if (std::ranges::all_of(bytes, [](char c) { return c == 0; })) {
      EXPECT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, page), 0);
    }
  ::close(fd);
}

// Bytes until the device is full.
void fill_device(const std::string& path) {
  std::ofstream filler(path);
  const std::string block(4096, 'x');
  while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) continue;
}

// The store into a hole is a signal, the write into one an error: both say why.
TEST(full_disk, a_hole_that_cannot_be_filled_is_named) {
  for (const char* media : {"process", "file"}) {
    SCOPED_TRACE(media);
    scratch_directory dir;
    on_own_file_system(dir.file(""), "2m", [&] {
      const std::string path = dir.file("pool"), filler = dir.file("filler");
      pool_options options = small;
      options.engine.media = media;
      std::uint64_t n = 0;
      {
        auto p = open_pool<texts_root>(path, options);
        ASSERT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
        ++n;
        dig_holes(path);
        fill_device(filler);
        result<> put;
        while ((put = p.update([&](texts_root& r) { put_text(r, n); })) && n < 10'000) ++n;
        ASSERT_FALSE(put);
        EXPECT_NE(put.error().message.find("No space left on device"), std::string::npos)
            << put.error().message;
        const auto closed = p.close();
        ASSERT_FALSE(closed);
        EXPECT_NE(closed.error().message.find("No space left on device"), std::string::npos)
            << closed.error().message;
      }
      std::filesystem::remove(filler);
      (void)expect_whole(path, options, {.acknowledged = n, .tried = n + 1});
    });
  }
}

TEST(full_disk, a_limit_of_the_process_is_an_error_and_no_signal) {
  scratch_directory dir;
  child limited([&](const word_sender&) {
    const struct rlimit limit{pool_size, pool_size};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    run_out(dir.file(""));
  });
  EXPECT_EQ(limited.wait(), 0);
}

// The limit is lowered under an open pool, below what its calls write. Writes fail and poison the
// pool; mapped stores are not affected.
TEST(full_disk, a_limit_that_is_lowered_under_a_pool_is_an_error_and_no_signal) {
  for (const char* media : {"file", "process", "adr"})
    for (const rlim_t most : {rlim_t{0}, rlim_t{8192}, rlim_t{pool_size}}) {
      SCOPED_TRACE(std::string(media) + ", " + std::to_string(most) + " bytes");
      scratch_directory dir;
      const std::string path = dir.file("pool");
      pool_options options = small;
      options.engine.media = media;
      child limited([&](const word_sender& send) {
        auto p = open_pool<texts_root>(path, options);
        std::uint64_t n = 0;
        for (; n < 5; ++n) ASSERT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
        const struct rlimit limit{most, RLIM_INFINITY};
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
        const auto grown = p.grow(8 << 20);
        EXPECT_TRUE(most < pool_size ? !grown : fails_with(grown, errc::full));
        EXPECT_EQ(p.backup(path + ".copy").has_value(), most >= pool_size);
        while (n < 30 && p.update([&](texts_root& r) { put_text(r, n); })) ++n;
        (void)p.check();
        EXPECT_TRUE(p.close() || most < pool_size);
        sigset_t pending;
        EXPECT_TRUE(::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 0);
        send(n);
      });
      std::uint64_t acknowledged = 0;
      EXPECT_TRUE(limited.receive(acknowledged)) << "it ended without a word";
      EXPECT_EQ(limited.wait(), 0);
      (void)expect_whole(path, options, {.acknowledged = acknowledged, .tried = acknowledged + 1});
    }
}

}  // namespace
}  // namespace stele::testing
