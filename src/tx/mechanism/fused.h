// default: what pools get that ask for nothing. One streamed record of lines and one fence a durable commit, no fence an
// ordered one, home volatile until bulk persistence in the background. Page: docs/protocol/default.md.
//
// It takes the torn-bit log from Volos, Tack and Swift, "Mnemosyne" (2011), volatile checkpoint and bulk persistence from Lu,
// Shu and Sun, "Blurred Persistence" (2016); runs of words make one record with a length; what bulk persistence has to
// flush is noted beside the log, not read back from it.
//
// Ordered commits: records are stored, not streamed, so that any thread can make them durable; their values stay in the
// owner's overlay (transaction::pending) and their locks held until somebody settles: flush the records, fence, store home.
// Each record names the ordered commit before it, and recovery drops what follows a missing one.
//
// On a file, where a place written costs as much as a page, all threads append to one ring after the other and commit in groups (one log
// for all): a commit's record, then everything that is before it in the ring, is made durable by whoever writes.
#pragma once

#include <base/in_one_piece.h>
#include <tx/log/group_commit.h>
#include <tx/mechanism/bulk.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

template <class Media>
class fused final : public bulk_engine<Media> {
 public:
  using typename engine_on<Media>::lane;

  fused(pool_state& state, std::unique_ptr<typename Media::shared> shared) : bulk_engine<Media>(state, std::move(shared)), settler_(*this->shared_, state.file.header().log_count + 1), groups_(this->lanes_.size()) {
    for (lane& l : this->lanes_) l.notes.size_for(l.log.lines());
  }
  ~fused() override { this->stop(); }

  void set_up(const engine_tuning& tuning) override {
    if constexpr (may_share) shares_ = tuning.shared_log;
    for (unsigned i = 0; shares_ && i < this->lanes_.size(); ++i) sharers_.emplace_back(*this->shared_, this->state_.file.header().log_count + 2 + i);
    bulk_engine<Media>::set_up(tuning);
  }
  [[nodiscard]] result<> start(std::uint8_t logs_were) override {
    auto started = bulk_engine<Media>::start(logs_were);
    for (std::size_t i = 0; i < streams_.size(); ++i) streams_[i].start(this->lanes_[i].log.tail());
    return started;
  }

  // In one piece, like the rest of the way of a commit: a call stores its registers, and stores are dear here (docs/decisions/7-tried.md).
  STELE_IN_ONE_PIECE attempt run_commit(transaction& t) override { return t.commit_by(*this); }

  [[nodiscard]] result<> prepare(transaction& t) override {
    if (!t.ordered() && this->state_.unsettled.load(std::memory_order_relaxed) != 0 && !base::planted<Media>(base::mutant::default_no_wait)) [[unlikely]]
      settle();
    if (t.ordered()) reserve_overlay(t);
    if constexpr (may_share)
      if (shares_) return prepare_shared(this->lanes_[t.log()], t);
    return this->prepare_lines(this->lanes_[t.log()], t);
  }

  bool draw(transaction& t, std::uint64_t& txid) override {
    if constexpr (may_share)
      if (shares_) return draw_shared(t, txid);
    return t.draw_txid(txid);
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    if constexpr (may_share)
      if (shares_) return commit_shared(t, txid);
    if (t.in_order()) [[unlikely]]
      return t.ordered() && l.reserved_bytes == 0 ? commit_ordered(l, t, txid) : commit_after_ordered(l, t, txid);
    return this->commit_lines(l, t, txid, [&] { this->note_lines(l, t, txid); });  // no truncation asks for it while txid is announced
  }

  bool defers_ordered() const noexcept override { return true; }
  [[nodiscard]] result<> sync() override {
    settle();
    return this->check_medium();
  }
  [[nodiscard]] result<> close() override {
    this->stop();
    settle();
    return bulk_engine<Media>::close();
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    t.media += settler_.count;
    for (const Media& m : sharers_) t.media += m.count;
    return t;
  }

  // Makes every ordered commit that has returned durable and stores it home: steps G1 to G3. Any thread's.
  void settle() override {
    settle_all();
    this->state_.durable_moved();
  }
  std::uint64_t durable_through() const noexcept override {
    return this->state_.unsettled.load(std::memory_order_acquire) == 0 ? pool_state::no_commit : this->state_.completed();
  }

