// Skip lists with one writer and readers that take no lock; see home_map.h for the invariants.
#include <base/assert.h>
#include <base/check.h>
#include <base/rng.h>
#include <media/spin.h>
#include <published/log_structured/home_map.h>
#include <published/mutant.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace stele::storage {

using format::region_words;
using media::spin_pause;

namespace {

constexpr std::uint32_t writer_lock = 1u << 31;

}  // namespace

chunk_usage::chunk_usage(std::uint64_t first_word, std::uint32_t chunk_words, std::uint32_t chunks)
    : first_word_(first_word),
      shift_(static_cast<unsigned>(std::countr_zero(chunk_words))),
      chunks_(chunks),
      live_(chunks) {
  STELE_ASSERT_ALWAYS(std::has_single_bit(chunk_words));  // the header has been validated
}

std::uint64_t chunk_usage::total_live() const noexcept {
  std::uint64_t words = 0;
  for (std::uint32_t c = 0; c < chunks_; ++c) words += live(c);
  return words;
}

home_map::cache::cache(std::size_t entries)
    : slots_(std::bit_ceil(std::max<std::size_t>(entries, 16))),
      mask_(std::bit_ceil(std::max<std::size_t>(entries, 16)) - 1),
      enabled_(entries != 0) {
  STELE_ASSERT_ALWAYS(std::has_single_bit(mask_ + 1));
}

void home_map::cache::insert(std::uint64_t home, std::uint32_t n) noexcept {
  STELE_ASSERT(n != 0 && enabled_);  // 0 says that the slot is unused
  std::uint32_t& slot = slot_of(home);
  if (slot == 0) {
    const std::uint32_t* const line = &slots_[(home / granule & mask_) & ~std::uint64_t{15}];
    if (std::all_of(line, line + 16, [](std::uint32_t s) { return s == 0; })) ++used_lines_;
  }
  slot = n;
}

home_map::home_map(map_options s, chunk_usage& l, base::epochs& e)
    : two_layers_(s.two_layers),
      lock_free_(s.lock_free),
      levels_(s.two_layers ? levels_of_region : max_levels),
      regions_count_(s.home_words / region_words + 1),
      // Enough to free all that there is in one transaction, which reserves the most.
      node_count_(std::min<std::uint64_t>(std::uint64_t{1} << 32,
                                          (s.two_layers ? 2 : 3) * s.log_words + 512)),
      media_(s.media),
      usage_(l),
      epochs_(e),
      words_(s.cached_groups),
      nodes_(node_count_, false),
      heads_(regions_count_) {
  nodes_[0].id.store(no_id);
  STELE_ASSERT_ALWAYS(node_count_ > 1);
}

std::uint64_t home_map::bytes() const noexcept {
  return next_node_.load(std::memory_order_relaxed) * sizeof(node) +
         used_heads_.load(std::memory_order_relaxed) * sizeof(region_head);
}

// One node in four reaches the next level. The height depends on the address, so a list has the
// same structure each time it is built.
unsigned home_map::height_for(std::uint64_t low) const noexcept {
  return std::min(
      levels_,
      1 + static_cast<unsigned>(std::countr_zero(base::mix(low) | std::uint64_t{1} << 40)) / 2);
}

void home_map::lock(std::uint64_t partition) const noexcept {
  word32& l = lock_of(partition);
  for (unsigned spins = 0;;) {
    std::uint32_t seen = l.load(std::memory_order_relaxed);
    const bool open = lock_free_ ? (seen & writer_lock) == 0 : seen == 0;
    if (open && l.compare_exchange_weak(seen, seen | writer_lock, std::memory_order_acquire)) break;
    spin_pause(spins);
  }
  // A reader that sees a store made after this also sees the lock.
  std::atomic_thread_fence(std::memory_order_release);
}

bool home_map::is_locked(std::uint64_t partition) const noexcept {
  return (lock_of(partition).load(std::memory_order_relaxed) & writer_lock) != 0;
}

