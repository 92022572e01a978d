// The version store: docs/protocol/sqlite.md.
#include "kept.h"

#include <base/mutant.h>

#include <algorithm>
#include <mutex>

namespace stele::sqlite {

namespace {

constexpr std::size_t most_spare = 1024;

}  // namespace

kept_blocks::kept_blocks() {
  spare_.reserve(most_spare);
}

void kept_blocks::read(std::uint64_t version, std::uint64_t at,
                       std::span<std::byte> to) const noexcept {
  STELE_ASSERT(at % block_size + to.size() <= block_size);
  const std::shared_lock shared(mutex_);
  const auto found = blocks_.find(at / block_size);
  STELE_ASSERT(base::holds(found != blocks_.end()));  // sqlite.md R4
  if (found == blocks_.end()) return;
  const kept* of_version = nullptr;
  for (const kept& k : found->second)
    if (k.from <= version) of_version = &k;
  STELE_ASSERT(base::holds(of_version != nullptr));  // sqlite.md 6: none that is needed
  if (of_version != nullptr)
    std::copy_n(of_version->bytes->data() + at % block_size, to.size(), to.data());
}

std::unique_ptr<kept_blocks::block> kept_blocks::copy_of(const std::byte* bytes) {
  std::unique_ptr<block> copy;
  if (spare_.empty()) {
    copy = std::make_unique_for_overwrite<block>();
  } else {
    copy = std::move(spare_.back());
    spare_.pop_back();
  }
  STELE_ASSERT(copy != nullptr);
  std::copy_n(bytes, block_size, copy->data());
  return copy;
}

void kept_blocks::make_room(std::span<const std::uint64_t> numbers, std::size_t count) {
  const auto grow = [](auto& all, std::size_t more) {
    if (all.capacity() < all.size() + more) all.reserve(2 * (all.size() + more));
  };
  grow(ended_, numbers.size() * count + kept_room_);
  const std::scoped_lock alone(mutex_);
  for (const std::uint64_t number : numbers) grow(blocks_[number], count);
  STELE_ASSERT_WHOLE(
      base::holds(std::ranges::all_of(numbers, [&](std::uint64_t n) { return is_in_order(n); })));
}

void kept_blocks::add(std::uint64_t number, std::uint64_t from,
                      std::unique_ptr<block> bytes) noexcept {
  STELE_ASSERT(bytes != nullptr);
  const std::scoped_lock alone(mutex_);
  const auto at = blocks_.find(number);
  STELE_ASSERT(at != blocks_.end() && at->second.size() < at->second.capacity());  // make_room()
  // Equal after an earlier commit that raised the stamp and then found no memory.
  STELE_ASSERT(base::holds(at->second.empty() || at->second.back().from <= from));
  at->second.push_back({from, std::move(bytes)});
}

void kept_blocks::end(std::uint64_t number, std::uint64_t until) noexcept {
  STELE_ASSERT(ended_.size() < ended_.capacity());  // make_room()
  STELE_ASSERT(ended_.empty() || ended_.back().until <= until);
  ended_.push_back({until, number});
}

const kept_blocks::block& kept_blocks::newest(std::uint64_t number) const noexcept {
  const auto at = blocks_.find(number);
  STELE_ASSERT(at != blocks_.end() && !at->second.empty());
  return *at->second.back().bytes;
}

std::uint64_t kept_blocks::newest_from(std::uint64_t number) const noexcept {
  const auto at = blocks_.find(number);
  STELE_ASSERT(at != blocks_.end() && !at->second.empty());
  return at->second.back().from;
}

bool kept_blocks::is_in_order(std::uint64_t number) const noexcept {
  const auto at = blocks_.find(number);
  return at != blocks_.end() && std::ranges::is_sorted(at->second, {}, &kept::from);
}

// The versions of a block end in the order in which they were added, so the oldest are dropped.
void kept_blocks::drop_before(std::uint64_t oldest) noexcept {
  if (first_ended_ == ended_.size() || ended_[first_ended_].until > oldest) return;
  const std::scoped_lock alone(mutex_);
  for (; first_ended_ < ended_.size() && ended_[first_ended_].until <= oldest; ++first_ended_) {
    const auto at = blocks_.find(ended_[first_ended_].number);
    STELE_ASSERT(at != blocks_.end() && !at->second.empty());  // each end is of one add()
    auto& all = at->second;
    if (spare_.size() < most_spare) spare_.push_back(std::move(all.front().bytes));
    all.erase(all.begin());
    if (all.empty()) blocks_.erase(at);
  }
  STELE_ASSERT(spare_.size() <= most_spare && first_ended_ <= ended_.size());
  if (2 * first_ended_ < ended_.size()) return;
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(first_ended_));
  first_ended_ = 0;
}

}  // namespace stele::sqlite
