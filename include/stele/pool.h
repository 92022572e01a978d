// pool<Root>: a file that holds one Root object and everything reachable from it, changed by ACID
// transactions. Start here.
//
//   struct counter { stele::field<std::uint64_t> n; };
//   auto pool = stele::pool<counter>::open("counter.stele", {.create_size = 16 << 20});
//   if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
//   auto n = pool->update([](counter& root) { return (root.n += 1).load(); });
//   std::printf("run %lu\n", n.value());
//
// Root consists of fields and containers. It changes only inside update(). After a crash the pool
// opens with the state after some prefix of the commits; the prefix contains every commit that was
// acknowledged as durable. durability_in_force() says which crashes are covered.
//
// Thread safety: any number of threads may use one pool object at once, except for move, close and
// destruction, under the concurrency policy given at open. With `external` the caller locks.
//
// When the program runs out of memory, any call that is not noexcept throws std::bad_alloc. The
// call has changed nothing, its transaction is rolled back, and the pool stays usable. A commit
// allocates nothing once it has started to write its record. If the destructor has no memory to
// close the pool, the file is left as after a crash.
#pragma once

#include <stele/durability.h>
#include <stele/engine_options.h>
#include <stele/error.h>
#include <stele/field.h>
#include <stele/members.h>
#include <stele/progress.h>
#include <stele/transaction.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace stele {

// How transactions are isolated from each other.
enum class concurrency : std::uint8_t {
  stm,            // any number of updaters and readers; conflicts are retried
  single_writer,  // one update at a time; reads run concurrently
  external,       // the caller locks: at most one update at a time, and no read during it
};

namespace detail {
// A block for a root of the running transaction's pool: zeroes, and a mark behind them.
void* allocate_root(std::size_t size_bytes);
}  // namespace detail

// What pool_options::migrate receives: a pool with an older layout version than the program's. All
// its changes are one transaction.
class migration {
 public:
  migration(std::uint64_t version, void* root, std::size_t root_size) noexcept
      : version_(version), root_(root), root_size_(root_size) {}
  std::uint64_t version() const noexcept { return version_; }  // of the layout in the pool
  std::size_t root_size() const noexcept { return root_size_; }
  template <class Old>
  Old& root() const noexcept {
    return *static_cast<Old*>(root_);
  }
  // Makes a New, all fields zero or null, and makes it the pool's root, with a mark that tells when
  // it is zeroed or overwritten (docs/format/pool.md). The caller destroys the former root
  // (stele::destroy).
  template <class New>
  New* make_root() {
    detail::require_pool_members<New>();
    auto* const root = static_cast<New*>(detail::allocate_root(sizeof(New)));
    replace_root(root);
    marked_ = true;
    return root;
  }
  // Makes an object of this pool its root, without a mark. The caller destroys the former root.
  template <class New>
  void replace_root(New* root) noexcept {
    root_ = root;
    root_size_ = sizeof(New);
    marked_ = false;
  }
  void* new_root() const noexcept { return root_; }
  bool new_root_has_mark() const noexcept { return marked_; }

 private:
  std::uint64_t version_;
  void* root_;
  std::size_t root_size_;
  bool marked_ = false;
};

// What most programs set; the rest is in `engine`.
struct pool_options {
  // Bytes. 0: the pool must exist. Otherwise open() creates the pool if no file has this path.
  std::size_t create_size = 0;
  // Bytes. A full pool grows up to this size by itself: the transaction that finds no room is
  // rolled back, the pool grows by half, at once durably, and the body runs again. 0: it keeps its
  // size, as pools of log_structured and archapt must, and each pool that is opened with archapt.
  // Not inside a transaction that cannot run again: a `with` of Python, an atomic block.
  std::size_t max_size = 0;
  // Name of the data's layout, up to 63 bytes; if not empty, must match the pool's. Empty: a new
  // pool gets "type " and the name of its root's type, and a pool with another type's is refused,
  // unless layout_version or migrate is set.
  std::string layout = "";
  // Version of the layout that this program knows. A pool with a later one is refused.
  std::uint64_t layout_version = 0;
  // Called in an update while a pool with an older layout version is opened. If it returns an
  // error, open() returns that error and the pool is unchanged. Without it such a pool is refused.
  std::function<result<>(migration&)> migrate = {};
  // What durable commits must survive: open() fails if they survive less.
  durability_level require = durability_level::none;
  concurrency policy = concurrency::stm;
  engine_options engine = {};  // mechanism, medium, logs, checksums, threads
};

