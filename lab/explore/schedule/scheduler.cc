// Hand-over between threads and the choice of who goes on. Compiled without calls for its atomics.
#include <explore/schedule/points.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <bit>
#include <climits>

namespace stele::schedule {

namespace {

enum class state : std::uint8_t { unused, able, waiting, ended };

struct worker {
  std::atomic<std::uint32_t> go{0};
  state is = state::unused;
  wait what = wait::none;
  const volatile void* on = nullptr;
  std::uint64_t until = 0;  // 0: no end
  bool timed_out = false;
  bool yielded = false;                     // others first
  bool early = false;                       // something has changed since it began to wait: its time may be over
  const volatile void* looks_at = nullptr;  // the last looks: at one place, with one outcome
  std::uint64_t seen = 0;
  unsigned same_looks = 0, looks = 0;
  pthread_t id{};
};

constexpr unsigned few_looks = 160;   // at one place that does not change: more than who looks a bounded time
constexpr unsigned many_looks = 600;  // anywhere, without a change of its own
constexpr std::uint64_t ns_a_point = 20, first_ns = 1'000'000'000'000;

std::array<worker, most_threads> workers;
unsigned created = 0, running = 0, yielded = 0;
std::uint64_t now = 0, passed = 0, asked = 0, most_points = 0, next_deadline = 0;
grain finest = grain::locks;
bool asking = false, active = false;
strategy* who = nullptr;
std::function<void(const std::string&)> is_stuck;

constinit thread_local worker* self = nullptr;

// Not through the interposed functions.
long raw_futex(std::atomic<std::uint32_t>* word, int op, std::uint32_t value) noexcept {
  long outcome;
  register long timeout asm("r10") = 0;
  asm volatile("syscall"
               : "=a"(outcome)
               : "a"(SYS_futex), "D"(word), "S"(op), "d"(value), "r"(timeout)
               : "rcx", "r11", "memory");
  return outcome;
}

void let_go(worker& w) noexcept {
  w.go.store(1, std::memory_order_release);
  raw_futex(&w.go, FUTEX_WAKE_PRIVATE, 1);
}
void await_turn(worker& w) noexcept {
  while (w.go.exchange(0, std::memory_order_acquire) == 0) raw_futex(&w.go, FUTEX_WAIT_PRIVATE, 0);
}

void make_able(worker& w) noexcept {
  w.is = state::able;
  w.what = wait::none;
  w.until = 0;
}

void expire() noexcept {
  next_deadline = 0;
  for (unsigned i = 0; i < created; ++i) {
    worker& w = workers[i];
    if (w.is != state::waiting || w.until == 0) continue;
    if (w.until <= now)
      make_able(w), w.timed_out = true;
    else if (next_deadline == 0 || w.until < next_deadline)
      next_deadline = w.until;
  }
}

void unyield() noexcept {
  for (unsigned i = 0; i < created; ++i) workers[i].yielded = false;
  yielded = 0;
}

// Who could go on besides the running thread: `able` now, `timed` by its time passing, `resting` though
// it has let others go on.
struct candidates {
  std::uint32_t able = 0, timed = 0, resting = 0;
};
candidates others(bool nobody_else = false) noexcept {
  candidates c;
  for (unsigned i = 0; i < created; ++i) {
    const worker& w = workers[i];
    if (i == running && !nobody_else) continue;
    if (w.is == state::able && i != running) (w.yielded ? c.resting : c.able) |= 1u << i;
    if (w.is == state::waiting && w.until != 0 && (w.early || nobody_else)) c.timed |= 1u << i;
  }
  return c;
}
unsigned next_of(std::uint32_t mask) noexcept {  // the first after the running one, all around
  const std::uint32_t later = running + 1 < most_threads ? mask & ~((2u << running) - 1) : 0;
  return static_cast<unsigned>(std::countr_zero(later != 0 ? later : mask));
}

std::string waits() {
  static constexpr const char* names[] = {"nothing", "a mutex", "a condition variable", "a futex", "a thread's end", "time"};
  std::string text;
  for (unsigned i = 0; i < created; ++i)
    if (workers[i].is == state::waiting)
      text += " thread " + std::to_string(i) + " waits for " + names[static_cast<unsigned>(workers[i].what)] + ";";
  return text;
}

void pass_time_of(worker& w) noexcept {
  now = std::max(now, w.until);
  make_able(w);
  w.timed_out = true;
  expire();
}

void hand_over(unsigned next, bool comes_back) noexcept {
  worker& me = workers[running];
  worker& other = workers[next];
  if (other.is == state::waiting) pass_time_of(other);
  if (other.yielded) other.yielded = false, --yielded;
  other.looks = other.same_looks = 0;
  running = next;
  let_go(other);
  if (comes_back) await_turn(me);
}

unsigned ask_for(unsigned usual, std::uint32_t able, std::uint32_t resting) noexcept {
  if (!asking || std::has_single_bit(able | resting)) return usual;
  return who->choose(asked++, usual, able, resting, true);
}

// The running thread cannot go on, or lets others.
void go_elsewhere(bool comes_back) noexcept {
  worker& me = workers[running];
  for (;;) {
    candidates c = others();
    if (c.able == 0 && yielded != 0) {
      unyield();
      c = others();
    }
    if (c.able == 0 && me.is == state::able) return;
    if (c.able == 0) c = others(true);
    if (c.able == 0 && c.timed == 0) is_stuck("nobody can go on:" + waits());
    unsigned usual;
    if (c.able != 0) {
      usual = next_of(c.able);
    } else {
      usual = next_of(c.timed);
      for (unsigned i = 0; i < created; ++i)
        if ((c.timed >> i & 1) != 0 && workers[i].until < workers[usual].until) usual = i;
    }
    const unsigned next = ask_for(usual, c.able != 0 ? c.able : c.timed, c.resting);
    return next == running ? pass_time_of(me) : hand_over(next, comes_back);
  }
}

void count_point() noexcept {
  now += ns_a_point;
  if (next_deadline != 0 && now >= next_deadline) expire();
  if (++passed > most_points) is_stuck("it does not end: a thread goes on and on;" + waits());
}

}  // namespace

void begin(strategy& s, grain g, std::uint64_t limit, std::function<void(const std::string&)> stuck) {
  for (worker& w : workers) {
    w.is = state::unused;
    w.go.store(0);
  }
  created = 1, running = 0, yielded = 0;
  now = first_ns, passed = asked = 0, next_deadline = 0;
  most_points = limit, finest = g, asking = false, who = &s;
  is_stuck = std::move(stuck);
  worker& me = workers[0];
  make_able(me);
  me.yielded = false, me.looks = me.same_looks = 0;
  me.id = ::pthread_self();
  active = true;
  self = &me;
}

void end() noexcept {
  self = nullptr;
  active = false;
}
void ask(bool on) noexcept {
  asking = on;
}
std::uint64_t choices() noexcept {
  return asked;
}
std::uint64_t points() noexcept {
  return passed;
}

bool scheduled() noexcept {
  return self != nullptr;
}

void point(grain g) noexcept {
  if (self == nullptr || g > finest) return;
  count_point();
  if (!asking || created == 1) return;
  const candidates c = others();
  const std::uint32_t able = c.able | c.timed;
  if ((able | c.resting) == 0) return;
  const unsigned next = who->choose(asked++, running, able | 1u << running, c.resting, false);
  if (next != running) hand_over(next, true);
}

void looked(const volatile void* address, std::uint64_t value) noexcept {
  if (self == nullptr) return;
  worker& me = *self;
  if (me.looks_at == address && me.seen == value)
    ++me.same_looks;
  else
    me.looks_at = address, me.seen = value, me.same_looks = 1;
  if (++me.looks < many_looks && me.same_looks < few_looks) return;
  me.looks = me.same_looks = 0;
  yield();
}

void changed(const volatile void* address) noexcept {
  if (self == nullptr) return;
  self->looks = self->same_looks = 0;
  if (next_deadline != 0)
    for (unsigned i = 0; i < created; ++i) workers[i].early = true;
  if (yielded == 0) return;
  for (unsigned i = 0; i < created; ++i)
    if (worker& w = workers[i]; w.yielded && (w.looks_at == address || w.looks_at == nullptr)) w.yielded = false, --yielded;
}

bool wait_for(wait what, const volatile void* on, std::uint64_t until_ns) noexcept {
  worker& me = *self;
  count_point();
  me.is = state::waiting, me.what = what, me.on = on, me.until = until_ns, me.timed_out = me.early = false;
  if (until_ns != 0 && (next_deadline == 0 || until_ns < next_deadline)) next_deadline = until_ns;
  go_elsewhere(true);
  return !me.timed_out;
}

unsigned wake(wait what, const volatile void* on, unsigned most) noexcept {
  unsigned woken = 0;
  for (unsigned i = 0; i < created && woken < most; ++i) {
    worker& w = workers[i];
    if (w.is != state::waiting || w.what != what || w.on != on) continue;
    make_able(w);
    ++woken;
  }
  return woken;
}

void yield() noexcept {
  worker& me = *self;
  count_point();
  if (!me.yielded) me.yielded = true, ++yielded;
  go_elsewhere(true);
  if (me.yielded) me.yielded = false, --yielded;
}

std::uint64_t now_ns() noexcept {
  return now;
}

int create(const std::function<int(unsigned)>& real) noexcept {
  if (created == most_threads) is_stuck("a run has more than 32 threads");
  const unsigned number = created;
  worker& w = workers[number];
  w.go.store(0);
  w.yielded = false, w.looks = w.same_looks = 0, w.looks_at = nullptr;
  make_able(w);
  ++created;
  const int failed = real(number);
  if (failed != 0) --created, w.is = state::unused;
  return failed;
}

void named(unsigned number, pthread_t id) noexcept {
  workers[number].id = id;
}

void started(unsigned number) noexcept {
  worker& me = workers[number];
  await_turn(me);
  self = &me;
}

void ended() noexcept {
  worker& me = *self;
  self = nullptr;
  me.is = state::ended;
  wake(wait::join, &me, UINT_MAX);
  go_elsewhere(false);
}

void join(pthread_t id) noexcept {
  for (unsigned i = 0; i < created; ++i)
    if (worker& w = workers[i]; ::pthread_equal(w.id, id) != 0)
      while (w.is != state::ended) wait_for(wait::join, &w, 0);
}

}  // namespace stele::schedule
