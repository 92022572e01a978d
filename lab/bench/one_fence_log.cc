// The one-fence log by hand: a model of the minimal cost of durability, not a system.
//
// Each transaction stores in place, streams one redo record of whole lines to its thread's ring,
// and fences once. Nothing else is ever written back, nothing is truncated, and there is no
// recovery. The record of an array swap or of a hash map change holds each stored word or value
// with its offset. Other workloads run on their volatile structures (one thread) and record the
// operation with its value. With several threads, spin locks over stripes of keys are held until
// the record is streamed, and released before the fence.
#include <bench/drive.h>
#include <bench/mapped_file.h>
#include <bench/stripes.h>
#include <bench/value.h>
#include <fmt/format.h>
#include <media/eadr.h>
#include <media/lab_medium.h>
#include <media/process.h>
#include <stele/element.h>
#include <tx/mechanism/catalog.h>

#include <cstring>

namespace stele::bench {
namespace {

using workloads::operation;
using kind = operation::kind;

// The ring of each thread; it holds several transactions of any size.
std::size_t ring_size(const task& t) {
  return std::max(std::size_t{4} << 20,
                  std::bit_ceil(t.ops_per_tx * 2 * (t.parameters.value_size + 64)) * 4);
}

// Words of one redo record: a header with length and sequence, then offsets and stored values.
class record {
 public:
  void clear() { words_.assign(1, 0); }
  bool empty() const noexcept { return words_.size() == 1; }
  void word(std::uint64_t w) { words_.push_back(w); }
  void stored(std::uint64_t offset, const void* from, std::size_t size) {
    word(offset << 16 | size);
    const std::size_t at = words_.size();
    words_.resize(at + size / 8);
    std::memcpy(&words_[at], from, size);
  }
  // Writes the header and pads to whole lines.
  std::span<const std::byte> finish(std::uint64_t sequence) {
    words_[0] = sequence << 16 | words_.size();
    words_.resize((words_.size() + 7) / 8 * 8);
    return std::as_bytes(std::span(words_));
  }

 private:
  std::vector<std::uint64_t> words_{0};
};

// A structure that stores in place and adds its stores to the record.
class structure {
 public:
  virtual ~structure() = default;
  virtual result<> set_up(const task& t) = 0;
  virtual result<> apply(unsigned thread, const operation& op, record& r) = 0;
  virtual std::optional<std::uint64_t> space_bytes() const = 0;
};

class array_of_elements final : public structure {
 public:
  result<> set_up(const task& t) override {
    size_ = t.parameters.value_size;
    auto memory = mapped_file::create(pool_path(t, "hand-array"), t.parameters.keys * size_);
    if (!memory) return std::unexpected(std::move(memory.error()));
    home_.emplace(std::move(*memory));
    const workloads::key_space keys(t.parameters);
    for (std::size_t i = 0; i < t.parameters.keys; ++i)
      fill_with(at(i), size_, keys.word_at_start(i));
    return {};
  }
  result<> apply(unsigned, const operation& op, record& r) override {
    if (op.what == kind::read) {
      read_value(at(op.a), size_);
      return {};
    }
    std::swap_ranges(at(op.a), at(op.a) + size_ / 8, at(op.b));
    r.stored(op.a, at(op.a), size_);
    r.stored(op.b, at(op.b), size_);
    return {};
  }
  std::optional<std::uint64_t> space_bytes() const override { return home_->size(); }

 private:
  std::uint64_t* at(std::uint64_t i) const {
    return reinterpret_cast<std::uint64_t*>(home_->base() + i * size_);
  }
  std::size_t size_ = 0;
  std::optional<mapped_file> home_;
};

// Chains of nodes {key, next, value}; links are offsets in the mapped file, 0 is none.
class chained_map final : public structure {
 public:
  result<> set_up(const task& t) override {
    size_ = t.parameters.value_size;
    mask_ = std::bit_ceil(t.parameters.keys) - 1;
    const std::size_t nodes = t.parameters.keys + spare_nodes;
    auto memory =
        mapped_file::create(pool_path(t, "hand-map"), (mask_ + 1) * 8 + nodes * node_size());
    if (!memory) return std::unexpected(std::move(memory.error()));
    home_.emplace(std::move(*memory));
    fresh_ = (mask_ + 1) * 8;
    free_.resize(t.threads);
    record unused;
    return fill_half(t.parameters, [&](std::uint64_t key, std::uint64_t seed) {
      return apply(0, {kind::put, key, seed}, unused);
    });
  }
  result<> apply(unsigned thread, const operation& op, record& r) override {
    std::uint64_t link = (detail::hash_word(op.a) & mask_) * 8;
    while (word(link) != 0 && word(word(link)) != op.a) link = word(link) + 8;
    const std::uint64_t found = word(link);
    if (op.what == kind::read) {
      if (found != 0) read_value(&word(found + 16), size_);
      return {};
    }
    if (found != 0 && op.what == kind::put) return write(found + 16, op.b, r);
    if (found != 0) return erase(thread, link, found, r);
    return op.what == kind::erase ? result<>{} : insert(thread, link, op, r);
  }
  std::optional<std::uint64_t> space_bytes() const override { return fresh_.load(); }