// Whether ranges of one node are in order, without overlap.
bool home_map::is_in_order(std::span<const std::uint64_t> ranges) noexcept {
  std::uint32_t end = 0;
  for (const std::uint64_t r : ranges) {
    if (length_of(r) == 0 || start_of(r) < end || end_of(r) > region_words) return false;
    end = end_of(r);
  }
  return true;
}

void home_map::unlock(std::uint64_t partition) const noexcept {
  STELE_ASSERT(is_locked(partition));
  word32& l = lock_of(partition);
  l.store(lock_free_ ? ((l.load(std::memory_order_relaxed) & ~writer_lock) + 1) & ~writer_lock : 0,
          std::memory_order_release);
}

void home_map::lock_shared(std::uint64_t partition) const noexcept {
  word32& l = lock_of(partition);
  for (unsigned spins = 0;;) {
    std::uint32_t seen = l.load(std::memory_order_relaxed);
    if ((seen & writer_lock) == 0 &&
        l.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire))
      return;
    spin_pause(spins);
  }
}

// The last node of the list that begins at or before the word, in any region; 0: the head.
std::uint32_t home_map::last_at_or_before(std::uint64_t home) const noexcept {
  const std::uint64_t partition = partition_of(home);
  std::uint32_t n = 0;
  for (unsigned level = levels_; level-- > 0;)
    for (std::uint32_t next;
         (next = link(partition, n, level).load(std::memory_order_acquire)) != 0 &&
         low_of(id(next)) <= home;)
      n = next;
  return n;
}

// The same if it is within max_hops of a node in the cache; else 0.
std::uint32_t home_map::from_cache(std::uint64_t home, const cache& c) const noexcept {
  if (!c.enabled_) return 0;
  std::uint32_t n = c.slot_of(home);
  if (!may_contain(id(n), home)) return 0;
  for (unsigned hops = 0; hops <= max_hops; ++hops) {
    const std::uint32_t next = nodes_[n].next[0].load(std::memory_order_acquire);
    if (!may_contain(id(next), home)) return n;
    n = next;
  }
  return 0;
}

// The first word from `home` on that the next node has, or the region's end.
std::uint64_t home_map::next_low(std::uint64_t partition, std::uint32_t n,
                                 std::uint64_t home) const noexcept {
  const std::uint64_t end = (home / region_words + 1) * region_words;
  const std::uint32_t next = link(partition, n, 0).load(std::memory_order_acquire);
  return next == 0 ? end : std::min(end, low_of(id(next)));
}

// Looks the word up in node n, the last node that begins at or before the word.
home_map::lookup_result home_map::lookup_in_node(std::uint32_t n, std::uint64_t partition,
                                                 std::uint64_t home) const noexcept {
  const std::uint64_t of = id(n);
  bool beyond;
  if (n != 0 && may_contain(of, home))
    if (const std::uint64_t r = find_range(nodes_[n], of, home, beyond); r != 0)
      return found_in(r, home);
  std::uint64_t end = std::max(home + 1, next_low(partition, n, home));
  if (n != 0 && may_contain(of, home))
    visit_node(nodes_[n], [&](const mapped_range& p) {
      if (p.home > home) end = std::min(end, p.home);
    });
  return {0, static_cast<std::uint32_t>(end - home)};
}

home_map::lookup_result home_map::find_from_head(std::uint64_t home,
                                                 std::uint32_t& n) const noexcept {
  const std::uint64_t partition = partition_of(home);
  if (!lock_free_) {
    lock_shared(partition);
    n = last_at_or_before(home);
    const lookup_result f = lookup_in_node(n, partition, home);
    unlock_shared(partition);
    return f;
  }
  const word32& writers = lock_of(partition);
  for (unsigned spins = 0;; spin_pause(spins)) {
    const std::uint32_t before = writers.load(std::memory_order_acquire);
    n = last_at_or_before(home);
    const lookup_result f = lookup_in_node(n, partition, home);
    if (f.at != 0 ||
        ((before & writer_lock) == 0 && writers.load(std::memory_order_acquire) == before))
      return f;
  }
}

