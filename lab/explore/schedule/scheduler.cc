// Switches between threads and asks for choices. Compiled without calls for its own atomics.
#include <explore/schedule/points.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <bit>
#include <climits>

namespace stele::schedule {

namespace {

enum class state : std::uint8_t { unused, runnable, waiting, ended };

struct worker {
  std::atomic<std::uint32_t> go{0};
  state status = state::unused;
  wait what = wait::none;
  const volatile void* on = nullptr;
  std::uint64_t until = 0;  // 0: no timeout
  bool timed_out = false;
  bool yielded = false;  // others run first
  // Something changed since it began to wait, so its time may be over.
  bool may_time_out_early = false;
  const volatile void* spin_address = nullptr;  // of the last loads: one address, one value
  std::uint64_t spin_value = 0;
  unsigned same_loads = 0, loads_unchanged = 0;
  pthread_t id{};
};

// At one unchanged address; more than any bounded spin loop needs.
constexpr unsigned same_load_limit = 160;
constexpr unsigned load_limit = 600;  // anywhere, without a change by the thread itself
constexpr std::uint64_t ns_a_point = 20, first_ns = 1'000'000'000'000;

std::array<worker, max_threads> workers;
unsigned created = 0, running = 0, yielded = 0;
std::uint64_t now = 0, point_count = 0, choice_count = 0, max_points = 0, next_deadline = 0;
granularity finest = granularity::locks;
bool choosing = false, active = false;
strategy* active_strategy = nullptr;
std::function<void(const std::string&)> report_stuck;

constinit thread_local worker* self = nullptr;

// A direct system call, which bypasses the interposed functions.
long raw_futex(std::atomic<std::uint32_t>* word, int op, std::uint32_t value) noexcept {
  long outcome;
  register long timeout asm("r10") = 0;
  asm volatile("syscall"
               : "=a"(outcome)
               : "a"(SYS_futex), "D"(word), "S"(op), "d"(value), "r"(timeout)
               : "rcx", "r11", "memory");
  return outcome;
}

void resume(worker& w) noexcept {
  w.go.store(1, std::memory_order_release);
  raw_futex(&w.go, FUTEX_WAKE_PRIVATE, 1);
}
void await_turn(worker& w) noexcept {
  while (w.go.exchange(0, std::memory_order_acquire) == 0) raw_futex(&w.go, FUTEX_WAIT_PRIVATE, 0);
}

void make_runnable(worker& w) noexcept {
  w.status = state::runnable;
  w.what = wait::none;
  w.until = 0;
}

void expire_deadlines() noexcept {
  next_deadline = 0;
  for (unsigned i = 0; i < created; ++i) {
    worker& w = workers[i];
    if (w.status != state::waiting || w.until == 0) continue;
    if (w.until <= now)
      make_runnable(w), w.timed_out = true;
    else if (next_deadline == 0 || w.until < next_deadline)
      next_deadline = w.until;
  }
}

void clear_yields() noexcept {
  for (unsigned i = 0; i < created; ++i) workers[i].yielded = false;
  yielded = 0;
}

// Threads that could run besides the running one: `runnable` now; `timed` when their timeout
// passes; `yielding` although they let others run.
struct candidates {
  std::uint32_t runnable = 0, timed = 0, yielding = 0;
};
candidates others(bool nobody_else = false) noexcept {
  candidates c;
  for (unsigned i = 0; i < created; ++i) {
    const worker& w = workers[i];
    if (i == running && !nobody_else) continue;
    if (w.status == state::runnable && i != running)
      (w.yielded ? c.yielding : c.runnable) |= 1u << i;
    if (w.status == state::waiting && w.until != 0 && (w.may_time_out_early || nobody_else))
      c.timed |= 1u << i;
  }
  return c;
}
// The first one after the running thread, cyclically.
unsigned next_of(std::uint32_t mask) noexcept {
  const std::uint32_t later = running + 1 < max_threads ? mask & ~((2u << running) - 1) : 0;
  return static_cast<unsigned>(std::countr_zero(later != 0 ? later : mask));
}

std::string describe_waits() {
  static constexpr const char* names[] = {"nothing", "a mutex",        "a condition variable",
                                          "a futex", "a thread's end", "time"};
  std::string text;
  for (unsigned i = 0; i < created; ++i)
    if (workers[i].status == state::waiting)
      text += " thread " + std::to_string(i) + " waits for " +
              names[static_cast<unsigned>(workers[i].what)] + ";";
  return text;
}

void advance_time_to(worker& w) noexcept {
  now = std::max(now, w.until);
  make_runnable(w);
  w.timed_out = true;
  expire_deadlines();
}

void switch_to(unsigned next, bool resumes) noexcept {
  worker& me = workers[running];
  worker& other = workers[next];
  if (other.status == state::waiting) advance_time_to(other);
  if (other.yielded) other.yielded = false, --yielded;
  other.loads_unchanged = other.same_loads = 0;
  running = next;
  resume(other);
  if (resumes) await_turn(me);
}

unsigned choose_next(unsigned default_thread, std::uint32_t runnable,
                     std::uint32_t yielding) noexcept {
  if (!choosing || std::has_single_bit(runnable | yielding)) return default_thread;
  return active_strategy->choose(choice_count++, default_thread, runnable, yielding, true);
}

// Called when the running thread cannot go on or yields.
void reschedule(bool resumes) noexcept {
  worker& me = workers[running];
  for (;;) {
    candidates c = others();
    if (c.runnable == 0 && yielded != 0) {
      clear_yields();
      c = others();
    }
    if (c.runnable == 0 && me.status == state::runnable) return;
    if (c.runnable == 0) c = others(true);
    if (c.runnable == 0 && c.timed == 0) report_stuck("nobody can go on:" + describe_waits());
    unsigned default_thread;
    if (c.runnable != 0) {
      default_thread = next_of(c.runnable);
    } else {
      default_thread = next_of(c.timed);
      for (unsigned i = 0; i < created; ++i)
        if ((c.timed >> i & 1) != 0 && workers[i].until < workers[default_thread].until)
          default_thread = i;
    }
    const unsigned next =
        choose_next(default_thread, c.runnable != 0 ? c.runnable : c.timed, c.yielding);
    return next == running ? advance_time_to(me) : switch_to(next, resumes);
  }
}

void count_point() noexcept {
  now += ns_a_point;
  if (next_deadline != 0 && now >= next_deadline) expire_deadlines();
  if (++point_count > max_points)
    report_stuck("it does not end: a thread goes on and on;" + describe_waits());
}

}  // namespace

void begin(strategy& s, granularity g, std::uint64_t limit,
           std::function<void(const std::string&)> stuck) {
  for (worker& w : workers) {
    w.status = state::unused;
    w.go.store(0);
  }
  created = 1, running = 0, yielded = 0;
  now = first_ns, point_count = choice_count = 0, next_deadline = 0;
  max_points = limit, finest = g, choosing = false, active_strategy = &s;
  report_stuck = std::move(stuck);
  worker& me = workers[0];
  make_runnable(me);
  me.yielded = false, me.loads_unchanged = me.same_loads = 0;
  me.id = ::pthread_self();
  active = true;
  self = &me;
}

void end() noexcept {
  self = nullptr;
  active = false;
}
void enable_choices(bool on) noexcept {
  choosing = on;
}
std::uint64_t choices() noexcept {
  return choice_count;
}
std::uint64_t points() noexcept {
  return point_count;
}

bool scheduled() noexcept {
  return self != nullptr;
}

void point(granularity g) noexcept {
  if (self == nullptr || g > finest) return;
  count_point();
  if (!choosing || created == 1) return;
  const candidates c = others();
  const std::uint32_t runnable = c.runnable | c.timed;
  if ((runnable | c.yielding) == 0) return;
  const unsigned next =
      active_strategy->choose(choice_count++, running, runnable | 1u << running, c.yielding, false);
  if (next != running) switch_to(next, true);
}

void note_load(const volatile void* address, std::uint64_t value) noexcept {
  if (self == nullptr) return;
  worker& me = *self;
  if (me.spin_address == address && me.spin_value == value)
    ++me.same_loads;
  else
    me.spin_address = address, me.spin_value = value, me.same_loads = 1;
  if (++me.loads_unchanged < load_limit && me.same_loads < same_load_limit) return;
  me.loads_unchanged = me.same_loads = 0;
  yield();
}

void note_change(const volatile void* address) noexcept {
  if (self == nullptr) return;
  self->loads_unchanged = self->same_loads = 0;
  if (next_deadline != 0)
    for (unsigned i = 0; i < created; ++i) workers[i].may_time_out_early = true;
  if (yielded == 0) return;
  for (unsigned i = 0; i < created; ++i)
    if (worker& w = workers[i];
        w.yielded && (w.spin_address == address || w.spin_address == nullptr))
      w.yielded = false, --yielded;
}

bool wait_for(wait what, const volatile void* on, std::uint64_t until_ns) noexcept {
  worker& me = *self;
  count_point();
  me.status = state::waiting, me.what = what, me.on = on, me.until = until_ns,
  me.timed_out = me.may_time_out_early = false;
  if (until_ns != 0 && (next_deadline == 0 || until_ns < next_deadline)) next_deadline = until_ns;
  reschedule(true);
  return !me.timed_out;
}

unsigned wake(wait what, const volatile void* on, unsigned max_count) noexcept {
  unsigned woken = 0;
  for (unsigned i = 0; i < created && woken < max_count; ++i) {
    worker& w = workers[i];
    if (w.status != state::waiting || w.what != what || w.on != on) continue;
    make_runnable(w);
    ++woken;
  }
  return woken;
}

void yield() noexcept {
  worker& me = *self;
  count_point();
  if (!me.yielded) me.yielded = true, ++yielded;
  reschedule(true);
  if (me.yielded) me.yielded = false, --yielded;
}

std::uint64_t now_ns() noexcept {
  return now;
}

int create(const std::function<int(unsigned)>& real) noexcept {
  if (created == max_threads) report_stuck("a run has more than 32 threads");
  const unsigned number = created;
  worker& w = workers[number];
  w.go.store(0);
  w.yielded = false, w.loads_unchanged = w.same_loads = 0, w.spin_address = nullptr;
  make_runnable(w);
  ++created;
  const int failed = real(number);
  if (failed != 0) --created, w.status = state::unused;
  return failed;
}

void set_thread_id(unsigned number, pthread_t id) noexcept {
  workers[number].id = id;
}

void thread_started(unsigned number) noexcept {
  worker& me = workers[number];
  await_turn(me);
  self = &me;
}

void thread_ended() noexcept {
  worker& me = *self;
  self = nullptr;
  me.status = state::ended;
  wake(wait::join, &me, UINT_MAX);
  reschedule(false);
}

void join(pthread_t id) noexcept {
  for (unsigned i = 0; i < created; ++i)
    if (worker& w = workers[i]; ::pthread_equal(w.id, id) != 0)
      while (w.status != state::ended) wait_for(wait::join, &w, 0);
}

}  // namespace stele::schedule
