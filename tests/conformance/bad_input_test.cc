// Every wrong path, file or option gives one error: a code, and a sentence that names the path and
// says what to do. The file does not change, and a failed creation leaves nothing behind.
#include <fcntl.h>
#include <format/pool_layout.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;

struct root {
  field<std::uint64_t> value;
};
struct other_root {
  field<std::uint64_t> value[7];
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class bad_input : public ::testing::Test {
 protected:
  // A closed pool with content.
  std::string good_pool(std::size_t size = 64 << 10) {
    const std::string path = dir_.file("pool");
    fs::remove(path);
    auto p = open_pool<root>(path, {.create_size = size, .layout = "mine"});
    EXPECT_TRUE(succeeds(p.update([](root& r) { r.value = 42; })));
    EXPECT_TRUE(succeeds(p.close()));
    return path;
  }

  // Without the generation, which every process raises that tries to open the pool.
  static std::string content_of(const std::string& path) {
    std::string bytes = bytes_of(path);
    if (bytes.size() >= format::generation_offset + 8) bytes.erase(format::generation_offset, 8);
    return bytes;
  }
  // Opening must fail with `code` and one sentence that names the path, and must not change the
  // file.
  template <class Root = root>
  static std::string expect_refused(const std::string& path, errc code,
                                    const pool_options& options = {}) {
    const std::string before = fs::is_regular_file(path) ? content_of(path) : "";
    auto opened = pool<Root>::open(path, options);
    EXPECT_TRUE(fails_with(opened, code));
    if (opened) return "";
    EXPECT_NE(opened.error().message.find(path), std::string::npos) << opened.error().message;
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos) << opened.error().message;
    EXPECT_TRUE(!fs::is_regular_file(path) || content_of(path) == before)
        << "the file has changed: " << opened.error().message;
    return opened.error().message;
  }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir_.file("")), {}));
  }

  scratch_directory dir_;
};

TEST_F(bad_input, a_missing_file_and_a_missing_directory) {
  expect_refused(dir_.file("nothing"), errc::not_found);
  expect_refused(dir_.file("no/such/pool"), errc::not_found);
  const auto sentence =
      expect_refused(dir_.file("no/such/pool"), errc::not_found, {.create_size = 1 << 20});
  EXPECT_NE(sentence.find("directory"), std::string::npos) << sentence;
  expect_refused("", errc::not_found);
}

TEST_F(bad_input, things_that_are_no_files) {
  fs::create_directory(dir_.file("folder"));
  expect_refused(dir_.file("folder"), errc::not_a_pool);
  ASSERT_EQ(::mkfifo(dir_.file("fifo").c_str(), 0600), 0);
  expect_refused(dir_.file("fifo"), errc::not_a_pool);
  expect_refused("/dev/null", errc::not_a_pool);
  expect_refused("/dev/zero", errc::not_a_pool);
  fs::create_symlink(good_pool(), dir_.file("link"));
  expect_refused(dir_.file("link"), errc::permission);
  fs::create_symlink(dir_.file("nowhere"), dir_.file("dangling"));
  expect_refused(dir_.file("dangling"), errc::permission, {.create_size = 1 << 20});
  EXPECT_FALSE(fs::exists(dir_.file("nowhere")));
}

TEST_F(bad_input, foreign_and_empty_files) {
  write_bytes(dir_.file("empty"), "");
  expect_refused(dir_.file("empty"), errc::not_a_pool);
  expect_refused(dir_.file("empty"), errc::not_a_pool, {.create_size = 1 << 20});
  for (const std::size_t size : {1u, 255u, 256u, 4096u, 1u << 20}) {
    write_bytes(dir_.file("foreign"), std::string(size, 'x'));
    expect_refused(dir_.file("foreign"), errc::not_a_pool);
    write_bytes(dir_.file("zeroes"), std::string(size, '\0'));
    expect_refused(dir_.file("zeroes"), errc::not_a_pool);
  }
}

