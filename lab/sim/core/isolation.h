// Isolates concurrent transactions: by hardware transactional memory with a fallback lock, by one
// mutex, or not at all.
//
// Hardware transactional memory after Hammond et al., "Transactional Memory Coherence and
// Consistency" (2004), in the form that commodity processors have and that Zhao et al., "Kiln"
// (2013), section 5.1, models. The lines that a transaction has read and written stay in its core's
// private caches. Evicting such a line, or another core's request for it, ends the attempt (the
// requester wins). After `htm_retries` lost attempts a transaction takes the lock, and all others
// wait.
#pragma once

#include <sim/cache/hierarchy.h>
#include <sim/core/line_set.h>

#include <deque>

namespace stele::sim {

enum class isolation_kind : std::uint8_t { none, mutex, htm };

// The interface of a running transaction to isolation.
class abortable {
 public:
  virtual void aborted(picoseconds now) = 0;
  virtual void may_begin(picoseconds now) = 0;

 protected:
  ~abortable() = default;
};

struct isolation_counts {
  std::uint64_t conflicts = 0, capacity_aborts = 0, lock_taken = 0;
  void visit_state(archive& a) { a(conflicts, capacity_aborts, lock_taken); }
};

class isolation_control final : public private_cache_observer {
 public:
  static constexpr std::uint8_t read = 1, written = 2;

  isolation_control(isolation_kind kind, unsigned cores, unsigned retries, picoseconds handoff)
      : kind_(kind), cores_(cores), retries_(retries), handoff_(handoff) {}
  // Threads have numbers 0, 1, ...; thread t runs on core t % cores.
  void add(abortable& who) {
    threads_.push_back({&who, {}, false, 0});
    conflicts_on_core_ = kind_ == isolation_kind::htm && threads_.size() > cores_;
  }

  isolation_kind kind() const noexcept { return kind_; }
  // Returns false when the transaction has to wait; may_begin() is called later.
  bool begin(unsigned thread, picoseconds now);
  // Call before each access. Returns the flags that the line had in this transaction.
  [[gnu::always_inline]] std::uint8_t touch(unsigned thread, std::uint64_t line, bool store,
                                            picoseconds now) {
    if (conflicts_on_core_) [[unlikely]]
      conflict_on_core(thread, line, store, now);
    return threads_[thread].lines.add(line, store ? written : read);
  }
  // Call before each access outside of transactions: it ends attempts on the thread's own core, as
  // remote_access() does on others.
  void touch_outside(unsigned thread, std::uint64_t line, bool store, picoseconds now) {
    if (conflicts_on_core_) conflict_on_core(thread, line, store, now);
  }
  // Call before a line is written back on request: attempts that have written it end.
  void flushing(std::uint64_t line, picoseconds now);
  // The transaction's stores are visible from now on. Its lines are kept until release().
  void end(unsigned thread) noexcept { threads_[thread].speculative = false; }
  void release(unsigned thread, picoseconds now);
  bool has_lock(unsigned thread) const noexcept { return owner_ == static_cast<int>(thread); }
  // Whether an attempt of this thread is running, which a conflict would end.
  bool speculative(unsigned thread) const noexcept { return threads_[thread].speculative; }
  const line_set& lines(unsigned thread) const noexcept { return threads_[thread].lines; }
  line_set& lines(unsigned thread) noexcept { return threads_[thread].lines; }

  void remote_access(unsigned core, std::uint64_t line, bool by_store, picoseconds now) override;
  void evicted(unsigned core, std::uint64_t line, picoseconds now) override;

  void visit_state(archive& a);  // thread_state.cc

  isolation_counts counts;

 private:
  struct state {
    abortable* who;
    line_set lines;
    bool speculative;
    unsigned aborts;  // lost attempts of the current transaction
  };

  bool lock(unsigned thread, picoseconds now);
  void conflict_on_core(unsigned thread, std::uint64_t line, bool store, picoseconds now);
  void abort_attempt(unsigned thread, picoseconds now);
  // Calls f(thread) for each other thread of the core that has the line with one of these flags in
  // a speculative transaction.
  template <class F>
  void for_each_holder(unsigned core, unsigned except, std::uint64_t line, std::uint8_t flags,
                       F&& f);

  isolation_kind kind_;
  unsigned cores_, retries_;
  bool conflicts_on_core_ = false;  // attempts of threads that share a core
  picoseconds handoff_;
  std::vector<state> threads_;
  std::deque<unsigned> waiting_;            // for the lock
  std::vector<unsigned> waiting_to_begin_;  // waiting until the lock is free
  int owner_ = -1;
};

}  // namespace stele::sim
