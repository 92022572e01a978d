// Kiln: a nonvolatile shared cache, and clean-on-commit. Zhao, Li, Yoon, Xie and Jouppi, "Kiln:
// Closing the Performance Gap Between Systems With and Without Persistence Support" (2013),
// sections 3 and 4. Protocol: docs/protocol/kiln.md.
//
// Invariants, at every moment of simulated time:
// - A line of a transaction that has not committed is in the nonvolatile cache as pending, or above
// it, never in memory at its
//   own address.
// - While a line is pending, the version that its transaction replaces is durable: in memory, in
// another way of the set
//   (superseded), or among the lines being written back, which are nonvolatile too and not
//   overwritten.
// - Transactions commit in the order in which they ended. One commits by a single nonvolatile write
// (its commit flag), after all of its
//   lines have arrived; the states of its lines follow.
#pragma once

#include <sim/design/design.h>

#include <array>
#include <deque>
#include <functional>
#include <unordered_map>

namespace stele::sim {

// Bugs planted in the protocol, for the crash checks to find.
enum class kiln_mutant : std::uint8_t {
  none,
  pending_evicted,     // pending lines may leave for memory
  committed_early,     // the commit flag is set before the last line has arrived
  overflow_copy_kept,  // recovery takes the copies of transactions that never committed for good
  write_back_overwritten,  // a version being written back makes room for a newer one at once
  version_overwritten,     // a pending line takes the place of a committed version that memory does
                           // not have
  states_one_by_one,       // no commit flag: the states of the lines are all there is
  out_of_order,            // a transaction commits as soon as its own lines are there
};
inline constexpr std::array kiln_mutants = {
    kiln_mutant::pending_evicted,     kiln_mutant::committed_early,
    kiln_mutant::overflow_copy_kept,  kiln_mutant::write_back_overwritten,
    kiln_mutant::version_overwritten, kiln_mutant::states_one_by_one,
    kiln_mutant::out_of_order};
std::string_view name_of(kiln_mutant f) noexcept;

struct kiln_counts {
  std::uint64_t transactions = 0, lines = 0;  // committed; of them
  std::uint64_t arrived_before_end = 0;       // of these lines
  std::uint64_t queue_evictions = 0;          // lines sent early because a FIFO was full
  std::uint64_t superseded_kept = 0, superseded_written = 0;
  std::uint64_t overflows = 0, overflowed_lines = 0;  // times that the fall-back path was taken
  std::uint64_t overflowed_transactions = 0;          // of which a line was copied
  std::uint64_t waits_for_older = 0;  // lines that waited for an older transaction's version
  std::uint64_t max_pending = 0;      // lines in the nonvolatile cache, at one time
  picoseconds commit_latency = 0;     // from end to commit flag, summed
};

// What a crash leaves: a value for each line that recovery finds (others have their initial
// content).
struct nonvolatile_state {
  std::unordered_map<std::uint64_t, std::uint64_t> lines;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      torn;  // in the middle of being written to memory, and nowhere else
  std::size_t pending = 0, superseded = 0, copies = 0;  // lines that recovery met
};

class kiln final : public design, public shared_cache_policy, event_handler, requester {
 public:
  // The shared cache has a power of two of sets.
  explicit kiln(const design_context& where);

  bool begin(unsigned thread, bool in_order, requester& reply_to, picoseconds now) override;
  void storing(unsigned thread, std::uint64_t line, picoseconds now) override;
  void stored(unsigned thread, std::uint64_t line, picoseconds now) override;
  void aborted(unsigned thread) override;
  void commit(unsigned thread, const line_set& lines, action_list& p, picoseconds now) override;
  void finish(picoseconds now) override;

  bool may_evict(cache_array::frame p, std::uint64_t line) override;
  void no_victim(std::uint64_t line, unsigned thread, picoseconds now) override;
  void writeback_arriving(hierarchy& h, cache_array::frame p, unsigned core, std::uint64_t line,
                          std::uint64_t value, picoseconds when) override;
  void line_evicted(cache_array::frame p, std::uint64_t line, bool written_back) override;
  std::uint64_t backing_value(hierarchy& h, std::uint64_t line) override;

  // Transaction n (in the order of their ends, from 0) is committed.
  std::function<void(std::uint64_t n, picoseconds now)> committed = [](std::uint64_t, picoseconds) {
  };

  // Transactions that have ended and are not committed.
  std::size_t uncommitted() const noexcept { return commit_queue_.size(); }

  // What recovery makes of the nonvolatile cache and memory if the power fails now (section 4.5).
  nonvolatile_state recovered() const;

  kiln_counts counts;

