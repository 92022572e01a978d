// The keys of a Redis server that are in its pool, changed in units: docs/protocol/redis.md. A unit
// is one transaction of the pool, for one command, one script or one MULTI/EXEC.
//
// Main thread only, but for sync().
#pragma once

#include <base/assert.h>

#include "stored.h"

#include <atomic>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace stele::redis {

class keys {
 public:
  // `cannot_go_on` is called when a unit cannot be committed whose earlier changes clients have
  // been answered for; it ends the process or throws.
  using end_of_units = void (*)(const error& why);
  // Errors: those of pool::open; unsupported, of mechanisms whose home is not in place.
  [[nodiscard]] static result<std::unique_ptr<keys>> open(const std::string& path,
                                                          const pool_options& options,
                                                          end_of_units cannot_go_on);
  // Of a pool that is open, with concurrency::external.
  [[nodiscard]] static result<std::unique_ptr<keys>> over(pool<stored_keys> p,
                                                          end_of_units cannot_go_on);

  pool<stored_keys>& content() noexcept { return pool_; }
  // Unlinks the file: the keys end with the process.
  void remove_name() noexcept;
  stored_keys& root() noexcept { return *root_; }
  // Whether a durable commit waits for a device, so that answers are given later.
  bool waits() const noexcept { return waits_; }
  bool is_poisoned() const noexcept;

  // Runs `body` in the unit, which it begins if none is open. If it is the unit's first change and
  // finds no room, the unit is rolled back and `body` runs once more. `bytes`: about what it will
  // store; 0: it needs no room, so a full pool does not refuse it. Errors: full, before anything
  // has changed; poisoned, io. A failure after earlier changes of the unit ends the process
  // (`cannot_go_on`).
  [[nodiscard]] result<> change(std::size_t bytes, const std::function<void()>& body);
  // Begins the unit, if none is open, and reserves `bytes` for all changes that follow, so that
  // none of them is refused. Errors: as of change().
  [[nodiscard]] result<> reserve(std::size_t bytes);
  // Builds a string of `size` bytes with room for `capacity` from the parts that `bytes_at` gives,
  // in a unit for each part, so that a long value needs no log of its length. It is garbage until
  // name(). Requires that no unit is open. Errors: as of change().
  using bytes_at = std::function<std::string(std::size_t at, std::size_t count)>;
  static constexpr std::size_t bytes_of_part = std::size_t{256} << 10;
  [[nodiscard]] result<stored_item*> make_text(std::size_t size, std::size_t capacity,
                                               const bytes_at& bytes,
                                               std::size_t part = bytes_of_part);
  // change(); if the open unit leaves no room, ends that and tries again. For loads, whose units
  // may end anywhere.
  [[nodiscard]] result<> change_apart(std::size_t bytes, const std::function<void()>& body);
  bool in_unit() const noexcept { return unit_.state() == transaction_state::open; }
  // A count that grows with each change and each commit.
  std::uint64_t changes() const noexcept { return all_changes_ + commits_; }
  // Commits the unit, if one is open. `now`: this and all earlier commits are durable on return.
  // Else, if waits(), the next sync makes them durable.
  [[nodiscard]] result<> end_unit(bool now);

  // Rolls the unit back. Redis' keyspace keeps its changes, so the process must end.
  void cancel_unit() noexcept;

  // Runs `body` in the unit, or in a transaction. In a child of fork it runs without one: items
  // that existed at the fork do not change while the child lives.
  template <class Body>
  auto read(Body&& body) -> result<std::invoke_result_t<Body&>> {
    if (is_child_) {
      if constexpr (!std::is_void_v<std::invoke_result_t<Body&>>) return body();
      body();
      return {};
    }
    return pool_.read([&](const stored_keys&) { return body(); });
  }

  // In a child of fork, before it reads.
  void enter_child() noexcept {
    STELE_ASSERT(!in_unit());  // redis.md K1
    is_child_ = true;
  }
  bool is_child() const noexcept { return is_child_; }
  // redis.md K2, K3: while a child saves, a changed item is copied, and the memory of a removed one
  // is not freed.
  void begin_child() noexcept {
    STELE_ASSERT(!in_unit());  // redis.md K1
    has_child_ = true;
  }
  void end_child() noexcept;
  bool must_copy(const stored_item* item) const noexcept;

  // --- in change() ---

  stored_item* add(item_kind kind, std::string_view key, int database);
  // Gives an item of make_text() its key.
  void name(stored_item* item, std::string_view key, int database);
  void remove(stored_item* item);
  // The item changes.
  void touch(const stored_item* item) {
    STELE_ASSERT(item != nullptr && in_unit());
    touched_.push_back(item);
  }

  // Redis has unlinked the item's key. The item is removed at the end of the unit, unless the key
  // is only renamed.
  void note_unlinked(stored_item* item) {
    STELE_ASSERT(item != nullptr);
    STELE_ASSERT_WHOLE(!is_unlinked(item));  // it goes once
    unlinked_.push_back(item);
    unlinked_last_ = item;
  }
  // Takes note_unlinked() back: a key has the item again.
  void keep(stored_item* item);
  // An event of the key; after an unlink its event follows at once. `unasked`: the key expired or
  // was evicted, so no client has an answer for it.
  void note_event(std::string_view key, bool unasked);
  // Whether a client may be answered for a change that is not committed.
  bool owes_answers() const noexcept {
    STELE_ASSERT(unasked_ <= unlinked_.size());
    return in_unit() || unlinked_.size() > unasked_;
  }
  [[nodiscard]] result<> rename(stored_item* item, std::string_view key, int database);
  [[nodiscard]] result<> set_expiry(stored_item* item, std::int64_t when);
  // `may_reload`: begin_reload() may follow in the unit.
  [[nodiscard]] result<> flush(int database, bool may_reload = false);
  [[nodiscard]] result<> swap(int one, int other);
  // DEBUG RELOAD: what the unit has flushed is loaded again, in units of its own. Until
  // end_reload() the databases keep the items of before the flush, and the new ones are of no
  // database, so a crash leaves the old ones. end_reload() is durable on return.
  [[nodiscard]] result<> begin_reload();
  [[nodiscard]] result<> end_reload();