home_map::lookup_result home_map::find_and_cache(std::uint64_t home, cache& c) const noexcept {
  const std::uint64_t partition = partition_of(home);
  if (lock_free_) {  // the cache may also know that nothing is mapped here
    const word32& writers = lock_of(partition);
    const std::uint32_t before = writers.load(std::memory_order_acquire);
    if (const std::uint32_t n = from_cache(home, c); n != 0) {
      const lookup_result f = lookup_in_node(n, partition, home);
      if (f.at != 0 ||
          ((before & writer_lock) == 0 && writers.load(std::memory_order_acquire) == before)) {
        ++c.hits;
        return f;
      }
    }
  }
  std::uint32_t n = 0;
  const lookup_result f = find_from_head(home, n);
  ++c.misses;
  if (c.enabled_ && n != 0 && may_contain(id(n), home)) c.insert(home, n);
  return f;
}

home_map::lookup_result home_map::find(std::uint64_t home) const noexcept {
  std::uint32_t n;
  return find_from_head(home, n);
}

bool home_map::any_data(std::uint64_t home, std::uint64_t words) const noexcept {
  for (const std::uint64_t end = home + words; home < end;) {
    const lookup_result f = find(home);
    STELE_ASSERT(f.run != 0);
    if (is_data(f.at)) return true;
    home += f.run;
  }
  return false;
}

void home_map::still_mapped(mapped_range p, std::vector<mapped_range>& into, cache& c) const {
  STELE_ASSERT(p.at != 0);
  for (std::uint32_t done = 0; done < p.words;) {
    const lookup_result f = find(p.home + done, c);
    const std::uint32_t run = std::min(f.run, p.words - done);
    if (f.at == advanced(p.at, done)) into.push_back({p.home + done, run, f.at});
    done += run;
  }
}

home_map::predecessors home_map::predecessors_of(std::uint64_t partition,
                                                 std::uint64_t low) const noexcept {
  predecessors before{};
  std::uint32_t n = 0;
  for (unsigned level = levels_; level-- > 0;) {
    for (std::uint32_t next;
         (next = link(partition, n, level).load(std::memory_order_relaxed)) != 0 &&
         low_of(id(next)) < low;)
      n = next;
    before[level] = n;
  }
  return before;
}

// Per change: one node if it is the region's first, and those of a split at the begin and at the
// end of the range. Per move: one split. A split gives up to four ranges to new nodes. Nodes of a
// region's list have room for two or more each; in the list of all of home, for one at least.
bool home_map::reserve(writer& w, std::size_t changes) {
  static_assert(room_of(levels_of_region) >= 2 && room_of(max_levels) >= 1);
  return reserve_nodes(w, changes * (1 + 2 * nodes_of_split()));
}
bool home_map::reserve_moves(writer& w, std::size_t pieces) {
  return reserve_nodes(w, pieces * nodes_of_split());
}

bool home_map::reserve_nodes(writer& w, std::uint64_t wanted) {
  STELE_ASSERT(w.next_ <= w.end_ && w.end_ <= node_count_);
  const auto enough = [&] { return w.free_.size() + (w.end_ - w.next_) >= wanted; };
  if (enough() && w.retired_.size() < w.reclaim_threshold_) [[likely]]
    return true;
  reclaim_retired_nodes(w);
  balance_free_nodes(w, wanted);
  if (enough()) return true;
  for (; w.next_ != w.end_; ++w.next_) w.free_.push_back(w.next_);
  const std::uint64_t batch =
      std::max<std::uint64_t>(wanted - w.free_.size(), node_count_ >= 65536 ? 256 : 16);
  const std::uint64_t first = next_node_.fetch_add(batch, std::memory_order_relaxed);
  if (first + batch > node_count_) {
    next_node_.fetch_sub(batch, std::memory_order_relaxed);
    return false;
  }
  w.next_ = static_cast<std::uint32_t>(first);
  w.end_ = static_cast<std::uint32_t>(first + batch);
  STELE_ASSERT(enough());
  return true;
}

// Frees retired nodes that no reader can know any more.
void home_map::reclaim_retired_nodes(writer& w) {
  if (w.retired_.empty()) return;
  // Reserved, so that a node is always in one of the lists.
  w.free_.reserve(w.free_.size() + w.retired_.size());
  (void)epochs_.advance();
  const std::uint64_t oldest = epochs_.oldest_pinned();
  std::erase_if(w.retired_, [&](const writer::retired_node& r) {
    if (r.epoch >= oldest) return false;
    w.free_.push_back(r.n);
    return true;
  });
  w.reclaim_threshold_ = w.retired_.size() + 512;
}

