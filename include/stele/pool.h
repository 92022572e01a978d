// pool<Root>: a file that holds one Root object and everything reachable from it, changed by ACID
// transactions.
//
// Start here. A pool is opened (or created) by path, holds a Root made of fields and containers,
// and changes only inside update(). After any crash it opens as it was after some prefix of the
// commits that holds every commit acknowledged as durable. What "crash" covers is the pool's
// durability in force; ask durability_in_force().
//
// Thread safety: a pool object may be used from any number of threads at once (except move, close
// and destruction), under the concurrency policy it was opened with. The policy `external` leaves
// the locking to the caller.
//
// Memory of the program: when it runs out, any call that is not noexcept throws std::bad_alloc.
// Nothing has changed then, a transaction is rolled back, and the pool goes on when there is memory
// again; a commit that has begun to be kept takes none. A pool that is destroyed without memory to
// close it is left as a crash leaves it.
#pragma once

#include <stele/archapt_options.h>
#include <stele/error.h>
#include <stele/field.h>
#include <stele/log_structured_options.h>
#include <stele/progress.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace stele {

// How transactions are kept apart.
enum class concurrency : std::uint8_t {
  stm,            // any number of updaters and readers; conflicts are retried
  single_writer,  // one updater at a time, readers beside each other
  external,       // the caller locks: at most one update at a time, and none beside a read
};

// What a commit has reached when update() returns.
enum class durability : std::uint8_t {
  durable,  // the change survives any crash that the pool's durability covers
  ordered,  // atomic and ordered: it survives a crash only with all commits before it; durable by
            // the next sync(), wait() or durable commit of any thread, at the latest. The mechanism
            // `default` pays no fence for it; archapt-undo, whose logical commit it is, one; all
            // others make it durable at once. With `default` other threads do not see it until it
            // is durable, and may have to wait for its lines under stm; with archapt-undo they do
};

// How mechanisms with a volatile checkpoint make home durable.
enum class bulk_persistence : std::uint8_t {
  automatic,    // what suits the medium: whole_cache on a file (one sync), else log_walk
  log_walk,     // each line that the logs name, once
  whole_cache,  // everything stored so far; for media that can do it: file, and recorded ones
};

// The mechanism adaptive: when it runs as blurred, when as vcbp (Lu, Shu and Sun, "Blurred
// Persistence" (2016), section 3.4).
struct adaptive_options {
  std::uint64_t warm_up =
      10'000;  // transactions in each mode before one is chosen; again when the workload changes
  std::uint32_t threshold_ns =
      0;  // static choice: vcbp on media with a write latency above this, blurred below; 0: dynamic
};

// Sums of home's blocks: what else changed a file than Stele, or a device that lost bits, is found
// when the pool is opened or checked, not by a wrong answer; also after a crash, as far as the
// mechanism keeps them as it goes (docs/protocol/sums.md). They take 8 bytes of each 512, no fence
// of a commit, and a third of its time where it does not wait for a device.
enum class checksums : std::uint8_t {
  automatic,  // on for media file and process, off where each line costs: adr, eadr, delayed
  on,
  off,
};

// Whether opening judges home by its sums, where the pool has them: 3 GB/s of what is in use.
enum class verification : std::uint8_t {
  automatic,  // pools of up to 256 MiB; larger ones are judged by `stele pool check`
  always,
  never,  // also to read what is left of a damaged pool
};

// What a program does to a pool of an earlier version of its layout, in one transaction: all of it
// or nothing.
class migration {
 public:
  migration(std::uint64_t version, void* root, std::size_t root_size) noexcept
      : version_(version), root_(root), root_size_(root_size) {}
  std::uint64_t version() const noexcept { return version_; }  // of the pool
  std::size_t root_size() const noexcept { return root_size_; }
  template <class Old>
  Old& root() const noexcept {
    return *static_cast<Old*>(root_);
  }
  // The pool's root from now on; the former one is destroyed by whoever replaces it
  // (stele::destroy).
  template <class New>
  void replace_root(New* root) noexcept {
    root_ = root;
    root_size_ = sizeof(New);
  }
  void* new_root() const noexcept { return root_; }

 private:
  std::uint64_t version_;
  void* root_;
  std::size_t root_size_;
};

