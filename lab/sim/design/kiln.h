// Kiln: a nonvolatile shared cache, and clean-on-commit. Zhao, Li, Yoon, Xie and Jouppi, "Kiln: Closing the Performance Gap
// Between Systems With and Without Persistence Support" (2013), sections 3 and 4. Protocol: docs/protocol/kiln.md.
//
// Invariants, at every moment of simulated time:
// - A line of a transaction that has not committed is in the nonvolatile cache as pending, or above it, never in memory at its
//   own address.
// - While a line is pending, the version that its transaction replaces is whole: in memory, in another way of the set
//   (superseded), or among the lines being written back, which are nonvolatile too and not overwritten.
// - Transactions commit in the order in which they ended. One commits by a single nonvolatile write (its commit flag), after all of its
//   lines have arrived; the states of its lines follow.
#pragma once

#include <sim/design/design.h>

#include <array>
#include <deque>
#include <functional>
#include <unordered_map>

namespace stele::sim {

// Bugs planted in the protocol, for the crash checks to find.
enum class kiln_fault : std::uint8_t {
  none,
  pending_evicted,        // pending lines may leave for memory
  committed_early,        // the commit flag is set before the last line has arrived
  overflow_copy_kept,     // recovery takes the copies of transactions that never committed for good
  write_back_overwritten, // a version being written back makes room for a newer one at once
  version_overwritten,    // a pending line takes the place of a committed version that memory does not have
  states_one_by_one,      // no commit flag: the states of the lines are all there is
  out_of_order,           // a transaction commits as soon as its own lines are there
};
inline constexpr std::array kiln_faults = {kiln_fault::pending_evicted, kiln_fault::committed_early, kiln_fault::overflow_copy_kept, kiln_fault::write_back_overwritten,
                                           kiln_fault::version_overwritten, kiln_fault::states_one_by_one, kiln_fault::out_of_order};
std::string_view name_of(kiln_fault f) noexcept;

struct kiln_counts {
  std::uint64_t transactions = 0, lines = 0;           // committed; of them
  std::uint64_t arrived_before_end = 0;                // of these lines
  std::uint64_t queue_evictions = 0;                   // lines sent early because a FIFO was full
  std::uint64_t superseded_kept = 0, superseded_written = 0;
  std::uint64_t overflows = 0, overflowed_lines = 0;   // times that the fall-back path was taken
  std::uint64_t overflowed_transactions = 0;           // of which a line was copied
  std::uint64_t waits_for_older = 0;                   // lines that waited for an older transaction's version
  std::uint64_t pending_at_most = 0;                   // lines in the nonvolatile cache, at one time
  picoseconds commit_latency = 0;                      // from end to commit flag, summed
};

// What a crash leaves: a value for each line that recovery finds (others have their initial content).
struct nonvolatile_state {
  std::unordered_map<std::uint64_t, std::uint64_t> lines;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> torn;  // in the middle of being written to memory, and nowhere else
  std::size_t pending = 0, superseded = 0, copies = 0;        // lines that recovery met
};

class kiln final : public design, public shared_cache_design, actor, asker {
 public:
  // The shared cache has a power of two of sets.
  explicit kiln(const design_place& where);

  bool begin(unsigned thread, bool in_order, asker& told, picoseconds now) override;
  void storing(unsigned thread, std::uint64_t line, picoseconds now) override;
  void stored(unsigned thread, std::uint64_t line, picoseconds now) override;
  void attempt_lost(unsigned thread) override;
  void commit(unsigned thread, const line_set& lines, plan& p, picoseconds now) override;
  void finish(picoseconds now) override;

  bool may_leave(cache_array::place p, std::uint64_t line) override;
  void no_room(std::uint64_t line, unsigned thread, picoseconds now) override;
  void arriving(hierarchy& h, cache_array::place p, unsigned core, std::uint64_t line, std::uint64_t value, picoseconds when) override;
  void left(cache_array::place p, std::uint64_t line, bool written_back) override;
  std::uint64_t value_of_memory(hierarchy& h, std::uint64_t line) override;

  // Transaction n (in the order of their ends, from 0) is committed.
  std::function<void(std::uint64_t n, picoseconds now)> committed = [](std::uint64_t, picoseconds) {};

  // Transactions that have ended and are not committed.
  std::size_t uncommitted() const noexcept { return to_commit_.size(); }

  // What recovery makes of the nonvolatile cache and memory if the power fails now (section 4.5).
  nonvolatile_state recovered() const;

  kiln_counts counts;

