// Functions of the C library by which threads wait for each other. The definitions here take
// precedence over the library's. They serve scheduled threads; other threads get the library's
// functions.
#include <dlfcn.h>
#include <errno.h>
#include <explore/schedule/points.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include <climits>
#include <cstdarg>
#include <cstdint>

namespace schedule = stele::schedule;
using schedule::granularity;
using schedule::wait;

namespace {

template <class F>
F* real(const char* name) noexcept {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}
#define STELE_REAL(name) static auto* const real_##name = real<decltype(::name)>(#name)

std::uint64_t ns_of(const timespec& t) noexcept {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

int lock(pthread_mutex_t* m) noexcept {
  STELE_REAL(pthread_mutex_trylock);
  schedule::point(granularity::locks);
  int failed;
  while ((failed = real_pthread_mutex_trylock(m)) == EBUSY) schedule::wait_for(wait::mutex, m, 0);
  if (failed == 0) schedule::note_change(m);
  return failed;
}
int unlock(pthread_mutex_t* m) noexcept {
  STELE_REAL(pthread_mutex_unlock);
  const int failed = real_pthread_mutex_unlock(m);
  schedule::wake(wait::mutex, m, UINT_MAX);
  schedule::note_change(m);
  return failed;
}
int wait_on(pthread_cond_t* c, pthread_mutex_t* m, std::uint64_t until) noexcept {
  unlock(m);
  const bool woken = schedule::wait_for(wait::condition, c, until);
  lock(m);
  return woken ? 0 : ETIMEDOUT;
}

long raw_syscall(long n, long a, long b, long c, long d, long e, long f) noexcept {
  long outcome;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(outcome)
               : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (outcome >= 0 || outcome < -4095) return outcome;
  errno = static_cast<int>(-outcome);
  return -1;
}

// The waits of std::atomic. A timeout is ignored: its only purpose is to look again.
long futex(std::uint32_t* word, int operation, std::uint32_t value) noexcept {
  schedule::point(granularity::locks);
  const int what = operation & FUTEX_CMD_MASK;
  if (what == FUTEX_WAKE || what == FUTEX_WAKE_BITSET)
    return schedule::wake(wait::futex, word, value);
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return errno = EAGAIN, -1;
  schedule::wait_for(wait::futex, word, 0);
  return 0;
}

// Run as a key's destructor: a thread ends after its thread-local objects, which are part of the
// run.
void at_end(void*) noexcept {
  schedule::thread_ended();
}
pthread_key_t end_key() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t k;
    ::pthread_key_create(&k, at_end);
    return k;
  }();
  return key;
}

struct thread_start {
  void* (*run)(void*);
  void* argument;
  unsigned number;
};
void* run_scheduled(void* given) {
  const thread_start b = *static_cast<thread_start*>(given);
  delete static_cast<thread_start*>(given);
  static const char anything = 0;
  ::pthread_setspecific(end_key(), &anything);
  schedule::thread_started(b.number);
  return b.run(b.argument);
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* m) {
  if (schedule::scheduled()) return lock(m);
  STELE_REAL(pthread_mutex_lock);
  return real_pthread_mutex_lock(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) {
  STELE_REAL(pthread_mutex_trylock);
  if (!schedule::scheduled()) return real_pthread_mutex_trylock(m);
  schedule::point(granularity::locks);
  const int failed = real_pthread_mutex_trylock(m);
  if (failed == 0) schedule::note_change(m);
  return failed;
}
int pthread_mutex_unlock(pthread_mutex_t* m) {
  if (schedule::scheduled()) return unlock(m);
  STELE_REAL(pthread_mutex_unlock);
  return real_pthread_mutex_unlock(m);
}

int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  if (schedule::scheduled()) return wait_on(c, m, 0);
  STELE_REAL(pthread_cond_wait);
  return real_pthread_cond_wait(c, m);
}
int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* until) {
  if (schedule::scheduled()) return wait_on(c, m, ns_of(*until));
  STELE_REAL(pthread_cond_timedwait);
  return real_pthread_cond_timedwait(c, m, until);
}
int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock,
                           const timespec* until) {
  if (schedule::scheduled()) return wait_on(c, m, ns_of(*until));
  STELE_REAL(pthread_cond_clockwait);
  return real_pthread_cond_clockwait(c, m, clock, until);
}
int pthread_cond_signal(pthread_cond_t* c) {
  STELE_REAL(pthread_cond_signal);
  if (!schedule::scheduled()) return real_pthread_cond_signal(c);
  schedule::point(granularity::locks);
  schedule::wake(wait::condition, c, 1);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* c) {
  STELE_REAL(pthread_cond_broadcast);
  if (!schedule::scheduled()) return real_pthread_cond_broadcast(c);
  schedule::point(granularity::locks);
  schedule::wake(wait::condition, c, UINT_MAX);
  return 0;
}

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  STELE_REAL(pthread_create);
  if (!schedule::scheduled()) return real_pthread_create(id, attributes, run, argument);
  return schedule::create([&](unsigned number) {
    auto* const b = new thread_start{run, argument, number};
    const int failed = real_pthread_create(id, attributes, run_scheduled, b);
    if (failed != 0)
      delete b;
    else
      schedule::set_thread_id(number, *id);
    return failed;
  });
}
int pthread_join(pthread_t id, void** outcome) {
  STELE_REAL(pthread_join);
  if (schedule::scheduled()) schedule::join(id);
  return real_pthread_join(id, outcome);
}

int sched_yield() {
  if (schedule::scheduled()) return schedule::yield(), 0;
  return static_cast<int>(raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0));
}
int nanosleep(const timespec* time, timespec* left) {
  if (schedule::scheduled())
    return schedule::wait_for(wait::sleep, nullptr, schedule::now_ns() + ns_of(*time)), 0;
  return static_cast<int>(raw_syscall(SYS_nanosleep, reinterpret_cast<long>(time),
                                      reinterpret_cast<long>(left), 0, 0, 0, 0));
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (!schedule::scheduled()) {
    STELE_REAL(clock_nanosleep);
    return real_clock_nanosleep(clock, flags, time, left);
  }
  schedule::wait_for(
      wait::sleep, nullptr,
      (flags & TIMER_ABSTIME) != 0 ? ns_of(*time) : schedule::now_ns() + ns_of(*time));
  return 0;
}
int clock_gettime(clockid_t clock, timespec* now) noexcept {
  STELE_REAL(clock_gettime);
  if (!schedule::scheduled()) return real_clock_gettime(clock, now);
  now->tv_sec = static_cast<time_t>(schedule::now_ns() / 1'000'000'000);
  now->tv_nsec = static_cast<long>(schedule::now_ns() % 1'000'000'000);
  return 0;
}

long syscall(long number, ...) noexcept {
  va_list rest;
  va_start(rest, number);
  const long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long),
             d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
  va_end(rest);
  if (schedule::scheduled()) {
    if (number == SYS_futex)
      return futex(reinterpret_cast<std::uint32_t*>(a), static_cast<int>(b),
                   static_cast<std::uint32_t>(c));
    if (number == SYS_membarrier)
      return schedule::point(granularity::locks), 0;  // one thread runs at a time
  }
  return raw_syscall(number, a, b, c, d, e, f);
}
}
