// document: nested values whose kind is known at run time: texts, numbers, and lists and dicts of
// values.
//
//   auto pool = stele::pool<stele::document_dict>::open(
//       "data.stele", {.create_size = 16 << 20, .layout = std::string(stele::document_layout)});
//   auto put = pool->update([](stele::document_dict& d) {
//     d["name"] = "Ada";
//     d["sizes"].make_list().append(42); });
//
// document_value is one of eight kinds (value_kind) in 16 bytes. Texts and bytes of up to 14 bytes
// are stored inside; longer ones have a block. document_list is a vector of values. document_dict
// maps integers and texts to values and keeps its items in the order of insertion; assigning to an
// item keeps its position. Values form a tree: a list or dict belongs to the value that it was made
// in, never moves, and is destroyed with that value. Zeroed memory is none, an empty list or an
// empty dict. The Python package opens a pool whose root is a document_dict and whose layout is
// document_layout.
//
// Call members in a transaction of the pool that holds the value, changing members in an update;
// they are rolled back with it. Members that allocate throw failure(errc::full). A reference to a
// value is valid until the value is erased; in a list, until an insertion or erasure before it
// moves it. A reference to a list or dict is valid while the list or dict exists. Transactions that
// insert into or erase from the same dict, or change the length of the same list, conflict.
// Transactions that assign to different values do not conflict, unless the values share a line.
#pragma once

#include <stele/detail/guarded_memory.h>
#include <stele/hash_map.h>
#include <stele/vector.h>

#include <atomic>
#include <concepts>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace stele {

inline constexpr std::string_view document_layout = "stele.document";

enum class value_kind : std::uint8_t { none, boolean, integer, real, text, bytes, list, dict };

// "an integer", for messages.
inline const char* describe(value_kind kind) noexcept;

// An argument from which a value is made: any kind but list and dict. It is a view: the caller owns
// the characters.
class scalar {
 public:
  scalar() = default;
  scalar(std::same_as<bool> auto v) : kind_(value_kind::boolean), word_(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool> && (std::is_signed_v<T> || sizeof(T) < 8))
  scalar(T v) : kind_(value_kind::integer), word_(static_cast<std::uint64_t>(std::int64_t{v})) {}
  scalar(std::floating_point auto v)
      : kind_(value_kind::real), word_(std::bit_cast<std::uint64_t>(static_cast<double>(v))) {}
  scalar(std::string_view v) : kind_(value_kind::text), chars_(v) {}
  scalar(const char* v) : scalar(std::string_view(v)) {}
  scalar(const std::string& v) : scalar(std::string_view(v)) {}
  static scalar bytes(std::string_view v) {
    scalar s(v);
    s.kind_ = value_kind::bytes;
    return s;
  }

  value_kind kind() const noexcept { return kind_; }
  bool is_chars() const noexcept { return kind_ == value_kind::text || kind_ == value_kind::bytes; }
  // The value of a boolean; the bits of an integer or real.
  std::uint64_t word() const noexcept { return word_; }
  std::string_view chars() const noexcept { return chars_; }  // the characters of text or bytes
  friend bool operator==(const scalar&, const scalar&) = default;  // compares reals by their bits

 private:
  friend class scalar_copy;
  value_kind kind_ = value_kind::none;
  std::uint64_t word_ = 0;
  std::string_view chars_;
};

// A scalar that owns its characters: the result of a load. For a list or dict it has only the kind.
class scalar_copy {
 public:
  scalar_copy() = default;
  explicit scalar_copy(const scalar& s) : kind_(s.kind_), word_(s.word_), chars_(s.chars_) {}
  scalar_copy(value_kind kind, std::uint64_t word, std::string chars)
      : kind_(kind), word_(word), chars_(std::move(chars)) {}

  operator scalar() const {
    scalar s;
    s.kind_ = kind_, s.word_ = word_, s.chars_ = chars_;
    return s;
  }
  value_kind kind() const noexcept { return kind_; }
  std::uint64_t word() const noexcept { return word_; }
  const std::string& chars() const noexcept { return chars_; }
  friend bool operator==(const scalar_copy&, const scalar_copy&) = default;

 private:
  value_kind kind_ = value_kind::none;
  std::uint64_t word_ = 0;
  std::string chars_;
};