// Counters that a mechanism has besides those of all; the header of its options lists them.
class mechanism_counters {
 public:
  struct entry {
    std::string_view name;
    std::uint64_t value;
  };
  const entry* begin() const noexcept { return entries_.data(); }
  const entry* end() const noexcept { return entries_.data() + count_; }
  // 0 if the pool's mechanism has no such counter.
  std::uint64_t operator[](std::string_view name) const noexcept {
    for (const entry& e : *this)
      if (e.name == name) return e.value;
    return 0;
  }
  // Adds to the counter. The name is a literal; counters beyond the twelfth are dropped.
  void add(std::string_view name, std::uint64_t value) noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      if (entries_[i].name == name) {
        entries_[i].value += value;
        return;
      }
    if (count_ < entries_.size()) entries_[count_++] = {name, value};
  }

 private:
  std::array<entry, 12> entries_{};
  std::size_t count_ = 0;
};

// Counts since the pool was opened, summed over threads. Exact while no transaction runs.
struct pool_counters {
  std::uint64_t commits = 0, aborts = 0, reads = 0;
  std::uint64_t fences = 0, flushed_lines = 0, streamed_bytes = 0, stored_bytes = 0;
  std::uint64_t truncations = 0, log_spills = 0;
  std::string_view mode = "";  // what the mechanism runs as, if it has several modes
  mechanism_counters of_mechanism;
};

struct pool_space {
  std::size_t size_bytes = 0;    // the file
  std::size_t log_bytes = 0;     // the header and all logs
  std::size_t used_bytes = 0;    // allocated blocks
  std::size_t free_bytes = 0;    // allocatable: free chunks, and free blocks of slabs
  std::size_t largest_free = 0;  // the largest single allocation that fits now
  double fragmentation = 0;  // share of the used part of the heap that is not in allocated blocks
};

// Names a commit. Later commits of the pool have larger numbers.
struct ticket {
  std::uint64_t commit = 0;
};

namespace detail {

class runtime;

// The part of a pool that does not depend on Root. Thread safety as for pool<Root>.
class pool_handle {
 public:
  pool_handle(pool_handle&&) noexcept;
  pool_handle& operator=(pool_handle&&) noexcept;
  ~pool_handle();

  // `root_type`: the name of std::type_info; null: unknown.
  [[nodiscard]] static result<pool_handle> open(const std::string& path,
                                                const pool_options& options, std::size_t root_size,
                                                const char* root_type = nullptr);
  [[nodiscard]] static result<pool_handle> open_read_only(const std::string& path,
                                                          const pool_options& options,
                                                          std::size_t root_size,
                                                          const char* root_type = nullptr);
  // Takes over an existing runtime; finds or creates the root.
  [[nodiscard]] static result<pool_handle> from_runtime(std::unique_ptr<runtime> r,
                                                        std::size_t root_size);
  // Likewise of a pool that is open for reading; it has the root.
  [[nodiscard]] static result<pool_handle> from_reader(std::unique_ptr<runtime> r,
                                                       std::size_t root_size,
                                                       std::uint64_t layout_version);

  runtime& core() const noexcept { return *runtime_; }
  void* root() const noexcept { return root_; }

