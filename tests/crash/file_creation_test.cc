// Power failures while a pool file is created: afterwards there is no file of that name, or it is a
// complete, empty pool.
//
// The system calls of the real creation are recorded. From the moment when the file is about to get
// its name, every state that the device may have is written to a file, which the library opens and
// checks.
#include <base/mutant.h>
#include <explore/file_recorder.h>
#include <explore/scratch_file.h>
#include <explore/sector_model.h>
#include <explore/state_sampler.h>
#include <stele/pool.h>
#include <tests/conformance/pools.h>
#include <tests/crash/mechanisms.h>

namespace stele::explore {
namespace {

struct counter {
  field<std::uint64_t> value;
};

constexpr std::size_t pool_size = 128 << 10, behind = 4096;

std::vector<std::byte> tape_of_creation(const std::string& mechanism) {
  const auto tape = media::tape_writer::to_memory(
      {.pool_size = pool_size + behind, .home_offset = pool_size, .log_offset = 4096});
  const stele::testing::scratch_directory dir;
  storage::pool_geometry shape{pool_size, mechanism == "log_structured" ? std::size_t{1024} : 4096,
                               2, "created"};
  shape = (*detail::find_mechanism(mechanism))->geometry_for(shape, {});
  const file_recorder recorder(*tape, {}, pool_size, file_faults());
  const auto made = storage::pool_file::create(dir.file("pool"), shape);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_TRUE(tape->finish());
  return {tape->memory().begin(), tape->memory().end()};
}

class creation {
 public:
  creation(std::span<const std::byte> tape, std::string mechanism)
      : mechanism_(std::move(mechanism)) {
    model_.start(durable_);
    work_.assign(durable_);
    auto reader = media::tape_reader::from_memory(tape);
    while (auto event = *reader->next()) take(*event);
    look();
  }

  std::uint64_t states = 0;
  std::vector<std::string> wrong;

 private:
  void take(const media::tape_event& e) {
    using media::tape_op;
    if (e.op == tape_op::store) model_.store(e.thread, e.address, e.bytes);
    if (e.op == tape_op::stream) model_.stream(e.thread, e.address, e.bytes);
    if (e.op == tape_op::flush) model_.flush(e.thread, e.address, e.length);
    if (e.op == tape_op::invoked) named_ = true;
    if (e.op != tape_op::fence) return;
    look();
    for (const std::uint32_t sector : model_.fence(e.thread)) model_.put(work_, sector, 0);
  }

  void look() {
    if (!named_) return;
    const auto sectors = model_.pending();
    std::vector<std::uint64_t> options, chosen(sectors.size());
    for (const std::uint32_t sector : sectors) options.push_back(model_.options(sector));
    state_sampler all(options, 64, 1);
    for (std::uint64_t k = 0; k < all.count(); ++k) {
      all.select(k, chosen);
      for (std::size_t i = 0; i < sectors.size(); ++i) model_.put(work_, sectors[i], chosen[i]);
      judge();
    }
    for (const std::uint32_t sector : sectors) model_.put(work_, sector, 0);
  }

  void judge() {
    ++states;
    std::uint64_t length;
    std::memcpy(&length, work_.data() + pool_size, sizeof length);
    const auto file = scratch_file::make("", {work_.data(), static_cast<std::size_t>(length)});
    ASSERT_TRUE(file);
    auto opened =
        pool<counter>::open(file->path(), {.engine = {.mechanism = mechanism_, .media = "file"}});
    if (!opened) return wrong.push_back(opened.error().message);
    const auto counted =
        opened->update([](counter& c) { return c.value = c.value + 1, c.value.load(); });
    if (!counted || *counted != 1) wrong.emplace_back("it is not empty");
    if (auto checked = opened->check(); !checked) wrong.push_back(checked.error().message);
  }

  std::string mechanism_;
  hashed_image durable_{pool_size + behind, 0, 0}, work_{pool_size + behind, 0, 0};
  sector_model model_{pool_size + behind};
  bool named_ = false;
};

TEST(FileCreation, leaves_a_whole_pool_or_none) {
  for (const std::string& mechanism : durable_mechanisms()) {
    const creation made(tape_of_creation(mechanism), mechanism);
    EXPECT_GT(made.states, 0u);
    for (const std::string& what : made.wrong) ADD_FAILURE() << mechanism << ": " << what;
  }
}

TEST(FileCreation, sees_a_name_given_too_early) {
  base::planted_mutant = base::mutant::file_named_first;
  const auto tape = tape_of_creation("default");
  base::planted_mutant = base::mutant::none;
  const creation made(tape, "default");
  EXPECT_GT(made.states, 10u);
  EXPECT_FALSE(made.wrong.empty());
}

}  // namespace
}  // namespace stele::explore
