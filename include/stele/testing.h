// The crash explorer on a structure of your own: every crash that a run may meet, judged against a
// model in ordinary memory. For tests, with any test framework or none.
//
//   #include <stele/map.h>
//   struct map_test {
//     using root = stele::map<std::uint64_t, std::uint64_t>;  // in the pool
//     using model = std::map<std::uint64_t, std::uint64_t>;   // what it should hold
//     struct operation {
//       std::uint64_t key, value;
//     };
//     static operation draw(stele::testing::random& r) { return {r.below(9), r()}; }
//     static void apply(root& map, const operation& op) {  // one transaction
//       map.insert_or_assign(op.key, op.value);
//     }
//     static void apply(model& map, const operation& op) {  // the same on the model
//       map.insert_or_assign(op.key, op.value);
//     }
//     static std::string check(const root& map, const model& should) {  // "": nothing is wrong
//       return stele::testing::compare(map, should);
//     }
//   };
//   const stele::testing::report found = stele::testing::explore<map_test>();
//   if (!found.passed()) std::printf("%s\n", found.message().c_str());
//
// A small pool in memory runs the operations and is recorded. At each fence and acknowledgement,
// each content that a power failure may leave is recovered by the library's recovery; during
// recovery the power fails again. Every recovered structure must be as the model after the
// operations that had been acknowledged, or with those that had begun besides; must take 20 more
// operations as the model does; and must have leaked no block and freed none that it still reaches.
// Threads take turns, one transaction each; they do not overlap. Guide: docs/guide/testing.md.
//
// Link stele::testing (CMake) or stele-testing (pkg-config); libstele does not contain it.
#pragma once

#include <stele/leaks.h>
#include <stele/pool.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stele::testing {

// Random numbers of an operation: the same ones each time that it is drawn. A
// uniform random bit generator of the standard library. SplitMix64 (Steele,
// Lea, Flood 2014).
class random {
 public:
  using result_type = std::uint64_t;
  explicit random(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t operator()() noexcept {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  // From 0 to bound - 1; 0 if the bound is 0.
  std::uint64_t below(std::uint64_t bound) noexcept { return bound == 0 ? 0 : (*this)() % bound; }
  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }

 private:
  std::uint64_t state_;
};

struct options {
  std::vector<std::string> mechanisms = {"default"};  // one after another; mechanisms() has all
  std::string media = "memory";      // "memory": power fails line by line; "file": sector by sector
  std::size_t pool_size = 65536;     // bytes; exploring takes time proportional to it
  std::uint64_t operations = 100;    // of the recorded run, one a transaction
  unsigned per_transaction = 1;      // so many instead; messages call them one operation
  unsigned threads = 1;              // 1 to 64, in turns: as many logs as there are threads
  std::uint64_t states = 256;        // at a crash point, at most; above it they are sampled
  unsigned recovery_depth = 2;       // 1: no crash in recovery; n: up to n crashes in a row
  unsigned further_operations = 20;  // that a recovered structure runs
  std::uint64_t seed = 1;            // of operations and samples
  std::size_t most_failures = 1;     // of a mechanism; exploring ends at the last
  // A line of crash_failure::replay: only what it names runs, and
  // report::replayed tells it. Empty: the line in the environment variable
  // STELE_REPLAY, if it names this structure.
  std::string replay = "";
};

struct crash_failure {
  std::string what;    // what was wrong, where, and against what
  std::string replay;  // the line that repeats it; empty if nothing was explored
};

struct report {
  std::string structure = "";         // its name
  std::string replayed = "";          // the line that was replayed, and what it showed; else empty
  std::uint64_t states = 0;           // crash states, recovered and judged
  std::uint64_t distinct_states = 0;  // of these, different from all before
  std::uint64_t crash_points = 0,
                exhausted_points = 0;  // exhausted: all their states, no sample
  std::uint64_t recoveries = 0;        // whose own crashes were explored
  std::uint64_t refused = 0;  // states that the mechanism may refuse to recover (archapt), and did
  std::uint64_t not_fitting = 0;  // operations of the recorded runs that found no room
  double seconds = 0;
  std::vector<crash_failure> failures = {};

