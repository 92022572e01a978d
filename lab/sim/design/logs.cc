// Redo: records, fence, commit record, fence, then the stores; home is made durable when the log is
// half full. Undo: before each store the old words and a fence; at the end home, fence, the
// truncation record, fence.
#include <sim/design/logs.h>

#include <algorithm>

namespace stele::sim {

namespace {

constexpr std::size_t entry_bytes = 16, word_bytes = 8;

// A thread's log: the position of the next entry, and the lines that are not yet flushed. Entries
// that are flushed together have lines of their own, so a line is not stored to again before the
// log wraps around.
class log {
 public:
  // Threads begin at different positions, so that they do not all write to one bank of memory.
  log(unsigned thread, const design_config& c)
      : first_(logs_at + thread * c.log_bytes),
        bytes_(c.log_bytes),
        at_(thread * 16384 % c.log_bytes),
        flushed_(at_),
        truncated_(at_),
        store_(c.log_lines_fetched ? action::kind::store : action::kind::store_full_line) {}

  // Appends entries for `data_bytes` of data. Each line is stored once.
  void append(std::size_t data_bytes, action_list& p) {
    append_bytes((data_bytes + word_bytes - 1) / word_bytes * entry_bytes, p);
  }
  // A commit record or a truncation record.
  void append_commit_record(action_list& p) { append_bytes(64, p); }
  void flush(action::kind how, action_list& p) {
    for (std::uint64_t line : unflushed_) p.push_back({how, line});
    unflushed_.clear();
    flushed_ = at_ = (at_ + 63) / 64 * 64;
  }
  void discard_unflushed() noexcept {
    unflushed_.clear();
    at_ = flushed_;
  }
  bool half_full() const noexcept { return at_ - truncated_ > bytes_ / 2; }
  void truncate() noexcept { truncated_ = at_; }
  void visit_state(archive& a) { a(at_, flushed_, truncated_, unflushed_); }

 private:
  void append_bytes(std::size_t bytes, action_list& p) {
    for (const std::uint64_t end = at_ + bytes; at_ < end;) {
      const std::uint64_t line = (first_ + at_ % bytes_) / 64;
      if (unflushed_.empty() || unflushed_.back() != line) {
        unflushed_.push_back(line);
        p.push_back({store_, line});
      }
      at_ = std::min(end, (at_ / 64 + 1) * 64);
    }
  }

  std::uint64_t first_, bytes_, at_, flushed_, truncated_;
  action::kind store_;
  std::vector<std::uint64_t> unflushed_;
};

class logging : public design {
 public:
  logging(const design_context& where, bool in_cache)
      : flush_kind_(in_cache ? action::kind::clean_to_shared
                             : action::kind::clean_invalidate_to_memory) {
    for (unsigned t = 0; t < where.threads; ++t) logs_.emplace_back(t, where.machine.design);
  }
  void visit_state(archive& a) override { a.fixed(logs_); }

 protected:
  bool intercepts_stores() const noexcept override { return true; }
  static void fence(action_list& p) { p.push_back({action::kind::fence, 0}); }
  void flush_and_fence(log& l, action_list& p) const {
    l.flush(flush_kind_, p);
    fence(p);
  }
  // Flushes data lines to the same level as log lines.
  void flush_lines(std::span<const std::uint64_t> lines, action_list& p) const {
    for (std::uint64_t line : lines) p.push_back({flush_kind_, line});
  }

  action::kind flush_kind_;
  std::vector<log> logs_;
};

class redo_log final : public logging {
 public:
  redo_log(const design_context& where, bool in_cache)
      : logging(where, in_cache),
        deferred_stores_(where.threads),
        since_truncation_(where.threads) {}

  bool before_store(unsigned thread, std::uint64_t first_line, std::size_t lines, std::size_t bytes,
                    action_list& p) override {
    logs_[thread].append(bytes, p);
    for (std::size_t i = 0; i < lines; ++i) deferred_stores_[thread].add(first_line + i, 1);
    return true;
  }
  void aborted(unsigned thread) override {
    deferred_stores_[thread].clear();
    logs_[thread].discard_unflushed();
  }

  void commit(unsigned thread, const line_set&, action_list& p, picoseconds) override {
    log& l = logs_[thread];
    if (deferred_stores_[thread].entries().empty()) return;
    flush_and_fence(l, p);  // records before the commit record
    l.append_commit_record(p);
    flush_and_fence(l, p);  // the commit record before home changes
    for (const auto& e : deferred_stores_[thread].entries()) {
      p.push_back({action::kind::store, e.line});
      since_truncation_[thread].add(e.line, 1);
    }
    deferred_stores_[thread].clear();
    if (l.half_full()) truncate(thread, p);
  }
  void visit_state(archive& a) override {
    logging::visit_state(a);
    a.fixed(deferred_stores_), a.fixed(since_truncation_);
  }

 private:
  void truncate(unsigned thread, action_list& p) {
    for (const auto& e : since_truncation_[thread].entries()) p.push_back({flush_kind_, e.line});
    fence(p);  // home before the truncation record
    logs_[thread].append_commit_record(p);
    flush_and_fence(logs_[thread], p);  // the truncation record before the space is reused
    logs_[thread].truncate();
    since_truncation_[thread].clear();
  }

  std::vector<line_set> deferred_stores_, since_truncation_;
};

class undo_log final : public logging {
 public:
  using logging::logging;

  bool before_store(unsigned thread, std::uint64_t first_line, std::size_t lines, std::size_t bytes,
                    action_list& p) override {
    for (std::size_t i = 0; i < lines; ++i) p.push_back({action::kind::load, first_line + i});
    logs_[thread].append(bytes, p);
    flush_and_fence(logs_[thread], p);  // the old values before the store
    return false;
  }

  void commit(unsigned thread, const line_set& lines, action_list& p, picoseconds) override {
    bool any = false;
    for (const auto& e : lines.entries()) {
      if ((e.flags & 2) == 0 || is_volatile_line(e.line)) continue;
      p.push_back({flush_kind_, e.line});
      any = true;
    }
    if (!any) return;
    fence(p);  // home before the truncation record
    logs_[thread].append_commit_record(p);
    flush_and_fence(logs_[thread], p);  // the truncation record before the commit returns
    logs_[thread].truncate();
  }
};

}  // namespace

std::unique_ptr<design> make_redo_log(const design_context& where, bool in_cache) {
  return std::make_unique<redo_log>(where, in_cache);
}
std::unique_ptr<design> make_undo_log(const design_context& where, bool in_cache) {
  return std::make_unique<undo_log>(where, in_cache);
}

}  // namespace stele::sim
