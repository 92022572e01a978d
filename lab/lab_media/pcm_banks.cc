// Computes when writes are done.
#include <lab_media/pcm_banks.h>
#include <media/cpu.h>
#include <media/media.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace stele::media {
namespace {

class spin_guard {
 public:
  explicit spin_guard(std::atomic_flag& flag) noexcept : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) cpu::relax();
  }
  ~spin_guard() { flag_.clear(std::memory_order_release); }
  spin_guard(const spin_guard&) = delete;
  spin_guard& operator=(const spin_guard&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace

std::uint64_t pcm_clock::now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void pcm_clock::wait_until(std::uint64_t when) noexcept {
  while (now_ns() < when) cpu::relax();
}

pcm_clock& steady_pcm_clock() noexcept {
  static pcm_clock clock;
  return clock;
}

pcm_banks::pcm_banks(const pcm_model& model, const pcm_layout& layout, unsigned threads,
                     pcm_clock& time)
    : model_(model), layout_(layout), time_(time), banks_(model.banks), logs_(threads) {
  for (auto& bank : banks_) bank.reserve(model.queue_entries + 1);
  for (log_state& log : logs_) log.working_since = time_.now_ns();
}

pcm_banks::write_class pcm_banks::class_of(std::uint64_t line) const noexcept {
  const std::uint64_t offset = line * line_size;
  if (offset >= layout_.home_offset || offset < layout_.log_offset || layout_.log_size == 0)
    return write_class::data;
  if (layout_.commit_size == 0) return write_class::log_line;
  const std::uint64_t in_log = (offset - layout_.log_offset) % layout_.log_size;
  return in_log - layout_.commit_offset < layout_.commit_size ? write_class::commit
                                                              : write_class::record;
}

// The rules and their guards. A record comes after the truncation of the slot that it reuses, which
// is the last but one. A commit line may pass one barrier, but no write of its own thread. A
// truncation and data pass nothing.
std::uint64_t pcm_banks::earliest_start(const log_state& log, write_class p) const noexcept {
  if (!model_.rules || p == write_class::data || p == write_class::log_line) return ordered_;
  if (p == write_class::record) return log.truncate_done[0];
  return log.records ? std::max(previous_ordered_, log.own_writes_done) : ordered_;
}

void pcm_banks::record_completion(log_state& log, write_class p, std::uint64_t done) noexcept {
  epoch_done_ = std::max(epoch_done_, done);
  log.own_writes_done = std::max(log.own_writes_done, done);
  log.unfenced = true;
  if (p == write_class::record) log.records = true;
  if (p != write_class::commit) return;
  if (!std::exchange(log.records, false))
    log.truncate_done[0] = std::exchange(log.truncate_done[1], done);
}

std::uint64_t pcm_banks::reserve(std::vector<busy_interval>& bank, std::uint64_t from,
                                 std::uint64_t length_ns) {
  auto at = bank.begin();
  for (; at != bank.end() && at->begin < from + length_ns; ++at) from = std::max(from, at->end);
  bank.insert(at, {from, from + length_ns});
  return from + length_ns;
}

void pcm_banks::write(unsigned thread, std::uint64_t line) noexcept {
  if (model_.slower <= 1) return accept(thread, line);
  work_slower(logs_[thread]);
  accept(thread, line);
  logs_[thread].working_since = time_.now_ns();
}

void pcm_banks::accept(unsigned thread, std::uint64_t line) noexcept {
  const write_class p = class_of(line);
  const auto length_ns = static_cast<std::uint64_t>(
      p == write_class::data ? model_.write_ns : model_.write_ns / model_.log_speedup);
  auto& bank = banks_[line % banks_.size()];
  for (;;) {
    std::uint64_t room_at = 0;
    {
      const spin_guard lock(busy_);
      const std::uint64_t now = time_.now_ns();
      std::erase_if(bank, [now](const busy_interval& s) { return s.end <= now; });
      if (bank.size() < model_.queue_entries) {
        log_state& log = logs_[thread];
        return record_completion(log, p,
                                 reserve(bank, std::max(now, earliest_start(log, p)), length_ns));
      }
      room_at = bank.front().end;
    }
    time_.wait_until(room_at);
  }
}

void pcm_banks::work_slower(const log_state& log) noexcept {
  const std::uint64_t now = time_.now_ns(), worked = now - log.working_since;
  if (worked > pcm_model::pause_ns) return;
  time_.wait_until(now +
                   static_cast<std::uint64_t>((model_.slower - 1) * static_cast<double>(worked)));
}

void pcm_banks::fence(unsigned thread) noexcept {
  log_state& log = logs_[thread];
  if (model_.slower > 1) work_slower(log);
  std::uint64_t done = 0;
  {
    const spin_guard lock(busy_);
    if (std::exchange(log.unfenced, false)) {
      previous_ordered_ = ordered_;
      done = ordered_ = std::max(ordered_, std::exchange(epoch_done_, 0));
    }
  }
  if (model_.waits && done != 0) time_.wait_until(done);
  if (model_.slower > 1) log.working_since = time_.now_ns();
}

}  // namespace stele::media
