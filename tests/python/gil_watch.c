// Ends a Python process in which the extension module waits with the interpreter's lock (GIL) held.
// Loaded by LD_PRELOAD; test_waits.py uses it.
//
// It stands before the C library's functions that wait for a thread, another process or a device.
// A mutex that is held for a moment is no wait; one that is not free within the limit is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { mutex_limit_ns = 200 * 1000 * 1000, exit_status = 86 };

// The next definition of a function behind this library's.
static void* next_of(const char* name, const char* version) {
  void* const found = version != NULL ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    dprintf(2, "gil_watch: the C library has no %s\n", name);
    _exit(exit_status);
  }
  return found;
}
#define NEXT(name, version)      \
  static __typeof__(&name) next; \
  if (next == NULL) *(void**)&next = next_of(#name, version)

static int holds_gil(void) {
  static int (*is_initialized)(void), (*check)(void);
  if (check == NULL) {
    *(void**)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *(void**)&check = dlsym(RTLD_DEFAULT, "PyGILState_Check");
  }
  return check != NULL && is_initialized() && check();
}

static int is_of_module(void* address) {
  Dl_info where;
  if (dladdr(address, &where) == 0) return 0;
  const char* const slash = strrchr(where.dli_fname, '/');
  return strncmp(slash != NULL ? slash + 1 : where.dli_fname, "_stele.", 7) == 0;
}

static void check_wait(const char* what) {
  if (!holds_gil()) return;
  void* frames[32];
  const int count = backtrace(frames, 32);
  int i = 0;
  while (i < count && !is_of_module(frames[i])) ++i;
  if (i == count) return;
  dprintf(2, "gil_watch: %s with the interpreter's lock held\n", what);
  backtrace_symbols_fd(frames, count, 2);
  _exit(exit_status);
}

int pthread_mutex_lock(pthread_mutex_t* m) {
  NEXT(pthread_mutex_lock, NULL);
  if (!holds_gil()) return next(m);
  static __typeof__(&pthread_mutex_timedlock) timed;
  if (timed == NULL) *(void**)&timed = next_of("pthread_mutex_timedlock", NULL);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += mutex_limit_ns;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  const int locked = timed(m, &until);
  if (locked != ETIMEDOUT) return locked;
  check_wait("a mutex is waited for");
  return next(m);
}

#define WATCH(name, version, result, parameters, arguments) \
  result name parameters {                                  \
    NEXT(name, version);                                    \
    check_wait(#name " is called");                         \
    return next arguments;                                  \
  }

WATCH(pthread_cond_wait, "GLIBC_2.3.2", int, (pthread_cond_t * c, pthread_mutex_t* m), (c, m))
WATCH(pthread_cond_timedwait, "GLIBC_2.3.2", int,
      (pthread_cond_t * c, pthread_mutex_t* m, const struct timespec* t), (c, m, t))
WATCH(pthread_cond_clockwait, NULL, int,
      (pthread_cond_t * c, pthread_mutex_t* m, clockid_t k, const struct timespec* t), (c, m, k, t))
WATCH(pthread_mutex_clocklock, NULL, int,
      (pthread_mutex_t * m, clockid_t k, const struct timespec* t), (m, k, t))
WATCH(pthread_join, NULL, int, (pthread_t t, void** r), (t, r))
WATCH(sched_yield, NULL, int, (void), ())
WATCH(nanosleep, NULL, int, (const struct timespec* t, struct timespec* left), (t, left))
WATCH(clock_nanosleep, NULL, int,
      (clockid_t k, int flags, const struct timespec* t, struct timespec* left),
      (k, flags, t, left))
WATCH(poll, NULL, int, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
WATCH(recvmsg, NULL, ssize_t, (int fd, struct msghdr* m, int flags), (fd, m, flags))
WATCH(sendmsg, NULL, ssize_t, (int fd, const struct msghdr* m, int flags), (fd, m, flags))
WATCH(fsync, NULL, int, (int fd), (fd))
WATCH(fdatasync, NULL, int, (int fd), (fd))
WATCH(msync, NULL, int, (void* at, size_t size, int flags), (at, size, flags))

long syscall(long number, ...) {
  NEXT(syscall, NULL);
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex &&
      ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT || (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET))
    check_wait("a futex is waited for");
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// What the test of the watch calls, in a copy of this library that has the module's name. It has a
// frame of its own: its call is not its last deed.
int gil_watch_wait(void) {
  volatile const int yielded = sched_yield();
  return yielded;
}
