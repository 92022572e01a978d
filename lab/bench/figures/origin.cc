// Asks the system about the machine, and reads the program that runs.
#include <base/checksum.h>
#include <bench/figures/origin.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <media/cpu.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace stele::bench {
namespace {

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::string system_name() {
  utsname u{};
  return ::uname(&u) == 0 ? fmt::format("{} {} {}", u.sysname, u.release, u.machine) : "unknown";
}

std::string program_checksum() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  base::checksum sum(0);
  std::vector<char> some(std::size_t{1} << 20);
  while (in) {
    std::ranges::fill(some, '\0');
    in.read(some.data(), static_cast<std::streamsize>(some.size()));
    sum.add(some.data(), some.size());
  }
  return fmt::format("{:016x}", sum.value());
}

}  // namespace

nlohmann::json machine_json() {
  return {
      {"processor", processor()},
      {"cores", usable_cores()},
      {"last_level_cache_bytes", media::cpu::last_level_cache_bytes()},
      {"memory_bytes", std::uint64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)},
      {"write_back", media::cpu::name_of(media::cpu::line_write_back)},
      {"system", system_name()},
  };
}

nlohmann::json build_json(const std::string& version) {
  return {{"version", version}, {"program", program_checksum()}, {"compiler", __VERSION__}};
}

std::string date_now() {
  using namespace std::chrono;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(system_clock::to_time_t(system_clock::now())));
}

}  // namespace stele::bench
