// Skip lists with one writer and readers that take no lock; see home_map.h for the invariants.
#include <base/check.h>
#include <base/rng.h>
#include <pool/home_map.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace stele::storage {

using format::region_words;

namespace {

constexpr std::size_t large = std::size_t{1} << 20;  // bytes from which on an array is a mapping of its own
constexpr std::uint32_t writer_lock = 1u << 31;

inline void pause_a_little(unsigned& spins) noexcept {
  if (++spins % 64 == 0) ::sched_yield();
}

}  // namespace

template <class T>
lazy_array<T>::lazy_array(std::size_t count, bool zeroed) : bytes_(count * sizeof(T)) {
  if (bytes_ < large) {
    data_ = static_cast<T*>(zeroed ? std::calloc(count, sizeof(T)) : std::malloc(bytes_));
    if (data_ == nullptr) throw std::bad_alloc();
    return;
  }
  bytes_ = (bytes_ + large - 1) / large * large;
  void* const map = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  ::madvise(map, bytes_, MADV_HUGEPAGE);  // it is looked into at random
  data_ = static_cast<T*>(map);
}

template <class T>
lazy_array<T>::~lazy_array() {
  if (bytes_ < large)
    std::free(static_cast<void*>(data_));
  else
    ::munmap(static_cast<void*>(data_), bytes_);
}

template class lazy_array<std::atomic<std::uint64_t>>;
template class lazy_array<std::atomic<std::uint32_t>>;

ledger::ledger(std::uint64_t first_word, std::uint32_t chunk_words, std::uint32_t chunks, std::uint64_t home_words)
    : first_word_(first_word), shift_(static_cast<unsigned>(std::countr_zero(chunk_words))), live_(chunks), stale_(home_words / region_words + 1) {}

template class lazy_array<home_map::cache::set>;

home_map::cache::cache(std::size_t entries) : sets_(std::bit_ceil(std::max<std::size_t>(entries / ways, 2))), shift_(64 - static_cast<unsigned>(std::countr_zero(std::bit_ceil(std::max<std::size_t>(entries / ways, 2))))), on_(entries != 0) {}

void home_map::cache::keep(std::uint64_t home, std::uint32_t node) noexcept {
  set& s = set_of(home);
  const auto tag = static_cast<std::uint32_t>(home);
  unsigned way = turn_++ % ways;
  for (unsigned i = 0; i < ways; ++i)
    if (s.node[i] == 0 || (s.node[i] == node && s.word[i] == tag)) {
      way = i;
      break;
    }
  if (s.node[0] == 0) ++touched_;
  s.word[way] = tag;
  s.node[way] = node;
}

home_map::home_map(shape s, ledger& l, base::epochs& e)
    : two_layers_(s.two_layers),
      lock_free_(s.lock_free),
      levels_(s.two_layers ? 5 : most_levels),
      partitions_(s.two_layers ? s.home_words / region_words + 1 : 1),
      node_words_(std::min<std::uint64_t>(std::uint64_t{1} << 32, 4 * s.log_words + 4096)),
      ledger_(l),
      epochs_(e),
      nodes_(node_words_, false),
      heads_(partitions_ * levels_),
      locks_(partitions_) {
  range_word(0).store(0);  // number 0 is no node: it covers nothing
}

std::uint64_t home_map::bytes() const noexcept {
  return next_node_.load(std::memory_order_relaxed) * 8 + partitions_ * (levels_ + 1) * 4;
}

// One node in four goes on to the next level. Of the address, so that a list looks the same each time it is built.
unsigned home_map::height_for(std::uint64_t start) const noexcept {
  return std::min(levels_, 1 + static_cast<unsigned>(std::countr_zero(base::mix(start) | std::uint64_t{1} << 40)) / 2);
}

void home_map::lock(std::uint64_t partition) const noexcept {
  for (unsigned spins = 0;;) {
    std::uint32_t open = 0;
    if (locks_[partition].compare_exchange_weak(open, writer_lock, std::memory_order_acquire)) return;
    pause_a_little(spins);
  }
}

