// Rebuilding (scan, shuffle, sort, insert), the saved mapping, and verification of the log.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <published/log_structured/chunk_reader.h>
#include <published/log_structured/rebuild.h>
#include <published/mutant.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <system_error>
#include <thread>

namespace stele::detail {

using format::log_type;
using format::region_words;
using published::mutant;
using storage::home_map;
using storage::log_space;

namespace {

// The part of an entry that lies in one region.
struct found_entry {
  std::uint64_t home;
  std::uint64_t version;
  storage::log_address at;
  std::uint32_t words;
};

struct lane_tail {
  std::uint64_t version = 0;
  std::map<std::uint64_t, std::uint64_t> blocks;  // of that version: offset, peer
};

// A chunk in use without blocks, and the version that its header names for the first one.
struct blockless_chunk {
  std::uint32_t chunk, lane;
  std::uint64_t first;
};

// What one thread found.
struct scan_result {
  std::vector<std::vector<found_entry>> parts;
  std::map<std::uint32_t, lane_tail> ends;
  std::vector<blockless_chunk> blockless;
  std::vector<std::uint32_t> torn_headers;  // chunks whose header a crash has torn
  std::uint64_t newest = 0;
  std::string problem;
};

bool in_home(const format::pool_header& h, const format::entry_header& e) noexcept {
  return e.offset >= h.home_offset && e.offset < h.offset_end() && e.offset % 8 == 0 &&
         std::uint64_t{e.words} * 8 <= h.offset_end() - e.offset;
}

// Runs a part in a thread of its own, or in this one if no thread is available.
template <class Part>
void start_or_run(std::vector<std::jthread>& workers, const Part& part, unsigned t) {
  try {
    workers.emplace_back([&part, t] { part(t); });
  } catch (const std::system_error&) {
    part(t);
  }
}

// Rethrows what a part threw, when all parts have ended.
template <class Work>
void run_parallel(unsigned threads, Work&& work) {
  if (threads <= 1) return work(0u);
  std::vector<std::exception_ptr> thrown(threads);
  const auto part = [&](unsigned t) noexcept {
    try {
      work(t);
    } catch (...) {
      thrown[t] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    for (unsigned t = 0; t < threads; ++t) start_or_run(workers, part, t);
  }
  for (const std::exception_ptr& e : thrown)
    if (e) std::rethrow_exception(e);
}

class rebuilder {
 public:
  rebuilder(log_space& space, std::uint64_t committed_through, unsigned threads)
      : space_(space),
        committed_through_(committed_through),
        threads_(threads),
        parts_(std::clamp<std::uint64_t>(space.file().header().size >> 20, 1, 1024)) {}

  result<rebuilt> run() {
    std::vector<scan_result> found(threads_);
    run_parallel(threads_, [&](unsigned t) {
      found[t].parts.resize(parts_);
      for (std::uint32_t c = t; c < space_.chunk_count(); c += threads_) scan(c, found[t]);
    });
    rebuilt r;
    STELE_ASSERT_ALWAYS(found.size() == threads_ && found.front().parts.size() == parts_);
    for (const scan_result& f : found) {
      if (!f.problem.empty()) return base::fail(errc::corrupt, f.problem);
      r.newest = std::max(r.newest, f.newest);
    }
    for (std::uint32_t c = 0; c < space_.chunk_count(); ++c) link(c);
    std::set<std::uint64_t> uncommitted;
    const auto ends = merge_lane_tails(found);
    for (const scan_result& f : found)
      for (const blockless_chunk& l : f.blockless) check_blockless(l, ends);
    for (const scan_result& f : found)
      for (const std::uint32_t c : f.torn_headers)
        for (const std::size_t word :
             {offsetof(format::chunk_header, end), offsetof(format::chunk_header, first)})
          r.words_to_zero.push_back(space_.offset_of(c) + word);
    for (const auto& [lane, end] : ends) {
      if (ring_is_complete(end)) continue;
      uncommitted.insert(end.version);
      for (const auto& [offset, peer] : end.blocks) r.words_to_zero.push_back(offset);
    }
    run_parallel(threads_, [&](unsigned t) {
      home_map::writer w;
      for (std::uint64_t part = t; part < parts_; part += threads_)
        insert(w, found, part, uncommitted);
    });
    return r;
  }

 private:
  // Hashed, so that the parts are equal even if only the lower regions are in use.
  std::uint64_t part_of(std::uint64_t home) const noexcept {
    return base::mix(home / region_words) % parts_;
  }

  void scan(std::uint32_t c, scan_result& into) {
    auto& chunk = space_[c];
    chunk_reader reader(space_.file(), space_.offset_of(c), space_.chunk_words());
    chunk.generation = reader.header().generation;
    const log_type type = reader.header().type();
    if (!reader.in_use() && (reader.header().end != 0 || reader.header().first != 0))
      into.torn_headers.push_back(c);
    if (!reader.in_use() || type == log_type::none || type >= log_type::mapping) return;
    bool any = false;
    while (const auto block = reader.next()) {
      any = true;
      const std::uint64_t version = block->preamble().version;
      if (version >= format::txid_limit)
        into.problem = fmt::format(
            "{}: the block at offset {} has a TxID that no program draws; restore the pool from a "
            "copy",
            space_.file().path(), block->offset);
      into.newest = std::max(into.newest, version);
      chunk.newest.store(std::max(chunk.newest.load(std::memory_order_relaxed), version),
                         std::memory_order_relaxed);
      if (type != log_type::moved && version > committed_through_)
        add_tail_block(into.ends[reader.header().lane()], *block);
      partition_entries(*block, into);
    }
    if (!any) return add_blockless(c, reader, into);
    chunk.type = type;
    chunk.lane = reader.header().lane();
    chunk.use.store(storage::chunk_state::closed, std::memory_order_relaxed);
  }

  // The clock passes the version of the missing block, so that no later transaction draws it and
  // what a crash left of a chunk is not judged twice.
  void add_blockless(std::uint32_t c, const chunk_reader& reader, scan_result& into) const {
    const std::uint64_t first = reader.first_version().value_or(0);
    if (first <= committed_through_ || first >= format::txid_limit) return;
    into.newest = std::max(into.newest, first);
    into.blockless.push_back({c, reader.header().lane(), first});
  }
  // The missing block's transaction committed if a later one of its lane has left a block. Then the
  // block was there, and the chunk is damaged. Otherwise a crash came before the block.
  void check_blockless(const blockless_chunk& l, const std::map<std::uint32_t, lane_tail>& ends) {
    const auto lane = ends.find(l.lane);
    if (lane != ends.end() && lane->second.version > l.first) space_.damaged.push_back(l.chunk);
  }

  static void add_tail_block(lane_tail& end, const chunk_block& b) {
    const auto& preamble = b.preamble();
    if (preamble.version < end.version) return;
    if (preamble.version > end.version) end.blocks.clear();
    end.version = preamble.version;
    end.blocks[b.offset] = preamble.peer();
  }

  void partition_entries(const chunk_block& b, scan_result& into) {
    const auto& h = space_.file().header();
    b.for_each([&](const format::entry_header& e, std::uint64_t at) {
      if (!in_home(h, e) || e.words == 0) {
        into.problem = fmt::format(
            "{}: the block at offset {} names home offset {}, which is not there; restore the pool "
            "from a copy",
            space_.file().path(), b.offset, e.offset);
        return;
      }
      const std::uint64_t home = space_.home_of(e.offset);
      for (std::uint32_t done = 0; done < e.words;) {
        const std::uint32_t take =
            std::min<std::uint32_t>(e.words - done, region_words - (home + done) % region_words);
        const storage::log_address at_part = e.tombstone ? at | storage::tombstone_bit : at + done;
        STELE_ASSERT(take != 0 &&
                     (home + done) / region_words == (home + done + take - 1) / region_words);
        into.parts[part_of(home + done)].push_back(
            {home + done, b.preamble().version, at_part, take});
        done += take;
      }
    });
  }

  // Links a chunk to the one before it in its log, if that one is in use, of the same lane and
  // type, and not linked yet.
  void link(std::uint32_t c) {
    auto& chunk = space_[c];
    if (chunk.use.load(std::memory_order_relaxed) != storage::chunk_state::closed) return;
    const chunk_reader reader(space_.file(), space_.offset_of(c), space_.chunk_words());
    const auto previous = reader.neighbour(offsetof(format::chunk_header, previous));
    if (!previous || *previous >= space_.chunk_count() || *previous == c) return;
    auto& before = space_[*previous];
    if (before.use.load(std::memory_order_relaxed) != storage::chunk_state::closed ||
        before.lane != chunk.lane || before.type != chunk.type || before.next != log_space::none)
      return;
    chunk.previous = *previous;
    before.next = c;
  }

  static std::map<std::uint32_t, lane_tail> merge_lane_tails(std::vector<scan_result>& found) {
    std::map<std::uint32_t, lane_tail> all;
    for (scan_result& f : found)
      for (auto& [lane, end] : f.ends) {
        lane_tail& e = all[lane];
        if (end.version > e.version)
          e = std::move(end);
        else if (end.version == e.version)
          e.blocks.merge(end.blocks);
      }
    return all;
  }

  // The newest transaction of a lane has committed if its blocks close the ring. Every older one
  // has committed.
  static bool ring_is_complete(const lane_tail& end) {
    if (planted(mutant::ls_ring_ignored)) return true;
    STELE_ASSERT_ALWAYS(!end.blocks.empty() && end.version != 0);
    std::size_t seen = 0;
    auto at = end.blocks.begin();
    const std::uint64_t first = at->first;
    do {
      ++seen;
      at = end.blocks.find(at->second);
    } while (at != end.blocks.end() && at->first != first && seen <= end.blocks.size());
    return at != end.blocks.end() && seen == end.blocks.size();
  }

  void insert(home_map::writer& w, std::vector<scan_result>& found, std::uint64_t part,
              const std::set<std::uint64_t>& uncommitted) {
    std::vector<found_entry> all;
    for (scan_result& f : found) {
      for (const found_entry& e : f.parts[part])
        if (uncommitted.empty() || !uncommitted.contains(e.version)) all.push_back(e);
      std::vector<found_entry>().swap(f.parts[part]);
    }
    // By region, in a region the newest first. Of one transaction a tombstone counts more than
    // data: it freed what it had allocated.
    auto before = [](const found_entry& a, const found_entry& b) {
      if (a.home / region_words != b.home / region_words) return a.home < b.home;
      if (a.version != b.version) return a.version > b.version;
      return a.at > b.at;
    };
    if (planted(mutant::ls_version_ignored))
      std::ranges::stable_sort(all, {}, [](const found_entry& e) { return e.home / region_words; });
    else
      std::ranges::sort(all, before);
    for (auto begin = all.begin(); begin != all.end();) {
      const std::uint64_t region = begin->home / region_words;
      const auto end = std::find_if(
          begin, all.end(), [&](const found_entry& e) { return e.home / region_words != region; });
      insert_region(w, region, std::span(begin, end));
      begin = end;
    }
  }

  void insert_region(home_map::writer& w, std::uint64_t region,
                     std::span<const found_entry> newest_first) {
    std::array<storage::log_address, region_words> places{};
    std::uint64_t on_media = 0, mapped = 0;
    for (const found_entry& e : newest_first) {
      // R1 has dealt the entries out by region.
      STELE_ASSERT(e.home / region_words == region &&
                   e.home % region_words + e.words <= region_words);
      if (storage::is_data(e.at)) on_media += e.words;
      if (!storage::is_data(e.at) && planted(mutant::ls_tombstone_ignored)) continue;
      for (std::uint32_t i = 0; i < e.words; ++i)
        if (auto& p = places[e.home % region_words + i]; p == 0)
          p = storage::advanced(e.at, i), mapped += storage::is_data(p) ? 1 : 0;
    }
    // R4: a word that is mapped is one that media has.
    STELE_ASSERT_ALWAYS(mapped <= on_media && mapped <= region_words);
    const bool no_stale_words = on_media == mapped;
    for (std::uint32_t from = 0, to; from < region_words; from = to) {
      for (to = from + 1;
           to < region_words && places[to] == storage::advanced(places[from], to - from);)
        ++to;
      if (places[from] == 0 || (no_stale_words && !storage::is_data(places[from]))) continue;
      base::check(space_.map.reserve(w, 1), "the map has no room for what is in the log");
      space_.usage.add_live(places[from], storage::live_words_of(places[from], to - from));
      space_.map.map(w, {region * region_words + from, to - from, places[from]});
    }
    space_.map.add_stale(region * region_words, static_cast<std::uint32_t>(on_media - mapped));
  }

  log_space& space_;
  const std::uint64_t committed_through_;
  const unsigned threads_;
  const std::uint64_t parts_;
};

}  // namespace

result<rebuilt> rebuild(log_space& space, std::uint64_t committed_through, unsigned threads) {
  auto r = rebuilder(space, committed_through, threads).run();
  if (r) space.remove_used();
  STELE_ASSERT_ALWAYS(!r || space.free_chunks() <= space.chunk_count());
  return r;
}

std::vector<std::uint64_t> encode_mapping(const log_space& space) {
  std::vector<std::uint64_t> pairs;
  space.map.for_each([&](const home_map::mapped_range& p) {
    // load_pair() takes no other: each range lies in one region, and where a chunk is.
    STELE_ASSERT_ALWAYS(p.words != 0 && p.home % region_words + p.words <= region_words &&
                        space.usage.chunk_of(p.at) < space.chunk_count());
    pairs.push_back(
        format::entry_header{space.offset_of_home(p.home), !storage::is_data(p.at), p.words}
            .pack());
    pairs.push_back(p.at & ~storage::tombstone_bit);
  });
  const std::uint64_t home_words = space.file().header().home_size / 8;
  for (std::uint64_t home = 0; home < home_words; home += region_words)
    if (const std::uint32_t stale = space.map.stale(home); stale != 0) {
      pairs.push_back(format::entry_header{space.offset_of_home(home), false, 0}.pack());
      pairs.push_back(stale);
    }
  STELE_ASSERT_ALWAYS(pairs.size() % 2 == 0);
  return pairs;
}

namespace {

// The mapping block of a chunk, checked; empty if the chunk does not belong to this mapping.
std::optional<chunk_block> mapping_block(log_space& space, std::uint32_t c, std::uint64_t version) {
  chunk_reader reader(space.file(), space.offset_of(c), space.chunk_words());
  if (!reader.in_use() || reader.header().type() != log_type::mapping) return std::nullopt;
  auto block = reader.next_unparsed();
  if (!block || block->preamble().version != version) return std::nullopt;
  return block;
}

// The chunk that these words of the file lie in, behind its header; empty if they do not lie in one
// chunk.
std::optional<std::uint32_t> chunk_of(const log_space& space, std::uint64_t word,
                                      std::uint64_t words) noexcept {
  const std::uint64_t first = space.file().header().log_offset / 8;
  if (word < first || (word - first) / space.chunk_words() >= space.chunk_count())
    return std::nullopt;
  const std::uint64_t inside = (word - first) % space.chunk_words();
  if (inside < format::chunk_header_words || inside + words > space.chunk_words())
    return std::nullopt;
  return static_cast<std::uint32_t>((word - first) / space.chunk_words());
}

std::unexpected<error> damaged_chunk(const log_space& space, std::uint32_t c, const char* what) {
  return base::fail(
      errc::corrupt,
      fmt::format("{}: the chunk at offset {} is damaged: {}; restore the pool from a copy",
                  space.file().path(), space.offset_of(c), what));
}

// Loads a pair of a mapping. False: no mapping has such a pair. Errors: corrupt, when the mapping
// is whole and a chunk that it points to is gone.
result<bool> load_pair(log_space& space, home_map::writer& w, std::uint64_t first,
                       std::uint64_t second) {
  const auto e = format::entry_header::unpack(first);
  const auto& h = space.file().header();
  if (!in_home(h, e)) return false;
  const std::uint64_t home = space.home_of(e.offset);
  if (e.words == 0) {
    if (second > h.size / 8) return false;
    space.map.add_stale(home, static_cast<std::uint32_t>(second));
    return true;
  }
  const auto c = chunk_of(space, second, e.tombstone ? 1 : e.words);
  if (!c || home % region_words + e.words > region_words || !space.map.reserve(w, 1)) return false;
  if (space[*c].use.load(std::memory_order_relaxed) != storage::chunk_state::closed)
    return damaged_chunk(space, *c, "content that was there when the pool was closed is gone");
  STELE_ASSERT_ALWAYS(*c < space.chunk_count() && space.usage.chunk_of(second) == *c);
  const storage::log_address at = e.tombstone ? second | storage::tombstone_bit : second;
  space.usage.add_live(at, storage::live_words_of(at, e.words));
  space.map.map(w, {home, e.words, at});
  return true;
}

}  // namespace

result<bool> load_mapping(log_space& space, std::uint32_t first, std::uint64_t version) {
  for (std::uint32_t c = 0; c < space.chunk_count(); ++c) {
    const chunk_reader reader(space.file(), space.offset_of(c), space.chunk_words());
    auto& chunk = space[c];
    chunk.generation = reader.header().generation;
    if (!reader.in_use() || reader.header().type() >= log_type::mapping) continue;
    chunk.type = reader.header().type();
    chunk.lane = reader.header().lane();
    chunk.newest.store(version, std::memory_order_relaxed);
    chunk.use.store(storage::chunk_state::closed, std::memory_order_relaxed);
  }
  home_map::writer w;
  std::uint32_t read = 0;
  for (std::uint32_t c = first; c < space.chunk_count(); ++read) {
    const auto block = mapping_block(space, c, version);
    if (!block || read > space.chunk_count()) return false;
    const auto pairs = block->words.subspan(format::preamble_words);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
      if (const auto taken = load_pair(space, w, pairs[i], pairs[i + 1]); !taken || !*taken)
        return taken;
    if (block->preamble().peer() == 0) {
      space.remove_used();
      return true;
    }
    c = static_cast<std::uint32_t>((block->preamble().peer() - space.file().header().log_offset) /
                                   8 / space.chunk_words());
  }
  return false;
}

namespace {

// Whether a block follows a place without one. It was durable, so what lies between is damaged: a
// transaction has one block in a chunk, and its fence comes before the next one's block. Only
// cleaning writes many blocks at a time.
bool has_blocks_behind(chunk_reader reader, std::uint32_t words) {
  for (std::uint32_t at = reader.position(); at < words; at += format::padded_block_words(1)) {
    reader.seek(at);
    if (reader.next()) return true;
  }
  return false;
}

// The inverse of base::mix().
constexpr std::uint64_t unmix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642B2D24D8EC3u;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96DE1B173F119089u;
  return (x ^ (x >> 30) ^ (x >> 60)) - 0x9E3779B97F4A7C15u;
}
static_assert(unmix(base::mix(0)) == 0 &&
              unmix(base::mix(0x0123'4567'89AB'CDEF)) == 0x0123'4567'89AB'CDEF);

// Whether blocks stand under a header that fails its checksum: blocks of the header's generation,
// or of the generation that the checksum was computed from.
bool has_blocks(chunk_reader reader, const log_space& space, std::uint32_t c) {
  const auto& h = reader.header();
  if (has_blocks_behind(reader, space.chunk_words())) return true;
  for (const std::uint64_t lowest : {0, 1}) {
    reader.set_generation(unmix(unmix(unmix(h.checksum ^ lowest) ^ space.offset_of(c)) ^ h.owner) ^
                          space.file().header().id);
    if (has_blocks_behind(reader, space.chunk_words())) return true;
  }
  return false;
}

// Whether a crash tore the header of a chunk that was being taken. The header before it was a free
// chunk's, with a checksum of 0, or that of an earlier session's mapping. A header of type mapping
// is torn if no other type makes its checksum right; any other is torn if the next generation does.
bool is_torn(const format::chunk_header& h, const log_space& space, std::uint32_t c) {
  const bool was_mapping = h.type() == log_type::mapping;
  const std::uint64_t generation = was_mapping ? h.generation : h.generation + 1;
  for (std::uint32_t lane = 0; lane < space.lanes(); ++lane)
    for (const log_type type : {log_type::update, log_type::allocation, log_type::deallocation,
                                log_type::moved, log_type::mapping})
      if (format::chunk_header_of(generation, type, lane, space.file().header().id,
                                  space.offset_of(c))
              .checksum == h.checksum)
        return !was_mapping;
  return was_mapping;
}

// What a chunk holds.
struct chunk_content {
  std::uint32_t end = 0;     // in words, up to the first place without a block
  std::uint64_t newest = 0;  // version; 0: no block, or only blocks that cleaning moved
};
struct ring_part {
  std::uint64_t version, peer;
};

// A header that fails its checksum is damage if there are blocks under it, unless a crash may have
// torn it when the chunk was taken: then those blocks were not needed any more.
result<chunk_content> content_of(const log_space& space, std::uint32_t c, bool closed,
                                 std::vector<ring_part>& rings) {
  chunk_reader reader(space.file(), space.offset_of(c), space.chunk_words());
  if (reader.header().checksum == 0) return chunk_content{};
  if (!reader.in_use()) {
    if ((closed || !is_torn(reader.header(), space, c)) && has_blocks(reader, space, c))
      return damaged_chunk(space, c, "its header fails its checksum");
    return chunk_content{};
  }
  chunk_content all;
  if (reader.header().type() >= log_type::mapping) return all;
  const bool moved = reader.header().type() == log_type::moved;
  while (const auto block = reader.next()) {
    const auto& preamble = block->preamble();
    if (moved) continue;
    all.newest = std::max(all.newest, preamble.version);
    if (preamble.peer() != block->offset) rings.push_back({preamble.version, preamble.peer()});
  }
  all.end = reader.position();
  STELE_ASSERT_ALWAYS(all.end >= format::chunk_header_words && all.end <= space.chunk_words());
  const auto end = reader.recorded_end();
  if (!end) return damaged_chunk(space, c, "its header fails the check bits");
  const std::uint64_t min_end = moved && planted(mutant::ls_copies_unsaid) ? 0 : *end;
  if (min_end > all.end || (!moved && has_blocks_behind(reader, space.chunk_words())))
    return damaged_chunk(space, c, "a block of it fails its checksum");
  return all;
}

// A block lacks its peer if its ring continues where the blocks of a chunk end and all of that
// chunk is older. A chunk that was emptied and taken again has newer blocks. Transactions that a
// power failure cut off have been erased.
result<> check_rings(const log_space& space, const std::vector<chunk_content>& chunks,
                     const std::vector<ring_part>& rings) {
  for (const ring_part& r : rings) {
    const auto c = chunk_of(space, r.peer / 8, 1);
    if (c && chunks[*c].newest != 0 && chunks[*c].newest < r.version &&
        r.peer == space.offset_of(*c) + std::uint64_t{8} * chunks[*c].end)
      return damaged_chunk(space, *c, "a block that a transaction goes on with fails its checksum");
  }
  return {};
}

}  // namespace

result<> verify_log(const log_space& space, bool closed) {
  for (const std::uint32_t c : space.damaged)
    return damaged_chunk(space, c,
                         "its first block fails its checksum, and a later transaction is there");
  std::vector<chunk_content> chunks(space.chunk_count());
  std::vector<ring_part> rings;
  for (std::uint32_t c = 0; c < space.chunk_count(); ++c) {
    const auto content = content_of(space, c, closed, rings);
    if (!content) return std::unexpected(content.error());
    chunks[c] = *content;
  }
  result<> outcome = check_rings(space, chunks, rings);
  space.map.for_each([&](const home_map::mapped_range& p) {
    if (!outcome) return;
    const std::uint64_t at = p.at & ~storage::tombstone_bit,
                        words = storage::is_data(p.at) ? p.words : 1;
    const auto c = chunk_of(space, at, words);
    if (!c)
      outcome = base::fail(
          errc::corrupt,
          fmt::format("{}: content is said to lie where no chunk is; restore the pool from a copy",
                      space.file().path()));
    else if (at + words > space.offset_of(*c) / 8 + chunks[*c].end)
      outcome = damaged_chunk(space, *c, "a block of it fails its checksum");
  });
  return outcome;
}

}  // namespace stele::detail
