// The state of a simulation as bytes: written from its parts, or read into them.
//
// A part has one function, visit_state(archive&), that names every member which changes in a run.
// It serves both directions, so what is saved and what is restored cannot differ. What follows from
// the configuration is not stored: a simulation is made first, and then read into.
//
// Bytes may be damaged or made on purpose. Nothing is allocated beyond what they can hold, every
// index and every choice is compared with its bound when it is read, and checks between parts run
// last (later()). After the first fault every value that is read is its type's zero. The format is
// docs/format/checkpoint.md.
#pragma once

#include <base/rng.h>
#include <stele/error.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stele::sim {

class event_handler;
class requester;

// Says of each number whether it is the first time. Copies share what they have seen. For parts of
// which each event or reply ends something once; a number is an index that was compared before.
class first_time {
 public:
  bool operator()(std::size_t n) const {
    if (seen_->size() <= n) seen_->resize(n + 1);
    if ((*seen_)[n]) return false;
    return (*seen_)[n] = true;
  }

 private:
  std::shared_ptr<std::vector<bool>> seen_ = std::make_shared<std::vector<bool>>();
};

class archive {
 public:
  // Writes to memory.
  archive() = default;
  // Reads; `from` must outlive the archive.
  explicit archive(std::span<const std::byte> from) : in_(from), reads_(true) {}
  archive(const archive&) = delete;
  archive& operator=(const archive&) = delete;

  bool reads() const noexcept { return reads_; }
  const std::vector<std::byte>& bytes() const noexcept { return out_; }
  // Not yet read.
  std::size_t left() const noexcept { return in_.size(); }

  // --- faults ---

