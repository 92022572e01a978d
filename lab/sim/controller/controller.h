// A memory of one technology: its controllers, channels and devices, and their statistics.
//
// This interface has statistics, log ranges, retention and the report of persisted writes; memory.h
// has the interface for caches. Not thread-safe. Times are those of the event queue.
#pragma once

#include <sim/controller/channel.h>
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

class memory_system final : public memory, private channel_observer {
 public:
  void submit(picoseconds now, const request& r) override;
  // Whether the request would be admitted to the queues at once.
  bool has_room(const request& r) const noexcept;
  // One stream for all sources: `source` is ignored.
  void barrier(picoseconds, std::uint16_t) override { stream_.barrier(); }
  std::size_t outstanding() const noexcept override;

  // Sets the address ranges of logs. Errors: ranges that overlap or are not whole lines; requests
  // are unfinished. Forgets the times at which lines were written.
  [[nodiscard]] result<void> set_ranges(const std::vector<log_range>& logs);
  // Null removes the observer. The observer must outlive the memory or be removed.
  void observe(write_observer* observer) noexcept { observer_ = observer; }
  void observe_commands(command_observer* observer) noexcept;
  // Counts writes to each line from now on (max_writes_per_line).
  void count_line_writes() { counts_lines_ = true; }

  // Whether a log's line is older than the retention that it was last written with. False for data
  // lines and for lines never written.
  bool expired(std::uint64_t address, picoseconds now) const noexcept;
  // The time at which a log's line was written, for a reader that relies on it. Errors: the line
  // was never written, or is expired.
  [[nodiscard]] result<picoseconds> trusted_log_line(std::uint64_t address, picoseconds now) const;

  memory_statistics statistics(picoseconds now);
  // Of the channel that had the most: see channel.
  std::size_t longest_queue(access kind, picoseconds from) const noexcept;
  memory_energy energy(picoseconds now) { return energy_of(statistics(now), config_); }
  // Its times are whole cycles, if the memory has a clock.
  const memory_config& config() const noexcept { return config_; }
  const mapping& address_map() const noexcept { return mapping_; }

 private:
  friend result<std::unique_ptr<memory_system>> make_memory(event_queue& events,
                                                            const memory_config& c,
                                                            controller_mutant mutant);
  memory_system(memory_config c, const mapping& m) : config_(std::move(c)), mapping_(m) {}

  void persisted(const write_report& report) override;
  void order_changed(picoseconds now) override;
  const picoseconds* written_at(std::uint64_t address) const noexcept;

  struct log_lines {  // the time of the last write of each line; never: not written
    std::uint64_t begin = 0;
    std::vector<picoseconds> written;
  };

  memory_config config_;
  mapping mapping_;
  epoch_tracker stream_;
  std::vector<std::unique_ptr<channel>> channels_;
  write_observer* observer_ = nullptr;
  std::vector<log_lines> log_lines_;  // two of each log: records, commit record
  bool counts_lines_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> line_writes_;
  std::uint64_t max_line_writes_ = 0;
};

// Errors: a configuration that contradicts itself or has an unknown name. `events` must outlive the
// memory.
[[nodiscard]] result<std::unique_ptr<memory_system>> make_memory(
    event_queue& events, const memory_config& c,
    controller_mutant mutant = controller_mutant::none);

}  // namespace stele::sim
