// A slow device: writes at a place of a file, which the log's are, and fdatasync wait as long as
// there is the file STELE_SLOW_SYNC_WHEN. Those of the main thread do not, so that a server goes on
// to answer. Loaded by LD_PRELOAD; test_slow_device.py uses it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_first(void) {
  const char* const when = getenv("STELE_SLOW_SYNC_WHEN");
  while (gettid() != getpid() && when != NULL && access(when, F_OK) == 0) usleep(1000);
}

int fdatasync(int fd) {
  static int (*next)(int);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "fdatasync");
  wait_first();
  return next(fd);
}

ssize_t pwrite64(int fd, const void* from, size_t size, off64_t at) {
  static ssize_t (*next)(int, const void*, size_t, off64_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "pwrite64");
  wait_first();
  return next(fd, from, size, at);
}
ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  return pwrite64(fd, from, size, at);
}
