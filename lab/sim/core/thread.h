// A hardware thread: runs its events of the tape through an issue window, a store buffer and the
// caches.
//
// The model: instructions issue at a fixed rate. A load that misses is kept in a window until its
// line arrives. Issue stops when the oldest such load is more than the window behind, or when too
// many of them have requested a line; a load of a line that its core has requested is not counted.
// Stores wait in order in a store buffer. A load marked as dependent (of a pointer) holds
// everything after it until its own value is there. An access is one instruction for each 16 bytes,
// at least one; a compute event is instructions without an access. Threads of a core share the
// issue rate evenly. Not modelled: branches, functional units, instruction fetch, loads served from
// the store buffer.
#pragma once

#include <sim/core/isolation.h>
#include <sim/core/tlb.h>
#include <sim/design/design.h>
#include <sim/feed/feed.h>

#include <array>
#include <bit>
#include <functional>
#include <optional>

namespace stele::sim {

struct thread_counts {
  std::uint64_t events = 0, instructions = 0, loads = 0, stores = 0, commits = 0, operations = 0,
                aborts = 0;
  picoseconds commit_time = 0;  // from the last instruction to the end, summed

  thread_counts& operator+=(const thread_counts& o) noexcept;
  void visit_state(archive& a) {
    a(events, instructions, loads, stores, commits, operations, aborts, commit_time);
  }
};

// Called for stores, when contents are tracked (crash.h).
class store_observer {
 public:
  virtual void stored(unsigned thread, unsigned core, const tape_item& what,
                      std::uint64_t line) = 0;
  virtual void aborted(unsigned thread, unsigned core) = 0;
  virtual void ended(unsigned thread, const line_set& lines) = 0;

 protected:
  ~store_observer() = default;
};

class hardware_thread final : event_handler, requester, abortable {
 public:
  struct environment {
    event_queue& events;
    hierarchy& caches;
    isolation_control& isolation;
    design& persistence;
    feed& tape;
    const machine_config& machine;
    store_observer* observer = nullptr;
    // Called when a transaction has ended; on tapes without transactions, when an operation has
    // ended (mark `returned`).
    std::function<void(unsigned thread, picoseconds now)> committed = [](unsigned, picoseconds) {};
    std::span<const std::unique_ptr<tlb>> tlbs = {};  // of each core; empty: addresses cost nothing
  };

  hardware_thread(environment& s, unsigned number);
  void start() { events_.schedule(0, *this); }
  bool finished() const noexcept { return finished_; }
  // The thread computes beyond the latest time. Its time has not advanced by that.
  bool has_outrun_time() const noexcept { return outran_time_; }
  picoseconds time() const noexcept { return time_; }
  // It has begun a transaction of the design, which has neither ended nor been aborted.
  bool has_begun() const noexcept {
    return !aborted_ && (phase_ == phase::inside || (phase_ == phase::outside && plan_requested_));
  }

  void name_parts(archive& a);
  // Precondition: reading, the feed has been read.
  void visit_state(archive& a);

  thread_counts counts;

 private:
  struct outstanding_access {
    std::uint64_t instruction = 0;
    picoseconds done = never;  // never: not known yet
    bool joined = false;       // it has not requested its line itself
    void visit_state(archive& a) { a(instruction, done, joined); }
  };
  // A queue, oldest first; an index is a running number.
  struct window {
    std::vector<outstanding_access> ring;  // size is a power of two
    std::uint64_t capacity = 0, first = 0, next = 0;
    std::uint64_t joined = 0;  // accesses that are not counted
    // At most `n` accesses that are counted, and `others`.
    void set_capacity(std::uint64_t n, std::uint64_t others = 0) {
      ring.resize(std::bit_ceil(n + others)), capacity = n;
    }
    bool empty() const noexcept { return first == next; }
    bool full() const noexcept { return next - first - joined == capacity; }
    outstanding_access& at(std::uint64_t n) noexcept { return ring[n & (ring.size() - 1)]; }
    void push(const outstanding_access& a) noexcept { at(next++) = a, joined += a.joined; }
    void pop() noexcept { joined -= at(first++).joined; }
    void retire(picoseconds now) noexcept {
      while (!empty() && at(first).done <= now) pop();
    }
    void visit_state(archive& a);
  };

