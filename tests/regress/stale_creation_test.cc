// Creation on a file system without unnamed files (O_TMPFILE), where the new file has a temporary
// name until it is complete. A file that already had that name, left by a crash or put there as a
// link by somebody else, was emptied or taken over.
#include <fcntl.h>
#include <media/os.h>
#include <tests/conformance/exercise.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

// The first open of a creation opens the directory, to make an unnamed file.
class no_unnamed_files final : public media::os::syscall_hook {
 public:
  no_unnamed_files() { media::os::install_hook(this); }
  ~no_unnamed_files() override { media::os::install_hook(nullptr); }
  int before(const media::os::request& r) noexcept override {
    return r.what == media::os::call::open && opens_++ == 0 ? EOPNOTSUPP : 0;
  }

 private:
  unsigned opens_ = 0;
};

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), {}));
}
std::string text_in(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(stale_creation, is_left_alone_and_another_name_taken) {
  scratch_directory dir;
  const std::string path = dir.file("pool"),
                    name = path + ".creating." + std::to_string(::getpid());
  const std::vector<std::string> stale = {name, name + ".0", name + ".1", name + ".2"};
  for (const std::string& s : stale) std::ofstream(s) << "somebody's";
  std::ofstream(dir.file("target")) << "precious";
  std::filesystem::create_symlink(dir.file("target"), name + ".3");
  {
    const no_unnamed_files here;
    ASSERT_TRUE(succeeds(
        pool<texts_root>::open(path, {.create_size = 1 << 20, .engine = {.media = "process"}})));
  }
  for (const std::string& s : stale) EXPECT_EQ(text_in(s), "somebody's") << s;
  EXPECT_EQ(text_in(dir.file("target")), "precious");
  EXPECT_EQ(files_in(dir.file("")), stale.size() + 3) << "something half-made is left";
  EXPECT_TRUE(succeeds(pool<texts_root>::open(path)));
}

}  // namespace
}  // namespace stele::testing
