// Transfers between accounts: an ordered map, strings, several threads, and a roll-back by a
// returned error.
#include <stele/map.h>
#include <stele/pool.h>
#include <stele/string.h>

#include <cstdio>
#include <thread>
#include <vector>

struct bank {
  using pool_resident = void;  // it holds a container
  stele::map<stele::string, std::int64_t> accounts;
};

stele::result<> transfer(stele::pool<bank>& pool, const char* from, const char* to,
                         std::int64_t amount) {
  return pool.update([&](bank& b) -> stele::result<> {
    auto source = b.accounts.find(from), target = b.accounts.find(to);
    if (source == b.accounts.end() || target == b.accounts.end())
      return std::unexpected(stele::error{stele::errc::not_found, "no such account"});
    source->second = source->second.load() - amount;
    target->second = target->second.load() + amount;
    if (source->second.load() < 0)
      return std::unexpected(
          stele::error{stele::errc::cancelled, "not enough money"});  // undoes both
    return {};
  });
}

int main(int argc, char** argv) {
  auto pool = stele::pool<bank>::open(argc > 1 ? argv[1] : "bank.stele", {.create_size = 16 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  auto opened = pool->update([](bank& b) {
    for (const char* name : {"ann", "ben", "cleo"}) b.accounts.insert_or_assign(name, 100);
  });
  if (!opened) return 1;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i)
        (void)transfer(*pool, i % 2 == 0 ? "ann" : "ben", i % 2 == 0 ? "ben" : "cleo", i % 7);
    });
  threads.clear();
  std::int64_t total = 0;
  auto read = pool->read([&](const bank& b) {
    total = 0;  // a body may run more than once
    for (const auto& [name, amount] : b.accounts) total += amount.load();
  });
  std::printf("total %ld, always 300\n", total);
  return read && total == 300 ? 0 : 1;
}
