// The slow paths of an open pool: registration of threads, assignment of logs, biased lock, ordered
// mode, durability callbacks, close, counters. See runtime.h; pauses are in pause.cc.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <base/reserve.h>
#include <base/rng.h>
#include <fmt/format.h>
#include <media/cpu.h>
#include <tx/long_read.h>
#include <tx/readers/reader_server.h>
#include <tx/readers/reader_session.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <chrono>
#include <new>

namespace stele::detail {

using base::fail;

// The runtimes in this process: for threads that end, for fork, and to check stores outside
// transactions. A child of fork can read the list whatever the parent's threads did: each change is
// one store.
class open_list {
 public:
  std::mutex mutex;

  void add(runtime& r) noexcept {
    STELE_ASSERT_ALWAYS(r.next_open_ == nullptr && first_ != &r);
    r.next_open_ = first_;
    std::atomic_signal_fence(std::memory_order_release);
    first_ = &r;
  }
  // On return no thread that ends uses the runtime.
  void remove(const runtime& r) noexcept {
    std::unique_lock hold(mutex);
    runtime** at = &first_;
    while (*at != &r) {
      STELE_ASSERT_ALWAYS(*at != nullptr);
      at = &(*at)->next_open_;
    }
    *at = r.next_open_;
    while (r.ending_threads_ != 0 && !r.is_of_parent()) {
      hold.unlock();
      ::sched_yield();
      hold.lock();
    }
  }
  // The runtime of this number, which is not removed before let_go(); null: it is not open. A
  // thread that ends must not hold the mutex while it waits for the runtime's locks: one of these
  // may be held by a thread that waits for a transaction, whose body may need the mutex.
  runtime* keep(std::uint64_t id) noexcept {
    const std::lock_guard hold(mutex);
    runtime* const open = find(id);
    if (open != nullptr) ++open->ending_threads_;
    return open;
  }
  void let_go(runtime& r) noexcept {
    const std::lock_guard hold(mutex);
    STELE_ASSERT(r.ending_threads_ != 0);
    --r.ending_threads_;
  }
  // The first one for which f() is true; in a child, of its parent's too.
  template <class F>
  runtime* find_mapped(F&& f) const {
    for (runtime* r = first_; r != nullptr; r = r->next_open_)
      if (f(*r)) return r;
    return nullptr;
  }
  // The first one of this process for which f() is true.
  template <class F>
  runtime* find(F&& f) const {
    return find_mapped([&](const runtime& r) { return !r.is_of_parent() && f(r); });
  }
  runtime* find(std::uint64_t id) const {
    return find([id](const runtime& r) { return r.id_ == id; });
  }

  // A child has none of the parent's threads, and the file lock does not exclude it. So every pool
  // is poisoned there.
  void enter_child() noexcept {
    ::new (&mutex) std::mutex;
    for (runtime* r = first_; r != nullptr; r = r->next_open_) r->enter_child();
  }

 private:
  runtime* first_ = nullptr;
};

namespace {

constinit open_list open_runtimes;
std::atomic<std::uint64_t> next_id{1};

// The thread contexts of this thread; releases them and their logs when the thread ends.
struct thread_registrations {
  std::vector<thread_registration> all;