  // Some item may belong to no database.
  void note_garbage() noexcept { has_garbage_ = true, swept_ = 0; }
  // Frees some garbage. True: there may be more.
  bool sweep();

  // The number of the newest pending commit on which an answer about the item, or about a key that
  // does not exist, rests; 0: none.
  std::uint64_t rests_on(const stored_item* item) const;
  std::uint64_t absence_rests_on() const;
  std::uint64_t all_rest_on() const;  // the same of all keys together
  std::uint64_t newest_commit() const noexcept { return commits_; }
  // Any thread. Makes all commits so far durable; returns the number of the newest.
  [[nodiscard]] result<std::uint64_t> sync();

  std::uint64_t count() const noexcept { return count_; }  // of items
  // Bytes of the pool's blocks in use, as of the last unit that has ended. The first call walks the
  // heap.
  std::uint64_t used_bytes();
  // The item at a place that the number chooses; null: that is free. In a transaction.
  stored_item* any_item(std::uint64_t number) const {
    if (next_place_ == 0) return nullptr;
    const std::uint64_t place = number % next_place_;
    return place < root_->places() ? root_->at(place) : nullptr;  // else one that a roll-back took
  }
  // Whether the pool has items, or once had.
  bool was_used() const noexcept { return next_place_ != 0; }
  // Calls f(item) for each item; in a transaction.
  void for_each(const std::function<void(stored_item*)>& f) const;

 private:
  keys(pool<stored_keys> p, end_of_units cannot_go_on);
  [[nodiscard]] result<> begin();
  std::size_t taken_by(std::size_t bytes) const noexcept;
  [[nodiscard]] result<std::string> grow_for(std::size_t bytes);
  error no_room() const;
  [[nodiscard]] result<> make_room(std::size_t bytes, bool for_several, std::size_t logged);
  // Each place that was ever given has an item, is free, or is when the unit has been committed.
  [[maybe_unused]] bool places_come_out() const noexcept;
  // Nothing is left of a unit that has ended.
  [[maybe_unused]] bool no_unit_is_left() const noexcept {
    return !in_unit() && touched_.empty() && freed_places_.empty() && taken_places_.empty() &&
           unit_bytes_ == 0 && reserved_ == 0;
  }
  [[maybe_unused]] bool free_places_differ() const noexcept;
  // False of one of many, which take too long to look at.
  [[maybe_unused]] bool is_unlinked(const stored_item* item) const noexcept;
  std::uint64_t free_place();
  // Of what is added to the database.
  std::uint64_t keyspace_for(int database) const;
  void forget_unit() noexcept;
  std::int64_t first_end_in_unit() const;
  void forget_failed_unit();

  pool<stored_keys> pool_;
  const end_of_units cannot_go_on_;
  stored_keys* root_ = nullptr;
  bool waits_ = false;
  transaction unit_;
  std::uint64_t changes_ = 0;  // in the unit
  std::uint64_t all_changes_ = 0;
  std::vector<const stored_item*> touched_;
  std::vector<stored_item*> unlinked_;
  stored_item* unlinked_last_ = nullptr;  // of these; null: an event of a key has come since
  std::size_t unasked_ = 0;               // of unlinked_, those that went for no command
  bool removed_ = false;                  // an item, in the unit
  bool swapped_ = false;                  // databases, in the unit
  struct given_keyspace {
    int database;
    std::uint64_t keyspace;
  };
  std::vector<given_keyspace> flushed_;   // in the unit, for a reload: before the flush
  std::vector<given_keyspace> reloaded_;  // what the databases get when the reload ends
  // Places of the table.
  std::vector<std::uint64_t> free_places_;
  std::vector<std::uint64_t> freed_places_;  // free when the unit has been committed
  std::vector<std::uint64_t> taken_places_;  // in the unit
  std::uint64_t next_place_ = 0, count_ = 0;
  std::uint64_t swept_ = 0;                 // places that sweep() has looked at
  bool has_garbage_ = false;                // items that no database has, perhaps
  std::size_t room_ = 0;                    // bytes that are free for certain, in one run
  std::size_t unit_bytes_ = 0;              // that the unit stores
  std::size_t reserved_ = 0;                // of these, what reserve() has asked for in advance
  bool is_at_its_end_ = false;              // the pool could not grow when it last should
  std::optional<std::int64_t> used_bytes_;  // counted since used_bytes() was called first
  std::string why_not_;
  // Of commits that may not be durable.
  std::atomic<std::uint64_t> commits_{0}, durable_{0};
  std::unordered_map<const stored_item*, std::uint64_t> recent_;
  std::uint64_t last_removal_ = 0,
                last_swap_ = 0;  // of two databases: all that they have rests on it
  // A key is gone when its time has passed, and is back if the crash takes that time.
  std::uint64_t last_timed_ = 0;  // of the last that left an item an expiry time
  std::int64_t first_end_ = 0;    // the earliest such time of those that may not be durable
  bool is_child_ = false;
  bool has_child_ = false;
  std::unordered_set<const stored_item*> young_;  // made while there is a child
};

}  // namespace stele::redis