  bool sound() const noexcept { return fault_.empty(); }
  // What is wrong with the bytes; of several faults, the first.
  const std::string& fault() const noexcept { return fault_; }
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
    in_ = {};
  }
  void require(bool holds, const char* what) {
    if (!holds) fail(what);
  }
  // A part from a plug-in has no visit_state() of its own; `part` is "scheduler" or "design".
  void refuse(const char* part) {
    if (refused_.empty()) refused_ = part;
  }
  const std::string& refused() const noexcept { return refused_; }

  // Reading: a check that needs other parts, which are read later.
  void later(std::function<void()> check) {
    if (reads_) checks_.push_back(std::move(check));
  }
  // Reading: runs these checks. Call when all parts have been read.
  void run_checks() {
    for (std::size_t i = 0; i < checks_.size() && sound(); ++i) checks_[i]();
  }

  // --- values ---

  // Numbers, truth values, texts, parts with a visit_state(), and arrays, lists and optional ones
  // of these. A list grows to at most `most_elements`.
  template <class... T>
  void operator()(T&... values) {
    (item(values), ...);
  }

  // An enumeration with values below `count`.
  template <class E>
  void choice(E& value, unsigned count) {
    auto n = static_cast<unsigned>(value);
    item(n);
    if (reads_) value = static_cast<E>(below(n, count) ? n : 0);
  }
  // An index of an array of this size.
  template <class N>
  void index(N& value, std::size_t size) {
    item(value);
    if (reads_ && !below(value, size)) value = 0;
  }
  template <class N>
  void index_or(N& value, N none, std::size_t size) {
    item(value);
    if (reads_ && value != none && !below(value, size)) value = none;
  }

  // A list whose elements f(element) reads or writes.
  template <class List, class F>
  void list(List& all, F&& f, std::size_t most = most_elements) {
    std::size_t size = all.size();
    size_of(size, most);
    if (!reads_) {
      for (auto& one : all) f(one);
      return;
    }
    all.clear();
    while (size-- != 0 && sound()) f(all.emplace_back());
  }
  // A list of indexes of an array of this size, each of which may occur once.
  template <class List>
  void indexes(List& all, std::size_t size) {
    list(all, [&](auto& i) { index(i, size); }, size);
    if (!reads_) return;
    std::vector<bool> seen(size);
    for (const auto i : all) {
      require(i < size && !seen[i], "an index occurs twice");
      if (!sound()) return all.clear();
      seen[i] = true;
    }
  }
  // An array whose size the configuration gives.
  template <class Array>
  void fixed(Array& all) {
    for (auto& one : all) item(one);
  }
  template <class Array, class F>
  void fixed(Array& all, F&& f) {
    for (auto& one : all) f(one);
  }
  // An array of `size` elements, most of which have their initial value. Reading, all have it.
  template <class Initial, class F>
  void sparse(std::size_t size, Initial&& is_initial, F&& f) {
    for (std::size_t at = 0; at < size && sound();) {
      std::size_t skipped = 0, stored = 0;
      if (!reads_) {
        while (at + skipped < size && is_initial(at + skipped)) ++skipped;
        const std::size_t from = at + skipped;
        while (from + stored < size && !is_initial(from + stored)) ++stored;
      }
      item(skipped), item(stored);
      if (skipped > size - at || stored > size - at - skipped || skipped + stored == 0)
        return fail("a run of values is longer than its array");
      for (at += skipped; stored != 0 && sound(); --stored) f(at++);
    }
  }
  template <class Array>
  void sparse(Array& all, const typename Array::value_type& initial) {
    sparse(
        all.size(), [&](std::size_t i) { return all[i] == initial; },
        [&](std::size_t i) { item(all[i]); });
  }
  // A map of numbers, in their order.
  template <class Map, class F>
  void sorted(Map& all, F&& f) {
    std::size_t size = all.size();
    size_of(size, most_elements);
    if (!reads_) {
      const std::map<typename Map::key_type, typename Map::mapped_type*> ordered = [&] {
        std::map<typename Map::key_type, typename Map::mapped_type*> found;
        for (auto& [key, value] : all) found.emplace(key, &value);
        return found;
      }();
      for (const auto& [key, value] : ordered) {
        auto k = key;
        item(k), f(k, *value);
      }
      return;
    }
    all.clear();
    while (size-- != 0 && sound()) {
      typename Map::key_type key{};
      item(key);
      require(!all.contains(key), "a key occurs twice");
      if (sound()) f(key, all[key]);
    }
  }

  // --- links between parts ---

  // Parts that others point to get numbers in the order of these calls, the same in each direction.
  // accepts(n) says whether the part can take the event or token n. It is called once for each that
  // was read, after everything has been read.
  using acceptor = std::function<bool(std::uint64_t)>;
  void name(event_handler& h, acceptor accepts) { handlers_.add(&h, std::move(accepts)); }
  void name(requester& r, acceptor accepts) { requesters_.add(&r, std::move(accepts)); }
  // Pointer and argument; null when may_be_null.
  void link(event_handler*& h, std::uint64_t& what, bool may_be_null) {
    link(handlers_, h, &what, may_be_null);
  }
  void link(requester*& r, std::uint64_t& token, bool may_be_null) {
    link(requesters_, r, &token, may_be_null);
  }
  // A requester that only waits for retry().
  void link(requester*& r, bool may_be_null = false) { link(requesters_, r, nullptr, may_be_null); }

 private:
  static constexpr std::size_t most_elements = std::size_t{1} << 26;

  template <class T>
  struct registry {
    std::vector<T*> parts;
    std::vector<acceptor> accepts;
    std::map<const T*, std::size_t> numbers;

    void add(T* part, acceptor a) {
      numbers.emplace(part, parts.size() + 1);
      parts.push_back(part), accepts.push_back(std::move(a));
    }
  };

  template <class T>
  void link(registry<T>& all, T*& to, std::uint64_t* what, bool may_be_null) {
    std::size_t number = 0;
    if (!reads_ && to != nullptr) {
      const auto found = all.numbers.find(to);
      if (found == all.numbers.end()) return fail("a part that others point to has no number");
      number = found->second;
    }
    item(number);
    if (what != nullptr) item(*what);
    if (!reads_) return;
    to = nullptr;
    if (number == 0 ? !may_be_null : number > all.parts.size())
      return fail("a link leads to no part of the machine");
    if (number == 0 || !sound()) return;
    to = all.parts[number - 1];
    if (what == nullptr) return;
    later([this, &all, number, n = *what] {
      require(all.accepts[number - 1](n), "an event or reply does not fit the part it is for");
    });
  }

  template <class N>
  bool below(N n, std::size_t bound) {
    if (n < bound) return true;
    fail("a number is out of range");
    return false;
  }
  // Each element takes a byte at least.
  void size_of(std::size_t& size, std::size_t most) {
    item(size);
    if (!reads_ || (size <= most && size <= in_.size())) return;
    fail("a list is longer than what follows");
    size = 0;
  }

  // A number plus one, modulo 2^bits, seven bits a byte, the lowest first: `never` and `none` take
  // one byte.
  template <class N>
  void number(N& n) {
    constexpr unsigned bits = std::numeric_limits<N>::digits;
    if (!reads_) {
      N rest = static_cast<N>(n + 1);
      for (; rest > 0x7f; rest = static_cast<N>(rest >> 7))
        out_.push_back(static_cast<std::byte>(rest | 0x80));
      out_.push_back(static_cast<std::byte>(rest));
      return;
    }
    std::uint64_t sum = 0;
    n = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (in_.empty()) return fail("it ends early");
      const auto byte = std::to_integer<std::uint64_t>(in_.front());
      in_ = in_.subspan(1);
      const std::uint64_t seven = byte & 0x7f;
      if (shift >= bits || (bits - shift < 7 && seven >> (bits - shift) != 0) ||
          (byte == 0 && shift != 0))
        return fail("a number has too many bits");
      sum |= seven << shift;
      if ((byte & 0x80) == 0) break;
    }
    n = static_cast<N>(sum - 1);
  }
  void raw(void* at, std::size_t size) {
    if (!reads_) {
      const auto* from = static_cast<const std::byte*>(at);
      out_.insert(out_.end(), from, from + size);
      return;
    }
    if (in_.size() < size) {
      fail("it ends early");
      return void(std::memset(at, 0, size));
    }
    if (size != 0) std::memcpy(at, in_.data(), size);
    in_ = in_.subspan(size);
  }

  template <class T>
  void item(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      auto byte = static_cast<std::uint8_t>(v);
      raw(&byte, 1);
      if (reads_) v = below(byte, 2) && byte != 0;
    } else if constexpr (std::is_same_v<T, double>) {
      raw(&v, sizeof v);
    } else if constexpr (sizeof(T) == 16 && !std::is_class_v<T>) {
      auto low = static_cast<std::uint64_t>(v), high = static_cast<std::uint64_t>(v >> 64);
      raw(&low, 8), raw(&high, 8);
      v = static_cast<T>(high) << 64 | low;
    } else if constexpr (std::is_integral_v<T>) {
      auto n = static_cast<std::make_unsigned_t<T>>(v);
      number(n);
      v = static_cast<T>(n);
    } else {
      v.visit_state(*this);
    }
  }
  void item(std::string& text) {
    std::size_t size = text.size();
    size_of(size, most_elements);
    text.resize(size);
    raw(text.data(), size);
  }
  void item(base::rng& random) {
    auto words = std::bit_cast<std::array<std::uint64_t, 4>>(random);
    fixed(words);
    if (words == std::array<std::uint64_t, 4>{}) words[0] = 1;  // it would stay zero
    random = std::bit_cast<base::rng>(words);
  }
  template <class T, std::size_t N>
  void item(std::array<T, N>& all) {
    fixed(all);
  }
  template <class T, class A>
  void item(std::vector<T, A>& all) {
    list(all, [&](T& one) { item(one); });
  }
  template <class A>
  void item(std::vector<bool, A>& all) = delete;
  template <class T>
  void item(std::deque<T>& all) {
    list(all, [&](T& one) { item(one); });
  }
  template <class T>
  void item(std::optional<T>& one) {
    bool there = one.has_value();
    item(there);
    if (reads_) one.reset();
    if (reads_ && there) one.emplace();
    if (one) item(*one);
  }

  std::span<const std::byte> in_;
  std::vector<std::byte> out_;
  bool reads_ = false;
  std::string fault_, refused_;
  std::vector<std::function<void()>> checks_;
  registry<event_handler> handlers_;
  registry<requester> requesters_;
};

}  // namespace stele::sim