struct pool_options {
  std::size_t create_size =
      0;  // bytes; 0: the pool must exist. Otherwise it is created when the path is free
  std::string layout = "";  // name of the data's layout; must match the pool's when not empty
  std::uint64_t layout_version =
      0;  // of the layout, as this program knows it; a pool of a later one is refused
  // Called in opening a pool of an earlier version, inside an update. Returns an error to refuse;
  // then the pool stays as it was. A pool of an earlier version is refused when there is none.
  std::function<result<>(migration&)> migrate = {};
  std::string mechanism = "";  // "" : default; see `stele compare --help` for all
  std::string media = "auto";  // auto, adr, eadr, process, file, delayed:NS[:GBPS],
                               // pcm:strict|rules[:LOG_SPEEDUP][:waits]
  std::string require = "";    // "power" or "process": what acknowledged commits must survive;
                               // opening fails when the pool gives less
  concurrency policy = concurrency::stm;
  std::size_t log_size = 0;  // bytes of each thread's log; 0: by pool size. Only when creating
  std::size_t log_count =
      0;  // logs, so threads that commit at once; 0: by pool size. Only when creating
  checksums block_checksums = checksums::automatic;  // of home's blocks. Only when creating
  verification verify = verification::automatic;     // of home by them, at opening
  std::uintptr_t map_at =
      0;  // address to map the pool at, for objects with plain pointers in it; 0: any
  std::string tape =
      "";  // record every access to the pool's memory on this tape file; empty: do not
  bulk_persistence bulk = bulk_persistence::automatic;
  adaptive_options adaptive = {};
  log_structured_options log_structured = {};
  archapt_options archapt = {};
  bool background =
      true;  // let mechanisms use a thread of their own; false: their work is done in commits
};

// What a pool has done since it was opened; sums over threads, exact when no transaction runs.
struct pool_counters {
  std::uint64_t commits = 0, aborts = 0, reads = 0;
  std::uint64_t fences = 0, flushed_lines = 0, streamed_bytes = 0, stored_bytes = 0;
  std::uint64_t truncations = 0, log_spills = 0;
  std::uint64_t mode_switches = 0;  // adaptive: logs that went from one form to the other
  std::string_view mode = "";       // adaptive: "blurred" or "vcbp"
  // log_structured: chunks that cleaning freed, those among them without live data, what it moved;
  // the map of home in memory and its lookups that the threads' caches answered, or not.
  std::uint64_t cleaned_chunks = 0, fast_cleaned_chunks = 0, moved_bytes = 0;
  // archapt: lines of home that were covered and not flushed, those of checksums that were, lines
  // whose old values went to the log.
  std::uint64_t skipped_lines = 0, checksum_lines = 0, undo_logged_lines = 0;
  std::uint64_t map_bytes = 0, map_hits = 0, map_misses = 0;
};

struct pool_space {
  std::size_t size_bytes = 0;    // of the file
  std::size_t log_bytes = 0;     // header and logs
  std::size_t used_bytes = 0;    // in allocated blocks
  std::size_t free_bytes = 0;    // allocatable: free chunks and free blocks of chunks in use
  std::size_t largest_free = 0;  // the largest single allocation that fits now
  double fragmentation = 0;      // share of the heap in use that holds no allocated byte
};

// Names a commit; later commits of the pool have larger ones.
struct ticket {
  std::uint64_t commit = 0;
};

// A crash took what recovery could not restore, and the pool went back to its last checkpoint
// (archapt_options::checkpoint_commits).
struct pool_fallback {
  ticket to;    // the checkpoint: no later commit is in it
  ticket from;  // the newest commit that recovery knew of; those in between that the checkpoint
                // does not hold are gone
  std::string lost;  // what could not be restored, as a sentence; empty unless it was this open
                     // that went back
};

namespace detail {

class runtime;

// The part of a pool that knows no Root. Everything here is thread-safe unless pool<Root> says
// otherwise.
class pool_handle {
 public:
  pool_handle(pool_handle&&) noexcept;
  pool_handle& operator=(pool_handle&&) noexcept;
  ~pool_handle();

  [[nodiscard]] static result<pool_handle> open(const std::string& path,
                                                const pool_options& options, std::size_t root_size);
  // Over a runtime that is there already; finds or makes the root.
  [[nodiscard]] static result<pool_handle> from_runtime(std::unique_ptr<runtime> r,
                                                        std::size_t root_size);

  runtime& core() const noexcept { return *runtime_; }
  void* root() const noexcept { return root_; }