 private:
  explicit pool_handle(std::unique_ptr<runtime> r);
  std::unique_ptr<runtime> runtime_;
  void* root_ = nullptr;
};

// One attempt of a transaction, driven by run_transaction below, or by the holder of a
// stele::transaction. Results fit a register, because
// every transaction takes this path.
enum class begin_status : std::uint8_t {
  started,
  joined,   // part of a running transaction (flat nesting): only run the body
  refused,  // last_error() says why
};
enum class commit_status : std::uint8_t {
  committed,
  retry,
  failed,  // and rolled back; last_error() says why
};
begin_status begin_transaction(runtime& r, bool writes, durability d,
                               code_between code = code_between::computes_only);
commit_status commit_transaction();
error last_error();                     // of this thread; reading it clears it
void roll_back_transaction() noexcept;  // the caller passes the error or exception on
// Rolls back and waits before the next attempt.
void retry_transaction(code_between code = code_between::computes_only) noexcept;

// After a transaction that has ended with `why`, for want of room: true if the pool has grown
// since, so that it may be run again. Else the pool cannot grow, and `why` says so.
bool grow_for(runtime& r, error& why);

// Of programs compiled with STELE_DEBUG (docs/guide/debug.md): closing the pool says on
// standard error which blocks `walk` does not name.
void report_leaks_at_close(runtime& r, const void* root,
                           std::function<void(const std::function<void(const void*)>&)> walk);
template <class Root>
void report_leaks_at_close([[maybe_unused]] const pool_handle& handle) {
#ifdef STELE_DEBUG
  using block_visit = std::function<void(const void*)>;
  if constexpr (requires(const Root& root, const block_visit& visit) {
                  root.visit_blocks(visit);
                }) {
    const auto* const root = static_cast<const Root*>(handle.root());
    report_leaks_at_close(handle.core(), root,
                          [root](const block_visit& visit) { root->visit_blocks(visit); });
  }
#endif
}

// Allocation inside the running transaction. Throws failure(errc::full) if there is no room.
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
    // Flat nesting: errors and exceptions go to the outer body.
    const bool nested = how == begin_status::joined;
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
      if (done == commit_status::failed) {
        error why = last_error();
        if (why.code == errc::full && grow_for(r, why)) continue;
        return std::unexpected(std::move(why));
      }
    } catch (const conflict&) {
      if (nested) throw;
    } catch (const failure& f) {
      if (nested) throw;
      roll_back_transaction();
      error why = f.why();
      if (why.code == errc::full && grow_for(r, why)) continue;
      return std::unexpected(std::move(why));
    } catch (...) {
      if (!nested) roll_back_transaction();
      throw;
    }
    retry_transaction();
  }
}

// pool::update() and pool::read(), for front ends that know a pool by its runtime.
template <class Body>
[[gnu::always_inline]] inline auto update_pool(runtime& r, durability d, Body&& body) {
  return run_transaction(r, true, d, body);
}
template <class Body>
[[gnu::always_inline]] inline auto read_pool(runtime& r, Body&& body) {
  return run_transaction(r, false, durability::durable, body);
}

// Null in a program without type information.
template <class T>
const char* type_name() noexcept {
#ifdef __GXX_RTTI
  return typeid(T).name();
#else
  return nullptr;
#endif
}

}  // namespace detail

