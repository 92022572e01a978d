// The slow paths of an open pool: registration of threads, assignment of logs, biased lock, ordered
// mode, durability callbacks, close, counters. See runtime.h; pauses are in pause.cc.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <media/cpu.h>
#include <tx/long_read.h>
#include <tx/readers/reader_server.h>
#include <tx/readers/reader_session.h>
#include <tx/runtime.h>

#include <new>

namespace stele::detail {

using base::fail;

namespace {

constinit open_list<runtime> open_runtimes;
std::atomic<std::uint64_t> next_id{1};

// The thread contexts of this thread; releases them and their logs when the thread ends.
struct ending_registrations : registrations {
  ~ending_registrations();
};
thread_local ending_registrations this_thread_registrations;
// A thread's objects that were made before its registrations are destroyed after them.
constinit thread_local bool registrations_have_ended = false;

ending_registrations::~ending_registrations() {
  end_held_transaction();
  for (const thread_registration& v : *this)
    if (auto* const open = open_runtimes.keep(v.id)) {
      open->unregister_thread(*v.context);
      open_runtimes.let_go(*open);
    }
  last_registration = {0, nullptr};
  registrations_have_ended = true;
}

void erase_closed(registrations& all) {
  if (!all.are_many()) return;
  const std::lock_guard hold(open_runtimes.mutex);
  all.erase_closed([](std::uint64_t id) { return open_runtimes.find(id) == nullptr; });
}

[[maybe_unused]] const bool at_fork = base::call_in_children(+[]() noexcept {
  // The file lock does not exclude the child, so every pool is poisoned there.
  open_runtimes.enter_child([](runtime& r) { r.enter_child(); });
  leave_transaction_to_parent();
});

}  // namespace

constinit thread_local thread_registration last_registration{0, nullptr};

runtime::runtime(std::unique_ptr<pool_state> s, std::unique_ptr<engine> e,
                 const pool_options& options, std::string mechanism, durability_level level)
    : state_(std::move(s)),
      engine_(std::move(e)),
      entry_(next_id.fetch_add(1)),
      facts_(options, engine_->what(), state_->file.home_delta() != 0 || engine_->home() != nullptr,
             std::move(mechanism), level),
      file_watch_(!facts_.home_is_remapped && !facts_.in_place &&
                  engine_->store_observer() == nullptr && engine_->load_observer(0) == nullptr),
      locks_(facts_.policy == concurrency::stm ? size() : 0, state_->clock),
      threads_(state_->file.header().log_count),
      durable_callbacks_(state_->has_durable_callbacks) {
  state_->notify_durable = [this] { notify_durable(); };
  const std::lock_guard hold(open_runtimes.mutex);
  open_runtimes.add(*this);
}

// A reader's locks are the writer's: it has none of its own, and nobody to share its home with.
runtime::runtime(std::unique_ptr<pool_state> s, std::unique_ptr<reader_session> session)
    : state_(std::move(s)),
      reading_(std::move(session)),
      entry_(next_id.fetch_add(1)),
      facts_({.policy = concurrency::external}, {}, true, "(read-only)", durability_level::none),
      file_watch_(false),
      locks_(0, state_->clock),
      threads_(state_->file.header().log_count),
      durable_callbacks_(state_->has_durable_callbacks) {
  STELE_ASSERT_ALWAYS(reading_ != nullptr);
  const std::lock_guard hold(open_runtimes.mutex);
  open_runtimes.add(*this);
}

// Without memory to close the pool, the file is left as after a crash.
runtime::~runtime() {
  try {
    (void)close();
  } catch (const std::bad_alloc&) {
    durable_callbacks_.end(std::unexpected(durable_callbacks::make_error(errc::poisoned, [this] {
      return state_->file.path() + " was not closed; opening it recovers it";
    })));
  }
  readers_.reset();
  open_runtimes.remove(*this);
  // If close() failed, the engine's background thread still runs and uses the transactions of
  // the logs: it must end first.
  engine_.reset();
}

void runtime::enter_child() noexcept {
  state_->poison(pool_state::poison_cause::fork);
  if (readers_ != nullptr) readers_->abandon();
  if (reading() != nullptr) reading()->abandon();
}

void runtime::leave_to_parent() noexcept {
  state_->lost_pages_guard = media::sigbus_guard();
  state_->file.release();
  state_->clock_memory.reset();
  engine_ != nullptr ? engine_->leave_to_parent() : reading_->leave_to_parent();
}

std::unexpected<error> runtime::unusable() const {
  const std::string& path = state_->file.path();
  if (is_of_parent())
    return fail(
        errc::poisoned,
        fmt::format("{} was opened by the process that this one is a fork of, and only that "
                    "one can use it so: open it again here once it is closed there, or "
                    "start processes by spawn",
                    path));
  return fail(errc::poisoned, fmt::format("{} cannot be used any more: {}; reopen it", path,
                                          state_->poison_reason()));
}

void runtime::serve_readers() {
  STELE_ASSERT_ALWAYS(readers_ == nullptr && reading() == nullptr);
  if (state_->clock_memory == nullptr) return;
  if (auto serving = reader_server::start(*this)) readers_ = std::move(*serving);
}

home_of_log runtime::home(unsigned log) const {
  STELE_ASSERT(log < threads_.logs().size());
  if (reading() != nullptr) return home_of_log(reading()->home_read());
  return home_of_log(base() + state_->file.home_delta(), engine_->home(), log);
}

// A thread's first transaction here, or another thread has the log or the bias.
result<thread_context*> runtime::register_thread() {
  if (state_->poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return unusable();
  if (last_registration.id == entry_.id) [[likely]]
    return last_registration.context;
  if (registrations_have_ended) [[unlikely]] {
    // In a destructor at the thread's end, or at exit(). The context stays until the pool closes.
    last_registration = {entry_.id, &threads_.add()};
  } else if (const auto* const known = this_thread_registrations.find(entry_.id)) {
    last_registration = *known;
  } else {
    erase_closed(this_thread_registrations);
    this_thread_registrations.reserve();
    last_registration = this_thread_registrations.add(entry_.id, threads_.add());
  }
  STELE_ASSERT(last_registration.id == entry_.id && last_registration.context != nullptr);
  // A transaction of the pool before may have had the address that one of this pool has.
  this_access.running = nullptr;
  return last_registration.context;
}

result<thread_context*> runtime::enter_slow() {
  auto registered = register_thread();
  if (!registered) return registered;
  thread_context& v = **registered;
  STELE_ASSERT(last_registration.id == entry_.id && last_registration.context == &v);
  STELE_ASSERT(v.is_between_transactions());
  for (;;) {
    v.in_transaction.announce(true);
    if (!threads_.owns(v)) [[unlikely]] {
      v.in_transaction.withdraw();
      if (auto got = acquire_log(v); !got) return std::unexpected(std::move(got.error()));
    }
    STELE_ASSERT(v.tx != nullptr && v.tx->log() < threads_.logs().size());
    const thread_context* const other = bias_.look();
    if (other == nullptr || other == &v) [[likely]]
      return &v;
    v.in_transaction.withdraw();
    bias_.revoke(v);  // meanwhile another thread may take the log: check again
  }
}

result<thread_context*> runtime::enter_without_bias() {
  for (;;) {
    auto v = enter_slow();
    if (!v || !is_alone(**v)) return v;
    leave(**v);
    bias_.give_up(**v);
  }
}

// single_writer: the caller holds the writer lock.
void runtime::grant_bias(thread_context& v) noexcept {
  bias_.grant(v, [&] { return threads_.others_run(v); });
}

result<> runtime::acquire_log(thread_context& v) {
  log_slot* const last = v.tx != nullptr ? &threads_.logs()[v.tx->log()] : nullptr;
  const auto got = threads_.acquire(v, last, !is_paused_by_this_report(),
                                    [&](log_slot& p) { assign_log(v, p); });
  if (got) return {};
  if (got.error() == thread_registry::refusal::paused) return reporting_error();
  return fail(errc::invalid_argument, fmt::format("{} has been closed", state_->file.path()));
}

// Makes the thread the owner of a log that no running transaction uses. Called under the mutex of
// threads_.
void runtime::assign_log(thread_context& v, log_slot& p) {
  STELE_ASSERT(!threads_.is_paused() && !threads_.is_closed());
  STELE_ASSERT(p.owner.peek() == nullptr || p.tx != nullptr);  // it has had an owner
  STELE_ASSERT(this_access.running != p.tx.get() || this_access.size == 0);
  if (!p.tx)
    p.tx = std::make_unique<transaction>(
        *this, locks_.in_use(), static_cast<unsigned>(&p - threads_.logs().data()), p.counts);
  p.owner.set(&v);
  v.tx = p.tx.get();
  STELE_ASSERT(&threads_.logs()[v.tx->log()] == &p);  // enter() looks there for the owner
  v.in_transaction.announce(true);
  if (policy() == concurrency::single_writer && threads_.has_one_thread()) bias_.give(v);
}

void runtime::use_locks(const lock_table& t) noexcept {
  const std::lock_guard hold(threads_.mutex());
  STELE_ASSERT(is_paused());  // readers.md A2
  locks_.use(t);
  for (log_slot& p : threads_.logs())
    if (p.tx) p.tx->use_locks(t);
}

void runtime::unregister_thread(thread_context& v) noexcept {
  const std::scoped_lock hold(bias_.mutex(), threads_.mutex());
  bias_.forget(v);
  threads_.remove(v);
}

void pool_state::await_announced(unsigned except) const noexcept {
  for (std::size_t i = 0; i < committing.size(); ++i) {
    if (i == except) continue;
    const std::uint64_t announced = committing[i].value.load(std::memory_order_seq_cst);
    while (announced != no_commit &&
           committing[i].value.load(std::memory_order_acquire) == announced)
      media::cpu::relax();
  }
}

// A commit that was announced before it could see the flag may have drawn its TxID without the
// mutex, so this waits for such commits. The flag is no asymmetric_gate: announcements are values
// of the clock, which truncations read too, and a commit that sees the flag goes on, in order.
void runtime::enter_ordered_mode(unsigned log) {
  STELE_ASSERT(defers_ordered() && log < threads_.logs().size());
  STELE_ASSERT(!state_->ordered_mode.load(std::memory_order_relaxed));
  state_->ordered_mode.store(true, std::memory_order_seq_cst);
  base::asymmetric_fence_heavy();
  state_->await_announced(log);
}

void runtime::flush_deferred_of_others_slow(const thread_context& v, bool writes) {
  STELE_ASSERT(policy() != concurrency::stm && v.tx != nullptr);
  STELE_ASSERT(this_access.size == 0);
  const bool own_alone =
      v.tx->has_deferred() && state_->deferred_logs.load(std::memory_order_acquire) == 1;
  const bool reads_as_owner = policy() == concurrency::external || bias_.is_of(v);
  if (!own_alone || !(writes || reads_as_owner)) engine_->flush_deferred();
}

void runtime::flush_and_release(transaction& t) noexcept {
  engine_->flush_deferred();
  if (state_->poisoned.load()) return;
  STELE_ASSERT(!t.has_deferred());  // default.md G4, before the release
  t.release_overlay();
}

// The caller is between two attempts: it runs no transaction.
void runtime::release_idle_overlays(const thread_context& v) noexcept {
  engine_->flush_deferred();
  const std::lock_guard hold(threads_.mutex());
  if (state_->poisoned.load()) return;  // lines that are not stored home stay locked
  // The owner may have committed since the first flush.
  threads_.release_idle_overlays(v, [this](transaction& t) { flush_and_release(t); });
}

// While other processes read, the locks of v's deferred commits may be in the way of the thread
// that holds the mutex. v counts as in a transaction, so no other thread releases them.
void runtime::lock_writer_slow(thread_context& v) {
  writer_.lock(v, [&] {
    if (locks_.in_use().shared && v.tx->has_overlay()) flush_and_release(*v.tx);
  });
}

void runtime::unlock_writer(thread_context& v) noexcept {
  writer_.unlock(v, [&] { grant_bias(v); });
}

void runtime::begin_read(thread_context& v) {
  if (policy() == concurrency::single_writer && !bias_.is_of(v)) writer_.begin_read(v);
}

void runtime::block_readers() {
  if (policy() != concurrency::single_writer) return;
  writer_.block_readers();
  threads_.await_readers();
}

void runtime::notify_when_durable(std::uint64_t txid, std::function<void(result<>)> callback) {
  if (is_of_parent()) return callback(unusable());
  durable_callbacks_.add(txid, std::move(callback));
  if (threads_.is_closed() || state_->poisoned.load())
    durable_callbacks_.end(std::unexpected(durable_callbacks::make_error(errc::poisoned, [this] {
      return fmt::format(
          "{} is not in use any more: whether this commit is durable, opening it tells",
          state_->file.path());
    })));
  else
    notify_durable();
}

void runtime::notify_durable() noexcept {
  // A reader has no commits that could wait.
  durable_callbacks_.call_durable(
      [this] { return engine_ != nullptr ? engine_->durable_through() : pool_state::no_commit; });
}

std::unexpected<error> runtime::running_error() const {
  return fail(
      errc::in_use,
      fmt::format("{} cannot be closed while a transaction runs or there is a pool_snapshot",
                  state_->file.path()));
}

// If it throws std::bad_alloc, the pool stays open and usable.
result<> runtime::close() {
  if (is_of_parent()) return {};
  if (readers_ != nullptr) {
    {
      const std::lock_guard hold(threads_.mutex());
      if (threads_.runs_transaction()) return running_error();
    }
    readers_.reset();  // pauses, for which it needs the mutex
    result<> closed;
    try {
      closed = close_without_readers();
    } catch (const std::bad_alloc&) {
      serve_readers();  // it stays open
      throw;
    }
    if (!closed && closed.error().code == errc::in_use) serve_readers();  // likewise
    return closed;
  }
  return close_without_readers();
}

result<> runtime::close_without_readers() {
  const auto is_in_use = [this] { return page_snapshots_.moments() != 0; };
  if (front_end_.waits_for_close()) {
    {
      const std::lock_guard hold(threads_.mutex());
      if (threads_.runs_transaction() || is_in_use()) return running_error();
    }
    front_end_.call_before_close();
  }
  switch (threads_.close(is_in_use)) {
    case thread_registry::closing::was_closed:
      return {};
    case thread_registry::closing::refused:
      return running_error();
    case thread_registry::closing::closed:
      break;
  }
  STELE_ASSERT_ALWAYS(readers_ == nullptr);
  try {
    return close_engine();
  } catch (const std::bad_alloc&) {
    threads_.reopen();
    throw;
  }
}

result<> runtime::check_usable() {
  if (is_of_parent()) return unusable();
  if (auto whole = state_->file.check_not_truncated(); !whole) {
    state_->poison(pool_state::poison_cause::lost_page);
    return whole;
  }
  look_at_file();
  if (!state_->poisoned.load()) return {};
  return unusable();
}

void runtime::look_at_file() noexcept {
  if (!state_->file.holds_this_pool()) state_->poison(pool_state::poison_cause::overwritten);
  file_watch_.note(state_->file.place());
}

error runtime::place_error() const {
  return file_watch_.refusal(state_->file.path(), state_->file.mapping().fd);
}

result<> runtime::check_in_place() {
  look_at_file();
  if (place() == storage::file_place::in_place) return {};
  return std::unexpected(place_error());
}

// Releases the lock whatever happens, so that the pool can be opened again.
result<> runtime::close_engine() {
  STELE_ASSERT_ALWAYS(threads_.is_closed());
  (void)check_usable();
  const bool was_poisoned = state_->poisoned.load();
  result<> closed = check_in_place();
  if (engine_ != nullptr)
    if (auto ended = engine_->close(); !ended) closed = std::move(ended);
  if (was_poisoned)
    closed = fail(errc::poisoned, fmt::format("{} was left as it is: {}; opening it recovers it",
                                              state_->file.path(), state_->poison_reason()));
  durable_callbacks_.end(closed);
  state_->file.unlock();
  STELE_ASSERT_ALWAYS(state_->file.mapping().fd < 0);
  return closed;
}

pool_counters runtime::counters() const noexcept {
  pool_counters c;
  if (is_of_parent()) return c;
  threads_.add_counts(c);
  const engine_totals t = engine_ != nullptr ? engine_->totals() : engine_totals();
  c.fences = t.media.fences;
  c.flushed_lines = t.media.flushed_lines;
  c.streamed_bytes = t.media.streamed_bytes;
  c.stored_bytes += t.media.stored_bytes;
  c.truncations = t.truncations;
  c.log_spills = t.log_spills;
  c.mode = t.mode;
  c.of_mechanism = t.of_mechanism;
  return c;
}

// Beside commits an audit finds chunks and slabs half changed. A transaction of this thread rules
// out a pause, which would wait for it: then the sums are those of a moment only nearly. In the
// report of a backup there may be a pause already.
pool_space runtime::space() {
  if (is_of_parent()) return {};
  if (reading() != nullptr) return reading()->space();
  std::optional<pool_pause> paused;
  if (this_access.size == 0 && !state_->poisoned.load() && !is_paused_by_this_report())
    paused.emplace(pause());
  else
    engine_->flush_deferred();  // the audit reads home
  const auto& h = state_->file.header();
  pool_space s;
  s.size_bytes = h.size;
  s.log_bytes = h.home_offset;
  auto sum = state_->heap.audit();
  for (unsigned more = 16; !sum && !paused && more != 0; --more) sum = state_->heap.audit();
  if (!sum) return s;  // the heap is damaged: check() says where
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift;
  s.used_bytes = sum->used_bytes;
  s.free_bytes = sum->free_chunks * chunk + sum->free_blocks_bytes;
  s.largest_free = state_->heap.longest_free_run();
  const double taken = static_cast<double>(sum->used_chunks * chunk);
  s.fragmentation = taken == 0 ? 0 : 1 - static_cast<double>(sum->used_bytes) / taken;
  if (const virtual_home* const home = engine_->home()) home->measure(s);
  return s;
}

std::uint64_t runtime::root_offset() const noexcept {
  return state_->heap.word_at(state_->file.header().home_offset +
                              offsetof(format::home_header, root_offset));
}

// The open pool that an address belongs to; null: none. In a child of fork, also its parent's: a
// store of the child would reach the file.
runtime* runtime_at(std::uintptr_t address) {
  const std::lock_guard hold(open_runtimes.mutex);
  return open_runtimes.find_mapped([address](const runtime& r) {
    return address - reinterpret_cast<std::uintptr_t>(r.base()) < r.size();
  });
}

}  // namespace stele::detail
