// A fixed number of mutated inputs for each target, always the same ones: the part of tests/fuzz
// that continuous integration runs.
//
// STELE_FUZZ_SEED, STELE_FUZZ_FIRST and STELE_FUZZ_INPUTS choose other inputs, STELE_FUZZ_KEEP=FILE
// writes them to a file. A failure names its input. Input N is seed N % seeds, mutated with random
// numbers that depend on STELE_FUZZ_SEED and N alone. An input that takes ten seconds of processor
// time is a hang.
#include <explore/cache_crashes.h>
#include <explore/controller_crashes.h>
#include <explore/schedule/schedules.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <tests/budget.h>
#include <tests/conformance/pools.h>
#include <tests/format/specimens.h>
#include <tests/fuzz/repair.h>
#include <tests/fuzz/target.h>
#include <unistd.h>

#include <cstdio>

namespace stele::fuzz {
namespace {

using budget::count_from;

char current_input[128];  // for the message on a signal

void tell_signal(int number) {
  (void)!::write(STDERR_FILENO, current_input, std::strlen(current_input));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// Restarts the limit: ten seconds of processor time from now.
void wind_up() {
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = 10, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

class fuzz : public ::testing::TestWithParam<target> {};

template <class Line>
std::string read_replay_line(const std::string& line) {
  const auto first = explore::parse_line<Line>(line);
  if (!first) return "";
  const std::string written = explore::format_line(*first);
  const auto again = explore::parse_line<Line>(written);
  return again && explore::format_line(*again) == written
             ? ""
             : "a replay line that was understood is not when it is written again";
}

bytes input_of(const target& t, const std::vector<bytes>& seeds, std::uint64_t seed,
               std::uint64_t n) {
  base::rng random(base::mix(seed) ^ n);
  bytes input = seeds[n % seeds.size()];
  for (std::uint64_t rounds = 1 + random.below(3); rounds-- > 0;)
    t.mutate(input, random, t.most_bytes);
  return input;
}

TEST_P(fuzz, mutated_inputs) {
  const target& t = GetParam();
  const std::uint64_t seed = count_from("STELE_FUZZ_SEED", 1),
                      count = count_from("STELE_FUZZ_INPUTS", t.inputs_in_ci / budget::slowness),
                      first = count_from("STELE_FUZZ_FIRST", 0);
  for (const int number : {SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGABRT})
#ifdef __SANITIZE_ADDRESS__
    if (number == SIGPROF)
#endif
      ::signal(number, tell_signal);
  const std::vector<bytes> seeds = t.seeds();
  line_readers() = {read_replay_line<explore::run_crash>, read_replay_line<explore::cache_crash>,
                    read_replay_line<explore::controller_crash>,
                    read_replay_line<explore::schedule_line>};
  for (std::uint64_t n = first; n < first + count; ++n) {
    std::snprintf(current_input, sizeof current_input,
                  "\nSTELE_FUZZ_SEED=%lu STELE_FUZZ_FIRST=%lu STELE_FUZZ_INPUTS=1, target %s\n",
                  seed, n, t.name.c_str());
    wind_up();
    const bytes input = input_of(t, seeds, seed, n);
    if (const char* const kept = ::getenv("STELE_FUZZ_KEEP")) write_file(kept, input);
    const std::string broken = t.run(input);
    EXPECT_EQ(broken, "") << current_input;
    if (HasFailure() && ::getenv("STELE_FUZZ_GO_ON") == nullptr) break;
  }
  const itimerval never{};
  ::setitimer(ITIMER_PROF, &never, nullptr);
  std::printf("%lu inputs from %zu seeds, STELE_FUZZ_SEED=%lu\n", count, seeds.size(), seed);
}

INSTANTIATE_TEST_SUITE_P(every, fuzz, ::testing::ValuesIn(targets()),
                         [](const auto& of) { return of.param.name; });

// Unsound seeds would show the targets nothing but refusals.
TEST(fuzz_seeds, are_sound_as_they_are) {
  for (const target& t : targets())
    for (const bytes& seed : t.seeds()) EXPECT_EQ(t.run(seed), "") << t.name;
}

// The mutator computes every checksum as the library does: in an undamaged pool there is nothing to
// repair.
TEST(fuzz_seeds, repair_changes_nothing_of_a_whole_pool) {
  for (const testing::specimen& s : testing::specimens()) {
    const bytes pool = testing::make(s, scratch());
    bytes repaired = pool;
    repair_pool(image(repaired));
    // While a pool is open, its block checksums may lack what records hold.
    for (std::size_t i = 0; i < pool.size() && !(s.left_open && s.sums); i += 8)
      ASSERT_EQ(image(repaired).word(i), image(const_cast<bytes&>(pool)).word(i))
          << s.name << ", offset " << i;
    const std::string path = scratch() + "/whole";
    write_file(path, pool);
    const auto text = testing::content_text(path);
    ASSERT_TRUE(text) << s.name << ": " << text.error().message;
    EXPECT_GE(text->size(), 20u) << s.name;
  }
}

}  // namespace
}  // namespace stele::fuzz
