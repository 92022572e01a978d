// What a system adds to plain execution of a transaction: more accesses (logs), or hardware below
// (Kiln).
//
// A design is asked at the places where it may differ; the answers of this base class are those of
// a system without persistence. What it wants done it appends to a plan, which the thread carries
// out before it goes on, one entry after the other; accesses of a plan overlap as a program's do,
// and `fence` waits for them.
#pragma once

#include <sim/cache/hierarchy.h>
#include <sim/config.h>
#include <sim/core/line_set.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stele::sim {

struct action {
  // store_full_line: of all of a line, so that what memory has of it is not read.
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
};
using action_list = std::vector<action>;

class design {
 public:
  virtual ~design() = default;
  // A transaction of this thread begins; in_order: it asks to commit so. False: not yet, the thread
  // is told to try again.
  virtual bool begin(unsigned /*thread*/, bool /*in_order*/, requester& /*reply_to*/,
                     picoseconds /*now*/) {
    return true;
  }
  // Does before_store() do anything?
  virtual bool intercepts_stores() const noexcept { return false; }
  // It is about to store to these lines, `bytes` in all. True: the store is not done now, commit()
  // will ask for it.
  virtual bool before_store(unsigned /*thread*/, std::uint64_t /*first_line*/,
                            std::size_t /*lines*/, std::size_t /*bytes*/, action_list& /*p*/) {
    return false;
  }
  // It stores to a line now, and then has done so.
  virtual void storing(unsigned /*thread*/, std::uint64_t /*line*/, picoseconds /*now*/) {}
  virtual void stored(unsigned /*thread*/, std::uint64_t /*line*/, picoseconds /*now*/) {}
  virtual void aborted(unsigned /*thread*/) {}
  // It ends; its stores have been done. `lines`: what it has touched.
  virtual void commit(unsigned /*thread*/, const line_set& /*lines*/, action_list& /*p*/,
                      picoseconds /*now*/) {}
  // No more transactions come: what was put off is done now.
  virtual void finish(picoseconds /*now*/) {}
};

enum class kiln_mutant : std::uint8_t;

// What a design is made for.
struct design_context {
  event_queue& events;
  hierarchy& caches;
  const machine_config& machine;
  unsigned threads;
  kiln_mutant mutant{};  // a planted bug, for Kiln alone
};
struct design_kind {
  std::string_view name;
  // Errors: invalid_argument, when the machine does not fit the design.
  result<std::unique_ptr<design>> (*make)(const design_context& where);
};
std::span<const design_kind> design_kinds() noexcept;
// Errors: invalid_argument, naming the known ones.
[[nodiscard]] result<const design_kind*> design_named(std::string_view name);

}  // namespace stele::sim
