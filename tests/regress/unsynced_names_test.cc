// Names of files that were reported as durable, and could be lost by a power failure: that of a new
// pool whose directory could not be opened for the sync, and that of a page which an interrupted
// repair had kept.
#include <media/os.h>
#include <pool/new_file.h>
#include <pool/repair.h>
#include <sys/stat.h>
#include <tests/conformance/pools.h>

#include <filesystem>

namespace stele::testing {
namespace {

using media::os::call;

class watched_calls final : public media::os::syscall_hook {
 public:
  // Each open after the first sync fails so; 0: none does.
  explicit watched_calls(int refused_open = 0) : refused_open_(refused_open) {
    media::os::install_hook(this);
  }
  ~watched_calls() override { media::os::install_hook(nullptr); }

  int before(const media::os::request& r) noexcept override {
    if (r.what == call::open && has_synced_) return refused_open_;
    if (r.what == call::write && !is_named_at_write_) is_named_at_write_ = folder_synced_;
    return 0;
  }
  void after(const media::os::request& r) noexcept override {
    if (r.what != call::sync) return;
    has_synced_ = true;
    struct stat status = {};
    folder_synced_ = folder_synced_ || (::fstat(r.fd, &status) == 0 && S_ISDIR(status.st_mode));
  }
  // Whether a directory had been synced before the first write.
  bool is_named_at_write() const { return is_named_at_write_.value_or(false); }

 private:
  const int refused_open_;
  bool has_synced_ = false, folder_synced_ = false;
  std::optional<bool> is_named_at_write_;
};

result<> publish_at(const std::string& path, int refused_open) {
  auto made = storage::new_file::make(path, 4096);
  if (!made) return std::unexpected(made.error());
  const std::byte bytes[16]{};
  if (auto written = made->write(bytes, 0); !written) return written;
  const watched_calls calls(refused_open);
  return made->publish();
}

TEST(unsynced_names, are_of_no_new_file) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  EXPECT_FALSE(publish_at(path, EMFILE)) << "its name is not durable";
  EXPECT_FALSE(std::filesystem::exists(path));
  // A directory that may be written and not read: the file system is synced.
  EXPECT_TRUE(succeeds(publish_at(path, EACCES)));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(unsynced_names, are_synced_when_a_page_was_kept_by_an_interrupted_repair) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  (void)open_pool<field<std::uint64_t>>(path,
                                        {.create_size = 1 << 20, .engine = {.media = "process"}});
  const auto overwrite = [&] {
    auto file = storage::repair_file::open(path);
    ASSERT_TRUE(succeeds(file));
    const std::vector<std::byte> same(file->front(), file->front() + 8);
    ASSERT_TRUE(succeeds(file->overwrite(0, same, "nothing was damaged")));
  };
  overwrite();  // keeps the page
  const watched_calls calls;
  overwrite();
  EXPECT_TRUE(calls.is_named_at_write()) << "the pool changed before the page's name was durable";
}

}  // namespace
}  // namespace stele::testing
