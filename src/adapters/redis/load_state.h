// How far the server has started, and which payload it loads. Main thread only, but for
// unclaimed_item. Knows nothing of Redis: load_state_test.cc.
#pragma once

#include <base/assert.h>
#include <stele/error.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stele::redis {

struct stored_item;

// From loading the module to the first answer: docs/protocol/redis.md, O1 to O4.
class startup {
 public:
  enum class stage : std::uint8_t {
    takes_files,    // the pool never had an item: the server's files fill it
    ignores_files,  // the pool is newer than any file
    ignored_files,  // so it is, and the server has loaded one
    open            // the pool's items are keys of the server
  };

  // The pool is open.
  void begin(bool pool_was_used) noexcept {
    STELE_ASSERT(stage_ == stage::takes_files);
    if (pool_was_used) stage_ = stage::ignores_files;
  }
  // The server loads a file, or the data of its master.
  void note_load() noexcept {
    if (stage_ == stage::ignores_files) stage_ = stage::ignored_files;
  }
  // Of the module's types, what the server loads becomes a placeholder.
  bool ignores_files() const noexcept {
    return stage_ == stage::ignores_files || stage_ == stage::ignored_files;
  }
  bool has_ignored_files() const noexcept { return stage_ == stage::ignored_files; }
  void open() noexcept {
    STELE_ASSERT(!is_open());
    stage_ = stage::open;
  }
  bool is_open() const noexcept { return stage_ == stage::open; }

 private:
  stage stage_ = stage::takes_files;
};

// An item that was loaded and is not yet the value of a key. Any thread may free a value.
class unclaimed_item {
 public:
  void set(stored_item* item) noexcept { item_ = item; }
  // A key has it, whichever it was.
  void claim() noexcept { item_ = nullptr; }
  // This one leads to no item any more. True: it was the unclaimed one.
  bool take(stored_item* item) noexcept { return item_.compare_exchange_strong(item, nullptr); }

 private:
  std::atomic<stored_item*> item_ = nullptr;
};

// The payload from which the server makes values: a file, a master's data, or that of a RESTORE.
class load_state {
 public:
  enum class payload : std::uint8_t {
    of_command,       // in the command's unit, if any: it goes on
    of_first_change,  // of a RESTORE that began its unit: the unit may end for room, and begin
                      // again
    of_file,          // in units of some hundred keys
    of_file_in_unit   // loaded by a command of an EXEC (DEBUG RELOAD), whose unit goes on
  };
  static constexpr std::uint64_t values_of_unit = 256;

  void begin_file(bool in_exec) noexcept {
    payload_ = in_exec ? payload::of_file_in_unit : payload::of_file;
    values_ = 0;
  }
  // Returns whether the load had units of its own.
  bool end_file() noexcept {
    return std::exchange(payload_, payload::of_command) != payload::of_file_in_unit;
  }
  bool is_file() const noexcept {
    return payload_ == payload::of_file || payload_ == payload::of_file_in_unit;
  }
  // Whether the unit may end before the payload does.
  bool may_end_unit() const noexcept {
    return payload_ == payload::of_file || payload_ == payload::of_first_change;
  }
  // A value of the module's types was loaded. True: the unit of a file's values is to end.
  bool note_value() noexcept {
    return payload_ == payload::of_file && ++values_ % values_of_unit == 0;
  }
  // How many values of the module's types the last file had that was loaded in units of its own.
  std::uint64_t values() const noexcept { return values_; }

  // The payload of a RESTORE, in its scope. Within a file (an AOF) the file's units count.
  class restored {
   public:
    restored(load_state& of, bool begins_unit) noexcept : of_(of), before_(of.payload_) {
      STELE_ASSERT(before_ != payload::of_first_change);
      if (!of.is_file() && begins_unit) of.payload_ = payload::of_first_change;
    }
    ~restored() { of_.payload_ = before_; }
    restored(const restored&) = delete;
    restored& operator=(const restored&) = delete;

   private:
    load_state& of_;
    const payload before_;
  };

  // Why the last value that was loaded has no item.
  void refuse(error why) { refusal_ = std::move(why); }
  void forget_refusal() noexcept { refusal_.reset(); }
  std::optional<error> take_refusal() noexcept { return std::exchange(refusal_, std::nullopt); }

  // Keys of a slot that comes from a plain server (RESTORE-ASKING): values of Redis' own, until the
  // server sleeps.
  struct foreign_key {
    int database;
    std::string name;
  };
  void note_foreign(int database, std::string name) {
    foreign_.push_back({database, std::move(name)});
  }
  std::vector<foreign_key> take_foreign() noexcept { return std::exchange(foreign_, {}); }

  unclaimed_item unclaimed;

 private:
  payload payload_ = payload::of_command;
  std::uint64_t values_ = 0;
  std::optional<error> refusal_;
  std::vector<foreign_key> foreign_;
};

}  // namespace stele::redis