void home_map::lock_shared(std::uint64_t partition) const noexcept {
  for (unsigned spins = 0;;) {
    std::uint32_t seen = locks_[partition].load(std::memory_order_relaxed);
    if ((seen & writer_lock) == 0 && locks_[partition].compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return;
    pause_a_little(spins);
  }
}

// The last node that starts at or before the word, and who follows it; 0: the head.
inline std::uint32_t home_map::last_at_or_before(std::uint64_t home, std::uint32_t& next) const noexcept {
  const std::uint64_t partition = partition_of(home);
  std::uint32_t n = 0;
  next = 0;
  for (unsigned level = levels_; level-- > 0;)
    for (;;) {
      next = link(partition, n, level).load(std::memory_order_acquire);
      if (next == 0 || start_of(range(next)) > home) break;
      n = next;
    }
  return n;
}

home_map::found home_map::find_from_head(std::uint64_t home, std::uint32_t& node) const noexcept {
  const std::uint64_t partition = partition_of(home), end = (home / region_words + 1) * region_words;
  if (!lock_free_) lock_shared(partition);
  found result;
  node = 0;
  for (unsigned spins = 0;; pause_a_little(spins)) {
    std::uint32_t next;
    const std::uint32_t n = last_at_or_before(home, next);
    const std::uint64_t gap_end = next != 0 ? std::min(end, start_of(range(next))) : end;
    result = {0, static_cast<std::uint32_t>(gap_end - home)};
    if (n == 0) break;
    const std::uint64_t r = range(n);
    if (length_of(r) == 0) continue;  // it has just left the list
    const std::uint64_t into = home - start_of(r);
    if (into < length_of(r)) {
      const place p = at(n).load(std::memory_order_acquire);
      if (range(n) != r) continue;
      result = {advanced(p, into), static_cast<std::uint32_t>(length_of(r) - into)};
      node = n;
      break;
    }
    // The node has shrunk, perhaps since we passed its successor's place: who took the word over is there by now.
    const std::uint32_t now_next = link(partition, n, 0).load(std::memory_order_acquire);
    if (now_next == next) break;
  }
  if (!lock_free_) unlock_shared(partition);
  return result;
}

home_map::found home_map::find_and_keep(std::uint64_t home, cache& c) const noexcept {
  std::uint32_t node = 0;
  const found f = find_from_head(home, node);
  ++c.misses;
  if (node == 0 || !c.on_) return f;
  c.keep(home, node);
  c.last_ = node;
  return f;
}

home_map::found home_map::find(std::uint64_t home) const noexcept {
  std::uint32_t node;
  return find_from_head(home, node);
}

bool home_map::any_data(std::uint64_t home, std::uint64_t words) const noexcept {
  for (const std::uint64_t end = home + words; home < end;) {
    const found f = find(home);
    if (is_data(f.at)) return true;
    home += f.run;
  }
  return false;
}

void home_map::still_there(piece p, std::vector<piece>& into) const {
  for (std::uint32_t done = 0; done < p.words;) {
    const found f = find(p.home + done);
    const std::uint32_t run = std::min(f.run, p.words - done);
    if (f.at == advanced(p.at, done)) into.push_back({p.home + done, run, f.at});
    done += run;
  }
}

home_map::path home_map::path_to(std::uint64_t home) const noexcept {
  path p;
  p.partition = partition_of(home);
  std::uint32_t n = 0;
  for (unsigned level = levels_; level-- > 0;) {
    for (std::uint32_t next; (next = link(p.partition, n, level).load(std::memory_order_relaxed)) != 0 && start_of(range(next)) < home;) n = next;
    p.before[level] = n;
  }
  return p;
}

bool home_map::reserve(writer& w, std::size_t changes) {
  const std::uint64_t wanted = changes * 2 * words_of_node(levels_);  // a change in the middle of a node makes two
  if (w.end_ - w.next_ >= wanted) [[likely]]
    return true;
  if (w.retired_.size() >= 1024) use_again(w);
  const std::uint64_t batch = std::max<std::uint64_t>(wanted, node_words_ >= 65536 ? 8192 : 64);
  const std::uint64_t first = next_node_.fetch_add(batch, std::memory_order_relaxed);
  if (first + batch > node_words_) {
    next_node_.fetch_sub(batch, std::memory_order_relaxed);
    return false;
  }
  w.next_ = static_cast<std::uint32_t>(first);
  w.end_ = static_cast<std::uint32_t>(first + batch);
  return true;
}

// Nodes that no reader can know any more.
void home_map::use_again(writer& w) {
  (void)epochs_.advance();
  const std::uint64_t oldest = epochs_.oldest();
  std::erase_if(w.retired_, [&](const writer::retired_node& r) {
    if (r.epoch >= oldest) return false;
    w.free_[words_of_node(height_of(range(r.node)))].push_back(r.node);
    return true;
  });
}

std::uint32_t home_map::take_node(writer& w, unsigned height) noexcept {
  const std::uint32_t size = words_of_node(height);
  node_count_.fetch_add(1, std::memory_order_relaxed);
  if (auto& list = w.free_[size]; !list.empty()) {
    const std::uint32_t n = list.back();
    list.pop_back();
    return n;
  }
  base::check(w.next_ + size <= w.end_, "a change of the map was not reserved");
  return std::exchange(w.next_, w.next_ + size);
}

// From the lowest level up: linked there, the node counts.
void home_map::insert(writer& w, piece p) noexcept {
  const unsigned height = height_for(p.home);
  const path way = path_to(p.home);
  const std::uint32_t n = take_node(w, height);
  at(n).store(p.at, std::memory_order_relaxed);
  range_word(n).store(range_of(p.home, p.words, height), std::memory_order_release);
  for (unsigned level = 0; level < height; ++level) {
    half& before = link(way.partition, way.before[level], level);
    link(way.partition, n, level).store(before.load(std::memory_order_relaxed), std::memory_order_relaxed);
    before.store(n, std::memory_order_release);
  }
}

void home_map::remove(writer& w, std::uint64_t partition, std::uint32_t n) noexcept {
  const std::uint64_t r = range(n);
  const path way = path_to(start_of(r));
  for (unsigned level = height_of(r); level-- > 0;)
    link(partition, way.before[level], level).store(link(partition, n, level).load(std::memory_order_relaxed), std::memory_order_release);
  range_word(n).store(range_of(start_of(r), 0, height_of(r)), std::memory_order_release);
  node_count_.fetch_sub(1, std::memory_order_relaxed);
  try {
    w.retired_.push_back({n, epochs_.now()});
  } catch (const std::bad_alloc&) {  // the node is lost until the pool is opened again
  }
}

// `words` of a node from `home` on are elsewhere now; `left` parts of the node remain.
void home_map::displaced(std::uint64_t home, std::uint32_t words, place was, unsigned left) noexcept {
  if (left == 2) ledger_.used(was, 1);
  const std::uint32_t head = left == 0 ? 1 : 0, data = is_data(was) ? words : 0;
  if (head + data != 0) ledger_.unused(was, head + data);
  if (data != 0) ledger_.became_stale(home, data);
}

void home_map::map(writer& w, piece p, const cache* c) noexcept {
  const std::uint64_t partition = partition_of(p.home);
  lock(partition);
  if (c == nullptr || !c->on_ || !map_exactly(p, *c)) map_in_list(w, partition, p);
  unlock(partition);
}

// The commonest change: just this range was mapped before, by a node that the cache knows. Whatever that node once was, with this range
// it is in this list.
bool home_map::map_exactly(piece p, const cache& c) noexcept {
  const cache::set& s = c.set_of(p.home);
  for (unsigned way = 0; way < cache::ways; ++way) {
    const std::uint32_t n = s.node[way];
    if (n == 0 || (s.word[way] ^ static_cast<std::uint32_t>(p.home)) >= 8) continue;
    const std::uint64_t r = range(n);
    if (start_of(r) != p.home || length_of(r) != p.words) continue;
    displaced(p.home, p.words, at(n).exchange(p.at, std::memory_order_acq_rel), 0);
    return true;
  }
  return false;
}

void home_map::map_in_list(writer& w, std::uint64_t partition, piece p) noexcept {
  const path way = path_to(p.home);
  const std::uint64_t end = p.home + p.words;
  const std::uint32_t left = way.before[0];
  std::uint32_t next = link(partition, left, 0).load(std::memory_order_relaxed);
  if (next != 0 && start_of(range(next)) == p.home && length_of(range(next)) == p.words) [[likely]] {
    displaced(p.home, p.words, at(next).exchange(p.at, std::memory_order_acq_rel), 0);
    return;
  }
  const std::uint64_t lr = left != 0 ? range(left) : 0;
  const std::uint64_t left_end = left != 0 ? start_of(lr) + length_of(lr) : 0;
  if (left_end > p.home) {
    const place was = at(left).load(std::memory_order_relaxed);
    const std::uint64_t cut = std::min(left_end, end);
    if (left_end > end) insert(w, {end, static_cast<std::uint32_t>(left_end - end), advanced(was, end - start_of(lr))});
    displaced(p.home, static_cast<std::uint32_t>(cut - p.home), advanced(was, p.home - start_of(lr)), left_end > end ? 2 : 1);
    next = link(partition, left, 0).load(std::memory_order_relaxed);
  }
  bool there = false;  // a node that starts where the range does is used for it
  for (std::uint32_t n = next, after; n != 0 && start_of(range(n)) < end; n = after) {
    const std::uint64_t r = range(n), start = start_of(r), stop = start + length_of(r);
    const place was = at(n).load(std::memory_order_relaxed);
    after = link(partition, n, 0).load(std::memory_order_relaxed);
    displaced(start, static_cast<std::uint32_t>(std::min(stop, end) - start), was, stop > end ? 1 : 0);
    if (stop > end) insert(w, {end, static_cast<std::uint32_t>(stop - end), advanced(was, end - start)});
    if (start == p.home) {
      const std::uint64_t mine = range_of(p.home, p.words, height_of(r));
      if (stop > end) range_word(n).store(mine, std::memory_order_release);
      at(n).store(p.at, std::memory_order_release);
      range_word(n).store(mine, std::memory_order_release);
      there = true;
    } else {
      if (!there) insert(w, p);
      there = true;
      remove(w, partition, n);
    }
  }
  if (!there) insert(w, p);
  if (left_end > p.home) range_word(left).store(range_of(start_of(lr), static_cast<std::uint32_t>(p.home - start_of(lr)), height_of(lr)), std::memory_order_release);
}

std::uint32_t home_map::move(writer& w, piece from, place to) noexcept {
  const std::uint64_t partition = partition_of(from.home);
  std::uint32_t moved = 0;
  lock(partition);
  for (std::uint32_t done = 0; done < from.words;) {
    std::uint32_t next;
    const std::uint64_t home = from.home + done;
    const std::uint32_t n = last_at_or_before(home, next);
    const std::uint64_t r = n != 0 ? range(n) : 0, into = home - start_of(r);
    if (n == 0 || into >= length_of(r)) {
      done = next == 0 ? from.words : static_cast<std::uint32_t>(std::min<std::uint64_t>(from.words, start_of(range(next)) - from.home));
      continue;
    }
    const std::uint32_t run = static_cast<std::uint32_t>(std::min<std::uint64_t>(length_of(r) - into, from.words - done));
    if (advanced(at(n).load(std::memory_order_relaxed), into) == advanced(from.at, done)) {
      ledger_.used(advanced(to, done), weight_of(to, run));
      map_in_list(w, partition, {home, run, advanced(to, done)});
      moved += run;
    }
    done += run;
  }
  unlock(partition);
  return moved;
}

void home_map::forget(writer& w, piece p) noexcept {
  const std::uint64_t partition = partition_of(p.home);
  lock(partition);
  for (std::uint32_t next, n = last_at_or_before(p.home, next), after; (n = n != 0 ? n : next) != 0; n = after) {
    const std::uint64_t r = range(n);
    if (start_of(r) >= p.home + p.words) break;
    after = link(partition, n, 0).load(std::memory_order_relaxed);
    if (start_of(r) >= p.home && at(n).load(std::memory_order_relaxed) == p.at) {
      ledger_.unused(p.at, weight_of(p.at, 0));
      remove(w, partition, n);
    }
    next = 0;
    if (after == 0) break;
  }
  unlock(partition);
}

}  // namespace stele::storage
