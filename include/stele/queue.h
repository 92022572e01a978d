// queue: first in, first out, for one side that pushes and another that pops.
//
// Elements lie in a chain of segments of half a KiB, or of four elements where those are larger. A
// push stores the element and the pushing side's words, 2 lines; a pop stores the popping side's
// words, 1 line; every segment filled or emptied adds one allocation or one release. The two sides'
// words are at least a line apart, and the popping side looks at the other's only when it has used
// up what it last saw there. So two transactions, one that pushes and one that pops, conflict only
// when there is little between them: fewer elements than are on two lines, or none that the popping
// side has seen. Two that push do, and two that pop. When a segment is filled the next one is made
// at once, so that the popping side always finds it linked.
//
// Elements are storable values (in fields), pointers into the pool, or stele containers, which
// begin empty (emplace). They never move: a reference stays valid until its element is popped.
// Zeroed memory is an empty queue. All members belong inside a transaction of the pool that holds
// the queue, changing ones inside an update, and are rolled back with it. Those that allocate throw
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

  basic_queue() noexcept = default;  // for zeroed memory: leaves it as it is, an empty queue
  ~basic_queue() noexcept(false) {
    detail::run_destructor([&] { free_blocks(); });
  }
  basic_queue(const basic_queue&) = delete;
  basic_queue& operator=(const basic_queue&) = delete;

  // O(1), as is all that follows unless it says otherwise.
  [[nodiscard]] std::size_t size() const { return push_count_.load() - pop_count_.load(); }
  [[nodiscard]] bool empty() const {
    return pop_count_.load() == cached_push_count_.load() && size() == 0;
  }

  // The oldest and the newest element. Throw failure(errc::invalid_argument) when the queue is
  // empty.
  stored& front() { return *oldest(); }
  const stored& front() const { return *oldest(); }
  stored& back() { return *newest(); }
  const stored& back() const { return *newest(); }

  // Adds an element, and returns it: with this value; zero, or an empty container.
  stored& push(view value)
    requires requires { &traits::create; };
  stored& emplace();
  // Throws failure(errc::invalid_argument) when the queue is empty.
  void pop();
  void clear();  // O(n); frees every block

  // Calls f(const stored&) on each element, the oldest first. O(n).
  template <class F>
  void for_each(F&& f) const;

  // Calls visit(const void*) for every allocated block that the queue reaches.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, when counts and segments contradict each other.
  [[nodiscard]] result<> check() const;

 private:
  static_assert(alignof(stored) <= alignof(std::max_align_t) ||
                    std::is_base_of_v<pool_memory, Memory>,
                "plain_memory's blocks are aligned to 16 bytes at most");
  static constexpr std::size_t slots = std::max<std::size_t>((512 - 8) / sizeof(stored), 4);
  static constexpr std::size_t words_per_line =
      detail::line_size / 8;  // words from those of one side to those of the other

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

  // The popping side's.
  field<segment*> front_;                   // of the oldest element; null exactly if back_ is
  field<std::uint64_t> pop_count_;          // elements ever
  field<std::uint64_t> cached_push_count_;  // push_count_, when the popping side last looked
  field<std::uint64_t> consumer_padding_[words_per_line - 3];
  // The pushing side's.
  field<segment*> back_;             // has a free slot: that of the next element
  field<std::uint64_t> push_count_;  // elements ever
  field<segment*> before_back_;      // the one before back_, perhaps gone by now
  field<std::uint64_t> producer_padding_[words_per_line - 3];
};

template <class T>
using queue = basic_queue<T, pool_memory>;

template <class T, class Memory>
struct basic_queue<T, Memory>::segment {
  alignas(
      stored) std::byte storage[slots * sizeof(stored)];  // unknown content, where no element is
  field<segment*> next;
};

}  // namespace stele

#include <stele/queue_inl.h>
