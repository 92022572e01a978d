// log_structured: the log is the only home. A commit appends blocks and points the home map at
// them; nothing is copied elsewhere. Page: docs/protocol/log_structured.md. Source: Hu, Ren, Badam,
// Shu and Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017).
#pragma once

#include <base/assert.h>
#include <media/cpu.h>
#include <published/log_structured/cleaner.h>
#include <published/log_structured/log_home.h>
#include <published/log_structured/rebuild.h>
#include <published/log_structured/saved_mapping.h>
#include <published/log_structured/transaction_stager.h>
#include <published/mutant.h>
#include <stele/log_structured_options.h>
#include <tx/background_thread.h>
#include <tx/mechanism_engine.h>

#include <algorithm>
#include <deque>

namespace stele::detail {

template <class Media>
class log_structured {
 public:
  using medium = Media;
  static constexpr log_kind kind = log_kind::chunks;
  static constexpr auto upkeep = checksum_upkeep::none;
  static constexpr auto home_kind = format::home_kind::log;
  using log_space = storage::log_space;
  using entry = typename chunk_log<Media>::entry;

  log_structured(pool_medium<Media>& m, home_checksums<Media>&, const engine_tuning& tuning)
      : medium_(m),
        state_(m.state),
        control_(m.control),
        options_(tuning.of_mechanism.get<log_structured_options>()),
        background_(tuning.background) {}

  // Everything up to committed_through_ has committed. So chunks of earlier sessions may be
  // cleaned, and recovery need not check their transactions' rings again.
  [[nodiscard]] result<> attach(log_kind) {
    STELE_ASSERT_ALWAYS(lanes_.empty() && home_ != nullptr);
    control_.count = {};  // recovery was this engine's too; counters are those of the session
    committed_through_ = state_.clock.load();
    medium_.write_word(format::watermark_offset, committed_through_);
    // The watermark is durable before the session's first commit and before a chunk of an earlier
    // session is freed.
    control_.fence();
    for (unsigned i = 0; i < lane_count(); ++i)
      lanes_.emplace_back(*medium_.shared, i, *home_, state_.heap);
    const unsigned count = std::max(1u, options_.cleaners);
    gained_.resize(count);
    for (unsigned i = 0; i < count; ++i)
      cleaners_.emplace_back(space(), *medium_.shared, lane_count() + i, lane_count() + i);
    if (!background_ || (Media::under_exploration && !base::schedule_explorer_build)) return {};
    for (unsigned i = 0; i < count; ++i)
      threads_.emplace_back().start([this, i] { clean_in_background(i); },
                                    [this, i] { return is_worth_more_cleaning(gained_[i]); });
    return {};
  }
  // Stages t's entries and reserves log space and map nodes for them, with cleaning if needed.
  [[nodiscard]] result<> reserve_log(transaction& t) {
    lane& l = lanes_[t.log()];
    l.stager.stage(t);
    if (!l.log.reserve(reserved_for_freeing)) [[unlikely]] {
      const std::uint32_t min_free =
          frees_more_than_it_adds(l) ? reserved_for_cleaning : reserved_for_freeing;
      for (unsigned failures = 0; !l.log.reserve(min_free);)
        if (!make_room(t.log(), min_free, failures)) return full("in the log");
    }
    if (!reserve_nodes(l)) return full("for the map of home");
    if (l.log.has_new_chunks()) [[unlikely]]
      clean_incrementally(t.log());
    return {};
  }

  // docs/protocol/log_structured.md, steps 1 to 4.
  bool commit(transaction& t, std::uint64_t txid) {
    lane& l = lanes_[t.log()];
    // A lane's versions rise, and recovery knows those of earlier sessions by the watermark.
    STELE_ASSERT(txid > committed_through_ && txid > l.newest.load(std::memory_order_relaxed));
    l.log.write(l.media, txid);  // 1
    // 2: the blocks are durable before other threads see them
    if (!medium_.fence_ok(l.media)) return false;
    t.begin_home_stores();
    l.log.count_as_live();  // 3
    for (const entry& e : l.log.fragments())
      space().map.map(l.map_writer, {e.home, e.words, e.at}, &l.home.cache());
    l.newest.store(txid, std::memory_order_release);
    if (l.log.has_new_chunks() && !planted(published::mutant::ls_full_unsaid)) [[unlikely]]
      l.log.store_full_ends(l.media);  // durable with this thread's next commit
    l.log.advance_tails();             // 4
    return true;
  }