TEST_F(bad_input, a_truncated_pool) {
  const std::string path = good_pool(), whole = bytes_of(path);
  for (std::size_t length = 0; length < whole.size(); length += length < 1100 ? 1 : 509) {
    write_bytes(path, whole.substr(0, length));
    SCOPED_TRACE(length);
    expect_refused(path, length < sizeof(format::pool_header) ? errc::not_a_pool : errc::corrupt);
    if (HasFailure()) return;
  }
  write_bytes(path, whole);
  EXPECT_TRUE(succeeds(pool<root>::open(path))) << "the whole one opens";
  std::string image = whole;
  for (const std::size_t length : {std::size_t{0}, std::size_t{4095}, whole.size() / 2})
    EXPECT_FALSE(storage::pool_file::adopt(reinterpret_cast<std::byte*>(image.data()), length))
        << length;
}

TEST_F(bad_input, every_flipped_bit_of_the_header) {
  const std::string path = good_pool(), whole = bytes_of(path);
  for (std::size_t bit = 0; bit < sizeof(format::pool_header) * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, flipped);
    SCOPED_TRACE("bit " + std::to_string(bit));
    const auto sentence = expect_refused(path, errc::corrupt);
    EXPECT_NE(sentence.find("--repair"), std::string::npos) << sentence;
    if (HasFailure()) return;
  }
}

TEST_F(bad_input, every_flipped_bit_of_a_control_word_a_log_head_and_a_chunk_descriptor) {
  const std::string path = good_pool();
  {
    auto p = open_pool<root>(path, {});  // a second session makes the watermark non-zero
    ASSERT_TRUE(succeeds(p.update([](root& r) { r.value += 1; })));
  }
  const std::string whole = bytes_of(path);
  format::pool_header h;
  std::memcpy(&h, whole.data(), sizeof h);
  for (const std::uint64_t word : {format::session_offset, format::watermark_offset, h.log_offset,
                                   h.log_offset + h.log_size, h.table_offset, h.table_offset + 8})
    for (std::uint64_t bit = 0; bit < 64; ++bit) {
      std::string flipped = whole;
      flipped[word + bit / 8] = static_cast<char>(flipped[word + bit / 8] ^ (1 << bit % 8));
      write_bytes(path, flipped);
      SCOPED_TRACE("offset " + std::to_string(word) + " bit " + std::to_string(bit));
      expect_refused(path, errc::corrupt);
      if (HasFailure()) return;
    }
}

TEST_F(bad_input, a_pool_of_another_version) {
  const std::string path = good_pool();
  std::string bytes = bytes_of(path);
  format::pool_header h;
  std::memcpy(&h, bytes.data(), sizeof h);
  h.version += 1;
  h.checksum = format::header_checksum(h);
  std::memcpy(bytes.data(), &h, sizeof h);
  write_bytes(path, bytes);
  const auto sentence = expect_refused(path, errc::version);
  EXPECT_NE(sentence.find("version 2"), std::string::npos) << sentence;
}

TEST_F(bad_input, another_layout_name_or_root) {
  const std::string path = good_pool();
  const auto sentence = expect_refused(path, errc::layout, {.layout = "theirs"});
  EXPECT_NE(sentence.find("mine"), std::string::npos) << sentence;
  auto opened = pool<other_root>::open(path);
  EXPECT_TRUE(fails_with(opened, errc::layout));
  EXPECT_TRUE(succeeds(pool<root>::open(path, {.layout = "mine"})));
  auto long_name =
      pool<root>::open(dir_.file("new"), {.create_size = 1 << 20, .layout = std::string(64, 'n')});
  EXPECT_TRUE(fails_with(long_name, errc::invalid_argument));
  EXPECT_TRUE(succeeds(pool<root>::open(dir_.file("new"),
                                        {.create_size = 1 << 20, .layout = std::string(63, 'n')})));
}

