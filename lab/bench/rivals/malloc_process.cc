// A process that measures its own malloc. `malloc_process WORKLOAD PHASE_BYTES SEED` runs a
// workload of heap_workload.h with the allocator that LD_PRELOAD has installed. It prints the live
// bytes at the end, the maximum of held bytes, and the file that malloc came from. One thread; the
// allocator has its default settings.
//
// Held bytes are the anonymous memory of the process beyond that before the first allocation; every
// byte of every object is stored to. Pages given back (unmapped, MADV_DONTNEED, MADV_FREE) are not
// held. The value is read each time another 64th of a phase has been requested, before objects are
// freed, and at the end: an allocator's memory grows only when it is asked for memory. Memory for
// this program itself is allocated and touched before.
#include <bench/figures/heap_workload.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stele::bench {
namespace {

using kind = heap_operation::kind;

std::uint64_t bytes_after(const char* text, const char* name) {
  const char* at = std::strstr(text, name);
  return at == nullptr ? 0 : std::strtoull(at + std::strlen(name), nullptr, 10) * 1024;
}

// Allocates nothing. Returns 0 when the kernel does not report it.
std::uint64_t anonymous_bytes() {
  char text[4096];
  const int file = ::open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  const auto length = file < 0 ? -1 : ::read(file, text, sizeof text - 1);
  if (file >= 0) ::close(file);
  text[std::max<ssize_t>(length, 0)] = '\0';
  return bytes_after(text, "\nAnonymous:") - bytes_after(text, "\nLazyFree:");
}

class measured_heap {
 public:
  measured_heap(void** objects, std::uint64_t phase_bytes)
      : objects_(objects), sample_bytes_(phase_bytes / 64) {}

  result<> apply(const heap_operation& op) {
    if (op.what != last_) sample();
    last_ = op.what;
    if (op.what == kind::free) {
      std::free(objects_[op.object]);
      return {};
    }
    void* const object = objects_[op.object] = std::malloc(op.size_bytes);
    if (object == nullptr) return std::unexpected(error{errc::full, "malloc has no memory"});
    std::memset(object, 1, op.size_bytes);
    since_sample_bytes_ += op.size_bytes;
    if (since_sample_bytes_ > sample_bytes_) sample();
    return {};
  }
  void sample() {
    since_sample_bytes_ = 0;
    const std::uint64_t now_bytes = anonymous_bytes();
    most_bytes_ = std::max(most_bytes_, now_bytes - std::min(now_bytes, start_bytes_));
  }
  bool knows() const noexcept { return start_bytes_ != 0; }
  std::uint64_t most_bytes() const noexcept { return most_bytes_; }

 private:
  void** const objects_;
  const std::uint64_t sample_bytes_;
  kind last_ = kind::allocate;
  std::uint64_t since_sample_bytes_ = 0, most_bytes_ = 0;
  const std::uint64_t start_bytes_ = anonymous_bytes();  // initialized last
};

int fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  return 1;
}

const char* file_of_malloc() {
  Dl_info info{};
  return ::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &info) == 0 ? "" : info.dli_fname;
}

int measure(const heap_workload& w, std::uint64_t phase_bytes, std::uint64_t seed) {
  const heap_operations operations(w, phase_bytes, seed);
  void* const objects =
      ::mmap(nullptr, operations.most_objects() * sizeof(void*), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (objects == MAP_FAILED) return fail("there is no memory for the addresses of the objects");
  measured_heap heap(static_cast<void**>(objects), phase_bytes);
  if (!heap.knows())
    return fail(
        "/proc/self/smaps_rollup cannot be read; it needs Linux 4.14 with "
        "CONFIG_PROC_PAGE_MONITOR");
  const auto live_bytes = run_heap_workload(
      operations, [&](std::span<const heap_operation> ops) { return heap.apply(ops.front()); });
  if (!live_bytes) return fail(live_bytes.error().message.c_str());
  heap.sample();
  std::printf("%llu %llu %s\n", static_cast<unsigned long long>(*live_bytes),
              static_cast<unsigned long long>(heap.most_bytes()), file_of_malloc());
  return 0;
}

}  // namespace
}  // namespace stele::bench

int main(int argc, char** argv) {
  using namespace stele::bench;
  const heap_workload* const w = argc == 4 ? find_heap_workload(argv[1]) : nullptr;
  if (w == nullptr) return fail("usage: malloc_process W1|W2|W3 PHASE_BYTES SEED");
  return measure(*w, std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
}