 private:
  explicit pool_handle(std::unique_ptr<runtime> r);
  std::unique_ptr<runtime> runtime_;
  void* root_ = nullptr;
};

// One attempt of a transaction, driven by run_transaction below. Answers fit a register: this is
// the way of every transaction.
enum class begin_status : std::uint8_t {
  started,
  joined,   // a running one (flat nesting): run the body only
  refused,  // last_error() says why
};
enum class commit_status : std::uint8_t {
  committed,
  retry,
  failed,  // and rolled back; last_error() says why
};
begin_status begin_transaction(runtime& r, bool writes, durability d);
commit_status commit_transaction();
error last_error();                     // of this thread; told once
void roll_back_transaction() noexcept;  // rolls back, the error or exception goes on
void retry_transaction() noexcept;      // rolls back and waits before the next attempt

struct restart {};  // thrown by loads and stores on a conflict; caught by the two functions below

// Allocation inside the running transaction; throw failure(errc::full) when it does not fit.
void* allocate(std::size_t size_bytes, std::size_t alignment);
void deallocate(void* block);

template <class R>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<std::expected<T, error>> = true;

template <class R>
struct result_of_body {
  using type = result<R>;
};
template <class T>
struct result_of_body<std::expected<T, error>> {
  using type = result<T>;
};

template <class Body>
auto call_body(Body& body) -> typename result_of_body<std::invoke_result_t<Body&>>::type {
  using R = std::invoke_result_t<Body&>;
  if constexpr (std::is_void_v<R>) {
    body();
    return {};
  } else {
    return body();
  }
}

template <class Body>
[[gnu::always_inline]] inline auto run_transaction(runtime& r, bool writes, durability d,
                                                   Body&& body) ->
    typename result_of_body<std::invoke_result_t<Body&>>::type {
  for (;;) {
    const begin_status how = begin_transaction(r, writes, d);
    if (how == begin_status::refused) [[unlikely]]
      return std::unexpected(last_error());
    const bool nested = how == begin_status::joined;  // flat: an error is the outer body's to act
                                                      // on; exceptions pass through
    try {
      auto outcome = call_body(body);
      if (nested) return outcome;
      if (!outcome) {
        roll_back_transaction();
        return outcome;
      }
      const commit_status done = commit_transaction();
      if (done == commit_status::committed) [[likely]]
        return outcome;
      if (done == commit_status::failed) return std::unexpected(last_error());
    } catch (const restart&) {
      if (nested) throw;
    } catch (const failure& f) {
      if (nested) throw;
      roll_back_transaction();
      return std::unexpected(f.why());
    } catch (...) {
      if (!nested) roll_back_transaction();
      throw;
    }
    retry_transaction();
  }
}

}  // namespace detail

// What may live in a pool: no virtual functions, no references, no owner of memory outside the
// pool. Stele's containers say so with a member type `pool_resident`; other types are taken when
// their destructor is trivial.
template <class T>
concept pool_object =
    !std::is_polymorphic_v<T> && std::is_standard_layout_v<T> &&
    (std::is_trivially_destructible_v<T> || requires { typename T::pool_resident; });

template <class Root>
class pool {
  static_assert(pool_object<Root>,
                "the root of a pool is a standard-layout struct of fields and stele containers: no "
                "virtual functions, no references, "
                "no std::string or other owner of ordinary memory; a struct with containers in it "
                "says `using pool_resident = void;`");

 public:
  // Opens the pool at `path`; creates it first when it does not exist and options.create_size is
  // set. A fresh root is all zero. An unclean pool is recovered before this returns: every
  // acknowledged commit is there, no other is in part. Errors: not_found, in_use (with the holder's
  // pid), not_a_pool, version, corrupt, layout, full, permission, io, invalid_argument; the file is
  // left as it was.
  [[nodiscard]] static result<pool> open(const std::string& path,
                                         const pool_options& options = {}) {
    auto handle = detail::pool_handle::open(path, options, sizeof(Root));
    if (!handle) return std::unexpected(std::move(handle.error()));
    return pool(std::move(*handle));
  }

  // Runs body(Root&) as one atomic transaction and commits it. The body may run several times
  // (conflicts), so it must not have side effects of its own. Returns what the body returns. An
  // error returned, a failure or an exception thrown by the body rolls everything back; other
  // exceptions go on to the caller. When this returns a value, the change is durable
  // (durability::ordered: ordered); when it returns an error, nothing has changed. Inside another
  // update of the same pool the body joins that transaction.
  template <class Body>
  [[nodiscard]] auto update(Body&& body, durability d = durability::durable) {
    return detail::run_transaction(handle_.core(), true, d,
                                   [&]() -> decltype(auto) { return std::invoke(body, root()); });
  }

  // Runs body(const Root&) on one consistent state. Logs and writes nothing; a store in the body is
  // an error.
  template <class Body>
  [[nodiscard]] auto read(Body&& body) const {
    return detail::run_transaction(
        handle_.core(), false, durability::durable,
        [&]() -> decltype(auto) { return std::invoke(body, std::as_const(root())); });
  }

  // When this returns without error, every commit that had returned before the call is durable.
  [[nodiscard]] result<> sync();
  // The newest commit that has returned in any thread; wait(t) makes t and all before it durable.
  ticket committed() const noexcept;
  [[nodiscard]] result<> wait(ticket t);
  // Calls `on_durable` once: with success when t and all before it are durable, at the latest in
  // close(); with an error when they never will be in this session. From this call if that is so
  // already, else from whatever thread makes them durable, which may be in the middle of a commit:
  // `on_durable` must be brief, must not throw and must not use the pool. Asks nobody to hurry.
  // Thread-safe.
  void when_durable(ticket t, std::function<void(result<>)> on_durable);

