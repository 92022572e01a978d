// Allocates and frees inside transactions; see heap.h for the invariants.
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/heap.h>

#include <algorithm>

#include <base/check.h>

namespace stele::storage {

using base::fail;
using base::mutant;
using base::planted;
using format::chunk_descriptor;
using format::chunk_kind;
using format::class_size;

namespace {

// Blocks moved at once between a thread's list and the shared one.
constexpr std::size_t refill_batch = 32;
constexpr std::size_t cache_limit = 8192;  // most free blocks of a class in a thread's list

}  // namespace

heap::heap(const pool_file& file) : file_(file), in_place_(file) {
  for (unsigned k = 0; k < format::size_class_count; ++k)
    slab_layouts_[k] = class_size(k) <= format::max_slab_block_size(chunk_size())
                           ? format::slab_layout_of(chunk_size(), class_size(k))
                           : format::slab_layout{};
}

// Changes the block's state in the running transaction. False: the state was the same before.
bool heap::write_block_state(writer& w, std::uint64_t block, unsigned size_class, bool used) {
  const std::uint64_t chunk = chunk_of(block);
  const auto inside = static_cast<std::uint32_t>(block - chunk_offset(chunk));
  if (states_ == &in_place_) [[likely]]  // without a virtual call
    return in_place_.set_used(w, chunk_offset(chunk) + block_number(inside, size_class), used);
  return write_derived_state(w, block, size_class, used);
}
[[gnu::noinline]] bool heap::write_derived_state(writer& w, std::uint64_t block,
                                                 unsigned size_class, bool used) {
  const std::uint64_t chunk = chunk_of(block);
  const auto inside = static_cast<std::uint32_t>(block - chunk_offset(chunk));
  return states_->set_used(w, slab_of(chunk, size_class), block_number(inside, size_class), used);
}

void heap::restore_block_state(const changes::block& b, bool used) noexcept {
  if (states_ == &in_place_) return;
  const std::uint64_t chunk = chunk_of(b.offset);
  const auto inside = static_cast<std::uint32_t>(b.offset - chunk_offset(chunk));
  states_->restore(slab_of(chunk, b.size_class), block_number(inside, b.size_class), used);
}

result<chunk_descriptor> heap::descriptor(std::uint64_t chunk) const {
  const std::uint64_t word = word_at(descriptor_offset(chunk));
  const auto value = format::unguard(word, file_.header().id, descriptor_offset(chunk));
  if (word == 0 && has_magic().value_or(true) && !planted(mutant::sums_zero_unjudged))
    return fail(
        errc::corrupt,
        fmt::format("{}: the descriptor of chunk {} has been zeroed; restore the pool from a copy",
                    file_.path(), chunk));
  if (!value)
    return fail(errc::corrupt, fmt::format("{}: the descriptor of chunk {} is damaged (check bits)",
                                           file_.path(), chunk));
  const auto d = chunk_descriptor::unpack(*value);
  const bool sane = d.kind <= chunk_kind::table &&
                    (d.kind != chunk_kind::small ||
                     (d.size_class < format::size_class_count &&
                      class_size(d.size_class) <= format::max_slab_block_size(chunk_size()))) &&
                    (!format::is_run_head(d.kind) ||
                     (d.length >= 1 && d.length <= file_.header().chunk_count - chunk));
  if (!sane)
    return fail(errc::corrupt,
                fmt::format("{}: the descriptor of chunk {} makes no sense", file_.path(), chunk));
  return d;
}

std::optional<bool> heap::has_magic() const noexcept {
  const auto word =
      format::read_control_word(file_.base(), file_.header().id, format::magic_state_offset);
  return word ? std::optional(*word != 0) : std::nullopt;
}

void heap::for_each_magic_word(const std::function<void(std::uint64_t, std::uint64_t)>& put) const {
  const auto& h = file_.header();
  const std::uint64_t magic_at = h.home_offset + offsetof(format::home_header, magic);
  put(magic_at, format::guard(format::home_magic, h.id, magic_at));
  for (std::uint64_t chunk = 0; chunk < h.chunk_count; ++chunk)
    if (word_at(descriptor_offset(chunk)) == 0)
      put(descriptor_offset(chunk),
          format::guard(chunk_descriptor::nonzero_free().pack(), h.id, descriptor_offset(chunk)));
}

result<> heap::check_home_magic() const {
  const auto& h = file_.header();
  if (h.home != format::home_kind::in_place || planted(mutant::sums_zero_unjudged)) return {};
  const auto magic = has_magic();
  if (!magic)
    return fail(errc::corrupt, fmt::format("{}: the word that says whether its home is marked is "
                                           "damaged (check bits); restore the pool from a copy",
                                           file_.path()));
  const std::uint64_t magic_at = h.home_offset + offsetof(format::home_header, magic);
  if (!*magic || word_at(magic_at) == format::guard(format::home_magic, h.id, magic_at)) return {};
  return fail(errc::corrupt,
              fmt::format("{}: the header of its home (offset {}) lacks its mark: it has been "
                          "overwritten or zeroed; restore the pool from a copy",
                          file_.path(), h.home_offset));
}

void heap::write_descriptor(writer& w, std::uint64_t chunk, chunk_descriptor d) {
  w.write_private(descriptor_offset(chunk),
                  format::guard(d.pack(), file_.header().id, descriptor_offset(chunk)), 8);
}

// Adds a free block to a list. Without memory for the list, the block stays unused until the pool
// is opened again; nothing is lost.
inline void heap::push_free(std::vector<std::uint64_t>& list, std::uint64_t block) noexcept try {
  list.push_back(block);
} catch (const std::bad_alloc&) {
}

// The chunk table of a grown pool lies in chunks; their descriptors must say so, or they could be
// allocated.
result<> heap::check_table_chunks() const {
  const auto& h = file_.header();
  if (h.table_offset < h.chunks_offset) return {};
  const chunk_info& info = chunks_[chunk_of(h.table_offset)];
  if (info.kind == chunk_kind::table && info.length >= table_chunk_count(h, h.chunk_count))
    return {};
  return fail(errc::corrupt, fmt::format("{}: the chunks that its chunk table lies in are not "
                                         "marked as such; restore the pool from a copy",
                                         file_.path()));
}

result<> heap::load(block_states* states) {
  states_ = states != nullptr ? states : &in_place_;
  const std::size_t count = file_.header().chunk_count;
  chunks_ = std::vector<chunk_info>(count);
  free_chunks_.assign(count, false);
  if (auto there = check_home_magic(); !there) return there;
  for (std::uint64_t chunk = 0; chunk < count;) {
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    if (d->kind == chunk_kind::tail)
      return fail(errc::corrupt, fmt::format("{}: chunk {} continues an extent that nothing begins",
                                             file_.path(), chunk));
    chunk_info& info = chunks_[chunk];
    info.kind = d->kind;
    if (d->kind == chunk_kind::free) {
      free_chunks_[chunk] = true;
      ++free_chunk_count_;
    } else if (d->kind == chunk_kind::small) {
      info.size_class = d->size_class;
      info.free_list_built = false;
      unscanned_slabs_[d->size_class].push_back(static_cast<std::uint32_t>(chunk));
    } else {
      info.length = d->length;
      for (std::uint32_t i = 1; i < d->length; ++i) chunks_[chunk + i].kind = chunk_kind::tail;
    }
    chunk += format::is_run_head(d->kind) ? d->length : 1;
  }
  if (auto in_place = check_table_chunks(); !in_place) return in_place;
  for (auto& list : unscanned_slabs_) std::reverse(list.begin(), list.end());
  return {};
}

result<std::uint64_t> heap::allocate(thread_cache& c, changes& t, writer& w, std::size_t size,
                                     std::size_t alignment) {
  if (alignment > 4096)
    return fail(errc::invalid_argument,
                fmt::format("alignment {} is not possible in a pool; 4096 is the most", alignment));
  if (size == 0) size = 1;
  if (size > file_.header().size) return out_of_space(size);
  if (size > format::max_slab_block_size(chunk_size()) || alignment > detail::line_size)
    return allocate_extent(t, w, size);
  unsigned size_class = format::size_class_for(size);
  if (alignment > 16)
    while (class_size(size_class) % detail::line_size != 0) ++size_class;
  if (class_size(size_class) > format::max_slab_block_size(chunk_size()))
    return allocate_extent(t, w, size);
  return allocate_small(c, t, w, size_class);
}

result<std::uint64_t> heap::allocate_small(thread_cache& c, changes& t, writer& w,
                                           unsigned size_class) {
  auto& list = c.free[size_class];
  if (list.empty()) {
    honor_recall(c, t);
    if (!refill(c, size_class))
      if (auto made = new_slab(c, t, w, size_class); !made) return std::unexpected(made.error());
  }
  const std::uint64_t block = list.back();
  t.allocated.push_back({block, size_class});
  list.pop_back();
  (void)write_block_state(w, block, size_class, true);
  return block;
}

bool heap::refill(thread_cache& c, unsigned size_class) {
  const std::lock_guard hold(mutex_);
  auto& shared = central_free_[size_class];
  while (shared.empty() && !unscanned_slabs_[size_class].empty())
    build_free_list(unscanned_slabs_[size_class].back());
  const std::size_t moved = std::min(refill_batch, shared.size());
  c.free[size_class].insert(c.free[size_class].end(),
                            shared.end() - static_cast<std::ptrdiff_t>(moved), shared.end());
  shared.resize(shared.size() - moved);
  return moved != 0;
}

// Adds the free blocks of an earlier session's slab to the lists, as their states in home say: no
// block was taken or freed in this session, since both need the lists. The caller holds mutex_.
void heap::build_free_list(std::uint64_t chunk) {
  chunk_info& info = chunks_[chunk];
  if (info.free_list_built.load(std::memory_order_relaxed)) return;
  auto& unlisted = unscanned_slabs_[info.size_class];
  const auto layout = slab_layouts_[info.size_class];
  // Nothing is allocated after this: all blocks are listed or none.
  central_free_[info.size_class].reserve(central_free_[info.size_class].size() + layout.capacity);
  const slab blocks = slab_of(chunk, info.size_class);
  states_->prepare(blocks);
  unlisted.erase(std::find(unlisted.begin(), unlisted.end(), static_cast<std::uint32_t>(chunk)));
  for (std::uint32_t i = layout.capacity; i-- > 0;)
    if (states_->is_used(blocks, i) && !planted(mutant::heap_stale_list))
      states_->restore(blocks, i, true);
    else
      central_free_[info.size_class].push_back(blocks.block_offset(i));
  info.free_list_built.store(true, std::memory_order_release);
}

result<> heap::new_slab(thread_cache& c, changes& t, writer& w, unsigned size_class) {
  const auto layout = slab_layouts_[size_class];
  auto& list = c.free[size_class];
  list.reserve(list.size() + layout.capacity);
  base::reserve_more(t.runs_allocated, 1);
  std::uint32_t chunk;
  {
    const std::lock_guard hold(mutex_);
    const auto taken = allocate_run(1);
    if (!taken) return out_of_space(class_size(size_class));
    chunk = *taken;
  }
  t.runs_allocated.push_back({chunk, 1, true});
  chunk_info& info = chunks_[chunk];
  info.size_class = static_cast<std::uint8_t>(size_class);
  info.free_list_built.store(true, std::memory_order_relaxed);
  info.kind.store(chunk_kind::small, std::memory_order_release);
  if (!planted(mutant::heap_no_descriptor))
    write_descriptor(w, chunk, {chunk_kind::small, static_cast<std::uint8_t>(size_class), 0});
  const slab blocks = slab_of(chunk, size_class);
  states_->prepare(blocks);
  w.claim(blocks.offset, layout.first);
  states_->clear(w, blocks);
  for (std::uint32_t i = layout.capacity; i-- > 0;) list.push_back(blocks.block_offset(i));
  return {};
}

result<std::uint64_t> heap::allocate_extent(changes& t, writer& w, std::size_t size) {
  const std::size_t count = (size + chunk_size() - 1) >> file_.header().chunk_shift;
  base::reserve_more(t.runs_allocated, 1);
  std::uint32_t first;
  {
    const std::lock_guard hold(mutex_);
    const auto taken = allocate_run(count);
    if (!taken) return out_of_space(size);
    first = *taken;
  }
  t.runs_allocated.push_back({first, static_cast<std::uint32_t>(count), false});
  chunks_[first].length = static_cast<std::uint32_t>(count);
  chunks_[first].kind.store(chunk_kind::extent, std::memory_order_release);
  write_descriptor(w, first, {chunk_kind::extent, 0, static_cast<std::uint32_t>(count)});
  for (std::size_t i = 1; i < count; ++i) {
    chunks_[first + i].kind.store(chunk_kind::tail, std::memory_order_relaxed);
    write_descriptor(w, first + i, {chunk_kind::tail, 0, 0});
  }
  return chunk_offset(first);
}

result<> heap::deallocate(thread_cache& c, changes& t, writer& w, std::uint64_t offset) {
  const std::uint64_t chunk = chunk_of(offset);
  auto refuse = [&](const char* why) {
    return fail(errc::invalid_argument,
                fmt::format("{}: offset {} cannot be freed: {}", file_.path(), offset, why));
  };
  if (offset < file_.header().chunks_offset || chunk >= chunks_.size())
    return refuse("it is outside the heap");
  chunk_info& info = chunks_[chunk];
  const chunk_kind kind = info.kind.load(std::memory_order_acquire);
  if (kind == chunk_kind::extent && offset == chunk_offset(chunk))
    return deallocate_extent(t, w, chunk);
  if (kind != chunk_kind::small) return refuse("no object starts there");
  const unsigned size_class = info.size_class;
  const auto layout = slab_layouts_[size_class];
  const auto inside = static_cast<std::uint32_t>(offset - chunk_offset(chunk)),
             size = static_cast<std::uint32_t>(class_size(size_class));
  if (inside < layout.first || (inside - layout.first) % size != 0 ||
      (inside - layout.first) / size >= layout.capacity)
    return refuse("no object starts there");
  if (!info.free_list_built.load(std::memory_order_acquire)) {
    const std::lock_guard hold(mutex_);
    build_free_list(chunk);
  }
  if (states_ != &in_place_) states_->free_range(w, offset, size);
  base::reserve_more(t.freed, 1);  // before the state changes: a block marked free is in the list
  if (!write_block_state(w, offset, size_class, false)) return refuse("it is free already");
  honor_recall(c, t);
  if (c.free[size_class].size() > cache_limit && t.runs_allocated.empty())
    return_excess_blocks(c, size_class);
  if (planted(mutant::heap_free_early))
    c.free[size_class].push_back(offset);
  else
    t.freed.push_back({offset, size_class});
  return {};
}

result<> heap::deallocate_extent(changes& t, writer& w, std::uint64_t chunk) {
  const std::uint32_t count = chunks_[chunk].length;
  const bool again = std::any_of(t.runs_freed.begin(), t.runs_freed.end(),
                                 [&](const changes::run& r) { return r.first == chunk; });
  if (again)
    return fail(errc::invalid_argument,
                fmt::format("{}: the extent at chunk {} is free already", file_.path(), chunk));
  states_->free_range(w, chunk_offset(chunk), std::size_t{count} << file_.header().chunk_shift);
  t.runs_freed.push_back({static_cast<std::uint32_t>(chunk), count, false});
  if (planted(mutant::heap_run_early)) {
    const std::lock_guard hold(mutex_);
    free_run(static_cast<std::uint32_t>(chunk), count);
    t.runs_freed.pop_back();
  }
  const std::uint32_t cleared = planted(mutant::heap_short_extent) && count > 1 ? count - 1 : count;
  for (std::uint32_t i = 0; i < cleared; ++i) write_descriptor(w, chunk + i, free_chunk());
  return {};
}

void heap::apply(thread_cache& c, changes& t) noexcept {
  for (const auto& b : t.freed) {
    push_free(c.free[b.size_class], b.offset);
    if (planted(mutant::heap_freed_twice)) push_free(c.free[b.size_class], b.offset);
  }
  for (const auto& r : t.runs_freed) {
    const std::lock_guard hold(mutex_);
    free_run(r.first, r.count);
  }
  t.clear();
}

void heap::rollback(thread_cache& c, changes& t) noexcept {
  for (const auto& b : t.freed) restore_block_state(b, true);
  for (auto b = t.allocated.rbegin(); b != t.allocated.rend(); ++b) {
    restore_block_state(*b, false);
    push_free(c.free[b->size_class], b->offset);
  }
  for (const auto& r : t.runs_allocated) {
    if (r.slab && !planted(mutant::heap_abort_keeps)) {
      const std::uint64_t begin = chunk_offset(r.first), end = begin + chunk_size();
      std::erase_if(c.free[chunks_[r.first].size_class],
                    [&](std::uint64_t b) { return b >= begin && b < end; });
    }
    const std::lock_guard hold(mutex_);
    free_run(r.first, r.count);
  }
  for (const auto& r : t.runs_freed)
    if (r.slab) {  // by reclaim(): the blocks return to the list they came from
      const std::lock_guard hold(mutex_);
      chunk_info& info = chunks_[r.first];
      const auto layout = slab_layouts_[info.size_class];
      for (std::uint32_t i = 0; i < layout.capacity; ++i)
        push_free(central_free_[info.size_class],
                  chunk_offset(r.first) + layout.first + i * class_size(info.size_class));
    }
  t.clear();
}

void heap::return_cached_blocks(thread_cache& c) noexcept try {
  const std::lock_guard hold(mutex_);
  for (unsigned k = 0; k < format::size_class_count; ++k) {
    central_free_[k].insert(central_free_[k].end(), c.free[k].begin(), c.free[k].end());
    c.free[k].clear();
  }
} catch (const std::bad_alloc&) {
}

// Skipped if the transaction has made a slab: no other thread may get its blocks before it commits.
void heap::honor_recall(thread_cache& c, const changes& t) {
  if (!t.runs_allocated.empty()) return;
  const std::uint64_t now = recall_.load(std::memory_order_relaxed);
  if (c.seen_recall != now) {
    c.seen_recall = now;
    return_cached_blocks(c);
  }
}

// Returns half of the limit, so that a thread keeps few free blocks of a size.
void heap::return_excess_blocks(thread_cache& c, unsigned k) {
  auto& list = c.free[k];
  const std::lock_guard hold(mutex_);
  central_free_[k].insert(central_free_[k].end(), list.begin(), list.begin() + cache_limit / 2);
  list.erase(list.begin(), list.begin() + cache_limit / 2);
}

std::size_t heap::reclaim(thread_cache& c, changes& t, writer& w, std::size_t max_slabs) {
  c.seen_recall = recall_.fetch_add(1, std::memory_order_relaxed) + 1;
  return_cached_blocks(c);
  const std::lock_guard hold(mutex_);
  std::size_t reclaimed = 0;
  std::vector<changes::run> chosen;
  for (unsigned k = 0; k < format::size_class_count; ++k) {
    while (!unscanned_slabs_[k].empty()) build_free_list(unscanned_slabs_[k].back());
    std::vector<std::uint32_t> free_blocks(central_free_[k].empty() ? 0 : chunks_.size(), 0);
    for (std::uint64_t block : central_free_[k]) ++free_blocks[chunk_of(block)];
    const auto capacity = slab_layouts_[k].capacity;
    const std::size_t before = t.runs_freed.size();
    for (std::uint32_t chunk = 0; chunk < free_blocks.size(); ++chunk) {
      if (free_blocks[chunk] != capacity) continue;
      if (reclaimed == max_slabs) {
        free_blocks[chunk] = 0;  // stays in the list
      } else {
        chosen.push_back({chunk, 1, true});
        ++reclaimed;
      }
    }
    t.runs_freed.reserve(before + chosen.size());
    std::erase_if(central_free_[k],
                  [&](std::uint64_t block) { return free_blocks[chunk_of(block)] == capacity; });
    // Listed together with the removal of the blocks, so that a rollback restores them once.
    t.runs_freed.insert(t.runs_freed.end(), chosen.begin(), chosen.end());
    chosen.clear();
    for (std::size_t i = before; i < t.runs_freed.size(); ++i)
      write_descriptor(w, t.runs_freed[i].first, free_chunk());
  }
  return reclaimed;
}

result<std::uint64_t> heap::reserve_chunks(std::size_t bytes) {
  const std::lock_guard hold(mutex_);
  const auto first = allocate_run((bytes + chunk_size() - 1) >> file_.header().chunk_shift);
  if (!first) return out_of_space(bytes);
  return chunk_offset(*first);
}

void heap::release_chunks(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard hold(mutex_);
  free_run(static_cast<std::uint32_t>(chunk_of(offset)),
           static_cast<std::uint32_t>((bytes + chunk_size() - 1) >> file_.header().chunk_shift));
}

// First fit; a search for one chunk starts where the last one ended. The caller holds mutex_.
result<std::uint32_t> heap::allocate_run(std::size_t count) {
  if (count > free_chunk_count_) return fail(errc::full, "");
  std::size_t length = 0;
  const std::size_t begin = count == 1 ? next_fit_chunk_ : 0;
  for (std::size_t i = begin; i < free_chunks_.size(); ++i) {
    length = free_chunks_[i] ? length + 1 : 0;
    if (length != count) continue;
    const std::size_t first = i + 1 - count;
    for (std::size_t k = first; k <= i; ++k) free_chunks_[k] = false;
    free_chunk_count_ -= count;
    if (count == 1) next_fit_chunk_ = i;
    return static_cast<std::uint32_t>(first);
  }
  return fail(errc::full, "");
}

// The caller holds mutex_.
void heap::free_run(std::uint32_t first, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    chunks_[first + i].kind.store(chunk_kind::free, std::memory_order_release);
    free_chunks_[first + i] = true;
  }
  free_chunk_count_ += count;
  next_fit_chunk_ = std::min<std::size_t>(next_fit_chunk_, first);
}

