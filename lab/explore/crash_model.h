// What a crash may leave of memory, line by line: for each line, the stores that are not durable
// yet and the contents that they allow.
//
// Ordinary stores of one line persist as a prefix of program order, in whole 8-byte words. A wider
// store is a group of words: the words persist in any order, but after all earlier stores and
// before all later ones. Streamed words persist in any order. A thread's fence makes durable what
// the thread had flushed, as of each flush, and what it had streamed. Lines are independent. Any
// line may be evicted at any time, so every allowed content is possible until it is durable.
//
// A line's possible contents are numbered: option 0 has none of its pending stores, the last option
// has all of them.
#pragma once

#include <explore/media_model.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace stele::explore {

class crash_model final : public media_model {
 public:
  using content = std::array<std::uint64_t, 8>;

  explicit crash_model(std::size_t size) : lines_(size / line_size) {}

  void start(hashed_image& durable) override;
  void store(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void flush(unsigned thread, std::uint64_t offset, std::uint64_t size) override;
  std::span<const std::uint32_t> fence(unsigned thread) override;

  std::span<const std::uint32_t> pending() const noexcept override { return pending_; }
  std::uint64_t options(std::uint32_t line) const noexcept override;
  content after(std::uint32_t line, std::uint64_t option) const noexcept;
  void put(hashed_image& image, std::uint32_t line, std::uint64_t option) const noexcept override;
  void add_stale(const hashed_image& image, std::uint32_t line,
                 std::vector<std::uint32_t>& lines) const override;
  std::uint64_t unit_size() const noexcept override { return line_size; }
  const char* unit_name() const noexcept override { return "line"; }
  std::vector<store_outcome> store_outcomes(std::uint32_t line,
                                            std::uint64_t option) const override;

 private:
  struct word_store {
    std::uint64_t bits, mask;
    std::uint64_t number;  // in program order of the whole run
    std::uint64_t group;   // the words of one wide store have the same number
    std::uint16_t thread;
    std::uint8_t word;
    bool streamed;
  };
  struct unfenced {
    std::uint32_t line;
    std::uint64_t through;  // covers stores up to this number
  };

  void add(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes, bool streamed);
  void add_word_store(std::uint32_t line, word_store u);
  void make_durable(std::uint32_t line, unsigned thread, std::uint64_t through);
  std::vector<unfenced>& unfenced_by(unsigned thread);
  std::uint64_t ordinary_options(std::uint32_t line) const noexcept;
  // Calls kept(word_store) for each store that an option keeps.
  template <class Kept>
  void choose(std::uint32_t line, std::uint64_t option, Kept&& kept) const noexcept;

  hashed_image* durable_ = nullptr;
  std::vector<std::vector<word_store>> lines_;
  std::vector<std::uint32_t> pending_, changed_;
  // By thread: lines flushed or streamed since its last fence.
  std::vector<std::vector<unfenced>> unfenced_;
  std::uint64_t number_ = 0;
};

}  // namespace stele::explore
