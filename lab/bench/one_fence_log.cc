// The one-fence log by hand: a model of the minimal cost of durability, not a system.
//
// A redo log without recovery, in the order that recovery would need. (1) A transaction collects
// its stores in a record and reads them there; one of several operations loads home lines of all
// first. (2) The record, of whole lines, is streamed to its
// thread's ring. (3) One fence: the transaction is durable. (4) Its stores go home. (5) Before the
// ring wraps, the home lines of all records of the lap are flushed, one fence makes them durable,
// and then a head word in the ring's first line, flushed and fenced, frees the records.
//
// The record of an array swap or of a hash map change holds each stored word or value with its
// offset; home is a mapped file. A node that a transaction makes is stored home at once, because
// nothing refers to it before (4); a node that it frees is used again only after (4). Other
// workloads run on their volatile structures (one thread): the record is the operation with its
// value, (4) is the operation, and (5) flushes nothing, though such a log could only be freed by a
// copy of the structure. With several threads, spin locks over stripes of keys are held from (1) to
// (4), and records have numbers of one sequence; that (5) of one ring would have to wait for older
// records of the others is left out.
#include <bench/drive.h>
#include <bench/mapped_file.h>
#include <bench/stripes.h>
#include <bench/value.h>
#include <fmt/format.h>
#include <lab_media/lab_medium.h>
#include <media/eadr.h>
#include <media/process.h>
#include <stele/element.h>
#include <tx/mechanism/catalog.h>
#include <workloads/apart/volatile.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace stele::bench {
namespace {

using workloads::operation;
using kind = operation::kind;

// The ring of each thread; it holds several transactions of any size.
std::size_t ring_size(const task& t) {
  return std::max(std::size_t{4} << 20,
                  std::bit_ceil(t.ops_per_tx * 2 * (t.parameters.value_size + 64)) * 4);
}

inline void copy_words(std::uint64_t* to, const std::uint64_t* from, std::size_t size) {
  for (std::size_t i = 0; i < size / 8; ++i) to[i] = from[i];
}

// Words of one redo record: sequence and length, then the stored ranges, each an offset with a size
// and the new words. Short code, so that the cache misses of one operation overlap the next one.
class record {
 public:
  static constexpr std::size_t header_words = 2;
  static constexpr std::size_t ranges_per_operation = 3;  // at most

  // With more than one operation, find() knows the ranges.
  void begin(std::size_t operations) {
    searched_ = operations > 1;
    const std::size_t places = std::bit_ceil(2 * ranges_per_operation * operations);
    if (searched_ && index_.size() < places) index_.assign(places, {});
    used_ = header_words;
    ++epoch_;
  }
  bool empty() const noexcept { return used_ == header_words; }
  // Room for the ranges of one operation, of so many bytes in all. Pointers from find() stay valid
  // until the next call.
  void reserve(std::size_t size) {
    const std::size_t wanted = used_ + ranges_per_operation + size / 8 + 8;
    if (words_.size() < wanted) [[unlikely]]
      words_.resize(2 * wanted);
  }
  void stored(std::uint64_t offset, const std::uint64_t* from, std::size_t size) {
    std::uint64_t* const to = &words_[used_];
    if (searched_) place_of(offset) = {offset, epoch_, used_ + 1};
    to[0] = offset << 16 | size;
    copy_words(to + 1, from, size);
    used_ += 1 + size / 8;
  }
  // The newest words stored at the offset; null if there are none.
  const std::uint64_t* find(std::uint64_t offset) {
    if (!searched_) return nullptr;
    const range& r = place_of(offset);
    return r.epoch == epoch_ ? &words_[r.at] : nullptr;
  }
  // Writes the header and pads to whole lines.
  std::span<const std::byte> finish(std::uint64_t sequence) {
    words_[0] = sequence;
    words_[1] = used_;
    const std::size_t padded = (used_ + 7) / 8 * 8;
    for (std::size_t i = used_; i < padded; ++i) words_[i] = 0;
    return std::as_bytes(std::span(words_.data(), padded));
  }

  // Calls visit(offset, words, size) for each range.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each(words_.data(), used_, visit);
  }
  // The same for a finished record; returns its length in bytes.
  template <class Visit>
  static std::size_t for_each_in(const std::uint64_t* words, Visit visit) {
    for_each(words, words[1], visit);
    return (words[1] + 7) / 8 * 64;
  }

 private:
  struct range {
    std::uint64_t offset = 0, epoch = 0;
    std::size_t at = 0;
  };

