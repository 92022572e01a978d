// The tails of one lane's logs in a log-structured pool: entries are staged, laid out in blocks and
// written; then their log addresses are known.
//
// stage -> reserve (takes chunks; if it fails, nothing has changed) -> write (cannot fail) ->
// fence, by the caller -> advance_tails. An entry that does not fit the rest of a chunk is split.
// The blocks of one transaction form a ring of peer pointers. Source: Hu, Ren, Badam, Shu and
// Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017), section 4.2.
#pragma once

#include <base/assert.h>
#include <base/reserve.h>
#include <format/log_chunk.h>
#include <published/log_structured/log_space.h>
#include <published/mutant.h>

#include <array>
#include <vector>

namespace stele::detail {

template <class Media>
class chunk_log {
 public:
  using log_space = storage::log_space;
  // A range of home words. Its data is among the appended words until it is laid out.
  struct entry {
    std::uint64_t home;  // words from home's start
    std::uint32_t words;
    std::uint32_t from;  // index of its first word among the appended ones
    std::uint8_t log = 0;
    bool tombstone = false;
    std::uint64_t version = 0;       // moved entries: of the block they come from
    std::uint32_t source_index = 0;  // set by the caller; its fragments keep it
    storage::log_address at = 0;     // once laid out
  };

  chunk_log(log_space& space, std::uint32_t lane, std::span<const format::log_type> logs)
      : space_(space), lane_(lane) {
    STELE_ASSERT_ALWAYS(!logs.empty() && logs.size() <= 3 && lane < space.lanes());
    for (const format::log_type type : logs) tails_.push_back({.type = type});
  }

  std::vector<entry> staged;

  void clear() {
    payload_size_ = 0;
    staged.clear();
  }
  // Appends words of the entry that is staged next or was staged last. Returns where they are until
  // the next words come.
  std::uint64_t* append_words(const std::uint64_t* words, std::uint32_t count) {
    if (payload_.size() - payload_size_ < count) [[unlikely]]
      payload_.resize(2 * (std::size_t{payload_size_} + count));
    std::uint64_t* const to = payload_.data() + payload_size_;
    std::copy_n(words, count, to);
    payload_size_ += count;
    return to;
  }
  std::uint32_t words_appended() const noexcept { return payload_size_; }
  bool empty() const noexcept { return staged.empty(); }
  // What was staged, split as it was laid out, with its log addresses.
  std::span<const entry> fragments() const noexcept { return fragments_; }
  bool has_new_chunks() const noexcept { return !taken_.empty(); }

  // Finds a place for everything staged. False: that would leave fewer than `min_free` chunks free;
  // nothing is taken then.
  bool reserve(std::uint32_t min_free) try {
    release_chunks();  // those of an attempt that was never written
    fragments_.clear();
    blocks_.clear();
    const auto logs = static_cast<std::uint8_t>(tails_.size());  // at most three
    for (std::uint8_t log = 0; log < logs; ++log) {
      tails_[log].next_chunk = tails_[log].chunk;
      tails_[log].next_used = tails_[log].used;
      if (reserve_in_log(log, min_free)) continue;
      release_chunks();
      return false;
    }
    for (const block& b : blocks_)  // write() allocates no memory
      if (buffer_.size() < format::padded_block_words(b.words))
        buffer_.resize(format::padded_block_words(b.words));
    STELE_ASSERT_WHOLE(lays_out_all());
    return true;
  } catch (...) {
    release_chunks();
    throw;
  }
  void release_chunks() noexcept {
    for (const taken_chunk& t : taken_) space_.release_chunk(t.chunk);
    taken_.clear();
  }

  // Writes what was laid out; durable after the medium's next fence. Version 0: each block gets the
  // highest version of its entries.
  void write(Media& media, std::uint64_t version) {
    // Only cleaning writes blocks of several transactions, to a log of its own.
    STELE_ASSERT(version != 0 || (tails_.size() == 1 && tails_[0].type == format::log_type::moved));
    for (const taken_chunk& t : taken_) open_chunk(media, t, version);
    if (!taken_.empty())
      // Headers are durable before blocks: otherwise a block that a crash left could become valid
      // under the chunk's next header.
      media.fence();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const block& next = blocks_[version != 0 ? (i + 1) % blocks_.size() : i];
      write_block(media, blocks_[i], version, space_.offset_of(next.chunk) + 8 * next.at,
                  i + 1 == blocks_.size());
    }
  }

  // Counts what was laid out as live, before the map points to it.
  void count_as_live() noexcept {
    for (const block& b : blocks_)
      space_.usage.add_live(space_.log_address_of(b.chunk, b.at), b.words - format::preamble_words);
  }