std::unexpected<error> heap::out_of_space(std::size_t size) const {
  return fail(errc::full, fmt::format("{}: no room for {} bytes; destroy something, or grow the "
                                      "pool (grow, or the command `stele pool resize`)",
                                      file_.path(), size));
}

result<> heap::for_each_run(bool used, const run_visitor& each) const {
  const std::uint64_t count = file_.header().chunk_count;
  std::uint64_t from = 0;
  for (std::uint64_t chunk = 0; chunk <= count; ++chunk) {
    if (chunk != count) {
      const auto d = descriptor(chunk);
      if (!d) return std::unexpected(d.error());
      if ((d->kind != chunk_kind::free) == used) continue;
    }
    if (chunk != from) each(chunk_offset(from), (chunk - from) << file_.header().chunk_shift);
    from = chunk + 1;
  }
  return {};
}

result<std::vector<std::uint64_t>> heap::build_grown_table(std::uint64_t chunk_count,
                                                           std::uint64_t table_chunk,
                                                           std::uint64_t table_length) const {
  std::vector<chunk_descriptor> all(chunk_count, free_chunk());
  for (std::uint64_t chunk = 0; chunk < file_.header().chunk_count;) {
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    const std::uint64_t length = format::is_run_head(d->kind) ? d->length : 1;
    for (std::uint64_t i = 0; i < length && d->kind != chunk_kind::table; ++i)
      all[chunk + i] = i == 0 ? *d : chunk_descriptor{chunk_kind::tail, 0, 0};
    chunk += length;
  }
  all[table_chunk] = {chunk_kind::table, 0, static_cast<std::uint32_t>(table_length)};
  for (std::uint64_t i = 1; i < table_length; ++i) all[table_chunk + i] = {chunk_kind::tail, 0, 0};
  std::vector<std::uint64_t> words;
  const std::uint64_t at =
      file_.header().chunks_offset + (table_chunk << file_.header().chunk_shift);
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk)
    words.push_back(format::guard(all[chunk].pack(), file_.header().id, at + 8 * chunk));
  return words;
}

