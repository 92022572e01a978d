// Cleaning of a log-structured pool: the live data of sparse chunks moves to a new chunk, and the
// sparse chunks become free.
//
// docs/protocol/log_structured.md, C1 to C6. Source: Hu, Ren, Badam, Shu and Moscibroda,
// "Log-Structured Non-Volatile Main Memory" (2017), sections 3.4 and 4.4. Departures: entries of
// several transactions move as one block, whose version is the highest of theirs; a tombstone is
// removed when no older version of its region is left on media; an entry is live if the map points
// to it, whatever its version.
#pragma once

#include <base/assert.h>
#include <base/reserve.h>
#include <published/log_structured/chunk_log.h>
#include <published/log_structured/chunk_reader.h>
#include <published/mutant.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace stele::detail {

struct cleaning_totals {
  std::atomic<std::uint64_t> chunks{0}, fast_chunks{0}, moved_bytes{0};
};

// One cleaner, used by one thread at a time. `reader`: its number among the threads that pin
// epochs.
template <class Media>
class cleaner {
 public:
  using log_space = storage::log_space;

  cleaner(log_space& space, typename Media::shared& shared, unsigned reader, std::uint32_t lane)
      : media(shared, reader + 1),
        space_(space),
        reader_(reader),
        log_(space, lane, moved_logs_),
        map_cache_(space.cache_entries()) {}

  // Empties chunks that `may_clean` allows, the sparsest first, none with a live share above
  // `max_live_share`. All versions up to `through` have reached the map. Returns how many words
  // that gained; 0: nothing was worth it. Throws std::bad_alloc with nothing lost.
  template <class MayGo>
  std::uint64_t step(double max_live_share, std::uint64_t through, cleaning_totals& totals,
                     MayGo&& may_clean) try {
    choose_victims(max_live_share, may_clean);  // C1
    if (victims_.empty()) return 0;
    STELE_ASSERT(victims_.size() <= max_victims && sources_.empty());
    log_.clear();
    entries_.clear();
    joined_.clear();
    mapped_through_ = through;
    empty_victims_ = pulled_in_words_ = 0;
    std::uint64_t live = 0;
    space_.epochs.pin(reader_);  // until C4 is over, no place read here is reused
    for (const std::uint32_t c : victims_) live += collect_live(c);  // C2
    const bool moved = move_live();                                  // C3, C4
    space_.epochs.unpin(reader_);
    if (!moved) return abandon();
    sources_.clear();
    free_victims(totals);  // C5, C6
    totals.moved_bytes.fetch_add(live * 8, std::memory_order_relaxed);
    const std::uint64_t freed =
        victims_.size() * std::uint64_t{space_.chunk_words()} + pulled_in_words_;
    return freed > live ? freed - live : 0;
  } catch (...) {
    (void)abandon();
    throw;
  }

  // Fast cleaning (section 3.4): frees chunks without live data among the next `max_chunks` in the
  // file. Returns how many words that gained. Throws std::bad_alloc with nothing lost.
  template <class MayGo>
  std::uint64_t sweep(std::uint32_t max_chunks, cleaning_totals& totals, MayGo&& may_clean) try {
    victims_.clear();
    log_.clear();
    entries_.clear();
    for (std::uint32_t i = 0; i < std::min(max_chunks, space_.chunk_count());
         ++i, sweep_hand_ = (sweep_hand_ + 1) % space_.chunk_count()) {
      auto& chunk = space_[sweep_hand_];
      if (chunk.use.load(std::memory_order_acquire) != storage::chunk_state::closed ||
          space_.usage.live(sweep_hand_) != 0 || !may_clean(chunk))
        continue;
      (void)claim(sweep_hand_);
    }
    if (victims_.empty()) return 0;
    // Fast cleaning: nothing maps to a closed chunk later that maps to it no more.
    STELE_ASSERT(std::ranges::all_of(
        victims_, [this](std::uint32_t c) { return space_.usage.live(c) == 0; }));
    empty_victims_ = victims_.size();
    for (const std::uint32_t c : victims_) read_entries(c);
    free_victims(totals);
    return victims_.size() * std::uint64_t{space_.chunk_words()};
  } catch (...) {
    (void)abandon();
    throw;
  }

  std::size_t cache_bytes() const noexcept { return map_cache_.bytes(); }
  Media media;

 private:
  static constexpr format::log_type moved_logs_[] = {format::log_type::moved};
  static constexpr std::size_t max_victims = 64;
  static constexpr std::uint32_t max_joined_piece_words = 4, max_joined_words = 64;

