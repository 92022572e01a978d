// Kills its process at a chosen system call of a chosen growth of a file: before call number
// STELE_KILL_CALL, counted from 0, on files and their memory since the file has begun to grow for
// the STELE_KILL_GROWTH-th time. Loaded by LD_PRELOAD; test_killed_growth.py uses it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int growths, calls;

static int number(const char* name) {
  const char* const text = getenv(name);
  return text == NULL ? -1 : atoi(text);
}

static void count(void) {
  if (growths == number("STELE_KILL_GROWTH") && calls++ == number("STELE_KILL_CALL"))
    kill(getpid(), SIGKILL);
}

#define NEXT(call, ...)                                       \
  static __typeof__(call)* next;                              \
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, #call); \
  count();                                                    \
  return next(__VA_ARGS__)

int fdatasync(int fd) {
  NEXT(fdatasync, fd);
}
int fsync(int fd) {
  NEXT(fsync, fd);
}
int sync_file_range(int fd, off_t at, off_t size, unsigned flags) {
  NEXT(sync_file_range, fd, at, size, flags);
}
ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  NEXT(pwrite, fd, from, size, at);
}
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  NEXT(mmap, at, size, protection, flags, fd, offset);
}
int posix_fallocate(int fd, off_t at, off_t size) {
  struct stat status;
  if (fstat(fd, &status) == 0 && status.st_size != 0 && at + size > status.st_size) ++growths;
  NEXT(posix_fallocate, fd, at, size);
}