void heap::reserve_growth(std::uint64_t chunk_count) {
  const std::lock_guard hold(mutex_);
  grown_chunks_ = std::vector<chunk_info>(chunk_count);
  free_chunks_.reserve(chunk_count);
}

// Existing chunks keep their state, except those of the former chunk table, which are free now.
result<> heap::apply_growth() {
  const std::lock_guard hold(mutex_);
  const std::size_t before = chunks_.size(), count = file_.header().chunk_count;
  std::vector<chunk_info> all = std::exchange(grown_chunks_, {});
  for (std::size_t i = 0; i < before; ++i) {
    all[i].kind.store(chunks_[i].kind.load());
    all[i].free_list_built.store(chunks_[i].free_list_built.load());
    all[i].size_class = chunks_[i].size_class;
    all[i].length = chunks_[i].length;
  }
  chunks_ = std::move(all);
  free_chunks_.resize(count, false);
  for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
    const bool table_before = chunk < before && chunks_[chunk].kind == chunk_kind::table;
    if (chunk < before && !table_before) continue;
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    const std::uint32_t length = table_before                   ? chunks_[chunk].length
                                 : format::is_run_head(d->kind) ? d->length
                                                                : 1;
    chunks_[chunk].length = d->length;
    chunks_[chunk].kind.store(d->kind);
    for (std::uint32_t i = 1; i < length; ++i)
      chunks_[chunk + i].kind.store(d->kind == chunk_kind::free ? chunk_kind::free
                                                                : chunk_kind::tail);
    if (d->kind == chunk_kind::free) {
      for (std::uint32_t i = 0; i < length; ++i) free_chunks_[chunk + i] = true;
      free_chunk_count_ += length;
    }
    chunk += length - 1;
  }
  return {};
}

