// Schedulers: which of a channel's queued requests gets the next command.
//
// A scheduler sees the channel's queues, open rows and timing tables and names one command for one
// request, with the time from which the rules allow it; the channel gives it then, unless something
// has changed meanwhile. It decides no more than that: refresh, completion and admission to the
// queues are the channel's. To add one, write a class in a file of its own and a line in the table
// of schedulers.cc.
#pragma once

#include <sim/controller/request_queue.h>
#include <sim/controller/timing.h>

#include <memory>
#include <span>
#include <string_view>

namespace stele::sim {

inline constexpr std::uint32_t no_row = ~std::uint32_t{0};

struct channel_state {
  request_queue queue;
  timing_table timing;
  std::vector<std::uint32_t> open_row;   // of each bank
  std::uint64_t blocked_by_refresh = 0;  // banks that wait for a refresh, as bits

  bool is_blocked_by_refresh(unsigned bank) const noexcept {
    return blocked_by_refresh >> bank & 1;
  }
  // The command that brings the request on.
  command next_command(const entry& e) const noexcept {
    const std::uint32_t row = open_row[e.bank];
    if (row == e.row) return e.req.kind == access::read ? command::read : command::write;
    return row == no_row ? command::activate : command::precharge;
  }
};

struct decision {
  picoseconds at = never;  // never: nothing that a command of ours would bring on
  entry_index entry = no_entry;
  command what = command::activate;
};

class scheduler {
 public:
  virtual ~scheduler() = default;
  virtual decision next(picoseconds now) = 0;
  // The request has been queued. False: the last decision stands.
  virtual bool enqueued(const entry& e) = 0;
  // The bank's queues, its open row or the times at its node have changed.
  virtual void bank_changed(unsigned bank) = 0;
  // The stream's order allows other writes than before.
  virtual void order_changed() = 0;
  // The request is about to be dequeued: its column command is given.
  virtual void about_to_issue(const entry& e) = 0;
};

struct scheduler_kind {
  const char* name;
  bool follows_barriers;  // needs the write stream's epochs
  std::unique_ptr<scheduler> (*make)(const channel_state&, const memory_config&,
                                     const epoch_tracker&);
};

std::span<const scheduler_kind> scheduler_kinds() noexcept;
[[nodiscard]] result<const scheduler_kind*> find_scheduler(std::string_view name);

}  // namespace stele::sim
