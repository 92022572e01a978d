// What a persistence design adds to the plain execution of a transaction: more accesses (logs), or
// hardware (Kiln).
//
// A design is called at the points where designs may differ. The base class is a system without
// persistence. A design appends its actions to a plan. The thread carries the plan out, entry after
// entry, before it continues; accesses of a plan overlap as a program's do, and `fence` waits for
// them.
#pragma once

#include <sim/cache/hierarchy.h>
#include <sim/config.h>
#include <sim/core/line_set.h>
#include <sim/kinds.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stele::sim {

struct action {
  // store_full_line: stores a whole line, so the line is not read from memory.
  enum class kind : std::uint8_t {
    load,
    store,
    store_full_line,
    clean_to_memory,
    clean_to_shared,
    clean_invalidate_to_memory,
    stream,
    fence
  };
  kind what;
  std::uint64_t line = 0;
  void visit_state(archive& a) {
    a.choice(what, 8);
    a(line);
  }
};
using action_list = std::vector<action>;

class design {
 public:
  virtual ~design() = default;
  // A transaction of this thread begins; in_order: it asks to commit in order. Returns false when
  // it has to wait; then reply_to.retry() is called later.
  virtual bool begin(unsigned /*thread*/, bool /*in_order*/, requester& /*reply_to*/,
                     picoseconds /*now*/) {
    return true;
  }
  // Whether before_store() does anything.
  virtual bool intercepts_stores() const noexcept { return false; }
  // The transaction is about to store to these lines, `bytes` in all. Returns true when the store
  // is deferred: commit() adds it to the plan.
  virtual bool before_store(unsigned /*thread*/, std::uint64_t /*first_line*/,
                            std::size_t /*lines*/, std::size_t /*bytes*/, action_list& /*p*/) {
    return false;
  }
  // Called just before and just after a store to a line. Returns false when the store has to wait;
  // then reply_to.retry() is called later.
  virtual bool storing(unsigned /*thread*/, std::uint64_t /*line*/, requester& /*reply_to*/,
                       picoseconds /*now*/) {
    return true;
  }
  virtual void stored(unsigned /*thread*/, std::uint64_t /*line*/, picoseconds /*now*/) {}
  virtual void aborted(unsigned /*thread*/) {}
  // Whether all transactions that the thread has ended are durable. Returns false when the thread
  // has to wait; then reply_to.retry() is called later, and it asks again.
  virtual bool durable(unsigned /*thread*/, requester& /*reply_to*/, picoseconds /*now*/) {
    return true;
  }
  // The transaction ends and its stores are done. `lines`: the lines that it has touched.
  virtual void commit(unsigned /*thread*/, const line_set& /*lines*/, action_list& /*p*/,
                      picoseconds /*now*/) {}
  // No more transactions come: finishes the work that was put off.
  virtual void finish(picoseconds /*now*/) {}

  // For checkpoints (sim/archive.h): what changes in a run. A design that is a handler of events or
  // a requester names itself before any visit_state() is called. A run with a design that does not
  // override visit_state() has no checkpoints.
  virtual void name_parts(archive&) {}
  virtual void visit_state(archive& a) { a.refuse("design"); }
};

enum class kiln_mutant : std::uint8_t;

// The environment that a design is created for.
struct design_context {
  event_queue& events;
  hierarchy& caches;
  const machine_config& machine;
  unsigned threads;
  kiln_mutant mutant{};  // a planted bug, for Kiln only
};
struct design_kind {
  std::string_view name;
  // Errors: invalid_argument, when the machine does not fit the design.
  result<std::unique_ptr<design>> (*make)(const design_context& where);
};
// The laboratory's own.
std::span<const design_kind> design_kinds() noexcept;
kinds<design_kind>& designs();
// Errors: invalid_argument, with the known names.
[[nodiscard]] result<const design_kind*> design_named(std::string_view name);

}  // namespace stele::sim
