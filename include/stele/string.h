// string: bytes that can grow. It takes 24 bytes, and one block if the text is longer than 23
// bytes.
//
//   struct note { using pool_resident = void; stele::string text; };
//   auto pool = stele::pool<note>::open("note.stele", {.create_size = 16 << 20});
//   auto set = pool->update([](note& n) { n.text = "hello"; n.text += ", world"; });
//   auto text = pool->read([](const note& n) { return n.text.str(); });  // a std::string
//   if (text) std::printf("%s\n", text->c_str());
//
// Representation: the low byte of the first word is the length of an inline text (0 to 23); the
// bytes of the text follow it. If that byte is 255, the upper seven bytes of the word are the size,
// the second word points to the block, and the third is the block's capacity. So zeroed memory is
// the empty string. A Memory may place the text beside the object that contains the string
// (coalescing.h). Then the top bit of the capacity is set, and the string does not free the block.
// Arguments are views of ordinary memory. Results are copies, because a view of pool memory would
// bypass the transaction.
//
// Call members in a transaction of the pool that holds the string, changing members in an update;
// they are rolled back with it. Members that may allocate throw failure(errc::full). Cost: O(bytes
// read or written), for append amortized.
#pragma once

#include <stele/detail/bounded_memory.h>
#include <stele/element.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace stele {

template <class Memory>
class basic_string {
  static_assert(std::endian::native == std::endian::little,
                "the inline length is the first word's first byte");

 public:
  using pool_resident = void;
  static constexpr std::size_t inline_capacity = 23;

  basic_string() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty
                                      // string
  explicit basic_string(std::string_view text) { create(text, text.size()); }
  ~basic_string() {
    run_destructor([&] { Memory::deallocate(own_block()); });
  }
  basic_string(const basic_string&) = delete;
  basic_string& operator=(const basic_string&) = delete;
  basic_string& operator=(std::string_view text) {
    assign(text);
    return *this;
  }
  basic_string& operator+=(std::string_view text) {
    append(text);
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return size_in(head_.load()); }
  [[nodiscard]] bool empty() const { return head_.load() == 0; }
  [[nodiscard]] std::string str() const;
  operator std::string() const { return str(); }
  // Of the bytes from `at` on, `count`, or as many as there are. Throws
  // failure(errc::invalid_argument) if at > size().
  [[nodiscard]] std::string substr(std::size_t at, std::size_t count = std::string::npos) const;
  [[nodiscard]] std::size_t capacity() const {
    return is_long(head_.load()) ? capacity_.load() & ~colocated_bit : inline_capacity;
  }

  void assign(std::string_view text);
  void append(std::string_view text);
  void push_back(char c) { append({&c, 1}); }
  // Throws failure(errc::invalid_argument) if the string is empty.
  void pop_back() { resize(checked(size() - 1)); }
  void resize(std::size_t count, char fill = '\0');
  // Bytes from `at` on, in their place. Throws failure(errc::invalid_argument) if there are not so
  // many. Stores no more than the words with these bytes.
  void overwrite(std::size_t at, std::string_view bytes);
  // Room for so many bytes, of a string that has a block: until there are more, it keeps its block.
  // An inline text stays inline.
  void reserve(std::size_t count);
  void clear() { assign({}); }  // frees the block
  // One byte. Throws failure(errc::invalid_argument) if there is no such byte.
  [[nodiscard]] char at(std::size_t i) const;
  [[nodiscard]] char front() const { return at(0); }
  [[nodiscard]] char back() const { return at(size() - 1); }

