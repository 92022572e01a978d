// Banks of phase-change memory in real time, behind a controller that orders writes by persist
// barriers. A thread that writes a line waits only while the queue of the line's bank is full.
//
// After Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual Persistency
// in Persistent Memory" (2015). At each line write or barrier it computes at once when the write
// will be done: in the first free busy_interval of its bank after the time that the order allows.
// Barriers of all threads are in one order. docs/protocol/dp2.md says which writes may pass
// barriers, and why that is safe. The simulator's controller decides in simulated time, with all
// waiting writes in view; this class computes ahead, so it is only an emulation.
//
// Thread-safe. Times are nanoseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stele::media {

struct pcm_model {
  unsigned banks = 32, queue_entries = 32;  // of each bank
  std::uint32_t write_ns = 1425;            // 5.7 iterations of 250 ns: a retention of 10^7 s
  double log_speedup = 1;                   // of writes to logs, because of their shorter retention
  bool rules = false;  // log records and commit records may pass barriers; else no write may
  bool waits = false;  // a fence returns when its writes are persistent; else when they are ordered
  // A processor so many times as slow as this one: what a thread does between calls takes so many
  // times as long. A pause of more than pause_ns is not work.
  double slower = 1;
  static constexpr std::uint64_t pause_ns = 100'000;
};

// Where the logs are. A log without separate commit lines has commit_size 0: none of its writes may
// pass a barrier, because nothing tells which of them commits. Without logs, log_size is 0.
struct pcm_layout {
  std::uint64_t log_offset = 0, log_size = 0, home_offset = 0;
  std::uint64_t commit_offset = 0, commit_size = 0;  // in each log
};

// The steady clock. A test replaces it by a clock that it sets by hand.
class pcm_clock {
 public:
  virtual ~pcm_clock() = default;
  virtual std::uint64_t now_ns() noexcept;
  virtual void wait_until(std::uint64_t when) noexcept;
};
pcm_clock& steady_pcm_clock() noexcept;

class pcm_banks {
 public:
  // `time` outlives this object.
  pcm_banks(const pcm_model& model, const pcm_layout& layout, unsigned threads,
            pcm_clock& time = steady_pcm_clock());

  // `line`: pool offset / 64. Returns when the bank's queue has accepted the write.
  void write(unsigned thread, std::uint64_t line) noexcept;
  // Orders this thread's earlier writes before its later ones.
  void fence(unsigned thread) noexcept;

 private:
  enum class write_class : std::uint8_t { data, log_line, record, commit };
  struct busy_interval {
    std::uint64_t begin, end;
  };
  struct alignas(64) log_state {
    std::uint64_t own_writes_done = 0;        // when all writes of the running transaction are done
    std::uint64_t truncate_done[2] = {0, 0};  // of the last two truncations: [0] the older
    // Since the last commit line; the next commit line then commits, else it truncates.
    bool records = false;
    bool unfenced = false;
    std::uint64_t working_since = 0;  // when the last call returned
  };

  write_class class_of(std::uint64_t line) const noexcept;
  std::uint64_t earliest_start(const log_state& log, write_class p) const noexcept;
  void record_completion(log_state& log, write_class p, std::uint64_t done) noexcept;
  void work_slower(const log_state& log) noexcept;
  void accept(unsigned thread, std::uint64_t line) noexcept;
  std::uint64_t reserve(std::vector<busy_interval>& bank, std::uint64_t from,
                        std::uint64_t length_ns);

  const pcm_model model_;
  const pcm_layout layout_;
  pcm_clock& time_;
  std::atomic_flag busy_;  // protects all below
  // Times reserved for writes: in order, disjoint.
  std::vector<std::vector<busy_interval>> banks_;
  std::vector<log_state> logs_;
  std::uint64_t epoch_done_ = 0;        // when all writes since the last barrier are done
  std::uint64_t ordered_ = 0;           // when all writes before the last barrier are done
  std::uint64_t previous_ordered_ = 0;  // when all writes before the last but one are done
};

}  // namespace stele::media