  template <class Visit>
  static void for_each(const std::uint64_t* words, std::size_t used, Visit visit) {
    const std::uint64_t* const end = words + used;
    for (const std::uint64_t* at = words + header_words; at != end;) {
      const std::size_t size = *at & 0xFFFF;
      visit(*at >> 16, at + 1, size);
      at += 1 + size / 8;
    }
  }
  // The place of a range in the index, which is at most half full; another epoch's is free.
  range& place_of(std::uint64_t offset) {
    range* const places = index_.data();
    const std::size_t mask = index_.size() - 1;
    std::size_t i = (offset >> 3) * 0x9E3779B97F4A7C15u >> 32 & mask;
    while (places[i].epoch == epoch_ && places[i].offset != offset) i = (i + 1) & mask;
    return places[i];
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(64);
  std::size_t used_ = header_words;
  bool searched_ = false;
  std::uint64_t epoch_ = 0;
  std::vector<range> index_;
};

// A structure whose changes are collected in a record before they go home.
class structure {
 public:
  virtual ~structure() = default;
  virtual result<> set_up(const task& t) = 0;
  // Starts to load what the operation will read.
  virtual void prefetch(const operation&) const {}
  // Adds the operation's stores to the record.
  virtual result<> apply(unsigned thread, const operation& op, record& r) = 0;
  // Stores home what the record of these operations holds.
  virtual void commit(unsigned thread, std::span<const operation> ops, const record& r) = 0;
  // Where the offsets of records begin; null when home is not one range.
  virtual std::byte* home() const { return nullptr; }
  virtual std::optional<std::uint64_t> space_bytes() const = 0;

 protected:
  static void store_home(std::byte* home, const record& r) {
    r.for_each([home](std::uint64_t offset, const std::uint64_t* from, std::size_t size) {
      copy_words(reinterpret_cast<std::uint64_t*>(home + offset), from, size);
    });
  }
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
      fill_with(home_->base() + i * size_, size_, keys.word_at_start(i));
    return {};
  }
  void prefetch(const operation& op) const override {
    __builtin_prefetch(home_->base() + op.a * size_);
    __builtin_prefetch(home_->base() + op.b * size_);
  }
  result<> apply(unsigned, const operation& op, record& r) override {
    const std::uint64_t a = op.a * size_, b = op.b * size_;
    if (op.what == kind::read) {
      read_value(at(a, r), size_);
      return {};
    }
    r.reserve(2 * size_);
    const std::uint64_t *of_a = at(a, r), *of_b = at(b, r);
    r.stored(a, of_b, size_);
    r.stored(b, of_a, size_);
    return {};
  }
  void commit(unsigned, std::span<const operation>, const record& r) override {
    store_home(home_->base(), r);
  }
  std::byte* home() const override { return home_->base(); }
  std::optional<std::uint64_t> space_bytes() const override { return home_->size(); }

 private:
  const std::uint64_t* at(std::uint64_t offset, record& r) const {
    const std::uint64_t* const pending = r.find(offset);
    return pending != nullptr ? pending
                              : reinterpret_cast<const std::uint64_t*>(home_->base() + offset);
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
    record r;
    return fill_half(t.parameters, [&](std::uint64_t key, std::uint64_t seed) {
      r.begin(1);
      const operation op = {kind::put, key, seed};
      const result<> done = apply(0, op, r);
      commit(0, std::span(&op, 1), r);
      return done;
    });
  }
  result<> apply(unsigned thread, const operation& op, record& r) override {
    r.reserve(node_size() + 8);
    std::uint64_t link = (detail::hash_word(op.a) & mask_) * 8;
    std::uint64_t found = word(link, r);
    for (; found != 0 && word(found, r) != op.a; found = word(link, r)) link = found + 8;
    if (op.what == kind::read) {
      if (found != 0) read_value(at(found + 16, r), size_);
      return {};
    }
    if (found != 0 && op.what == kind::put) return write(found + 16, op.b, r);
    if (found != 0) return erase(thread, link, found, r);
    return op.what == kind::erase ? result<>{} : insert(thread, link, op, r);
  }
  void commit(unsigned thread, std::span<const operation>, const record& r) override {
    store_home(home_->base(), r);
    auto& [nodes, freed] = free_[thread];
    nodes.insert(nodes.end(), freed.begin(), freed.end());
    freed.clear();
  }
  std::byte* home() const override { return home_->base(); }
  std::optional<std::uint64_t> space_bytes() const override { return fresh_.load(); }

 private:
  static constexpr std::size_t spare_nodes = 1 << 16;

