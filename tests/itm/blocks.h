// Atomic blocks under test. blocks.cc is compiled with -fgnu-tm and uses little of the C++ library,
// some of which does not compile with that option; the tests that call it are ordinary files. Each
// function is one block, or a few; see blocks.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::testing::itm {

struct node {
  std::uint64_t key;
  node* next;
};

struct all_types {
  std::uint8_t u1;
  std::uint16_t u2;
  std::uint32_t u4;
  std::uint64_t u8;
  float f;
  double d;
  long double e;
  __complex__ float cf;
  __complex__ double cd;
  __complex__ long double ce;
  float vector[4] __attribute__((aligned(16)));
};

struct [[gnu::packed]] uneven {
  char first;
  std::uint64_t second;
  std::uint32_t third;
};

struct root {
  std::uint64_t count, other;
  node* head;
  all_types values;
  uneven odd;
  char bytes[4096];
  std::uint64_t slots[64];
};

// Counters, in the pool and outside it.
void add(std::uint64_t* counter, std::uint64_t by);
std::uint64_t get(const std::uint64_t* counter);
void add_both(std::uint64_t* a, std::uint64_t* b, std::uint64_t by);
bool equal_in_one_look(const std::uint64_t* a, const std::uint64_t* b);
void move_between(std::uint64_t* slots, unsigned from, unsigned to);
std::uint64_t sum_of(const std::uint64_t* slots, unsigned count);

// Cancelling.
// Returns a local that counts what ran before: 1 is right
int add_and_cancel(std::uint64_t* counter, std::uint64_t by);
void cancel_inner(std::uint64_t* outer, std::uint64_t* inner);
void cancel_inner_of_three(std::uint64_t* slots);
void cancel_outer_from_inner(std::uint64_t* outer, std::uint64_t* inner);
void inner_commits_outer_cancels(std::uint64_t* outer, std::uint64_t* inner);
std::uint64_t locals_after_cancel(std::uint64_t start, std::uint64_t* touched);
std::uint64_t array_after_cancel(std::uint64_t* touched);

// Exceptions.
void add_and_throw(std::uint64_t* counter, std::uint64_t by);          // throws int
int throw_and_catch_inside(std::uint64_t* counter, std::uint64_t by);  // returns the caught value
void throw_inside_and_cancel(std::uint64_t* counter);
void cancel_in_handler(std::uint64_t* counter);

// A list in the pool.
void push(root* r, std::uint64_t key);
void push_by_constructor(root* r, std::uint64_t key);
bool pop(root* r);
void push_and_cancel(root* r, std::uint64_t key);
void pop_and_cancel(root* r);
void push_in_cancelled_inner(root* r, std::uint64_t key);
void pop_in_cancelled_inner(root* r);
void pop_in_inner(root* r);
std::uint64_t sum_of_list(const root* r);
std::uint64_t length_of_list(const root* r);
bool push_sized(root* r, std::size_t size);  // by stele_itm_malloc; false when it does not fit
void push_something_large(root* r, std::size_t size);  // throws failure when it does not fit
// The failure is caught inside, so the block commits.
bool survives_something_large(root* r, std::size_t size);

// Counts and fails. That is caught, and another exception of its size leaves the block.
void fail_and_throw_another(root* r, std::size_t size);
// Counts and fails, and fails in the handler too; that is caught, and the first failure leaves.
void fail_twice_and_throw_the_first(root* r, std::size_t size);

// Ordinary memory.
void push_ordinary_and_count(node** head, root* r, std::uint64_t key);
void push_ordinary(node** head, std::uint64_t key);
void push_ordinary_and_cancel(node** head, std::uint64_t key);
bool pop_ordinary(node** head, std::uint64_t* key);
void pop_ordinary_and_cancel(node** head);
void malloc_and_free(std::uint64_t* sum, std::size_t size, bool cancels);
std::uint64_t sum_of_ordinary(node* const* head);

// Lists that threads share; `count` is the number of nodes, all with key 1.
void push_counted(node** head, std::uint64_t* count);
bool pop_counted(node** head, std::uint64_t* count);  // deletes the node
bool counts(node* const* head, const std::uint64_t* count);
node* take(node** head);
void give(node** head, node* n);
void add_to_all(node* const* head);
// *own becomes 1 unless *other is 1.
void raise_if_alone(std::uint64_t* own, const std::uint64_t* other);
// *own becomes 0; returns false when both were 1.
bool lower(std::uint64_t* own, const std::uint64_t* other);
void push_both(root* r, std::uint64_t* pair);  // adds to both words of the pair, and adds a node

// Runs of bytes, types.
void copy_bytes(void* to, const void* from, std::size_t size);
void move_bytes(void* to, const void* from, std::size_t size);
void set_bytes(void* to, int byte, std::size_t size, bool cancels);
void copy_struct(all_types* to, const all_types* from);
void store_all_types(all_types* t, int n);
bool all_types_are(const all_types* t, int n);
void store_uneven(uneven* u, std::uint64_t n);
std::uint64_t sum_of_uneven(const uneven* u);

// Irrevocable.
void add_and_print(std::uint64_t* counter, std::uint64_t by, int (*print)(const char*));
void add_then_call(std::uint64_t* counter, std::uint64_t by, void (*call)());
int mode_inside(std::uint64_t* counter);  // _ITM_inTransaction in an atomic block
int mode_when_irrevocable();
std::uint64_t call_through_pointer(std::uint64_t* counter, bool other);

// Actions.
void act(std::uint64_t* counter, bool cancels, void (*on_commit)(void*), void (*on_undo)(void*),
         void* argument);

}  // namespace stele::testing::itm