  template <class MayGo>
  void choose_victims(double max_live_share, MayGo&& may_clean) {
    victims_.clear();
    const std::uint32_t payload = space_.chunk_words() - format::chunk_header_words;
    const auto limit = static_cast<std::uint32_t>(max_live_share * payload);
    candidates_.clear();
    for (std::uint32_t c = 0; c < space_.chunk_count(); ++c) {
      const auto& chunk = space_[c];
      if (chunk.use.load(std::memory_order_acquire) != storage::chunk_state::closed ||
          !may_clean(chunk))
        continue;
      if (const std::uint32_t live = space_.usage.live(c); live <= limit)
        candidates_.push_back({live, c});
    }
    const std::size_t count = std::min(candidates_.size(), max_victims);
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count),
                      candidates_.end());
    // What is moved must fit the chunks that are free now, with a block's preamble and the padding
    // of its last line.
    std::uint64_t& room = spare_words_ =
        log_.free_words() + std::uint64_t{std::min(space_.free_chunks(), 4u)} * payload;
    for (std::size_t i = 0; i < count; ++i) {
      const auto [live, c] = candidates_[i];
      const std::uint64_t needs = std::min<std::uint64_t>(payload, std::uint64_t{live} + 16);
      if (live != 0 && needs > room) break;
      if (claim(c) && live != 0) room -= needs;
    }
  }

  // Makes a closed chunk a victim. False: another cleaner was faster.
  bool claim(std::uint32_t c) {
    victims_.push_back(c);  // first: without memory for it the chunk stays closed
    storage::chunk_state closed = storage::chunk_state::closed;
    if (space_[c].use.compare_exchange_strong(closed, storage::chunk_state::cleaning)) return true;
    victims_.pop_back();
    return false;
  }

  // Where staged words come from.
  struct source {
    storage::home_map::mapped_range from;
    bool counted;  // the copy counts as stale
  };
  // An entry found in a victim.
  struct found_entry {
    std::uint64_t home;
    storage::log_address at;
    std::uint64_t version;
    std::uint32_t words;
  };
  void read_entries(std::uint32_t c) {
    chunk_reader reader(space_.file(), space_.offset_of(c), space_.chunk_words());
    while (const auto block = reader.next())
      block->for_each([&](const format::entry_header& e, std::uint64_t at) {
        const auto& h = space_.file().header();
        if (e.offset < h.home_offset || e.offset >= h.offset_end() ||
            std::uint64_t{e.words} * 8 > h.offset_end() - e.offset)
          return;  // damaged, in a pool that was not verified
        entries_.push_back({space_.home_of(e.offset),
                            e.tombstone ? at | storage::tombstone_bit : at,
                            block->preamble().version, e.words});
      });
  }

  // Calls work(i) for i from `first` to `count`, and prefetches what the map has for the home
  // addresses of later entries.
  template <class Home, class Work>
  void for_each_prefetched(std::size_t first, std::size_t count, Home&& home, Work&& work) {
    constexpr std::size_t entry_distance = 24, node_distance = 16, next_distance = 8;
    for (std::size_t i = first; i < count; ++i) {
      if (i + entry_distance < count)
        space_.map.prefetch_cache_entry(home(i + entry_distance), map_cache_);
      if (i + node_distance < count) space_.map.prefetch_node(home(i + node_distance), map_cache_);
      if (i + next_distance < count)
        space_.map.prefetch_next_node(home(i + next_distance), map_cache_);
      work(i);
    }
  }

  // Stages what is live in a chunk; entries_ gets all of its entries. Returns the live words.
  std::uint64_t collect_live(std::uint32_t c) {
    STELE_ASSERT(space_[c].use.load(std::memory_order_relaxed) == storage::chunk_state::cleaning);
    const std::size_t first = entries_.size();
    read_entries(c);
    if (space_.options.fast_cleaning && space_.usage.live(c) == 0) {
      ++empty_victims_;
      return 0;
    }
    std::uint64_t live = 0;
    for_each_prefetched(
        first, entries_.size(), [&](std::size_t i) { return entries_[i].home; },
        [&](std::size_t i) { live += stage(entries_[i]); });
    return live;
  }

  std::uint64_t stage(const found_entry& e) {
    using published::mutant;
    const bool tombstone = !storage::is_data(e.at);
    pieces_.clear();
    space_.map.still_mapped({e.home, e.words, e.at}, pieces_, map_cache_);
    std::uint64_t live = 0;
    for (const storage::home_map::mapped_range& p : pieces_) {
      if (tombstone && planted<Media>(mutant::ls_tombstone_dropped)) continue;
      STELE_ASSERT(p.home >= e.home && p.home + p.words <= e.home + e.words);
      if (was_joined(p)) continue;
      run_.assign(1, p);
      std::uint64_t version = e.version;
      if (tombstone || p.words <= max_joined_piece_words) join_neighbours(tombstone, version);
      live += stage_run(tombstone, version);
    }
    return live;
  }

  // Whether all of a piece is in an entry that a neighbour staged. A commit may have overwritten
  // part of it between still_mapped() and then: the neighbour has taken less, and the rest must
  // move as well.
  bool was_joined(const storage::home_map::mapped_range& p) {
    const auto taken = joined_.extract(p.home);
    return !taken.empty() &&
           (taken.mapped() >= p.words || planted<Media>(published::mutant::ls_joined_in_part));
  }

  // Small ranges next to a moved one move with it, from whatever chunk they are in, as one entry
  // with one head and one range of the map. Freed ranges join freed ranges of any size. What the
  // map has now is the newest of all versions up to mapped_through_, so the joined entry may have
  // any version between its own and mapped_through_.
  void join_neighbours(bool tombstone, std::uint64_t& version) {
    if (!space_.options.join_when_cleaning) return;
    const storage::home_map::mapped_range own = run_.front();
    auto take = [&](std::uint64_t home,
                    bool behind) -> std::optional<storage::home_map::mapped_range> {
      const auto q = space_.map.range_at(home, map_cache_);
      if (q.words == 0 || tombstone == storage::is_data(q.at)) return std::nullopt;
      if (behind ? q.home != home : q.home + q.words != home + 1) return std::nullopt;
      const std::uint32_t copied = tombstone ? 0 : q.words;
      if (copied > max_joined_piece_words || copied > spare_words_) return std::nullopt;
      const std::uint32_t c = space_.usage.chunk_of(q.at);
      const std::uint64_t newest = space_[c].newest.load(std::memory_order_acquire);
      if (newest > mapped_through_ || !count_as_stale(q)) return std::nullopt;
      STELE_ASSERT(newest != 0);  // the chunk has a block, which is mapped
      if (!planted<Media>(published::mutant::ls_joined_as_older))
        version = std::max(version, newest);
      if (space_[c].use.load(std::memory_order_relaxed) == storage::chunk_state::cleaning)
        joined_.insert_or_assign(q.home, q.words);
      else
        pulled_in_words_ += copied + 1;
      spare_words_ -= copied;
      return q;
    };
    std::uint64_t first = run_.front().home, end = first + run_.front().words;
    const std::uint64_t longest = tombstone ? format::region_words : max_joined_words;
    while (end % format::region_words != 0 && end - first < longest) {
      const auto q = take(end, true);
      if (!q) break;
      run_.push_back(*q);
      end += q->words;
    }
    while (first % format::region_words != 0 && end - first < longest) {
      const auto q = take(first - 1, false);
      if (!q) break;
      run_.insert(run_.begin(), *q);
      first = q->home;
    }
    STELE_ASSERT_WHOLE(run_is_one_range(tombstone));
    if (run_.size() == 1 || tombstone) return;
    counted_.push_back(own);
    space_.map.add_stale(own.home, own.words);  // stale, like its neighbours
  }

  // Whether the pieces of run_ follow each other, in one region and all of one kind. Only for
  // assertions.
  [[maybe_unused]] bool run_is_one_range(bool tombstone) const noexcept {
    std::uint64_t next = run_.front().home;
    for (const storage::home_map::mapped_range& p : run_) {
      if (p.home != next || p.words == 0 || storage::is_data(p.at) == tombstone) return false;
      next += p.words;
    }
    return run_.front().home / format::region_words == (next - 1) / format::region_words;
  }
  // A copy counts as stale until it is mapped. So a tombstone that hides it stays, even if another
  // cleaner empties the chunk of the original. False: the range has changed meanwhile.
  bool count_as_stale(const storage::home_map::mapped_range& q) {
    if (!storage::is_data(q.at)) return true;
    counted_.push_back(q);  // first: without memory for it nothing is counted
    space_.map.add_stale(q.home, q.words);
    const auto now = space_.map.range_at(q.home, map_cache_);
    if (now.home == q.home && now.words == q.words && now.at == q.at) return true;
    space_.map.remove_stale(map_writer_, q.home, q.words);
    counted_.pop_back();
    return false;
  }

  // Stages run_ as one entry. Returns how many words it takes.
  std::uint64_t stage_run(bool tombstone, std::uint64_t version) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(space_.file().base());
    typename chunk_log<Media>::entry staged{
        .home = run_.front().home,
        .words = 0,
        .from = log_.words_appended(),
        .tombstone = tombstone,
        .version = version,
        .source_index = static_cast<std::uint32_t>(sources_.size())};
    base::reserve_more(sources_, run_.size());
    for (const storage::home_map::mapped_range& p : run_) {
      if (!tombstone) log_.append_words(words + p.at, p.words);
      staged.words += p.words;
    }
    STELE_ASSERT(staged.version != 0 && staged.words <= format::region_words);
    STELE_ASSERT(counted_.size() == (run_.size() > 1 && !tombstone ? run_.size() : 0));
    for (const storage::home_map::mapped_range& p : run_)
      sources_.push_back({p, run_.size() > 1 && !tombstone});
    counted_.clear();  // sources_ has them
    log_.staged.push_back(staged);
    return 1 + (tombstone ? 0 : staged.words);
  }

  // Copies are durable before the map points to them and before the originals are freed.
  bool move_live() {
    using published::mutant;
    if (!log_.empty()) {
      if (!log_.reserve(0)) return false;
      if (!space_.map.reserve_moves(map_writer_, log_.fragments().size() + sources_.size())) {
        log_.release_chunks();
        return false;
      }
      // Reserved now: once the map has the first copy, the step cannot be undone.
      pieces_.reserve(sources_.size());
      STELE_ASSERT(sources_.size() >= log_.staged.size());
      log_.write(media, 0);
      media.fence();  // C3
      if (media.failed()) return false;
      const auto pieces = log_.fragments();
      const std::size_t count = pieces.size() - (planted<Media>(mutant::ls_stale_mapping) ? 1 : 0);
      for_each_prefetched(
          0, count, [&](std::size_t i) { return pieces[i].home; },
          [&](std::size_t i) { remap(pieces[i]); });  // C4
      log_.store_chunk_ends(media);
      log_.advance_tails();
    }
    return true;
  }

  void remap(const typename chunk_log<Media>::entry& e) {
    pieces_.clear();  // where this entry, or the part of it that fitted a chunk, comes from
    for (std::size_t i = e.source_index;
         pieces_.empty() || pieces_.back().home + pieces_.back().words < e.home + e.words; ++i) {
      STELE_ASSERT(i < sources_.size() && pieces_.size() < pieces_.capacity());
      const storage::home_map::mapped_range& p = sources_[i].from;
      const std::uint64_t from = std::max(p.home, e.home),
                          to = std::min(p.home + p.words, e.home + e.words);
      if (from < to)
        pieces_.push_back(
            {from, static_cast<std::uint32_t>(to - from), storage::advanced(p.at, from - p.home)});
    }
    // log_structured.md, C4: the pieces are all of the entry.
    STELE_ASSERT(pieces_.front().home == e.home &&
                 pieces_.back().home + pieces_.back().words == e.home + e.words);
    const std::uint32_t moved = space_.map.move(map_writer_, pieces_, e.at, map_cache_);
    STELE_ASSERT(moved <= e.words);
    if (sources_[e.source_index].counted)
      // Words overwritten meanwhile stay stale: their copies are not used.
      space_.map.remove_stale(map_writer_, e.home, moved);
    else if (!e.tombstone && moved < e.words)
      space_.map.add_stale(e.home, e.words - moved);
  }

  // Whether the map still points into a victim. So it does when one of its blocks is damaged, which
  // is not noticed where a pool is opened without verifying it: the entries behind that block were
  // not found. It also may for a moment while a commit overwrites the last of them. A mutant that
  // leaves words mapped is found by what is lost.
  bool is_still_mapped(std::uint32_t c) const noexcept {
    return !base::holds(space_.usage.live(c) == 0);
  }
  // Such a victim is closed again, and all that it holds counts as before.
  void keep_mapped_victims() noexcept {
    const auto kept =
        std::ranges::partition(victims_, [this](std::uint32_t c) { return !is_still_mapped(c); });
    for (const std::uint32_t c : kept) {
      std::erase_if(entries_,
                    [&](const found_entry& e) { return space_.usage.chunk_of(e.at) == c; });
      space_[c].use.store(storage::chunk_state::closed, std::memory_order_release);
    }
    victims_.erase(kept.begin(), kept.end());
  }

  void free_victims(cleaning_totals& totals) {
    keep_mapped_victims();
    STELE_ASSERT(empty_victims_ <= victims_.size());
    for (const std::uint32_t c : victims_) {
      const std::uint64_t zero = 0;
      std::byte* const header = space_.file().base() + space_.offset_of(c);
      for (const std::size_t word : format::zeroed_when_freed) media.store(header + word, &zero, 8);
      media.flush(header, sizeof(format::chunk_header));
      unlink(c);
    }
    media.fence();  // C5: what victims held is gone before a tombstone that hid it
    uncount_stale();
    for (const std::uint32_t c : victims_) space_.retire_chunk(c);  // C6
    totals.chunks.fetch_add(victims_.size(), std::memory_order_relaxed);
    totals.fast_chunks.fetch_add(empty_victims_, std::memory_order_relaxed);
  }

  void uncount_stale() {
    for (const found_entry& e : entries_) {
      if (!storage::is_data(e.at)) continue;
      for (std::uint32_t done = 0; done < e.words;) {
        const std::uint32_t take = std::min<std::uint32_t>(
            e.words - done, format::region_words - (e.home + done) % format::region_words);
        space_.map.remove_stale(map_writer_, e.home + done, take);
        done += take;
      }
    }
  }

  // Links the neighbours of a freed chunk in its log to each other.
  void unlink(std::uint32_t c) {
    const std::lock_guard hold(space_.links_mutex);
    const auto& chunk = space_[c];
    if (chunk.previous != log_space::none) {
      STELE_ASSERT(media.failed() || space_[chunk.previous].next == c);
      space_[chunk.previous].next = chunk.next;
      write_link(chunk.previous, offsetof(format::chunk_header, next), chunk.next);
    }
    if (chunk.next != log_space::none) {
      STELE_ASSERT(media.failed() || space_[chunk.next].previous == c);
      space_[chunk.next].previous = chunk.previous;
      write_link(chunk.next, offsetof(format::chunk_header, previous), chunk.previous);
    }
  }
  void write_link(std::uint32_t c, std::size_t at, std::uint32_t to) {
    const std::uint64_t offset = space_.offset_of(c) + at;
    const std::uint64_t word =
        format::guard(to == log_space::none ? 0 : to + 1, space_.file().header().id, offset);
    media.store(space_.file().base() + offset, &word, 8);
    media.flush(space_.file().base() + offset, 8);
  }

  std::uint64_t abandon() {
    space_.epochs.unpin(reader_);
    for (const source& s : std::exchange(sources_, {}))
      if (s.counted) space_.map.remove_stale(map_writer_, s.from.home, s.from.words);
    for (const auto& p : std::exchange(counted_, {}))
      space_.map.remove_stale(map_writer_, p.home, p.words);
    for (const std::uint32_t c : victims_) {
      STELE_ASSERT(space_[c].use.load(std::memory_order_relaxed) == storage::chunk_state::cleaning);
      space_[c].use.store(storage::chunk_state::closed, std::memory_order_release);
    }
    return 0;
  }

  log_space& space_;
  unsigned reader_;
  chunk_log<Media> log_;
  storage::home_map::writer map_writer_;
  storage::home_map::cache map_cache_;
  std::vector<std::uint32_t> victims_;
  std::uint64_t empty_victims_ = 0;  // victims without live data
  std::uint32_t sweep_hand_ = 0;     // the chunk that sweep() looks at next
  std::vector<std::pair<std::uint32_t, std::uint32_t>> candidates_;  // live words, chunk
  std::vector<found_entry> entries_;                                 // of the victims
  std::vector<storage::home_map::mapped_range> pieces_, run_;
  // Sources of what is staged, in order; those of an entry begin at its source_index.
  std::vector<source> sources_;
  // Ranges of the entry that is being staged that count as stale, and are not in sources_ yet.
  std::vector<storage::home_map::mapped_range> counted_;
  // Ranges of victims that were joined to a neighbour: first word, words.
  std::unordered_map<std::uint64_t, std::uint32_t> joined_;
  std::uint64_t mapped_through_ = 0;
  // Words, with heads, of joined neighbours in chunks that are not victims.
  std::uint64_t pulled_in_words_ = 0;
  // Words that the free chunks have room for, besides what the victims need.
  std::uint64_t spare_words_ = 0;
};

}  // namespace stele::detail