// Writers that split ranges run out of nodes; writers that join ranges collect them.
void home_map::balance_free_nodes(writer& w, std::uint64_t wanted) {
  constexpr std::size_t batch = 256;
  const std::lock_guard hold(shared_mutex_);
  while (w.free_.size() < wanted && !shared_free_nodes_.empty()) {
    w.free_.push_back(shared_free_nodes_.back());
    shared_free_nodes_.pop_back();
  }
  for (; w.free_.size() > wanted + batch; w.free_.pop_back())
    shared_free_nodes_.push_back(w.free_.back());
}

std::uint32_t home_map::take_node(writer& w) noexcept {
  if (!w.free_.empty()) {
    const std::uint32_t n = w.free_.back();
    w.free_.pop_back();
    STELE_ASSERT(n != 0 && n < node_count_);  // 0 is the list's head
    return n;
  }
  base::check(w.next_ < w.end_, "a change of the map was not reserved");
  return w.next_++;
}

home_map::ranges home_map::ranges_of(const node& n) noexcept {
  ranges r;
  for (unsigned i = first_range(height_of(n.id.load(std::memory_order_relaxed))); i < max_ranges;
       ++i)
    if (const std::uint64_t one = n.rest[i].load(std::memory_order_relaxed); one != 0) r.add(one);
  return r;
}

void home_map::fill(node& n, std::span<const std::uint64_t> with) noexcept {
  const unsigned first = first_range(height_of(n.id.load(std::memory_order_relaxed)));
  STELE_ASSERT(with.size() <= max_ranges - first);
  STELE_ASSERT_WHOLE(is_in_order(with));
  const auto unused = static_cast<unsigned>(max_ranges - with.size());
  for (unsigned i = first; i < max_ranges; ++i)
    n.rest[i].store(i < unused ? 0 : with[i - unused], std::memory_order_release);
}

// Links a node without ranges after n (0: first in its list), from the lowest level up.
std::uint32_t home_map::insert_after(writer& w, std::uint64_t partition, std::uint32_t n,
                                     std::uint64_t low) noexcept {
  STELE_ASSERT(is_locked(partition));
  const unsigned height = height_for(low);
  STELE_ASSERT(height >= 1 && height <= levels_);
  const std::uint32_t added = take_node(w);
  for (word& r : nodes_[added].rest) r.store(0, std::memory_order_relaxed);
  // A reader whose cache knows the node's earlier use must not see that use's ranges in it.
  nodes_[added].id.store(id_of(low, height), std::memory_order_release);
  predecessors before{n};
  if (height > 1) before = predecessors_of(partition, low);
  STELE_ASSERT(before[0] == n && n != added);  // the nodes of a list begin in order
  STELE_ASSERT(n == 0 || low_of(id(n)) < low);
  for (unsigned level = 0; level < height; ++level) {
    word32& to = link(partition, before[level], level);
    link(partition, added, level)
        .store(to.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.store(added, std::memory_order_release);
  }
  return added;
}

void home_map::remove(writer& w, std::uint64_t partition, std::uint32_t n) noexcept {
  const std::uint64_t was = id(n);
  STELE_ASSERT(n != 0 && was != no_id && is_locked(partition));
  const predecessors before = predecessors_of(partition, low_of(was));
  for (unsigned level = height_of(was); level-- > 0;) {
    STELE_ASSERT(link(partition, before[level], level).load(std::memory_order_relaxed) == n);
    link(partition, before[level], level)
        .store(link(partition, n, level).load(std::memory_order_relaxed),
               std::memory_order_release);
  }
  nodes_[n].id.store(no_id, std::memory_order_release);
  // The unlinking is visible to all threads before the epoch is read. Otherwise a reader that pins
  // a later epoch could still find the node, and the reclaimer would not wait for it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  try {
    w.retired_.push_back({n, epochs_.now()});
  } catch (const std::bad_alloc&) {  // the node is lost until the pool is opened again
  }
}

