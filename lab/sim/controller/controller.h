// A memory of one technology: controllers, channels and the devices behind them, and what they have
// done.
//
// Statistics, log ranges, retention and the report of persisted writes are here; what caches need
// is memory.h. Every call is for one thread. Times are the event queue's.
#pragma once

#include <sim/controller/channel.h>
#include <sim/energy/memory_energy.h>

#include <unordered_map>

namespace stele::sim {

// Told of every write when it is persistent, in the order in which writes become so.
class write_observer {
 public:
  virtual void persisted(const write_report& report) = 0;

 protected:
  ~write_observer() = default;
};

class memory_system final : public memory, private channel_observer {
 public:
  void submit(picoseconds now, const request& r) override;
  // One stream for all sources: `source` is not looked at.
  void barrier(picoseconds, std::uint16_t) override { stream_.barrier(); }
  std::size_t outstanding() const noexcept override;

  // Which addresses are logs'. An error for ranges that overlap or are not of whole lines, and
  // while requests are unfinished. Forgets when lines were written.
  [[nodiscard]] result<void> set_ranges(const std::vector<log_range>& logs);
  // Null: nobody. It outlives the memory or is unset.
  void observe(write_observer* observer) noexcept { observer_ = observer; }
  void observe_commands(command_observer* observer) noexcept;
  // From now on, writes to each line are counted (max_writes_per_line).
  void count_line_writes() { counts_lines_ = true; }

  // A log's line has outlived the retention that it was last written with. False for data and lines
  // never written.
  bool expired(std::uint64_t address, picoseconds now) const noexcept;
  // When a log's line that a reader is about to trust was written; an error for one never written
  // or expired.
  [[nodiscard]] result<picoseconds> trusted_log_line(std::uint64_t address, picoseconds now) const;

  memory_statistics statistics(picoseconds now);
  memory_energy energy(picoseconds now) { return energy_of(statistics(now), config_); }
  const memory_config& config() const noexcept { return config_; }
  const mapping& address_map() const noexcept { return mapping_; }

 private:
  friend result<std::unique_ptr<memory_system>> make_memory(event_queue& events,
                                                            const memory_config& c);
  memory_system(memory_config c, const mapping& m) : config_(std::move(c)), mapping_(m) {}

  void persisted(const write_report& report) override;
  void order_changed(picoseconds now) override;
  const picoseconds* written_at(std::uint64_t address) const noexcept;

  struct log_lines {  // when each line of a log's range was written; never: it was not
    std::uint64_t begin = 0;
    std::vector<picoseconds> written;
  };

  memory_config config_;
  mapping mapping_;
  epoch_tracker stream_;
  std::vector<std::unique_ptr<channel>> channels_;
  write_observer* observer_ = nullptr;
  std::vector<log_lines> log_lines_;  // records and commit record of each log
  bool counts_lines_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> line_writes_;
  std::uint64_t max_line_writes_ = 0;
};

// An error for a configuration that contradicts itself or names what there is not. `events`
// outlives the memory.
[[nodiscard]] result<std::unique_ptr<memory_system>> make_memory(event_queue& events,
                                                                 const memory_config& c);

}  // namespace stele::sim
