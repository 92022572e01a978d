// See forks.h.
#include <base/check.h>
#include <base/forks.h>
#include <pthread.h>

namespace stele::base {

namespace {

constinit unsigned forks_so_far = 0;  // changes while the process has one thread

[[maybe_unused]] const bool counts = call_in_children(+[]() noexcept { ++forks_so_far; });

}  // namespace

bool call_in_children(void (*f)()) noexcept {
  check(::pthread_atfork(nullptr, nullptr, f) == 0,
        "no memory to be told of forks, after which a child would use its parent's locks");
  return true;
}

unsigned forks() noexcept {
  return forks_so_far;
}

}  // namespace stele::base
