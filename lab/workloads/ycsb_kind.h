// ycsb-a to ycsb-f: the core workloads of Cooper et al. ("Benchmarking Cloud Serving Systems with
// YCSB", 2010). Records of the value size with word keys are in a b+ tree, since e scans in key
// order.
//
// All keys of the key space exist at the start; inserts add keys after them. To keep the pool
// bounded there is room for an eighth as many more; after that an insert replaces the oldest
// inserted record. The number of inserts is part of the structure: d uses it to read the latest
// records, with the requested zipf skew or else 0.99. An update writes the whole record in place,
// where YCSB writes one of ten fields. A read-modify-write makes the new record from the old one.
#pragma once

#include <stele/bptree.h>
#include <workloads/run.h>
#include <workloads/ycsb.h>

namespace stele::workloads::ycsb {

struct mix {
  std::string_view name;
  unsigned reads, updates, inserts, read_modifies, scans;  // of a hundred operations
  bool reads_latest;
};

inline constexpr mix mixes[] = {
    {"ycsb-a", 50, 50, 0, 0, 0, false}, {"ycsb-b", 95, 5, 0, 0, 0, false},
    {"ycsb-c", 100, 0, 0, 0, 0, false}, {"ycsb-d", 95, 0, 5, 0, 0, true},
    {"ycsb-e", 0, 0, 5, 0, 95, false},  {"ycsb-f", 50, 0, 0, 50, 0, false},
};
inline constexpr std::uint64_t longest_scan = 100;
inline constexpr double default_theta = 0.99;

// How a mix draws operations. A scan's word is its length.
class mix_generator {
 public:
  mix_generator(const mix& m, const parameters& p) : mix_(m) {
    if (m.reads_latest)
      recency_.emplace(p.keys, p.choice == key_choice::zipf ? p.zipf_theta : default_theta);
  }

  std::string_view name() const { return mix_.name; }
  operation draw(const key_space& keys, base::rng& random) const {
    using enum operation::kind;
    std::uint64_t choice = random.below(100);
    const auto falls_to = [&](unsigned share) {
      return choice < share || (choice -= share, false);
    };
    if (falls_to(mix_.reads))
      return recency_ ? operation{read, recency_->draw(random), by_recency}
                      : operation{read, keys.draw(random), 0};
    if (falls_to(mix_.inserts)) return {insert, 0, random()};
    const std::uint64_t key = keys.draw(random);
    if (falls_to(mix_.updates)) return {put, key, random()};
    if (falls_to(mix_.read_modifies)) return {read_modify, key, random()};
    return {scan, key, 1 + random.below(longest_scan)};
  }

 private:
  mix mix_;
  std::optional<zipf> recency_;
};

template <class V, class Memory>
class record_table {
  using values = element<V, Memory>;

 public:
  using pool_resident = void;

  // The table is empty before.
  void set_loaded(std::uint64_t keys) { loaded_ = keys; }
  void load(std::uint64_t key, std::uint64_t word) { records_.insert(key, value_from<V>(word)); }

  void update(std::uint64_t key, std::uint64_t word) {
    if (auto* const record = records_.find(key)) values::assign(*record, value_from<V>(word));
  }
  void insert(std::uint64_t word) {
    const key_range now = present();
    records_.insert_or_assign(now.next(), value_from<V>(word));
    inserted_ = now.inserted + 1;
  }
  void read_modify(std::uint64_t key, std::uint64_t with) {
    auto* const record = records_.find(key);
    if (record == nullptr) return;
    const V old = values::get(*record);
    std::uint64_t word;
    std::memcpy(&word, &old, sizeof word);
    values::assign(*record, value_from<V>(modified(word, with)));
  }
  void read(std::uint64_t key) const {
    if (const auto* const record = records_.find(key)) do_not_optimize(values::get(*record));
  }
  void read_latest(std::uint64_t rank) const { read(present().latest(rank)); }
  void scan(std::uint64_t from, std::uint64_t length) const {
    for (auto it = records_.lower_bound(from); it != records_.end() && length != 0; ++it, --length)
      do_not_optimize(values::get((*it).second));
  }

  std::uint64_t digest() const {
    std::uint64_t sum = base::mix(inserted_);
    records_.for_each([&](std::uint64_t key, const auto& record) {
      sum += digest_value(key, values::get(record));
    });
    return sum;
  }
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    records_.visit_blocks(visit);
  }
  // Errors: corrupt, if the tree is, or if it does not hold exactly the loaded and inserted keys.
  result<> check() const {
    if (auto ok = records_.check(); !ok) return ok;
    std::uint64_t next = 0;
    bool in_order = true;
    records_.for_each([&](std::uint64_t key, const auto&) { in_order &= key == next++; });
    if (!in_order || next != present().keys())
      return detail::corrupt_error("ycsb: the keys are not those that were loaded and inserted");
    return {};
  }

 private:
  key_range present() const { return {loaded_, inserted_}; }

  basic_bptree<std::uint64_t, V, Memory> records_;
  typename Memory::template field<std::uint64_t> loaded_;
  // inserted_ changes; loaded_, which every operation reads, is on another line
  std::byte padding_[64];
  typename Memory::template field<std::uint64_t> inserted_;
};

std::unique_ptr<model> make_record_model(const key_space& keys);

template <std::size_t N>
class benchmark {
 public:
  template <class Memory>
  using root = record_table<blob<N>, Memory>;

  benchmark(mix_generator d) : name(d.name()), generator_(std::move(d)) {}

  static void prepare(auto& table, const key_space& keys) { table.set_loaded(keys.size()); }
  static void fill(auto& table, const key_space& keys, std::uint64_t i) {
    const std::uint64_t key = keys.scattered(i);
    table.load(key, keys.word_at_start(key));
  }
  static void apply(auto& table, const key_space&, const operation& op) {
    if (op.what == operation::kind::put) table.update(op.a, op.b);
    if (op.what == operation::kind::insert) table.insert(op.b);
    if (op.what == operation::kind::read_modify) table.read_modify(op.a, op.b);
  }
  static void read(const auto& table, const operation& op) {
    if (op.what == operation::kind::scan) return table.scan(op.a, op.b);
    if (op.b == by_recency) return table.read_latest(op.a);
    table.read(op.a);
  }
  static std::uint64_t digest(const auto& table) { return table.digest(); }
  operation draw(const key_space& keys, base::rng& random) const {
    return generator_.draw(keys, random);
  }
  static std::unique_ptr<model> make_model(const key_space& keys) {
    return make_record_model(keys);
  }

  std::string_view name;

 private:
  mix_generator generator_;
};

template <char Letter, class Base, template <class> class Run>
std::unique_ptr<Base> make(const parameters& p) {
  return make_sized<Base, Run, benchmark>(p, mix_generator(mixes[Letter - 'a'], p));
}

}  // namespace stele::workloads::ycsb