// A type that may live in a pool: no virtual functions, no references, no ownership of memory
// outside the pool. A struct with containers declares a member type `pool_resident`; any other type
// needs a trivial destructor. members.h says which members it may have.
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
  static_assert((detail::require_pool_members<Root>(), true));

 public:
  // Opens the pool at `path`. If the file does not exist and options.create_size is set, creates it
  // first; a new root is all zero. A pool that was not closed is recovered before this returns:
  // every acknowledged commit is complete, and no other commit is there in part. Errors: not_found,
  // in_use (with the holder's pid), not_a_pool, version, corrupt, lost, layout, full, permission,
  // io, unsupported, invalid_argument; the file is left unchanged.
  [[nodiscard]] static result<pool> open(const std::string& path,
                                         const pool_options& options = {}) {
    auto handle = detail::pool_handle::open(path, options, sizeof(Root), detail::type_name<Root>());
    if (!handle) return std::unexpected(std::move(handle.error()));
    detail::report_leaks_at_close<Root>(*handle);
    return pool(std::move(*handle));
  }

  // Opens the pool for reading; any number of processes may, beside one that has it open for
  // writing, and no right to write the file is needed. Each read() sees one state, which contains
  // every commit whose update() has returned in any process before the read began. Readers hold up
  // no update; a killed reader or writer harms nobody (docs/protocol/readers.md). update(), grow()
  // and check() return the error read_only; backup() works while another process has the pool open;
  // sync() succeeds, as there are no commits of this process. Of the options only layout and
  // layout_version count. A pool that no process has open is read as it is; if it was not closed, a
  // recovered copy in memory is read. A read() returns the errors below when another process has
  // opened the pool meanwhile and they come up then. A pool that grows to more than 64 times the
  // size that it had here at opening, and 1 GiB, must be opened again. Errors: not_found, also of a
  // pool without a root yet; in_use, when the process that has it open does not answer for two
  // seconds; not_a_pool, version, corrupt, layout, permission, io; unsupported, by log_structured
  // and by the mechanism none without stm.
  [[nodiscard]] static result<pool> open_read_only(const std::string& path,
                                                   const pool_options& options = {}) {
    auto handle =
        detail::pool_handle::open_read_only(path, options, sizeof(Root), detail::type_name<Root>());
    if (!handle) return std::unexpected(std::move(handle.error()));
    return pool(std::move(*handle));
  }

  // Runs body(Root&) as one atomic transaction and commits it. After a conflict the body runs
  // again, so it must have no side effects of its own; and it must not wait for another thread,
  // which may be waiting for this transaction. Returns the body's value; the change is then durable
  // (with durability::ordered: ordered). If the body returns an error or throws, everything is
  // rolled back: a failure becomes the returned error, other exceptions reach the caller. When an
  // error is returned, nothing has changed. Inside another update of the same pool the body joins
  // that transaction. Thread-safe.
  template <class Body>
  [[nodiscard]] auto update(Body&& body, durability d = durability::durable) {
    return detail::run_transaction(handle_.core(), true, d,
                                   [&]() -> decltype(auto) { return std::invoke(body, root()); });
  }

  // Runs body(const Root&) on one consistent state. Writes no log and no data; the body must not
  // store. Under stm a body that meets other threads' commits runs again, but not for ever: after a
  // millisecond or a dozen times it sees one moment that they do not break (not with the mechanism
  // log_structured); they then keep in memory what they change meanwhile. Thread-safe.
  template <class Body>
  [[nodiscard]] auto read(Body&& body) const {
    return detail::run_transaction(
        handle_.core(), false, durability::durable,
        [&]() -> decltype(auto) { return std::invoke(body, std::as_const(root())); });
  }

  // A transaction that the caller holds: transaction.h. Errors: nested, if a transaction runs in
  // this thread; read_only, poisoned, invalid_argument of a closed pool; full; of a read of a pool
  // that is open for reading, those of open_read_only(). Thread-safe.
  [[nodiscard]] result<transaction> begin(durability d = durability::durable,
                                          code_between between = code_between::may_wait) {
    return detail::hold_update(handle_.core(), d, between);
  }
  [[nodiscard]] result<transaction> begin_read(
      code_between between = code_between::may_wait) const {
    return detail::hold_read(handle_.core(), between);
  }
  // The root, as the transaction sees it. In a read, a store to it throws failure(errc::read_only).
  // Throws failure(errc::invalid_argument) unless `t` is an open transaction of this pool.
  Root& root(transaction& t) { return t.require_open_on(handle_.core()), root(); }
  const Root& root(const transaction& t) const { return t.require_open_on(handle_.core()), root(); }

  // On success every commit that had returned before the call is durable. Errors: io, poisoned;
  // read_only, if the pool's file was removed, renamed or replaced. Thread-safe.
  [[nodiscard]] result<> sync();
  // The newest commit that has returned in any thread. wait(t) makes t and all commits before it
  // durable.
  ticket committed() const noexcept;
  [[nodiscard]] result<> wait(ticket t);
  // Calls `on_durable` once: with success when t and all commits before it are durable, at the
  // latest in close(); with an error if they cannot become durable in this session. The call comes
  // from this function if that is already known, else from the thread that makes them durable,
  // possibly in the middle of a commit. So `on_durable` must be short, must not throw and must not
  // use the pool. This function does not hasten the commits. Thread-safe.
  void when_durable(ticket t, std::function<void(result<>)> on_durable);

  // Writes a copy of the pool to `path`; no such file may exist. The copy is a closed pool with a
  // new id and the state at the start of the backup. The start waits for running transactions.
  // Transactions then go on; the first store to a page of 4 KiB waits until the page is copied.
  // With mechanism "none" and another policy than stm they wait for the end, and those of the
  // report are refused (nested). Durable on return; after a crash or an error there is no file.
  // Errors: exists, full, io, permission; cancelled; nested, inside a transaction; unsupported, by
  // log_structured. Thread-safe.
  [[nodiscard]] result<> backup(const std::string& path, const progress& report = {});

  // Lengthens the pool to `size_bytes`; does nothing if it is that long. Transactions wait
  // meanwhile. After a crash the pool has the old size or the new one. Errors: full, io; nested,
  // inside a transaction; unsupported, by pools of log_structured and archapt, while archapt has
  // the pool open, and where the addresses after the pool are taken (set max_size). Thread-safe.
  [[nodiscard]] result<> grow(std::size_t size_bytes);

  // Verifies the whole pool: heap, block checksums, then the root by its own check(), if it has
  // one. Transactions wait during the first two. Errors: corrupt, naming what is wrong and where;
  // nested, inside a transaction. Thread-safe.
  [[nodiscard]] result<> check();

  pool_counters counters() const noexcept;
  // Reads the state of every block. Transactions wait meanwhile, so the sums are those of one
  // moment. Inside a transaction nothing waits, and beside commits of other threads the sums are
  // approximate. Of a damaged heap only size_bytes and log_bytes are known. Thread-safe.
  pool_space space() const;
  // The strongest event that a durable commit survives. It depends on the medium and on the storage
  // behind the file.
  durability_level durability_in_force() const noexcept;
  std::string mechanism() const;

  // Makes every commit durable and marks the pool as closed. The destructor does the same and drops
  // the error. Whatever it returns but in_use, the file's lock is released and the pool is closed;
  // a second call does nothing. Errors: in_use, while a transaction runs; io, poisoned, and then
  // the next open recovers; read_only, if the pool's file was removed, renamed or replaced.
  [[nodiscard]] result<> close();

  // For tools that build their own runtime (explorer, tests): a pool over an open handle.
  explicit pool(detail::pool_handle h) : handle_(std::move(h)) {}
  detail::runtime& core() const noexcept { return handle_.core(); }

 private:
  Root& root() const noexcept { return *static_cast<Root*>(handle_.root()); }
  detail::pool_handle handle_;
};

