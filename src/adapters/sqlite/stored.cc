// Lists of databases, and their extents.
#include "stored.h"

#include <tx/open.h>

#include <algorithm>
#include <string>
#include <vector>

#include <stele/memory.h>

namespace stele::sqlite {

namespace {

[[noreturn]] void fail_corrupt(const std::string& what) {
  throw failure({errc::corrupt, "what the pool says of its SQLite databases is damaged: " + what +
                                    "; check the pool, or restore it from a copy"});
}

// Before the first load through a pointer.
template <class T>
void verify_object(const T* at, std::uint64_t count = 1) {
  pool_memory::verify_in_heap(at, count * sizeof(T));
  if (reinterpret_cast<std::uintptr_t>(at) % alignof(T) != 0)
    fail_corrupt("a pointer leads between two words");
}

void verify_text(const stele::string& text) {
  if (const auto sound = text.check(); !sound) fail_corrupt(sound.error().message);
  text.visit_blocks([&](const void* block) {
    pool_memory::verify_in_heap(block, std::max(text.size(), text.capacity()));
  });
}

}  // namespace

void stored_database::verify() const {
  verify_text(name);
  const std::uint64_t count = extent_count, room = extent_room, bytes = size_bytes;
  if (count > room || room > most_extents || extents_for(bytes) > count ||
      (room == 0) != (extents.load() == nullptr))
    fail_corrupt("the database \"" + name.str() + "\" says that it has " + std::to_string(bytes) +
                 " bytes in " + std::to_string(count) + " of " + std::to_string(room) + " extents");
  if (room != 0) verify_object(extents.load(), room);
}

const std::byte* stored_database::extent_at(std::uint64_t number) const {
  const field<std::byte*>* const all = extents;
  verify_object(all, number + 1);
  const std::byte* const bytes = all[number];
  pool_memory::verify_in_heap(bytes, extent_bytes(number));
  return bytes;
}

// Finds a cycle: a list that leads back into itself meets the mark, which is set ever later.
stored_database* stored_databases::walk(const std::function<bool(stored_database&)>& each) const {
  const stored_database* mark = nullptr;
  std::uint64_t passed = 0, next_mark = 1;
  for (stored_database* d = first; d != nullptr; d = d->next) {
    verify_object(d);
    if (d == mark) fail_corrupt("the list of databases leads back into itself");
    if (++passed == next_mark) mark = d, next_mark *= 2;
    if (each(*d)) return d;
  }
  return nullptr;
}

stored_database* stored_databases::find(std::string_view name) const {
  stored_database* const found = walk([&](const stored_database& d) {
    verify_text(d.name);
    return d.name == name;
  });
  if (found != nullptr) found->verify();
  return found;
}

stored_database* stored_databases::make(std::string_view name) {
  STELE_ASSERT(!name.empty());
  auto* const d = stele::make<stored_database>();
  d->name = name;
  d->next = first.load();
  first = d;
  return d;
}

void stored_databases::for_each_block(
    const std::function<void(const void*, std::uint64_t)>& visit) const {
  walk([&](const stored_database& d) {
    d.verify();
    visit(&d, sizeof d);
    d.name.visit_blocks([&](const void* text) { visit(text, d.name.capacity()); });
    const field<std::byte*>* const extents = d.extents;
    if (d.extent_room != 0) visit(extents, d.extent_room * sizeof(*extents));
    for (std::uint64_t e = 0; e < d.extent_count; ++e) visit(d.extent_at(e), extent_bytes(e));
    return false;
  });
}

result<> stored_databases::check() const try {
  for_each_block([](const void*, std::uint64_t) {});
  return {};
} catch (const failure& f) {
  if (f.why().code != errc::corrupt) throw;
  return std::unexpected(f.why());
}

void set_extents(stored_database& d, std::uint64_t bytes) {
  const std::uint64_t wanted = extents_for(bytes), held = d.extent_count;
  STELE_ASSERT(held <= most_extents);  // verified when the pool was opened
  if (wanted > most_extents)
    throw failure({errc::full, "a SQLite database in a pool can have " +
                                   std::to_string(extent_begin(most_extents)) + " bytes at most"});
  if (wanted > d.extent_room) {
    const std::uint64_t room = std::max<std::uint64_t>(16, std::bit_ceil(wanted));
    STELE_ASSERT(wanted <= room && room <= most_extents);  // format/sqlite.md
    auto* const more = pool_memory::make_array<field<std::byte*>>(room);
    field<std::byte*>* const old = d.extents;
    for (std::uint64_t e = 0; e < held; ++e) more[e] = old[e].load();
    pool_memory::deallocate(old);
    d.extents = more;
    d.extent_room = room;
  }
  field<std::byte*>* const extents = d.extents;
  for (std::uint64_t e = held; e < wanted; ++e) {
    auto* const begin = static_cast<std::byte*>(pool_memory::allocate(extent_bytes(e), 64));
    STELE_ASSERT(begin != nullptr && reinterpret_cast<std::uintptr_t>(begin) % 64 == 0);
    extents[e] = begin;
  }
  for (std::uint64_t e = wanted; e < held; ++e) pool_memory::deallocate(extents[e].load());
  if (wanted != held) d.extent_count = wanted;
}

namespace {

struct block {
  std::uint64_t offset, bytes;
};

// The blocks that the heap has in use, by offset.
result<std::vector<block>> list_used(detail::runtime& r) {
  const auto begun = detail::begin_maintenance(r, "opened by SQLite");
  if (!begun) return std::unexpected(begun.error());
  const detail::pool_pause paused = r.pause();
  std::vector<block> used;
  const auto audit = r.state().heap.audit(
      [&](std::uint64_t offset, std::size_t size) { used.push_back({offset, size}); });
  if (!audit) return std::unexpected(audit.error());
  std::ranges::sort(used, {}, &block::offset);
  return used;
}

}  // namespace

result<> verify_content(stele::pool<stored_databases>& pool) {
  std::vector<block> reached;
  const auto walked = pool.read([&](const stored_databases& all) {
    const auto add = [&](const void* at, std::uint64_t bytes) {
      const auto* const begin = static_cast<const std::byte*>(at);
      STELE_ASSERT(begin >= pool.core().base());  // for_each_block() has verified it
      reached.push_back({static_cast<std::uint64_t>(begin - pool.core().base()), bytes});
    };
    reached.clear();
    add(&all, sizeof all);
    all.for_each_block(add);
  });
  if (!walked) return std::unexpected(walked.error());
  const auto used = list_used(pool.core());
  if (!used) return std::unexpected(used.error());
  std::ranges::sort(reached, {}, &block::offset);
  for (auto next = used->begin(); const block& b : reached) {
    while (next != used->end() && next->offset < b.offset) ++next;
    if (next == used->end() || next->offset != b.offset || next->bytes < b.bytes)
      return std::unexpected(
          error{errc::corrupt, pool.core().state().file.path() +
                                   " is damaged: what it says of its SQLite databases leads to "
                                   "bytes that are not theirs, at offset " +
                                   std::to_string(b.offset) + "; restore the pool from a copy"});
    ++next;  // two pointers do not lead to one block
  }
  return {};
}

}  // namespace stele::sqlite