 private:
  using frame = cache_array::frame;
  enum class stage : std::uint8_t { in_flight, ended, flagging, flagged };
  struct pending_line {
    std::uint64_t line;
    frame at;  // unless it has left
  };
  struct transaction {
    std::size_t slot = 0;  // where it is kept
    std::uint64_t id = 0;  // never used again
    unsigned thread = 0;
    stage state = stage::in_flight;
    bool in_order = false;     // asks for it
    bool sent = false;         // its lines are on their way or there
    std::uint64_t number = 0;  // in the order of ends
    picoseconds ended = 0;
    std::size_t arriving = 0;  // lines, and copies of lines, on their way
    line_set tracked;          // written and not yet sent
    std::deque<std::uint64_t>
        queue;  // the same, in order (the FIFOs at the first and second level)
    std::vector<pending_line> lines;             // pending in the nonvolatile cache
    std::size_t states_set = 0;                  // of these, with states_one_by_one
    std::vector<std::uint64_t> overflow;         // lines with a copy in memory elsewhere
    std::vector<std::size_t> blocked_transfers;  // transits that wait until it has committed

    void reset(std::uint64_t new_id, unsigned of_thread, bool asks_for_order);
  };
  // Something under way that we are told of.
  struct transfer {
    enum class kind : std::uint8_t { to_cache, version_to_memory, copy, mapping, home } what;
    std::uint64_t id, line, value;
    transaction* tx = nullptr;     // whose id that is; home: it is over
    frame at = cache_array::none;  // to_cache: of the line, which may not leave meanwhile
  };
  struct frame_state {
    std::uint64_t value = 0;
    transaction* tx = nullptr;  // while the line is pending
    frame superseded =
        cache_array::none;  // of the version that this one replaced, unless that has left
    std::uint32_t writebacks_in_flight : 31 = 0;  // arrivals
    std::uint32_t dirty : 1 = 0;                  // newer than memory
  };
  struct copy {
    std::uint64_t id, value;
    transaction* tx;                          // until it has committed
    bool durable = false, committed = false;  // it and its mapping entry are in memory
  };

  void handle(picoseconds now, std::uint64_t what) override;
  void done(picoseconds now, std::uint64_t token) override;
  void retry(picoseconds) override {}

  // The transaction that wrote what a core has of a line; null: none that is open.
  transaction* writer(unsigned core, std::uint64_t line) const;
  void free_slot(transaction& t) { free_slots_.push_back(t.slot); }
  std::size_t allocate_transfer(const transfer& t);
  void send(transaction& t, picoseconds now);
  void send_line(const transaction& t, std::uint64_t line, picoseconds now);
  void send_up_to(std::uint64_t number, picoseconds now);
  void arrive(std::size_t slot, picoseconds now);
  transaction* older_writer(frame p, const transfer& t) const;
  bool preserve_version(frame p, std::size_t slot, picoseconds now);
  void advance_commits(picoseconds now);
  void commit_flag_written(transaction& t, picoseconds now);
  void next_state(transaction& t, picoseconds now);
  // Where the version is that the line at `p` has replaced; none: it is not in the cache.
  frame superseded_at(frame p, std::uint64_t line) const;
  void make_persistent(const transaction& t, pending_line r);
  void retire(transaction& t, picoseconds now);
  bool all_pending_of(const transaction& t, std::uint64_t line) const;
  void overflow(std::uint64_t line, picoseconds now);
  void overflow_copied(const transfer& t, picoseconds now);
  bool may_be_copied(frame p) const;

  event_queue& events_;
  hierarchy& caches_;
  kiln_mutant mutant_;
  bool relaxed_, speculative_;
  unsigned cores_;
  std::size_t max_tracked_, max_others_, max_requests_;
  picoseconds flag_time_, interrupt_latency_, overflow_timeout_;
  std::deque<transaction> transactions_;  // open ones, and room for more
  std::vector<std::size_t> free_slots_;   // of these, those that are over
  std::uint64_t next_id_ = 1, ended_ = 0, copies_made_ = 0;
  std::vector<std::vector<transaction*>> open_by_thread_;  // open ones, oldest first
  std::vector<std::vector<transaction*>>
      uncleaned_by_thread_;  // of each thread: those whose lines may be above, oldest first
  std::vector<requester*> waiting_to_begin_;  // by thread
  std::deque<transaction*> commit_queue_;     // in the order of ends
  std::vector<frame_state> frame_states_;     // by frame
  std::vector<transfer> transfers_;
  std::vector<std::size_t> free_transfers_;
  std::vector<std::size_t>
      released_;  // transits that waited for a transaction that has just committed
  std::unordered_map<std::uint64_t, std::vector<std::size_t>>
      version_writebacks_;  // by line: transits that wait for it
  std::unordered_map<std::uint64_t, copy> copies_;
  std::uint64_t pending_ = 0;  // lines of open transactions in the nonvolatile cache
  bool fallback_pending_ = false;
  unsigned futile_fallbacks_ = 0;  // fall-backs
};

}  // namespace stele::sim
