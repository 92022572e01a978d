// `run POOL STEPS`, `trust POOL STEPS` and `check IMAGE OUTPUT [FURTHER STEPS]` of a structure; see
// arena.h and history.h. With `run` what the constructor stored is made durable here; `trust`
// leaves that to the constructor.
#include "arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "history.h"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

// The pool's parts: its head, the locks, and the rest; a checker allocates in the second halves.
constexpr std::size_t line_size = 64, pool_size = 8 << 20, locks_at = 4096,
                      check_locks_at = 512 << 10, run_at = 1 << 20, check_at = 5 << 20;
char* const pool = reinterpret_cast<char*>(0x2000000000);

struct head {
  void* root;  // nullptr: not created yet
};

bool inside = false;
std::size_t next_lock = locks_at, next = run_at;

bool in_pool(const void* p) {
  return p >= pool && p < pool + pool_size;
}

void* take(std::size_t size, std::size_t alignment, bool is_aligned) {
  std::size_t& at = client::is_lock(size, is_aligned) ? next_lock : next;
  at = (at + alignment - 1) / alignment * alignment;
  char* const p = pool + at;
  at += size;
  if (next > pool_size || next_lock > run_at) std::abort();
  return p;
}

struct as_structure {
  as_structure() { inside = true; }
  ~as_structure() { inside = false; }
};

void make_durable(std::size_t size) {
  if (::msync(pool, size, MS_SYNC) != 0) std::abort();
}

void map_pool(const char* path, int flags) {
  const int fd = ::open(path, flags, 0600);
  if (fd < 0 || ((flags & O_CREAT) != 0 && ::ftruncate(fd, pool_size) != 0) ||
      ::mmap(pool, pool_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) !=
          pool) {
    std::perror(path);
    std::_Exit(2);
  }
}

std::uint64_t found(std::uint64_t key) {
  const as_structure in;
  return client::find(key);
}

void inserted(std::uint64_t key, std::uint64_t value) {
  const as_structure in;
  client::insert(key, value);
}

void removed(std::uint64_t key) {
  const as_structure in;
  client::remove(key);
}

void run(const client_index& index, std::uint64_t steps, bool trusts) {
  head* const h = reinterpret_cast<head*>(pool);
  void* root = nullptr;
  {
    const as_structure in;
    root = client::create();
  }
  if (!trusts) make_durable(next);
  h->root = root;
  make_durable(sizeof *h);
  client_run(&index, steps);
}

bool check(const client_index& index, std::uint64_t done, std::uint64_t further) {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) std::abort();  // some print what they miss
  next = check_at;
  next_lock = check_locks_at;
  const head* const h = reinterpret_cast<head*>(pool);
  if (h->root == nullptr) {
    if (done != 0) std::fputs("the structure is lost\n", stderr);
    return done == 0;
  }
  std::memset(pool + locks_at, 0, run_at - locks_at);
  {
    const as_structure in;
    client::open(h->root);
  }
  return client_check(&index, done, further);
}

}  // namespace

namespace client {
outside::outside() : before(inside) {
  inside = false;
}
outside::~outside() {
  inside = before;
}
}  // namespace client

// As jemalloc, which these structures are built with: whole lines begin at a line.
extern "C" {
void* malloc(std::size_t size) {
  return inside ? take(size, size < line_size ? 16 : line_size, false) : __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  return inside ? malloc(count * size) : __libc_calloc(count, size);
}
void* realloc(void* p, std::size_t size) {
  if (!inside && !in_pool(p)) return __libc_realloc(p, size);
  void* const moved = malloc(size);
  if (p != nullptr) std::memmove(moved, p, size);  // reads beyond a smaller one, still in the pool
  return moved;
}
void* memalign(std::size_t alignment, std::size_t size) {
  return inside ? take(size, alignment, true) : __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
  *p = memalign(alignment, size);
  return *p == nullptr ? ENOMEM : 0;
}
void free(void* p) {
  if (!in_pool(p)) __libc_free(p);
}
}

int main(int argc, char** argv) {
  const std::string_view act = argc >= 4 ? argv[1] : "";
  const client_index index = {found, inserted, client::remove == nullptr ? nullptr : removed};
  if (act == "run" || act == "trust") {
    map_pool(argv[2], O_RDWR | O_CREAT);
    run(index, std::strtoull(argv[3], nullptr, 10), act == "trust");
  } else if (act == "check") {
    map_pool(argv[2], O_RDWR);
    std::exit(!check(index, client_acknowledged(argv[3]),
                     argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0));
  } else {
    std::fprintf(stderr, "usage: %s run|trust POOL STEPS | check IMAGE OUTPUT [FURTHER STEPS]\n",
                 argv[0]);
    return 2;
  }
  std::_Exit(0);
}