  // Whether the pool went back to a checkpoint, in this open or an earlier one, and nobody has
  // acknowledged that commits are gone; the latest. Acknowledged durably. Errors: io; unsupported,
  // by mechanisms other than archapt-undo and archapt-redo. Thread-safe.
  std::optional<pool_fallback> fallback() const;
  [[nodiscard]] result<> acknowledge_fallback();

  // Writes a copy of the pool to `path`, which must be free: a closed pool of its own, with a new
  // id, as this one was when the backup began, which waited for transactions that were running.
  // They go on meanwhile; the first store to a page of 4 KiB waits for its copy. Durable on return;
  // after a crash or an error nothing is there. Errors: exists, full, io, permission; cancelled;
  // nested, inside a transaction; unsupported, by log_structured. Thread-safe.
  [[nodiscard]] result<> backup(const std::string& path, const progress& report = {});

  // Makes the pool at least `size_bytes` long; nothing when it is. Transactions wait meanwhile.
  // After a crash it has the old size or the new one. Errors: full, io; nested, inside a
  // transaction; unsupported, by mechanisms without bulk persistence and by pools with a copy or
  // checksums over home (open them with `default`; `stele pool resize`). Thread-safe.
  [[nodiscard]] result<> grow(std::size_t size_bytes);

  // Judges the whole pool: heap, sums, and the root by its own check(), if it has one. Transactions
  // wait for the first two. Errors: corrupt, naming what is wrong and where; nested, inside a
  // transaction. Thread-safe.
  [[nodiscard]] result<> check();

  pool_counters counters() const noexcept;
  pool_space space() const;
  // "power", "power, cache included" or "process": the strongest event that an acknowledged commit
  // survives.
  std::string durability_in_force() const;
  std::string mechanism() const;

  // Ends the pool's use: everything durable, marked clean. The destructor does the same and drops
  // the error. No transaction may be running.
  [[nodiscard]] result<> close();

  // For tools that build a runtime of their own (explorer, tests): a pool over an already open
  // handle.
  explicit pool(detail::pool_handle h) : handle_(std::move(h)) {}
  detail::runtime& core() const noexcept { return handle_.core(); }

 private:
  Root& root() const noexcept { return *static_cast<Root*>(handle_.root()); }
  detail::pool_handle handle_;
};

// A new T in the pool of the running transaction: zeroed, or constructed from `arguments` by a
// constructor that sets every field (one that it leaves alone holds what was there before). It
// exists for others, and after a crash, exactly if the transaction commits. Throws
// failure(errc::full) when it does not fit.
template <class T, class... Arguments>
T* make(Arguments&&... arguments) {
  static_assert(pool_object<T>,
                "an object in a pool is a standard-layout struct of fields and stele containers: "
                "no virtual functions, no references, no "
                "std::string or other owner of ordinary memory; a struct with containers in it "
                "says `using pool_resident = void;`");
  static_assert(sizeof...(Arguments) == 0 || !std::is_aggregate_v<T>,
                "give the type a constructor to make it from arguments: an aggregate's missing "
                "members would be zeroed behind the "
                "transaction's back");
  void* block = detail::allocate(sizeof(T), alignof(T));
  T* object = nullptr;
  if constexpr (sizeof...(Arguments) == 0) {
    detail::fill_zero(block, sizeof(T));
    object = static_cast<T*>(block);
    if constexpr (!std::is_trivially_default_constructible_v<T>) object = ::new (block) T;
  } else {
    object = ::new (block) T(std::forward<Arguments>(arguments)...);
  }
  asm volatile(
      ""
      : "+r"(object)
      :
      : "memory");  // the zeroes stored before the constructor count: keep them in its fields
  return object;
}

// `count` zeroed Ts side by side. Throws failure(errc::full) when they do not fit.
template <class T>
T* make_array(std::size_t count) {
  static_assert(pool_object<T> && std::is_trivially_default_constructible_v<T>,
                "arrays in a pool hold plain structs of fields");
  if (count > (std::size_t{1} << 46) / sizeof(T))
    throw failure(
        {errc::full, "an array of " + std::to_string(count) + " elements does not fit a pool"});
  void* block = detail::allocate(count * sizeof(T), alignof(T) > 8 ? alignof(T) : 8);
  detail::fill_zero(block, count * sizeof(T));
  return static_cast<T*>(block);
}

// Ends the life of an object that make or make_array gave; null is nothing. Its memory is free when
// the transaction has committed; until then, and when it rolls back, the object is untouched.
template <class T>
void destroy(T* object) {
  if (object == nullptr) return;
  if constexpr (!std::is_trivially_destructible_v<T>) object->~T();
  detail::deallocate(const_cast<std::remove_const_t<T>*>(object));
}

}  // namespace stele

#include <stele/pool_inl.h>
