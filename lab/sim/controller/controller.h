// A memory of one technology: its controllers, channels and devices, and their statistics.
//
// This interface has statistics, log ranges, retention and the report of persisted writes; memory.h
// has the interface for caches. Not thread-safe. Times are those of the event queue.
#pragma once

#include <sim/controller/channel.h>
#include <sim/controller/cxl_link.h>
#include <sim/energy/memory_energy.h>

#include <unordered_map>

namespace stele::sim {

// Called for every write when it is persistent, in the order in which writes become persistent.
class write_observer {
 public:
  virtual void persisted(const write_report& report) = 0;

 protected:
  ~write_observer() = default;
};

// How often lines were written, since the memory was made.
struct wear_counts {
  std::uint64_t log_records = 0, commit_lines = 0, data = 0;  // writes to each
  std::uint64_t truncations = 0;                              // of those to commit lines
  std::uint64_t lines = 0;                                    // lines that were written
  // The most writes of a line, and the address of the first line that had so many.
  std::uint64_t most_writes = 0, most_worn_line = 0;

  std::uint64_t logs() const noexcept { return log_records + commit_lines; }
  void visit_state(archive& a) {
    a(log_records, commit_lines, data, truncations, lines, most_writes, most_worn_line);
  }
};

class memory_system final : public memory, private channel_observer, private cxl_device {
 public:
  void submit(picoseconds now, const request& r) override;
  // Whether the request would be admitted to the queues at once.
  bool has_room(const request& r) const noexcept;
  // One stream for all sources: `source` is ignored.
  void barrier(picoseconds now, std::uint16_t source) override;
  std::size_t outstanding() const noexcept override;
  // Of a write to this line that has not been acknowledged: where a crash finds it.
  write_place place_of_write(std::uint64_t address) const noexcept {
    return link_ ? link_->place_of_write(address) : write_place::unknown;
  }

  // Sets the address ranges of logs. Errors: ranges that overlap or are not whole lines; requests
  // are unfinished. Forgets the times at which lines were written.
  [[nodiscard]] result<void> set_ranges(const std::vector<log_range>& logs);
  // Null removes the observer. The observer must outlive the memory or be removed.
  void observe(write_observer* observer) noexcept { observer_ = observer; }
  void observe_commands(command_observer* observer) noexcept;
  // All zero for a memory whose cells do not wear (endurance_writes is 0).
  const wear_counts& wear() const noexcept { return wear_; }

  // Whether a log's line is older than the retention that it was last written with. False for data
  // lines and for lines never written.
  bool expired(std::uint64_t address, picoseconds now) const noexcept;
  // The time at which a log's line was written, for a reader that relies on it. Errors: the line
  // was never written, or is expired.
  [[nodiscard]] result<picoseconds> trusted_log_line(std::uint64_t address, picoseconds now) const;
  // Whether recovery may rely on the logs when the power returns at `now`: on each commit line, and
  // on the records that its last write may commit, which are those since the write before it. A log
  // without commit lines is relied on as a whole. Returns the number of these lines. Errors:
  // corrupt, for the first line that is expired.
  [[nodiscard]] result<std::size_t> trusted_logs(picoseconds now) const;

  memory_statistics statistics(picoseconds now);
  // Of the channel that had the most: see channel.
  std::size_t longest_queue(access kind, picoseconds from) const noexcept;
  memory_energy energy(picoseconds now) { return energy_of(statistics(now), config_); }
  // Its times are whole cycles, if the memory has a clock.
  const memory_config& config() const noexcept { return config_; }
  const mapping& address_map() const noexcept { return mapping_; }
  std::size_t banks() const noexcept {  // of all channels
    return channels_.size() * config_.ranks * config_.bank_groups * config_.banks;
  }

  // channel_state.cc
  void name_parts(archive& a);
  void visit_state(archive& a);

 private:
  friend result<std::unique_ptr<memory_system>> make_memory(event_queue& events,
                                                            const memory_config& c,
                                                            controller_mutant mutant);
  memory_system(memory_config c, const mapping& m, controller_mutant mutant)
      : config_(std::move(c)), mapping_(m), mutant_(mutant) {}

  void deliver(picoseconds now, const request& r) override;
  void deliver_barrier() override { stream_.barrier(); }
  void persisted(const write_report& report) override;
  void order_changed(picoseconds now) override;
  void count_wear(const write_report& report);

  struct last_write {
    picoseconds at = never;  // never: not written
    bool truncation = false;
    void visit_state(archive& a) { a(at, truncation); }
    friend bool operator==(const last_write&, const last_write&) = default;
  };
  struct log_lines {
    std::uint64_t begin = 0;
    std::vector<last_write> written;                // by line
    picoseconds last = never, before_last = never;  // the last two writes to any line
    void visit_state(archive& a) {
      a.sparse(written, {});
      a(last, before_last);
    }
  };
  const last_write* written_at(std::uint64_t address) const noexcept;
  double retention_s(const last_write& w) const noexcept;

  memory_config config_;
  mapping mapping_;
  controller_mutant mutant_;
  epoch_tracker stream_;
  std::vector<std::unique_ptr<channel>> channels_;
  std::unique_ptr<cxl_link> link_;  // null: a local memory
  write_observer* observer_ = nullptr;
  std::vector<log_lines> log_lines_;  // two of each log: records, commit record
  wear_counts wear_;
  std::unordered_map<std::uint64_t, std::uint64_t> line_writes_;
};

// Whether make_memory() succeeds. Errors: a configuration that contradicts itself, has an unknown
// name, or times that are less than a picosecond or more than a second.
[[nodiscard]] result<void> check_memory(const memory_config& c);

// Errors: those of check_memory(). `events` must outlive the memory.
[[nodiscard]] result<std::unique_ptr<memory_system>> make_memory(
    event_queue& events, const memory_config& c,
    controller_mutant mutant = controller_mutant::none);

}  // namespace stele::sim