  [[nodiscard]] std::strong_ordering compare(std::string_view text) const;
  [[nodiscard]] bool equal(std::string_view text) const;
  friend bool operator==(const basic_string& a, std::string_view b) { return a.equal(b); }
  friend auto operator<=>(const basic_string& a, std::string_view b) { return a.compare(b); }
  friend bool operator==(const basic_string& a, const basic_string& b) { return a.equal(b.str()); }
  friend auto operator<=>(const basic_string& a, const basic_string& b) {
    return a.compare(b.str());
  }

  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    if (const char* b = own_block()) visit(static_cast<const void*>(b));
  }
  // Errors: corrupt, if the representation is inconsistent.
  [[nodiscard]] result<> check() const;

  // Moves this string to `to`, memory of unknown content; this string ends. Stores three words; the
  // block stays where it is. An inline text is copied. A text beside an object (coalescing memory)
  // is copied too, which may throw as assign does. For containers of strings.
  void relocate(basic_string* to);

 private:
  static constexpr std::uint64_t long_tag = 255;
  static constexpr std::size_t chunk = 256;  // bytes compared at a time
  static constexpr bool can_colocate =
      requires { Memory::allocate_colocated(nullptr, std::size_t{}); };
  // A bit of capacity_.
  static constexpr std::uint64_t colocated_bit = can_colocate ? std::uint64_t{1} << 63 : 0;

  static bool is_long(std::uint64_t head) { return (head & 255) == long_tag; }
  static std::size_t size_in(std::uint64_t head) { return is_long(head) ? head >> 8 : head & 255; }

  // The block that the string must free, or null.
  char* own_block() const {
    if (!is_long(head_.load())) return nullptr;
    if constexpr (can_colocate)
      if ((capacity_.load() & colocated_bit) != 0) return nullptr;
    return block_.load();
  }
  const char* text(std::uint64_t head) const {
    return is_long(head) ? block_.load() : reinterpret_cast<const char*>(this) + 1;
  }
  std::size_t checked(std::size_t i) const;
  void create(std::string_view text, std::size_t capacity);
  void create_inline(std::string_view text);
  // Returns a block and the word for capacity_.
  static std::pair<char*, std::uint64_t> allocate_text(const void* owner, std::size_t capacity);
  void replace(std::string_view text, std::size_t capacity);

  typename Memory::template field<std::uint64_t> head_;
  typename Memory::template field<char*> block_;
  typename Memory::template field<std::uint64_t> capacity_;
};

using string = basic_string<pool_memory>;

template <class Memory>
std::string basic_string<Memory>::str() const {
  const std::uint64_t head = head_.load();
  detail::validate<Memory>(text(head), size_in(head));  // before memory is taken for it
  std::string copy(size_in(head), '\0');
  if (!copy.empty()) Memory::load_bytes(copy.data(), text(head), copy.size());
  return copy;
}

template <class Memory>
std::string basic_string<Memory>::substr(std::size_t at, std::size_t count) const {
  const std::uint64_t head = head_.load();
  if (at != 0) (void)checked(at - 1);
  const std::size_t found = std::min(count, size_in(head) - at);
  detail::validate<Memory>(text(head) + at, found);
  std::string copy(found, '\0');
  if (found != 0) Memory::load_bytes(copy.data(), text(head) + at, found);
  return copy;
}

template <class Memory>
void basic_string<Memory>::reserve(std::size_t count) {
  if (is_long(head_.load()) && count > capacity()) replace(str(), count);
}

template <class Memory>
void basic_string<Memory>::create_inline(std::string_view text) {
  alignas(8) char image[inline_capacity + 1] = {static_cast<char>(text.size())};
  if (!text.empty()) std::memcpy(image + 1, text.data(), text.size());
  Memory::store_bytes(this, image, (text.size() + 8) / 8 * 8);
}

template <class Memory>
std::pair<char*, std::uint64_t> basic_string<Memory>::allocate_text(
    [[maybe_unused]] const void* owner, std::size_t capacity) {
  if constexpr (can_colocate)
    if (void* const b = Memory::allocate_colocated(owner, capacity))
      return {static_cast<char*>(b), capacity | colocated_bit};
  // In the classes of multiples of 16, as objects are (object_alignment in pool.h).
  return {static_cast<char*>(Memory::allocate(capacity, 16)), capacity};
}

// The string's own bytes may have any content.
template <class Memory>
void basic_string<Memory>::create(std::string_view text, std::size_t capacity) {
  if (text.size() <= inline_capacity) return create_inline(text);
  const auto [b, room] = allocate_text(this, capacity);
  Memory::store_bytes(b, text.data(), text.size());
  block_ = b;
  capacity_ = room;
  head_ = text.size() << 8 | long_tag;
}

template <class Memory>
void basic_string<Memory>::replace(std::string_view text, std::size_t capacity) {
  char* old = own_block();
  create(text, capacity);
  Memory::deallocate(old);
}

template <class Memory>
void basic_string<Memory>::relocate(basic_string* to) {
  const std::uint64_t head = head_.load();
  if (char* const block = own_block(); block != nullptr) {
    to->block_ = block;
    to->capacity_ = capacity_.load();
    to->head_ = head;
  } else {
    ::new (static_cast<void*>(to)) basic_string(str());
  }
}

