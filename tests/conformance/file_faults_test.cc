// Faults of files as Linux reports them: a failed write-back that is reported once, a short write,
// an interrupted call. For every mechanism each call of a run gets the fault in turn. A pool whose
// data may be lost is poisoned, and reopening finds everything acknowledged.
// tests/crash/file_crashes_test.cc has the power failures after such faults.
#include <tests/conformance/exercise.h>
#include <tests/conformance/file_faults.h>

namespace stele::testing {
namespace {

using explore::file_fault;

class file_faults : public ::testing::TestWithParam<std::tuple<std::string, file_fault>> {};

TEST_P(file_faults, lose_nothing_that_was_acknowledged) {
  const auto& [mechanism, what] = GetParam();
  scratch_directory dir;
  const std::string path = dir.file("pool"), copy = path + ".copy";
  const pool_options options{.create_size = 256 << 10,
                             .engine = {.mechanism = mechanism,
                                        .media = "file",
                                        .log_size = mechanism == "log_structured" ? 0u : 4096u,
                                        .log_count = 2,
                                        .block_checksums = checksums::automatic,
                                        .verify = verification::always,
                                        .background = false}};
  std::uint64_t held = 0, struck = 0;
  for (std::uint64_t call = 1;; call += call < 40 ? 1 : 7) {
    SCOPED_TRACE("call " + std::to_string(call));
    outcome o;
    bool of_pool = false;
    {
      const faulty_files files(explore::file_faults(what, call));
      o = use(path, options, held);
      if (!files.faults().has_triggered()) break;
      of_pool = files.faults().has_triggered(path.c_str());
    }
    ++struck;
    const bool refused_any = !o.opened || !o.closed || o.refused_twice;
    EXPECT_TRUE(refused_any || what != file_fault::write_back || !of_pool)
        << "nobody minded that a write-back failed";
    EXPECT_FALSE(refused_any && what == file_fault::short_write)
        << "the rest of a write was not written";
    if (std::filesystem::exists(copy))
      expect_whole(copy, options, {.acknowledged = 0, .tried = o.tried});
    std::filesystem::remove(copy);
    held = expect_whole(path, options, o);
    if (call % 4 == 0) std::filesystem::remove(path), held = 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(struck, what == file_fault::write_back ? 0u : 20u) << "there are more calls than that";
}

const char* name_of(file_fault f) {
  return f == file_fault::write_back    ? "write_back"
         : f == file_fault::short_write ? "short_write"
                                        : "interrupted";
}

INSTANTIATE_TEST_SUITE_P(of, file_faults,
                         ::testing::Combine(::testing::ValuesIn(durable_mechanisms()),
                                            ::testing::Values(file_fault::write_back,
                                                              file_fault::short_write,
                                                              file_fault::interrupted)),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param) + "_";
                           std::ranges::replace(name, '-', '_');
                           return name + name_of(std::get<1>(one.param));
                         });

}  // namespace
}  // namespace stele::testing