 private:
  [[gnu::noinline]] void settle_all() {
    using base::mutant;
    using base::planted;
    const std::lock_guard one(settling_);
    if (this->state_.unsettled.load(std::memory_order_acquire) == 0) return allow_disorder();
    const all_groups hold(groups_);  // so that what is settled is a prefix of the order
    flush_records();                                                             // G1
    if (!planted<Media>(mutant::default_no_settle_fence)) settler_.fence();  // G2: records before home
    if (settler_.failed()) return this->state_.poisoned.store(true);
    for (std::size_t i = 0; shares_ && i < streams_.size(); ++i) streams_[i].hardened(flushed_[i]);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].owner != nullptr) store_home(i, i != 0 && planted<Media>(mutant::settle_own_alone));  // G3
    allow_disorder();
  }

  // Ordered commits of one log that are not settled: records [from, to) of its ring, unless it is shared.
  struct alignas(64) group {
    std::mutex mutex;
    std::uint64_t from = 0, to = 0;
    std::uint64_t commits = 0;
    transaction* owner = nullptr;  // null: none
  };
  class all_groups {
   public:
    explicit all_groups(std::deque<group>& groups) noexcept : groups_(groups) {
      for (group& g : groups_) g.mutex.lock();
    }
    ~all_groups() {
      for (group& g : groups_) g.mutex.unlock();
    }
    all_groups(const all_groups&) = delete;
    all_groups& operator=(const all_groups&) = delete;

   private:
    std::deque<group>& groups_;
  };
  static constexpr std::uint64_t many = Media::explores ? 3 : 256;         // commits in a group before somebody is told
  static constexpr std::uint64_t too_many = 8192;                          // lines in an overlay before its owner waits

  bool in_background() const noexcept override { return true; }
  bool keeps_notes() const noexcept override { return true; }
  void work_once() override {
    if (this->state_.unsettled.load(std::memory_order_relaxed) != 0) {
      if (!short_of_log()) std::this_thread::sleep_for(gathering_time);
      settle();
    }
    if (short_of_log()) this->truncate();
  }
  static constexpr auto gathering_time = std::chrono::microseconds(100);  // an ordered commit is durable about so long after

  // When no ordered commit is about, TxIDs need not be drawn in order.
  void allow_disorder() {
    auto& s = this->state_;
    const std::unique_lock drawing(s.drawing, std::try_to_lock);
    if (drawing.owns_lock() && s.unsettled.load(std::memory_order_acquire) == 0) s.orders.store(false, std::memory_order_relaxed);
  }

  // Memory for O2. Others read the overlay while they settle.
  [[gnu::noinline]] void reserve_overlay(transaction& t) {
    const std::lock_guard hold(groups_[t.log()].mutex);
    t.reserve_pending();
  }

  // O1 to O3 of the page: no fence.
  [[gnu::noinline]] bool commit_ordered(lane& l, transaction& t, std::uint64_t txid) {
    group& g = groups_[t.log()];
    if (base::planted<Media>(base::mutant::settle_joined_early)) t.joined();
    std::unique_lock hold(g.mutex);
    if (!shares_)
      l.log.template append<line_goes::through_it>(format::record_kind::redo_after, txid, [&](auto& out) {  // O1
        out.word(follows(t));
        this->write_redo(t, out);
      });
    if (base::planted<Media>(base::mutant::default_ordered_home_first)) this->store_home_volatile(l, t);
    if (g.owner == nullptr) {
      g.from = l.log.tail();
      g.owner = &t;
      this->state_.pending[t.log()].value.store(txid - 1, std::memory_order_seq_cst);
      this->state_.unsettled.fetch_add(1, std::memory_order_seq_cst);
    }
    if (!shares_) {
      l.log.publish();
      this->note_lines(l, t, txid);
      g.to = l.log.tail();
    }
    const bool first = ++g.commits == 1, full = g.commits >= many;
    t.defer(txid);  // O2: values and locks stay with the group
    hold.unlock();
    t.joined();
    if (first || full) [[unlikely]]
      ask_to_settle(full, t.pending_lines().size() >= too_many);  // O3
    return true;
  }

  // The ordered commit that t's record names.
  static std::uint64_t follows(const transaction& t) noexcept { return base::planted<Media>(base::mutant::default_no_chain) ? 0 : t.ordered_before(); }

  void ask_to_settle(bool full, bool wait) {
    if (!this->has_background()) return full ? settle() : void();
    this->wake();
    if (!wait) return;
    while (this->state_.unsettled.load(std::memory_order_acquire) != 0 && !this->state_.poisoned.load()) std::this_thread::yield();
  }

  // A durable commit while ordered ones may be pending: its record names the last of them, and it returns when they are durable.
  [[gnu::noinline]] bool commit_after_ordered(lane& l, transaction& t, std::uint64_t txid) {
    using base::mutant;
    using base::planted;
    auto fill = [&](auto& out) {
      out.word(follows(t));
      this->write_redo(t, out);
    };
    if (l.reserved_bytes != 0)
      this->append_spilled(l, l, format::record_kind::redo_after, txid, t, this->new_value, t.ordered_before());
    else
      l.log.append(format::record_kind::redo_after, txid, fill);
    const bool durable = this->settled(l);
    t.joined();
    if (!durable) return false;
    if (!planted<Media>(mutant::default_no_wait)) settle();  // those before it are durable and home before it is
    t.begin_home();
    this->store_home_volatile(l, t);
    l.log.publish();
    this->note_lines(l, t, txid);
    return !this->state_.poisoned.load();
  }

  void flush_records() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const group& g = groups_[i];
      const group_commit::range r = shares_ ? streams_[i].waiting() : g.owner != nullptr ? group_commit::range{g.from, g.to} : group_commit::range{0, 0};
      if (shares_) flushed_[i] = r.to;
      if (r.from < r.to) flush_lines(settler_, this->lanes_[i], {r.from, r.to - base::planted<Media>(base::mutant::default_last_record)});
    }
  }
  static void flush_lines(Media& media, const lane& l, group_commit::range r) {
    for (std::uint64_t line = r.from; line < r.to; ++line) media.flush(l.log.bytes() + line % l.log.lines() * line_size, line_size);
  }

  void store_home(std::size_t log, bool nothing = false) {
    group& g = groups_[log];
    g.owner->begin_settling();
    for (const written_line& line : g.owner->pending_lines())
      if (!nothing) engine_on<Media>::store_home(settler_, this->state_.file, line);
    g.owner->end_settling();
    g.owner = nullptr;
    g.commits = 0;
    this->state_.pending[log].value.store(pool_state::no_commit, std::memory_order_seq_cst);
    this->state_.unsettled.fetch_sub(1, std::memory_order_release);
  }

  // One log for all: docs/protocol/default.md, steps L1 to L4.
  static constexpr bool may_share = Media::whole_cache != media::whole_cache::impossible;

  // Lines of a ring that a log's owner has been promised. Before a TxID is drawn: later ones would fill what it waits for, and could not be
  // cut before it. An attempt that did not come to commit keeps its promise until the log's next one.
  struct promise {
    std::size_t lane = 0;
    std::uint64_t lines = 0;
  };
  [[nodiscard]] result<> prepare_shared(lane& own, transaction& t) {
    this->drop_reserved(own);
    std::uint64_t lines = this->lines_needed(t, own.log.lines() / 2);
    if (lines > own.log.lines()) {
      if (auto made = this->make_spill(own, t, sharers_[t.log()]); !made) return made;
      lines = lines_for_words(5);  // TxID, the ordered commit before it, and where the rest is
    }
    while (!promised(t.log(), lines)) {
      this->truncate();
      if (this->state_.poisoned.load()) return this->check_medium();
      if (promised(t.log(), lines)) break;
      this->state_.await_announced(t.log());
    }
    return {};
  }
  bool promised(unsigned log, std::uint64_t lines) {
    const std::lock_guard one(appending_);
    give_back(log);
    lane* const l = lane_with_room(lines);
    if (l == nullptr) return false;
    promises_[log] = {l->number, lines};
    promised_[l->number] += lines;
    return true;
  }
  void give_back(unsigned log) {
    promised_[promises_[log].lane] -= promises_[log].lines;
    promises_[log].lines = 0;
  }

  // L1: a ring's TxIDs grow, for each is drawn where the place is taken. A truncation through H finds all up to H before all others.
  bool draw_shared(transaction& t, std::uint64_t& txid) {
    const bool apart = base::planted<Media>(base::mutant::default_txid_before_place);
    std::unique_lock one(appending_, std::defer_lock);
    if (!apart) one.lock();
    if (!t.draw_txid(txid)) return false;
    if (apart) one.lock();
    append_shared(t, t.in_order() ? format::record_kind::redo_after : format::record_kind::redo, txid);
    return true;
  }
  bool commit_shared(transaction& t, std::uint64_t txid) {
    const shared_place& at = places_[t.log()];
    if (t.in_order() && t.ordered() && !at.spilled) [[unlikely]]
      return commit_ordered(this->lanes_[t.log()], t, txid);
    const bool durable = harden(t, at);  // L2, L3: the log is durable before home changes
    if (t.in_order()) [[unlikely]]
      t.joined();
    if (!durable) return false;
    if (t.in_order() && !base::planted<Media>(base::mutant::default_no_wait)) [[unlikely]]
      settle();
    store_home_shared(t);  // L4
    return !this->state_.poisoned.load(std::memory_order_relaxed);
  }
  void store_home_shared(transaction& t) {
    t.begin_home();
    for (const written_line& line : t.lines()) engine_on<Media>::store_home(sharers_[t.log()], this->state_.file, line);
  }

  struct shared_place {
    unsigned lane = 0;
    std::uint64_t end = 0;
    bool spilled = false;
  };
  // Stored, not streamed: whoever writes the ring makes it durable. Under appending_.
  void append_shared(transaction& t, format::record_kind kind, std::uint64_t txid) {
    lane& own = this->lanes_[t.log()];
    lane* const l = &this->lanes_[promises_[t.log()].lane];
    const bool spilled = own.reserved_bytes != 0;
    give_back(t.log());
    if (spilled) {
      this->template append_spilled<line_goes::through_it>(own, *l, kind, txid, t, this->new_value, follows(t));
    } else {
      l->log.template append<line_goes::through_it>(kind, txid, [&](auto& out) {
        if (format::has_front_word(kind)) out.word(follows(t));
        this->write_redo(t, out);
      });
    }
    this->note_lines(*l, t, txid);
    l->log.publish();
    streams_[l->number].appended(l->log.tail());
    places_[t.log()] = {l->number, l->log.tail(), spilled};
  }
  // The ring in use, or the next one that has room. Under appending_.
  lane* lane_with_room(std::uint64_t lines) {
    for (std::size_t i = 0; i < this->lanes_.size(); ++i) {
      const std::size_t n = (current_ + i) % this->lanes_.size();
      if (this->lanes_[n].log.room() < promised_[n] + lines) continue;
      if (i != 0 && short_of_log()) this->wake();
      return &this->lanes_[current_ = n];
    }
    return nullptr;
  }
  bool harden(transaction& t, const shared_place& at) {
    Media& mine = sharers_[t.log()];
    return streams_[at.lane].harden(at.end, [&](group_commit::range r) {
      if (base::planted<Media>(base::mutant::default_shared_alone)) r.from = std::max(r.from, at.end - 1);
      if (!base::planted<Media>(base::mutant::default_shared_unflushed)) flush_lines(mine, this->lanes_[at.lane], r);
      return this->settled(mine);
    });
  }
  // Half of the log is in use.
  bool short_of_log() const {
    if (!shares_) return this->short_of_room();
    std::uint64_t room = 0;
    for (const lane& l : this->lanes_) room += l.log.room();
    return room < this->lanes_.size() * this->lanes_.front().log.lines() / 2;
  }

  bool shares_ = false;
  std::mutex appending_;  // of the rings, the lanes' media, and what follows
  std::vector<promise> promises_ = std::vector<promise>(this->lanes_.size());              // by log
  std::vector<shared_place> places_ = std::vector<shared_place>(this->lanes_.size());      // likewise, of the running commit: its owner's
  std::vector<std::uint64_t> promised_ = std::vector<std::uint64_t>(this->lanes_.size());  // by ring
  std::size_t current_ = 0;
  std::deque<group_commit> streams_{this->lanes_.size()};  // a ring each
  std::deque<Media> sharers_;                              // one for each log's owner: what its commits fence and store home with
  std::vector<std::uint64_t> flushed_ = std::vector<std::uint64_t>(this->lanes_.size());  // under settling_

  std::mutex settling_;
  Media settler_;  // under settling_
  std::deque<group> groups_;
};

}  // namespace stele::detail