// `words` of a range from `home` on have moved; `left` parts of the range remain.
void home_map::account_overwrite(std::uint64_t home, std::uint32_t words, log_address was,
                                 unsigned left) noexcept {
  STELE_ASSERT(was != 0 && words != 0 && left <= 2);
  STELE_ASSERT(is_locked(partition_of(home)));  // the stale count changes under the lock only
  if (left == 2) usage_.add_live(was, 1);
  const std::uint32_t head = left == 0 ? 1 : 0, data = is_data(was) ? words : 0;
  if (head + data != 0) usage_.remove_live(was, head + data);
  word32& stale = heads_[home / region_words].stale;
  if (data != 0)
    stale.store(stale.load(std::memory_order_relaxed) + data, std::memory_order_release);
}

std::uint32_t home_map::node_for(std::uint64_t home, const cache* c) const noexcept {
  const std::uint32_t n = c != nullptr ? from_cache(home, *c) : 0;
  return n != 0 ? n : last_at_or_before(home);
}

void home_map::map(writer& w, mapped_range p, const cache* c) noexcept {
  STELE_ASSERT(p.words != 0 && p.at != 0 && p.home / region_words < regions_count_);
  STELE_ASSERT(p.home % region_words + p.words <= region_words);
  const std::uint64_t partition = partition_of(p.home);
  lock(partition);
  map_locked(w, partition, node_for(p.home, c), p);
  if (heads_[p.home / region_words].cached.load(std::memory_order_relaxed) != 0 &&
      !planted(published::mutant::ls_cached_word_stale))
    update_cached_words(p);
  unlock(partition);
}

// The words of the range have new values. Those that only move keep theirs.
void home_map::update_cached_words(mapped_range p) noexcept {
  static_assert(cached_words_of_bit % word_cache::group_words == 0);
  STELE_ASSERT(words_.enabled() && is_locked(partition_of(p.home)));  // log_structured.md, W2
  word& bits = heads_[p.home / region_words].cached;
  const std::uint64_t end = p.home + p.words;
  for (std::uint64_t home = p.home, next; home < end; home = next) {
    const std::uint64_t bit = bit_of(home);
    next = std::min(end, (home / cached_words_of_bit + 1) * cached_words_of_bit);
    if ((bits.load(std::memory_order_relaxed) & bit) == 0) continue;
    bool any = false;
    for (std::uint64_t group = home, after; group < next; group = after) {
      after = std::min(next, (group / word_cache::group_words + 1) * word_cache::group_words);
      any = words_.update(group, after - group,
                          is_data(p.at) ? media_ + p.at + (group - p.home) : nullptr) ||
            any;
    }
    const bool whole = next - home == cached_words_of_bit;
    if (whole && !any)
      bits.store(bits.load(std::memory_order_relaxed) & ~bit, std::memory_order_relaxed);
  }
}

void home_map::cache_word(std::uint64_t home, const cache& c) noexcept {
  STELE_ASSERT(words_.enabled() && media_ != nullptr);
  const std::uint64_t partition = partition_of(home);
  lock(partition);
  const log_address at = lookup_in_node(node_for(home, &c), partition, home).at;
  words_.insert(home, is_data(at) ? __atomic_load_n(media_ + at, __ATOMIC_ACQUIRE) : 0);
  word& bits = heads_[home / region_words].cached;
  bits.store(bits.load(std::memory_order_relaxed) | bit_of(home), std::memory_order_relaxed);
  unlock(partition);
}