  // docs/protocol/log_structured.md, R1 to R5. Writes only words of blocks that did not commit and
  // of unused chunk headers.
  [[nodiscard]] result<> recover() {
    const auto mark = medium_.read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    if (auto loaded = load_closed_mapping(*mark); !loaded || *loaded)
      return loaded ? result<>{} : std::unexpected(loaded.error());
    make_space();
    const unsigned wanted = options_.recovery_threads;
    const unsigned threads = !background_ || Media::under_exploration ? 1
                             : wanted != 0                            ? wanted
                                           : std::max(1u, std::thread::hardware_concurrency());
    auto found = rebuild(space(), *mark, threads);  // R1 to R4
    if (!found) return std::unexpected(found.error());
    for (const std::uint64_t block : found->words_to_zero) {
      STELE_ASSERT_ALWAYS(block % 8 == 0 && block >= state_.file.header().log_offset &&
                          block < state_.file.header().size);
      std::byte* const at = state_.file.base() + block;
      const std::uint64_t none = 0;
      control_.store(at,
                     planted<Media>(published::mutant::ls_abandoned_left)
                         ? static_cast<const void*>(at)
                         : &none,
                     8);
      control_.flush(at, 8);
    }
    if (!found->words_to_zero.empty())
      // R5: they are no blocks any more before their TxIDs may be used again.
      control_.fence();
    state_.clock.store(std::max(found->newest, *mark));
    return control_.failed()
               ? base::fail(errc::io,
                            state_.file.path() +
                                ": recovery could not write to the device; open the pool again")
               : result<>{};
  }

  virtual_home* home() noexcept { return home_.get(); }

  [[nodiscard]] result<> close() {
    for (background_thread& t : threads_) t.stop();
    if (auto status = medium_.check(); !status) return status;
    // A block that is damaged later is not taken for the end of its log.
    if (!planted(published::mutant::ls_tails_unsaid))
      for (lane& l : lanes_) l.log.store_tail_ends(control_);
    // Counts only in a closed session: the engine fences before it marks the session closed.
    medium_.write_word(format::saved_map_offset,
                       save_mapping(space(), control_, state_.clock.load()));
    return {};
  }

  void add_totals(engine_totals& t) const noexcept {
    for (const lane& l : lanes_) t.media += l.media.count;
    mechanism_counters& own = t.of_mechanism;
    for (const auto& c : cleaners_) t.media += c.media.count, own.add("map_bytes", c.cache_bytes());
    home_->add_to(own);
    own.add("cleaned_chunks", cleaned_.chunks.load(std::memory_order_relaxed));
    own.add("fast_cleaned_chunks", cleaned_.fast_chunks.load(std::memory_order_relaxed));
    own.add("moved_bytes", cleaned_.moved_bytes.load(std::memory_order_relaxed));
  }
  void note(unsigned log, media::tape_mark m, std::uint64_t argument) {
    lanes_[log].media.note(m, argument);
  }

 private:
  static constexpr std::uint32_t reserved_for_cleaning = 2, reserved_for_freeing = 5;  // chunks
  // Live share of chunks that may be cleaned when nothing else helps.
  static constexpr double max_victim_live_share = 0.99;
  static constexpr std::uint32_t sweep_chunks = 32;  // chunks swept for each one that a lane begins
  static constexpr format::log_type separate_logs_[] = {
      format::log_type::update, format::log_type::allocation, format::log_type::deallocation};
  static constexpr format::log_type one_log_[] = {format::log_type::update};
  static std::span<const format::log_type> logs_of(const log_structured_options& o) noexcept {
    if (o.separate_logs) return separate_logs_;
    return one_log_;
  }
  struct alignas(64) lane {
    lane(typename Media::shared& shared, unsigned n, log_home& of, storage::heap& heap)
        : media(shared, n),
          home(*of.of_log(n)),
          log(of.space, n, logs_of(of.space.options)),
          stager(home, of.space, heap, log) {}
    Media media;
    mapped_home& home;  // as the log's transactions see it
    chunk_log<Media> log;
    transaction_stager<Media> stager;
    storage::home_map::writer map_writer;
    std::atomic<std::uint64_t> newest{0};  // newest version that is durable
  };

