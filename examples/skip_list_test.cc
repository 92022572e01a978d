// A crash test without a framework: explores the skip list, and prints what it
// found. With the argument `planted` it explores one with a bug.
#include "skip_list_test.h"

#include <cstdio>
#include <string_view>

struct planted_bug : basic_skip_list_test<basic_skip_list<stele::plain<std::uint64_t>>> {};

int main(int argc, char** argv) {
  const bool planted = argc > 1 && std::string_view(argv[1]) == "planted";
  const stele::testing::report found =
      planted ? stele::testing::explore<planted_bug>() : stele::testing::explore<skip_list_test>();
  std::printf("%s\n", found.message().c_str());
  return found.passed() ? 0 : 1;
}