TEST_F(bad_input, a_pool_that_is_open_already) {
  const std::string path = good_pool();
  for (const char* media : {"process", "file"}) {
    auto first = open_pool<root>(path, {.engine = {.media = media}});
    auto again = pool<root>::open(path);
    ASSERT_TRUE(fails_with(again, errc::in_use));
    EXPECT_NE(again.error().message.find("open in this process already"), std::string::npos)
        << again.error().message;
    ASSERT_TRUE(succeeds(first.update([](root& r) { r.value += 1; }))) << "the first goes on";
  }
  child holder([&](const word_sender& send) {
    auto p = open_pool<root>(path, {.engine = {.media = "file"}});
    if (!p.update([](root& r) { r.value += 1; })) return;
    send(1);
    ::pause();
  });
  std::uint64_t word = 0;
  ASSERT_TRUE(holder.receive(word));
  auto second = pool<root>::open(path);
  ASSERT_TRUE(fails_with(second, errc::in_use));
  EXPECT_NE(second.error().message.find("process " + std::to_string(holder.pid())),
            std::string::npos)
      << second.error().message;
  holder.kill_and_drain(0);
  EXPECT_TRUE(succeeds(pool<root>::open(path))) << "a dead process holds nothing";
}

TEST_F(bad_input, impossible_sizes) {
  const std::size_t huge = std::size_t{1} << 63;
  const std::string path = dir_.file("new");
  auto with = [&](pool_options o) { return pool<root>::open(path, o); };
  EXPECT_TRUE(fails_with(with({.create_size = 0}), errc::not_found));
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{32767}, huge,
                                 huge - 1, ~std::size_t{0}, (std::size_t{1} << 46) + 1})
    EXPECT_TRUE(fails_with(with({.create_size = size}), errc::invalid_argument)) << size;
  for (const std::size_t size : {std::size_t{1} << 40, std::size_t{1} << 46})
    EXPECT_TRUE(fails_with(with({.create_size = size}), errc::full)) << size;
  for (const std::size_t logs : {std::size_t{4097}, std::size_t{1} << 32, huge, ~std::size_t{0}})
    EXPECT_TRUE(fails_with(with({.create_size = 1 << 20, .engine = {.log_count = logs}}),
                           errc::invalid_argument))
        << logs;
  for (const std::size_t size :
       {std::size_t{1} << 20, huge, ~std::size_t{0}, ~std::size_t{0} - 4096})
    EXPECT_TRUE(fails_with(with({.create_size = 1 << 20, .engine = {.log_size = size}}),
                           errc::invalid_argument))
        << size;
  EXPECT_TRUE(
      fails_with(with({.create_size = 1 << 20, .engine = {.log_size = 64 << 10, .log_count = 9}}),
                 errc::invalid_argument));
  EXPECT_EQ(entries(), 0u) << "something is left of a creation that failed";
  EXPECT_TRUE(succeeds(with({.create_size = 32768}))) << "the smallest pool there is";
}

