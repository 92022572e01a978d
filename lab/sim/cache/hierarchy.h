// Private first- and second-level caches, a shared third level, directory MESI between them, memory
// below.
//
// Inclusive: a line of a level is in all levels below it. Ownership changes at the moment of the
// request, because requests come in the order of time; latencies are computed from it. A copy whose
// content is still on its way, from memory or from another cache, has the time of its arrival, and
// later requests for it complete with the first, not before. `now` may be later than the event
// queue's now, not earlier.
//
// With track_values(), each copy of a line carries a number that moves as data does; tests of
// coherence and crashes read these numbers.
#pragma once

#include <sim/cache/cache_array.h>
#include <sim/cache/crossbar.h>
#include <sim/cache/directory.h>
#include <sim/cache/prefetcher.h>
#include <sim/config.h>
#include <sim/controller/memory.h>

#include <array>
#include <unordered_map>
#include <utility>

namespace stele::sim {

// The outcome of a request. Two words: it is returned in registers.
struct access_result {
  enum class kind : std::uint8_t { completed, pending, nacked };
  picoseconds when = 0;  // completed: the time
  kind what = kind::completed;
  bool joined = false;  // it waits for a line that its core has requested before

  static constexpr access_result completed_at(picoseconds when, bool joined = false) noexcept {
    return {when, kind::completed, joined};
  }
  static constexpr access_result pending(bool joined = false) noexcept {
    return {0, kind::pending, joined};
  }
  static constexpr access_result nacked() noexcept { return {0, kind::nacked, false}; }
};

// The interface of a requester for later completion.
class requester {
 public:
  // The request with this token is done.
  virtual void done(picoseconds now, std::uint64_t token) = 0;
  // A request that was NACKed, or found a queue full, may be sent again.
  virtual void retry(picoseconds now) = 0;

 protected:
  ~requester() = default;
};

// Lets all of them retry; those that wait again are in the list afterwards.
inline void retry_all(std::vector<requester*>& waiting, picoseconds now) {
  if (waiting.empty()) return;
  for (requester* r : std::exchange(waiting, {})) r->retry(now);
}

// Observes the lines of private caches; used by isolation.
class private_cache_observer {
 public:
  virtual void remote_access(unsigned core, std::uint64_t line, bool by_store,
                             picoseconds now) = 0;                               // by another core
  virtual void evicted(unsigned core, std::uint64_t line, picoseconds now) = 0;  // for lack of room

 protected:
  ~private_cache_observer() = default;
};

class hierarchy;

// What a nonvolatile shared cache adds. The base class is a cache without transactions.
class shared_cache_policy {
 public:
  virtual ~shared_cache_policy() = default;
  // The host will soon read what the policy keeps of this frame.
  virtual void prefetch(cache_array::frame) const {}
  // Whether the line at `p` may be evicted for another.
  virtual bool may_evict(cache_array::frame, std::uint64_t /*line*/) { return true; }
  // A request was NACKed, because no line of its set may leave. The policy calls retry_nacked when
  // there is room.
  virtual void no_victim(std::uint64_t /*line*/, unsigned /*thread*/, picoseconds /*now*/) {}
  // A dirty copy of a private cache is on its way; it arrives at `when`. The base class writes it
  // at once.
  virtual void writeback_arriving(hierarchy& h, cache_array::frame p, unsigned core,
                                  std::uint64_t line, std::uint64_t value, picoseconds when);
  // A line has left the shared cache. written_back: its content is on its way to memory.
  virtual void line_evicted(cache_array::frame, std::uint64_t /*line*/, bool /*written_back*/) {}
  // The content of a line that is not in the shared cache: memory's, unless the design keeps it
  // elsewhere.
  virtual std::uint64_t backing_value(hierarchy& h, std::uint64_t line);
};

struct hierarchy_counts {
  std::uint64_t l1_hits = 0, l1_misses = 0, l2_hits = 0, l2_misses = 0, l3_hits = 0, l3_misses = 0;
  // Accesses to the data of l1 besides those of threads: lines that enter, newer lines that leave.
  std::uint64_t l1_fills = 0, l1_newer_lines = 0;
  std::uint64_t l2_reads = 0, l2_writes = 0;                // accesses to l2 data
  std::uint64_t l3_reads = 0, l3_writes = 0, l3_fills = 0;  // accesses to l3 data
  std::uint64_t invalidations = 0,
                transfers = 0;  // copies invalidated; lines from another core's caches
  std::uint64_t memory_reads = 0, memory_writes = 0, flushed_lines = 0, nacks = 0;
  std::uint64_t queue_waits = 0;  // requests that found a request queue full
  // Prefetches sent; not sent; lines of those that a core accessed after they had arrived, before,
  // or not until they left its second level.
  std::uint64_t prefetches_issued = 0, prefetches_dropped = 0, prefetches_useful = 0,
                prefetches_late = 0, prefetches_useless = 0;
  std::uint64_t l1_accesses() const noexcept { return l1_hits + l1_misses; }
  void visit_state(archive& a) {
    a(l1_hits, l1_misses, l2_hits, l2_misses, l3_hits, l3_misses, l1_fills, l1_newer_lines);
    a(l2_reads, l2_writes, l3_reads, l3_writes, l3_fills, invalidations, transfers);
    a(memory_reads, memory_writes, flushed_lines, nacks, queue_waits);
    a(prefetches_issued, prefetches_dropped, prefetches_useful, prefetches_late);
    a(prefetches_useless);
  }
};

class hierarchy final : event_handler {
 public:
  using frame = cache_array::frame;
  enum class level : std::uint8_t { shared_cache, memory };

