// Measures short loops over the medium's operations.
#include <base/rng.h>
#include <bench/drive.h>
#include <bench/limits.h>
#include <bench/mapped_file.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/adr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace stele::bench {
namespace {

constexpr std::size_t ring_size = std::size_t{4} << 20;
constexpr std::size_t block_size = 4096;
constexpr std::size_t home_size = std::size_t{64} << 20;

template <class Body>
double ns_each(unsigned times, Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < times; ++i) body(i);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
             .count() /
         times;
}

}  // namespace

result<memory_costs> measure_memory(const std::string& dir) {
  auto memory = mapped_file::create(fmt::format("{}/limits-{}", dir, getpid()), home_size);
  if (!memory) return std::unexpected(std::move(memory.error()));
  media::adr::shared shared;
  media::adr medium(shared, 0);
  alignas(64) std::byte line[media::line_size] = {};
  base::rng random(1);
  memory_costs costs;
  costs.streamed_line_and_fence = ns_each(40'000, [&](unsigned i) {
    medium.stream(memory->base() + i * media::line_size % ring_size, line, media::line_size);
    medium.fence();
  });
  costs.flushed_line_and_fence = ns_each(20'000, [&](unsigned i) {
    std::byte* home =
        memory->base() + random.below(home_size / media::line_size) * media::line_size;
    std::memcpy(home, &i, sizeof i);
    medium.flush(home, media::line_size);
    medium.fence();
  });
  costs.empty_fence = ns_each(100'000, [&](unsigned) { medium.fence(); });
  return costs;
}

result<double> measure_synced_block(const std::string& dir) {
  const std::string path = fmt::format("{}/limits-{}", dir, getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const std::vector<char> blocks(64 * block_size, 1);
  bool ok = fd >= 0 &&
            pwrite(fd, blocks.data(), blocks.size(), 0) == static_cast<ssize_t>(blocks.size()) &&
            fsync(fd) == 0;
  const double ns = ns_each(32, [&](unsigned i) {
    ok =
        ok &&
        pwrite(fd, blocks.data(), block_size, i * block_size) == static_cast<ssize_t>(block_size) &&
        fdatasync(fd) == 0;
  });
  const int why = errno;
  if (fd >= 0) close(fd);
  unlink(path.c_str());
  if (!ok)
    return std::unexpected(
        error{errc::io, fmt::format("writing and syncing {}: {}", path, std::strerror(why))});
  return ns;
}

double measure_driver(const task& t, const workloads::workload& draws) {
  base::rng random(t.seed);
  std::atomic<bool> stop{false};
  std::uint64_t left = (1u << 20) / t.ops_per_tx + 1;
  auto step = draw_and_apply(draws, t.ops_per_tx, [&](std::span<const workloads::operation> ops) {
    asm volatile("" : : "r"(ops.data()) : "memory");
    if (--left == 0) stop = true;
    return result<>{};
  });
  const auto begin = std::chrono::steady_clock::now();
  const thread_outcome done = repeat(step, random, 0, stop);
  const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - begin;
  return ns.count() / static_cast<double>(done.transactions);
}

}  // namespace stele::bench