 private:
  static constexpr std::size_t spare_nodes = 1 << 16;

  std::size_t node_size() const noexcept { return 16 + size_; }
  std::uint64_t& word(std::uint64_t offset) const {
    return *reinterpret_cast<std::uint64_t*>(home_->base() + offset);
  }
  result<> write(std::uint64_t value, std::uint64_t seed, record& r) {
    fill_with(&word(value), size_, seed);
    r.stored(value, &word(value), size_);
    return {};
  }
  result<> insert(unsigned thread, std::uint64_t link, const operation& op, record& r) {
    auto& free = free_[thread].nodes;
    std::uint64_t node = 0;
    if (free.empty()) {
      node = fresh_.fetch_add(node_size());
      if (node + node_size() > home_->size())
        return std::unexpected(error{errc::full, "the hand-made map's nodes are used up"});
    } else {
      node = free.back();
      free.pop_back();
    }
    word(node) = op.a;
    word(node + 8) = 0;
    fill_with(&word(node + 16), size_, op.b);
    r.stored(node, &word(node), node_size());
    return set_link(link, node, r);
  }
  result<> erase(unsigned thread, std::uint64_t link, std::uint64_t node, record& r) {
    free_[thread].nodes.push_back(node);
    return set_link(link, word(node + 8), r);
  }
  result<> set_link(std::uint64_t link, std::uint64_t target, record& r) {
    word(link) = target;
    r.stored(link, &word(link), 8);
    return {};
  }

  struct alignas(64) free_list {
    std::vector<std::uint64_t> nodes;
  };
  std::size_t size_ = 0;
  std::uint64_t mask_ = 0;
  std::optional<mapped_file> home_;
  std::atomic<std::uint64_t> fresh_{0};  // the first byte never used by a node
  std::vector<free_list> free_;          // one for each thread
};

// Any workload on its volatile structure. The record is the operation and the value that it writes,
// if any.
class volatile_structure final : public structure {
 public:
  explicit volatile_structure(std::unique_ptr<workloads::volatile_run> r) : run_(std::move(r)) {}
  result<> set_up(const task& t) override {
    value_.resize(t.parameters.value_size / 8);
    const workloads::key_space keys(t.parameters);
    for (std::uint64_t key = 0; key < keys.size(); ++key)
      present_.push_back(keys.present_at_start(key));
    run_->set_up();
    return {};
  }
  result<> apply(unsigned, const operation& op, record& r) override {
    run_->apply(std::span(&op, 1));
    if (only_reads(op)) return {};
    const std::size_t size = value_size(op);
    fill_with(value_.data(), size, op.b);
    r.word(op.a);
    r.stored(static_cast<std::uint64_t>(op.what), value_.data(), size);
    return {};
  }
  std::optional<std::uint64_t> space_bytes() const override { return std::nullopt; }

 private:
  // The size of the value that the operation writes.
  std::size_t value_size(const operation& op) {
    const std::size_t full = value_.size() * 8;
    if (op.what == kind::append) return std::max<std::size_t>(full / 4, 8);
    if (op.what == kind::toggle) {
      present_[op.a].flip();
      return present_[op.a] ? full : 0;
    }
    return op.what == kind::erase ? 0 : full;
  }

  std::unique_ptr<workloads::volatile_run> run_;
  std::vector<std::uint64_t> value_;
  std::vector<bool> present_;  // present keys: toggle erases these
};

template <class Medium>
class one_fence_log final : public contender {
 public:
  one_fence_log(const task& t, typename Medium::shared medium,
                std::unique_ptr<workloads::workload> w, std::unique_ptr<structure> s)
      : task_(t),
        draws_(std::move(w)),
        structure_(std::move(s)),
        generators_(make_generators(t)),
        locks_(t.threads == 1 ? 0
                              : std::min(std::size_t{1} << 16, std::bit_ceil(t.parameters.keys))),
        shared_(medium) {}