// n: the last node that begins at or before the range. Fast path: exactly this range was mapped
// before.
inline void home_map::map_locked(writer& w, std::uint64_t partition, std::uint32_t n,
                                 mapped_range p) noexcept {
  const std::uint64_t of = id(n);
  if (may_contain(of, p.home)) {
    node& it = nodes_[n];
    const std::uint64_t encoded = range_of(p.home, p.words, p.at);
    const unsigned i = last_range(it, of, p.home);
    const std::uint64_t r = i == max_ranges ? 0 : it.rest[i].load(std::memory_order_relaxed);
    if (((r ^ encoded) >> (log_address_bits + 1)) == 0) [[likely]] {
      it.rest[i].store(encoded, std::memory_order_release);
      return account_overwrite(p.home, p.words, log_address_of(r), 0);
    }
  } else {
    if (n == 0 && link(partition, 0, 0).load(std::memory_order_relaxed) == 0)
      used_heads_.fetch_add(1, std::memory_order_relaxed);
    n = insert_after(w, partition, n, p.home / region_words * region_words);
  }
  map_slow_path(w, partition, n, p);
}

// A reader that misses a word during this change looks again.
void home_map::map_slow_path(writer& w, std::uint64_t partition, std::uint32_t n,
                             mapped_range p) noexcept {
  STELE_ASSERT(n != 0 && may_contain(id(n), p.home));
  const std::uint64_t region = p.home / region_words * region_words, end = p.home + p.words;
  for (;;) {
    std::uint64_t limit = next_low(partition, n, p.home);
    std::uint32_t covered = 0;  // nodes after n whose ranges are all overwritten
    for (std::uint32_t next = link(partition, n, 0).load(std::memory_order_relaxed); limit < end;
         ++covered) {
      const ranges successor = ranges_of(nodes_[next]);
      if (region + end_of(successor.of[successor.count - 1]) > end) break;
      limit = next_low(partition, next, limit);
      next = link(partition, next, 0).load(std::memory_order_relaxed);
    }
    const auto words = static_cast<std::uint32_t>(std::min(limit, end) - p.home);
    STELE_ASSERT(words != 0 && words <= p.words);
    for (; covered != 0; --covered) remove_successor(w, partition, n);
    rewrite(w, partition, n, {p.home, words, p.at});
    p = {p.home + words, p.words - words, advanced(p.at, words)};
    if (p.words == 0) return;
    usage_.add_live(p.at, 1);  // the rest of it is in another node
    n = last_at_or_before(p.home);
  }
}

// All ranges of the node after n have been overwritten.
void home_map::remove_successor(writer& w, std::uint64_t partition, std::uint32_t n) noexcept {
  const std::uint32_t next = link(partition, n, 0).load(std::memory_order_relaxed);
  STELE_ASSERT(next != 0);
  visit_node(nodes_[next],
             [&](const mapped_range& p) { account_overwrite(p.home, p.words, p.at, 0); });
  remove(w, partition, next);
}

// Maps a range that lies within node n's part of the region; overwrites what n had there.
void home_map::rewrite(writer& w, std::uint64_t partition, std::uint32_t n,
                       mapped_range p) noexcept {
  const ranges old = ranges_of(nodes_[n]);
  STELE_ASSERT_WHOLE(is_in_order({old.of.data(), old.count}));
  STELE_ASSERT(low_of(id(n)) <= p.home);
  const auto from = static_cast<std::uint32_t>(p.home % region_words), to = from + p.words;
  const std::uint64_t region = p.home - from;
  ranges now;
  std::uint32_t at = max_ranges + 2;  // index of the new range
  auto add_new = [&] {
    if (at < max_ranges + 2) return;
    at = now.count;
    now.add(range_of(p.home, p.words, p.at));
  };
  for (std::uint32_t i = 0; i < old.count; ++i) {
    const std::uint64_t r = old.of[i];
    const std::uint32_t start = start_of(r), end = end_of(r);
    if (start >= to) add_new();
    if (end <= from || start >= to) {
      now.add(r);
      continue;
    }
    const log_address was = log_address_of(r);
    const std::uint32_t first = std::max(start, from), last = std::min(end, to);
    account_overwrite(region + first, last - first, advanced(was, first - start),
                      (start < from ? 1 : 0) + (end > to ? 1 : 0));
    if (start < from) now.add(range_of(region + start, from - start, was));
    add_new();
    if (end > to) now.add(range_of(region + to, end - to, advanced(was, to - start)));
  }
  add_new();
  std::span<const std::uint64_t> left(now.of.data(), now.count);
  STELE_ASSERT(at < now.count && now.count <= old.count + 2);
  STELE_ASSERT_WHOLE(is_in_order(left));
  const std::uint32_t room = room_of(height_of(id(n)));
  if (left.size() <= room) {
    fill(nodes_[n], left);
    if (now.count < old.count) merge_successor(w, partition, n);
    return;
  }
  if (shift_to_successor(partition, n, left)) return;
  // A range after all others begins a new node, so that sequential writes fill nodes. New nodes are
  // inserted before n gives up its ranges.
  const bool behind = at == now.count - 1 && now.count - 1 <= room;
  const std::uint32_t stays = std::min(room, behind ? now.count - 1 : (now.count + 1) / 2);
  STELE_ASSERT(stays != 0 && stays < now.count);  // the node keeps its lowest range
  std::span<const std::uint64_t> goes = left.subspan(stays);
  while (!goes.empty()) {
    auto low = [&](std::size_t last) { return region + start_of(goes[goes.size() - last]); };
    std::size_t last = goes.size();  // as many from the end as fit into the node that they begin
    while (last > room_of(height_for(low(last)))) --last;
    STELE_ASSERT(last != 0);
    const std::uint32_t added = insert_after(w, partition, n, low(last));
    fill(nodes_[added], goes.last(last));
    goes = goes.first(goes.size() - last);
  }
  fill(nodes_[n], left.first(stays));
}

