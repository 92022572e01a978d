// Where a transaction's loads find home. Three kinds: in_place_home, at the pool's addresses;
// foreign_home, likewise, but another process stores to it; and home_view, an engine's own. A pool
// has one kind, for as long as it is open.
//
// Code that loads is a template over the kind. with_home() is the one place that asks which it is:
// a comparison, and no call through a pointer for a home in place.
#pragma once

#include <base/assert.h>
#include <pool/block_states.h>
#include <stele/pool.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stele::detail {

class in_place_home {
 public:
  explicit in_place_home(const std::byte* at) noexcept : at_(at) {}

  static constexpr bool is_in_place = true;
  void pin() noexcept {}
  void unpin() noexcept {}

  std::uint64_t word(std::uint64_t offset) const noexcept {
    STELE_ASSERT(offset % 8 == 0);
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at_ + offset), __ATOMIC_ACQUIRE);
  }
  // Bytes of one line; of whole pairs of words 16 at a time, as in snapshot::try_copy.
  void copy(std::uint64_t offset, std::byte* to, std::size_t size) const noexcept {
    using pair [[gnu::vector_size(16)]] = std::uint64_t;
    STELE_ASSERT(size != 0 && offset % line_size + size <= line_size);
    if ((offset | size) % sizeof(pair) != 0) [[unlikely]]
      return copy_parts(offset, to, size);
    for (std::size_t done = 0; done < size; done += sizeof(pair)) {
      const pair two = {word(offset + done), word(offset + done + 8)};
      std::memcpy(to + done, &two, sizeof two);
    }
  }
  const std::byte* at() const noexcept { return at_; }

 private:
  [[gnu::noinline]] void copy_parts(std::uint64_t offset, std::byte* to,
                                    std::size_t size) const noexcept {
    const std::uint64_t first = offset & ~std::uint64_t{7};
    std::uint64_t words[8];
    for (std::uint64_t at = first; at < offset + size; at += 8) words[(at - first) / 8] = word(at);
    std::memcpy(to, reinterpret_cast<const std::byte*>(words) + (offset - first), size);
  }

  const std::byte* at_;
};

// Home of a pool that is open for reading (tx/readers/). What was loaded counts
// only if check() passes afterwards: until then no process has opened the pool
// for writing since it was looked at.
class foreign_home : public in_place_home {
 public:
  // `generation`: a word of the file, mapped.
  foreign_home(const std::byte* at, const std::atomic<std::uint64_t>* generation) noexcept
      : in_place_home(at), generation_(generation), expected_(generation->load()) {}

  static constexpr bool is_in_place = false;
  std::uint64_t expected() const noexcept { return expected_; }
  // No transaction runs.
  void expect(std::uint64_t generation) noexcept { expected_ = generation; }
  std::uint64_t generation() const noexcept { return generation_->load(std::memory_order_acquire); }
  // Throws conflict.
  void check() const {
    if (generation() != expected_) lose_attempt();
  }

 private:
  const std::atomic<std::uint64_t>* generation_;
  std::uint64_t expected_;
};

// Home as the transactions of one log see it, which run one at a time. Between pin() and unpin() no
// place is reused that a load may read.
class home_view {
 public:
  static constexpr bool is_in_place = false;
  virtual void pin() noexcept = 0;
  virtual void unpin() noexcept = 0;
  virtual std::uint64_t word(std::uint64_t offset) noexcept = 0;
  // Bytes of one line.
  virtual void copy(std::uint64_t offset, std::byte* to, std::size_t size) noexcept = 0;

 protected:
  ~home_view() = default;
};

// What an engine has in place of a home at the pool's addresses.
class virtual_home {
 public:
  virtual ~virtual_home() = default;
  virtual home_view* of_log(unsigned log) = 0;
  virtual storage::block_states& block_states() noexcept = 0;
  // Reads everything that a load may find. `closed`: the pool was closed, and nothing has run
  // since. Errors: corrupt.
  [[nodiscard]] virtual result<> verify(bool closed) const = 0;
  // Replaces what the heap's audit says of space by what the pool file has.
  virtual void measure(pool_space& s) const = 0;
};

// The home of the transactions of one log.
class home_of_log {
 public:
  home_of_log(const std::byte* at, virtual_home* instead, unsigned log)
      : at_(at),
        view_(instead != nullptr ? instead->of_log(log) : nullptr),
        is_in_place_(view_ == nullptr) {
    STELE_ASSERT(instead == nullptr || view_ != nullptr);
  }
  explicit home_of_log(foreign_home& home) : at_(home.at()), foreign_(&home), is_in_place_(false) {}

  bool is_in_place() const noexcept { return is_in_place_; }
  foreign_home* foreign() const noexcept { return foreign_; }
  const std::byte* at() const noexcept { return at_; }  // + offset: the address of an offset
  home_view* view() const noexcept { return view_; }

 private:
  const std::byte* const at_;
  home_view* const view_ = nullptr;
  foreign_home* const foreign_ = nullptr;
  const bool is_in_place_;
};

template <class Work>
[[gnu::always_inline]] inline decltype(auto) with_home(const home_of_log& home, Work&& work) {
  if (!home.is_in_place()) [[unlikely]] {
    if (home.foreign() != nullptr) return work(*home.foreign());
    STELE_ASSERT(home.view() != nullptr);
    return work(*home.view());
  }
  in_place_home in_place(home.at());
  return work(in_place);
}

}  // namespace stele::detail