  // The map points to what was written: full chunks may be cleaned from now on.
  void advance_tails() noexcept {
    for (log_tail& e : tails_) {
      if (e.chunk != e.next_chunk && e.chunk != log_space::none)
        space_[e.chunk].use.store(storage::chunk_state::closed, std::memory_order_release);
      STELE_ASSERT(e.next_chunk == log_space::none || (e.next_used >= format::chunk_header_words &&
                                                       e.next_used <= space_.chunk_words()));
      e.chunk = e.next_chunk;
      e.used = e.next_used;
    }
    for (const taken_chunk& t : taken_)
      if (tails_[t.log].chunk != t.chunk)
        space_[t.chunk].use.store(storage::chunk_state::closed, std::memory_order_release);
    taken_.clear();
  }
  // Stores in the chunks' headers how far the blocks go that were written and are durable. Durable
  // with the medium's next fence.
  void store_chunk_ends(Media& media) {
    STELE_ASSERT(!blocks_.empty());
    for (const block& b : blocks_) store_end_of(media, b);
  }
  // The same for chunks that are full now; before advance_tails(), which lets them be cleaned.
  void store_full_ends(Media& media) {
    for (const block& b : blocks_)
      if (std::ranges::none_of(tails_, [&](const log_tail& e) { return e.next_chunk == b.chunk; }))
        store_end_of(media, b);
  }
  // The same for the chunks that the logs are in.
  void store_tail_ends(Media& media) {
    for (const log_tail& e : tails_) {
      if (e.chunk == log_space::none) continue;
      store_end(media, e.chunk, e.used);
      flush_header(media, e.chunk);
    }
  }
  // Words that still fit the chunk, for a lane with a single log.
  std::uint32_t free_words() const noexcept {
    return tails_[0].chunk == log_space::none ? 0 : space_.chunk_words() - tails_[0].used;
  }

 private:
  struct log_tail {
    format::log_type type;
    std::uint32_t chunk = log_space::none, used = 0;
    std::uint32_t next_chunk = log_space::none, next_used = 0;
  };
  struct block {
    std::uint32_t chunk, at, words;
    std::uint32_t first, entries;  // range of fragments_
  };
  struct taken_chunk {
    std::uint32_t chunk, previous;
    std::uint32_t end_of_previous;  // before this transaction; 0: this transaction took it too
    std::uint8_t log;
  };

  // Whether the fragments have all that is staged, each word once. Only for assertions.
  [[maybe_unused]] bool lays_out_all() const noexcept {
    std::uint64_t wanted = 0, placed = 0;
    for (const entry& s : staged) wanted += s.words;
    for (const entry& f : fragments_) placed += f.words;
    return wanted == placed;
  }
  bool reserve_in_log(std::uint8_t log, std::uint32_t min_free) {
    log_tail& e = tails_[log];
    block* open = nullptr;
    auto close = [&] {
      e.next_used = open->at + format::padded_block_words(open->words);
      open = nullptr;
    };
    for (const entry& s : staged) {
      STELE_ASSERT(s.words != 0 && s.log < tails_.size());
      if (s.log != log) continue;
      // log-structured.md: a tombstone lies within one region; data has its words here.
      STELE_ASSERT(!s.tombstone || s.home % format::region_words + s.words <= format::region_words);
      STELE_ASSERT(s.tombstone || s.from + s.words <= payload_size_);
      const std::uint32_t least = s.tombstone ? 1 : 2;
      for (std::uint32_t done = 0; done < s.words;) {
        if (open == nullptr) {
          if ((e.next_chunk == log_space::none ||
               space_.chunk_words() - e.next_used < format::preamble_words + least) &&
              !take_chunk(log, min_free))
            return false;
          open = &blocks_.emplace_back(block{e.next_chunk, e.next_used, format::preamble_words,
                                             static_cast<std::uint32_t>(fragments_.size()), 0});
        }
        const std::uint32_t room = space_.chunk_words() - open->at - open->words;
        if (room < least || open->entries == format::max_block_entries) {
          close();
          continue;
        }
        const std::uint32_t take = s.tombstone ? s.words : std::min(s.words - done, room - 1);
        entry& fragment = fragments_.emplace_back(s);
        fragment.home += done, fragment.from += done, fragment.words = take;
        fragment.at =
            space_.log_address_of(open->chunk, open->at + open->words + (s.tombstone ? 0 : 1)) |
            (s.tombstone ? storage::tombstone_bit : 0);
        STELE_ASSERT(take != 0 && take <= format::max_entry_words);
        open->words += 1 + (s.tombstone ? 0 : take);
        STELE_ASSERT(open->at + open->words <= space_.chunk_words());
        ++open->entries;
        done += take;
      }
    }
    if (open != nullptr) close();
    return true;
  }

  bool take_chunk(std::uint8_t log, std::uint32_t min_free) {
    base::reserve_more(taken_, 1);
    const auto c = space_.allocate_chunk(min_free);
    if (!c) return false;
    const log_tail& e = tails_[log];
    STELE_ASSERT(*c != e.next_chunk && *c != e.chunk);
    taken_.push_back({*c, e.next_chunk, e.next_chunk == e.chunk ? e.used : 0, log});
    tails_[log].next_chunk = *c;
    tails_[log].next_used = format::chunk_header_words;
    return true;
  }