  bool passed() const noexcept { return failures.empty(); }
  // What was explored, and each failure with its replay line, in lines.
  std::string message() const;
};
// Prints message(). Test frameworks print a report by it.
std::ostream& operator<<(std::ostream& to, const report& r);

// The mechanisms that keep what was acknowledged and that this program has: `default`.
std::vector<std::string> mechanisms();

namespace detail {

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_arithmetic_v<T>)
    return std::to_string(value);
  else if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return '"' + std::string(std::string_view(value)) + '"';
  else if constexpr (std::is_convertible_v<const T&, std::string>)
    return '"' + std::string(value) + '"';
  else if constexpr (requires { value.first, value.second; })
    return '(' + text_of(value.first) + ", " + text_of(value.second) + ')';
  else if constexpr (requires { value.load(); })
    return text_of(value.load());
  else
    return "another one";
}

}  // namespace detail

// Compares two ranges, element by element: empty if they are equal, else a
// sentence about the first difference. For check(); elements need ==, pairs are
// compared by their members.
template <class Found, class Expected>
std::string compare(const Found& found, const Expected& expected) {
  const auto equal = [](const auto& a, const auto& b) {
    if constexpr (requires { a.first == b.first&& a.second == b.second; })
      return a.first == b.first && a.second == b.second;
    else
      return a == b;
  };
  auto f = found.begin();
  auto e = expected.begin();
  for (std::size_t i = 0;; ++i, ++f, ++e) {
    const bool no_more = !(f != found.end()), none_expected = !(e != expected.end());
    if (no_more && none_expected) return "";
    if (!no_more && !none_expected && equal(*f, *e)) continue;
    return "element " + std::to_string(i) + " is " + (no_more ? "missing" : detail::text_of(*f)) +
           ", and should be " + (none_expected ? "the end" : detail::text_of(*e));
  }
}

namespace detail {

// What a tested structure must have; explore() says in a sentence what is
// missing.
template <class T>
concept has_types = requires {
  typename T::root;
  typename T::model;
  typename T::operation;
};
template <class T>
concept draws = requires(const T& t, random& r) {
  { t.draw(r) } -> std::convertible_to<typename T::operation>;
};
template <class T>
concept applies_to_root = requires(const T& t, typename T::root& root,
                                   const typename T::operation& op) { t.apply(root, op); };
template <class T>
concept applies_to_pool =
    !applies_to_root<T> && requires(const T& t, pool<typename T::root>& pool,
                                    const typename T::operation& op) { t.apply(pool, op); };
template <class T>
concept applies_to_model = requires(const T& t, typename T::model& model,
                                    const typename T::operation& op) { t.apply(model, op); };
template <class T>
concept checks =
    requires(const T& t, const typename T::root& root, const typename T::model& model) {
      { t.check(root, model) } -> std::convertible_to<std::string>;
    };
template <class T>
concept visits_blocks = requires(const T& t, const typename T::root& root,
                                 const block_visitor& visit) { t.visit_blocks(root, visit); };
template <class T>
concept root_visits_blocks = requires(const typename T::root& root, const block_visitor& visit) {
  root.visit_blocks(visit);
};

// A tested structure without its types: what the explorer calls. Models are
// known by numbers; equal models have one number. A transaction is known by the
// seed of its operations.
class structure {
 public:
  virtual ~structure() = default;
  virtual std::size_t root_size() const = 0;
  virtual void attach(stele::detail::pool_handle handle) = 0;
  virtual void detach() = 0;
  virtual stele::detail::runtime& core() = 0;

  [[nodiscard]] virtual result<> set_up() = 0;
  [[nodiscard]] virtual result<> apply(std::uint64_t seed, unsigned operations, durability d) = 0;
  // What check() says of the pool and a model.
  [[nodiscard]] virtual result<std::string> check(std::size_t model) = 0;
  [[nodiscard]] virtual result<> visit_blocks(const block_visitor& visit) = 0;
  [[nodiscard]] virtual result<leak_report> leaks() = 0;

  virtual std::size_t first_model() = 0;
  virtual std::size_t model_after(std::size_t model, std::uint64_t seed, unsigned operations) = 0;
  virtual std::size_t models() const = 0;