result<heap::usage> heap::audit(const block_visitor& used) const {
  usage sum;
  std::uint64_t run = 0;
  for (std::uint64_t chunk = 0; chunk < chunks_.size();) {
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    run = d->kind == chunk_kind::free ? run + 1 : 0;
    sum.longest_free_run = std::max(sum.longest_free_run, run);
    std::uint64_t next = chunk + 1;
    if (d->kind == chunk_kind::free) {
      ++sum.free_chunks;
    } else if (d->kind == chunk_kind::small) {
      ++sum.used_chunks;
      if (auto fine = audit_slab(chunk, d->size_class, sum, used); !fine)
        return std::unexpected(fine.error());
    } else if (format::is_run_head(d->kind)) {
      next = chunk + d->length;
      for (std::uint64_t i = chunk + 1; i < next; ++i) {
        const auto part = descriptor(i);
        if (!part || part->kind != chunk_kind::tail)
          return fail(errc::corrupt,
                      fmt::format("{}: chunk {} should continue the extent of chunk {}",
                                  file_.path(), i, chunk));
      }
      sum.used_chunks += d->length;
      if (d->kind == chunk_kind::table) {
        sum.table_bytes += d->length * chunk_size();
      } else {
        ++sum.used_blocks;
        sum.used_bytes += d->length * chunk_size();
        if (used) used(chunk_offset(chunk), d->length * chunk_size());
      }
    } else {
      return fail(errc::corrupt, fmt::format("{}: chunk {} continues an extent that nothing begins",
                                             file_.path(), chunk));
    }
    chunk = next;
  }
  return sum;
}