  // Errors: invalid_argument.
  [[nodiscard]] static result<std::unique_ptr<hierarchy>> make(event_queue& events, memory& below,
                                                               const machine_config& c,
                                                               std::uint64_t seed);

  void set_observer(private_cache_observer* w) noexcept { observer_ = w; }
  void set_policy(shared_cache_policy* d) noexcept { policy_ = d; }
  void track_values();

  struct request_origin {
    unsigned core, thread;
    requester* reply_to;
    std::uint64_t token;
  };
  // A load, or a store, which makes the core the line's owner and the line dirty.
  access_result access_line(const request_origin& origin, std::uint64_t line, bool store,
                            picoseconds now);
  // A store of the whole line: like access_line(), but a line that no cache has is not read from
  // memory.
  access_result store_full_line(const request_origin& origin, std::uint64_t line, picoseconds now);

  // The line's frame in the first level of the core, present or not; none: it is not there.
  [[gnu::always_inline]] frame l1_frame(unsigned core, std::uint64_t line) const noexcept {
    return private_[core].l1.find(line);
  }
  // Whether an access to the line in this frame of l1 hits: it has arrived, in a state that allows
  // the access.
  [[gnu::always_inline]] bool would_hit_at(unsigned core, frame p, bool store,
                                           picoseconds now) const noexcept {
    const caches& c = private_[core];
    return allows(c, p, store) && c.l1_lines[p].there.of(store) <= now + first_latency(store);
  }
  // The fast path of access_line() for a line that l1_frame() has found. Returns false, and does
  // nothing, when the access does not hit.
  [[gnu::always_inline]] bool hit_at(unsigned core, frame p, bool store, picoseconds now) noexcept {
    if (!would_hit_at(core, p, store, now)) return false;
    count_l1_hit(private_[core], p, store);
    return true;
  }
  // The same for a line, where its frame has no other use.
  bool hit(unsigned core, std::uint64_t line, bool store, picoseconds now) noexcept {
    return hit_at(core, l1_frame(core, line), store, now);
  }
  bool would_hit(unsigned core, std::uint64_t line, bool store, picoseconds now) const noexcept {
    return would_hit_at(core, l1_frame(core, line), store, now);
  }
  picoseconds hit_latency() const noexcept { return l1_read_; }

  // A load that begins in the second level and fills no first one. Completes like access_line().
  access_result load_from_l2(const request_origin& origin, std::uint64_t line, picoseconds now);

  // Writes newer content down to level `to`. The copies above stay, clean, unless `drop` is set.
  access_result clean(const request_origin& origin, std::uint64_t line, level to, bool drop,
                      picoseconds now);
  // A non-temporal store of a line; done when memory has it.
  access_result stream(const request_origin& origin, std::uint64_t line, std::uint64_t value,
                       picoseconds now);

  // A persist barrier between the writes sent to memory so far and those sent from here on.
  void barrier(unsigned thread, picoseconds now);

  // Asks the host for the state of the shared cache that a request for this line reads. A run takes
  // longer for the host's cache misses than for its instructions.
  void prefetch(std::uint64_t line) const noexcept {
    l3_.prefetch(line);
    const directory_entry* const first = lines_.data() + l3_.first_of_set(line);
    __builtin_prefetch(first, 1), __builtin_prefetch(first + l3_.ways() / 2, 1);
  }

