// What commands write: files that are whole or not there, and standard streams that are closed or
// full. A command once ended by SIGXFSZ or SIGABRT, left half a file, or ended with status 0
// although nothing had been written.
#include <gmock/gmock.h>
#include <stele/kv.h>
#include <sys/stat.h>
#include <tests/conformance/command.h>
#include <tests/conformance/own_mounts.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A line of the shell; `stele` is the command.
command_outcome run_line(const std::string& line) {
  const std::string script = "stele() { " STELE_COMMAND " \"$@\"; }; " + line;
  return run_shell("bash -c '" + script + "'");
}

class output_command : public ::testing::Test {
 protected:
  static constexpr unsigned items = 400;

  output_command() {
    auto store = kv::open(pool_, {.create_size = 1 << 20});
    EXPECT_TRUE(succeeds(store));
    for (unsigned n = 0; n < items; ++n)
      EXPECT_TRUE(succeeds(
          store->put("key" + std::to_string(n), std::string(200, 'v'), durability::ordered)));
    EXPECT_TRUE(succeeds(store->close()));
  }
  void expect_whole() const {
    auto store = kv::open(pool_);
    ASSERT_TRUE(succeeds(store));
    EXPECT_TRUE(succeeds(store->check()));
    EXPECT_EQ(*store->size(), items);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(fs::path(pool_).parent_path()))
      all.push_back(entry.path().filename());
    std::ranges::sort(all);
    return all;
  }

  scratch_directory dir_;
  const std::string pool_ = dir_.file("p");
};

const char* const reading[] = {"kv get p key1", "kv scan p",     "kv stats p",
                               "kv export p",   "kv export p -", "pool info p",
                               "pool dump p",   "pool check p",  "pool check p --json -",
                               "--help",        "--version"};

TEST_F(output_command, says_that_standard_output_is_full_or_closed) {
  for (const std::string to : {">/dev/full", ">&-"})
    for (const char* const command : reading) {
      SCOPED_TRACE(command + to);
      const auto o = run_line("cd " + dir_.file("") + "; stele " + command + " " + to);
      EXPECT_EQ(o.status, 1) << o.said;
      EXPECT_THAT(o.said, HasSubstr("cannot write to standard output"));
      expect_whole();
    }
}

TEST_F(output_command, ends_with_its_status_where_standard_error_is_closed_or_full) {
  for (const char* const closed : {"2>&-", "2>/dev/full", "2>&- >&-", "2>&- >&- <&-", "2>&- <&-"}) {
    SCOPED_TRACE(closed);
    const auto status_of = [&](const std::string& command) {
      return run_line("stele " + command + " " + closed).status;
    };
    EXPECT_EQ(status_of("kv get " + pool_ + " none"), 1);
    EXPECT_EQ(status_of("pool info " + dir_.file("none")), 1);
    EXPECT_EQ(status_of("kv import " + pool_ + " " + dir_.file("none")), 1);
    EXPECT_GT(status_of("kv nonsense"), 1) << "the status of a wrong command line";
    EXPECT_LT(status_of("kv nonsense"), 128);
    EXPECT_EQ(status_of("kv put " + pool_ + " key1 x"), 0);
    expect_whole();
  }
}

// The limit is a count of 1,024 bytes. The pool itself is 1 MiB.
TEST_F(output_command, leaves_the_file_that_was_there_when_it_cannot_write_a_whole_one) {
  const auto size_of = [&](const std::string& command, const std::string& file) {
    EXPECT_EQ(run_line("stele " + command).status, 0);
    const auto bytes = fs::file_size(file);
    fs::remove(file);
    return bytes;
  };
  const std::string file = dir_.file("out");
  // The pool that is recorded has 6 MB, its tape 10.
  for (const std::string& command :
       {"pool dump " + pool_ + " --json " + file, "pool check " + pool_ + " --json " + file,
        "tape record " + file + " --operations 40000"}) {
    SCOPED_TRACE(command);
    const auto whole = size_of(command, file);
#ifdef __SANITIZE_THREAD__
    if (whole <= 1024) continue;  // TSan writes a file of its own as it starts, and dies of a limit
#endif
    std::ofstream(file) << "old";
    const auto o = run_line("ulimit -f " + std::to_string((whole - 1) / 1024) + "; stele " +
                            command + " | cat; exit ${PIPESTATUS[0]}");
    EXPECT_EQ(o.status, 1) << o.said;
    EXPECT_THAT(o.said, HasSubstr("File too large"));
    EXPECT_EQ(fs::file_size(file), 3u) << "the old content";
    EXPECT_EQ(names(), (std::vector<std::string>{"out", "p"}));
    fs::remove(file);
  }
}

