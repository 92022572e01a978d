// The root of a key-value store: the hash index, which finds a record, and the radix tree, which
// keeps the records in key order.
//
// Each record is in both indexes exactly once. A lookup and an overwrite in place use only the hash
// index. Zeroed memory is an empty store. Call members in a transaction, changing members in an
// update; they may throw failure(errc::full). The caller checks sizes, except for get_many.
#pragma once

#include <containers/kv_hash.h>
#include <containers/kv_radix.h>
#include <stele/kv.h>
#include <stele/pipeline.h>

#include <optional>
#include <span>

namespace stele::detail {

template <class Memory>
class kv_store {
  using record = kv_record<Memory>;

 public:
  using pool_resident = void;
  using key_type = std::string_view;

  kv_store() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty store
  ~kv_store() {
    run_destructor([&] {
      std::vector<const void*> blocks;
      visit_blocks([&](const void* b) { blocks.push_back(b); });
      for (const void* b : blocks) Memory::deallocate(const_cast<void*>(b));
    });
  }
  kv_store(const kv_store&) = delete;
  kv_store& operator=(const kv_store&) = delete;

  // Whether a store may have this key.
  static bool is_key(std::string_view key) {
    return !key.empty() && key.size() <= format::kv_max_key_size;
  }

  // 0 in a new store; see set_version().
  std::uint64_t version() const { return version_.load(); }
  void set_version() { version_ = format::kv_version; }

  bool get(std::string_view key, std::string& into) const {
    const auto f = hash_.find(key, kv_hash<Memory>::hash_of(key));
    if (f.block == nullptr) return false;
    record(f.block).load_value(f.lengths, into);
    return true;
  }
  // Calls each(i, value) for keys[i], in order; no value: the key is not there. `each` must not
  // change the store.
  template <class Each>
  void get_many(std::span<const std::string_view> keys, Each&& each) const {
    std::string value;
    find_many(
        keys.size(), [&](std::size_t i) { return is_key(keys[i]) ? keys[i] : std::string_view(); },
        [&](std::size_t i, lookup& l) {
          if (!is_key(keys[i])) return each(i, std::optional<std::string_view>());
          const auto f = hash_.find_in_chain(l.chain, keys[i], l.hash);
          if (f.block == nullptr) return each(i, std::optional<std::string_view>());
          record(f.block).load_value(f.lengths, value);
          each(i, std::optional(std::string_view(value)));
        });
  }
  bool contains(std::string_view key) const {
    return hash_.find(key, kv_hash<Memory>::hash_of(key)).block != nullptr;
  }

  void put(std::string_view key, std::string_view value) {
    const std::uint64_t hash = kv_hash<Memory>::hash_of(key);
    const auto f = hash_.find(key, hash);
    if (f.block != nullptr && record(f.block).assign(f.lengths, value)) return;
    const record fresh = record::create(key, value);
    if (f.block == nullptr) {
      hash_.insert(hash, fresh.block());
      radix_.insert(key, fresh.block());
    } else {
      hash_.replace(f, hash, fresh.block());
      radix_.replace(key, f.block, fresh.block());
      record(f.block).destroy();
    }
  }
  void put_many(std::span<const kv_pair> pairs) {
    change_many(
        pairs.size(), [&](std::size_t i) { return pairs[i].key; },
        [&](std::size_t i) { put(pairs[i].key, pairs[i].value); });
  }
  // Calls change(i) for the keys key_of(0) to key_of(count - 1), in order, each called once.
  // `change` changes the store; what a lookup of its key loads was prefetched.
  template <class KeyOf, class Change>
  void change_many(std::size_t count, KeyOf&& key_of, Change&& change) {
    find_many(count, key_of, [&](std::size_t i, lookup&) { change(i); });
  }
  bool erase(std::string_view key) {
    const std::uint64_t hash = kv_hash<Memory>::hash_of(key);
    const auto f = hash_.find(key, hash);
    if (f.block == nullptr) return false;
    radix_.erase(key, f.block);
    hash_.erase(f, hash);
    record(f.block).destroy();
    return true;
  }

