// Figure 6 of the architecture-aware evaluation: the time to flush objects, beside the time to
// create and to update checksums for them.
//
// Objects of one size are adjacent in the home of a pool file, which also has the checksum blocks,
// and are accessed at random. Flushing is what a commit does: it flushes lines just stored to, with
// a fence for each object. Creating and updating is what the truncation does: it reads 32 matrices
// at a time, computes their checksums and streams their blocks, with one fence for all. Creating
// uses matrices that were not touched lately. Updating makes a new block for each matrix that a
// stored object lies in.
#include <base/mutant.h>
#include <bench/figures/archapt_parts.h>
#include <fmt/format.h>
#include <lab_media/delayed.h>
#include <media/adr.h>
#include <pool/pool_file.h>
#include <published/archapt/parity_area.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

namespace stele::bench::archapt {
namespace {

using clock = std::chrono::steady_clock;
using slow_memory = media::delayed<media::adr>;
using format::line_size;

constexpr std::size_t sizes[] = {128, 256, 512, 1024, 2048};
// many times the size of a cache
constexpr std::uint64_t most_home_bytes = std::uint64_t{512} << 20;
constexpr std::size_t batch = 32;  // matrices, as in the truncation
constexpr std::uint32_t line_ns = 150;
constexpr std::uint64_t matrix_bytes = format::matrix_lines * line_size;

class objects {
 public:
  static result<std::unique_ptr<objects>> make(const sweep_options& o, std::size_t size) {
    const std::uint64_t count = std::min<std::uint64_t>(o.archapt_objects, most_home_bytes / size);
    const std::string path =
        (std::filesystem::path(o.dir) / fmt::format("archapt-checksums-{}.stele", ::getpid()))
            .string();
    const storage::pool_geometry shape{.size = count * size * 7 / 4 + (std::size_t{1} << 20),
                                       .log_size = 4096,
                                       .log_count = 1,
                                       .layout = "",
                                       .parity_block_size = format::plain_block_size};
    if (auto made = storage::pool_file::create(path, shape); !made)
      return std::unexpected(std::move(made.error()));
    auto file = storage::pool_file::open(path, storage::map_kind::shared);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);  // the mapping stays
    if (!file) return std::unexpected(std::move(file.error()));
    return std::unique_ptr<objects>(new objects(std::move(*file), size, count, o.seed));
  }

  std::uint64_t count() const { return count_; }

  // Seconds of the named operation alone, over random objects.
  double flush(std::uint64_t accesses) {
    clock::duration spent{};
    for (std::uint64_t i = 0; i < accesses; ++i) {
      const std::uint64_t object = random_.below(count_);
      store_to(object);
      const auto begin = clock::now();
      medium_.flush(at(object), size_);
      medium_.fence();
      spent += clock::now() - begin;
    }
    return seconds_of(spent);
  }
  double create(std::uint64_t accesses) {
    clock::duration spent{};
    const std::uint64_t matrices = std::max<std::uint64_t>(accesses * size_ / matrix_bytes, 1);
    std::vector<std::uint64_t> some;
    for (std::uint64_t done = 0; done < matrices; done += some.size()) {
      some.clear();
      while (some.size() < std::min<std::uint64_t>(batch, matrices - done))
        some.push_back(next_matrix());
      spent += create_parity(some);
    }
    return seconds_of(spent);
  }
  double update(std::uint64_t accesses) {
    clock::duration spent{};
    std::vector<std::uint64_t> some;
    for (std::uint64_t i = 0; i < accesses; ++i) {
      const std::uint64_t object = random_.below(count_), first = offset_of(object);
      store_to(object);
      for (std::uint64_t m = area_.matrix_of(first); m <= area_.matrix_of(first + size_ - 1); ++m)
        some.push_back(m);
      if (some.size() < batch && i + 1 < accesses) continue;
      spent += create_parity(some);
      some.clear();
    }
    return seconds_of(spent);
  }

 private:
  objects(storage::pool_file file, std::size_t size, std::uint64_t count, std::uint64_t seed)
      : file_(std::move(file)),
        area_(file_),
        size_(size),
        count_(count),
        random_(base::mix(seed)),
        order_((count * size + matrix_bytes - 1) / matrix_bytes),
        new_content_(size) {
    for (std::uint64_t i = 0; i < count_; ++i) store_to(i);  // makes its pages present
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    std::shuffle(order_.begin(), order_.end(), random_);
    create_parity(order_);
  }

  static double seconds_of(clock::duration d) { return std::chrono::duration<double>(d).count(); }
  std::uint64_t offset_of(std::uint64_t object) const {
    return file_.header().home_offset + object * size_;
  }
  std::byte* at(std::uint64_t object) const { return file_.at(offset_of(object)); }
  std::uint64_t next_matrix() { return order_[next_++ % order_.size()]; }

  void store_to(std::uint64_t object) {
    const std::uint64_t word = random_();
    for (std::size_t i = 0; i < size_; i += sizeof word)
      std::memcpy(new_content_.data() + i, &word, sizeof word);
    medium_.store(at(object), new_content_.data(), size_);
  }

