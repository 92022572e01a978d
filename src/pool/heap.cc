// Allocates and frees inside transactions; see heap.h for the invariants.
#include <base/assert.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/heap.h>

#include <algorithm>

#include <base/check.h>

namespace stele::storage {

using base::fail;
using base::mutant;
using format::chunk_descriptor;
using format::chunk_kind;

static_assert(format::block_class_count <= 256, "memory has a byte for a chunk's class");

namespace {

// Blocks moved at once between a thread's list and the shared one, and the most free blocks of a
// class in a thread's list. A thread keeps few large blocks from the others.
constexpr std::size_t refill_batch_of(unsigned size_class) noexcept {
  return is_large(size_class) ? 1 : 32;
}
constexpr std::size_t cache_limit_of(unsigned size_class) noexcept {
  return is_large(size_class) ? 8 : 8192;
}

// Whether the chunk may have this descriptor. Pools of version 1 have no large slabs, and none of
// the classes of odd multiples of 8.
bool is_possible(const chunk_descriptor& d, const format::pool_header& h, std::uint64_t chunk) {
  const std::size_t chunk_size = std::size_t{1} << h.chunk_shift;
  const bool has_large = h.version >= format::large_slab_version;
  const unsigned classes = has_large ? format::size_class_count : format::first_odd_class;
  if (format::is_run_head(d.kind) && (d.length < 1 || d.length > h.chunk_count - chunk))
    return false;
  if (d.kind == chunk_kind::small)
    return d.size_class < classes &&
           format::class_size(d.size_class) <= format::max_slab_block_size(chunk_size);
  if (d.kind == chunk_kind::large_slab)
    return has_large && d.size_class < format::large_shapes.size() &&
           d.length == format::large_shapes[d.size_class].chunks;
  return d.kind <= format::last_chunk_kind;
}

[[gnu::noinline]] bool write_derived_state(block_states& states, heap_writer& w, const slab& s,
                                           std::uint32_t number, bool used) {
  return states.set_used(w, s, number, used);
}

}  // namespace

heap::heap(const pool_file& file, const std::atomic<bool>* lost)
    : file_(file), lost_(lost), in_place_(file), plan_(make_plan(file.header().chunk_count)) {
  for (unsigned k = 0; k < format::block_class_count; ++k)
    classes_[k] = block_class_of(chunk_size(), k);
}

// Changes the state of a block of the slab that begins at `chunk`, in the running transaction.
// False: the state was the same before.
bool heap::write_block_state(writer& w, std::uint64_t chunk, unsigned size_class,
                             std::uint32_t number, bool used) {
  if (states_ == &in_place_) [[likely]]  // without a virtual call
    return in_place_.set_used(w, chunk_offset(chunk) + number, used);
  return write_derived_state(*states_, w, slab_of(chunk, size_class), number, used);
}

void heap::restore_block_state(const changes::block& b, bool used) noexcept {
  if (states_ == &in_place_) return;
  const std::uint64_t chunk = slab_chunk_of(b.offset, b.size_class);
  const auto inside = static_cast<std::uint32_t>(b.offset - chunk_offset(chunk));
  states_->restore(slab_of(chunk, b.size_class), block_number(inside, b.size_class), used);
}

bool heap::free_chunks_are_known() const noexcept {
  const auto first = std::find(free_chunks_.begin(), free_chunks_.end(), true);
  return free_chunks_.size() == chunks_.size() &&
         std::count(first, free_chunks_.end(), true) ==
             static_cast<std::ptrdiff_t>(free_chunk_count_) &&
         first - free_chunks_.begin() >=
             static_cast<std::ptrdiff_t>(std::min(next_fit_chunk_, free_chunks_.size()));
}

result<chunk_descriptor> heap::descriptor(std::uint64_t chunk) const {
  STELE_ASSERT(chunk < file_.header().chunk_count);
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
  if (!is_possible(d, file_.header(), chunk))
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
  // What is written is what descriptor() accepts; pool.md: with magic words, no word is 0.
  STELE_ASSERT(chunk < file_.header().chunk_count && is_possible(d, file_.header(), chunk));
  STELE_ASSERT(d.pack() != 0 || !has_magic().value_or(false));
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
  STELE_ASSERT_ALWAYS(chunk_of(h.table_offset) < chunks_.size());
  const chunk_info& info = chunks_[chunk_of(h.table_offset)];
  if (info.kind == chunk_kind::table && info.length >= table_chunk_count(h, h.chunk_count))
    return {};
  return fail(errc::corrupt, fmt::format("{}: the chunks that its chunk table lies in are not "
                                         "marked as such; restore the pool from a copy",
                                         file_.path()));
}

result<> heap::load(block_states* states) {
  STELE_ASSERT_ALWAYS(chunks_.empty() && free_chunk_count_ == 0);  // once
  states_ = states != nullptr ? states : &in_place_;
  const std::size_t count = file_.header().chunk_count;
  chunks_ = std::vector<chunk_info>(count);
  free_chunks_.assign(count, false);
  plan_ = make_plan(count);
  if (auto there = check_home_magic(); !there) return there;
  for (std::uint64_t chunk = 0; chunk < count;) {
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    if (d->kind == chunk_kind::tail)
      return fail(errc::corrupt, fmt::format("{}: chunk {} continues an extent that nothing begins",
                                             file_.path(), chunk));
    // heap.md: a run ends within the heap. descriptor() refuses others.
    STELE_ASSERT_ALWAYS(!format::is_run_head(d->kind) ||
                        (d->length != 0 && d->length <= count - chunk));
    chunk_info& info = chunks_[chunk];
    info.kind = d->kind;
    if (d->kind == chunk_kind::free) {
      free_chunks_[chunk] = true;
      ++free_chunk_count_;
    }
    if (is_slab(d->kind)) {
      STELE_ASSERT_ALWAYS(class_of(*d) < format::block_class_count &&
                          classes_[class_of(*d)].capacity != 0);
      info.size_class = static_cast<std::uint8_t>(class_of(*d));
      info.free_list_built = false;
      unscanned_slabs_[info.size_class].push_back(static_cast<std::uint32_t>(chunk));
    }
    if (format::is_run_head(d->kind)) {
      info.length = d->length;
      for (std::uint32_t i = 1; i < d->length; ++i)
        chunks_[chunk + i].kind = chunk_kind::tail, chunks_[chunk + i].length = i;
    }
    chunk += format::is_run_head(d->kind) ? d->length : 1;
  }
  if (auto in_place = check_table_chunks(); !in_place) return in_place;
  for (auto& list : unscanned_slabs_) std::reverse(list.begin(), list.end());
  STELE_ASSERT_WHOLE(free_chunks_are_known());
  return {};
}

// Inlined: a call would spill registers on the way of every allocation.
[[gnu::always_inline]] inline result<std::uint64_t> heap::allocate_block(thread_cache& c,
                                                                         changes& t, writer& w,
                                                                         unsigned size_class) {
  auto& list = c.free[size_class];
  if (list.empty()) [[unlikely]] {
    honor_recall(c, t);
    if (auto filled = refill(c, t, w, size_class); !filled) return std::unexpected(filled.error());
  }
  STELE_ASSERT(!list.empty());
  const std::uint64_t block = list.back();
  t.allocated.push_back({block, size_class});
  list.pop_back();
  STELE_ASSERT(is_block(t.allocated.back()));
  const std::uint64_t chunk = slab_chunk_of(block, size_class);
  const auto inside = static_cast<std::uint32_t>(block - chunk_offset(chunk));
  (void)write_block_state(w, chunk, size_class, block_number(inside, size_class), true);
  return block;
}

result<std::uint64_t> heap::allocate(thread_cache& c, changes& t, writer& w, std::size_t size,
                                     std::size_t alignment) {
  if (alignment > 4096)
    return fail(errc::invalid_argument,
                fmt::format("alignment {} is not possible in a pool; 4096 is the most", alignment));
  if (size == 0) size = 1;
  if (size > file_.header().size) return out_of_space(size);
  if (alignment > detail::line_size) return allocate_extent(t, w, size);
  const unsigned size_class = plan_.class_for(size, alignment);
  STELE_ASSERT(size_class == size_plan::extent || classes_[size_class].block_size >= size);
  if (size_class < format::size_class_count) [[likely]]
    return allocate_block(c, t, w, size_class);
  return allocate_large(c, t, w, size, alignment);
}

[[gnu::noinline]] result<std::uint64_t> heap::allocate_large(thread_cache& c, changes& t, writer& w,
                                                             std::size_t size,
                                                             std::size_t alignment) {
  const unsigned planned = plan_.class_for(size, alignment);
  if (planned == size_plan::extent) return allocate_extent(t, w, size);
  STELE_ASSERT(is_large(planned) && file_.header().home == format::home_kind::in_place);
  auto block = allocate_block(c, t, w, planned);
  if (block) return block;
  // No run is long enough for a large slab.
  const unsigned shorter = plan_.fallback_for(size, alignment);
  STELE_ASSERT(shorter == size_plan::extent ||
               (!is_large(shorter) && classes_[shorter].block_size >= size));
  return shorter == size_plan::extent ? allocate_extent(t, w, size)
                                      : allocate_block(c, t, w, shorter);
}

result<> heap::refill(thread_cache& c, changes& t, writer& w, unsigned size_class) {
  if (take_free_blocks(c, size_class)) {
    // The states in a lost page read as those of free blocks, which may be used.
    if (lost_ == nullptr || !lost_->load()) return {};
    return fail(
        errc::poisoned,
        fmt::format("{}: an earlier write failed, or part of the file is gone (truncated, or "
                    "unreadable); reopen the pool, or restore it from a copy",
                    file_.path()));
  }
  return new_slab(c, t, w, size_class);
}

bool heap::take_free_blocks(thread_cache& c, unsigned size_class) {
  STELE_ASSERT(c.free[size_class].empty());
  const std::lock_guard hold(mutex_);
  auto& shared = central_free_[size_class];
  while (shared.empty() && !unscanned_slabs_[size_class].empty())
    build_free_list(unscanned_slabs_[size_class].back());
  const std::size_t moved = std::min(refill_batch_of(size_class), shared.size());
  c.free[size_class].insert(c.free[size_class].end(),
                            shared.end() - static_cast<std::ptrdiff_t>(moved), shared.end());
  shared.resize(shared.size() - moved);
  STELE_ASSERT(c.free[size_class].size() == moved);
  // heap.md: a new slab is made when no block of the class is free, those of earlier sessions
  // included.
  STELE_ASSERT(moved != 0 || (shared.empty() && unscanned_slabs_[size_class].empty()));
  return moved != 0;
}

// Adds the free blocks of an earlier session's slab to the lists, as their states in home say: no
// block was taken or freed in this session, since both need the lists. The caller holds mutex_.
void heap::build_free_list(std::uint64_t chunk) {
  STELE_ASSERT(chunk < chunks_.size());
  chunk_info& info = chunks_[chunk];
  if (info.free_list_built.load(std::memory_order_relaxed)) return;
  auto& unlisted = unscanned_slabs_[info.size_class];
  const slab blocks = slab_of(chunk, info.size_class);
  // Nothing is allocated after this: all blocks are listed or none.
  central_free_[info.size_class].reserve(central_free_[info.size_class].size() +
                                         blocks.layout.capacity);
  states_->prepare(blocks);
  const auto place = std::find(unlisted.begin(), unlisted.end(), static_cast<std::uint32_t>(chunk));
  STELE_ASSERT(place != unlisted.end());  // not listed yet, so it is in the list of those
  unlisted.erase(place);
  const bool reads = !planted(mutant::heap_stale_list), in_place = states_ == &in_place_ && reads;
  for (std::uint32_t i = blocks.layout.capacity; i-- > 0;)
    if (in_place && i % 8 == 7 && in_place_.are_used(blocks, i - 7))
      i -= 7;
    else if (reads && states_->is_used(blocks, i))
      states_->restore(blocks, i, true);
    else
      central_free_[info.size_class].push_back(blocks.block_offset(i));
  STELE_ASSERT_WHOLE(std::find(unlisted.begin(), unlisted.end(), chunk) == unlisted.end());
  info.free_list_built.store(true, std::memory_order_release);
}

result<> heap::new_slab(thread_cache& c, changes& t, writer& w, unsigned size_class) {
  const std::uint32_t count = classes_[size_class].chunks;
  auto& list = c.free[size_class];
  STELE_ASSERT(count != 0 && classes_[size_class].capacity != 0 && list.empty());
  list.reserve(list.size() + classes_[size_class].capacity);
  base::reserve_more(t.runs_allocated, 1);
  std::uint32_t chunk;
  {
    const std::lock_guard hold(mutex_);
    const auto taken = allocate_run(count);
    if (!taken) return out_of_space(classes_[size_class].block_size);
    chunk = *taken;
  }
  STELE_ASSERT(t.runs_allocated.size() < t.runs_allocated.capacity());
  t.runs_allocated.push_back({chunk, count, true});
  chunks_[chunk].size_class = static_cast<std::uint8_t>(size_class);
  chunks_[chunk].free_list_built.store(true, std::memory_order_relaxed);
  describe_run(w, chunk, slab_head(size_class), count);
  const slab blocks = slab_of(chunk, size_class);
  STELE_ASSERT(blocks.layout.capacity <= blocks.layout.first);  // heap.md: states before blocks
  states_->prepare(blocks);
  w.claim(blocks.offset, blocks.layout.first);
  if (!is_large(size_class) || !planted(mutant::heap_large_stale)) states_->clear(w, blocks);
  for (std::uint32_t i = blocks.layout.capacity; i-- > 0;) list.push_back(blocks.block_offset(i));
  return {};
}

// Gives a reserved run its descriptors, in memory and in the transaction.
void heap::describe_run(writer& w, std::uint32_t first, chunk_descriptor head,
                        std::uint32_t count) {
  // heap.md L1 and extents: head and further chunks in one transaction.
  STELE_ASSERT(count != 0 && first + std::uint64_t{count} <= chunks_.size());
  STELE_ASSERT(format::is_run_head(head.kind) ? head.length == count : count == 1);
  chunks_[first].length = count;
  chunks_[first].kind.store(head.kind, std::memory_order_release);
  if (head.kind != chunk_kind::small || !planted(mutant::heap_no_descriptor))
    write_descriptor(w, first, head);
  const bool no_tail = head.kind == chunk_kind::large_slab && planted(mutant::heap_large_no_tail);
  for (std::uint32_t i = 1; i < count; ++i) {
    chunks_[first + i].length = i;
    chunks_[first + i].kind.store(chunk_kind::tail, std::memory_order_release);
    if (!no_tail) write_descriptor(w, first + i, {chunk_kind::tail, 0, 0});
  }
}

void heap::describe_free(writer& w, const changes::run& r) {
  // heap.md L4 and extents: all chunks of the run in one transaction.
  STELE_ASSERT(r.count != 0 && r.first + std::uint64_t{r.count} <= chunks_.size());
  const bool all_but_last =
      planted(r.slab ? mutant::heap_large_short_free : mutant::heap_short_extent);
  const std::uint32_t count = all_but_last && r.count > 1 ? r.count - 1 : r.count;
  for (std::uint32_t i = 0; i < count; ++i) write_descriptor(w, r.first + i, free_chunk());
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
  const auto length = static_cast<std::uint32_t>(count);
  STELE_ASSERT(std::size_t{length} * chunk_size() >= size && chunk_offset(first) % 4096 == 0);
  t.runs_allocated.push_back({first, length, false});
  describe_run(w, first, {chunk_kind::extent, 0, length}, length);
  return chunk_offset(first);
}

result<> heap::deallocate(thread_cache& c, changes& t, writer& w, std::uint64_t offset) {
  auto refuse = [&](const char* why) {
    return fail(errc::invalid_argument,
                fmt::format("{}: offset {} cannot be freed: {}", file_.path(), offset, why));
  };
  if (offset < file_.header().chunks_offset || chunk_of(offset) >= chunks_.size())
    return refuse("it is outside the heap");
  std::uint64_t chunk = chunk_of(offset);
  if (chunks_[chunk].kind.load(std::memory_order_acquire) != chunk_kind::small) [[unlikely]] {
    chunk = run_head_of(chunk);
    const chunk_kind kind = chunks_[chunk].kind.load(std::memory_order_acquire);
    if (kind == chunk_kind::extent && offset == chunk_offset(chunk))
      return deallocate_extent(t, w, chunk);
    if (kind != chunk_kind::large_slab) return refuse("no object starts there");
  }
  STELE_ASSERT(chunk < chunks_.size());
  chunk_info& info = chunks_[chunk];
  const unsigned size_class = info.size_class;
  STELE_ASSERT(classes_[size_class].capacity != 0);
  const block_class& blocks = classes_[size_class];
  const auto inside = static_cast<std::uint32_t>(offset - chunk_offset(chunk)) - blocks.first,
             size = static_cast<std::uint32_t>(blocks.block_size), number = inside / size;
  if (number >= blocks.capacity || inside % size != 0)  // a state is at a large number
    return refuse("no object starts there");
  if (!info.free_list_built.load(std::memory_order_acquire)) {
    const std::lock_guard hold(mutex_);
    build_free_list(chunk);
  }
  if (states_ != &in_place_) states_->free_range(w, offset, size);
  base::reserve_more(t.freed, 1);  // before the state changes: a block marked free is in the list
  if (!write_block_state(w, chunk, size_class, number, false)) return refuse("it is free already");
  honor_recall(c, t);
  if (c.free[size_class].size() > cache_limit_of(size_class) && t.runs_allocated.empty())
    return_excess_blocks(c, size_class);
  if (planted(mutant::heap_free_early))
    c.free[size_class].push_back(offset);
  else {
    STELE_ASSERT(t.freed.size() < t.freed.capacity());  // the state has changed: this may not fail
    t.freed.push_back({offset, size_class});
  }
  return {};
}

result<> heap::deallocate_extent(changes& t, writer& w, std::uint64_t chunk) {
  const std::uint32_t count = chunks_[chunk].length;
  STELE_ASSERT(count != 0);
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
  describe_free(w, {static_cast<std::uint32_t>(chunk), count, false});
  return {};
}

std::optional<heap::block_place> heap::used_block_of(writer& w, const changes& t,
                                                     std::uint64_t offset) const {
  if (offset < file_.header().chunks_offset || chunk_of(offset) >= chunks_.size())
    return std::nullopt;
  const std::uint64_t chunk = run_head_of(chunk_of(offset));
  const chunk_kind kind = chunks_[chunk].kind.load(std::memory_order_acquire);
  if (kind == chunk_kind::extent) {
    if (std::ranges::any_of(t.runs_freed, [&](const auto& r) { return r.first == chunk; }))
      return std::nullopt;
    return block_place{chunk_offset(chunk), chunks_[chunk].length * chunk_size()};
  }
  if (!is_slab(kind)) return std::nullopt;
  const slab blocks = slab_of(chunk, chunks_[chunk].size_class);
  const std::uint64_t inside = offset - blocks.offset;
  if (inside < blocks.layout.first) return std::nullopt;
  const auto number =
      static_cast<std::uint32_t>((inside - blocks.layout.first) / blocks.block_size);
  if (number >= blocks.layout.capacity) return std::nullopt;
  if (states_ == &in_place_ && w.read_private(blocks.offset + number, 1) != format::block_used)
    return std::nullopt;
  return block_place{blocks.block_offset(number), blocks.block_size};
}

void heap::apply(thread_cache& c, changes& t) noexcept {
  for (const auto& b : t.freed) {
    STELE_ASSERT(is_block(b));
    push_free(c.free[b.size_class], b.offset);
    if (planted(mutant::heap_freed_twice)) push_free(c.free[b.size_class], b.offset);
    STELE_ASSERT(c.free[b.size_class].size() < 2 ||
                 c.free[b.size_class].back() != *(c.free[b.size_class].end() - 2));
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
    STELE_ASSERT(is_block(*b));
    push_free(c.free[b->size_class], b->offset);
  }
  for (const auto& r : t.runs_allocated) {
    if (r.slab && !planted(mutant::heap_abort_keeps)) {
      const std::uint64_t begin = chunk_offset(r.first), end = begin + range_of(r).second;
      std::erase_if(c.free[chunks_[r.first].size_class],
                    [&](std::uint64_t b) { return b >= begin && b < end; });
    }
    // heap.md: a roll-back takes the blocks of a new slab out of the list.
    STELE_ASSERT_WHOLE(
        !r.slab || std::ranges::none_of(c.free[chunks_[r.first].size_class], [&](std::uint64_t b) {
          return b >= chunk_offset(r.first) && b - chunk_offset(r.first) < range_of(r).second;
        }));
    const std::lock_guard hold(mutex_);
    free_run(r.first, r.count);
  }
  for (const auto& r : t.runs_freed)
    if (r.slab) {  // by reclaim(): the blocks return to the list they came from
      const std::lock_guard hold(mutex_);
      const slab blocks = slab_of(r.first, chunks_[r.first].size_class);
      STELE_ASSERT(r.count == classes_[chunks_[r.first].size_class].chunks &&
                   !free_chunks_[r.first]);
      for (std::uint32_t i = 0; i < blocks.layout.capacity; ++i)
        push_free(central_free_[chunks_[r.first].size_class], blocks.block_offset(i));
    }
  t.clear();
}

void heap::return_cached_blocks(thread_cache& c) noexcept try {
  const std::lock_guard hold(mutex_);
  for (unsigned k = 0; k < format::block_class_count; ++k) {
    central_free_[k].insert(central_free_[k].end(), c.free[k].begin(), c.free[k].end());
    c.free[k].clear();
  }
} catch (const std::bad_alloc&) {
}

// Skipped if the transaction has made a slab: no other thread may get its blocks before it commits.
void heap::honor_recall(thread_cache& c, const changes& t) {
  if (!t.runs_allocated.empty()) return;
  const std::uint64_t now = recall_.load(std::memory_order_relaxed);
  STELE_ASSERT(c.seen_recall <= now);
  if (c.seen_recall != now) {
    c.seen_recall = now;
    return_cached_blocks(c);
  }
}

// Returns half of the limit, so that a thread keeps few free blocks of a size. Without memory for
// the shared list it keeps them: its caller has changed the state of a block, and may not fail.
void heap::return_excess_blocks(thread_cache& c, unsigned k) noexcept try {
  auto& list = c.free[k];
  STELE_ASSERT(list.size() > cache_limit_of(k));
  const std::lock_guard hold(mutex_);
  const auto returned = list.begin() + static_cast<std::ptrdiff_t>(cache_limit_of(k) / 2);
  central_free_[k].insert(central_free_[k].end(), list.begin(), returned);
  list.erase(list.begin(), returned);
} catch (const std::bad_alloc&) {
}

std::size_t heap::reclaim(thread_cache& c, changes& t, writer& w, std::size_t max_chunks) {
  STELE_ASSERT(t.empty());  // heap.md, a full pool: a transaction of its own
  c.seen_recall = recall_.fetch_add(1, std::memory_order_relaxed) + 1;
  return_cached_blocks(c);
  const std::lock_guard hold(mutex_);
  std::size_t reclaimed = 0;
  std::vector<changes::run> chosen;
  for (unsigned k = 0; k < format::block_class_count; ++k) {
    while (!unscanned_slabs_[k].empty()) build_free_list(unscanned_slabs_[k].back());
    std::vector<std::uint32_t> free_blocks(central_free_[k].empty() ? 0 : chunks_.size(), 0);
    for (std::uint64_t block : central_free_[k]) ++free_blocks[slab_chunk_of(block, k)];
    STELE_ASSERT(unscanned_slabs_[k].empty());
    const block_class& of_slab = classes_[k];
    const std::size_t before = t.runs_freed.size();
    for (std::uint32_t chunk = 0; chunk < free_blocks.size(); ++chunk) {
      STELE_ASSERT(free_blocks[chunk] <= of_slab.capacity);  // no block is in the list twice
      if (free_blocks[chunk] != of_slab.capacity) continue;
      STELE_ASSERT(chunks_[chunk].size_class == k && !free_chunks_[chunk]);
      if (reclaimed + of_slab.chunks > max_chunks) {
        free_blocks[chunk] = 0;  // stays in the list
      } else {
        chosen.push_back({chunk, of_slab.chunks, true});
        reclaimed += of_slab.chunks;
      }
    }
    t.runs_freed.reserve(before + chosen.size());
    std::erase_if(central_free_[k], [&](std::uint64_t block) {
      return free_blocks[slab_chunk_of(block, k)] == of_slab.capacity;
    });
    // Listed together with the removal of the blocks, so that a rollback restores them once.
    t.runs_freed.insert(t.runs_freed.end(), chosen.begin(), chosen.end());
    chosen.clear();
    for (std::size_t i = before; i < t.runs_freed.size(); ++i) describe_free(w, t.runs_freed[i]);
  }
  STELE_ASSERT(reclaimed <= max_chunks && (reclaimed == 0) == t.runs_freed.empty());
  return reclaimed;
}

result<std::uint64_t> heap::reserve_chunks(std::size_t bytes) {
  STELE_ASSERT(bytes != 0);
  const std::lock_guard hold(mutex_);
  const auto first = allocate_run((bytes + chunk_size() - 1) >> file_.header().chunk_shift);
  if (!first) return out_of_space(bytes);
  return chunk_offset(*first);
}

std::size_t heap::longest_free_run() const {
  const std::lock_guard hold(mutex_);
  std::size_t longest = 0, run = 0;
  for (const bool is_free : free_chunks_) longest = std::max(longest, run = is_free ? run + 1 : 0);
  return longest << file_.header().chunk_shift;
}

void heap::release_chunks(std::uint64_t offset, std::size_t bytes) noexcept {
  STELE_ASSERT(bytes != 0 && chunk_offset(chunk_of(offset)) == offset);
  const std::lock_guard hold(mutex_);
  free_run(static_cast<std::uint32_t>(chunk_of(offset)),
           static_cast<std::uint32_t>((bytes + chunk_size() - 1) >> file_.header().chunk_shift));
}

// First fit; a search for one chunk starts where the last one ended. The caller holds mutex_.
result<std::uint32_t> heap::allocate_run(std::size_t count) {
  STELE_ASSERT(count != 0);
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
    STELE_ASSERT_WHOLE(free_chunks_are_known());
    return static_cast<std::uint32_t>(first);
  }
  STELE_ASSERT(count != 1);  // a chunk that counts as free is found
  return fail(errc::full, "");
}

// The caller holds mutex_.
void heap::free_run(std::uint32_t first, std::uint32_t count) noexcept {
  STELE_ASSERT(count != 0 && first + std::uint64_t{count} <= chunks_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    STELE_ASSERT(!free_chunks_[first + i]);
    chunks_[first + i].kind.store(chunk_kind::free, std::memory_order_release);
    free_chunks_[first + i] = true;
  }
  free_chunk_count_ += count;
  next_fit_chunk_ = std::min<std::size_t>(next_fit_chunk_, first);
  STELE_ASSERT_WHOLE(free_chunks_are_known());
}

std::unexpected<error> heap::out_of_space(std::size_t size) const {
  return fail(errc::full, fmt::format("{}: no room for {} bytes; destroy something, or grow the "
                                      "pool (grow, or the command `stele pool resize`)",
                                      file_.path(), size));
}

}  // namespace stele::storage