// Moves the last ranges, for which node n has no room, to the next node if that has room; this
// keeps nodes well filled.
bool home_map::shift_to_successor(std::uint64_t partition, std::uint32_t n,
                                  std::span<const std::uint64_t> all) noexcept {
  const std::uint32_t next = link(partition, n, 0).load(std::memory_order_relaxed);
  if (!may_contain(id(n), low_of(id(next)))) return false;
  const unsigned height = height_of(id(next));
  const ranges successor = ranges_of(nodes_[next]);
  const std::size_t excess = all.size() - room_of(height_of(id(n))),
                    room = room_of(height) - successor.count;
  if (room < excess) return false;
  const std::size_t more = all.size() > successor.count ? all.size() - successor.count : 0,
                    give = std::clamp(more / 2, excess, room);
  STELE_ASSERT(give != 0 && give < all.size());
  ranges both;
  for (const std::uint64_t r : all.last(give)) both.add(r);
  for (std::uint32_t i = 0; i < successor.count; ++i) both.add(successor.of[i]);
  STELE_ASSERT(both.count <= room_of(height));
  fill(nodes_[next], std::span(both.of.data(), both.count));
  nodes_[next].id.store(
      id_of(low_of(id(n)) / region_words * region_words + start_of(both.of[0]), height),
      std::memory_order_release);
  fill(nodes_[n], all.first(all.size() - give));
  return true;
}

// Merges two nodes that have become small.
void home_map::merge_successor(writer& w, std::uint64_t partition, std::uint32_t n) noexcept {
  const std::uint32_t next = link(partition, n, 0).load(std::memory_order_relaxed);
  if (next == 0 || !may_contain(id(n), low_of(id(next)))) return;
  ranges both = ranges_of(nodes_[n]);
  const ranges successor = ranges_of(nodes_[next]);
  if (both.count + successor.count >= room_of(height_of(id(n)))) return;
  for (std::uint32_t i = 0; i < successor.count; ++i) both.add(successor.of[i]);
  fill(nodes_[n], std::span(both.of.data(), both.count));
  remove(w, partition, next);
}

std::uint32_t home_map::move(writer& w, std::span<const mapped_range> from, log_address to,
                             const cache& c) noexcept {
  const std::uint64_t home = from.front().home, partition = partition_of(home);
  const auto words = static_cast<std::uint32_t>(from.back().home + from.back().words - home);
  STELE_ASSERT(words != 0 && home % region_words + words <= region_words && to != 0);
  STELE_ASSERT_WHOLE(std::ranges::adjacent_find(from, [](const auto& a, const auto& b) {
                       return a.home + a.words != b.home || is_data(a.at) != is_data(b.at);
                     }) == from.end());
  std::uint32_t moved = 0;
  lock(partition);
  if (from.size() > 1 && all_still_mapped(partition, from, c)) {
    usage_.add_live(to, live_words_of(to, words));
    map_locked(w, partition, node_for(home, &c), {home, words, to});
    moved = words;
  } else {
    for (const mapped_range& p : from)
      moved += move_one(w, partition, p, advanced(to, p.home - home), c);
  }
  unlock(partition);
  STELE_ASSERT(moved <= words);
  return moved;
}

