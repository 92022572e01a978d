// Walks over the whole heap: runs, growth, audit, what is left of a damaged one.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <pool/heap.h>

#include <algorithm>
#include <utility>

namespace stele::storage {

using base::fail;
using format::chunk_descriptor;
using format::chunk_kind;

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
  // grow.md step 1: the new table lies in new chunks.
  STELE_ASSERT_ALWAYS(chunk_count > file_.header().chunk_count && table_length != 0);
  STELE_ASSERT_ALWAYS(table_chunk >= file_.header().chunk_count && table_chunk < chunk_count &&
                      table_length <= chunk_count - table_chunk);
  std::vector<chunk_descriptor> all(chunk_count, free_chunk());
  for (std::uint64_t chunk = 0; chunk < file_.header().chunk_count;) {
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    const std::uint64_t length = format::is_run_head(d->kind) ? d->length : 1;
    STELE_ASSERT_ALWAYS(length != 0 && length <= file_.header().chunk_count - chunk);
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
  STELE_ASSERT_WHOLE(!has_magic().value_or(false) ||
                     std::find(words.begin(), words.end(), 0u) == words.end());
  return words;
}

void heap::reserve_growth(std::uint64_t chunk_count) {
  STELE_ASSERT_ALWAYS(chunk_count > chunks_.size());
  const std::lock_guard hold(mutex_);
  grown_chunks_ = std::vector<chunk_info>(chunk_count);
  grown_plan_ = make_plan(chunk_count);
  free_chunks_.reserve(chunk_count);
}

// Existing chunks keep their state, except those of the former chunk table, which are free now.
result<> heap::apply_growth() {
  const std::lock_guard hold(mutex_);
  const std::size_t before = chunks_.size(), count = file_.header().chunk_count;
  // reserve_growth() has made room for as many chunks as there are now: nothing is allocated.
  STELE_ASSERT_ALWAYS(grown_plan_.has_value() && grown_chunks_.size() == count && count > before);
  STELE_ASSERT_ALWAYS(free_chunks_.capacity() >= count && free_chunks_.size() == before);
  std::vector<chunk_info> all = std::exchange(grown_chunks_, {});
  for (std::size_t i = 0; i < before; ++i) {
    all[i].kind.store(chunks_[i].kind.load());
    all[i].free_list_built.store(chunks_[i].free_list_built.load());
    all[i].size_class = chunks_[i].size_class;
    all[i].length = chunks_[i].length;
  }
  chunks_ = std::move(all);
  plan_ = std::move(*grown_plan_);
  free_chunks_.resize(count, false);
  for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
    const bool table_before = chunk < before && chunks_[chunk].kind == chunk_kind::table;
    if (chunk < before && !table_before) continue;
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    const std::uint32_t length = table_before                   ? chunks_[chunk].length
                                 : format::is_run_head(d->kind) ? d->length
                                                                : 1;
    STELE_ASSERT_ALWAYS(length != 0 && length <= count - chunk);
    chunks_[chunk].length = d->length;
    chunks_[chunk].kind.store(d->kind);
    for (std::uint32_t i = 1; i < length; ++i) {
      chunks_[chunk + i].length = i;
      chunks_[chunk + i].kind.store(d->kind == chunk_kind::free ? chunk_kind::free
                                                                : chunk_kind::tail);
    }
    if (d->kind == chunk_kind::free) {
      for (std::uint32_t i = 0; i < length; ++i) free_chunks_[chunk + i] = true;
      free_chunk_count_ += length;
      next_fit_chunk_ = std::min<std::size_t>(next_fit_chunk_, chunk);
    }
    chunk += length - 1;
  }
  STELE_ASSERT_WHOLE(free_chunks_are_known());
  return {};
}

result<heap::usage> heap::audit(const block_visitor& used) const {
  STELE_ASSERT(chunks_.empty() || chunks_.size() == file_.header().chunk_count);
  usage sum;
  std::uint64_t run = 0;
  for (std::uint64_t chunk = 0; chunk < chunks_.size();) {
    const auto d = descriptor(chunk);
    if (!d) return std::unexpected(d.error());
    run = d->kind == chunk_kind::free ? run + 1 : 0;
    sum.longest_free_run = std::max(sum.longest_free_run, run);
    if (d->kind == chunk_kind::free)
      ++sum.free_chunks;
    else if (auto fine = audit_run(chunk, *d, sum, used); !fine)
      return std::unexpected(fine.error());
    chunk += format::is_run_head(d->kind) ? d->length : 1;
  }
  // heap.md: used and free chunks tile the heap, and blocks lie within the used ones.
  STELE_ASSERT(sum.used_chunks + sum.free_chunks == chunks_.size());
  STELE_ASSERT(sum.longest_free_run <= sum.free_chunks);
  STELE_ASSERT(sum.used_bytes + sum.free_blocks_bytes + sum.table_bytes <=
               sum.used_chunks * chunk_size());
  return sum;
}

result<> heap::audit_run(std::uint64_t chunk, const chunk_descriptor& head, usage& sum,
                         const block_visitor& used) const {
  if (head.kind == chunk_kind::tail)
    return fail(errc::corrupt, fmt::format("{}: chunk {} continues an extent that nothing begins",
                                           file_.path(), chunk));
  STELE_ASSERT(head.kind != chunk_kind::free);
  const std::uint32_t length = format::is_run_head(head.kind) ? head.length : 1;
  for (std::uint64_t i = chunk + 1; i < chunk + length; ++i) {
    const auto part = descriptor(i);
    if (!part || part->kind != chunk_kind::tail)
      return fail(
          errc::corrupt,
          fmt::format("{}: chunk {} should continue the {} of chunk {}", file_.path(), i,
                      head.kind == chunk_kind::large_slab ? "large slab" : "extent", chunk));
  }
  sum.used_chunks += length;
  if (is_slab(head.kind)) return audit_slab(chunk, class_of(head), sum, used);
  if (head.kind == chunk_kind::table) {
    sum.table_bytes += length * chunk_size();
    return {};
  }
  ++sum.used_blocks;
  sum.used_bytes += length * chunk_size();
  if (used) used(chunk_offset(chunk), length * chunk_size());
  return {};
}

void heap::for_each_block_left(const block_left_visitor& each) const {
  for (std::uint64_t chunk = 0; chunk < file_.header().chunk_count; ++chunk) {
    const auto d = descriptor(chunk);
    if (!d) continue;
    if (d->kind == chunk_kind::extent)
      each(chunk_offset(chunk), d->length * chunk_size(), descriptor_offset(chunk));
    if (!is_slab(d->kind)) continue;
    const slab blocks = slab_of(chunk, class_of(*d));
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
