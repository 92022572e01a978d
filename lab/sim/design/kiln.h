// Kiln: a nonvolatile shared cache, and clean-on-commit. Zhao, Li, Yoon, Xie and Jouppi, "Kiln:
// Closing the Performance Gap Between Systems With and Without Persistence Support" (2013),
// sections 3 and 4. Protocol: docs/protocol/kiln.md.
//
// Invariants, at every moment of simulated time:
// - A line of a transaction that has not committed is in the nonvolatile cache as pending, or above
//   it, never in memory at its own address.
// - While a line is pending, the version that its transaction replaces is durable: in memory, in
//   another way of the set (superseded), or among the lines being written back, which are
//   nonvolatile too and not overwritten.
// - Transactions commit in the order in which they ended. A transaction commits by a single
//   nonvolatile write (its commit flag), after all of its lines have arrived; the states of its
//   lines are changed afterwards.
#pragma once

#include <sim/design/design.h>

#include <array>
#include <deque>
#include <functional>
#include <unordered_map>

namespace stele::sim {

// Bugs planted in the protocol, which the crash tests must find.
enum class kiln_mutant : std::uint8_t {
  none,
  pending_evicted,         // pending lines may be evicted to memory
  committed_early,         // the commit flag is set before the last line has arrived
  overflow_copy_kept,      // recovery applies copies of uncommitted transactions too
  write_back_overwritten,  // a newer version overwrites one still being written back
  version_overwritten,     // a pending line replaces a committed version not yet in memory
  states_one_by_one,       // no commit flag, only the states of the lines
  out_of_order,            // a transaction commits as soon as its own lines arrived
};
inline constexpr std::array kiln_mutants = {
    kiln_mutant::pending_evicted,     kiln_mutant::committed_early,
    kiln_mutant::overflow_copy_kept,  kiln_mutant::write_back_overwritten,
    kiln_mutant::version_overwritten, kiln_mutant::states_one_by_one,
    kiln_mutant::out_of_order};
std::string_view name_of(kiln_mutant f) noexcept;

struct kiln_counts {
  std::uint64_t transactions = 0, lines = 0;  // committed ones; their lines
  std::uint64_t arrived_before_end = 0;       // lines that arrived before the end
  std::uint64_t queue_evictions = 0;          // lines sent early because a core's FIFOs were full
  std::uint64_t queue_waits = 0;     // stores that waited until an ended transaction was sent
  std::uint64_t queue_aborts = 0;    // attempts ended for the same reason
  std::uint64_t unqueued_lines = 0;  // lines that found the L3's FIFO full
  std::uint64_t tag_scans = 0;       // commits of transactions with such lines
  std::uint64_t superseded_kept = 0, superseded_written = 0;
  // times that the fallback path was taken; lines copied; of these, lines with a copy already
  std::uint64_t overflows = 0, overflowed_lines = 0, copied_again = 0;
  std::uint64_t overflowed_transactions = 0;  // transactions with a copied line
  std::uint64_t overflow_aborts = 0;  // attempts ended because a set was full of their lines
  std::uint64_t waits_for_older = 0;  // lines that waited for an older transaction
  std::uint64_t max_pending = 0;      // most pending lines in the nonvolatile cache at a time
  picoseconds commit_latency = 0;     // from end to commit flag, summed
  void visit_state(archive& a);
};

// The state after a crash and recovery: a value for each line that recovery finds (other lines have
// their initial content).
struct nonvolatile_state {
  std::unordered_map<std::uint64_t, std::uint64_t> lines;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      torn;  // being written to memory, with no other copy
  std::size_t pending = 0, superseded = 0, copies = 0;  // lines that recovery found
};

// The states of a line of the nonvolatile cache (section 4.2, figure 5). free: volatile data, which
// no recovery needs, or nothing. pending: stored by a transaction that has not committed.
// persistent: the newest committed version of nonvolatile data.
enum class nv_line_state : std::uint8_t { free, pending, persistent };

// Bits that a tag of the nonvolatile cache has besides those of any cache: numbers of core,
// hardware thread and transaction, and two for the state (section 4.3).
unsigned tag_bits(const machine_config& machine) noexcept;

class kiln final : public design, public shared_cache_policy, event_handler, requester {
 public:
  // Precondition: the shared cache has a power of two of sets.
  explicit kiln(const design_context& where);

