// The members of document.h's values, lists and dicts; document.h has their contracts.
//
// Walks over a tree keep a list of containers still to visit and do not recurse: users choose the
// depth of nesting, and it may exceed the stack.
#pragma once

namespace stele {

inline const char* describe(value_kind kind) noexcept {
  static constexpr const char* names[] = {"none",   "a boolean", "an integer", "a real number",
                                          "a text", "bytes",     "a list",     "a dict"};
  return kind <= value_kind::dict ? names[static_cast<unsigned>(kind)] : "of an unknown kind";
}

inline std::uint64_t detail::new_document_id() {
  static std::atomic<std::uint64_t> next = [] {
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
  }();
  return detail::hash_word(next.fetch_add(0x9E3779B97F4A7C15u, std::memory_order_relaxed)) | 1;
}

// A list or dict, as a position in a walk over the tree.
template <class Memory>
struct detail::document_walk {
  using value = basic_value<Memory>;
  const basic_list<Memory>* list = nullptr;
  const basic_dict<Memory>* dict = nullptr;

  explicit document_walk(const basic_list<Memory>& l) : list(&l) {}
  explicit document_walk(const basic_dict<Memory>& d) : dict(&d) {}
  explicit document_walk(const value& v) {
    v.kind() == value_kind::list ? void(list = &v.list()) : void(dict = &v.dict());
  }

  template <class F>
  void for_each_value(F&& f) const {
    if (list != nullptr) return list->for_each([&](const value& v) { f(const_cast<value&>(v)); });
    dict->for_each([&](const value&, value& v) { f(v); });
  }

  // Calls enter(walk) for this container and all containers in it, until enter returns false.
  template <class Enter>
  void for_each_container(Enter&& enter) const {
    std::vector<document_walk> pending = {*this};
    for (std::size_t entered = 0; !pending.empty(); ++entered) {
      if constexpr (detail::is_guarded<Memory>)  // a circle, or a container of several values
        if (entered > this_access.size / sizeof(basic_list<Memory>)) throw_circle();
      const document_walk at = pending.back();
      pending.pop_back();
      if (!enter(at)) return;
      at.for_each_value([&](const value& v) {
        if (v.is_container()) pending.emplace_back(v);
      });
    }
  }

  // Frees this container, which a value has made, and everything in it.
  void free_tree() const {
    std::vector<document_walk> pending = {*this};
    while (!pending.empty()) {
      const document_walk at = pending.back();
      pending.pop_back();
      at.for_each_value([&](value& v) {
        if (!v.is_container()) return;
        pending.emplace_back(v);
        v.head_ = 0;  // `pending` owns the container now
      });
      at.free();
    }
  }

  // For every container except this one, also visits the block that holds it.
  template <class Visit>
  void visit_blocks(Visit& visit) const {
    for_each_container([&](const document_walk& at) {
      if (at.block() != block()) visit(at.block());
      at.list != nullptr ? at.list->items_.visit_blocks(visit) : at.dict->map_.visit_blocks(visit);
      return true;
    });
  }
  const void* block() const { return list != nullptr ? static_cast<const void*>(list) : dict; }
  [[nodiscard]] result<> check_shallow() const {
    return list != nullptr ? list->check_shallow() : dict->check_shallow();
  }
  [[nodiscard]] result<> check() const {
    result<> outcome;
    for_each_container(
        [&](const document_walk& at) { return (outcome = at.check_shallow()).has_value(); });
    return outcome;
  }

 private:
  // Clears the id first: a holder of the old address can then tell that the object is gone.
  void free() const {
    if (list != nullptr) {
      auto* const l = const_cast<basic_list<Memory>*>(list);
      l->id_ = 0;
      Memory::destroy(l);
    } else {
      auto* const d = const_cast<basic_dict<Memory>*>(dict);
      d->id_ = 0;
      Memory::destroy(d);
    }
  }
};

// A value as a key and as an element of a vector.
template <class Memory>
struct element<basic_value<Memory>, Memory> {
  using stored = basic_value<Memory>;
  using view = const scalar&;
  using value = scalar_copy;

  static scalar_copy get(const stored& from) { return from.load(); }
  static void assign(stored& to, const scalar& s) { to.assign(s); }
  static void create(stored* at, const scalar& s) { ::new (static_cast<void*>(at)) stored(s); }
  static void relocate(stored* to, stored& from) { from.relocate(to); }

