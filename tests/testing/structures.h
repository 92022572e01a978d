// Structures that are right, and structures with a bug each, for the tests of
// stele::testing.
#pragma once

#include <stele/map.h>
#include <stele/testing.h>

#include <random>
#include <stdexcept>
#include <vector>

namespace tested {

using stele::field;
using stele::testing::random;

// A sum that is kept twice, and numbers in a list: small enough to plant
// anything.
struct node {
  field<std::uint64_t> value;
  field<node*> next;
};
struct stack {
  field<node*> top;
  field<std::uint64_t> size, sum;
  stele::plain<std::uint64_t> pushes;  // only the planted bug uses it

  void visit_blocks(const auto& visit) const {
    for (const node* n = top; n != nullptr; n = n->next) visit(n);
  }
  void push(std::uint64_t value) {
    auto* const n = stele::make<node>();
    n->value = value;
    n->next = top;
    top = n;
    size += 1;
    sum += value;
  }
  void pop() {
    node* const n = top;
    if (n == nullptr) return;
    top = n->next.load();
    size -= 1;
    sum -= n->value;
    stele::destroy(n);
  }
};

struct stack_test {
  using root = stack;
  using model = std::vector<std::uint64_t>;
  struct operation {
    std::uint64_t pushed;  // 0: pop
  };
  static operation draw(random& r) { return {r.below(5) < 2 ? 0 : 1 + r.below(100)}; }
  static void apply(stack& s, const operation& op) { op.pushed != 0 ? s.push(op.pushed) : s.pop(); }
  static void apply(model& m, const operation& op) {
    if (op.pushed != 0)
      m.push_back(op.pushed);
    else if (!m.empty())
      m.pop_back();
  }
  static std::string check(const stack& s, const model& m) {
    std::vector<std::uint64_t> found;
    std::uint64_t sum = 0;
    for (const node* n = s.top; n != nullptr; n = n->next)
      found.insert(found.begin(), n->value), sum += n->value;
    if (s.size != found.size() || s.sum != sum) return "size or sum is not that of the nodes";
    return stele::testing::compare(found, m);
  }
  static std::string describe(const operation& op) {
    return op.pushed != 0 ? "push " + std::to_string(op.pushed) : "pop";
  }
};

// Bugs. Each is the stack above but for one thing.

// A member that no transaction knows is part of the state.
struct stores_past_the_transaction : stack_test {
  static void apply(stack& s, const operation& op) {
    stack_test::apply(s, op);
    s.pushes = s.pushes + (op.pushed != 0);
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

// One operation, two transactions.
struct updates_twice : stack_test {
  static stele::result<> apply(stele::pool<stack>& p, const operation& op) {
    if (op.pushed == 0) return p.update([](stack& s) { s.pop(); });
    node* made = nullptr;
    if (auto done = p.update([&](stack& s) {
          s.push(op.pushed);
          s.size -= 1;
          made = s.top;
        });
        !done)
      return done;
    return p.update([](stack& s) { s.size += 1; });
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

// The same, but each of the two leaves a structure that looks sound.
struct moves_in_two_steps : stack_test {
  static stele::result<> apply(stele::pool<stack>& p, const operation& op) {
    if (op.pushed == 0) return p.update([](stack& s) { s.pop(); });
    if (auto done = p.update([&](stack& s) { s.push(op.pushed + 1); }); !done) return done;
    return p.update([&](stack& s) {
      s.pop();
      s.push(op.pushed);
    });
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

// Acknowledged before it is durable.
struct returns_too_early : stack_test {
  static stele::result<> apply(stele::pool<stack>& p, const operation& op) {
    return p.update([&](stack& s) { stack_test::apply(s, op); }, stele::durability::ordered);
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

struct leaks_a_block : stack_test {
  static void apply(stack& s, const operation& op) {
    if (op.pushed != 0 || s.top == nullptr) return stack_test::apply(s, op);
    s.size -= 1;
    s.sum -= s.top->value;
    s.top = s.top->next.load();
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

// A block that is made in one transaction and linked in another: leaked by a
// crash between them.
struct leaks_by_a_crash : stack_test {
  static stele::result<> apply(stele::pool<stack>& p, const operation& op) {
    if (op.pushed == 0) return p.update([](stack& s) { s.pop(); });
    node* made = nullptr;
    if (auto done = p.update([&](stack&) {
          made = stele::make<node>();
          made->value = op.pushed;
        });
        !done)
      return done;
    return p.update([&](stack& s) {
      made->next = s.top;
      s.top = made;
      s.size += 1;
      s.sum += op.pushed;
    });
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

struct frees_too_early : stack_test {
  static void apply(stack& s, const operation& op) {
    if (op.pushed != 0 && s.top != nullptr && s.size == 3) stele::destroy(s.top->next.load());
    stack_test::apply(s, op);
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

struct model_differs : stack_test {
  static void apply(stack& s, const operation& op) { stack_test::apply(s, op); }
  static void apply(model& m, const operation& op) {
    if (m.size() == 4 && op.pushed != 0) m.erase(m.begin());
    stack_test::apply(m, op);
  }
};

struct model_differs_at_first : stack_test {
  static void set_up(stack& s) { s.push(1); }
};

struct check_overlooks : stack_test {
  static std::string check(const stack& s, const model& m) {
    return s.size == m.size() ? "" : "the size is another";
  }
};
struct replaces_test : stack_test {  // with an operation that keeps the size
  static void apply(stack& s, const operation& op) {
    if (op.pushed % 2 == 1) s.pop();
    stack_test::apply(s, op);
  }
  static void apply(model& m, const operation& op) {
    if (op.pushed % 2 == 1 && !m.empty()) m.pop_back();
    stack_test::apply(m, op);
  }
};
struct check_overlooks_values : replaces_test {
  static std::string check(const stack& s, const model& m) {
    return s.size == m.size() ? "" : "the size is another";
  }
};

struct draws_at_random : stack_test {
  static operation draw(random&) {
    static std::uint64_t calls = 0;
    return {++calls % 3};
  }
};
struct stores_at_random : stack_test {
  static void apply(stack& s, const operation& op) {
    static std::uint64_t calls = 0;
    s.sum += ++calls;
    s.sum -= calls;
    if (calls % 5 == 0) s.sum = s.sum.load();
    s.size = s.size.load();
    stack_test::apply(s, op);
    if (s.top != nullptr && calls % 7 == 3) {
      s.push(calls);
      s.pop();
    }
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

struct throws : stack_test {
  static void apply(stack& s, const operation& op) {
    if (s.size == 3) throw std::runtime_error("three are too many");
    stack_test::apply(s, op);
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};
struct returns_an_error : stack_test {
  static stele::result<> apply(stack& s, const operation& op) {
    stack_test::apply(s, op);
    if (s.size == 3) return std::unexpected(stele::error{stele::errc::io, "three: no more"});
    return {};
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};
struct model_throws : stack_test {
  static void apply(stack& s, const operation& op) { stack_test::apply(s, op); }
  static void apply(model& m, const operation& op) {
    if (m.size() == 3) throw std::runtime_error("the model has no room");
    stack_test::apply(m, op);
  }
};
struct follows_null : stack_test {
  static void apply(stack& s, const operation& op) {
    if (s.size == 3) *static_cast<volatile int*>(nullptr) = 1;
    stack_test::apply(s, op);
  }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};
struct needs_much_room : stack_test {
  static void set_up(stack&) { stele::make_array<field<std::uint64_t>>(1 << 20); }
};
struct never_fits : stack_test {
  static void apply(stack&, const operation&) { stele::make_array<field<std::uint64_t>>(1 << 20); }
  static void apply(model& m, const operation& op) { stack_test::apply(m, op); }
};

// Cancels what it has begun when the stack is high, and the model does nothing
// then.
struct cancels : stack_test {
  static void apply(stack& s, const operation& op) {
    const bool high = s.size >= 4;
    stack_test::apply(s, op);
    if (high && op.pushed != 0) stele::cancel("high enough");
  }
  static void apply(model& m, const operation& op) {
    if (m.size() < 4 || op.pushed == 0) stack_test::apply(m, op);
  }
};

// With a first content, and a name of its own.
struct begins_with_some : stack_test {
  static constexpr const char* name = "stack_of_three";
  static void set_up(stack& s) {
    for (std::uint64_t i = 1; i <= 3; ++i) s.push(i);
  }
  static void set_up(model& m) { m = {1, 2, 3}; }
};

// A container, with a model that is neither ordered nor described.
struct map_test {
  using root = stele::map<std::uint64_t, std::uint64_t>;
  struct model {
    std::map<std::uint64_t, std::uint64_t> items;
    bool operator==(const model&) const = default;
  };
  struct operation {
    bool put;
    std::uint64_t key, value;
  };
  static operation draw(random& r) { return {r.below(3) > 0, r.below(12), r()}; }
  static void apply(root& map, const operation& op) { change(map, op); }
  static void apply(model& m, const operation& op) { change(m.items, op); }
  static std::string check(const root& map, const model& m) {
    return stele::testing::compare(map, m.items);
  }

 private:
  static void change(auto& map, const operation& op) {
    if (op.put)
      map.insert_or_assign(op.key, op.value);
    else
      map.erase(op.key);
  }
};

}  // namespace tested
