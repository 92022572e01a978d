// What a program asks of a pool of archapt-undo or archapt-redo after a crash that recovery could
// not repair: which commits are lost. In libstele_published.
//
//   stele::use_published();  // stele/published.h
//   auto pool = stele::pool<counter>::open(
//       "counter.stele", {.engine = {.mechanism = "archapt-redo"}});
//   if (pool && stele::fallback_of(*pool))  // commits were lost; the program has noted it
//     if (auto noted = stele::acknowledge_fallback(*pool); !noted) return 1;
#pragma once

#include <stele/pool.h>

#include <optional>
#include <string>

namespace stele {

// Recovery could not restore everything after a crash, and the pool went back to its last
// checkpoint.
struct archapt_fallback {
  ticket to;  // the checkpoint; it contains no later commit
  // The newest commit that recovery found a trace of. Commits after `to` up to this one are lost.
  ticket from;
  // What could not be restored, as a sentence. Empty if an earlier open() went back.
  std::string lost;
};

namespace detail {

std::optional<archapt_fallback> fallback_of(runtime& r);
[[nodiscard]] result<> acknowledge_fallback(runtime& r);

}  // namespace detail

// Set if the pool went back to a checkpoint, in this open or an earlier one, and the loss has not
// been acknowledged; the latest one. Whatever mechanism the pool is open with. Thread-safe.
template <class Root>
std::optional<archapt_fallback> fallback_of(const pool<Root>& p) {
  return detail::fallback_of(p.core());
}

// Acknowledges the loss: fallback_of() then says nothing of it. Does nothing if there is none.
// Durable on return; after a crash before that, the loss may be reported again. Transactions wait
// meanwhile. Errors: io; poisoned; nested, inside a transaction. Thread-safe.
template <class Root>
[[nodiscard]] result<> acknowledge_fallback(pool<Root>& p) {
  return detail::acknowledge_fallback(p.core());
}

}  // namespace stele
