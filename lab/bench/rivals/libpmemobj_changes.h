// A pool of libpmemobj, and its two ways of changing the pool atomically.
//
// `transaction_changes` uses its transactions: a range is snapshotted to the undo log before a
// store. `action_changes` uses its actions: new values of 8-byte words, reservations and deferred
// frees are collected and published at once through the redo log; get() returns values that are
// still unpublished. Actions need fewer fences, but the program must use get() and set() and
// collect its own write set. In both classes the lists belong to the calling thread.
#pragma once

#include <bench/contender.h>
#include <fmt/format.h>
#include <libpmemobj.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace stele::bench::pmdk {

inline constexpr std::uint64_t lanes_bytes =
    std::uint64_t{1024} * 3072;  // its logs: 1024 lanes of 3 KiB

inline error failed(std::string_view what) {
  return {errc::io, fmt::format("libpmemobj: {} failed: {}", what, pmemobj_errormsg())};
}

// A pool file, removed at the end. Offsets count from the pool's first byte; 0 is null.
class pmem_pool {
 public:
  [[nodiscard]] static result<std::unique_ptr<pmem_pool>> create(const std::string& path,
                                                                 std::size_t size) {
    int on = 1, off = 0;
    pmemobj_ctl_set(nullptr, "prefault.at_create", &on);
    pmemobj_ctl_set(nullptr, "sds.at_create", &off);
    PMEMobjpool* pop = pmemobj_create(path.c_str(), "stele-comparison",
                                      std::max<std::size_t>(size, PMEMOBJ_MIN_POOL), 0600);
    if (pop == nullptr) return std::unexpected(failed(fmt::format("creating {}", path)));
    auto pool = std::unique_ptr<pmem_pool>(new pmem_pool(pop, path));
    pool->uuid_ = pmemobj_root(pop, 64).pool_uuid_lo;
    return pool;
  }
  ~pmem_pool() {
    pmemobj_close(pop_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  PMEMobjpool* handle() const noexcept { return pop_; }
  template <class T>
  T* at(std::uint64_t offset) const noexcept {
    return offset == 0 ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }
  std::uint64_t offset_of(const void* p) const noexcept {
    return p == nullptr ? 0 : static_cast<std::uint64_t>(static_cast<const char*>(p) - base_);
  }
  PMEMoid oid(const void* p) const noexcept { return {uuid_, offset_of(p)}; }

  // Outside transactions: allocates zeroed memory for an array; it lives as long as the pool.
  [[nodiscard]] result<void*> array(std::size_t size) {
    PMEMoid where;
    if (pmemobj_zalloc(pop_, &where, size, 0) != 0)
      return std::unexpected(failed("allocating the structure's array"));
    return at<void>(where.off);
  }
  // Creates an allocation class of blocks of exactly `size` bytes; returns the flag that selects
  // it.
  [[nodiscard]] result<std::uint64_t> allocation_class(std::size_t size) {
    pobj_alloc_class_desc c{};
    c.unit_size = size;
    c.alignment = size % 64 == 0 ? 64 : 0;
    c.units_per_block = 1024;
    c.header_type = POBJ_HEADER_NONE;
    if (pmemobj_ctl_set(pop_, "heap.alloc_class.new.desc", &c) != 0)
      return std::unexpected(failed("adding an allocation class"));
    return POBJ_CLASS_ID(c.class_id);
  }

 private:
  pmem_pool(PMEMobjpool* pop, std::string path)
      : pop_(pop), path_(std::move(path)), base_(reinterpret_cast<char*>(pop)) {}
  PMEMobjpool* pop_;
  std::string path_;
  char* base_;
  std::uint64_t uuid_ = 0;
};

class transaction_changes {
 public:
  static constexpr const char* name = "libpmemobj";
  explicit transaction_changes(pmem_pool& pool) : pool_(pool) {}

  // Makes the changes of body() atomic and durable. body() returns false when a call in it has
  // failed.
  template <class Body>
  [[nodiscard]] result<> run(Body&& body) {
    if (pmemobj_tx_begin(pool_.handle(), nullptr, TX_PARAM_NONE) != 0)
      return std::unexpected(failed("pmemobj_tx_begin"));
    if (body()) pmemobj_tx_commit();
    return pmemobj_tx_end() == 0 ? result<>{} : std::unexpected(failed("the transaction"));
  }

  std::uint64_t get(const std::uint64_t& word) const noexcept { return word; }
  bool set(std::uint64_t& word, std::uint64_t value) {
    if (!snapshot(&word, sizeof word)) return false;
    word = value;
    return true;
  }
  // After it, set_in_snapshot() may store to words in this range. Returns false on failure.
  bool snapshot(const void* at, std::size_t size) {
    return pmemobj_tx_add_range_direct(at, size) == 0;
  }
  void set_in_snapshot(std::uint64_t& word, std::uint64_t value) { word = value; }
  bool assign(void* to, const void* from, std::size_t size) {
    if (!snapshot(to, size)) return false;
    std::memcpy(to, from, size);
    return true;
  }
  bool swap(std::byte* a, std::byte* b, std::size_t size) {
    if (!snapshot(a, size) || !snapshot(b, size)) return false;
    std::swap_ranges(a, a + size, b);
    return true;
  }
  // Allocates a block for direct stores; null on failure. Call finish() after the stores.
  void* allocate(std::size_t size, std::uint64_t flags) {
    return pool_.at<void>(pmemobj_tx_xalloc(size, 0, flags).off);
  }
  void finish(const void*, std::size_t) {}
  bool release(void* block, std::size_t) { return pmemobj_tx_free(pool_.oid(block)) == 0; }

 private:
  pmem_pool& pool_;
};

class action_changes {
 public:
  static constexpr const char* name = "libpmemobj-actions";
  explicit action_changes(pmem_pool& pool) : pool_(pool) {}

  template <class Body>
  [[nodiscard]] result<> run(Body&& body) {
    const result<> done = body() ? publish() : cancel_all();
    lists_.words.clear();
    lists_.heap.clear();
    lists_.fresh.clear();
    return done;
  }

  std::uint64_t get(const std::uint64_t& word) const noexcept {
    const auto pending = find(&word);
    return pending == lists_.words.end() ? word : pending->value;
  }
  bool set(std::uint64_t& word, std::uint64_t value) {
    const auto pending = find(&word);
    if (pending == lists_.words.end())
      lists_.words.push_back({&word, value});
    else
      pending->value = value;
    return true;
  }
  bool snapshot(const void*, std::size_t) { return true; }
  void set_in_snapshot(std::uint64_t& word, std::uint64_t value) { set(word, value); }
  bool assign(void* to, const void* from, std::size_t size) {
    auto* target = static_cast<std::uint64_t*>(to);
    for (std::size_t i = 0; i < size / 8; ++i)
      set(target[i], static_cast<const std::uint64_t*>(from)[i]);
    return true;
  }
  bool swap(std::byte* a, std::byte* b, std::size_t size) {
    auto *x = reinterpret_cast<std::uint64_t*>(a), *y = reinterpret_cast<std::uint64_t*>(b);
    for (std::size_t i = 0; i < size / 8; ++i) {
      const std::uint64_t from_x = get(x[i]), from_y = get(y[i]);
      set(x[i], from_y);
      set(y[i], from_x);
    }
    return true;
  }
  void* allocate(std::size_t size, std::uint64_t flags) {
    pobj_action reserved;
    void* block = pool_.at<void>(pmemobj_xreserve(pool_.handle(), &reserved, size, 0, flags).off);
    if (block == nullptr) return nullptr;
    lists_.heap.push_back(reserved);
    lists_.fresh.push_back({block, lists_.heap.size() - 1});
    return block;
  }
  void finish(const void* block, std::size_t size) { pmemobj_flush(pool_.handle(), block, size); }
  bool release(void* block, std::size_t size) {
    const auto own = std::ranges::find(lists_.fresh, block, &fresh_block::block);
    if (own != lists_.fresh.end()) {
      cancel(own->action, block, size);
    } else {
      pobj_action freed;
      pmemobj_defer_free(pool_.handle(), pool_.oid(block), &freed);
      lists_.heap.push_back(freed);
    }
    return true;
  }

 private:
  struct new_word {
    std::uint64_t* at;
    std::uint64_t value;
  };
  struct fresh_block {
    void* block;
    std::size_t action;  // index of its reservation in `heap`
  };
  struct change_lists {
    std::vector<new_word> words;
    std::vector<pobj_action> heap;
    std::vector<fresh_block> fresh;
  };

  static std::vector<new_word>::iterator find(const std::uint64_t* at) {
    return std::ranges::find(lists_.words, at, &new_word::at);
  }

  // Cancels a block that this change reserved, and the pending values of its words.
  void cancel(std::size_t action, const void* block, std::size_t size) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    std::erase_if(lists_.words, [&](const new_word& w) {
      return reinterpret_cast<std::uintptr_t>(w.at) - begin < size;
    });
    pmemobj_cancel(pool_.handle(), &lists_.heap[action], 1);
    lists_.heap.erase(lists_.heap.begin() + static_cast<std::ptrdiff_t>(action));
    std::erase_if(lists_.fresh, [&](const fresh_block& f) { return f.block == block; });
    for (fresh_block& f : lists_.fresh) f.action -= f.action > action;
  }

  [[nodiscard]] result<> publish() {
    if (!lists_.fresh.empty())
      pmemobj_drain(pool_.handle());  // orders flushed fresh blocks before their publication
    for (const new_word& w : lists_.words)
      pmemobj_set_value(pool_.handle(), &lists_.heap.emplace_back(), w.at, w.value);
    const bool done = pmemobj_publish(pool_.handle(), lists_.heap.data(), lists_.heap.size()) == 0;
    return done ? result<>{} : std::unexpected(failed("pmemobj_publish"));
  }

  [[nodiscard]] result<> cancel_all() {
    const auto why = std::unexpected(failed("a reservation"));
    pmemobj_cancel(pool_.handle(), lists_.heap.data(), lists_.heap.size());
    return why;
  }

  pmem_pool& pool_;
  static inline thread_local change_lists lists_;
};

}  // namespace stele::bench::pmdk
