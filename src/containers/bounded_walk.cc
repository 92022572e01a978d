// The state of a bounded walk: the range of the heap and, for each page with claims, a flag for
// each 8 bytes.
#include <base/assert.h>
#include <containers/claim_observer.h>
#include <stele/detail/bounded_memory.h>

#include <array>
#include <unordered_map>

namespace stele::detail {

bool is_used_block(std::uintptr_t address, std::size_t size);

namespace {

// The size and the begin of every block are multiples of it.
constexpr std::size_t granule = 8, page_granules = 4096;

constinit thread_local const claim_observer* observer = nullptr;

[[noreturn]] void throw_corrupt(const char* what) {
  throw failure({errc::corrupt, std::string("the content is damaged: ") + what});
}

}  // namespace

struct bounded_walk::state {
  std::uintptr_t begin = 0, end = 0;
  std::unordered_map<std::uintptr_t, std::array<bool, page_granules>> claimed;
};

struct claims {
  static inline constinit thread_local bounded_walk::state* walk_of_thread = nullptr;

  static bounded_walk::state& current() {
    if (walk_of_thread == nullptr)
      throw failure({errc::invalid_argument, "a container is checked outside of a bounded walk"});
    return *walk_of_thread;
  }
};

bounded_walk::bounded_walk() : state_(std::make_unique<state>()) {
  if (!in_transaction())
    throw failure({errc::invalid_argument, "content is checked inside a transaction"});
  state_->begin = running_heap().begin;
  state_->end = running_heap().end;
  STELE_ASSERT(state_->begin < state_->end && state_->begin % granule == 0);
  claims::walk_of_thread = state_.get();
}
bounded_walk::~bounded_walk() {
  claims::walk_of_thread = nullptr;
}

claim_observer::claim_observer(callback on_claim) : on_claim_(std::move(on_claim)) {
  observer = this;
}
claim_observer::~claim_observer() {
  STELE_ASSERT(observer == this);  // one at a time, in the thread that made it
  observer = nullptr;
}

void validate_range(const void* from, std::size_t size, std::size_t alignment) {
  const auto& s = claims::current();
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  if (at < s.begin || at >= s.end || size > s.end - at)
    throw_corrupt("a link leads out of the heap");
  if (at % alignment != 0) throw_corrupt("a link leads between two words");
}

std::size_t heap_bytes() {
  return claims::current().end - claims::current().begin;
}

void claim_block(const void* block, std::size_t size) {
  validate_range(block, size, granule);
  auto& s = claims::current();
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(block) - s.begin) / granule,
                       count = (size + granule - 1) / granule;
  STELE_ASSERT((first + count) * granule <= s.end - s.begin + granule - 1);
  for (std::uintptr_t g = first; g < first + count; ++g) {
    bool& claimed_before = s.claimed[g / page_granules][g % page_granules];
    if (claimed_before) throw_corrupt("two links lead to one place");
    claimed_before = true;
  }
  if (!is_used_block(reinterpret_cast<std::uintptr_t>(block), size))
    throw_corrupt("a link leads to no block in use, or to a smaller one");
  if (observer != nullptr)
    observer->on_claim_(reinterpret_cast<std::uintptr_t>(block) - running_heap().pool, size);
}

}  // namespace stele::detail
