// A key-value store as it lies in a pool: the hash index, which finds a record, the radix tree,
// which keeps the records in key order, and the expiry index. In the store of a pool also the
// catalog of the named stores.
//
// Each record is in the first two indexes exactly once. A lookup and an overwrite in place use only
// the hash index. A record whose expiry time has passed is not seen by reads; it stays until it is
// overwritten, erased or removed by remove_expired(). Zeroed memory is an empty store. Call members
// in a transaction, changing members in an update; they may throw failure(errc::full). The caller
// checks sizes, except for get_many. Expiry times are in milliseconds since 1970; 0: never.
#pragma once

#include <base/assert.h>
#include <containers/kv_catalog.h>
#include <containers/kv_expiry.h>
#include <containers/kv_hash.h>
#include <containers/kv_radix.h>
#include <stele/detail/pipeline.h>
#include <stele/kv.h>

#include <optional>
#include <span>

namespace stele::detail {

template <class Memory>
class basic_kv_store {
  using record = kv_record<Memory>;
  using place = typename kv_hash<Memory>::lookup_result;

 public:
  using pool_resident = void;
  using key_type = std::string_view;

  basic_kv_store() noexcept =
      default;  // leaves the bytes unchanged: zeroed memory is an empty store
  ~basic_kv_store() {
    run_destructor([&] {
      std::vector<const void*> blocks;
      visit_blocks([&](const void* b) { blocks.push_back(b); });
      for (const void* b : blocks) Memory::deallocate(const_cast<void*>(b));
    });
  }
  basic_kv_store(const basic_kv_store&) = delete;
  basic_kv_store& operator=(const basic_kv_store&) = delete;

  // Whether a store may have this key.
  static bool is_key(std::string_view key) {
    return !key.empty() && key.size() <= format::kv_max_key_size;
  }

  // 0 in a new store; see set_version().
  std::uint64_t version() const { return version_.load(); }
  void set_version() { version_ = format::kv_first_version; }
  // Of an expiry index or a catalog: a new one gets a mark; one that must have it is corrupt
  // without.
  void set_index_mark() { version_ = format::kv_index_mark; }
  void verify_index_mark(std::uint64_t link) const {
    if ((link & format::kv_marked_bit) != 0 && version() != format::kv_index_mark)
      throw_corrupt_store("an index has lost its mark: it was zeroed or overwritten");
  }
  bool has_catalog() const { return stores_.exists(); }
  // Whether the store has neither an expiry index nor a catalog.
  bool is_plain() const { return !expiry_.exists() && !stores_.exists(); }