namespace detail {

// Objects share the classes of multiples of 16 with texts and with each other: a commit that makes
// several then changes one line of block states, and they lie side by side.
template <class T>
inline constexpr std::size_t object_alignment = alignof(T) > 16 ? alignof(T) : 16;

}  // namespace detail

// A new T in the pool of the running transaction: zeroed, or constructed from `arguments`. The
// constructor must set every field; a field that it does not set holds old bytes. Other threads see
// the object, and a crash leaves it, only if the transaction commits. Throws failure(errc::full) if
// there is no room.
template <class T, class... Arguments>
T* make(Arguments&&... arguments) {
  static_assert(pool_object<T>,
                "an object in a pool is a standard-layout struct of fields and stele containers: "
                "no virtual functions, no references, no "
                "std::string or other owner of ordinary memory; a struct with containers in it "
                "says `using pool_resident = void;`");
  detail::require_pool_members<T>();
  static_assert(sizeof...(Arguments) == 0 || !std::is_aggregate_v<T>,
                "give the type a constructor to make it from arguments: an aggregate's missing "
                "members would be zeroed behind the "
                "transaction's back");
  void* block = detail::allocate(sizeof(T), detail::object_alignment<T>);
  T* object = nullptr;
  if constexpr (sizeof...(Arguments) == 0) {
    detail::fill_zero(block, sizeof(T));
    object = static_cast<T*>(block);
    if constexpr (!std::is_trivially_default_constructible_v<T>) object = ::new (block) T;
  } else {
    object = ::new (block) T(std::forward<Arguments>(arguments)...);
  }
  // Keeps the zeroes stored before the constructor: the compiler would treat them as dead stores.
  asm volatile("" : "+r"(object) : : "memory");
  return object;
}

// `count` zeroed Ts in a row. Throws failure(errc::full) if there is no room.
template <class T>
T* make_array(std::size_t count) {
  static_assert(pool_object<T> && std::is_trivially_default_constructible_v<T>,
                "arrays in a pool hold plain structs of fields");
  detail::require_pool_members<T>();
  if (count > (std::size_t{1} << 46) / sizeof(T))
    throw failure(
        {errc::full, "an array of " + std::to_string(count) + " elements does not fit a pool"});
  void* block = detail::allocate(count * sizeof(T), alignof(T) > 8 ? alignof(T) : 8);
  detail::fill_zero(block, count * sizeof(T));
  return static_cast<T*>(block);
}

// Destroys an object that make or make_array returned; null does nothing. Its memory becomes free
// when the transaction has committed. Until then, and if it rolls back, the object is unchanged.
template <class T>
void destroy(T* object) {
  if (object == nullptr) return;
  if constexpr (!std::is_trivially_destructible_v<T>) object->~T();
  detail::deallocate(const_cast<std::remove_const_t<T>*>(object));
}

}  // namespace stele

#include <stele/detail/pool_inl.h>