  static bool equal(const stored& s, const scalar& v) { return s.equal(v); }
  static std::uint64_t hash_of(const scalar& s) {
    return s.is_chars() ? detail::hash_bytes(s.chars().data(), s.chars().size())
                        : detail::hash_word(s.word());
  }
  static std::uint64_t hash_stored(const stored& s) { return hash_of(s.load()); }
  // The block of one value; the walk visits the blocks of its containers.
  template <class Visit>
  static void visit_blocks(const stored& s, Visit& visit) {
    if (stored::has_block(s.head_.load())) visit(static_cast<const void*>(s.link_.load()));
  }
};

// Values.

template <class Memory>
std::uint64_t basic_value<Memory>::expected(value_kind wanted) const {
  const std::uint64_t head = head_.load();
  if (kind_in(head) == wanted) return head;
  throw failure({errc::invalid_argument, std::string("a document's value is ") +
                                             describe(kind_in(head)) + ", not " + describe(wanted) +
                                             "; ask kind() first"});
}

// The container that the value has made.
template <class Memory>
template <class Container>
Container& basic_value<Memory>::object_of(value_kind wanted) const {
  (void)expected(wanted);
  char* const at = link_.load();
  if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % alignof(Container) != 0)
    throw failure(detail::corrupt_error("document: a list or dict is missing").error());
  detail::validate<Memory>(at, sizeof(Container));
  return *reinterpret_cast<Container*>(at);
}

template <class Memory>
std::string basic_value<Memory>::chars(std::uint64_t head) const {
  const char* const from = has_block(head) ? link_.load() : reinterpret_cast<const char*>(this) + 1;
  detail::validate<Memory>(from, size_in(head));  // before that many bytes are allocated
  std::string copy(size_in(head), '\0');
  if (!copy.empty()) Memory::load_bytes(copy.data(), from, copy.size());
  return copy;
}

template <class Memory>
scalar_copy basic_value<Memory>::load() const {
  const std::uint64_t head = head_.load();
  if (is_chars(head)) return {kind_in(head), 0, chars(head)};
  return {kind_in(head), kind_in(head) >= value_kind::list ? 0 : word_.load(), {}};
}

template <class Memory>
void basic_value<Memory>::create_inline(const scalar& s) {
  std::uint64_t words[2] = {};
  auto* const image = reinterpret_cast<char*>(words);
  image[0] = static_cast<char>(static_cast<std::size_t>(s.kind()) | s.chars().size() << 4);
  if (!s.chars().empty()) std::memcpy(image + 1, s.chars().data(), s.chars().size());
  head_ = words[0];
  word_ = words[1];
}

// The value's own bytes may have any content.
template <class Memory>
void basic_value<Memory>::create(const scalar& s) {
  if (!s.is_chars()) {
    head_ = static_cast<std::uint64_t>(s.kind());
    word_ = s.word();
  } else if (s.chars().size() <= inline_capacity) {
    create_inline(s);
  } else {
    auto* const block = static_cast<char*>(Memory::allocate(s.chars().size(), 1));
    Memory::store_bytes(block, s.chars().data(), s.chars().size());
    link_ = block;
    head_ = block_head(s);
  }
}

// A text of the same length reuses its block.
template <class Memory>
void basic_value<Memory>::assign(const scalar& s) {
  const std::uint64_t head = head_.load();
  if (!has_block(head) || !s.is_chars() || size_in(head) != s.chars().size()) {
    free_blocks();
    return create(s);
  }
  Memory::store_bytes(link_.load(), s.chars().data(), s.chars().size());
  if (head != block_head(s)) head_ = block_head(s);
}

template <class Memory>
template <class Container>
Container& basic_value<Memory>::make_container(value_kind kind) {
  free_blocks();
  auto* const made = Memory::template make<Container>();
  made->id_ = detail::new_document_id();
  link_ = reinterpret_cast<char*>(made);
  head_ = static_cast<std::uint64_t>(kind);
  return *made;
}

template <class Memory>
void basic_value<Memory>::free_blocks() {
  const std::uint64_t head = head_.load();
  if (has_block(head)) return Memory::deallocate(link_.load());
  if (kind_in(head) >= value_kind::list) detail::document_walk<Memory>(*this).free_tree();
}