  bool get(std::string_view key, std::string& into) const {
    STELE_ASSERT(is_key(key));
    const place f = hash_.find(key, hash_of(key));
    if (!is_there(f)) return false;
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
          const place f = hash_.find_in_chain(l.chain, keys[i], l.hash);
          if (!is_there(f)) return each(i, std::optional<std::string_view>());
          record(f.block).load_value(f.lengths, value);
          each(i, std::optional(std::string_view(value)));
        });
  }
  bool contains(std::string_view key) const { return is_there(hash_.find(key, hash_of(key))); }
  // The expiry time of an item; 0: it has none, or is not there.
  std::uint64_t expiry(std::string_view key) const {
    const place f = hash_.find(key, hash_of(key));
    return is_there(f) ? expiry_of(f) : 0;
  }

  void put(std::string_view key, std::string_view value, std::uint64_t expires = 0) {
    STELE_ASSERT(is_key(key) && value.size() <= format::kv_max_value_size);
    const std::uint64_t hash = hash_of(key);
    store_item(hash_.find(key, hash), hash, key, value, expires);
  }
  // Calls f(value), which may change or reset the value, or give one to a key that is not there.
  // Keeps the expiry time.
  template <class F>
  void modify(std::string_view key, F&& f) {
    STELE_ASSERT(is_key(key));
    const place before = hash_.find(key, hash_of(key));
    std::optional<std::string> value;
    std::uint64_t expires = 0;
    if (is_there(before)) {
      record(before.block).load_value(before.lengths, value.emplace());
      expires = expiry_of(before);
    }
    f(value);  // may have changed the store: the second lookup is not the first
    if (value)
      put(key, *value, expires);
    else
      erase(key);
  }
  // Adds to the counter that is the value: eight bytes, little-endian; 0, if the key is not there.
  // Keeps the expiry time. Null: the value is no counter, or would overflow; nothing has changed.
  std::optional<std::int64_t> add(std::string_view key, std::int64_t n) {
    STELE_ASSERT(is_key(key));
    const std::uint64_t hash = hash_of(key);
    const place f = hash_.find(key, hash);
    std::int64_t counter = 0;
    if (is_there(f)) {
      if (f.lengths.value_bytes != sizeof counter) return std::nullopt;
      std::string value;
      record(f.block).load_value(f.lengths, value);
      std::memcpy(&counter, value.data(), sizeof counter);
    }
    if (__builtin_add_overflow(counter, n, &counter)) return std::nullopt;
    store_item(f, hash, key, {reinterpret_cast<const char*>(&counter), sizeof counter},
               is_there(f) ? expiry_of(f) : 0);
    return counter;
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
  // Whether it was there.
  bool erase(std::string_view key) {
    STELE_ASSERT(is_key(key));
    const std::uint64_t hash = hash_of(key);
    const place f = hash_.find(key, hash);
    const bool was_there = is_there(f);
    if (f.block != nullptr) erase_item(f, hash, key);
    return was_there;
  }
  // Erases up to `limit` items, the first ones. Returns how many.
  std::size_t erase_some(std::size_t limit) {
    std::vector<std::string> keys;
    typename kv_radix<Memory>::walk walk(radix_, {});
    for (char* block = nullptr; keys.size() < limit && (block = walk.next()) != nullptr;)
      record(block).load_key(record(block).lengths(), keys.emplace_back());
    STELE_ASSERT(keys.size() <= limit);
    for (const std::string& key : keys) erase(key);
    return keys.size();
  }
  // Erases up to `limit` items whose time has passed, the earliest first. Returns how many.
  std::size_t remove_expired(std::size_t limit) {
    std::vector<std::string> keys;
    const std::uint64_t now = kv_now();
    expiry_.for_each([&](const typename kv_expiry<Memory>::entry& e) {
      if (keys.size() == limit || e.expires > now) return false;
      load_expiring_key(e, keys.emplace_back());
      return true;
    });
    STELE_ASSERT(keys.size() <= limit);
    for (const std::string& key : keys) erase(key);
    return keys.size();
  }
  // The earliest expiry time; 0: no item has one.
  std::uint64_t next_expiry() const {
    std::uint64_t earliest = 0;
    expiry_.for_each([&](const auto& e) { return (earliest = e.expires, false); });
    return earliest;
  }

  // Calls f(key, value) on the items with from <= key < to in key order until f returns false. An
  // empty `to` means no bound.
  template <class F>
  void for_each(std::string_view from, std::string_view to, F&& f) const {
    walk_items<false>(from, [&](std::string_view key, std::string_view value) {
      return (to.empty() || key < to) && f(key, value);
    });
  }
  // The same items in the opposite order.
  template <class F>
  void for_each_backward(std::string_view from, std::string_view to, F&& f) const {
    walk_items<true>(to, [&](std::string_view key, std::string_view value) {
      return key >= from && f(key, value);
    });
  }

  // Items that reads see.
  std::size_t size() const { return hash_.size() - expiry_.count_until(kv_now()); }
  kv_statistics statistics() const {
    kv_statistics s;
    typename kv_radix<Memory>::walk walk(radix_, {});
    while (char* const block = walk.next()) {
      const auto lengths = record(block).lengths();
      ++s.items;
      s.key_bytes += lengths.key_bytes;
      s.value_bytes += lengths.value_bytes;
      s.item_space += lengths.allocated_size();
    }
    const auto buckets = hash_.used_space();
    const auto nodes = radix_.used_space();
    s.hash_buckets = buckets.buckets, s.hash_space = buckets.bytes;
    s.tree_nodes = nodes.nodes, s.tree_space = nodes.bytes;
    s.expiring_items = expiry_.size();
    s.expired_items = expiry_.count_until(kv_now());
    s.clock_behind = std::chrono::milliseconds(kv_clock_behind());
    return s;
  }

  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    hash_.visit_blocks(visit);
    radix_.visit_blocks(visit);
    typename kv_radix<Memory>::walk walk(radix_, {});
    while (char* const block = walk.next()) visit(static_cast<const void*>(block));
    expiry_.visit_blocks(visit);
    stores_.visit_blocks(visit);
  }
  [[nodiscard]] result<> check() const {
    const std::uint64_t v = version();
    if (is_plain() ? v > format::kv_version && v != format::kv_index_mark
                   : v > format::kv_version || v == format::kv_first_version)
      return corrupt_error("key-value store: its version does not allow what it contains");
    if (auto status = hash_.check(); !status) return status;
    if (auto status = radix_.check(); !status) return status;
    if (auto status = check_order(); !status) return status;
    if (auto status = check_expiry(); !status) return status;
    return stores_.check();
  }

  // Named stores; only in the store of a pool.
  const kv_catalog<Memory>& stores() const { return stores_; }
  basic_kv_store* create_store(std::string_view name) {
    version_ = format::kv_version;
    return stores_.create(name);
  }
  kv_catalog<Memory>& stores() { return stores_; }

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
          lookups[i].hash = hash_of(key_of(i));
          hash_.start(lookups[i].chain, lookups[i].hash);
          hash_.prefetch_bucket(lookups[i].chain);
        },
        [&](std::size_t i) {
          hash_.load(lookups[i].chain);
          hash_.prefetch_records(lookups[i].chain, lookups[i].hash);
        },
        [&](std::size_t i) { found(i, lookups[i]); });
  }

  static std::uint64_t hash_of(std::string_view key) { return kv_hash<Memory>::hash_of(key); }
  static std::uint64_t expiry_of(const place& f) {
    return f.lengths.expires ? record(f.block).expiry(f.lengths) : 0;
  }
  static bool has_expired(const record& r, const typename record::head& lengths) {
    return lengths.expires && r.expiry(lengths) <= kv_now();
  }
  static bool is_there(const place& f) {
    return f.block != nullptr && !has_expired(record(f.block), f.lengths);
  }

  void store_item(const place& f, std::uint64_t hash, std::string_view key, std::string_view value,
                  std::uint64_t expires) {
    STELE_ASSERT(hash == hash_of(key) && (f.block == nullptr) == (f.at == nullptr));
    if (f.block != nullptr && f.lengths.expires) [[unlikely]]
      expiry_.remove(expiry_of(f), f.block);
    if (f.block != nullptr && record(f.block).assign(f.lengths, value, expires)) {
      if (expires != 0) [[unlikely]]
        note_expiry(expires, f.block);
      return;
    }
    const record fresh = record::create(key, value, expires);
    STELE_ASSERT(fresh.block() != f.block);
    if (f.block == nullptr) {
      hash_.insert(hash, fresh.block());
      radix_.insert(key, fresh.block());
    } else {
      hash_.replace(f, hash, fresh.block());
      radix_.replace(key, f.block, fresh.block());
      record(f.block).destroy();
    }
    if (expires != 0) [[unlikely]]
      note_expiry(expires, fresh.block());
  }
  void erase_item(const place& f, std::uint64_t hash, std::string_view key) {
    STELE_ASSERT(f.block != nullptr && hash == hash_of(key));
    if (f.lengths.expires) [[unlikely]]
      expiry_.remove(expiry_of(f), f.block);
    radix_.erase(key, f.block);
    hash_.erase(f, hash);
    record(f.block).destroy();
  }
  [[gnu::noinline]] void note_expiry(std::uint64_t expires, const char* block) {
    STELE_ASSERT(expires != 0);
    if (!expiry_.exists()) version_ = format::kv_version;
    expiry_.add(expires, block);
    kv_earliest_put = std::min(kv_earliest_put, expires);
  }
  // The key of a record to which the expiry index leads.
  void load_expiring_key(const typename kv_expiry<Memory>::entry& e, std::string& key) const {
    const record r(e.block);
    const auto lengths = r.lengths();
    if (lengths.expires && r.expiry(lengths) == e.expires) {
      r.load_key(lengths, key);
      if (hash_.find(key, hash_of(key)).block == e.block) return;
    }
    throw_corrupt_store("the expiry index leads to no item of its time");
  }

  // Calls f on the items from the bound on (see kv_radix::basic_walk) that reads see, until it
  // returns false.
  template <bool backward, class F>
  void walk_items(std::string_view bound, F&& f) const {
    std::string key, value, before;
    typename kv_radix<Memory>::template basic_walk<backward> walk(radix_, bound);
    for (bool first = true; char* const block = walk.next(); first = false) {
      const record r(block);
      const auto lengths = r.lengths();
      r.load_key(lengths, key);
      // Also detects a node that two links lead to: its keys come a second time.
      if (!first && (backward ? key >= before : key <= before))
        throw_corrupt_store("the ordered index is not in the order of the keys");
      if (!has_expired(r, lengths)) {
        r.load_value(lengths, value);
        if (!f(std::string_view(key), std::string_view(value))) return;
      }
      std::swap(key, before);
    }
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
      if (hash_.find(key, hash_of(key)).block != block)
        return corrupt_error(
            "key-value store: the hash index does not find a record of the ordered index");
      std::swap(key, before);
    }
    if (count != hash_.size())
      return corrupt_error(
          "key-value store: the hash index has records that the ordered index does not have");
    return {};
  }

  // Checks that the expiry index leads to each record that has an expiry time, and to nothing else.
  [[nodiscard]] result<> check_expiry() const {
    if (auto status = expiry_.check(); !status) return status;
    std::size_t count = 0;
    typename kv_radix<Memory>::walk walk(radix_, {});
    while (char* const block = walk.next()) count += record(block).lengths().expires;
    if (count != expiry_.size())
      return corrupt_error("key-value store: the expiry index has not the items that expire");
    std::string key;
    expiry_.for_each([&](const auto& e) {
      load_expiring_key(e, key);
      return true;
    });
    return {};
  }

  static_assert(sizeof(kv_hash<Memory>) == 312 && sizeof(kv_expiry<Memory>) == 8 &&
                sizeof(kv_catalog<Memory>) == 8 &&
                sizeof(kv_radix<Memory>) == 8);  // docs/format/kv.md
  typename Memory::template field<std::uint64_t> version_;
  kv_hash<Memory> hash_;
  kv_expiry<Memory> expiry_;
  kv_catalog<Memory> stores_;
  kv_radix<Memory> radix_;
};

}  // namespace stele::detail
