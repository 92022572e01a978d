// The same targets under libFuzzer, which keeps inputs that reach new code. One program for each
// target, STELE_FUZZ_TARGET. docs/CONTRIBUTING.md says how to run it for long.
//
//   stele_fuzz_pool --seeds=DIRECTORY   writes the seeds there and ends
#include <tests/fuzz/target.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

const stele::fuzz::target& this_target() {
  for (const auto& t : stele::fuzz::targets())
    if (t.name == STELE_FUZZ_TARGET) return t;
  std::abort();
}

int write_seeds(const std::string& directory) {
  unsigned number = 0;
  for (const auto& seed : this_target().seeds())
    stele::fuzz::write_file(directory + "/seed-" + std::to_string(number++), seed);
  std::printf("%u seeds\n", number);
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i)
    if (std::strncmp((*argv)[i], "--seeds=", 8) == 0) std::exit(write_seeds((*argv)[i] + 8));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string broken = this_target().run({reinterpret_cast<const std::byte*>(data), size});
  if (broken.empty()) return 0;
  std::fprintf(stderr, "a promise is broken: %s\n", broken.c_str());
  std::abort();
}

extern "C" std::size_t LLVMFuzzerCustomMutator(unsigned char* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  stele::base::rng random(seed);
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  stele::fuzz::bytes input(first, first + size);
  this_target().mutate(input, random, most);
  input.resize(std::min(input.size(), most));
  std::memcpy(data, input.data(), input.size());
  return input.size();
}
