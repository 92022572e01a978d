// See forks.h.
#include <base/forks.h>
#include <pthread.h>

namespace stele::base {

namespace {

constinit unsigned forks_so_far = 0;  // changes while the process has one thread

[[maybe_unused]] const int counts =
    ::pthread_atfork(nullptr, nullptr, +[]() noexcept { ++forks_so_far; });

}  // namespace

unsigned forks() noexcept {
  return forks_so_far;
}

}  // namespace stele::base