template <class Memory>
void basic_value<Memory>::relocate(basic_value* to) {
  const std::uint64_t head = head_.load();
  if (has_block(head) || kind_in(head) >= value_kind::list)
    to->link_ = link_.load();
  else
    to->word_ = word_.load();
  to->head_ = head;
}

template <class Memory>
bool basic_value<Memory>::equal(const scalar& s) const {
  const std::uint64_t head = head_.load();
  if (kind_in(head) != s.kind() || kind_in(head) >= value_kind::list) return false;
  if (!s.is_chars()) return word_.load() == s.word();
  return size_in(head) == s.chars().size() && chars(head) == s.chars();
}

template <class Memory>
template <class Visit>
void basic_value<Memory>::visit_blocks(Visit&& visit) const {
  const std::uint64_t head = head_.load();
  if (has_block(head)) visit(static_cast<const void*>(link_.load()));
  if (kind_in(head) < value_kind::list) return;
  const detail::document_walk<Memory> in(*this);
  visit(in.block());
  in.list != nullptr ? in.list->visit_blocks(visit) : in.dict->visit_blocks(visit);
}

template <class Memory>
result<> basic_value<Memory>::check_shallow() const {
  const std::uint64_t head = head_.load();
  if (kind_in(head) > value_kind::dict)
    return detail::corrupt_error("document: a value of an unknown kind");
  if (has_block(head) && (size_in(head) <= inline_capacity || link_.load() == nullptr))
    return detail::corrupt_error("document: a text's size and block disagree");
  if (has_block(head)) detail::claim<Memory>(link_.load(), size_in(head));
  if (is_chars(head) && !has_block(head) && (head >> 4 & 15) > inline_capacity)
    return detail::corrupt_error("document: a text longer than its value");
  if (!is_chars(head) && head > 15)
    return detail::corrupt_error("document: a value with bits beyond its kind");
  if (kind_in(head) < value_kind::list) return {};
  const detail::document_walk<Memory> in(*this);
  detail::claim<Memory>(
      in.block(), in.list != nullptr ? sizeof(basic_list<Memory>) : sizeof(basic_dict<Memory>));
  if ((in.list != nullptr ? in.list->id() : in.dict->id()) == 0)
    return detail::corrupt_error("document: a list or dict without a name");
  return {};
}

template <class Memory>
result<> basic_value<Memory>::check() const {
  if constexpr (detail::is_guarded<Memory>)
    return detail::check_bounded(
        [&] { return reinterpret_cast<const basic_value<bounded_memory>*>(this)->check(); });
  if (const result<> itself = check_shallow(); !itself || !is_container()) return itself;
  return detail::document_walk<Memory>(*this).check();
}

// Lists.

template <class Memory>
auto basic_list<Memory>::insert(std::size_t i, const scalar& s) -> value_type& {
  if (i != size()) (void)items_.at(i);
  return *items_.insert(std::as_const(items_).begin() + static_cast<std::ptrdiff_t>(i), s);
}

template <class Memory>
void basic_list<Memory>::erase(std::size_t from, std::size_t to) {
  if (from >= to) return;
  (void)items_.at(to - 1);
  const auto first = std::as_const(items_).begin();
  items_.erase(first + static_cast<std::ptrdiff_t>(from), first + static_cast<std::ptrdiff_t>(to));
}

template <class Memory>
template <class Visit>
void basic_list<Memory>::visit_blocks(Visit&& visit) const {
  detail::document_walk<Memory>(*this).visit_blocks(visit);
}

template <class Memory>
result<> basic_list<Memory>::check_shallow() const {
  result<> outcome = items_.check();
  if (!outcome) return outcome;
  for_each([&](const value_type& v) {
    if (outcome) outcome = v.check_shallow();
  });
  return outcome;
}

template <class Memory>
result<> basic_list<Memory>::check() const {
  if constexpr (detail::is_guarded<Memory>)
    return detail::check_bounded(
        [&] { return reinterpret_cast<const basic_list<bounded_memory>*>(this)->check(); });
  return detail::document_walk<Memory>(*this).check();
}

// Dicts.

// A key's value with pointers to the items before and after it in insertion order.
template <class Memory>
struct basic_dict<Memory>::slot {
  using pool_resident = void;
  typename Memory::template field<void*> before, after;
  value_type value;

  template <class Visit>
  void visit_blocks(Visit& visit) const {
    element<value_type, Memory>::visit_blocks(value, visit);
  }
};

