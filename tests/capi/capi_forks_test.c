/* A child of fork() with the pools and stores of its parent: whatever it calls is refused with a
 * sentence and waits for nothing, and closing gives back its copies of file and mapping. */
#define _DEFAULT_SOURCE
#include "kv_check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char path[96];

static pthread_barrier_t inside, done;

static int stay_inside(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx, (void)arg;
  put(kv, "k", "of the other thread");
  pthread_barrier_wait(&inside);
  pthread_barrier_wait(&done);
  return 0;
}
static void* update_in_thread(void* kv) {
  CHECK(stele_kv_update(kv, stay_inside, NULL, STELE_DURABLE) == STELE_OK);
  return NULL;
}

/* Whether the code says that the call was refused in a child. */
static int is_refused(int code) {
  return code == STELE_POISONED && strstr(stele_error_message(), "fork") != NULL &&
         strstr(stele_error_message(), path) != NULL;
}
static int nothing(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx, (void)kv, (void)arg;
  return 0;
}
static int look(stele_tx* tx, void* arg) {
  (void)tx, (void)arg;
  return 0;
}

/* Lines of a file of /proc/self that name the pool. */
static int lines_with_path(const char* of) {
  char line[512];
  int count = 0;
  FILE* file = fopen(of, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    count += strstr(line, path) != NULL;
  if (file != NULL) fclose(file);
  return count;
}

/* The leak sanitizer asks this. A child has the memory of the parent's threads, and not their
 * stacks, which lead to it. */
static pid_t parent;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
  return getpid() != parent;
}

/* Runs work(arg) in a child, and returns its status. */
static int in_child(void (*work)(void*), void* arg) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    failures = 0;
    work(arg);
    exit(failures != 0); /* runs the destructors of a process that ends */
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct handles {
  stele_kv *kv, *named;
  stele_snapshot* then;
};

static void use_everything(void* arg) {
  struct handles* h = arg;
  CHECK(is_refused(put(h->kv, "k", "v")));
  CHECK(is_refused(put(h->named, "k", "v")));
  CHECK(is_refused(stele_kv_update(h->kv, nothing, NULL, STELE_DURABLE)));
  CHECK(is_refused(stele_kv_update(h->kv, nothing, NULL, STELE_ORDERED)));
  CHECK(is_refused(stele_kv_sync(h->kv)));
  CHECK(is_refused(stele_kv_check(h->kv)));
  CHECK(is_refused(stele_snapshot_read(h->then, look, NULL)));
  stele_kv* other = NULL;
  CHECK(is_refused(stele_kv_open_store(h->kv, "other", 5, 1, &other)));
  CHECK(stele_snapshot_free(h->then) == STELE_OK);
  CHECK(stele_kv_close(h->named) == STELE_OK);
  CHECK(stele_kv_close(h->kv) == STELE_OK);
  CHECK(lines_with_path("/proc/self/maps") == 0);
  CHECK(stele_kv_open(path, NULL, &other) == STELE_IN_USE);
}
static void end_at_once(void* arg) {
  (void)arg;
}

static void a_child_beside_a_transaction(void) {
  struct handles h = {open_kv(path), NULL, NULL};
  CHECK(stele_kv_open_store(h.kv, "named", 5, 1, &h.named) == STELE_OK);
  CHECK(put(h.kv, "k", "old") == STELE_OK);
  CHECK(stele_kv_snapshot(h.kv, &h.then) == STELE_OK);
  pthread_barrier_init(&inside, NULL, 2);
  pthread_barrier_init(&done, NULL, 2);
  pthread_t thread;
  pthread_create(&thread, NULL, update_in_thread, h.kv);
  pthread_barrier_wait(&inside);
  CHECK(in_child(use_everything, &h) == 0);
  CHECK(in_child(end_at_once, NULL) == 0);
  pthread_barrier_wait(&done);
  pthread_join(thread, NULL);
  CHECK(has(h.kv, "k", "of the other thread"));
  CHECK(stele_snapshot_free(h.then) == STELE_OK);
  CHECK(stele_kv_close(h.named) == STELE_OK);
  CHECK(stele_kv_close(h.kv) == STELE_OK);
}

/* The child goes on with the transaction that its parent is in. */
static int fork_inside(stele_tx* tx, stele_kv* kv, void* arg) {
  (void)tx;
  pid_t* const child = arg;
  CHECK(put(kv, "k", "inside") == STELE_OK);
  if ((*child = fork()) != 0) return 0;
  alarm(20);
  failures = 0;
  CHECK(is_refused(put(kv, "k", "of the child")));
  return 0;
}

static void a_child_born_inside_a_transaction(void) {
  stele_kv* const kv = open_kv(path);
  pid_t child = -1;
  const int code = stele_kv_update(kv, fork_inside, &child, STELE_DURABLE);
  if (child == 0) {
    CHECK(is_refused(code));
    CHECK(stele_kv_close(kv) == STELE_OK);
    exit(failures != 0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(code == STELE_OK && has(kv, "k", "inside"));
  CHECK(stele_kv_close(kv) == STELE_OK);
  stele_kv* const again = open_kv(path);
  CHECK(has(again, "k", "inside"));
  CHECK(stele_kv_close(again) == STELE_OK);
}

int main(void) {
  parent = getpid();
  snprintf(directory, sizeof directory, "/tmp/stele-forks-XXXXXX");
  if (access("/dev/shm", W_OK) == 0)
    snprintf(directory, sizeof directory, "/dev/shm/stele-forks-XXXXXX");
  if (mkdtemp(directory) == NULL) return 1;
  snprintf(path, sizeof path, "%s/kv", directory);
  a_child_beside_a_transaction();
  a_child_born_inside_a_transaction();
  unlink(path);
  rmdir(directory);
  return failures != 0;
}
