// Measures short loops over the medium's operations, repeated in turn.
#include <base/rng.h>
#include <bench/limits.h>
#include <bench/machine.h>
#include <bench/mapped_file.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/adr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>

namespace stele::bench {
namespace {

constexpr std::size_t memory_size = std::size_t{64} << 20;
constexpr std::size_t block_size = 4096;

double ns_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double lines_and_fence(media::adr& medium, std::byte* base, unsigned k) {
  constexpr unsigned times = 4000;
  base::rng random(k);
  return ns_of([&] {
           for (unsigned i = 0; i < times; ++i) {
             for (unsigned n = 0; n < k; ++n) {
               std::byte* line =
                   base + random.below(memory_size / media::line_size) * media::line_size;
               medium.store(line, &i, sizeof i);
               medium.flush(line, media::line_size);
             }
             medium.fence();
           }
         }) /
         times;
}

double stream_rate(media::adr& medium, std::byte* base) {
  alignas(64) const std::byte line[media::line_size] = {};
  const double ns = ns_of([&] {
    for (std::size_t at = 0; at < memory_size; at += media::line_size)
      medium.stream(base + at, line, media::line_size);
    medium.fence();
  });
  return memory_size / ns;
}

double flush_rate(media::adr& medium, std::byte* base) {
  alignas(64) const std::byte line[media::line_size] = {};
  const double ns = ns_of([&] {
    for (std::size_t at = 0; at < memory_size; at += media::line_size) {
      medium.store(base + at, line, media::line_size);
      medium.flush(base + at, media::line_size);
    }
    medium.fence();
  });
  return memory_size / ns;
}

// Nanoseconds to overwrite a block in place, durably; 0 when the file system has no direct writes.
double direct_block(const std::string& dir) {
  const std::string path = fmt::format("{}/direct-{}", dir, getpid());
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT | O_DSYNC, 0600);
  const std::unique_ptr<void, void (*)(void*)> block(std::aligned_alloc(block_size, block_size),
                                                     std::free);
  std::fill_n(static_cast<std::byte*>(block.get()), block_size, std::byte{1});
  bool ok = fd >= 0;
  auto write_at = [&](unsigned i) {
    ok = ok &&
         pwrite(fd, block.get(), block_size, i * block_size) == static_cast<ssize_t>(block_size);
  };
  for (unsigned i = 0; i < 16; ++i) write_at(i);
  const double ns = ns_of([&] {
    for (unsigned i = 0; i < 32; ++i) write_at(i % 16);
  });
  if (fd >= 0) close(fd);
  unlink(path.c_str());
  return ok ? ns / 32 : 0;
}

}  // namespace

result<machine_costs> measure_machine(const std::string& dir, const std::string& file_dir,
                                      unsigned runs) {
  auto memory = mapped_file::create(fmt::format("{}/machine-{}", dir, getpid()), memory_size);
  if (!memory) return std::unexpected(std::move(memory.error()));
  media::adr::shared shared;
  media::adr medium(shared, 0);
  const std::vector<unsigned> counts = {1, 2, 4, 8, 16, 32};
  std::vector<std::vector<double>> lines(counts.size());
  std::vector<double> streamed, flushed, empty, stream, flush, synced, direct;
  for (unsigned run = 0; run < runs; ++run) {
    const auto costs = measure_memory(dir);
    if (!costs) return std::unexpected(costs.error());
    const auto block = measure_synced_block(file_dir);
    if (!block) return std::unexpected(block.error());
    streamed.push_back(costs->streamed_line_and_fence);
    flushed.push_back(costs->flushed_line_and_fence);
    empty.push_back(costs->empty_fence);
    for (std::size_t i = 0; i < counts.size(); ++i)
      lines[i].push_back(lines_and_fence(medium, memory->base(), counts[i]));
    stream.push_back(stream_rate(medium, memory->base()));
    flush.push_back(flush_rate(medium, memory->base()));
    synced.push_back(*block);
    direct.push_back(direct_block(file_dir));
  }
  machine_costs m{median(streamed),
                  median(flushed),
                  median(empty),
                  {},
                  median(stream),
                  median(flush),
                  median(synced),
                  median(direct),
                  media::cpu::name_of(media::cpu::line_write_back)};
  for (std::size_t i = 0; i < counts.size(); ++i)
    m.lines_fence_ns.emplace_back(counts[i], median(lines[i]));
  return m;
}

}  // namespace stele::bench
