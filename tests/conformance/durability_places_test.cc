// The place of a pool decides what its commits survive. Memory loses them at a power failure, under
// any number of layers, and so does an overlay that does not sync.
#include <base/scratch_directory.h>
#include <stele/hash_map.h>
#include <tests/conformance/own_mounts.h>
#include <tests/conformance/pools.h>
#include <tx/open.h>

#include <filesystem>
#include <optional>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;

struct root {
  using pool_resident = void;
  field<std::uint64_t> value;
};

bool run(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

class durability_places : public ::testing::Test {
 protected:
  // A folder on the disk, if temporary files are on one. A child with its own mounts uses it; the
  // child's EXPECTs count.
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "mounting needs root";
    scratch_.emplace(fs::temp_directory_path());
    dir_ = scratch_->path();
    for (const char* folder : {"lower", "upper", "work", "memory", "at"})
      fs::create_directory(dir_ / folder);
    fs::permissions(dir_, fs::perms::owner_all);
  }
  template <class Mount>
  void expect_process_at(const std::string& place, Mount&& mount) {
    child process([&](const word_sender& send) {
      ASSERT_TRUE(enter_own_mounts());
      if (!mount()) return send(2);
      expect_no_more_than_the_process(place);
      run("umount " + place);  // releases a loop device too
    });
    std::uint64_t said = 0;
    const bool heard = process.receive(said);
    EXPECT_EQ(process.wait(), 0) << "what was expected there did not hold; see above";
    if (heard && said == 2) GTEST_SKIP() << "this system does not have such a mount";
  }
  static void expect_no_more_than_the_process(const std::string& place) {
    const std::string path = place + "/pool";
    for (const char* media : {"file", "auto"}) {
      SCOPED_TRACE(media);
      EXPECT_TRUE(fails_with(pool<root>::open(path, {.create_size = 1 << 20,
                                                     .require = durability_level::power,
                                                     .engine = {.media = media}}),
                             errc::unsupported));
      EXPECT_FALSE(fs::exists(path));
      {
        auto p = open_pool<root>(path, {.create_size = 1 << 20, .engine = {.media = media}});
        EXPECT_EQ(p.durability_in_force(), durability_level::process);
      }
      fs::remove(path);
    }
  }
  std::string in(const char* folder) const { return dir_ / folder; }
  bool mount_overlay(const std::string& upper, const std::string& work,
                     const std::string& more = "") const {
    const std::string options =
        "lowerdir=" + in("lower") + ",upperdir=" + upper + ",workdir=" + work + more;
    return ::mount("overlay", in("at").c_str(), "overlay", 0, options.c_str()) == 0;
  }
  bool mount_overlay_on_memory() const {
    return mount_memory(in("memory"), "32m") && fs::create_directory(in("memory") + "/upper dir") &&
           fs::create_directory(in("memory") + "/work") &&
           mount_overlay(in("memory") + "/upper dir", in("memory") + "/work");
  }
  std::optional<base::scratch_directory> scratch_;
  fs::path dir_;
};

TEST_F(durability_places, an_overlay_over_memory_survives_the_process_only) {
  expect_process_at(in("at"), [&] { return mount_overlay_on_memory(); });
}

TEST_F(durability_places, a_volatile_overlay_survives_the_process_only) {
  expect_process_at(in("at"), [&] { return mount_overlay(in("upper"), in("work"), ",volatile"); });
}

TEST_F(durability_places, a_loop_device_over_memory_survives_the_process_only) {
  expect_process_at(in("at"), [&] {
    const std::string image = in("memory") + "/image";
    return mount_memory(in("memory"), "32m") && run("truncate -s 16m " + image) &&
           run("mkfs.ext4 -q " + image) && run("mount -o loop " + image + " " + in("at"));
  });
}

TEST_F(durability_places,
       a_file_system_in_a_file_of_an_overlay_over_memory_survives_the_process_only) {
  expect_process_at(in("upper"), [&] {
    const std::string image = in("at") + "/image";
    return mount_overlay_on_memory() && run("truncate -s 16m " + image) &&
           run("mkfs.ext4 -q " + image) && run("mount -o loop " + image + " " + in("upper"));
  });
}

// On a disk, commits survive power loss through an overlay too.
TEST_F(durability_places, an_overlay_over_a_disk_survives_power_loss) {
  if (detail::durability_of_path(dir_) != durability_level::power)
    GTEST_SKIP() << "temporary files are in memory here";
  child process([&](const word_sender& send) {
    ASSERT_TRUE(enter_own_mounts());
    if (!mount_overlay(in("upper"), in("work"))) return send(2);
    auto p = open_pool<root>(in("at") + "/pool",
                             {.create_size = 1 << 20, .require = durability_level::power});
    EXPECT_EQ(p.durability_in_force(), durability_level::power);
  });
  std::uint64_t said = 0;
  const bool heard = process.receive(said);
  EXPECT_EQ(process.wait(), 0) << "what was expected there did not hold; see above";
  if (heard && said == 2) GTEST_SKIP() << "this system does not have such a mount";
}

}  // namespace
}  // namespace stele::testing