  std::string name() const override { return "one-fence log by hand"; }
  std::string media() const override { return task_.media; }
  std::string durability() const override { return durability_of(task_, ring_path(0)); }

  result<> set_up() override {
    for (unsigned i = 0; i < task_.threads; ++i) {
      auto ring = mapped_file::create(ring_path(i), ring_size(task_));
      if (!ring) return std::unexpected(std::move(ring.error()));
      writers_.push_back(std::make_unique<writer>(shared_, i, std::move(*ring)));
    }
    return structure_->set_up(task_);
  }

  result<measurement> run(double seconds) override {
    const event_counts before = counted();
    auto m = drive(generators_, seconds, task_.idle_share, [this](unsigned thread) {
      return draw_and_apply(
          *draws_, task_.ops_per_tx,
          [this, thread](std::span<const operation> ops) { return transact(thread, ops); });
    });
    const event_counts after = counted();
    if (m)
      m->events = event_counts{after.fences - before.fences, 0,
                               after.streamed_bytes - before.streamed_bytes, 0};
    return m;
  }

  footprint space() override {
    const auto home = structure_->space_bytes();
    return {home ? std::optional(*home + task_.threads * ring_size(task_)) : std::nullopt,
            live_bytes_of(task_)};
  }

 private:
  struct alignas(64) writer {
    writer(typename Medium::shared& s, unsigned thread, mapped_file m)
        : medium(s, thread), ring(std::move(m)) {}
    Medium medium;
    mapped_file ring;
    std::size_t at = 0;  // offset of the next record
    std::uint64_t sequence = 0;
    record next;
  };

  std::string ring_path(unsigned thread) const {
    return pool_path(task_, fmt::format("hand-ring-{}", thread));
  }

  result<> transact(unsigned thread, std::span<const operation> ops) {
    writer& w = *writers_[thread];
    w.next.clear();
    {
      const stripes::guard locked(locks_, ops);
      for (const operation& op : ops)
        if (const result<> done = structure_->apply(thread, op, w.next); !done) return done;
      if (w.next.empty()) return {};
      append(w);
    }
    w.medium.fence();
    return {};
  }
  static void append(writer& w) {
    const auto bytes = w.next.finish(++w.sequence);
    if (w.at + bytes.size() > w.ring.size()) w.at = 0;
    w.medium.stream(w.ring.base() + w.at, bytes.data(), bytes.size());
    w.at += bytes.size();
  }
  event_counts counted() const {
    event_counts sum;
    for (const auto& w : writers_) {
      sum.fences += w->medium.count.fences;
      sum.streamed_bytes += w->medium.count.streamed_bytes;
    }
    return sum;
  }

  const task task_;
  const std::unique_ptr<workloads::workload> draws_;  // only draws operations; never attached
  const std::unique_ptr<structure> structure_;
  std::vector<base::rng> generators_;
  stripes locks_;
  typename Medium::shared shared_;
  std::vector<std::unique_ptr<writer>> writers_;
};

result<std::unique_ptr<structure>> make_structure(const task& t) {
  if (t.workload == "sps") return std::make_unique<array_of_elements>();
  if (t.workload == "hash") return std::make_unique<chained_map>();
  if (t.threads != 1)
    return std::unexpected(
        error{errc::unsupported, "the log by hand runs this workload on one thread only"});
  auto r = workloads::make_volatile(t.workload, t.parameters);
  if (!r) return std::unexpected(std::move(r.error()));
  return std::make_unique<volatile_structure>(std::move(*r));
}

template <class Medium>
contender_result make_on(const task& t, typename Medium::shared medium = {}) {
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  auto s = make_structure(t);
  if (!s) return std::unexpected(std::move(s.error()));
  return std::make_unique<one_fence_log<Medium>>(t, medium, std::move(*w), std::move(*s));
}

}  // namespace

contender_result make_one_fence_log(const task& t) {
  const auto media = detail::parse_media(t.media);
  if (!media) return std::unexpected(media.error());
  using kind_of_media = detail::media_choice::kind;
  switch (media->what) {
    case kind_of_media::adr:
      return make_on<media::adr>(t);
    case kind_of_media::eadr:
      return make_on<media::eadr>(t);
    case kind_of_media::process:
      return make_on<media::process>(t);
    case kind_of_media::lab:
      if (media->lab->what == media::lab_medium::kind::delayed)
        return make_on<media::delayed<media::adr>>(
            t, {.inner = {}, .cost = media->lab->latency_model});
      [[fallthrough]];
    default:
      return std::unexpected(error{
          errc::unsupported, fmt::format("the log by hand does not run on media '{}'", t.media)});
  }
}

}  // namespace stele::bench