  bool begin(unsigned thread, bool in_order, requester& reply_to, picoseconds now) override;
  bool storing(unsigned thread, std::uint64_t line, requester& reply_to, picoseconds now) override;
  void stored(unsigned thread, std::uint64_t line, picoseconds now) override;
  void aborted(unsigned thread) override;
  void commit(unsigned thread, const line_set& lines, action_list& p, picoseconds now) override;
  bool durable(unsigned thread, requester& reply_to, picoseconds now) override;
  void finish(picoseconds now) override;

  void prefetch(cache_array::frame p) const override { __builtin_prefetch(&frame_states_[p], 1); }
  bool may_evict(cache_array::frame p, std::uint64_t line) override;
  void no_victim(std::uint64_t line, unsigned thread, picoseconds now) override;
  void writeback_arriving(hierarchy& h, cache_array::frame p, unsigned core, std::uint64_t line,
                          std::uint64_t value, picoseconds when) override;
  void line_evicted(cache_array::frame p, std::uint64_t line, bool written_back) override;
  std::uint64_t backing_value(hierarchy& h, std::uint64_t line) override;

  // Called when transaction n (in the order of their ends, from 0) has committed.
  std::function<void(std::uint64_t n, picoseconds now)> committed = [](std::uint64_t, picoseconds) {
  };

  // The state of what a frame's cells hold; a line on its way to the cache does not count.
  nv_line_state state_of(cache_array::frame p) const noexcept;

  // The number of transactions that have ended and not committed.
  std::size_t uncommitted() const noexcept { return commit_queue_.size(); }

  // The state that recovery produces from the nonvolatile cache and memory if the power fails now
  // (section 4.5).
  nonvolatile_state recovered() const;

  // kiln_state.cc
  void name_parts(archive& a) override;
  void visit_state(archive& a) override;
  // Whether the thread's newest transaction is running.
  bool is_running(unsigned thread) const;

  kiln_counts counts;

 private:
  using frame = cache_array::frame;
  enum class stage : std::uint8_t { in_flight, ended, flagging, flagged };
  struct pending_line {
    std::uint64_t line;
    frame at;  // unless the line has left
  };
  struct transaction {
    std::size_t slot = 0;  // its index in transactions_
    std::uint64_t id = 0;  // never reused
    unsigned thread = 0;
    stage state = stage::in_flight;
    bool in_order = false;     // it asked to commit in order
    bool sent = false;         // its lines are on their way or have arrived
    std::uint64_t number = 0;  // in the order of ends
    picoseconds ended = 0;
    std::size_t arriving = 0;             // lines and copies on their way
    line_set tracked;                     // written and not yet sent
    std::size_t tracked_lines = 0;        // how many of them
    std::vector<std::uint64_t> queue;     // the same from `oldest` on, in order (FIFOs of l1, l2)
    std::size_t oldest = 0;               // index of the first of them
    std::vector<pending_line> lines;      // pending in the nonvolatile cache
    std::size_t queued = 0;               // how many of `lines` have an entry in the L3's FIFO
    std::size_t states_set = 0;           // how many of `lines` are done, with states_one_by_one
    std::vector<std::uint64_t> overflow;  // lines with a copy in the overflow area
    std::vector<std::size_t> blocked_transfers;  // transfers that wait for its commit

    void visit_state(archive& a, unsigned threads, std::size_t frames);
    void reset(std::uint64_t new_id, unsigned of_thread, bool asks_for_order);
  };
  // A transfer in progress that reports its completion.
  struct transfer {
    enum class kind : std::uint8_t { to_cache, version_to_memory, copy, mapping, home };
    kind what = kind::to_cache;
    std::uint64_t id = 0, line = 0, value = 0;
    transaction* tx = nullptr;     // the transaction of `id`; null for home: it is over
    frame at = cache_array::none;  // to_cache: the line's frame, which may not be evicted
  };
  struct frame_state {
    std::uint64_t value = 0;
    transaction* tx = nullptr;             // while the line is pending
    frame superseded = cache_array::none;  // frame of the version it replaced, unless evicted
    std::uint32_t writebacks_in_flight : 31 = 0;  // write-backs on their way
    std::uint32_t dirty : 1 = 0;                  // newer than memory
    bool is_initial() const noexcept {
      return value == 0 && tx == nullptr && superseded == cache_array::none &&
             writebacks_in_flight == 0 && dirty == 0;
    }
  };
  struct copy {
    std::uint64_t id = 0, value = 0;
    transaction* tx = nullptr;                // null after its commit
    bool durable = false, committed = false;  // durable: copy and mapping entry are in memory
  };