  void handle(picoseconds now, std::uint64_t) override;
  void done(picoseconds now, std::uint64_t token) override;
  void retry(picoseconds now) override;
  void aborted(picoseconds now) override;
  void may_begin(picoseconds now) override { retry(now); }
  void wake(picoseconds now);

  void run();
  bool fetch();
  void save_attempt();
  bool run_simple(unsigned& n);
  template <bool Inside>
  bool run_simple(const tape_item*& item, const tape_item* last);
  bool step(const tape_item& item);
  bool run_plan();
  bool execute(const action& a);
  bool begin(const tape_item& item);
  bool end();
  bool access(const tape_item& item, bool store);
  // Accesses one line. aborted: this access ended the attempt.
  enum class outcome : std::uint8_t { blocked, aborted, done };
  template <bool Inside>
  [[gnu::always_inline]] outcome access_line(const tape_item& item, std::uint64_t line, bool store,
                                             std::uint64_t bytes, hierarchy::frame in_l1);
  // in_l1: the line's frame there.
  [[gnu::always_inline]] bool touch_line(std::uint64_t line, bool store, std::uint64_t instructions,
                                         hierarchy::frame in_l1, bool whole = false);
  bool may_issue(window& w);
  // Whether the line's address is known. Otherwise the thread waits.
  bool translated(std::uint64_t line);
  bool miss(std::uint64_t line, bool store, bool whole);
  // Yields when another event is due first. Returns true when this thread has to wait for its
  // event.
  bool yields();
  bool each_line(const tape_item& item, action::kind what);
  bool clean(const action& a);
  bool fence();
  bool drain();
  bool drain(window& w);
  bool await_dependent();
  void restart_attempt(picoseconds now);
  void finish();

  event_queue& events_;
  hierarchy& caches_;
  environment& environment_;
  unsigned number_, core_;
  picoseconds instruction_time_;  // for one instruction
  bool outran_time_ = false;
  std::uint64_t window_size_;
  picoseconds lookahead_;
  picoseconds time_ = 0;
  std::uint64_t instruction_ = 0;
  window loads_, stores_;
  std::uint64_t persists_ = 0;  // in progress
  picoseconds persisted_ = 0;   // when the last completed one ended
  // The loads of the last pointer, if everything waits for them: indexes of those that wait for a
  // line, from the first to behind the last, and the time of a hit.
  std::uint64_t pointer_first_ = 0, pointer_next_ = 0;
  picoseconds pointer_hit_ = 0;
  bool dependent_ = false;
  bool asleep_ = true;    // this thread has no event in the queue
  bool blocked_ = false;  // until retry() is called; no other event wakes it
  bool running_ = false;  // run() is on the stack
  bool aborted_ = false, finished_ = false;

  std::span<const tape_item> items_;
  std::size_t item_ = 0;
  std::uint64_t lines_done_ = 0;  // lines of the event already accessed
  enum class phase : std::uint8_t { outside, inside, ending, committing } phase_ = phase::outside;
  bool plan_requested_ = false;  // the design has been called for this event
  bool store_deferred_ = false;  // and does this store later
  action_list plan_;
  std::size_t next_action_ = 0;
  picoseconds ended_at_ = 0;
  std::size_t attempt_begin_ = 0;          // index in items_ of this transaction's first event
  std::vector<tape_item> attempt_events_;  // earlier events, for another attempt
  std::size_t replayed_ = 0;
  bool replaying_ = false;
  bool may_abort_ = false;
  bool fences_wait_ = true;  // applies to fences of a design's plans
  // The writes that may be in progress after a fence, if a fence is a persist barrier; 0: it is
  // none and waits for all.
  std::uint64_t posted_ = 0;
  bool barriers_wait_ = false;  // at a persist barrier, for the writes before it
  bool lock_until_durable_ = false;
  bool unfenced_ = false;     // this thread has sent a line since its last fence
  tlb* tlb_ = nullptr;        // null: addresses cost nothing
  bool translated_ = false;   // the access that waits has its address
  bool plain_stores_ = true;  // the design does not intercept stores
};

}  // namespace stele::sim
