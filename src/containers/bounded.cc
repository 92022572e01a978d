// What a bounded walk knows: the range of the heap, and a bit for each 16 bytes that were claimed, of the pages where any
// were.
#include <containers/bounded.h>
#include <stele/bounded_memory.h>

#include <array>
#include <unordered_map>

namespace stele::detail {

std::uint64_t heap_begin_of_running() noexcept;

namespace {

constexpr std::size_t granule = 16, page_granules = 4096;  // no block is smaller, nor begins elsewhere

constinit thread_local const claims_told* listening = nullptr;

[[noreturn]] void damaged(const char* what) {
  throw failure({errc::corrupt, std::string("the content is damaged: ") + what});
}

}  // namespace

struct bounded_walk::state {
  std::uintptr_t begin = 0, end = 0;
  std::unordered_map<std::uintptr_t, std::array<bool, page_granules>> claimed;
};

struct claims {
  static inline constinit thread_local bounded_walk::state* of_thread = nullptr;

  static bounded_walk::state& now() {
    if (of_thread == nullptr) throw failure({errc::invalid_argument, "a container is checked outside of a bounded walk"});
    return *of_thread;
  }
};

bounded_walk::bounded_walk() : state_(std::make_unique<state>()) {
  const access& a = this_access;
  if (a.size == 0) throw failure({errc::invalid_argument, "content is checked inside a transaction"});
  state_->begin = a.home + heap_begin_of_running();
  state_->end = a.home + a.size;
  claims::of_thread = state_.get();
}
bounded_walk::~bounded_walk() {
  claims::of_thread = nullptr;
}

claims_told::claims_told(tell told) : told_(std::move(told)) {
  listening = this;
}
claims_told::~claims_told() {
  listening = nullptr;
}

void expect_in_heap(const void* from, std::size_t size, std::size_t alignment) {
  const auto& s = claims::now();
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  if (at < s.begin || at >= s.end || size > s.end - at) damaged("a link leads out of the heap");
  if (at % alignment != 0) damaged("a link leads between two words");
}

std::size_t bytes_of_heap() {
  return claims::now().end - claims::now().begin;
}

void claim_block(const void* block, std::size_t size) {
  expect_in_heap(block, size, granule);
  auto& s = claims::now();
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(block) - s.begin) / granule,
                       count = (size + granule - 1) / granule;
  for (std::uintptr_t g = first; g < first + count; ++g) {
    bool& taken = s.claimed[g / page_granules][g % page_granules];
    if (taken) damaged("two links lead to one place");
    taken = true;
  }
  if (listening != nullptr) listening->told_(reinterpret_cast<std::uintptr_t>(block) - this_access.home, size);
}

}  // namespace stele::detail