  virtual bool in_own_transactions() const = 0;  // apply() takes the pool
  // False if draw() gives another operation when it is called again.
  virtual bool draws_the_same(std::uint64_t seed, unsigned operations, std::size_t model) = 0;
  // The operations in words; empty if there are none for them.
  virtual std::string describe(std::uint64_t seed, unsigned operations) = 0;
};
using structure_maker = std::function<std::unique_ptr<structure>()>;

template <class T>
class structure_of final : public structure {
  using root = typename T::root;
  using model = typename T::model;
  using operation = typename T::operation;

 public:
  explicit structure_of(const T& tested) : tested_(tested) {}

  std::size_t root_size() const override { return sizeof(root); }
  void attach(stele::detail::pool_handle handle) override { pool_.emplace(std::move(handle)); }
  void detach() override { pool_.reset(); }
  stele::detail::runtime& core() override { return pool_->core(); }

  result<> set_up() override {
    if constexpr (requires(const T& t, root& r) { t.set_up(r); })
      return pool_->update([&](root& r) { return call([&] { return tested_.set_up(r); }); });
    else
      return {};
  }

  result<> apply(std::uint64_t seed, unsigned operations, durability d) override {
    const std::vector<operation> drawn = draw(seed, operations);
    if constexpr (applies_to_pool<T>) {
      for (const operation& op : drawn)
        if (auto done = call([&] { return tested_.apply(*pool_, op); }); !done) return done;
      return {};
    } else {
      return pool_->update(
          [&](root& r) -> result<> {
            for (const operation& op : drawn)
              if (auto done = call([&] { return tested_.apply(r, op); }); !done) return done;
            return {};
          },
          d);
    }
  }

  result<std::string> check(std::size_t number) override {
    return pool_->read(
        [&](const root& r) { return std::string(tested_.check(r, *models_[number])); });
  }

  result<> visit_blocks(const block_visitor& visit) override {
    return pool_->read([&](const root& r) { walk(r, visit); });
  }
  result<leak_report> leaks() override {
    const root* at = nullptr;
    if (auto found = pool_->read([&](const root& r) { at = &r; }); !found)
      return std::unexpected(found.error());
    return stele::detail::find_leaks(core(), at,
                                     [&](const block_visitor& visit) { walk(*at, visit); });
  }

  std::size_t first_model() override {
    model first{};
    if constexpr (requires(const T& t, model& m) { t.set_up(m); }) tested_.set_up(first);
    return number_of(std::move(first));
  }
  std::size_t model_after(std::size_t before, std::uint64_t seed, unsigned operations) override {
    model now = *models_[before];
    for (const operation& op : draw(seed, operations)) tested_.apply(now, op);
    return number_of(std::move(now));
  }
  std::size_t models() const override { return models_.size(); }

  bool in_own_transactions() const override { return applies_to_pool<T>; }
  bool draws_the_same(std::uint64_t seed, unsigned operations, std::size_t before) override {
    if constexpr (std::equality_comparable<operation>)
      return draw(seed, operations) == draw(seed, operations);
    else
      return describe(seed, operations) == describe(seed, operations) &&
             model_after(before, seed, operations) == model_after(before, seed, operations);
  }
  std::string describe(std::uint64_t seed, unsigned operations) override {
    std::string text;
    if constexpr (requires(const T& t, const operation& op) { std::string(t.describe(op)); })
      for (const operation& op : draw(seed, operations))
        text += (text.empty() ? "" : ", ") + std::string(tested_.describe(op));
    return text;
  }

 private:
  // What a user's function returns as a result: an error is passed on, any
  // other value is not.
  template <class Body>
  static result<> call(Body&& body) {
    using R = std::invoke_result_t<Body&>;
    if constexpr (stele::detail::is_result<R>) {
      if (auto done = body(); !done) return std::unexpected(std::move(done.error()));
    } else {
      static_cast<void>(body());
    }
    return {};
  }

  std::vector<operation> draw(std::uint64_t seed, unsigned operations) const {
    random numbers(seed);
    std::vector<operation> drawn;
    for (unsigned i = 0; i < operations; ++i) drawn.push_back(tested_.draw(numbers));
    return drawn;
  }