 private:
  using place = cache_array::place;
  enum class stage : std::uint8_t { in_flight, ended, flagging, flagged };
  struct resident {
    std::uint64_t line;
    place at;  // unless it has left
  };
  struct transaction {
    std::size_t slot = 0;   // where it is kept
    std::uint64_t id = 0;  // never used again
    unsigned thread = 0;
    stage is = stage::in_flight;
    bool in_order = false;      // asks for it
    bool sent = false;          // its lines are on their way or there
    std::uint64_t number = 0;   // in the order of ends
    picoseconds ended = 0;
    std::size_t arriving = 0;   // lines, and copies of lines, on their way
    line_set tracked;           // written and not yet sent
    std::deque<std::uint64_t> queue;      // the same, in order (the FIFOs at the first and second level)
    std::vector<resident> lines;          // pending in the nonvolatile cache
    std::size_t states_set = 0;           // of these, with states_one_by_one
    std::vector<std::uint64_t> overflow;  // lines with a copy in memory elsewhere
    std::vector<std::size_t> behind;      // transits that wait until it has committed

    void become(std::uint64_t new_id, unsigned of_thread, bool asks_for_order);
  };
  // Something under way that we are told of.
  struct transit {
    enum class kind : std::uint8_t { to_cache, version_to_memory, copy, mapping, home } what;
    std::uint64_t id, line, value;
    transaction* of = nullptr;      // whose id that is; home: it is over
    place at = cache_array::none;  // to_cache: of the line, which may not leave meanwhile
  };
  struct cell {
    std::uint64_t value = 0;
    transaction* of = nullptr;  // while the line is pending
    place superseded = cache_array::none;  // of the version that this one replaced, unless that has left
    std::uint32_t on_the_way : 31 = 0;     // arrivals
    std::uint32_t there : 1 = 0;           // newer than memory
  };
  struct copy {
    std::uint64_t id, value;
    transaction* of;                        // until it has committed
    bool whole = false, committed = false;  // it and its mapping entry are in memory
  };

  void act(picoseconds now, std::uint64_t what) override;
  void done(picoseconds now, std::uint64_t token) override;
  void try_again(picoseconds) override {}

  // The transaction that wrote what a core has of a line; null: none that is open.
  transaction* writer(unsigned core, std::uint64_t line) const;
  void forget(transaction& t) { spare_.push_back(t.slot); }
  std::size_t new_transit(const transit& t);
  void send(transaction& t, picoseconds now);
  void send_line(const transaction& t, std::uint64_t line, picoseconds now);
  void send_up_to(std::uint64_t number, picoseconds now);
  void arrive(std::size_t slot, picoseconds now);
  transaction* older_writer(place p, const transit& t) const;
  bool keep_version(place p, std::size_t slot, picoseconds now);
  void let_commit(picoseconds now);
  void flag(transaction& t, picoseconds now);
  void next_state(transaction& t, picoseconds now);
  // Where the version is that the line at `p` has replaced; none: it is not in the cache.
  place superseded_at(place p, std::uint64_t line) const;
  void make_persistent(const transaction& t, resident r);
  void close(transaction& t, picoseconds now);
  bool all_pending_of(const transaction& t, std::uint64_t line) const;
  void overflow(std::uint64_t line, picoseconds now);
  void copied(const transit& t, picoseconds now);
  bool may_be_copied(place p) const;

  event_queue& events_;
  hierarchy& caches_;
  kiln_fault fault_;
  bool relaxed_, speculative_;
  unsigned cores_;
  std::size_t tracked_at_most_, others_at_most_, requests_at_most_;
  picoseconds flag_time_, interrupt_, patience_;
  std::deque<transaction> all_;     // open ones, and room for more
  std::vector<std::size_t> spare_;  // of these, those that are over
  std::uint64_t next_id_ = 1, ended_ = 0, copies_made_ = 0;
  std::vector<std::vector<transaction*>> of_thread_;   // open ones, oldest first
  std::vector<std::vector<transaction*>> unsent_;      // of each thread: those whose lines may be above, oldest first
  std::vector<asker*> wants_to_begin_;                 // by thread
  std::deque<transaction*> to_commit_;                 // in the order of ends
  std::vector<cell> cells_;  // by place
  std::vector<transit> transits_;
  std::vector<std::size_t> free_transits_;
  std::vector<std::size_t> released_;  // transits that waited for a transaction that has just committed
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> versions_to_memory_;  // by line: transits that wait for it
  std::unordered_map<std::uint64_t, copy> copies_;
  std::uint64_t pending_ = 0;  // lines of open transactions in the nonvolatile cache
  bool falling_back_ = false;
  unsigned in_vain_ = 0;  // fall-backs
};

}  // namespace stele::sim
