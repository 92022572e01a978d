// Units, and what waits to be durable.
#include "keys.h"

#include <base/assert.h>
#include <base/mutant.h>
#include <stele/memory.h>
#include <tx/mechanism/catalog.h>
#include <tx/runtime.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace stele::redis {

namespace {

using base::mutant;

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  // ends an item

std::int64_t ms_since_1970() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

keys::keys(pool<stored_keys> p, end_of_units cannot_go_on)
    : pool_(std::move(p)), cannot_go_on_(cannot_go_on) {
  (void)pool_.read([&](const stored_keys& root) {
    root_ = const_cast<stored_keys*>(&root);
    const auto free_until = [&](std::uint64_t place) {
      while (next_place_ < place) free_places_.push_back(next_place_++);
    };
    root.for_each([&](std::uint64_t place, stored_item*) {
      free_until(place);
      next_place_ = place + 1;
      ++count_;
    });
    free_until(root.places());
    std::ranges::reverse(free_places_);  // the first is taken first
    STELE_ASSERT_ALWAYS(next_place_ == root.places() && places_come_out());
  });
  waits_ = pool_.core().wants_to_defer();
}

result<std::unique_ptr<keys>> keys::open(const std::string& path, const pool_options& options,
                                         end_of_units cannot_go_on) {
  const auto in_log = [](const std::string& mechanism) {
    const auto known = detail::find_mechanism(mechanism);
    return known && (*known)->home == format::home_kind::log;
  };
  const auto refusal = [](const std::string& mechanism) {
    return std::unexpected(error{errc::unsupported,
                                 "the values of Redis are changed in place, which pools of the "
                                 "mechanism " +
                                     mechanism + " do not do; choose another mechanism"});
  };
  if (in_log(options.engine.mechanism)) return refusal(options.engine.mechanism);
  auto pool = stele::pool<stored_keys>::open(path, options);
  if (!pool) return std::unexpected(std::move(pool.error()));
  if (!pool->core().has_plain_reads()) return refusal(pool->mechanism());
  return over(std::move(*pool), cannot_go_on);
}

result<std::unique_ptr<keys>> keys::over(pool<stored_keys> p, end_of_units cannot_go_on) {
  if (auto sound = p.read([](const stored_keys& root) { return root.check(); }); !sound)
    return std::unexpected(error{sound.error().code, p.core().state().file.path() + ": " +
                                                         sound.error().message +
                                                         "; restore the pool from a copy"});
  return std::unique_ptr<keys>(new keys(std::move(p), cannot_go_on));
}

bool keys::places_come_out() const noexcept {
  return base::holds(count_ + free_places_.size() + freed_places_.size() == next_place_);
}

// Many take too long to compare.
bool keys::free_places_differ() const noexcept {
  constexpr std::size_t few = 64;
  if (free_places_.size() > few) return true;
  for (auto at = free_places_.begin(); at != free_places_.end(); ++at)
    if (std::find(at + 1, free_places_.end(), *at) != free_places_.end()) return false;
  return true;
}

bool keys::is_unlinked(const stored_item* item) const noexcept {
  constexpr std::size_t few = 256;
  return unlinked_.size() <= few && std::ranges::find(unlinked_, item) != unlinked_.end();
}

bool keys::must_copy(const stored_item* item) const noexcept {
  return has_child_ && !young_.contains(item) && !planted(mutant::redis_child_ignored);
}

void keys::remove_name() noexcept {
  pool_.core().state().file.remove_name();
}

bool keys::is_poisoned() const noexcept {
  return pool_.core().state().poisoned.load(std::memory_order_relaxed);
}

// The most that this many bytes take: with the unused end of a block, the words of a record that
// are no payload, and, if large, whole chunks.
std::size_t keys::taken_by(std::size_t bytes) const noexcept {
  const std::size_t chunk = std::size_t{1} << pool_.core().state().file.header().chunk_shift;
  return bytes + bytes / 4 + 256 + (bytes > chunk / 8 ? 2 * chunk : 0);
}

// Makes the pool grow, by a transaction that allocates this much and is cancelled. Returns why it
// could not; empty: it has grown, or need not. Errors: poisoned, io.
result<std::string> keys::grow_for(std::size_t bytes) {
  STELE_ASSERT(!in_unit() && bytes != 0);  // the pool does not grow in a unit
  const auto tried = pool_.update([&](stored_keys&) -> result<> {
    (void)pool_memory::allocate(bytes, 16);
    return std::unexpected(error{errc::cancelled, ""});
  });
  STELE_ASSERT(!tried);
  if (tried.error().code == errc::full) return tried.error().message;
  if (tried.error().code != errc::cancelled) return std::unexpected(tried.error());
  return std::string();
}

error keys::no_room() const {
  return {errc::full,
          "the pool has no room for this" + (why_not_.empty() ? "" : " (" + why_not_ + ")") +
              "; delete keys, or start the server with a larger max_size and room on the disk"};
}

// Reserves room for a change and for the log of its unit, which is a block of the heap if it is
// long, so that a unit that has begun cannot fail with `full`. The room is taken to come from the
// longest free run. A pool does not grow within a unit, so before one begins it grows by an eighth
// more, if it can. `logged`: how many of the bytes are in the log at a time. A unit of one small
// change needs no free run: it may use free blocks among used ones, and if there is none, nothing
// has changed.
result<> keys::make_room(std::size_t bytes, bool for_several, std::size_t logged) {
  const std::size_t ahead =
      std::max(std::size_t{4} << 20, pool_.core().state().file.header().size / 8);
  const std::size_t wanted = taken_by(bytes) + taken_by(unit_bytes_ + logged) + (64 << 10);
  const auto& heap = pool_.core().state().heap;
  const auto has = [&](std::size_t room) {
    if (room_ < room) room_ = heap.longest_free_run();
    return room_ >= room;
  };
  if (!in_unit() && !has(is_at_its_end_ ? wanted : wanted + ahead)) {
    auto why = grow_for(wanted + ahead);
    if (why && !why->empty() && !has(wanted)) why = grow_for(wanted);
    if (!why) return std::unexpected(std::move(why.error()));
    is_at_its_end_ = !why->empty();
    why_not_ = std::move(*why);
  }
  const bool is_small =
      !in_unit() && !for_several && bytes <= pool_.core().state().file.header().log_size / 8;
  if (!has(wanted) && !is_small) return std::unexpected(no_room());
  room_ -= std::min(room_, taken_by(bytes));
  unit_bytes_ += logged;
  return {};
}

result<> keys::begin() {
  STELE_ASSERT(!in_unit());
  if (is_poisoned())
    return std::unexpected(error{errc::poisoned,
                                 "the pool takes no more changes since an error of its file; "
                                 "restart the server"});
  const auto how = waits_ ? durability::ordered : durability::durable;
  auto begun = pool_.begin(how, code_between::computes_only);
  if (!begun) return std::unexpected(std::move(begun.error()));
  unit_ = std::move(*begun);
  changes_ = 0;
  return {};
}

result<> keys::reserve(std::size_t bytes) {
  if (auto room = make_room(bytes, true, bytes); !room) return room;
  reserved_ += bytes;
  STELE_ASSERT(reserved_ <= unit_bytes_);
  return in_unit() ? result<>() : begin();
}

result<> keys::change(std::size_t bytes, const std::function<void()>& body) {
  const std::size_t covered = std::min(bytes, reserved_);
  reserved_ -= covered;
  if (bytes != covered)
    if (auto room = make_room(bytes - covered, false, bytes - covered); !room) return room;
  for (;;) {
    if (!in_unit())
      if (auto begun = begin(); !begun) return begun;
    error why;
    try {
      body();
      ++changes_, ++all_changes_;
      STELE_ASSERT(places_come_out());
      if (planted(mutant::redis_unit_apart)) (void)unit_.commit();
      return {};
    } catch (const conflict&) {
      base::check(changes_ == 0, "a unit with changes found no room");
      forget_failed_unit();
      // Blocks that are free in parts of the pool become one.
      if (auto again = unit_.retry(); !again) return again;
      continue;
    } catch (const failure& f) {
      why = f.why().code == errc::full ? no_room() : f.why();
    } catch (const std::bad_alloc&) {
      why = {errc::full, "the server has no memory for this"};
    }
    if (changes_ != 0) cannot_go_on_(why);
    unit_.roll_back();
    forget_failed_unit();
    STELE_ASSERT(no_unit_is_left());  // nothing has changed
    return std::unexpected(std::move(why));
  }
}

// After the unit's first change has failed: frees its places.
void keys::forget_failed_unit() {
  room_ = 0;
  STELE_ASSERT(taken_places_.size() <= count_ + freed_places_.size());
  count_ += freed_places_.size() - taken_places_.size();
  free_places_.insert(free_places_.end(), taken_places_.begin(), taken_places_.end());
  forget_unit();
  STELE_ASSERT(places_come_out());
  STELE_ASSERT_WHOLE(free_places_differ());
}

// R1: the item with its first part, of no keyspace. R2: a unit for each further part. R3, the
// caller's: the unit that names it. A crash before R3 leaves garbage.
result<stored_item*> keys::make_text(std::size_t size, std::size_t capacity, const bytes_at& bytes,
                                     std::size_t part) {
  base::check(!in_unit(), "a value is made in parts in a unit");
  STELE_ASSERT(size <= capacity && part != 0);
  if (auto room = make_room(capacity + bytes_of_item, true, part); !room)
    return std::unexpected(std::move(room.error()));
  reserved_ += capacity;
  stored_item* item = nullptr;
  const auto ended = [&](const result<>& done) { return done ? end_unit(false) : done; };
  auto done = ended(change(capacity, [&] {
    item = add(item_kind::string, {}, 0);
    if (!planted(mutant::redis_named_early)) item->keyspace = stored_keys::no_keyspace;
    stele::string& value = as<stored_text>(item).value;
    value = bytes(0, std::min(size, part));
    value.reserve(capacity);
    STELE_ASSERT(value.size() == std::min(size, part));
  }));
  // redis.md R1: the unit has ended, and no database has the item.
  STELE_ASSERT(!done || no_unit_is_left());
  for (std::size_t at = part; done && at < size; at += part)
    done = ended(change(0, [&] {
      stele::string& value = as<stored_text>(item).value;
      STELE_ASSERT(value.size() == at && value.capacity() >= size);
      STELE_ASSERT(base::holds(item->keyspace == stored_keys::no_keyspace));  // redis.md R2
      value.append(bytes(at, std::min(part, size - at)));
    }));
  if (done) return item;
  note_garbage();
  return std::unexpected(std::move(done.error()));
}

void keys::name(stored_item* item, std::string_view key, int database) {
  // redis.md R3: nobody can find the item before.
  STELE_ASSERT(base::holds(item->keyspace == stored_keys::no_keyspace));
  item->key = key;
  item->keyspace = keyspace_for(database);
  touch(item);
}

result<> keys::change_apart(std::size_t bytes, const std::function<void()>& body) {
  auto done = change(bytes, body);
  if (done || done.error().code != errc::full || !in_unit()) return done;
  if (auto ended = end_unit(false); !ended) return ended;
  return change(bytes, body);
}

void keys::forget_unit() noexcept {
  touched_.clear();
  flushed_.clear();
  freed_places_.clear();
  taken_places_.clear();
  STELE_ASSERT(!in_unit());
  removed_ = false;
  swapped_ = false;
  unit_bytes_ = 0;
  reserved_ = 0;
}

// The earliest expiry time of items that the unit has changed.
std::int64_t keys::first_end_in_unit() const {
  std::int64_t first = never;
  for (const stored_item* item : touched_)
    if (const std::int64_t ends = item->expiry; ends != 0) first = std::min(first, ends);
  return first;
}

result<> keys::end_unit(bool now) {
  if (!unlinked_.empty()) {
    std::vector<stored_item*> gone;
    gone.swap(unlinked_);
    unlinked_last_ = nullptr;
    unasked_ = 0;
    if (auto done = change(0,
                           [&] {
                             for (stored_item* item : gone) remove(item);
                           });
        !done)
      return done;
  }
  if (in_unit()) {
    if (used_bytes_) *used_bytes_ += unit_.bytes_allocated();
    const std::int64_t ends = waits_ ? first_end_in_unit() : never;
    if (auto done = unit_.commit(); !done) cannot_go_on_(done.error());
    const std::uint64_t number = ++commits_;
    STELE_ASSERT(last_removal_ < number && last_swap_ < number && last_timed_ < number);
    room_ -= std::min(room_, taken_by(unit_bytes_));
    if (waits_) {
      if (recent_.size() > 1024)
        std::erase_if(recent_, [&](const auto& r) { return r.second <= durable_.load(); });
      for (const stored_item* item : touched_) recent_[item] = number;
      if (removed_) last_removal_ = number;
      if (swapped_) last_swap_ = number;
      if (ends != never) {
        first_end_ = std::min(last_timed_ > durable_.load() ? first_end_ : never, ends);
        last_timed_ = number;
      }
    }
    free_places_.insert(free_places_.end(), freed_places_.begin(), freed_places_.end());
    STELE_ASSERT_WHOLE(free_places_differ());
  }
  forget_unit();
  STELE_ASSERT(no_unit_is_left() && unlinked_.empty());  // redis.md C4
  if (!waits_ || !now || planted(mutant::redis_acknowledged_early)) return {};
  if (auto done = sync(); !done) return std::unexpected(std::move(done.error()));
  return {};
}

void keys::cancel_unit() noexcept {
  unit_.roll_back();
  unlinked_.clear();
  unlinked_last_ = nullptr;
  unasked_ = 0;
  forget_unit();
  STELE_ASSERT(no_unit_is_left());
}

void keys::keep(stored_item* item) {
  std::erase(unlinked_, item);
  // An expired or evicted key is neither renamed nor copied to a native value.
  STELE_ASSERT(unasked_ <= unlinked_.size());
  if (unlinked_last_ == item) unlinked_last_ = nullptr;
}

void keys::note_event(std::string_view key, bool unasked) {
  const stored_item* const item = std::exchange(unlinked_last_, nullptr);
  if (unasked && item != nullptr && read([&] { return item->key == key; }).value_or(false))
    ++unasked_;
  STELE_ASSERT(unasked_ <= unlinked_.size());
}

result<std::uint64_t> keys::sync() {
  std::uint64_t through = commits_.load();
  if (durable_.load() >= through) return through;
  if (auto done = pool_.sync(); !done) return std::unexpected(std::move(done.error()));
  if (planted(mutant::redis_sync_ahead)) through = commits_.load();
  std::uint64_t before = durable_.load();
  while (before < through && !durable_.compare_exchange_weak(before, through)) {
  }
  return through;
}

std::uint64_t keys::free_place() {
  if (free_places_.empty()) return next_place_++;
  const std::uint64_t place = free_places_.back();
  free_places_.pop_back();
  STELE_ASSERT(place < next_place_);
  return place;
}

stored_item* keys::add(item_kind kind, std::string_view key, int database) {
  STELE_ASSERT(in_unit());
  const std::uint64_t place = free_place();
  taken_places_.push_back(place);
  ++count_;
  stored_item* const item = root_->add(place, kind, key, keyspace_for(database));
  if (has_child_) young_.insert(item);
  touch(item);
  return item;
}

void keys::remove(stored_item* item) {
  STELE_ASSERT(in_unit() && root_->at(item->place) == item);
  recent_.erase(item);
  std::erase(touched_, item);
  removed_ = true;
  if (must_copy(item) && !planted(mutant::redis_freed_early)) {  // sweep() frees it later
    item->keyspace = stored_keys::no_keyspace;
    return;
  }
  young_.erase(item);
  const std::uint64_t place = item->place;
  STELE_ASSERT(place < next_place_ && count_ != 0);
  root_->remove(item);
  STELE_ASSERT(root_->at(place) == nullptr);
  freed_places_.push_back(place);
  --count_;
}

void keys::end_child() noexcept {
  has_child_ = false;
  young_.clear();
  note_garbage();
}

result<> keys::rename(stored_item* item, std::string_view key, int database) {
  STELE_ASSERT(item != nullptr);
  keep(item);
  const bool is_same = read([&] { return item->key == key; }).value_or(false);
  return change(is_same ? 0 : key.size(), [&] {
    if (!is_same) item->key = key;
    item->keyspace = keyspace_for(database);
    removed_ = true;  // its old name
    touch(item);
  });
}

result<> keys::set_expiry(stored_item* item, std::int64_t when) {
  STELE_ASSERT(item != nullptr);
  if (read([&] { return item->expiry.load(); }).value_or(when) == when) return {};
  return change(0, [&] {
    item->expiry = when;
    touch(item);
  });
}

result<> keys::flush(int database, bool may_reload) {
  note_garbage();
  return change(0, [&] {
    std::erase_if(flushed_, [&](const given_keyspace& g) { return g.database == database; });
    if (may_reload) flushed_.push_back({database, root_->keyspace_of(database)});
    root_->flush(database);
    removed_ = true;
  });
}

result<> keys::swap(int one, int other) {
  return change(0, [&] {
    root_->swap(one, other);
    removed_ = true;
    swapped_ = true;
  });
}

std::uint64_t keys::keyspace_for(int database) const {
  const auto at = std::ranges::find(reloaded_, database, &given_keyspace::database);
  return at == reloaded_.end() ? root_->keyspace_of(database) : at->keyspace;
}

// redis.md D1: the unit's flush is taken back, and ends.
result<> keys::begin_reload() {
  STELE_ASSERT(reloaded_.empty());
  if (flushed_.empty()) return {};
  std::vector<given_keyspace> given;
  auto done = change(0, [&] {
    given.clear();
    for (const auto& [database, before] : flushed_) {
      given.push_back({database, root_->keyspace_of(database)});
      root_->set_keyspace(database, before);
    }
  });
  if (!done) return done;
  reloaded_ = std::move(given);
  return end_unit(false);
}

// redis.md D3
result<> keys::end_reload() {
  if (reloaded_.empty()) return {};
  note_garbage();
  auto done = change(0, [&] {
    for (const auto& [database, keyspace] : reloaded_) root_->set_keyspace(database, keyspace);
    removed_ = true;
    swapped_ = true;
  });
  if (!done) return done;
  reloaded_.clear();
  return end_unit(true);
}

bool keys::sweep() {
  constexpr std::uint64_t looked_at = 4096, freed = 64;
  if (!has_garbage_ || in_unit() || has_child_ || !reloaded_.empty()) return false;
  std::vector<stored_item*> gone;
  (void)pool_.read([&](const stored_keys& root) {
    const std::uint64_t end = std::min(root.places(), swept_ + looked_at);
    for (; swept_ < end && gone.size() < freed; ++swept_)
      if (stored_item* const item = root.at(swept_);
          item != nullptr && root.database_of(item->keyspace) < 0)
        gone.push_back(item);
    has_garbage_ = swept_ < root.places();
  });
  if (!gone.empty() && change(0, [&] {
        for (stored_item* item : gone) remove(item);
      }))
    (void)end_unit(false);
  return has_garbage_;
}

std::uint64_t keys::used_bytes() {
  if (!used_bytes_ && !in_unit()) used_bytes_ = static_cast<std::int64_t>(pool_.space().used_bytes);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(used_bytes_.value_or(0), 0));
}

void keys::for_each(const std::function<void(stored_item*)>& f) const {
  root_->for_each([&](std::uint64_t, stored_item* item) { f(item); });
}

std::uint64_t keys::rests_on(const stored_item* item) const {
  if (!waits_) return 0;
  const auto at = recent_.find(item);
  const std::uint64_t newest = std::max(at == recent_.end() ? 0 : at->second, last_swap_);
  return newest <= durable_.load() ? 0 : newest;
}

std::uint64_t keys::all_rest_on() const {
  return waits_ && commits_ > durable_ ? commits_.load() : 0;
}

std::uint64_t keys::absence_rests_on() const {
  const bool may_have_expired =
      last_timed_ > std::max(last_removal_, durable_.load()) && first_end_ <= ms_since_1970();
  const std::uint64_t newest = may_have_expired ? last_timed_ : last_removal_;
  return newest > durable_.load() ? newest : 0;
}

}  // namespace stele::redis