  clock::duration create_parity(std::span<const std::uint64_t> matrices) {
    const auto begin = clock::now();
    for (const std::uint64_t m : matrices.first(std::min(batch, matrices.size())))
      for (unsigned line = 0; line < format::matrix_lines; ++line)
        __builtin_prefetch(file_.at(area_.offset_of(m, line)));
    for (const std::uint64_t m : matrices) {
      area_.read(m, content_);
      detail::compute_checksums(content_, false, block_);
      block_.epoch = ++epoch_;
      block_.kind = format::parity_kind::active;
      block_.skipped = format::full_matrix_mask;
      block_.checksum = area_.checksum_for(block_, m, epoch_ % format::parity_blocks);
      medium_.stream(file_.base() + area_.block_offset(m, epoch_ % format::parity_blocks), &block_,
                     area_.block_size());
    }
    medium_.fence();
    return clock::now() - begin;
  }

  storage::pool_file file_;
  detail::parity_area area_;
  std::size_t size_;
  std::uint64_t count_;
  base::rng random_;
  std::vector<std::uint64_t> order_;  // a random order of matrices
  std::uint64_t next_ = 0, epoch_ = 0;
  std::vector<std::byte> new_content_;
  detail::matrix content_;
  format::parity_block block_{};
  slow_memory::shared shared_{{}, {line_ns, 0}};
  slow_memory medium_{shared_, 0};
};

struct timed_operation {
  const char *name, *label;
  double (objects::*of)(std::uint64_t accesses);
};
constexpr timed_operation timed_operations[] = {{"flush", "flushing", &objects::flush},
                                                {"create", "creating checksums", &objects::create},
                                                {"update", "updating checksums", &objects::update}};

// Divides all accesses into as many parts as there are runs.
result<> measure_size(const sweep_options& o, std::size_t place, panel& costs) {
  auto some = objects::make(o, sizes[place]);
  if (!some) return std::unexpected(std::move(some.error()));
  const std::uint64_t accesses = std::max<std::uint64_t>(o.archapt_objects / o.runs, 1);
  const double scale = 1e9 / static_cast<double>(accesses);
  std::vector<double> values[std::size(timed_operations)];
  for (unsigned run = 0; run < o.runs; ++run)
    for (std::size_t a = 0; a < std::size(timed_operations); ++a) {
      if (o.cancelled()) return std::unexpected(error{errc::cancelled, "interrupted"});
      o.progress(fmt::format("{} B, {}", sizes[place], timed_operations[a].label));
      values[a].push_back(scale * ((**some).*timed_operations[a].of)(accesses));
    }
  for (std::size_t a = 0; a < std::size(timed_operations); ++a)
    costs.lines[a].points[place] = spread_of(std::move(values[a]));
  return {};
}

std::optional<double> median_at(const panel& p, const char* name, std::size_t place) {
  const auto& point = p.find(name)->points[place];
  return point ? std::optional(point->median) : std::nullopt;
}

// The bounds for the time of creating over that of flushing, at the smallest and the largest size.
constexpr struct {
  std::size_t place;
  double most;
} dues[] = {{0, 0.75}, {std::size(sizes) - 1, 0.55}};

}  // namespace

result<> measure_checksums(const sweep_options& o, chart& c) {
  panel costs{"time", "bytes of an object", "nanoseconds an object", {}, {}, false};
  for (const std::size_t size : sizes) costs.xs.push_back(fmt::format("{}", size));
  for (const timed_operation& a : timed_operations)
    costs.lines.push_back(
        {a.name, a.label, false, std::vector<std::optional<spread>>(std::size(sizes))});
  for (std::size_t i = 0; i < std::size(sizes) && c.complete; ++i) {
    auto done = measure_size(o, i, costs);
    if (!done && done.error().code != errc::cancelled) return done;
    c.complete = done.has_value();
  }
  c.panels = {costs, relative_to(costs, "flush", "over flushing")};
  for (const auto& d : dues) {
    const auto ratio = median_at(c.panels.back(), "create", d.place);
    if (!ratio) continue;
    c.notes.push_back(
        fmt::format("due, creating over flushing at {} B: at most {:.2f}; measured: {:.2f}: {}",
                    sizes[d.place], d.most, *ratio, *ratio <= d.most ? "met" : "missed"));
  }
  c.notes.push_back(fmt::format(
      "{} accesses to objects in {} MiB at the most; {} ns a line flushed, so {} lines of "
      "checksums for {} of home bound the gain at {:.2f}",
      o.archapt_objects, most_home_bytes >> 20, line_ns, format::plain_block_size / line_size,
      format::matrix_lines,
      static_cast<double>(format::plain_block_size / line_size) / format::matrix_lines));
  c.notes.emplace_back(
      "flushing: lines just stored to, a fence an object, as a commit does; creating: matrices not "
      "touched lately, full of objects, 32 of them a fence; updating: the block of each "
      "matrix that an object lies in anew, where the text adds to the sums in place");
  return {};
}

}  // namespace stele::bench::archapt