  std::size_t node_size() const noexcept { return 16 + size_; }
  std::uint64_t* home_at(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(home_->base() + offset);
  }
  const std::uint64_t* at(std::uint64_t offset, record& r) const {
    const std::uint64_t* const pending = r.find(offset);
    return pending != nullptr ? pending : home_at(offset);
  }
  std::uint64_t word(std::uint64_t offset, record& r) const { return *at(offset, r); }

  result<> write(std::uint64_t value, std::uint64_t seed, record& r) {
    static thread_local std::vector<std::uint64_t> words;
    words.assign(size_ / 8, seed);
    r.stored(value, words.data(), size_);
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
    *home_at(node) = op.a;
    *home_at(node + 8) = 0;
    fill_with(home_at(node + 16), size_, op.b);
    r.stored(node, home_at(node), node_size());
    return set_link(link, node, r);
  }
  result<> erase(unsigned thread, std::uint64_t link, std::uint64_t node, record& r) {
    free_[thread].freed.push_back(node);
    return set_link(link, word(node + 8, r), r);
  }
  result<> set_link(std::uint64_t link, std::uint64_t target, record& r) {
    r.stored(link, &target, 8);
    return {};
  }

  struct alignas(64) free_list {
    std::vector<std::uint64_t> nodes, freed;  // freed: by the present transaction
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
    if (only_reads(op)) return {};
    const std::size_t size = value_size(op);
    r.reserve(size);
    fill_with(value_.data(), size, op.b);
    r.stored(op.a << 4 | static_cast<std::uint64_t>(op.what), value_.data(), size);
    return {};
  }
  void commit(unsigned, std::span<const operation> ops, const record&) override {
    run_->apply(ops);
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
  durability_level durability() const override { return durability_of(task_, ring_path(0)); }

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
      m->events = event_counts{after.fences - before.fences, after.lines - before.lines,
                               after.streamed_bytes - before.streamed_bytes, 0};
    return m;
  }

  footprint space() override {
    const auto home = structure_->space_bytes();
    return {home ? std::optional(*home + task_.threads * ring_size(task_)) : std::nullopt,
            live_bytes_of(task_)};
  }

 private:
  static constexpr std::size_t head_size = 64;  // the ring's first line

  struct alignas(64) writer {
    writer(typename Medium::shared& s, unsigned thread, mapped_file m)
        : medium(s, thread), ring(std::move(m)) {}
    Medium medium;
    mapped_file ring;
    std::size_t at = head_size;  // offset of the next record
    record next;
  };

  std::string ring_path(unsigned thread) const {
    return pool_path(task_, fmt::format("hand-ring-{}", thread));
  }

  result<> transact(unsigned thread, std::span<const operation> ops) {
    writer& w = *writers_[thread];
    w.next.begin(ops.size());
    const stripes::guard locked(locks_, ops);
    if (ops.size() > 1)
      for (const operation& op : ops) structure_->prefetch(op);
    for (const operation& op : ops)
      if (const result<> done = structure_->apply(thread, op, w.next); !done) return done;
    if (!w.next.empty()) {
      append(w);
      w.medium.fence();  // the record before any of its stores at home
    }
    structure_->commit(thread, ops, w.next);
    return {};
  }
  void append(writer& w) {
    const auto bytes = w.next.finish(next_sequence());
    if (w.at + bytes.size() > w.ring.size()) free_lap(w);
    w.medium.stream(w.ring.base() + w.at, bytes.data(), bytes.size());
    w.at += bytes.size();
  }
  std::uint64_t next_sequence() {
    if (task_.threads > 1) return sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uint64_t next = sequence_.load(std::memory_order_relaxed) + 1;
    sequence_.store(next, std::memory_order_relaxed);
    return next;
  }
  void free_lap(writer& w) {
    const std::byte* const home = structure_->home();
    std::uint64_t last = 0;
    for (std::size_t at = head_size; at < w.at;) {
      const auto* words = reinterpret_cast<const std::uint64_t*>(w.ring.base() + at);
      last = words[0];
      at += record::for_each_in(words,
                                [&](std::uint64_t offset, const std::uint64_t*, std::size_t size) {
                                  if (home != nullptr) w.medium.flush(home + offset, size);
                                });
    }
    w.medium.fence();  // home before the head that frees the records
    std::memcpy(w.ring.base(), &last, sizeof last);
    w.medium.flush(w.ring.base(), sizeof last);
    w.medium.fence();  // the head before the records that overwrite freed ones
    w.at = head_size;
  }
  event_counts counted() const {
    event_counts sum;
    for (const auto& w : writers_) {
      sum.fences += w->medium.count.fences;
      sum.lines += w->medium.count.flushed_lines;
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
  std::atomic<std::uint64_t> sequence_{0};
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
