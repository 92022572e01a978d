// The controller of one channel: admits requests to its queues, issues the commands that its
// scheduler chooses, and refreshes.
//
// The channel is awake only while requests are queued, and only at times at which a command may be
// allowed. It keeps at most one valid wake-up in the event queue, and one event for each request in
// service. Refreshes that fall due while nothing is queued are issued later, with the times at
// which they would have happened. Reads and writes are admitted apart, each in order: a request
// that finds its queue, or the limit of its bank, full holds up all later requests of its kind. A
// bank whose cells are being written (pulse above 0) takes no command until the write ends; this is
// the device's limit, not a timing rule.
// With write_back_rows the cells are written when a written row is closed: the precharge begins
// with the pulse. A write is persistent when its line is in the row buffer then.
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
  bool truncation = false;  // of a log
};

// A command that a channel has issued.
struct command_report {
  command what = command::activate;
  unsigned channel = 0, rank = 0;
  unsigned bank = 0;  // of the channel; for a refresh, the first bank that it refreshes
  picoseconds at = 0;
  std::uint32_t row = no_row;  // that an activate opens, that a read or write is for
  bool automatic = false;      // a precharge that the device does by itself, at `at`
  std::uint64_t address = 0;   // of the line that a read or write is for
  void visit_state(archive& a) {
    a.choice(what, commands);
    a(channel, rank, bank, at, row, automatic, address);
  }
};

// Called for every command. A precharge that the device does by itself is reported with the column
// command before it, and takes effect later. Commands of idle time are reported only when work
// arrives again; of the refreshes of a long idle time, only the first of each bank and the last are
// reported.
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
  last_bank_left_open,   // a refresh does not close the last of its banks
  last_bank_served,      // a due refresh does not block the last of its banks
  rows_dropped,          // a written row is closed without its pulse
  refresh_drifts,        // the next interval begins when a refresh is issued, not when it was due
  same_banks_again,      // every second same-bank refresh is of the banks of the one before it
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

  bool has_scheduler() const noexcept { return scheduler_ != nullptr; }
  void submit(picoseconds now, const request& r, const device_address& where);
  void order_changed(picoseconds now);
  bool has_room_for(access kind, unsigned bank) const noexcept {
    return held_back_[static_cast<unsigned>(kind)].head == no_entry && has_room(kind, bank);
  }
  void observe(command_observer* observer) noexcept { observer_ = observer; }
  std::size_t outstanding() const noexcept { return outstanding_; }
  // The most requests that waited at once for their column command, from `from` on: in the queue or
  // for admission to it.
  std::size_t longest_queue(access kind, picoseconds from) const noexcept {
    return waiting_[static_cast<unsigned>(kind)].longest_since(from);
  }
  // Includes the refreshes of idle time until now.
  const memory_statistics& statistics(picoseconds now);

  void handle(picoseconds now, std::uint64_t what) override;

  // channel_state.cc
  void name_parts(archive& a);
  void visit_state(archive& a);
  // The positions of the writes that are submitted and not persistent.
  std::vector<epoch_position> unfinished_writes() const;

 private:
  static constexpr std::uint64_t wake_up =
      ~std::uint64_t{0};  // any other event value is an entry index

  // channel.cc
  bool has_room(access kind, unsigned bank) const noexcept;
  bool is_forwarded(const request& r) const noexcept;
  void forward(entry_index i);
  void hold_back(entry_index i);
  void admit(access kind);
  void enqueue(entry_index i);
  void wake_at(picoseconds when);
  void issue_ready_commands(picoseconds now);
  void issue(const decision& d, picoseconds now);
  void issue_activate(entry_index i, picoseconds now);
  void issue_precharge(unsigned bank, picoseconds at);
  void issue_column(entry_index i, picoseconds now);
  picoseconds write_back_row(unsigned bank, picoseconds at);
  void close_unless_hit(unsigned bank);
  void count_open_row(unsigned bank, picoseconds at);
  void close_row(unsigned bank, picoseconds at);
  void report(command what, unsigned bank, picoseconds at, std::uint32_t row = no_row,
              bool automatic = false, std::uint64_t address = 0) const;
  picoseconds pulse_of(const entry& e) const noexcept;
  void count_issue(const entry& e);
  void count_busy_bank(unsigned bank, picoseconds from, picoseconds end);
  void finish(entry_index i, picoseconds now);
  void finish_write(entry_index i, picoseconds now);

  // channel_state.cc
  void requests_state(archive& a);
  std::vector<bool> in_service() const;
  void check_restored(archive& a) const;

  // refresh.cc
  bank_set refreshed_next(unsigned rank,
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
  std::array<entry_list, 2> held_back_;  // by kind: not yet admitted
  line_index held_back_lines_;           // the youngest write that is held back, by line
  picoseconds wake_up_at_ = never;
  std::size_t outstanding_ = 0;
  std::uint64_t arrivals_ = 0;
  std::vector<picoseconds> activated_at_, bank_busy_until_;  // for each bank
  std::vector<entry_index>
      opener_;  // for each bank with an open row: the request it was opened for
  // For each bank whose open row is newer than its cells: when the row buffer has the last write.
  std::vector<picoseconds> row_written_at_;
  std::vector<std::uint8_t> rank_of_;   // for each bank
  std::vector<unsigned> open_rows_;     // for each rank
  std::vector<picoseconds> open_from_;  // for each rank with an open row
  // For each rank: the latest time at which a row closes, of those that are closed. It may be
  // ahead.
  std::vector<picoseconds> open_until_;
  // The times at which rows were closed, less those at which they were opened; modulo 2^128.
  picosecond_sum closed_less_opened_ = 0;
  memory_statistics statistics_;
  std::array<queue_length, 2> waiting_;  // by kind

  picoseconds read_latency_, write_latency_;
  write_pulses pulses_;
  unsigned read_limit_, write_limit_, bank_limit_;
  bool open_page_, follows_barriers_, write_back_rows_, truncates_as_data_;
  unsigned number_;
  controller_mutant mutant_;
  command_observer* observer_ = nullptr;

  picoseconds refresh_interval_;
  unsigned refreshes_of_round_;           // that refresh every bank of a rank once
  std::vector<picoseconds> refresh_due_;  // for each rank
  picoseconds earliest_due_ = never;
};

}  // namespace stele::sim
