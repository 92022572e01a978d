// redo-async: one fence a commit; home is written back and logs are cut later, for the whole pool at once.
// Page: docs/protocol/redo-async.md. Source: Volos, Tack and Swift, "Mnemosyne" (2011), asynchronous truncation; the
// pool-wide watermark is ours: were one thread's log cut alone, an older value in another's would be replayed over it.
#pragma once

#include <media/cpu.h>
#include <tx/engine_on.h>
#include <tx/log/line_set.h>
#include <unistd.h>

#include <condition_variable>
#include <thread>

namespace stele::detail {

template <class Media>
class redo_async final : public torn_bit_engine<Media> {
 public:
  using torn_bit_engine<Media>::torn_bit_engine;
  ~redo_async() override { stop(); }

  // Truncation gets a thread of its own; without one, commits do it when a ring runs short.
  void run_in_background() {
    background_ = std::thread([this] { work(); });
  }

  result<> prepare(transaction& t) override {
    auto& l = this->lanes_[t.log()];
    this->drop_reserved(l);
    const std::uint64_t lines = this->lines_needed(t, l.log.lines() / 2);
    if (lines > l.log.lines()) [[unlikely]] {
      if (auto reserved = this->prepare_spill(l, t, payload_words(t.lines())); !reserved) return reserved;
      const std::uint64_t newest = this->state_.clock.load();
      while (truncate() < newest)  // until no record that would be replayed still names these chunks
        if (this->state_.poisoned.load()) return this->check_medium();
    }
    const std::uint64_t wanted = std::min(lines, l.log.lines());
    if (l.log.room() < l.log.lines() / 2) [[unlikely]]
      wake();
    while (l.log.room() < wanted) [[unlikely]] {
      truncate();
      if (this->state_.poisoned.load()) return this->check_medium();
    }
    return {};
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    using base::mutant;
    using base::planted;
    auto& l = this->lanes_[t.log()];
    this->append(l, format::record_kind::redo, txid, t, [](std::uint64_t, std::uint64_t value) { return value; });  // 1
    if (!planted<Media>(mutant::async_no_log_fence) && !this->settled(l)) return false;  // 2: the log is durable before home changes
    t.begin_home();
    for (const written_line& line : t.lines()) this->store_home(l.media, this->state_.file, line);  // 3: not flushed
    l.log.publish();
    return true;
  }

  result<> close() override {
    stop();
    truncate();
    for (auto& l : this->lanes_) base::check(l.log.head() == l.log.tail(), "a log is not empty after its last truncation");
    return engine_on<Media>::close();
  }

 private:
  // Cuts every log through one TxID (T1 to T6 of the page), which is returned.
  std::uint64_t truncate() {
    using base::mutant;
    using base::planted;
    const std::lock_guard hold(truncating_);
    const std::uint64_t through = this->state_.completed();  // T1: all of these have stored home
    lines_.clear();
    std::vector<std::uint64_t> heads;
    for (auto& l : this->lanes_) heads.push_back(gather(l, through));  // T2
    if (planted<Media>(mutant::async_last_home_line)) lines_.drop_last();
    for (std::uint64_t line : lines_.all()) this->control_.flush(this->state_.file.at(line), line_size);  // T3
    if (!planted<Media>(mutant::async_no_data_fence)) this->control_.fence();  // home is durable before the watermark moves
    this->write_word(format::watermark_offset, through + planted<Media>(mutant::async_mark_ahead));  // T4
    if (!planted<Media>(mutant::async_no_mark_fence)) this->control_.fence();  // the watermark is durable before any head moves
    for (std::size_t i = 0; i < heads.size(); ++i)                             // T5
      if (heads[i] != this->lanes_[i].log.head()) this->write_word(this->log_offset(this->lanes_[i]), heads[i]);
    if (!planted<Media>(mutant::async_no_head_fence)) this->control_.fence();  // heads are durable before their lines are written again
    release(heads);          // T6
    ++this->truncations_;
    (void)this->check_medium();
    return through;
  }

  // The home lines of the records up to `through` in one log; the position after them.
  std::uint64_t gather(typename engine_on<Media>::lane& l, std::uint64_t through) {
    std::uint64_t position = l.log.head();
    const std::uint64_t tail = l.log.tail();
    while (position < tail) {
      std::uint64_t next = position;
      const auto whole = l.log.read(next, record_);
      base::check(whole && *whole, "a log record of this session cannot be read back");
      if (record_.txid > through) break;
      if (!base::planted<Media>(base::mutant::async_first_log_only) || &l == &this->lanes_.front())
        (void)for_each_stored_run(this->state_.file, record_.payload, [&](format::run_head head, const std::uint64_t*) {
          for (std::uint64_t line = head.offset / line_size; line <= (head.offset + head.count * 8 - 1) / line_size; ++line) lines_.add(line * line_size);
        });
      position = next;
    }
    return position;
  }

  void release(const std::vector<std::uint64_t>& heads) {
    for (std::size_t i = 0; i < heads.size(); ++i) {
      auto& l = this->lanes_[i];
      if (heads[i] == l.log.head()) continue;
      l.log.cut(heads[i]);
      this->release_spills(l, heads[i]);
    }
  }

  void wake() {
    if (!wanted_.exchange(true, std::memory_order_relaxed)) wanted_.notify_one();
  }
  void work() {
    for (;;) {
      wanted_.wait(false);
      wanted_.store(false);  // before stopping_ is read: stop() sets that first, so its call is not lost
      if (stopping_.load()) return;
      truncate();
    }
  }
  void stop() {
    if (!background_.joinable()) return;
    if (opener_ != ::getpid()) return background_.detach();  // a child of fork has no such thread
    stopping_.store(true);
    wanted_.store(true);
    wanted_.notify_one();
    background_.join();
  }

  std::mutex truncating_;
  line_set lines_;     // truncate's, kept for their memory
  log_record record_;
  std::thread background_;
  const pid_t opener_ = ::getpid();
  std::atomic<bool> wanted_{false}, stopping_{false};
};

}  // namespace stele::detail