  log_space& space() const noexcept { return home_->space; }
  unsigned lane_count() const noexcept { return state_.file.header().log_count; }

  void make_space() {
    home_ = std::make_unique<log_home>(state_.file, options_,
                                       lane_count() + std::max(1u, options_.cleaners));
  }

  // Loads the mapping that a clean close left. False: there is none.
  [[nodiscard]] result<bool> load_closed_mapping(std::uint64_t mark) {
    const auto session = medium_.read_word(format::session_offset);
    if (!session) return std::unexpected(session.error());
    const auto first = medium_.read_word(format::saved_map_offset);
    if (!first) return std::unexpected(first.error());
    if (format::session::unpack(*session).open || *first == 0) return false;
    make_space();
    state_.clock.store(mark);
    return load_mapping(space(), static_cast<std::uint32_t>(*first - 1), mark);
  }

  [[nodiscard]] result<> full(const char* where) const {
    return base::fail(errc::full,
                      fmt::format("{}: no room {} for this transaction; destroy something, or "
                                  "create a larger pool and copy this one",
                                  state_.file.path(), where));
  }

  // Whether the pool holds less after the transaction that is staged. A transaction that frees a
  // little and adds more must not use up the chunks that are reserved for freeing.
  bool frees_more_than_it_adds(lane& l) const {
    std::uint64_t freed = 0, added = 0;
    for (const auto& e : l.log.staged) {
      if (e.tombstone) freed += e.words;
      const std::uint64_t end = e.tombstone ? e.home : e.home + e.words;
      for (std::uint64_t home = e.home; home < end;) {
        const auto now = space().map.range_at(home, l.home.cache());
        const std::uint64_t next = now.words == 0 ? home + 1 : std::min(end, now.home + now.words);
        if (now.words == 0 || !storage::is_data(now.at)) added += next - home;
        home = next;
      }
    }
    return freed > added;
  }

  // Without memory for nodes, the reserved chunks are released.
  bool reserve_nodes(lane& l) try {
    if (space().map.reserve(l.map_writer, l.log.fragments().size())) return true;
    l.log.release_chunks();
    return false;
  } catch (...) {
    l.log.release_chunks();
    throw;
  }

  // A chunk may be cleaned when its transactions are not the newest of their lanes any more, and
  // all versions up to theirs have reached the map: see docs/protocol/log_structured.md, "Which
  // chunks may go".
  auto may_clean() const noexcept {
    return [this, through = state_.completed()](const log_space::chunk& c) {
      const std::uint64_t newest = c.newest.load(std::memory_order_acquire);
      if (planted<Media>(published::mutant::ls_cleans_newest)) return true;
      if (newest > through) return false;
      STELE_ASSERT(newest <= committed_through_ || c.type == format::log_type::moved ||
                   c.lane < lanes_.size());
      return c.type == format::log_type::moved || newest <= committed_through_ ||
             newest < lanes_[c.lane].newest.load(std::memory_order_acquire);
    };
  }

  std::uint64_t clean(cleaner<Media>& c, double max_live_share) {
    try {
      const std::uint64_t gained =
          c.step(max_live_share, state_.completed(), cleaned_, may_clean());
      if (c.media.failed())
        state_.poison(pool_state::poison_cause::write_failed, medium_.error_number_of(c.media));
      return gained;
    } catch (const std::bad_alloc&) {
      return 0;
    }
  }
  std::uint64_t sweep(cleaner<Media>& c, std::uint32_t max_chunks) {
    try {
      return c.sweep(max_chunks, cleaned_, may_clean());
    } catch (const std::bad_alloc&) {
      return 0;
    }
  }
  bool is_low_on_chunks() const noexcept {
    return space().free_chunks() <
           std::max<std::uint32_t>(2 * reserved_for_freeing, space().chunk_count() / 32);
  }
  double victim_live_share_limit() const noexcept {
    return is_low_on_chunks() ? max_victim_live_share : options_.victim_live_share;
  }