  // Writes a taken chunk's header and links the chunk to the one before it.
  void open_chunk(Media& media, const taken_chunk& t, std::uint64_t version) {
    const auto& file = space_.file();
    auto& chunk = space_[t.chunk];
    // log_structured.md, 0: the chunk is this lane's alone, and its header comes before its blocks.
    STELE_ASSERT(chunk.use.load(std::memory_order_relaxed) == storage::chunk_state::open);
    const std::uint64_t offset = space_.offset_of(t.chunk), id = file.header().id;
    chunk.type = tails_[t.log].type;
    chunk.lane = lane_;
    chunk.previous = t.previous;
    chunk.next = log_space::none;
    chunk.newest.store(0, std::memory_order_relaxed);
    format::chunk_header h =
        format::chunk_header_of(++chunk.generation, chunk.type, lane_, id, offset);
    h.previous = format::guard(t.previous == log_space::none ? 0 : t.previous + 1, id,
                               offset + offsetof(format::chunk_header, previous));
    h.first = format::guard(version, id, offset + offsetof(format::chunk_header, first));
    media.store(file.base() + offset, &h, sizeof h);
    media.flush(file.base() + offset, sizeof h);
    if (t.previous == log_space::none) return;
    STELE_ASSERT(t.previous != t.chunk && space_[t.previous].lane == lane_);
    const std::lock_guard hold(space_.links_mutex);
    space_[t.previous].next = t.chunk;
    const std::uint64_t link = space_.offset_of(t.previous) + offsetof(format::chunk_header, next);
    const std::uint64_t word = format::guard(t.chunk + 1, id, link);
    media.store(file.base() + link, &word, 8);
    store_end(media, t.previous, t.end_of_previous);
    media.flush(file.base() + link, 8);  // `next` and `end` share a line
  }
  void store_end_of(Media& media, const block& b) {
    store_end(media, b.chunk, b.at + format::padded_block_words(b.words));
    flush_header(media, b.chunk);
  }
  void flush_header(Media& media, std::uint32_t chunk) {
    media.flush(space_.file().base() + space_.offset_of(chunk), sizeof(format::chunk_header));
  }
  void store_end(Media& media, std::uint32_t chunk, std::uint32_t words) {
    STELE_ASSERT(words <= space_.chunk_words());
    const std::uint64_t at = space_.offset_of(chunk) + offsetof(format::chunk_header, end);
    const std::uint64_t word = format::guard(words, space_.file().header().id, at);
    media.store(space_.file().base() + at, &word, 8);
  }

  void write_block(Media& media, const block& b, std::uint64_t version, std::uint64_t peer,
                   bool last) {
    using published::mutant;
    const std::size_t room = format::padded_block_words(b.words);
    std::uint64_t highest = version, *to_fill = buffer_.data() + format::preamble_words;
    for (std::uint32_t i = b.first; i < b.first + b.entries; ++i) {
      const entry& e = fragments_[i];
      *to_fill++ = format::entry_header{space_.offset_of_home(e.home), e.tombstone, e.words}.pack();
      if (!e.tombstone) to_fill = std::copy_n(payload_.data() + e.from, e.words, to_fill);
      highest = std::max(highest, e.version);
    }
    STELE_ASSERT(to_fill == buffer_.data() + b.words);  // the block is as long as its preamble says
    std::fill(to_fill, buffer_.data() + room, 0);
    // Version 0 is no block; blocks begin on lines.
    STELE_ASSERT(highest != 0 && b.at % 8 == 0 && b.at >= format::chunk_header_words);
    STELE_ASSERT(b.entries <= format::max_block_entries && b.at + room <= space_.chunk_words());
    const std::uint64_t offset = space_.offset_of(b.chunk) + 8 * b.at;
    if (last && planted<Media>(mutant::ls_ring_broken)) peer = offset;
    buffer_[0] = highest;
    buffer_[1] = format::block_preamble::pack_link(peer, b.entries);
    buffer_[2] = std::uint64_t{b.words} << 32;
    const std::uint64_t generation =
        planted<Media>(mutant::ls_crc_unseeded) ? 0 : space_[b.chunk].generation;
    buffer_[2] |=
        format::block_crc(format::block_crc_seed(space_.file().header().id, offset, generation),
                          std::span(buffer_).first(b.words));
    std::byte* const to = space_.file().base() + offset;
    if (planted<Media>(mutant::ls_preamble_first)) {
      media.stream(to, buffer_.data(), 64);
      media.fence();
    }
    // Stored and flushed, not streamed: readers will want it, and find it in the caches (decision
    // 11).
    media.store(to, buffer_.data(), room * 8);
    if (!planted<Media>(mutant::ls_preamble_first)) media.flush(to, room * 8);
    auto& newest = space_[b.chunk].newest;
    newest.store(std::max(newest.load(std::memory_order_relaxed), highest),
                 std::memory_order_release);
  }

  log_space& space_;
  std::uint32_t lane_;
  std::vector<log_tail> tails_;
  std::vector<std::uint64_t> payload_;
  std::uint32_t payload_size_ = 0;
  std::vector<entry> fragments_;
  std::vector<block> blocks_;
  std::vector<taken_chunk> taken_;
  std::vector<std::uint64_t> buffer_;
};

}  // namespace stele::detail
