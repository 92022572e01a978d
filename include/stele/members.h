// Which members an object in a pool may have. pool<Root>, make and the containers refuse others at
// compile time.
//
//   struct account {
//     stele::field<std::uint64_t> cents;      // a value: transactions see each change of it
//     stele::field<account*> next;            // a pointer into the pool
//     stele::plain<std::uint32_t> last_seen;  // no part of any transaction
//   };
//   struct bank { stele::field<account*> first; account others[8]; };
//
// An ordinary member (`int n;`, `account* next;`, `std::string name;`) would compile and be wrong:
// a cancelled update would leave it changed, a crash would tear it. So every member of an aggregate
// is looked into, members of members and elements of arrays too: up to 1,024 values of one struct.
// A struct with a constructor or private members cannot be looked into. As a member it must
// say `using pool_resident = void;`, by which its author vouches for it. A class whose constructor
// takes a value of any type, as std::optional's, is not recognized.
#pragma once

#include <stele/field.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace stele {

// A member that transactions do not know, for hints and statistics that may be lost. A change is
// seen by other threads at once, is not rolled back, and after a crash is there, missing or torn.
// Block checksums call it damage: a pool that changes one is created with checksums::off.
template <class T>
struct plain {
  static_assert(std::is_trivially_copyable_v<T>, "a plain member is a trivially copyable value");
  T value;

  plain& operator=(T to) noexcept {
    value = to;
    return *this;
  }
  operator T() const noexcept { return value; }
};

namespace detail {

template <class T>
inline constexpr bool is_field = false;
template <class T>
inline constexpr bool is_field<field<T>> = true;
template <class T>
inline constexpr bool is_plain = false;
template <class T>
inline constexpr bool is_plain<plain<T>> = true;

inline constexpr std::size_t most_values = 1024;

// An aggregate is asked for its members by initializing it, unevaluated, from values that convert
// to any type. The conversion to what may not be a member is not noexcept.
struct any_value {
  template <class U>
  operator U() const noexcept;
};
template <class U>
consteval bool may_be_member();
template <class T>
struct member_value {
  template <class U>
  operator U() const noexcept(std::is_same_v<U, T> || may_be_member<U>());
};

#pragma GCC diagnostic push  // an array takes its elements without braces of its own
#pragma GCC diagnostic ignored "-Wmissing-braces"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

template <class T, std::size_t... I>
consteval bool takes_values(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), any_value{})...}; };
}
template <class T, std::size_t... I>
consteval bool takes_members(std::index_sequence<I...>) {
  return noexcept(T{(static_cast<void>(I), member_value<T>{})...});
}

template <class T>
struct any_values {
  template <std::size_t n>
  static consteval bool taken() {
    return takes_values<T>(std::make_index_sequence<n>());
  }
};
template <class T>
struct members {
  template <std::size_t n>
  static consteval bool taken() {
    return takes_members<T>(std::make_index_sequence<n>());
  }
};
// The largest number in [low, high) that is taken.
template <class What, std::size_t low, std::size_t high>
consteval std::size_t most_taken() {
  constexpr std::size_t middle = low + (high - low) / 2;
  if constexpr (middle == low)
    return low;
  else if constexpr (What::template taken<middle>())
    return most_taken<What, middle, high>();
  else
    return most_taken<What, low, middle>();
}
// How many values T is initialized from, each element of an array counted.
template <class T, std::size_t n = 1>
consteval std::size_t count_values() {
  if constexpr (n > most_values)
    return most_values;
  else if constexpr (any_values<T>::template taken<n>())
    return count_values<T, 2 * n>();
  else
    return most_taken<any_values<T>, n / 2, n>();
}

// True if all members of T may be members, or T cannot be looked into.
template <class T>
consteval bool has_pool_members() {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T> || std::is_empty_v<T> || is_plain<T>)
    return true;
  else
    return members<T>::template taken<count_values<T>()>();
}

template <class U>
consteval bool may_be_member() {
  if constexpr (is_field<U> || is_plain<U>)
    return true;
  else if constexpr (!std::is_class_v<U>)
    return false;
  else if constexpr (requires { typename U::pool_resident; })
    return has_pool_members<U>();
  else
    return std::is_empty_v<U> ||
           (std::is_aggregate_v<U> && std::is_trivially_destructible_v<U> && has_pool_members<U>());
}

template <class T>
void name_refused_member();
template <class T>
struct refused_value {
  template <class U>
    requires(!std::is_same_v<U, T>)
  operator U() const {
    constexpr bool is_struct = std::is_class_v<U> && std::is_aggregate_v<U>;
    static_assert(!std::is_pointer_v<U>,
                  "an object in a pool has a plain pointer as a member, which transactions do not "
                  "see and which is wrong in the next process: make it a stele::field<T*>");
    static_assert(std::is_pointer_v<U> || std::is_class_v<U>,
                  "an object in a pool has a plain member, whose changes transactions do not see: "
                  "make it a stele::field<T>, or a stele::plain<T> if no transaction should");
    static_assert(!std::is_class_v<U> || is_struct,
                  "an object in a pool has a member that is no field and no container of stele "
                  "(std types own ordinary memory or change behind the transaction's back); a "
                  "class of your own with a constructor, of fields and containers only, says "
                  "`using pool_resident = void;`");
    if constexpr (is_struct) {
      static_assert(
          std::is_trivially_destructible_v<U> || requires { typename U::pool_resident; },
          "an object in a pool has a member with containers in it; its struct says "
          "`using pool_resident = void;`");
      name_refused_member<U>();
    }
    throw 0;  // it is never called
  }
};
template <class T, std::size_t... I>
void name_member_after(std::index_sequence<I...>) {
  static_cast<void>(T{(static_cast<void>(I), any_value{})..., refused_value<T>{}});
}
// Makes the compiler name the first member of T that is refused, and say why.
template <class T>
void name_refused_member() {
  if constexpr (!has_pool_members<T>())
    name_member_after<T>(
        std::make_index_sequence<most_taken<members<T>, 0, count_values<T>()>()>());
}

#pragma GCC diagnostic pop

// Does not compile if T has a member that transactions would not see.
template <class T>
constexpr void require_pool_members() {
  if constexpr (!has_pool_members<T>()) {
    [[maybe_unused]] constexpr void (*says_why)() = name_refused_member<T>;
  }
}

}  // namespace detail
}  // namespace stele