bool home_map::all_still_mapped(std::uint64_t partition, std::span<const mapped_range> pieces,
                                const cache& c) const noexcept {
  for (const mapped_range& p : pieces)
    for (std::uint32_t done = 0; done < p.words;) {
      const lookup_result f = lookup_in_node(node_for(p.home + done, &c), partition, p.home + done);
      if (f.at != advanced(p.at, done)) return false;
      done += f.run;
    }
  return true;
}

std::uint32_t home_map::move_one(writer& w, std::uint64_t partition, mapped_range from,
                                 log_address to, const cache& c) noexcept {
  std::uint32_t moved = 0;
  for (std::uint32_t done = 0; done < from.words;) {
    const std::uint64_t home = from.home + done;
    const std::uint32_t n = node_for(home, &c);
    const lookup_result f = lookup_in_node(n, partition, home);
    const std::uint32_t run = std::min(f.run, from.words - done);
    STELE_ASSERT(run != 0);
    if (f.at == advanced(from.at, done)) {
      usage_.add_live(advanced(to, done), live_words_of(to, run));
      map_locked(w, partition, n, {home, run, advanced(to, done)});
      moved += run;
    }
    done += run;
  }
  return moved;
}

home_map::mapped_range home_map::range_at(std::uint64_t home, const cache& c) const noexcept {
  const std::uint32_t n = node_for(home, &c);
  const std::uint64_t of = id(n);
  bool beyond;
  const std::uint64_t r =
      n != 0 && may_contain(of, home) ? find_range(nodes_[n], of, home, beyond) : 0;
  return {home / region_words * region_words + start_of(r), length_of(r), log_address_of(r)};
}

void home_map::add_stale(std::uint64_t home, std::uint32_t words) noexcept {
  STELE_ASSERT(home / region_words < regions_count_);
  const std::uint64_t partition = partition_of(home);
  lock(partition);
  word32& stale = heads_[home / region_words].stale;
  stale.store(stale.load(std::memory_order_relaxed) + words, std::memory_order_release);
  unlock(partition);
}

void home_map::remove_stale(writer& w, std::uint64_t home, std::uint32_t words) noexcept {
  STELE_ASSERT(home / region_words < regions_count_ && home % region_words + words <= region_words);
  const std::uint64_t partition = partition_of(home);
  lock(partition);
  word32& stale = heads_[home / region_words].stale;
  const std::uint32_t left = stale.load(std::memory_order_relaxed) - words;
  stale.store(left, std::memory_order_release);
  if (left == 0) drop_tombstones(w, partition, home / region_words * region_words);
  unlock(partition);
}

void home_map::drop_tombstones(writer& w, std::uint64_t partition, std::uint64_t region) noexcept {
  // log_structured.md, Tombstones: none goes while media has a stale word of its region.
  STELE_ASSERT(region % region_words == 0 && is_locked(partition) &&
               heads_[region / region_words].stale.load(std::memory_order_relaxed) == 0);
  for (std::uint64_t home = region; home < region + region_words;) {
    const std::uint32_t n = last_at_or_before(home);
    const std::uint64_t from = std::exchange(home, next_low(partition, n, home));
    if (!may_contain(id(n), from)) continue;
    const ranges old = ranges_of(nodes_[n]);
    ranges data;
    for (const std::uint64_t r : std::span(old.of.data(), old.count))
      if (is_data(log_address_of(r)))
        data.add(r);
      else
        usage_.remove_live(log_address_of(r), live_words_of(log_address_of(r), 0));
    if (data.count == old.count) continue;
    fill(nodes_[n], std::span(data.of.data(), data.count));
    if (data.count == 0)
      remove(w, partition, n);
    else
      merge_successor(w, partition, n);
  }
}

}  // namespace stele::storage