template <class Memory>
void basic_string<Memory>::assign(std::string_view text) {
  const bool fits_block = text.size() > inline_capacity && is_long(head_.load()) &&
                          text.size() <= capacity() &&
                          (text.size() >= capacity() / 4 || own_block() == nullptr);
  if (!fits_block) return replace(text, text.size());
  Memory::store_bytes(block_.load(), text.data(), text.size());
  // An unchanged size is not stored, so the string's own line stays clean.
  if (text.size() != size()) head_ = text.size() << 8 | long_tag;
}

template <class Memory>
void basic_string<Memory>::append(std::string_view more) {
  if (more.empty()) return;
  const std::uint64_t head = head_.load();
  const std::size_t size = size_in(head);
  const std::size_t total = size + more.size();
  if (is_long(head) && total <= capacity()) {
    Memory::store_bytes(block_.load() + size, more.data(), more.size());
    head_ = total << 8 | long_tag;
  } else {
    replace(str().append(more), is_long(head) ? std::max(total, 2 * capacity()) : total);
  }
}

template <class Memory>
void basic_string<Memory>::resize(std::size_t count, char fill) {
  const std::size_t size = this->size();
  if (count > size) return append(std::string(count - size, fill));
  if (count <= inline_capacity) return assign(str().substr(0, count));
  head_ = count << 8 | long_tag;
}

template <class Memory>
void basic_string<Memory>::overwrite(std::size_t at, std::string_view bytes) {
  if (bytes.empty()) return;
  (void)checked(at);
  (void)checked(at + bytes.size() - 1);
  const std::uint64_t head = head_.load();
  if (is_long(head)) return Memory::store_bytes(block_.load() + at, bytes.data(), bytes.size());
  create_inline(str().replace(at, bytes.size(), bytes));
}

template <class Memory>
std::size_t basic_string<Memory>::checked(std::size_t i) const {
  if (i < size()) return i;
  throw failure({errc::invalid_argument, "string: there is no such byte among its " +
                                             std::to_string(size()) + "; look at size() first"});
}

template <class Memory>
char basic_string<Memory>::at(std::size_t i) const {
  char c = 0;
  Memory::load_bytes(&c, text(head_.load()) + checked(i), 1);
  return c;
}

template <class Memory>
bool basic_string<Memory>::equal(std::string_view other) const {
  return size() == other.size() && compare(other) == std::strong_ordering::equal;
}

template <class Memory>
std::strong_ordering basic_string<Memory>::compare(std::string_view other) const {
  const std::uint64_t head = head_.load();
  const std::size_t size = size_in(head);
  const char* from = text(head);
  char buffer[chunk];
  for (std::size_t done = 0; done < std::min(size, other.size()); done += chunk) {
    const std::size_t n = std::min(chunk, size - done);
    Memory::load_bytes(buffer, from + done, n);
    const auto order = std::string_view(buffer, n) <=> other.substr(done, n);
    if (order != 0) return order;
  }
  return size <=> other.size();
}

template <class Memory>
result<> basic_string<Memory>::check() const {
  const std::uint64_t head = head_.load();
  if (!is_long(head)) {
    if ((head & 255) > inline_capacity)
      return detail::corrupt_error("string: inline length above 23");
  } else if (block_.load() == nullptr || size_in(head) > capacity() ||
             size_in(head) <= inline_capacity) {
    return detail::corrupt_error("string: size and block disagree");
  }
  return {};
}

template <class Memory>
struct element<basic_string<Memory>, Memory> {
  using stored = basic_string<Memory>;
  using view = std::string_view;
  using value = std::string;

  static std::string get(const stored& from) { return from.str(); }
  static void assign(stored& to, std::string_view text) { to.assign(text); }
  static void create(stored* at, std::string_view text) {
    ::new (static_cast<void*>(at)) stored(text);
  }
  static void relocate(stored* to, stored& from) { from.relocate(to); }

  static bool equal(const stored& s, std::string_view text) { return s.equal(text); }
  static auto compare(std::string_view text, const stored& s) { return 0 <=> s.compare(text); }
  static std::uint64_t hash_of(std::string_view text) {
    return detail::hash_bytes(text.data(), text.size());
  }
  static std::uint64_t hash_stored(const stored& s) { return hash_of(s.str()); }
  template <class Visit>
  static void visit_blocks(const stored& s, Visit& visit) {
    s.visit_blocks(visit);
  }
};

}  // namespace stele