template <class Memory>
const scalar& basic_dict<Memory>::checked(const scalar& key) {
  if (key.kind() == value_kind::text || key.kind() == value_kind::integer) return key;
  throw failure({errc::invalid_argument,
                 std::string("a dict's key is a text or an integer, not ") + describe(key.kind())});
}

template <class Memory>
auto basic_dict<Memory>::find(const scalar& key) -> value_type* {
  const auto found = map_.find(checked(key));
  return found == map_.end() ? nullptr : &found->second.value;
}

template <class Memory>
auto basic_dict<Memory>::find_or_insert(const scalar& key) -> value_type& {
  auto e = map_.find_entry(checked(key));
  if (!e.exists()) append_item(e.insert());
  return e.item().second.value;
}

template <class Memory>
void basic_dict<Memory>::append_item(item& i) {
  auto* const before = static_cast<item*>(last_.load());
  i.second.before = before;
  before != nullptr ? void(before->second.after = &i) : void(first_ = &i);
  last_ = &i;
  ++size_;
}

template <class Memory>
void basic_dict<Memory>::unlink(const item& i) {
  auto* const before = static_cast<item*>(i.second.before.load());
  auto* const after = static_cast<item*>(i.second.after.load());
  before != nullptr ? void(before->second.after = after) : void(first_ = after);
  after != nullptr ? void(after->second.before = before) : void(last_ = before);
  size_ -= 1;
}

template <class Memory>
bool basic_dict<Memory>::erase(const scalar& key) {
  auto e = map_.find_entry(checked(key));
  if (!e.exists()) return false;
  unlink(e.item());
  e.erase();
  return true;
}

template <class Memory>
void basic_dict<Memory>::clear() {
  map_.clear();
  first_ = nullptr;
  last_ = nullptr;
  size_ = 0;
}

template <class Memory>
std::optional<scalar_copy> basic_dict<Memory>::last_key() const {
  const auto* const last = static_cast<const item*>(last_.load());
  return last == nullptr ? std::nullopt : std::optional(last->first.load());
}

template <class Memory>
template <class F>
void basic_dict<Memory>::for_each(F&& f) const {
  detail::chain_check<Memory> c;
  for (auto* i = static_cast<item*>(first_.load()); i != nullptr;
       i = static_cast<item*>(i->second.after.load())) {
    c.step(i);
    f(i->first, i->second.value);
  }
}

template <class Memory>
template <class Visit>
void basic_dict<Memory>::visit_blocks(Visit&& visit) const {
  detail::document_walk<Memory>(*this).visit_blocks(visit);
}

// Checks that each item is found by its key and linked to its neighbours.
template <class Memory>
result<> basic_dict<Memory>::check_shallow() const {
  result<> outcome = map_.check();
  std::size_t count = 0;
  const item* before = nullptr;
  for (const auto* i = static_cast<const item*>(first_.load()); outcome && i != nullptr;
       before = i, i = static_cast<const item*>(i->second.after.load())) {
    if (++count > size())
      return detail::corrupt_error("document: a dict has more items in order than it counts");
    if (i->second.before.load() != before)
      return detail::corrupt_error(
          "document: an item of a dict is not behind the one that it follows");
    if (i->first.kind() != value_kind::text && i->first.kind() != value_kind::integer)
      return detail::corrupt_error("document: a dict's key is neither a text nor an integer");
    outcome = i->first.check_shallow();
    if (outcome) outcome = i->second.value.check_shallow();
    if (outcome && find(i->first.load()) != &i->second.value)
      outcome =
          detail::corrupt_error("document: an item in a dict's order is not the one of its key");
  }
  if (outcome && (last_.load() != before || count != size() || map_.size() != count))
    outcome =
        detail::corrupt_error("document: a dict's items, their order and their number disagree");
  return outcome;
}

template <class Memory>
result<> basic_dict<Memory>::check() const {
  if constexpr (detail::is_guarded<Memory>)
    return detail::check_bounded(
        [&] { return reinterpret_cast<const basic_dict<bounded_memory>*>(this)->check(); });
  return detail::document_walk<Memory>(*this).check();
}

static_assert(sizeof(document_value) == 16 && sizeof(document_list) == 40 &&
                  sizeof(document_dict) == 296,
              "docs/format/document.md");

}  // namespace stele
