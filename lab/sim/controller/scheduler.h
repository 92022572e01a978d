// Schedulers choose which of a channel's queued requests gets the next command.
//
// A scheduler sees the channel's queues, open rows and timing tables. It names one command for one
// request, with the earliest time that the rules allow. The channel issues the command then, unless
// something has changed in between. Refresh, completion and admission to the queues are the
// channel's task. To add a scheduler, write a class in its own file and a line in the table of
// schedulers.cc, or a plug-in (sim/plugin.h).
#pragma once

#include <sim/controller/request_queue.h>
#include <sim/controller/timing.h>
#include <sim/kinds.h>

#include <memory>
#include <span>
#include <string_view>

namespace stele::sim {

inline constexpr std::uint32_t no_row = ~std::uint32_t{0};

struct channel_state {
  request_queue queue;
  timing_table timing;
  std::vector<std::uint32_t> open_row;  // for each bank
  bank_set blocked_by_refresh;          // until a refresh
  // By kind: banks whose open row was opened for a request of it that is still queued.
  std::array<bank_set, 2> opened_for;

  bool is_blocked_by_refresh(unsigned bank) const noexcept { return blocked_by_refresh.has(bank); }
  // The next command that the request needs.
  command next_command(const entry& e) const noexcept {
    const std::uint32_t row = open_row[e.bank];
    if (row == e.row) return e.req.kind == access::read ? command::read : command::write;
    return row == no_row ? command::activate : command::precharge;
  }
};

struct decision {
  picoseconds at = never;  // never: no command would make progress now
  entry_index entry = no_entry;
  command what = command::activate;
  void visit_state(archive& a, std::size_t entries) {
    a(at);
    a.index_or(entry, no_entry, entries);
    a.choice(what, commands);
  }
};

class scheduler {
 public:
  virtual ~scheduler() = default;
  virtual decision next(picoseconds now) = 0;
  // The request has been queued. Returns false when the last decision stays valid.
  virtual bool enqueued(const entry& e) = 0;
  // The bank's queues, open row or timing have changed.
  virtual void bank_changed(unsigned bank) = 0;
  // Other writes may start now, by the order of the stream.
  virtual void order_changed() = 0;
  // The request is about to be dequeued, because its column command is issued.
  virtual void about_to_issue(const entry& e) = 0;
  // For checkpoints (sim/archive.h): what changes in a run. A run with a scheduler that does not
  // override it has no checkpoints.
  virtual void visit_state(archive& a) { a.refuse("scheduler"); }
};

struct scheduler_kind {
  const char* name;
  bool follows_barriers;  // uses the epochs of the write stream
  // A fence is a persist barrier: it returns at once, and the controller keeps the order.
  bool fences_return;
  std::unique_ptr<scheduler> (*make)(const channel_state&, const memory_config&,
                                     const epoch_tracker&);
};

// The laboratory's own.
std::span<const scheduler_kind> scheduler_kinds() noexcept;
kinds<scheduler_kind>& schedulers();
[[nodiscard]] result<const scheduler_kind*> find_scheduler(std::string_view name);

}  // namespace stele::sim