template <class Memory>
class basic_list;
template <class Memory>
class basic_dict;

namespace detail {

// A random id of a list or dict, never 0. It does not occur again when memory is reused.
inline std::uint64_t new_document_id();

template <class Memory>
struct document_walk;

}  // namespace detail

// One value. A member that requires a kind throws failure(errc::invalid_argument) if the value has
// another kind.
template <class Memory>
class basic_value {
 public:
  using pool_resident = void;
  static constexpr std::size_t inline_capacity = 14;

  basic_value() noexcept = default;  // leaves the bytes unchanged: zeroed memory is none
  explicit basic_value(const scalar& s) { create(s); }
  ~basic_value() {
    run_destructor([&] { free_blocks(); });
  }
  basic_value(const basic_value&) = delete;
  basic_value& operator=(const basic_value&) = delete;
  basic_value& operator=(const scalar& s) {
    assign(s);
    return *this;
  }

  [[nodiscard]] value_kind kind() const { return kind_in(head_.load()); }
  [[nodiscard]] bool is_container() const { return kind() >= value_kind::list; }
  [[nodiscard]] scalar_copy load() const;
  [[nodiscard]] bool boolean() const { return word_of(value_kind::boolean) != 0; }
  [[nodiscard]] std::int64_t integer() const {
    return static_cast<std::int64_t>(word_of(value_kind::integer));
  }
  [[nodiscard]] double real() const { return std::bit_cast<double>(word_of(value_kind::real)); }
  [[nodiscard]] std::string text() const { return chars_of(value_kind::text); }
  [[nodiscard]] std::string bytes() const { return chars_of(value_kind::bytes); }
  [[nodiscard]] basic_list<Memory>& list() const {
    return object_of<basic_list<Memory>>(value_kind::list);
  }
  [[nodiscard]] basic_dict<Memory>& dict() const {
    return object_of<basic_dict<Memory>>(value_kind::dict);
  }

  // These destroy the old value first, with everything in it. `s` must not refer to characters in
  // the pool.
  void assign(const scalar& s);
  basic_list<Memory>& make_list() { return make_container<basic_list<Memory>>(value_kind::list); }
  basic_dict<Memory>& make_dict() { return make_container<basic_dict<Memory>>(value_kind::dict); }

  [[nodiscard]] bool equal(const scalar& s) const;

  // Calls visit(const void*) for every allocated block of the value and its lists and dicts.
  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, if the value or anything in it is inconsistent.
  [[nodiscard]] result<> check() const;

 private:
  template <class>
  friend class basic_list;
  template <class>
  friend class basic_dict;
  friend struct element<basic_value, Memory>;
  friend struct detail::document_walk<Memory>;

  static constexpr std::uint64_t in_block = 15;  // stands in for the length of inline characters

  static value_kind kind_in(std::uint64_t head) { return static_cast<value_kind>(head & 15); }
  static bool is_chars(std::uint64_t head) {
    return kind_in(head) == value_kind::text || kind_in(head) == value_kind::bytes;
  }
  static bool has_block(std::uint64_t head) {
    return is_chars(head) && (head >> 4 & 15) == in_block;
  }
  static std::size_t size_in(std::uint64_t head) {
    return has_block(head) ? head >> 8 : head >> 4 & 15;
  }
  static std::uint64_t block_head(const scalar& s) {
    return static_cast<std::uint64_t>(s.kind()) | in_block << 4 | s.chars().size() << 8;
  }

  void create(const scalar& s);
  void create_inline(const scalar& s);
  void free_blocks();
  void relocate(basic_value* to);
  std::string chars(std::uint64_t head) const;
  std::uint64_t expected(value_kind wanted) const;  // returns head_
  std::uint64_t word_of(value_kind wanted) const { return expected(wanted), word_.load(); }
  std::string chars_of(value_kind wanted) const { return chars(expected(wanted)); }
  template <class Container>
  Container& object_of(value_kind wanted) const;
  template <class Container>
  Container& make_container(value_kind kind);
  [[nodiscard]] result<> check_shallow() const;