TEST_F(bad_input, unknown_mechanisms_and_media) {
  const std::string path = dir_.file("new");
  auto mechanism =
      pool<root>::open(path, {.create_size = 1 << 20, .engine = {.mechanism = "magic"}});
  ASSERT_TRUE(fails_with(mechanism, errc::not_found));
  EXPECT_NE(mechanism.error().message.find("redo-async"), std::string::npos)
      << "it names what there is";
  for (const char* media : {"",
                            "tape",
                            "delayed",
                            "delayed:",
                            "delayed:x",
                            "delayed:-1",
                            "delayed:1:",
                            "delayed:1:0",
                            "delayed:1:-2",
                            "delayed:1:nan",
                            "delayed:1000001",
                            "delayed:99999999999999999999",
                            "delayed:1:2:3",
                            "delayed:stream=once",
                            "delayed:1:stream",
                            "delayed:1:stream=",
                            "delayed:1:stream=twice",
                            "delayed:1:stream=once:",
                            "delayed:1:stream=once:stream=once",
                            "delayed:1:cache=2:cache=2",
                            "delayed:1:stream=once:standalone",
                            "delayed:1:2:stream=once",
                            "delayed:1::standalone",
                            "delayed:1:standalone=1",
                            "delayed:1:standalone:2",
                            "pcm:strict:standalone",
                            "adr ",
                            "pcm",
                            "pcm:",
                            "pcm:lax",
                            "pcm:strict:",
                            "pcm:strict:0.5",
                            "pcm:strict:101",
                            "pcm:strict:nan",
                            "pcm:rules:fast",
                            "pcm:rules:1.7:",
                            "pcm:rules:waits:1.7",
                            "pcm:rules:1.7:waits:1",
                            "pcm:rules:slower=0.5",
                            "pcm:rules:slower=nan",
                            "pcm:rules:slower=2:waits"}) {
    auto opened = pool<root>::open(path, {.create_size = 1 << 20, .engine = {.media = media}});
    EXPECT_TRUE(fails_with(opened, errc::invalid_argument)) << media;
  }
  EXPECT_EQ(entries(), 0u) << "a pool was made before its options were looked at";
}

TEST_F(bad_input, a_full_disk_is_an_error_when_the_pool_is_made) {
  const std::string small = dir_.file("small");
  fs::create_directory(small);
  const bool mounted = ::mount("none", small.c_str(), "tmpfs", 0, "size=256k") == 0;
  if (!mounted) GTEST_SKIP() << "no right to mount a file system";
  auto opened = pool<root>::open(small + "/pool", {.create_size = 1 << 20});
  EXPECT_TRUE(fails_with(opened, errc::full));
  EXPECT_TRUE(opened || opened.error().message.find("free some space") != std::string::npos)
      << opened.error().message;
  EXPECT_TRUE(fs::is_empty(small)) << "something is left";
  EXPECT_TRUE(succeeds(pool<root>::open(small + "/pool", {.create_size = 128 << 10})));
  ::umount(small.c_str());
}

TEST_F(bad_input, a_file_size_limit_is_an_error_when_the_pool_is_made) {
  const std::string path = dir_.file("new");
  child limited([&](const word_sender& send) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64 << 10, 64 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    send(fails_with(pool<root>::open(path, {.create_size = 1 << 20}), errc::full) ? 1 : 0);
  });
  std::uint64_t word = 0;
  ASSERT_TRUE(limited.receive(word));
  EXPECT_EQ(word, 1u);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(bad_input, a_file_that_may_not_be_written) {
  const std::string path = good_pool();
  ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  if (::geteuid() != 0) {
    expect_refused(path, errc::permission);
    return;
  }
  child powerless([&](const word_sender& send) {
    ::chmod(dir_.file("").c_str(), 0755);
    if (::setuid(65534) != 0) return;
    auto opened = pool<root>::open(path);
    send(fails_with(opened, errc::permission) &&
                 opened.error().message.find(path) != std::string::npos
             ? 1
             : 0);
  });
  std::uint64_t word = 0;
  ASSERT_TRUE(powerless.receive(word));
  EXPECT_EQ(word, 1u);
}

TEST_F(bad_input, a_killed_creation_leaves_nothing_or_a_whole_pool) {
  const std::string path = dir_.file("new");
  for (int i = 0; i < 40; ++i) {
    {
      child maker([&](const word_sender& send) {
        send(0);
        auto p = open_pool<root>(path, {.create_size = 8 << 20});
        ::pause();
      });
      std::uint64_t word;
      ASSERT_TRUE(maker.receive(word));
      ::usleep(static_cast<useconds_t>(i * 25));
    }
    if (fs::exists(path)) {
      EXPECT_TRUE(succeeds(pool<root>::open(path)));
      fs::remove(path);
    }
    EXPECT_EQ(entries(), 0u) << "a draft is left";
  }
}

}  // namespace
}  // namespace stele::testing
