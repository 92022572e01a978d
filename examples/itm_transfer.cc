// Transfers between accounts in a pool, and a counter in ordinary memory: threads, cancellation,
// and one block over both kinds of memory.
#include <stele/itm.h>

#include <cstdio>
#include <thread>

struct bank {
  long accounts[3];
  bool opened;
};
static long refused;  // not in the pool, but also isolated and rolled back

static bool transfer(bank* b, int from, int to, long amount) {
  bool done = false;
  __transaction_atomic {
    b->accounts[from] -= amount;
    b->accounts[to] += amount;
    done = b->accounts[from] >= 0;
    if (!done) __transaction_cancel;  // undoes both, and `done` too
  }
  if (!done) __transaction_atomic {
      ++refused;
    }
  return done;
}

static void work(bank* b) {
  for (int i = 0; i < 1000; ++i) transfer(b, i % 3, (i + 1 + i % 2) % 3, 20 + i % 97);
}

int main(int argc, char** argv) {
  auto root = stele::itm::open<bank>(argc > 1 ? argv[1] : "bank.stele", {.create_size = 16 << 20});
  if (!root) return std::fprintf(stderr, "%s\n", root.error().message.c_str()), 1;
  bank* const b = *root;
  __transaction_atomic {
    for (long& account : b->accounts) account = b->opened ? account : 100;
    b->opened = true;
  }
  std::thread one(work, b), two(work, b);
  one.join();
  two.join();
  long total = 0;
  __transaction_atomic {
    for (const long account : b->accounts) total += account;
  }
  std::printf("total %ld, always 300; %ld transfers refused\n", total, refused);
  return total == 300 && stele::itm::close() ? 0 : 1;
}