  // For designs:
  directory_entry& at(frame p) noexcept { return lines_[p]; }
  cache_array& shared() noexcept { return l3_; }
  std::uint64_t value_at(frame p) const noexcept { return values_ ? l3_values_[p] : 0; }
  void set_value(frame p, std::uint64_t v) noexcept {
    if (values_) l3_values_[p] = v;
  }
  bool dirty_in_private(frame p, std::uint64_t line) const noexcept;
  picoseconds bank_access(std::uint64_t line, bool write, picoseconds since) noexcept;
  // A write for this hardware thread that memory receives at `when`; reply_to, if any, gets
  // done(token). unbuffered: until memory has the value, no buffer holds it. Otherwise the value is
  // in a buffer of the shared cache, which is as durable as that cache.
  void write_memory(std::uint64_t line, std::uint64_t value, picoseconds when, unsigned thread,
                    requester* reply_to, std::uint64_t token, bool unbuffered = false);
  // Lets all NACKed requesters retry.
  void retry_nacked(picoseconds now);
  std::size_t nacked() const noexcept { return nacked_requesters_.size(); }
  // The requests in the request queues of a core: those that wait for memory, and NACKed ones.
  std::size_t requests_of(unsigned core) const noexcept {
    return private_[core].waiting_for_memory + private_[core].nacked;
  }
  // Reads the tags of all sets, in all banks at a time.
  void scan_tags(picoseconds time_of_set, picoseconds now) noexcept;
  // Makes room for a line by evicting another of the ways in `allowed`, for a request of this
  // hardware thread; returns none when no line may leave.
  frame evict_for(std::uint64_t line, unsigned thread, picoseconds now,
                  std::uint32_t allowed = ~0u);
  // Tells the observer that this core is about to lose the line for lack of room.
  void announce_eviction(unsigned core, std::uint64_t line, picoseconds now) {
    if (observer_ != nullptr) observer_->evicted(core, line, now);
  }
  // Evicts the line from all caches.
  void evict_with_back_invalidation(frame p, unsigned thread, picoseconds now);
  void evict_from_l3(frame p, unsigned thread, picoseconds now);
  const crossbar& interconnect() const noexcept { return interconnect_; }
  // The host memory that tags, their ages and states take.
  std::size_t tag_bytes() const noexcept;

  // With track_values(): value_seen is the copy that a load of this core sees (the core must have
  // one); value_stored sets the value that a store of this core made.
  std::uint64_t value_seen(unsigned core, std::uint64_t line) const noexcept;
  void value_stored(unsigned core, std::uint64_t line, std::uint64_t value) noexcept;
  bool dirty_in_core(unsigned core, std::uint64_t line) const noexcept;
  // Cancels a store that missed: the core keeps the line as it was fetched.
  void cancel_store(unsigned core, std::uint64_t line) noexcept { clear_dirty(core, line); }
  // Rolls back a store: the core's copy has its old value again.
  void roll_back_store(unsigned core, std::uint64_t line, std::uint64_t value,
                       bool was_dirty) noexcept;
  std::uint64_t memory_value(std::uint64_t line) const noexcept;  // including writes in progress
  const std::unordered_map<std::uint64_t, std::uint64_t>& memory_values() const noexcept {
    return memory_values_;
  }
  void set_memory_value(std::uint64_t line, std::uint64_t value) { memory_values_[line] = value; }
  struct memory_transfer {
    std::uint64_t line = 0, value = 0, token = 0;
    requester* reply_to = nullptr;
    std::uint64_t number = 0;  // increases with each transfer
    unsigned thread = 0;       // the hardware thread that it is for
    bool used = false, unbuffered = false;
    std::vector<std::pair<requester*, std::uint64_t>> merged;
    void visit_state(archive& a);
  };
  const std::vector<memory_transfer>& in_flight() const noexcept { return in_flight_; }

  // For tests: whether this core has a copy, which may be on its way.
  bool holds(unsigned core, std::uint64_t line) const noexcept {
    return private_[core].l2.find(line) != cache_array::none;
  }
  // For tests: describes a broken invariant of coherence, empty when there is none (coherence.cc).
  std::string inconsistency() const;

  // Not of contents: precondition: track_values() was not called.
  void name_parts(archive& a);
  void visit_state(archive& a);

  hierarchy_counts counts;