  // A thread between its body and its commit holds no position in the log, so cleaning need not
  // wait for it.
  template <class Work>
  auto with_epoch_unpinned(unsigned log, Work&& work) {
    STELE_ASSERT(log < lane_count());
    space().epochs.unpin(log);
    const auto done = work();
    space().epochs.pin(log);
    return done;
  }

  // Tries of 200 us before a pool counts as full: 512, and 100 times as many while retired chunks
  // wait for readers, which may be off their processors.
  static constexpr unsigned retry_budget = 51'200, retry_cost = 100, retry_cost_for_readers = 1;
  // False: there is no room, and cleaning cannot make any.
  bool make_room(unsigned log, std::uint32_t min_free, unsigned& failures) {
    return with_epoch_unpinned(log, [&] {
      if (state_.poisoned.load(std::memory_order_relaxed)) return false;
      std::uint64_t gained = 0;
      {
        const std::uint32_t had = space().allocatable_chunks();
        const auto has_more = [&] {
          return space().allocatable_chunks() > std::max(had, min_free);
        };
        // While the first cleaner is at work, another one may free chunks.
        std::unique_lock hold(inline_cleaning_, std::defer_lock);
        while (!hold.try_lock()) {
          if (has_more()) return true;
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        (void)space().reclaim_retired();
        if (has_more()) return true;
        gained = clean(cleaners_.front(), max_victim_live_share);
        (void)space().reclaim_retired();
      }
      const bool for_readers = space().free_chunks() > space().allocatable_chunks();
      failures += for_readers ? retry_cost_for_readers : retry_cost;
      const bool again = failures < retry_budget;
      if (gained >= space().chunk_words() / 256) return again;
      // Nothing to gain now, except from readers or from another cleaner.
      if (!for_readers && !has_several_cleaners() && space().allocatable_chunks() <= min_free)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return again;
    });
  }

  // Called when a lane has begun a chunk, so that cleaning keeps up, in cleaner threads or here.
  // Chunks without live data are freed at any time, so that the log stays in cached memory; others
  // are cleaned when the pool fills.
  void clean_incrementally(unsigned log) {
    if (!threads_.empty() && threads_.front().runs()) {
      if (chunks_begun_.fetch_add(1, std::memory_order_relaxed) % 16 == 15 || needs_cleaning())
        for (background_thread& t : threads_) t.wake();
      return;
    }
    (void)with_epoch_unpinned(log, [&] {
      const std::lock_guard hold(inline_cleaning_);
      return clean_once(cleaners_.front(), sweep_chunks);
    });
  }
  bool needs_cleaning() const noexcept { return space().utilisation() >= options_.clean_from; }

  std::uint64_t clean_once(cleaner<Media>& c, std::uint32_t max_chunks) {
    std::uint64_t gained = 0;
    if (options_.fast_cleaning) gained = sweep(c, max_chunks);
    if (needs_cleaning()) gained += clean(c, victim_live_share_limit());
    (void)space().reclaim_retired();
    return gained;
  }

  void clean_in_background(unsigned number) {
    std::unique_lock first(inline_cleaning_, std::defer_lock);
    if (number == 0) first.lock();
    STELE_ASSERT(number < cleaners_.size() && number < gained_.size());
    gained_[number] = clean_once(cleaners_[number], space().chunk_count());
  }
  bool is_worth_more_cleaning(std::uint64_t gained) const noexcept {
    return needs_cleaning() && (is_low_on_chunks() ? gained != 0 : gained >= space().chunk_words());
  }
  bool has_several_cleaners() const noexcept { return threads_.size() > 1 && threads_[1].runs(); }

  pool_medium<Media>& medium_;
  pool_state& state_;
  Media& control_;
  const log_structured_options options_;
  const bool background_;
  std::uint64_t committed_through_ = 0;  // versions up to it existed when the session began
  std::unique_ptr<log_home> home_;
  std::deque<lane> lanes_;
  std::deque<cleaner<Media>> cleaners_;
  cleaning_totals cleaned_;
  std::atomic<std::uint32_t> chunks_begun_{0};
  std::mutex inline_cleaning_;             // guards cleaners_.front()
  std::vector<std::uint64_t> gained_;      // words, by each cleaner thread's last step
  std::deque<background_thread> threads_;  // last: they end before what they use
};

}  // namespace stele::detail
