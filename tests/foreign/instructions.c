/* Makes a value durable in one of many ways, then a second one that says that the first is valid.

   instructions run POOL WAY; instructions check POOL. WAY: an instruction that does it, or one that
   does not. The pool has 8192 bytes; 0 holds the value, 4096 says that it is valid. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { size = 8192, value = 0x5157 };

static void flush_clwb(volatile void* at) {
  __asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char*)at)); /* clwb */
}
static void flush_clflushopt(volatile void* at) {
  __asm__ volatile(".byte 0x66; .byte 0x0f, 0xae, 0x38" : : "a"(at) : "memory"); /* (%rax) */
}
static void flush_clflush(volatile void* at) {
  __asm__ volatile(".byte 0x0f, 0xae, 0x38" : : "a"(at) : "memory");
}
static void stream(uint64_t* at, uint64_t v) {
  __asm__ volatile(".byte 0x48, 0x0f, 0xc3, 0x10" : : "a"(at), "d"(v) : "memory"); /* movnti */
}
static void store_fence(void) {
  __asm__ volatile(".byte 0x0f, 0xae, 0xf8" : : : "memory");
}
static void memory_fence(void) {
  __asm__ volatile(".byte 0x0f, 0xae, 0xf0" : : : "memory");
}
static void load_fence(void) {
  __asm__ volatile(".byte 0x0f, 0xae, 0xe8" : : : "memory");
}

static uint64_t* pool;
static int file;
static uint64_t counter; /* not in the pool */

static void* flush_pool(void* unused) {
  (void)unused;
  flush_clwb(pool);
  store_fence();
  return NULL;
}

static void* flush_other_line(void* unused) {
  (void)unused;
  flush_clwb(pool + 64);
  store_fence();
  return NULL;
}

static void load_512_bits(void) {
  __asm__ volatile(".byte 0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x00"
                   :
                   : "a"(pool)
                   : "memory"); /* vmovdqa64 */
}

static void in_thread(void* (*body)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, NULL) != 0) exit(2);
  pthread_join(thread, NULL);
}

/* Stores the value in one of the ways. Returns 0 for an unknown one. */
static int store_value(const char* way) {
  if (strncmp(way, "stream", 6) == 0) {
    stream(pool, value);
  } else if (strncmp(way, "pwrite", 6) == 0) {
    const uint64_t v = value;
    if (pwrite(file, &v, sizeof v, 0) != sizeof v) exit(2);
  } else if (strcmp(way, "vector") == 0) {
    __asm__ volatile(
        ".byte 0x66, 0x48, 0x0f, 0x6e, 0xc2; .byte 0x66, 0x0f, 0x7f, 0x00" /* movq %rdx, %xmm0;
                                                                              movdqa */
        :
        : "a"(pool), "d"((uint64_t)value)
        : "xmm0", "memory");
  } else {
    pool[0] = value;
  }
  return 1;
}

static int persist_value(const char* way) {
  if (strcmp(way, "clwb") == 0 || strcmp(way, "vector") == 0)
    return flush_clwb(pool), store_fence(), 1;
  if (strcmp(way, "clflushopt") == 0) return flush_clflushopt(pool), store_fence(), 1;
  if (strcmp(way, "mfence") == 0) return flush_clwb(pool), memory_fence(), 1;
  if (strcmp(way, "clflush") == 0) return flush_clflush(pool), 1;
  if (strcmp(way, "locked") == 0)
    return flush_clwb(pool), __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST), 1;
  if (strcmp(way, "stream") == 0) return store_fence(), 1;
  if (strcmp(way, "msync") == 0) return msync(pool, 4096, MS_SYNC), 1;
  if (strcmp(way, "pwrite") == 0) return fdatasync(file), 1;
  if (strcmp(way, "thread") == 0) return in_thread(flush_pool), 1;
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "avx512") == 0) return load_512_bits(), 1;
  /* What follows persists nothing in time. */
  if (strcmp(way, "no_flush") == 0) return store_fence(), 1;
  if (strcmp(way, "no_fence") == 0) return flush_clwb(pool), 1;
  if (strcmp(way, "no_fence_clflushopt") == 0) return flush_clflushopt(pool), 1;
  if (strcmp(way, "lfence") == 0) return flush_clwb(pool), load_fence(), 1;
  if (strcmp(way, "stream_no_fence") == 0) return 1;
  if (strcmp(way, "msync_async") == 0) return msync(pool, 4096, MS_ASYNC), 1;
  if (strcmp(way, "pwrite_no_sync") == 0) return 1;
  if (strcmp(way, "other_line") == 0) return in_thread(flush_other_line), 1;
  return 0;
}

static int run(const char* way) {
  store_value(way);
  if (!persist_value(way)) return 2;
  pool[512] = 1;
  flush_clwb(pool + 512);
  store_fence();
  return 0;
}

static int check(void) {
  if (pool[512] == 1 && pool[0] != value) return printf("the valid value is missing\n"), 1;
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return fprintf(stderr, "usage: instructions run POOL WAY | check POOL\n"), 2;
  file = open(argv[2], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, size) != 0) return 2;
  pool = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 2;
  if (argc == 4 && strcmp(argv[1], "run") == 0) return run(argv[3]);
  if (argc == 3 && strcmp(argv[1], "check") == 0) return check();
  return 2;
}