void heap::for_each_block_left(const block_left_visitor& each) const {
  for (std::uint64_t chunk = 0; chunk < file_.header().chunk_count; ++chunk) {
    const auto d = descriptor(chunk);
    if (!d) continue;
    if (d->kind == chunk_kind::extent)
      each(chunk_offset(chunk), d->length * chunk_size(), descriptor_offset(chunk));
    if (d->kind != chunk_kind::small) continue;
    const slab blocks = slab_of(chunk, d->size_class);
    for (std::uint32_t i = 0; i < blocks.layout.capacity; ++i)
      if (states_->is_used(blocks, i))
        each(blocks.block_offset(i), blocks.block_size, blocks.offset + i);
  }
}

result<> heap::audit_slab(std::uint64_t chunk, unsigned size_class, usage& sum,
                          const block_visitor& used) const {
  const slab blocks = slab_of(chunk, size_class);
  if (auto fine = states_->verify(blocks); !fine) return fine;
  for (std::uint32_t i = 0; i < blocks.layout.capacity; ++i) {
    if (!states_->is_used(blocks, i)) {
      sum.free_blocks_bytes += blocks.block_size;
      continue;
    }
    ++sum.used_blocks;
    sum.used_bytes += blocks.block_size;
    if (used) used(blocks.block_offset(i), blocks.block_size);
  }
  return {};
}

}  // namespace stele::storage
