// The controller of one channel: admits requests to its queues, issues the commands that its
// scheduler chooses, and refreshes.
//
// The channel is awake only while requests are queued, and only at times at which a command may be
// allowed. It keeps at most one valid wake-up in the event queue, and one event for each request in
// service. Refreshes that fall due while nothing is queued are issued later, with the times at
// which they would have happened. Admission is in order: a request that finds its queue, or the
// limit of its bank, full holds up all later requests. A bank whose cells are being written (pulse
// above 0) takes no command until the write ends; this is the device's limit, not a timing rule.
#pragma once

#include <sim/controller/scheduler.h>
#include <sim/controller/statistics.h>
#include <sim/device/retention.h>

namespace stele::sim {

// A write that has just become persistent.
struct write_report {
  request req;
  write_origin origin;
  unsigned channel = 0, bank = 0;
  picoseconds started = 0, persisted = 0;
};

// A command that a channel has issued.
struct command_report {
  command what = command::activate;
  unsigned channel = 0, rank = 0;
  unsigned bank = 0;  // of the channel; for a refresh, the first bank of the rank
  picoseconds at = 0;
  std::uint32_t row = no_row;  // that an activate opens, that a read or write is for
  bool automatic = false;      // a precharge that the device does by itself, at `at`
  std::uint64_t address = 0;   // of the line that a read or write is for
};

// Called for every command. A precharge that the device does by itself is reported with the column
// command before it, and takes effect later. Commands of idle time are reported only when work
// arrives again; of the refreshes of a long idle time, only the first and the last are reported.
class command_observer {
 public:
  virtual void issued(const command_report& report) = 0;

 protected:
  ~command_observer() = default;
};

// Bugs planted in a controller. The check of its commands (command_rules.h) must find those of a
// channel.
enum class controller_mutant : std::uint8_t {
  none,
  precharged_at_once,    // an automatic precharge waits for no rule
  last_bank_left_open,   // a refresh does not close the last bank of its rank
  last_bank_served,      // a due refresh does not block the last bank of its rank
  refresh_drifts,        // the next interval begins when a refresh is issued, not when it was due
  expired_logs_trusted,  // no line of a log is older than its retention
};

// Shared by all channels of a memory, and the observer that they report to.
class channel_observer {
 public:
  virtual void persisted(const write_report& report) = 0;
  virtual void order_changed(picoseconds now) = 0;  // writes that had to wait may start

 protected:
  ~channel_observer() = default;
};

struct channel_context {
  event_queue& events;
  const memory_config& config;
  const timing_table& timing;
  const scheduler_kind& kind;
  const write_pulses& pulses;
  epoch_tracker& stream;
  channel_observer& observer;
  unsigned number;
  controller_mutant mutant = controller_mutant::none;
};

class channel final : public event_handler {
 public:
  explicit channel(const channel_context& parts);
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  void submit(picoseconds now, const request& r, const device_address& where);
  void order_changed(picoseconds now);
  bool has_room_for(access kind, unsigned bank) const noexcept {
    return backlog_.head == no_entry && has_room(kind, bank);
  }
  void observe(command_observer* observer) noexcept { observer_ = observer; }
  std::size_t outstanding() const noexcept { return outstanding_; }
  // Includes the refreshes of idle time until now.
  const memory_statistics& statistics(picoseconds now);

  void handle(picoseconds now, std::uint64_t what) override;

 private:
  static constexpr std::uint64_t wake_up =
      ~std::uint64_t{0};  // any other event value is an entry index

  // channel.cc
  bool has_room(access kind, unsigned bank) const noexcept;
  void admit();
  void enqueue(entry_index i);
  void wake_at(picoseconds when);
  void issue_ready_commands(picoseconds now);
  void issue(const decision& d, picoseconds now);
  void issue_activate(entry& e, picoseconds now);
  void issue_precharge(unsigned bank, picoseconds at);
  void issue_column(entry_index i, picoseconds now);
  void close_unless_hit(unsigned bank);
  void count_open_row(unsigned bank, picoseconds at);
  void count_closed_row(unsigned bank, picoseconds at);
  void report(command what, unsigned bank, picoseconds at, std::uint32_t row = no_row,
              bool automatic = false, std::uint64_t address = 0) const;
  picoseconds pulse_of(const entry& e) const noexcept;
  void count_issue(const entry& e);
  void count_busy_bank(const entry& e, picoseconds end);
  void finish(entry_index i, picoseconds now);
  void finish_write(entry_index i, picoseconds now);

  // refresh.cc
  std::uint64_t banks_of(unsigned rank,
                         controller_mutant without_last = controller_mutant::none) const noexcept;
  void issue_refresh(unsigned rank, picoseconds at);
  picoseconds close_rank(unsigned rank, picoseconds due, picoseconds now);
  picoseconds refresh_rank(unsigned rank, picoseconds now);
  picoseconds refresh(picoseconds now);
  bool refresh_idle(unsigned rank, picoseconds now);
  void skip_idle(picoseconds now);
  void catch_up_refreshes(picoseconds now);

  event_queue& events_;
  channel_observer& channel_observer_;
  epoch_tracker& stream_;
  channel_state state_;
  std::unique_ptr<scheduler> scheduler_;
  decision decision_;
  bool decision_stale_ = true;
  entry_list backlog_;  // not yet admitted
  picoseconds wake_up_at_ = never;
  std::size_t outstanding_ = 0;
  std::uint64_t arrivals_ = 0;
  picoseconds busy_since_ = 0;
  std::vector<picoseconds> activated_at_, bank_busy_until_;  // for each bank
  std::vector<std::uint8_t> rank_of_;                        // for each bank
  std::vector<unsigned> open_rows_;                          // for each rank
  std::vector<picoseconds> open_from_;                       // for each rank with an open row
  memory_statistics statistics_;

  picoseconds read_latency_, write_latency_;
  write_pulses pulses_;
  unsigned read_limit_, write_limit_, bank_limit_;
  bool open_page_, follows_barriers_;
  unsigned number_;
  controller_mutant mutant_;
  command_observer* observer_ = nullptr;

  picoseconds refresh_interval_;
  std::vector<picoseconds> refresh_due_;  // for each rank
  picoseconds earliest_due_ = never;
};

}  // namespace stele::sim
