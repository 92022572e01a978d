// Which write-back instruction this processor has (CPUID leaf 7: EBX bit 24 clwb, bit 23
// clflushopt).
#include <cpuid.h>
#include <media/cpu.h>
#include <unistd.h>

#include <initializer_list>

namespace stele::media::cpu {

write_back detect_write_back() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return write_back::clflush;
  if ((b & (1u << 24)) != 0) return write_back::clwb;
  if ((b & (1u << 23)) != 0) return write_back::clflushopt;
  return write_back::clflush;
}

std::size_t last_level_cache_bytes() noexcept {
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = ::sysconf(level); bytes > 0) return static_cast<std::size_t>(bytes);
  return std::size_t{16} << 20;
}

const char* name_of(write_back w) noexcept {
  return w == write_back::clwb ? "clwb" : w == write_back::clflushopt ? "clflushopt" : "clflush";
}

}  // namespace stele::media::cpu