  // Bits 0 to 3: the kind. For text and bytes, bits 4 to 7 are the length and the characters follow
  // byte 0; or bits 4 to 7 are 15, bits 8 to 63 the size, and the second word points to the block.
  // For other scalars the second word is the value, for a list or dict it points to the object.
  typename Memory::template field<std::uint64_t> head_;
  union {
    typename Memory::template field<std::uint64_t> word_;
    typename Memory::template field<char*> link_;
  };
};

// Values in order.
template <class Memory>
class basic_list {
 public:
  using pool_resident = void;
  using value_type = basic_value<Memory>;

  basic_list() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty list
  basic_list(const basic_list&) = delete;
  basic_list& operator=(const basic_list&) = delete;

  // The id of a list from make_list(): no other list has or will have it. 0 for other lists.
  [[nodiscard]] std::uint64_t id() const { return id_.load(); }
  // O(1), as are all members below that name no cost.
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  // Throws failure(errc::invalid_argument) if there is no value i.
  value_type& at(std::size_t i) { return items_.at(i); }
  const value_type& at(std::size_t i) const { return items_.at(i); }
  value_type& append(const scalar& s) { return items_.push_back(s); }
  // Inserts before value i, or at the end if i is size(); beyond that throws as at() does. O(values
  // after it).
  value_type& insert(std::size_t i, const scalar& s);
  void erase(std::size_t i) { erase(i, i + 1); }
  void erase(std::size_t from, std::size_t to);  // [from, to), O(values erased and after)
  void clear() { items_.clear(); }               // O(n)
  // Calls f(value&) in order. O(n).
  template <class F>
  void for_each(F&& f) const {
    items_.for_each(f);
  }

  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  [[nodiscard]] result<> check() const;

 private:
  friend class basic_value<Memory>;
  friend struct detail::document_walk<Memory>;
  [[nodiscard]] result<> check_shallow() const;

  typename Memory::template field<std::uint64_t> id_;
  basic_vector<value_type, Memory> items_;
};

// Maps integers and texts to values, in the order of insertion.
template <class Memory>
class basic_dict {
  struct slot;
  using map = basic_hash_map<basic_value<Memory>, slot, Memory>;
  using item = map_item<basic_value<Memory>, slot, Memory>;

 public:
  using pool_resident = void;
  using value_type = basic_value<Memory>;

  basic_dict() noexcept = default;  // leaves the bytes unchanged: zeroed memory is an empty dict
  basic_dict(const basic_dict&) = delete;
  basic_dict& operator=(const basic_dict&) = delete;

  // As for a list.
  [[nodiscard]] std::uint64_t id() const { return id_.load(); }
  // Expected O(1), as are all members below that name no cost. A key of another kind throws
  // failure(errc::invalid_argument).
  [[nodiscard]] std::size_t size() const { return size_.load(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  value_type* find(const scalar& key);  // null if the key is not there
  const value_type* find(const scalar& key) const {
    return const_cast<basic_dict*>(this)->find(key);
  }
  // The key's value. If the key is not there, inserts it with the value none.
  value_type& operator[](const scalar& key) { return find_or_insert(key); }
  bool erase(const scalar& key);  // whether it was there
  void clear();                   // O(n)
  // The key of the item inserted last; empty if the dict is empty.
  [[nodiscard]] std::optional<scalar_copy> last_key() const;
  // Calls f(const value& key, value&) in the order of insertion. O(n).
  template <class F>
  void for_each(F&& f) const;

  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  [[nodiscard]] result<> check() const;

 private:
  friend class basic_value<Memory>;
  friend struct detail::document_walk<Memory>;

  static const scalar& checked(const scalar& key);
  value_type& find_or_insert(const scalar& key);
  void append_item(item& i);
  void unlink(const item& i);
  [[nodiscard]] result<> check_shallow() const;

  // Words that lookups read lie apart from words that every insertion changes, so that lookups and
  // insertions do not conflict.
  typename Memory::template field<std::uint64_t> id_;
  map map_;
  typename Memory::template field<std::uint64_t> size_;
  typename Memory::template field<void*> first_, last_;  // items
};

// A document whose content contradicts itself ends a call with failure(errc::corrupt).
using document_value = basic_value<guarded_memory>;
using document_list = basic_list<guarded_memory>;
using document_dict = basic_dict<guarded_memory>;

}  // namespace stele

#include <stele/detail/document_inl.h>