  void walk(const root& r, const block_visitor& visit) const {
    if constexpr (visits_blocks<T>)
      tested_.visit_blocks(r, visit);
    else
      r.visit_blocks(visit);
  }

  std::size_t number_of(model m) {
    if constexpr (std::totally_ordered<model>) {
      const auto [at, fresh] = numbers_.try_emplace(std::move(m), models_.size());
      if (fresh) models_.push_back(&at->first);
      return at->second;
    } else {
      for (std::size_t i = models_.size(); i-- > 0;)
        if (*models_[i] == m) return i;
      owned_.push_back(std::make_unique<model>(std::move(m)));
      models_.push_back(owned_.back().get());
      return models_.size() - 1;
    }
  }

  struct unordered {};
  T tested_;
  std::optional<pool<root>> pool_;
  std::vector<const model*> models_;  // by number
  std::vector<std::unique_ptr<model>> owned_;
  [[no_unique_address]] std::conditional_t<std::totally_ordered<model>,
                                           std::map<model, std::size_t>, unordered> numbers_;
};

// A type's name without namespaces, as one word.
std::string word_of(const char* type_name);

report explore(std::string name, const structure_maker& make, const options& how);

template <class T>
std::string name_of_structure() {
  if constexpr (requires { std::string(T::name); })
    return std::string(T::name);
  else
    return word_of(stele::detail::type_name<T>());
}

}  // namespace detail

// Explores a structure as `how` says. T has the members that the head of this file shows, static or
// not. Further ones, where they are wanted:
//   apply(pool<root>&, const operation&) in place of apply(root&, ...): it runs transactions of its
//   own, and what it did is durable when it returns. Both may return a result<>.
//
//   set_up(root&) and set_up(model&): the first content. Without: a zero root, model{}.
//
//   visit_blocks(const root&, const block_visitor&), if the root has no visit_blocks (leaks.h).
//
//   std::string describe(const operation&): words for messages.
//
//   static constexpr const char* name: for messages and replay lines. Without: the type's name.
// The model is copied and compared by ==. An operation that finds no room (errc::full) must have
// changed nothing, and is left out for the model. One that cancels changes nothing in the pool; the
// model decides itself. Runs in a child process, so that a structure that loses its way there fails
// the test and does not end it. Errors, of any kind, are failures of the report. One call at a
// time.
template <class T>
[[nodiscard]] report explore(const options& how = {}, const T& tested = {}) {
  static_assert(detail::has_types<T>,
                "a tested structure names its types: `using root = ...;` of "
                "the pool, `using model "
                "= ...;` in ordinary memory, `struct operation {...};`");
  if constexpr (detail::has_types<T>) {
    static_assert(detail::draws<T>,
                  "a tested structure draws its operations: "
                  "`static operation draw(stele::testing::random& r)`");
    static_assert(detail::applies_to_root<T> || detail::applies_to_pool<T>,
                  "a tested structure changes the pool in one of two ways: "
                  "`static void apply(root& "
                  "r, const operation& op)` inside a transaction, or "
                  "`apply(stele::pool<root>& p, "
                  "const operation& op)` with transactions of its own");
    static_assert(detail::applies_to_model<T>,
                  "a tested structure does the same to its model: `static void "
                  "apply(model& m, "
                  "const operation& op)`");
    static_assert(detail::checks<T>,
                  "a tested structure is compared with its model: `static "
                  "std::string check(const "
                  "root& r, const model& m)`, empty if nothing is wrong");
    static_assert(detail::visits_blocks<T> || detail::root_visits_blocks<T>,
                  "leaks are found by `static void visit_blocks(const root& r, const "
                  "stele::block_visitor& visit)`, which calls visit for each object that "
                  "make() "
                  "returned; or by such a member of the root (stele/leaks.h)");
    static_assert(std::copyable<typename T::model> && std::equality_comparable<typename T::model>,
                  "a model is copied and compared: `bool operator==(const "
                  "model&) const = default;`");
    return detail::explore(
        detail::name_of_structure<T>(),
        [tested]() -> std::unique_ptr<detail::structure> {
          return std::make_unique<detail::structure_of<T>>(tested);
        },
        how);
  } else {
    return {};
  }
}

}  // namespace stele::testing