  ~thread_registrations();
};
thread_local thread_registrations this_thread_registrations;
// A thread's objects that were made before its registrations are destroyed after them.
constinit thread_local bool registrations_have_ended = false;

thread_registrations::~thread_registrations() {
  end_held_transaction();
  for (const thread_registration& v : all)
    if (auto* const open = open_runtimes.keep(v.id)) {
      open->unregister_thread(*v.context);
      open_runtimes.let_go(*open);
    }
  last_registration = {0, nullptr};
  registrations_have_ended = true;
}

// Keeps a thread's list short if the thread opens and closes many pools.
void erase_closed(std::vector<thread_registration>& all) {
  if (all.size() < 32) return;
  const std::lock_guard hold(open_runtimes.mutex);
  std::erase_if(all,
                [](const thread_registration& v) { return open_runtimes.find(v.id) == nullptr; });
}

// An error for callbacks. Falls back to a message that needs no memory.
template <class Sentence>
error make_error(errc code, Sentence&& sentence) noexcept {
  try {
    return {code, sentence()};
  } catch (const std::bad_alloc&) {
    return {code, "out of memory"};  // short: std::string does not allocate
  }
}
result<> copy_result(const result<>& how) noexcept {
  if (how) return {};
  return std::unexpected(make_error(how.error().code, [&] { return how.error().message; }));
}

[[maybe_unused]] const bool at_fork = base::call_in_children(+[]() noexcept {
  open_runtimes.enter_child();
  leave_transaction_to_parent();
});

}  // namespace

thread_context::thread_context() = default;
thread_context::~thread_context() = default;

constinit thread_local thread_registration last_registration{0, nullptr};

runtime::runtime(std::unique_ptr<pool_state> s, std::unique_ptr<engine> e,
                 const pool_options& options, std::string mechanism, durability_level level)
    : state_(std::move(s)),
      engine_(std::move(e)),
      options_(options),
      mechanism_name_(std::move(mechanism)),
      durability_(level),
      home_is_remapped_(state_->file.home_delta() != 0 || engine_->home() != nullptr),
      in_place_(options.policy != concurrency::stm && engine_->what().stores_in_place &&
                !home_is_remapped()),
      defers_ordered_(engine_->what().defers_ordered &&
                      options.engine.defer_ordered == deferral::always),
      tells_ordered_(defers_ordered_ || engine_->what().tells_ordered),
      has_plain_updates_(!home_is_remapped_ && !in_place_ && engine_->store_observer() == nullptr &&
                         engine_->load_observer(0) == nullptr),
      log_slots_(state_->file.header().log_count),
      id_(next_id.fetch_add(1)) {
  state_->notify_durable = [this] { notify_durable(); };
  if (options_.policy == concurrency::stm) {
    own_lock_count_ = line_lock_count(size());
    STELE_ASSERT_ALWAYS(std::has_single_bit(own_lock_count_));  // its mask names all of them
    own_locks_ = std::make_unique<line_lock[]>(own_lock_count_);
  }
  locks_ = own_locks();
  const std::lock_guard hold(open_runtimes.mutex);
  open_runtimes.add(*this);
}

// A reader's locks are the writer's: it has none of its own.
runtime::runtime(std::unique_ptr<pool_state> s, std::unique_ptr<reader_session> session)
    : state_(std::move(s)),
      options_{.policy = concurrency::external},
      mechanism_name_("(read-only)"),
      log_slots_(state_->file.header().log_count),
      id_(next_id.fetch_add(1)),
      reading_(std::move(session)) {
  STELE_ASSERT_ALWAYS(reading_ != nullptr);
  const std::lock_guard hold(open_runtimes.mutex);
  open_runtimes.add(*this);
}

// Without memory to close the pool, the file is left as after a crash.
runtime::~runtime() {
  try {
    (void)close();
  } catch (const std::bad_alloc&) {
    end_durable_callbacks(std::unexpected(make_error(errc::poisoned, [this] {
      return state_->file.path() + " was not closed; opening it recovers it";
    })));
  }
  readers_.reset();
  open_runtimes.remove(*this);
  // If close() failed, the engine's background thread still runs and uses the transactions of
  // log_slots_: it must end first.
  engine_.reset();
}

void runtime::enter_child() noexcept {
  state_->poison(pool_state::poison_cause::fork);
  if (readers_ != nullptr) readers_->abandon();
  if (reading_ != nullptr) reading_->abandon();
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
  STELE_ASSERT_ALWAYS(readers_ == nullptr && reading_ == nullptr);
  if (state_->clock_memory == nullptr) return;
  if (auto serving = reader_server::start(*this)) readers_ = std::move(*serving);
}

home_of_log runtime::home(unsigned log) const {
  STELE_ASSERT(log < log_slots_.size());
  if (reading_ != nullptr) return home_of_log(reading_->home_read());
  return home_of_log(base() + state_->file.home_delta(), engine_->home(), log);
}

// A thread's first transaction here, or another thread has the log or the bias.
result<thread_context*> runtime::register_thread() {
  if (state_->poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return unusable();
  if (last_registration.id != id_ && registrations_have_ended) [[unlikely]] {
    // In a destructor at the thread's end, or at exit(). The context stays until the pool closes.
    const std::scoped_lock hold(registry_, threads_mutex_);
    threads_.push_back(std::make_unique<thread_context>());
    last_registration = {id_, threads_.back().get()};
    this_access.running = nullptr;
  }
  if (last_registration.id != id_) {
    auto known =
        std::find_if(this_thread_registrations.all.begin(), this_thread_registrations.all.end(),
                     [&](const thread_registration& v) { return v.id == id_; });
    if (known == this_thread_registrations.all.end()) {
      erase_closed(this_thread_registrations.all);
      base::reserve_more(this_thread_registrations.all, 1);
      const std::scoped_lock hold(registry_, threads_mutex_);
      threads_.push_back(std::make_unique<thread_context>());
      this_thread_registrations.all.push_back({id_, threads_.back().get()});
      known = this_thread_registrations.all.end() - 1;
    }
    STELE_ASSERT(known->id == id_ && known->context != nullptr);
    last_registration = *known;
    // A transaction of the pool before may have had the address that one of this pool has.
    this_access.running = nullptr;
  }
  return last_registration.context;
}

result<thread_context*> runtime::enter_slow() {
  auto registered = register_thread();
  if (!registered) return registered;
  thread_context& v = **registered;
  STELE_ASSERT(last_registration.id == id_ && last_registration.context == &v);
  STELE_ASSERT(is_between_transactions(v));
  for (;;) {
    v.in_transaction.announce(true);
    if (v.tx == nullptr || log_slots_[v.tx->log()].owner.look() != &v) [[unlikely]] {
      v.in_transaction.withdraw();
      auto tx = acquire_log(v);
      if (!tx) return std::unexpected(std::move(tx.error()));
    }
    STELE_ASSERT(v.tx != nullptr && v.tx->log() < log_slots_.size());
    const thread_context* const other = biased_.look();
    if (other == nullptr || other == &v) [[likely]]
      return &v;
    v.in_transaction.withdraw();
    revoke_bias(v);  // meanwhile another thread may take the log: check again
  }
}

// Takes the bias from another thread, and waits until that thread's last transaction without locks
// has ended. Until then bias_being_revoked_ holds the bias, so that every thread that begins waits
// here.
void runtime::revoke_bias(const thread_context& v) {
  const std::lock_guard hold(bias_mutex_);
  const thread_context* const other = biased_.peek();
  if (other == nullptr || other == &v) return;
  STELE_ASSERT(other != &bias_being_revoked_);  // one revocation at a time
  STELE_ASSERT(!v.in_transaction.made());       // or two threads would wait for each other
  biased_.close(&bias_being_revoked_);
  lone_commits_before_bias_.store(std::min(2 * lone_commits_before_bias_, max_bias_threshold));
  if (!planted_in_schedule_explorer(base::mutant::bias_unawaited))
    other->in_transaction.await_withdrawal(::sched_yield);
  biased_.open();
}

result<thread_context*> runtime::enter_without_bias() {
  for (;;) {
    auto v = enter_slow();
    if (!v || !is_alone(**v)) return v;
    leave(**v);  // a thread that revokes the bias holds the mutex until then
    const std::lock_guard hold(bias_mutex_);
    if (is_alone(**v)) biased_.open();
  }
}

// Gives the bias to a thread that has been the only writer for long: it takes no lock until another
// thread comes. single_writer: the caller holds the writer lock.
void runtime::grant_bias(thread_context& v) noexcept {
  v.lone_commits = 0;
  const std::unique_lock hold(bias_mutex_, std::try_to_lock);
  if (!hold.owns_lock()) return;
  STELE_ASSERT(base::holds(biased_.peek() == nullptr || biased_.peek() == &v));
  // A thread that begins from here on sees the bias; one already in a transaction is seen below.
  biased_.close(&v);
  const std::lock_guard hold_threads(threads_mutex_);
  const bool others = std::any_of(threads_.begin(), threads_.end(), [&](const auto& o) {
    return o.get() != &v && o->in_transaction.seen();
  });
  if (others && !planted_in_schedule_explorer(base::mutant::bias_beside_others))
    biased_.set(nullptr);
}

// Finds a log for a thread: a free one, else one whose owner is between transactions. Waits for
// either if there is none.
result<transaction*> runtime::acquire_log(thread_context& v) {
  std::unique_lock hold(registry_);
  for (;;) {
    if (closed_)
      return fail(errc::invalid_argument, fmt::format("{} has been closed", state_->file.path()));
    if (paused_) {
      if (is_paused_by_this_report()) return reporting_error();
      log_released_.wait_for(hold, std::chrono::milliseconds(1));
      continue;
    }
    // Another thread that looked for a log, or for idle overlays, may have had v's for a moment.
    if (v.tx != nullptr)
      if (log_slot& own = log_slots_[v.tx->log()]; own.owner.peek() == &v)
        return assign_log(v, own);
    for (log_slot& p : log_slots_)
      if (p.owner.peek() == nullptr) return assign_log(v, p);
    for (log_slot& p : log_slots_) {
      thread_context* const owner = p.owner.exchange(&v);
      STELE_ASSERT(owner != nullptr && p.tx != nullptr);
      // An owner that begins from here on sees that it has lost the log; one already in a
      // transaction is seen below.
      base::asymmetric_fence_heavy();
      if (!owner->in_transaction.seen()) return assign_log(v, p);
      p.owner.open(owner);
    }
    log_released_.wait_for(hold, std::chrono::microseconds(100));
  }
}

// Makes the thread the owner of a log that no running transaction uses. Called under registry_.
transaction* runtime::assign_log(thread_context& v, log_slot& p) {
  STELE_ASSERT(!paused_ && !closed_);
  STELE_ASSERT(this_access.running != p.tx.get() || this_access.size == 0);
  if (!p.tx)
    p.tx = std::make_unique<transaction>(*this, locks_,
                                         static_cast<unsigned>(&p - log_slots_.data()), p.counts);
  p.owner.set(&v);
  v.tx = p.tx.get();
  STELE_ASSERT(&log_slots_[v.tx->log()] == &p);  // enter() looks there for the owner
  v.in_transaction.announce(true);
  if (policy() == concurrency::single_writer && threads_.size() == 1) biased_.set(&v);
  return v.tx;
}

lock_table runtime::own_locks() const noexcept {
  return {.locks = own_locks_.get(),
          .mask = own_lock_count_ - (own_lock_count_ != 0),
          .clock = &state_->clock};
}

void runtime::use_locks(const lock_table& t) noexcept {
  STELE_ASSERT(t.locks == nullptr || (std::has_single_bit(t.mask + 1) && t.clock != nullptr));
  STELE_ASSERT(t.locks != nullptr || !t.shared);
  const std::lock_guard hold(registry_);
  STELE_ASSERT(is_paused());  // readers.md A2
  locks_ = t;
  for (log_slot& p : log_slots_)
    if (p.tx) p.tx->use_locks(t);
}

bool runtime::owns_a_log(const thread_context& v) const noexcept {
  return std::ranges::any_of(log_slots_, [&](const log_slot& p) { return p.owner.peek() == &v; });
}

void runtime::unregister_thread(thread_context& v) noexcept {
  const std::scoped_lock hold(bias_mutex_, registry_);
  if (biased_.peek() == &v) biased_.set(nullptr);
  for (log_slot& p : log_slots_)
    if (p.owner.peek() == &v) {
      if (p.tx) p.tx->return_cached_blocks();
      p.owner.open();
    }
  const std::lock_guard hold_threads(threads_mutex_);
  [[maybe_unused]] const std::size_t erased =
      std::erase_if(threads_, [&](const auto& known) { return known.get() == &v; });
  STELE_ASSERT(erased == 1);
  STELE_ASSERT_WHOLE(!owns_a_log(v));
  log_released_.notify_one();
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
  STELE_ASSERT(defers_ordered_ && log < log_slots_.size());
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
  const bool reads_as_owner = policy() == concurrency::external || biased_.peek() == &v;
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
  const std::lock_guard hold(registry_);
  if (state_->poisoned.load()) return;  // lines that are not stored home stay locked
  for (log_slot& p : log_slots_) {
    thread_context* const owner = p.owner.peek();
    const thread_context* const user = user_of(p);
    if (!p.tx || !p.tx->has_overlay()) continue;
    if (user == &v) {
      p.tx->release_overlay();
      continue;
    }
    p.owner.close(nullptr);  // as in acquire_log
    if (user == nullptr || !user->in_transaction.seen()) {
      STELE_ASSERT(this_access.running != p.tx.get() || this_access.size == 0);
      flush_and_release(*p.tx);  // the owner may have committed since the first flush
      if (user == nullptr) p.tx->return_cached_blocks();
    }
    p.owner.open(owner);
  }
}

// The thread that may be in a transaction on this log: its owner, or the thread that a pause took
// it from. Null: none. Called under registry_.
const thread_context* runtime::user_of(const log_slot& p) const noexcept {
  if (const thread_context* const owner = p.owner.peek(); owner != nullptr) return owner;
  if (!paused_ || planted(base::mutant::retire_paused)) return nullptr;
  const auto known =
      std::ranges::find(threads_, p.paused_owner, &std::unique_ptr<thread_context>::get);
  return known != threads_.end() ? p.paused_owner : nullptr;
}

void runtime::reclaim_idle_caches(const thread_context& v) noexcept {
  const std::lock_guard hold(registry_);
  for (log_slot& p : log_slots_) {
    thread_context* const owner = p.owner.peek();
    if (owner == nullptr || owner == &v) continue;
    p.owner.close(nullptr);  // as in acquire_log
    if (owner->in_transaction.seen())
      p.owner.open(owner);
    else if (p.tx)
      p.tx->return_cached_blocks();
  }
}

// While other processes read, the locks of v's deferred commits may be in the way of the thread
// that holds the mutex. v counts as in a transaction, so no other thread releases them.
void runtime::lock_writer_slow(thread_context& v) {
  if (!writer_.try_lock()) {
    if (locks_.shared && v.tx->has_overlay()) flush_and_release(*v.tx);
    writer_.lock();
  }
  STELE_ASSERT(!v.holds_writer);
  v.holds_writer = true;
  writer_streak_ = last_writer_ == &v ? writer_streak_ + 1 : 0;
  last_writer_ = &v;
}

void runtime::unlock_writer(thread_context& v) noexcept {
  STELE_ASSERT(v.holds_writer && last_writer_ == &v);
  v.holds_writer = false;
  if (writer_streak_ >= bias_threshold) [[unlikely]] {
    writer_streak_ = 0;
    grant_bias(v);
  }
  writer_.unlock();
}

void runtime::begin_read(thread_context& v) {
  if (policy() != concurrency::single_writer || biased_.peek() == &v) return;
  STELE_ASSERT(!v.holds_writer);
  STELE_ASSERT(!v.reading.load(std::memory_order_relaxed));
  for (;;) {
    v.reading.store(true, std::memory_order_seq_cst);
    if (!readers_blocked_.load(std::memory_order_seq_cst)) return;
    v.reading.store(false, std::memory_order_release);
    while (readers_blocked_.load(std::memory_order_acquire)) media::cpu::relax();
  }
}

void runtime::block_readers() {
  if (policy() != concurrency::single_writer) return;
  readers_blocked_.store(true, std::memory_order_seq_cst);
  // Not registry_: its holder may be waiting for this writer to end.
  const std::lock_guard hold(threads_mutex_);
  for (const auto& v : threads_)
    while (v->reading.load(std::memory_order_seq_cst)) media::cpu::relax();
}

void runtime::unblock_readers() noexcept {
  readers_blocked_.store(false, std::memory_order_release);
}

std::uint64_t runtime::newest_commit() const noexcept {
  std::uint64_t newest = 0;
  for (const log_slot& p : log_slots_) newest = std::max(newest, p.counts.newest());
  return newest;
}

void runtime::notify_when_durable(std::uint64_t txid, std::function<void(result<>)> callback) {
  if (is_of_parent()) return callback(unusable());
  {
    const std::lock_guard hold(durable_callbacks_mutex_);
    durable_callbacks_.emplace(txid, std::move(callback));
    state_->has_durable_callbacks.store(true, std::memory_order_release);
  }
  if (closed_ || state_->poisoned.load())
    end_durable_callbacks(std::unexpected(make_error(errc::poisoned, [this] {
      return fmt::format(
          "{} is not in use any more: whether this commit is durable, opening it tells",
          state_->file.path());
    })));
  else
    notify_durable();
}

// Asked under the mutex: the answer says nothing of a commit that returns later, so the callbacks
// must have been there before it.
void runtime::notify_durable() noexcept {
  const bool early = planted(base::mutant::told_early);
  std::uint64_t through = early ? durable_through() : 0;
  std::unique_lock hold(durable_callbacks_mutex_);
  if (!early) through = durable_through();
  call_durable_callbacks(std::move(hold), through, {});
}
void runtime::end_durable_callbacks(const result<>& how) noexcept {
  call_durable_callbacks(std::unique_lock(durable_callbacks_mutex_), pool_state::no_commit, how);
}
// Takes over nodes of durable_callbacks_, so it allocates no memory.
void runtime::call_durable_callbacks(std::unique_lock<std::mutex> hold, std::uint64_t through,
                                     const result<>& how) noexcept {
  STELE_ASSERT(hold.owns_lock() && hold.mutex() == &durable_callbacks_mutex_);
  std::multimap<std::uint64_t, std::function<void(result<>)>> now;
  while (!durable_callbacks_.empty() && durable_callbacks_.begin()->first <= through)
    now.insert(now.end(), durable_callbacks_.extract(durable_callbacks_.begin()));
  state_->has_durable_callbacks.store(!durable_callbacks_.empty(), std::memory_order_release);
  hold.unlock();
  for (const auto& [txid, callback] : now) callback(copy_result(how));
}

// Under registry_.
bool runtime::runs_transaction() const noexcept {
  return std::ranges::any_of(threads_, [](const auto& v) { return v->in_transaction.seen(); });
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
      const std::lock_guard hold(registry_);
      if (runs_transaction()) return running_error();
    }
    readers_.reset();  // pauses, for which it needs the registry
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

// Takes every log from its owner, so that no transaction begins. False: one runs, or a snapshot
// exists, and all is as it was. `owners` has a place for each log. Under registry_.
bool runtime::stop_for_close(std::span<thread_context*> owners) noexcept {
  STELE_ASSERT(owners.size() == log_slots_.size());
  for (std::size_t i = 0; i < owners.size(); ++i) owners[i] = log_slots_[i].owner.exchange(nullptr);
  // An owner that begins from here on sees that it has lost its log; one in a transaction is seen.
  base::asymmetric_fence_heavy();
  if (!runs_transaction() && long_reads_.load() == 0) return true;
  for (std::size_t i = 0; i < owners.size(); ++i) log_slots_[i].owner.open(owners[i]);
  return false;
}

result<> runtime::close_without_readers() {
  if (before_close_ != nullptr) {
    {
      const std::lock_guard hold(registry_);
      if (runs_transaction() || long_reads_.load() != 0) return running_error();
    }
    std::exchange(before_close_, nullptr)();
  }
  {
    std::vector<thread_context*> owners(log_slots_.size());
    const std::lock_guard hold(registry_);
    if (closed_) return {};
    if (!stop_for_close(owners)) return running_error();
    STELE_ASSERT_ALWAYS(readers_ == nullptr);
    closed_ = true;
  }
  try {
    return close_engine();
  } catch (const std::bad_alloc&) {
    const std::lock_guard hold(registry_);
    closed_ = false;
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

// Updates see has_plain_updates_ on their way in already, so that the check of place_ costs a
// commit nothing.
void runtime::look_at_file() noexcept {
  if (!state_->file.holds_this_pool()) state_->poison(pool_state::poison_cause::overwritten);
  const storage::file_place now = state_->file.place();
  if (now == storage::file_place::in_place) return;
  place_.store(now);
  has_plain_updates_.store(false);
}

error runtime::place_error() const {
  const std::string& path = state_->file.path();
  const std::string rescue = fmt::format(
      "What was committed is in the file that process {} still has open: copy it with "
      "pool::backup, or /proc/{}/fd/{}, before the pool is closed",
      ::getpid(), ::getpid(), state_->file.mapping().fd);
  switch (place_.load()) {
    case storage::file_place::renamed:
      return {errc::read_only, path +
                                   " was renamed or moved while it was open, so nothing more is "
                                   "committed. What was committed is in the file of the new "
                                   "name: close the pool, and open that"};
    case storage::file_place::replaced:
      return {errc::read_only, path +
                                   " names another file now: it was replaced while it was open, "
                                   "so nothing more is committed. " +
                                   rescue};
    default:
      return {errc::read_only,
              path + " was removed while it was open, so nothing more is committed. " + rescue};
  }
}

result<> runtime::check_in_place() {
  look_at_file();
  if (place() == storage::file_place::in_place) return {};
  return std::unexpected(place_error());
}

// Releases the lock whatever happens, so that the pool can be opened again.
result<> runtime::close_engine() {
  STELE_ASSERT_ALWAYS(closed_);
  (void)check_usable();
  const bool was_poisoned = state_->poisoned.load();
  result<> closed = check_in_place();
  if (engine_ != nullptr)
    if (auto ended = engine_->close(); !ended) closed = std::move(ended);
  if (was_poisoned)
    closed = fail(errc::poisoned, fmt::format("{} was left as it is: {}; opening it recovers it",
                                              state_->file.path(), state_->poison_reason()));
  end_durable_callbacks(closed);
  state_->file.unlock();
  STELE_ASSERT_ALWAYS(state_->file.mapping().fd < 0);
  return closed;
}

pool_counters runtime::counters() const noexcept {
  pool_counters c;
  if (is_of_parent()) return c;
  for (const log_slot& p : log_slots_) p.counts.add_to(c);
  long_read_counts_.add_to(c);
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
  if (reading_ != nullptr) return reading_->space();
  std::optional<pause> paused;
  if (this_access.size == 0 && !state_->poisoned.load() && !is_paused_by_this_report())
    paused.emplace(*this);
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
