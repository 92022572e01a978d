// The heap of libpmemobj under the workloads of the fragmentation figure: measures how far its pool
// must grow.
//
// The pool is a set of files in a folder. The library extends the set when an allocation finds no
// room. The space held is the size of the files, as the space of a malloc is what it has mapped.
// The files grow by the least step that the library supports, 2 MiB instead of 128 MiB, which
// bounds unused space; its statistics of runs would omit chunk headers and chunks that are in no
// run. The 3 MiB of its logs are not counted. Files never shrink, so their size at the end is the
// maximum.
//
// Settings: objects come one by one from pmemobj_alloc, which is atomic without a transaction, by
// the default allocation classes (16 bytes of header on each object): sizes vary too much for
// special classes without headers. Space does not depend on flushing; PMEM_IS_PMEM_FORCE avoids
// msync.
#include <bench/figures/fragmentation.h>
#include <bench/rivals/libpmemobj_changes.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace stele::bench {
namespace {

namespace fs = std::filesystem;
using pmdk::failed;
using kind = heap_operation::kind;

// A growing pool in its own folder, which the destructor removes.
class growing_pool {
 public:
  growing_pool() = default;
  growing_pool(const growing_pool&) = delete;
  growing_pool& operator=(const growing_pool&) = delete;
  ~growing_pool() {
    if (pool_ != nullptr) pmemobj_close(pool_);
    std::error_code ignored;
    if (!dir_.empty()) fs::remove_all(dir_, ignored);
  }

  // Reserves addresses for `most_bytes`, but no memory.
  result<> create(const std::string& parent, std::uint64_t most_bytes) {
    std::string name = parent + "/stele-fragmentation-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      return std::unexpected(error{errc::io, fmt::format("cannot make a directory in {}: {}",
                                                         parent, std::strerror(errno))});
    dir_ = name;
    fs::create_directory(parts());
    std::ofstream(set()) << fmt::format("PMEMPOOLSET\nOPTION SINGLEHDR\n{}M {}\n", most_bytes >> 20,
                                        parts().string());
    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    // A setting of the process, which another measurement turns on. It touches all addresses that
    // are reserved, and what is behind the files raises SIGBUS.
    int off = 0;
    pmemobj_ctl_set(nullptr, "prefault.at_create", &off);
    pool_ = pmemobj_create(set().c_str(), "stele-fragmentation", 0, 0600);
    if (pool_ == nullptr)
      return std::unexpected(failed(fmt::format("creating {}", set().string())));
    std::uint64_t step_bytes = PMEMOBJ_MIN_PART;
    if (pmemobj_ctl_set(pool_, "heap.size.granularity", &step_bytes) == 0) return {};
    return std::unexpected(failed("setting the step of growth"));
  }
  PMEMobjpool* handle() const noexcept { return pool_; }
  std::uint64_t heap_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& part : fs::directory_iterator(parts())) bytes += part.file_size();
    return bytes - pmdk::lanes_bytes;
  }

 private:
  fs::path set() const { return dir_ / "pool.set"; }  // must be outside of the folder of parts
  fs::path parts() const { return dir_ / "parts"; }

  fs::path dir_;
  PMEMobjpool* pool_ = nullptr;
};

result<> apply(PMEMobjpool* pool, std::vector<PMEMoid>& objects, const heap_operation& op) {
  PMEMoid& object = objects[op.object];
  if (op.what == kind::free) {
    pmemobj_free(&object);
    return {};
  }
  if (pmemobj_alloc(pool, &object, op.size_bytes, 0, nullptr, nullptr) != 0)
    return std::unexpected(failed(fmt::format("allocating {} bytes", op.size_bytes)));
  std::memset(pmemobj_direct(object), 1, op.size_bytes);
  return {};
}

}  // namespace

result<heap_space> measure_libpmemobj_heap(const heap_workload& w, const fragmentation_options& o) {
  growing_pool pool;
  if (auto created = pool.create(o.dir, 8 * o.phase_bytes + (std::uint64_t{1} << 30)); !created)
    return std::unexpected(std::move(created.error()));
  const heap_operations operations(w, o.phase_bytes, o.seed);
  std::vector<PMEMoid> objects(operations.most_objects());
  const auto live_bytes = run_heap_workload(operations, [&](std::span<const heap_operation> ops) {
    return apply(pool.handle(), objects, ops.front());
  });
  if (!live_bytes) return std::unexpected(live_bytes.error());
  return heap_space{"libpmemobj", std::string(w.name), *live_bytes, pool.heap_bytes()};
}

}  // namespace stele::bench