 private:
  // prefetched: of a line of l2 alone, which no access has used yet.
  static constexpr std::uint8_t exclusive = 1, dirty = 2, prefetched = 4;
  // When the content of a copy is there, and when its core may store to it; never: not known yet.
  struct arrival {
    picoseconds readable = 0, writable = 0;
    picoseconds of(bool store) const noexcept { return store ? writable : readable; }
    void visit_state(archive& a) { a(readable, writable); }
    friend bool operator==(const arrival&, const arrival&) = default;
  };
  // A line of a private cache, in one place of the host's memory. Its frames in the other levels
  // spare a search there; none: l1 does not have it.
  struct l1_line {
    arrival there;
    frame l2 = cache_array::none;
    std::uint8_t state = 0;
  };
  struct l2_line {
    arrival there;
    frame l3 = cache_array::none, l1 = cache_array::none;
    std::uint8_t state = 0;
  };
  struct caches {
    cache_array l1, l2;
    std::vector<l1_line> l1_lines;  // by frame
    huge_vector<l2_line> l2_lines;
    std::vector<std::uint64_t> l1_values, l2_values;
    unsigned waiting_for_memory = 0, nacked = 0;  // requests
    std::vector<requester*> queue_waiters{};      // for an entry of the core's request queues
    void visit_state(archive& a);
    void find_links(const cache_array& l3);
  };
  struct l3_bank {
    serial_resource port;
    unsigned fills = 0;  // lines on their way from memory
    std::vector<requester*> queue_waiters;
    void visit_state(archive& a);
  };
  struct mshr {
    std::uint64_t line = 0;
    picoseconds issued = 0;
    // Completes `extra` after the line is back, at `earliest` at the soonest. fills: it has put the
    // line into the private caches. owns: it has made the core the owner. Neither: it has joined a
    // request of its core that did, and shares its entry in the request queues.
    struct target {
      request_origin origin;
      picoseconds extra, earliest;
      bool fills, owns;
    };
    std::vector<target> targets;
    bool used = false;
    void visit_state(archive& a, unsigned cores, bool prefetches);
  };

  hierarchy(event_queue& events, memory& below, const machine_config& c, std::vector<caches> p,
            cache_array l3);
  void handle(picoseconds now, std::uint64_t what) override;

