// A list of texts: the value of a list of Redis.
//
// Blocks in a chain. A block has slots in a row; those from its begin to before its end have texts.
// So a push stores the text, the block's word and the size, and moves nothing. An insertion inside
// a block moves the texts on the nearer side that has room by one slot; a full block is split. An
// erasure closes the gap from the nearer side; a block that it leaves with few texts joins a
// neighbour. A text is moved by its three words.
//
// The number of slots is 3, 7, 15 or 31, which fill 96, 192, 384 and 768 bytes with the head of a
// block, so nothing is lost to size classes. A new block has the fewest slots that are more than
// the list has texts, so a short list is small. 31 is where the head is 3 % of a block, an
// insertion inside moves 8 texts on average, and a position among 10,000 is found over 160 blocks
// at most.
//
// Zeroed memory is an empty list. Call members in a transaction of the pool, changing members in an
// update. Members that may allocate throw failure(errc::full); then the transaction must be rolled
// back. Positions count from 0. A position that is not there is failure(errc::invalid_argument).
// O(size / 31) to find a position from the nearer end, O(1) at both ends.
#pragma once

#include <base/assert.h>
#include <stele/string.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stele::redis {

class stored_list {
 public:
  using pool_resident = void;

  stored_list() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty list
  ~stored_list() {
    run_destructor([&] { free_blocks(); });
  }
  stored_list(const stored_list&) = delete;
  stored_list& operator=(const stored_list&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::string at(std::uint64_t position) const;
  void set(std::uint64_t position, std::string_view text);
  void push_front(std::string_view text);
  void push_back(std::string_view text);
  void insert(std::uint64_t before, std::string_view text);  // before <= size()
  // Texts from `first` on; all of them must be there.
  void erase(std::uint64_t first, std::uint64_t count = 1);
  // Erases the first texts that are equal to this, at most `most`; with `backwards`, the last ones.
  // Returns how many. O(size).
  std::uint64_t erase_equal(std::string_view text, std::uint64_t most, bool backwards);
  void clear();

  // Call f(std::string&&) on up to `count` texts from this position on, to the end or to the begin,
  // until it returns false. f must not change the list. A position that is not there has no texts.
  template <class F>
  void for_each(std::uint64_t first, std::uint64_t count, F&& f) const;
  template <class F>
  void for_each_backwards(std::uint64_t last, std::uint64_t count, F&& f) const;

  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, when blocks and size disagree, or a text is damaged; also for content that
  // leads anywhere.
  [[nodiscard]] result<> check() const;
  // The same in a bounded walk that has begun.
  [[nodiscard]] result<> check_in_walk() const;

 private:
  static constexpr std::size_t fewest_slots = 3, most_slots = 31;
  static constexpr bool is_block_size(std::size_t slots) {
    return slots == 3 || slots == 7 || slots == 15 || slots == 31;
  }

  // Which slots of a block have texts. One word: begin, end and slots, 16 bits each.
  struct extent {
    std::size_t begin = 0, end = 0, slots = 0;

    static extent of_word(std::uint64_t word) {
      return {word & 0xFFFF, word >> 16 & 0xFFFF, word >> 32 & 0xFFFF};
    }
    std::uint64_t word() const { return begin | end << 16 | slots << 32; }
    std::size_t count() const { return end - begin; }
    bool fits() const { return begin <= end && end <= slots; }
  };
  struct block {
    field<block*> next, previous;
    field<std::uint64_t> used;  // an extent

    extent load() const { return extent::of_word(used); }
    void store(extent e) {
      STELE_ASSERT(e.fits() && is_block_size(e.slots));
      used = e.word();
    }
    stele::string* slot(std::size_t i) { return reinterpret_cast<stele::string*>(this + 1) + i; }
    const stele::string* slot(std::size_t i) const {
      return reinterpret_cast<const stele::string*>(this + 1) + i;
    }
  };
  struct place {
    block* at = nullptr;
    std::size_t index = 0;  // of a text among those of the block
  };

  // Requires position < size().
  place find(std::uint64_t position) const;
  place checked(std::uint64_t position) const;

  // Whether these are neighbours in the chain, or an end of it and null.
  [[maybe_unused]] bool are_neighbours(const block* left, const block* right) const;
  // format/redis.md: chained in both directions, none empty, as many texts as the list says. Long
  // lists take too long to walk.
  [[maybe_unused]] bool is_whole() const;

  block* make_block(block* previous, block* next);
  void link(block* previous, block* next);
  void free_block(block* b);
  void free_blocks();

  static void move(block* from, std::size_t first, std::size_t count, block* to, std::size_t at);
  static void slide(block* b, std::size_t begin);
  static stele::string* open_gap(block* b, std::size_t index);
  place make_room(place p);
  bool erase_in(block* b, std::size_t index, std::size_t count);
  bool erase_equal_in(block* b, std::string_view text, std::uint64_t most, bool backwards,
                      std::uint64_t& erased);
  bool join(block* left, block* right);
  [[nodiscard]] result<> check_block(const block* b, const block* previous) const;

  field<block*> first_, last_;
  field<std::uint64_t> size_;
};

template <class F>
void stored_list::for_each(std::uint64_t first, std::uint64_t count, F&& f) const {
  if (first >= size_) return;
  place p = find(first);
  for (const block* b = p.at; b != nullptr && count != 0; b = b->next, p.index = 0) {
    const extent e = b->load();
    STELE_ASSERT(e.fits() && p.index < e.count());
    for (std::size_t i = e.begin + p.index; i < e.end && count != 0; ++i, --count)
      if (!f(b->slot(i)->str())) return;
  }
}

template <class F>
void stored_list::for_each_backwards(std::uint64_t last, std::uint64_t count, F&& f) const {
  if (last >= size_) return;
  const place p = find(last);
  std::size_t left = p.index + 1;  // texts of the block that are still to be visited
  for (const block* b = p.at; b != nullptr && count != 0;) {
    const extent e = b->load();
    STELE_ASSERT(e.fits() && left <= e.count());
    for (; left != 0 && count != 0; --left, --count)
      if (!f(b->slot(e.begin + left - 1)->str())) return;
    b = b->previous;
    if (b != nullptr) left = b->load().count();
  }
}

template <class Visit>
void stored_list::visit_blocks(Visit&& visit) const {
  for (const block* b = first_; b != nullptr; b = b->next) {
    visit(static_cast<const void*>(b));
    const extent e = b->load();
    for (std::size_t i = e.begin; i < e.end; ++i) b->slot(i)->visit_blocks(visit);
  }
}

}  // namespace stele::redis
