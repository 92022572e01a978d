// The banks of a phase-change memory in real time, behind a controller that orders writes by
// persist barriers: who writes a line waits only while the line's bank has no room in its queue.
//
// After Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual Persistency
// in Persistent Memory" (2015). It is told each line write and barrier as they are made and reckons
// at once when the write will be done: in the first busy_interval of its bank's time that is free
// from when the order allows it. One order of barriers for all threads. What may pass barriers, and
// why that is safe, is in docs/protocol/dp2.md. The simulator's controller decides as time goes on
// and looks at all that waits; this one reckons ahead, so it is an emulation and no more.
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
  double log_speedup = 1;                   // of writes to logs, for their shorter retention
  bool rules = false;  // log records and commit records may pass barriers; else nothing does
  bool waits = false;  // a fence returns when what it orders is persistent; else when it is ordered
};

// Where logs lie; a log that has no commit lines of its own has commit_size 0.
struct pcm_layout {
  std::uint64_t log_offset = 0, log_size = 0, home_offset = 0;
  std::uint64_t commit_offset = 0, commit_size = 0;  // in each log
};

// The steady clock; a test has one that it moves by hand.
class pcm_clock {
 public:
  virtual ~pcm_clock() = default;
  virtual std::uint64_t now_ns() noexcept;
  virtual void wait_until(std::uint64_t when) noexcept;
};
pcm_clock& steady_pcm_clock() noexcept;

class pcm_banks {
 public:
  // `time` outlives it.
  pcm_banks(const pcm_model& model, const pcm_layout& layout, unsigned threads,
            pcm_clock& time = steady_pcm_clock());

  // `line`: pool offset / 64. Returns when the bank's queue has taken the write.
  void write(unsigned thread, std::uint64_t line) noexcept;
  // What was written before comes before what is written after.
  void fence(unsigned thread) noexcept;

 private:
  enum class write_class : std::uint8_t { data, record, commit };
  struct busy_interval {
    std::uint64_t begin, end;
  };
  struct alignas(64) log_state {
    std::uint64_t own_writes_done = 0;        // writes of the transaction under way: all done
    std::uint64_t truncate_done[2] = {0, 0};  // of the last two: [0] the older
    bool records = false;  // written since the last commit line: the next one commits, else it cuts
    bool unfenced = false;
  };

  write_class class_of(std::uint64_t line) const noexcept;
  std::uint64_t earliest_start(const log_state& log, write_class p) const noexcept;
  void record_completion(log_state& log, write_class p, std::uint64_t done) noexcept;
  std::uint64_t reserve(std::vector<busy_interval>& bank, std::uint64_t from,
                        std::uint64_t length_ns);

  const pcm_model model_;
  const pcm_layout layout_;
  pcm_clock& time_;
  std::atomic_flag busy_;  // over all below
  std::vector<std::vector<busy_interval>>
      banks_;  // what is to be written: in order, apart from each other
  std::vector<log_state> logs_;
  std::uint64_t epoch_done_ = 0;        // all writes since the last barrier are done
  std::uint64_t ordered_ = 0;           // all before it
  std::uint64_t previous_ordered_ = 0;  // all before the barrier before it
};

}  // namespace stele::media