  void handle(picoseconds now, std::uint64_t what) override;
  void done(picoseconds now, std::uint64_t token) override;
  void retry(picoseconds) override {}

  // The open transaction that wrote a core's copy of a line; null: none.
  transaction* writer(unsigned core, std::uint64_t line) const;
  void free_slot(transaction& t) { free_slots_.push_back(t.slot); }
  std::size_t allocate_transfer(const transfer& t);
  void send(transaction& t, picoseconds now);
  void send_line(transaction& t, std::uint64_t line, picoseconds now);
  void untrack(transaction& t, std::uint64_t line);
  transaction* oldest_unsent_of(unsigned core) const noexcept;
  void make_queue_room(transaction& t, picoseconds now);
  void send_in_order(picoseconds now);
  void send_up_to(std::uint64_t number, picoseconds now);
  void arrive(std::size_t slot, picoseconds now);
  transaction* older_writer(const transfer& t) const;
  bool join_version(std::size_t slot, transaction& older);
  bool preserve_version(frame p, std::size_t slot, picoseconds now);
  void advance_commits(picoseconds now);
  void commit_flag_written(transaction& t, picoseconds now);
  void next_state(transaction& t, picoseconds now);
  // The frame of the version that the line at `p` has replaced; none: it is not in the cache.
  frame superseded_at(frame p, std::uint64_t line) const;
  void make_persistent(const transaction& t, pending_line r);
  void retire(transaction& t, picoseconds now);
  bool all_pending_of(const transaction& t, std::uint64_t line) const;
  void overflow(std::uint64_t line, picoseconds now);
  void make_room_above(std::uint64_t line, picoseconds now);
  void overflow_copied(const transfer& t, picoseconds now);
  bool may_be_copied(frame p) const;

  void link(archive& a, transaction*& t);
  void links(archive& a, std::vector<transaction*>& all);
  void transactions_state(archive& a);
  void frames_state(archive& a);
  void transfers_state(archive& a);
  void check_transactions(archive& a) const;
  void check_transfers(archive& a) const;
  bool takes(std::uint64_t what, bool as_event) const;

  event_queue& events_;
  hierarchy& caches_;
  kiln_mutant mutant_;
  bool relaxed_, speculative_;
  unsigned cores_;
  std::size_t max_tracked_, max_queued_, max_others_;
  double max_requests_;
  picoseconds flag_time_, interrupt_latency_, overflow_timeout_, set_scan_time_;
  std::deque<transaction> transactions_;  // open ones, and free slots
  std::vector<std::size_t> free_slots_;   // indexes of free slots
  std::uint64_t next_id_ = 1, ended_ = 0, copies_made_ = 0;
  std::uint64_t to_send_ = 0;     // transactions with a lower number are to be sent
  std::size_t unsent_ = 0;        // of commit_queue_, the last ones: not sent yet
  std::size_t queued_ = 0;        // entries in use of the L3's FIFO
  std::size_t on_their_way_ = 0;  // lines of transactions that have left the private caches
  std::vector<std::vector<transaction*>> open_by_thread_;  // open transactions, oldest first
  std::vector<std::vector<transaction*>>
      uncleaned_by_thread_;  // transactions with lines in private caches, oldest first
  std::vector<std::vector<transaction*>>
      unsent_by_core_;  // transactions that have ended and are not sent, oldest first
  std::vector<std::size_t> tracked_lines_;                 // by core: of all its transactions
  std::vector<requester*> waiting_for_commit_;             // by thread
  std::vector<std::vector<requester*>> waiting_to_store_;  // by core
  std::deque<transaction*> commit_queue_;                  // in the order of ends
  huge_vector<frame_state> frame_states_;                  // by frame
  std::vector<transfer> transfers_;
  std::vector<std::size_t> free_transfers_;
  std::vector<std::size_t> released_;  // transfers that waited for the transaction just committed
  std::unordered_map<std::uint64_t, std::vector<std::size_t>>
      version_writebacks_;  // by line: transfers that wait for it
  std::unordered_map<std::uint64_t, copy> copies_;
  std::uint64_t pending_ = 0;  // pending lines in the nonvolatile cache
  bool fallback_pending_ = false;
  unsigned futile_fallbacks_ = 0;  // fallbacks in a row that copied no line
};

}  // namespace stele::sim