  // Whether l1 has the line, at p, in a state for this access.
  [[gnu::always_inline]] static bool allows(const caches& c, frame p, bool store) noexcept {
    return p != cache_array::none && (!store || (c.l1_lines[p].state & exclusive) != 0);
  }
  void count_l1_hit(caches& c, frame p, bool store) noexcept {
    c.l1.touch(p);
    if (store) c.l1_lines[p].state |= dirty;
    ++counts.l1_hits;
  }
  // The time that a core's access spends in its first level.
  picoseconds first_latency(bool store) const noexcept { return store ? l1_write_ : l1_read_; }
  // The time that a core's access spends in its private caches.
  picoseconds private_latency(bool store) const noexcept {
    return store ? l1_write_ + l2_write_ : l1_read_ + l2_read_;
  }
  // The frames of a core's copy.
  struct copy {
    frame l2, l1;
  };
  struct coherent {
    picoseconds ready;  // when the line can leave the bank
    copy at;
  };
  // The line has left l1 without a hit: the thread's prefetcher may read others. fetched: see
  // prefetcher.h.
  void prefetch_behind(const request_origin& origin, std::uint64_t line, bool fetched,
                       picoseconds now);
  // Whether this is the first use of a prefetched line, which could be there at `earliest`; counts
  // it then.
  bool is_first_use(l2_line& l, picoseconds earliest) noexcept {
    if ((l.state & prefetched) == 0) return false;
    l.state &= static_cast<std::uint8_t>(~prefetched);
    ++(l.there.readable > earliest ? counts.prefetches_late : counts.prefetches_useful);
    return true;
  }
  access_result fetch_into_l2(const request_origin& origin, std::uint64_t line, std::uint64_t kept,
                              picoseconds now);
  access_result access_shared(const request_origin& origin, std::uint64_t line, bool store,
                              frame in_l2, picoseconds now);
  access_result hit_shared(const request_origin& origin, frame p, std::uint64_t line, bool store,
                           frame in_l2, picoseconds asked);
  access_result join(const request_origin& origin, std::uint64_t line, bool store,
                     picoseconds arrives, picoseconds earliest);
  // A copy of the core arrives then.
  void set_arrival(unsigned core, copy at, bool fills, bool owns, picoseconds when) noexcept;
  copy copy_of(unsigned core, std::uint64_t line) const noexcept {
    const frame q = private_[core].l2.find(line);
    return {q, q == cache_array::none ? q : private_[core].l2_lines[q].l1};
  }
  void prefetch_for_miss(unsigned core, std::uint64_t line) const noexcept;
  access_result miss(const request_origin& origin, std::uint64_t line, bool store, picoseconds now);
  // Of a request for this line, which has to wait for memory: those who wait for the request queue
  // that has no entry for it; null: all queues have one.
  std::vector<requester*>* waiters_of_full_queue(unsigned core, std::uint64_t line,
                                                 bool on_its_way) noexcept;
  l3_bank& bank_of(std::uint64_t line) noexcept {
    return banks_[(line & ~superseded_line) % banks_.size()];
  }
  void nack(const request_origin& origin, std::uint64_t line, picoseconds now);
  void enter_shared(frame p, std::uint64_t line);
  // Asks memory for the line at `p`; returns when the request leaves the bank.
  picoseconds start_fill(const request_origin& origin, frame p, std::uint64_t line,
                         picoseconds now);
  // The core's new copy comes from the shared cache, with the fill that the line waits for if there
  // is one. found: when the bank had it; ready: when it can leave.
  access_result deliver(const request_origin& origin, frame p, std::uint64_t line, copy at,
                        bool fills, picoseconds found, picoseconds ready);
  // A frame for a line that no cache has; none: NACKed, the requester is told when to retry.
  frame allocate_or_nack(const request_origin& origin, std::uint64_t line, picoseconds now);
  coherent resolve_coherence(const request_origin& origin, frame p, std::uint64_t line, bool store,
                             frame in_l2, picoseconds now);
  // Takes other copies back, as a load or a store needs it; returns when the line can leave.
  picoseconds take_from_others(const request_origin& origin, frame p, std::uint64_t line,
                               bool store, picoseconds now);
  void give_to(unsigned core, frame p, bool store) noexcept;
  frame fill_l2(unsigned core, frame p, std::uint64_t line, bool store, std::uint32_t ways,
                picoseconds now);
  copy fill_private(unsigned core, frame p, std::uint64_t line, bool store, frame in_l2,
                    picoseconds now);
  frame fill_l1(unsigned core, frame in_l2, std::uint8_t state);
  void evict_private(unsigned core, frame in_l2, picoseconds now);
  // Moves the newest content of a core's copy into the shared cache; returns when it arrives, or
  // now.
  picoseconds write_back_private(unsigned core, frame in_l2, std::uint64_t line, bool keep,
                                 bool keep_exclusive, picoseconds now);
  // The directory says that this core has the line.
  frame sharer_frame(unsigned core, std::uint64_t line) const noexcept {
    return private_[core].l2.find(line);
  }
  void clear_dirty(unsigned core, std::uint64_t line) noexcept;
  void fill_done(std::size_t slot, picoseconds now);
  mshr* find_mshr(std::uint64_t line) noexcept;
  bool may_evict(frame p);
  std::size_t allocate_transfer();
  std::string broken_in_private(unsigned core) const;
  std::string broken_in_directory(frame p) const;
  std::string broken_arrival(unsigned core, std::uint64_t line, const arrival& a,
                             bool may_store) const;
  void check_restored(archive& a);
  bool takes(std::uint64_t what);

  event_queue& events_;
  memory& memory_;
  private_cache_observer* observer_ = nullptr;
  shared_cache_policy default_policy_;
  shared_cache_policy* policy_ = &default_policy_;
  std::vector<caches> private_;
  cache_array l3_;
  huge_vector<directory_entry> lines_;
  std::vector<std::uint64_t> l3_values_;
  crossbar interconnect_;
  std::vector<l3_bank> banks_;
  unsigned core_queue_, bank_queue_;  // lengths of the request queues
  picoseconds l1_read_, l1_write_, l2_read_, l2_write_, l3_read_, l3_write_;
  std::vector<mshr> mshrs_;
  std::vector<std::uint32_t> free_mshrs_;
  std::vector<memory_transfer> in_flight_;
  std::vector<std::uint32_t> free_transfers_;
  std::uint64_t transfer_sequence_ = 0;
  picoseconds newest_write_ = 0, newest_barrier_ = 0;  // when memory receives it
  std::vector<requester*> nacked_requesters_;
  prefetch_config prefetch_;
  bool prefetches_;
  std::vector<prefetcher> prefetchers_;  // by thread
  bool values_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> memory_values_;
};

}  // namespace stele::sim