  // Calls f(key, value) on the items with from <= key < to in key order until f returns false. An
  // empty `to` means no bound.
  template <class F>
  void for_each(std::string_view from, std::string_view to, F&& f) const {
    std::string key, value, before;
    typename kv_radix<Memory>::walk walk(radix_, from);
    for (bool first = true; char* const block = walk.next(); first = false) {
      load_item(block, key, value);
      // Also detects a node that two links lead to: its keys come a second time.
      if (!first && key <= before)
        throw_corrupt_store("the ordered index is not in the order of the keys");
      if ((!to.empty() && key >= to) || !f(std::string_view(key), std::string_view(value))) return;
      std::swap(key, before);
    }
  }
  // The item with the greatest key. Returns false if there is none.
  bool last(std::string& key, std::string& value) const {
    char* const block = radix_.last();
    if (block != nullptr) load_item(block, key, value);
    return block != nullptr;
  }

  std::size_t size() const { return hash_.size(); }
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    hash_.visit_blocks(visit);
    radix_.visit_blocks(visit);
    typename kv_radix<Memory>::walk walk(radix_, {});
    while (char* const block = walk.next()) visit(static_cast<const void*>(block));
  }
  [[nodiscard]] result<> check() const {
    if (auto status = hash_.check(); !status) return status;
    if (auto status = radix_.check(); !status) return status;
    return check_order();
  }

 private:
  struct lookup {
    std::uint64_t hash;
    typename kv_hash<Memory>::chain_start chain;
  };
  // Calls found(i, lookup) for each key, in order; its lines were prefetched.
  template <class KeyOf, class Found>
  void find_many(std::size_t count, KeyOf&& key_of, Found&& found) const {
    pipeline_items<lookup, 3> lookups;
    run_pipeline(
        count,
        [&](std::size_t i) {
          lookups[i].hash = kv_hash<Memory>::hash_of(key_of(i));
          hash_.start(lookups[i].chain, lookups[i].hash);
          hash_.prefetch_bucket(lookups[i].chain);
        },
        [&](std::size_t i) {
          hash_.load(lookups[i].chain);
          hash_.prefetch_records(lookups[i].chain, lookups[i].hash);
        },
        [&](std::size_t i) { found(i, lookups[i]); });
  }

  static void load_item(char* block, std::string& key, std::string& value) {
    const record r(block);
    const auto lengths = r.lengths();
    r.load_key(lengths, key);
    r.load_value(lengths, value);
  }
  // Checks that the keys of the ordered index ascend and that the hash index finds each of its
  // records.
  [[nodiscard]] result<> check_order() const {
    std::string key, before;
    std::size_t count = 0;
    typename kv_radix<Memory>::walk walk(radix_, {});
    while (char* const block = walk.next()) {
      const record r(block);
      claim<Memory>(block, r.lengths().allocated_size());
      r.load_key(r.lengths(), key);
      if (!radix_.leads_to(key, block))
        return corrupt_error(
            "key-value store: the ordered index does not lead to a record by its key");
      if (count++ != 0 && key <= before)
        return corrupt_error("key-value store: the ordered index is not in the order of the keys");
      if (hash_.find(key, kv_hash<Memory>::hash_of(key)).block != block)
        return corrupt_error(
            "key-value store: the hash index does not find a record of the ordered index");
      std::swap(key, before);
    }
    if (count != hash_.size())
      return corrupt_error(
          "key-value store: the hash index has records that the ordered index does not have");
    return {};
  }

  static_assert(sizeof(kv_hash<Memory>) == 328 &&
                sizeof(kv_radix<Memory>) == 8);  // docs/format/kv.md
  typename Memory::template field<std::uint64_t> version_;
  kv_hash<Memory> hash_;
  kv_radix<Memory> radix_;
};

}  // namespace stele::detail
