// queue: first in, first out. A push and a pop can run in two transactions without a conflict.
//
//   struct inbox { using pool_resident = void; stele::queue<stele::string> letters; };
//   auto pool = stele::pool<inbox>::open("inbox.stele", {.create_size = 16 << 20});
//   auto sent = pool->update([](inbox& b) { b.letters.push("hello"); });
//   auto oldest = pool->read([](const inbox& b) { return b.letters.front().str(); });
//   auto taken = pool->update([](inbox& b) { b.letters.pop(); });
//
// Elements lie in a chain of segments of 512 bytes, or of four elements if those are larger. A push
// stores the element and the pushing side's words: 2 lines. A pop stores the popping side's words:
// 1 line. Each segment that is filled or emptied adds one allocation or one release. The words of
// the two sides are at least a line apart. The popping side reads the pushing side's words only
// after it has popped all elements that it saw there last. So a push and a pop conflict only if
// fewer elements than two lines hold lie between them, or if the popping side has seen none of
// them. Two pushes conflict, and so do two pops. The push that fills a segment allocates the next
// one, so the popping side always finds it linked.
//
// Elements are storable values (in fields), pointers into the pool, or stele containers; containers
// start empty (emplace). Elements never move: a reference is valid until its element is popped.
// Zeroed memory is an empty queue. Call members in a transaction of the pool that holds the queue,
// changing members in an update; they are rolled back with it. Members that allocate throw
// failure(errc::full).
#pragma once

#include <stele/element.h>

#include <algorithm>

namespace stele {

template <class T, class Memory>
class basic_queue {
  using traits = element<T, Memory>;
  struct segment;

 public:
  using pool_resident = void;
  using value_type = T;
  using stored = typename traits::stored;
  using view = typename traits::view;

  basic_queue() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty queue
  ~basic_queue() {
    run_destructor([&] { free_blocks(); });
  }
  basic_queue(const basic_queue&) = delete;
  basic_queue& operator=(const basic_queue&) = delete;

  // O(1), as are all members below that name no cost.
  [[nodiscard]] std::size_t size() const { return push_count_.load() - pop_count_.load(); }
  [[nodiscard]] bool empty() const {
    return pop_count_.load() == cached_push_count_.load() && size() == 0;
  }

  // The oldest and the newest element. Throw failure(errc::invalid_argument) if the queue is empty.
  stored& front() { return *oldest(); }
  const stored& front() const { return *oldest(); }
  stored& back() { return *newest(); }
  const stored& back() const { return *newest(); }

  // Append an element and return it: push with this value; emplace with zero, or an empty
  // container.
  stored& push(view value)
    requires requires { &traits::create; };
  stored& emplace();
  // Throws failure(errc::invalid_argument) if the queue is empty.
  void pop();
  void clear();  // O(n); frees every block

  // Calls f(const stored&) on each element, the oldest first. O(n).
  template <class F>
  void for_each(F&& f) const;

  // Calls visit(const void*) for every allocated block of the queue.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, if counts and segments are inconsistent.
  [[nodiscard]] result<> check() const;

 private:
  static_assert(alignof(stored) <= alignof(std::max_align_t) ||
                    std::is_base_of_v<pool_memory, Memory>,
                "plain_memory's blocks are aligned to 16 bytes at most");
  static constexpr std::size_t slots = std::max<std::size_t>((512 - 8) / sizeof(stored), 4);
  // Words from the start of one side's to the start of the other's.
  static constexpr std::size_t words_per_line = detail::line_size / 8;

  static stored* slot(segment* s, std::uint64_t number) {
    return reinterpret_cast<stored*>(s->storage) + number % slots;
  }
  stored* oldest() const;
  stored* newest() const;
  template <class Create>
  stored& push_with(Create&& create);
  static segment* make_segment();
  void make_first_segment();
  template <class F>
  void for_each_segment(F&& f) const;
  void free_blocks();
  [[noreturn]] static void throw_empty();

  template <class Word>
  using field = typename Memory::template field<Word>;

  // The popping side's words.
  field<segment*> front_;  // segment of the oldest element; null if and only if back_ is null
  field<std::uint64_t> pop_count_;          // number of pops so far
  field<std::uint64_t> cached_push_count_;  // push_count_ as the popping side last read it
  field<std::uint64_t> consumer_padding_[words_per_line - 3];
  // The pushing side's words.
  field<segment*> back_;             // segment with the free slot for the next element
  field<std::uint64_t> push_count_;  // number of pushes so far
  field<segment*> before_back_;      // the segment before back_; may have been freed
  field<std::uint64_t> producer_padding_[words_per_line - 3];
};

template <class T>
using queue = basic_queue<T, pool_memory>;

template <class T, class Memory>
struct basic_queue<T, Memory>::segment {
  // Slots without an element have unknown content.
  alignas(stored) std::byte storage[slots * sizeof(stored)];
  field<segment*> next;
};

}  // namespace stele

#include <stele/detail/queue_inl.h>