TEST_F(output_command, leaves_nothing_of_a_file_on_a_full_disk) {
  const std::string small = dir_.file("small");
  fs::create_directory(small);
  on_own_file_system(small, "16k", [&] {
    for (const std::string& command : {"kv export " + pool_ + " " + small + "/out",
                                       "kv scan " + pool_ + " --json " + small + "/out",
                                       "pool dump " + pool_ + " --json " + small + "/out"}) {
      const auto o = run_line("stele " + command);
      EXPECT_EQ(o.status, 1) << command;
      EXPECT_THAT(o.said, HasSubstr("No space left on device")) << command;
      EXPECT_TRUE(fs::is_empty(small)) << command;
    }
  });
}

TEST_F(output_command, keeps_links_modes_and_devices) {
  const std::string file = dir_.file("out"), link = dir_.file("link");
  std::ofstream(file) << "old";
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  fs::create_symlink("out", link);
  EXPECT_EQ(run_line("stele kv export " + pool_ + " " + link).status, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  struct stat status = {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_GT(status.st_size, 3);
  EXPECT_EQ(run_line("stele kv export " + pool_ + " /dev/null").status, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(run_line("stele kv export " + pool_ + " /dev/full").status, 1);
  const auto appended = run_line("(echo first; stele kv export " + pool_ +
                                 " /dev/stdout 2>/dev/null) >" + file + "; head -n1 " + file);
  EXPECT_EQ(appended.said, "first\n");
}

// A copy of a pool's content in another file is no more open to others than the pool.
TEST_F(output_command, gives_content_the_rights_of_its_pool) {
  const std::string database = dir_.file("q");
  std::ofstream(dir_.file("empty")).close();
  ASSERT_EQ(run_line("stele sqlite import " + dir_.file("empty") + " " + database).status, 0);
  const std::string file = dir_.file("out");
  for (const mode_t mode : {0600, 0640, 0644}) {
    for (const std::string& pool : {pool_, database}) ASSERT_EQ(::chmod(pool.c_str(), mode), 0);
    for (const std::string& command :
         {"kv export " + pool_ + " " + file, "kv scan " + pool_ + " --json " + file,
          "kv get " + pool_ + " key1 --json " + file, "pool dump " + pool_ + " --json " + file,
          "pool backup " + pool_ + " " + file, "pool compact " + pool_ + " " + file,
          "pool check --salvage " + file + " " + pool_, "sqlite export " + database + " " + file,
          "sqlite backup " + database + " " + file}) {
      SCOPED_TRACE(command);
      const auto o = run_line("umask 0; stele " + command);
      ASSERT_EQ(o.status, 0) << o.said;
      struct stat status = {};
      ASSERT_EQ(::stat(file.c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777 & ~mode, 0u);
      fs::remove(file);
    }
  }
}

TEST_F(output_command, writes_valid_json_of_names_that_are_not_utf_8) {
  const std::string pool = dir_.file("q\xff"), ordinary = dir_.file("db\xff"),
                    file = dir_.file("report");
  const auto quoted = [](const std::string& name) { return " \"" + name + "\""; };
  std::ofstream(ordinary).close();  // SQLite takes an empty file for a database
  for (const std::string& command :
       {"sqlite import" + quoted(ordinary) + quoted(pool), "sqlite check" + quoted(pool),
        "sqlite export" + quoted(pool) + quoted(dir_.file("out\xff")), "pool info" + quoted(pool),
        "pool check" + quoted(pool), "pool dump" + quoted(pool)}) {
    const auto o = run_command(command + " --json " + file);
    EXPECT_EQ(o.status, 0) << command << o.said;
    std::ifstream in(file);
    EXPECT_TRUE(nlohmann::json::parse(in, nullptr, false).is_object()) << command;
  }
}

TEST_F(output_command, waits_for_no_fifo_in_the_place_of_a_pool) {
  const std::string fifo = dir_.file("fifo"), copy = dir_.file("copy");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& place : {fifo, std::string("/dev/null"), std::string("/dev/zero")})
    for (const std::string command :
         {"pool info @", "pool check @", "pool check --repair @", "pool check --salvage % @",
          "pool dump @", "pool backup @ %", "pool compact @ %", "pool resize @ --size 2M",
          "kv get @ a", "kv put @ a b", "kv scan @", "kv stats @", "kv export @", "sqlite check @",
          "sqlite export @ %", "sqlite import @ %", "sqlite backup @ %"}) {
      std::string line = "timeout 20 " STELE_COMMAND " " + command;
      // A path has neither of the two.
      for (std::size_t at; (at = line.find('@')) != line.npos;) line.replace(at, 1, place);
      for (std::size_t at; (at = line.find('%')) != line.npos;) line.replace(at, 1, copy);
      const auto o = run_shell(line);
      EXPECT_EQ(o.status, 1) << line << "\n" << o.said;
      EXPECT_FALSE(fs::exists(copy)) << line;
    }
}

// On a read-only file system nothing can be recovered or marked; it may be a failing disk.
TEST_F(output_command, gets_the_content_off_a_read_only_file_system) {
  const std::string disk = dir_.file("disk"), out = dir_.file("out");
  fs::create_directory(disk);
  on_own_file_system(disk, "4m", [&] {
    const std::string closed = disk + "/closed", left = disk + "/left";
    fs::copy_file(pool_, closed);
    {
      auto store = kv::open(pool_);
      ASSERT_TRUE(succeeds(store));
      ASSERT_TRUE(succeeds(store->put("newest", "1")));
      fs::copy_file(pool_, left);  // as after a crash
      ASSERT_TRUE(succeeds(store->erase("newest")));
    }
    ASSERT_TRUE(make_read_only(disk));
    for (const std::string& pool : {closed, left}) {
      SCOPED_TRACE(pool);
      EXPECT_THAT(run_command("kv get " + pool + " key7").said, HasSubstr(std::string(200, 'v')));
      EXPECT_THAT(run_command("kv scan --keys " + pool).said, HasSubstr("key399"));
      EXPECT_EQ(run_command("kv stats " + pool).status, 0);
      EXPECT_EQ(run_command("kv stores " + pool).status, 0);
      EXPECT_EQ(run_command("kv export " + pool + " " + out).status, 0);
      const auto copied = run_command("pool backup " + pool + " " + out + ".pool");
      EXPECT_EQ(copied.status, 0) << copied.said;
      EXPECT_THAT(copied.said, HasSubstr("cannot be written, so it is read from a copy in memory"));
      auto copy = kv::open(out + ".pool");
      EXPECT_TRUE(succeeds(copy));
      EXPECT_TRUE(copy && succeeds(copy->check()) && *copy->size() == items + (pool == left));
      EXPECT_EQ(run_command("kv put " + pool + " a b").status, 1);
      fs::remove(out + ".pool");
    }
    EXPECT_EQ(run_command("kv get " + left + " newest").status, 0);
  });
}

// Without /proc an unnamed file cannot get its name.
TEST_F(output_command, makes_pools_and_copies_without_proc) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root";
  child process([&](const word_sender&) {
    ASSERT_TRUE(enter_own_mounts() && mount_memory("/proc", "1m"));
    auto made = kv::open(dir_.file("made"), {.create_size = 1 << 20});
    ASSERT_TRUE(succeeds(made));
    EXPECT_TRUE(succeeds(made->put("a", "1")));
    EXPECT_TRUE(succeeds(made->backup(dir_.file("copy"))));
    EXPECT_TRUE(succeeds(made->close()));
    EXPECT_TRUE(succeeds(kv::open(dir_.file("copy"))));
  });
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"copy", "made", "p"}));
}

}  // namespace
}  // namespace stele::testing
