// The atomic blocks that the tests of libstele_itm run. Compiled with -fgnu-tm.
#include <tests/itm/blocks.h>

#include <stele/itm.h>

#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
int _ITM_inTransaction() __attribute__((transaction_pure));
void _ITM_addUserCommitAction(void (*)(void*), std::uint32_t, void*)
    __attribute__((transaction_pure));
void _ITM_addUserUndoAction(void (*)(void*), void*) __attribute__((transaction_pure));
}

namespace stele::testing::itm {

// Sometimes yields the processor in the middle of a block, so that threads conflict on one core
// too.
[[gnu::transaction_pure, gnu::noinline]] static void hesitate() {
  static thread_local unsigned calls = 0;
  if (++calls % 32 == 0) ::sched_yield();
}

void add(std::uint64_t* counter, std::uint64_t by) {
  __transaction_atomic {
    *counter += by;
    hesitate();
  }
}

std::uint64_t get(const std::uint64_t* counter) {
  std::uint64_t value;
  __transaction_atomic {
    value = *counter;
  }
  return value;
}

void add_both(std::uint64_t* a, std::uint64_t* b, std::uint64_t by) {
  __transaction_atomic {
    *a += by;
    hesitate();
    *b += by;
  }
}

bool equal_in_one_look(const std::uint64_t* a, const std::uint64_t* b) {
  bool equal;
  __transaction_atomic {
    const std::uint64_t first = *a;
    hesitate();
    equal = first == *b;
  }
  return equal;
}

void move_between(std::uint64_t* slots, unsigned from, unsigned to) {
  __transaction_atomic {
    --slots[from];
    hesitate();
    ++slots[to];
  }
}

std::uint64_t sum_of(const std::uint64_t* slots, unsigned count) {
  std::uint64_t sum = 0;
  __transaction_atomic {
    sum = 0;
    for (unsigned i = 0; i < count; ++i) {
      sum += slots[i];
      hesitate();
    }
  }
  return sum;
}

int add_and_cancel(std::uint64_t* counter, std::uint64_t by) {
  int ran = 1;
  __transaction_atomic {
    ran += 1;
    *counter += by;
    if (*counter >= by) __transaction_cancel;
    ran += 1;
  }
  return ran;
}

void cancel_inner(std::uint64_t* outer, std::uint64_t* inner) {
  __transaction_atomic {
    *outer += 1;
    *inner += 1;
    __transaction_atomic {
      *outer += 100;
      *inner += 100;
      if (*outer >= 100) __transaction_cancel;
    }
    *outer += 10;
    *inner += 10;
  }
}

void cancel_inner_of_three(std::uint64_t* slots) {
  __transaction_atomic {
    slots[0] = 1;
    __transaction_atomic {
      slots[0] = 2, slots[1] = 2;
      __transaction_atomic {
        slots[0] = 3, slots[1] = 3, slots[2] = 3;
        if (slots[2] == 3) __transaction_cancel;
      }
      slots[3] = slots[1];
      if (slots[3] != 2) __transaction_cancel;
    }
    slots[4] = slots[0];
  }
}

static void step(std::uint64_t* outer, std::uint64_t* inner)
    __attribute__((transaction_may_cancel_outer));
void step(std::uint64_t* outer, std::uint64_t* inner) {
  __transaction_atomic {
    *inner += 1;
    if (*outer != 0) __transaction_cancel [[outer]];
  }
}

void cancel_outer_from_inner(std::uint64_t* outer, std::uint64_t* inner) {
  __transaction_atomic [[outer]] {
    *outer += 1;
    step(outer, inner);
    *outer += 1;
  }
}

void inner_commits_outer_cancels(std::uint64_t* outer, std::uint64_t* inner) {
  __transaction_atomic {
    *outer += 1;
    __transaction_atomic {
      *inner += 1;
      if (*inner == 1000) __transaction_cancel;
    }
    if (*outer != 0) __transaction_cancel;
  }
}

std::uint64_t locals_after_cancel(std::uint64_t start, std::uint64_t* touched) {
  std::uint64_t a = start, b = start * 2, c = start * 3;
  __transaction_atomic {
    a += *touched, b += a, c += b;
    *touched = a + b + c;
    if (*touched != 0) __transaction_cancel;
  }
  return a + b + c;
}

[[gnu::transaction_safe, gnu::noinline]] void change(std::uint64_t* words, std::uint64_t by) {
  for (int i = 0; i < 8; ++i) words[i] += by;
}

std::uint64_t array_after_cancel(std::uint64_t* touched) {
  std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  __transaction_atomic {
    change(words, 100);
    *touched += words[3];
    if (*touched != 0) __transaction_cancel;
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t w : words) sum += w;
  return sum;
}

void add_and_throw(std::uint64_t* counter, std::uint64_t by) {
  __transaction_atomic {
    const std::uint64_t before = *counter;
    hesitate();
    *counter = before + by;
    if (*counter != 0) throw 42;
    *counter += 1000;
  }
}

int throw_and_catch_inside(std::uint64_t* counter, std::uint64_t by) {
  int caught = 0;
  __transaction_atomic {
    try {
      *counter += by;
      if (*counter != 0) throw 17;
      *counter += 1000;
    } catch (int n) {
      caught = n;
      hesitate();
      *counter += 1;
    }
  }
  return caught;
}

void throw_inside_and_cancel(std::uint64_t* counter) {
  __transaction_atomic {
    try {
      *counter += 1;
      if (*counter != 0) throw 17;
    } catch (int) {
      *counter += 1;
    }
    if (*counter != 0) __transaction_cancel;
  }
}

void cancel_in_handler(std::uint64_t* counter) {
  __transaction_atomic {
    try {
      *counter += 1;
      if (*counter != 0) throw 17;
    } catch (int) {
      __transaction_cancel;
    }
  }
}

void push(root* r, std::uint64_t key) {
  __transaction_atomic {
    node* n = stele::itm::make<node>();
    n->key = key;
    n->next = r->head;
    r->head = n;
    r->count += 1;
  }
}

namespace {

struct made_node : node {
  [[gnu::transaction_safe]] made_node(std::uint64_t k, node* n) {
    key = k;
    next = n;
  }
};

}  // namespace

void push_by_constructor(root* r, std::uint64_t key) {
  __transaction_atomic {
    r->head = stele::itm::make<made_node>(key, r->head);
    r->count += 1;
  }
}

[[gnu::transaction_safe]] static bool pop_now(root* r) {
  node* n = r->head;
  if (n == nullptr) return false;
  r->head = n->next;
  r->count -= 1;
  stele::itm::destroy(n);
  return true;
}

bool pop(root* r) {
  bool any;
  __transaction_atomic {
    any = pop_now(r);
  }
  return any;
}

void push_and_cancel(root* r, std::uint64_t key) {
  __transaction_atomic {
    node* n = stele::itm::make<node>();
    n->key = key;
    n->next = r->head;
    r->head = n;
    r->count += 1;
    if (r->count != 0) __transaction_cancel;
  }
}

void pop_and_cancel(root* r) {
  __transaction_atomic {
    if (pop_now(r)) __transaction_cancel;
  }
}

void push_in_cancelled_inner(root* r, std::uint64_t key) {
  __transaction_atomic {
    r->other += 1;
    __transaction_atomic {
      node* n = stele::itm::make<node>();
      n->key = key;
      n->next = r->head;
      r->head = n;
      r->count += 1;
      if (r->count != 0) __transaction_cancel;
    }
  }
}

void pop_in_cancelled_inner(root* r) {
  __transaction_atomic {
    r->other += 1;
    __transaction_atomic {
      if (pop_now(r)) __transaction_cancel;
    }
  }
}

void pop_in_inner(root* r) {
  __transaction_atomic {
    r->other += 1;
    __transaction_atomic {
      pop_now(r);
      if (r->other == 0) __transaction_cancel;
    }
  }
}

std::uint64_t sum_of_list(const root* r) {
  std::uint64_t sum = 0;
  __transaction_atomic {
    for (const node* n = r->head; n != nullptr; n = n->next) sum += n->key;
  }
  return sum;
}

std::uint64_t length_of_list(const root* r) {
  std::uint64_t length = 0;
  __transaction_atomic {
    for (const node* n = r->head; n != nullptr; n = n->next) ++length;
  }
  return length;
}

bool push_sized(root* r, std::size_t size) {
  bool fits;
  __transaction_atomic {
    auto* n = static_cast<node*>(stele_itm_malloc(size));
    fits = n != nullptr;
    if (fits) {
      n->next = r->head;
      r->head = n;
    }
  }
  return fits;
}

void push_something_large(root* r, std::size_t size) {
  __transaction_atomic {
    r->count += 1;
    auto* n = static_cast<node*>(stele::itm::allocate(size, 8));
    n->next = r->head;
    r->head = n;
  }
}

bool survives_something_large(root* r, std::size_t size) {
  bool caught = false;
  __transaction_atomic {
    r->count += 1;
    try {
      r->head = static_cast<node*>(stele::itm::allocate(size, 8));
    } catch (...) {
      caught = true;
    }
  }
  return caught;
}

namespace {

struct as_large_as_a_failure {
  char bytes[sizeof(failure)];
};

}  // namespace

void fail_and_throw_another(root* r, std::size_t size) {
  __transaction_atomic {
    r->count += 1;
    try {
      r->head = static_cast<node*>(stele::itm::allocate(size, 8));
    } catch (...) {
      r->other += 1;
    }
    if (r->count != 0) throw as_large_as_a_failure{};
  }
}

void fail_twice_and_throw_the_first(root* r, std::size_t size) {
  __transaction_atomic {
    r->count += 1;
    try {
      r->head = static_cast<node*>(stele::itm::allocate(size, 8));
    } catch (...) {
      try {
        r->head = static_cast<node*>(stele::itm::allocate(size, 8));
      } catch (...) {
        r->other += 1;
      }
      throw;
    }
  }
}

void push_ordinary_and_count(node** head, root* r, std::uint64_t key) {
  __transaction_atomic {
    node* n = new node;
    n->key = key;
    n->next = *head;
    *head = n;
    r->count += 1;
  }
}

void push_ordinary(node** head, std::uint64_t key) {
  __transaction_atomic {
    node* n = new node;
    n->key = key;
    n->next = *head;
    *head = n;
  }
}

void push_ordinary_and_cancel(node** head, std::uint64_t key) {
  __transaction_atomic {
    node* n = new node;
    n->key = key;
    n->next = *head;
    *head = n;
    if (n->key == key) __transaction_cancel;
  }
}

bool pop_ordinary(node** head, std::uint64_t* key) {
  bool any = false;
  __transaction_atomic {
    node* n = *head;
    if (n != nullptr) {
      any = true;
      *key = n->key;
      *head = n->next;
      delete n;
    }
  }
  return any;
}

void pop_ordinary_and_cancel(node** head) {
  __transaction_atomic {
    node* n = *head;
    *head = n->next;
    n->key = 0;
    delete n;
    if (*head != n) __transaction_cancel;
  }
}

void malloc_and_free(std::uint64_t* sum, std::size_t size, bool cancels) {
  __transaction_atomic {
    auto* bytes = static_cast<unsigned char*>(calloc(size, 2));
    auto* more = static_cast<unsigned char*>(malloc(size));
    for (std::size_t i = 0; i < size; ++i) more[i] = static_cast<unsigned char>(bytes[i] + 1);
    for (std::size_t i = 0; i < size; ++i) *sum += more[i];
    free(bytes);
    free(more);
    if (cancels) __transaction_cancel;
  }
}

std::uint64_t sum_of_ordinary(node* const* head) {
  std::uint64_t sum = 0;
  __transaction_atomic {
    for (const node* n = *head; n != nullptr; n = n->next) sum += n->key;
  }
  return sum;
}

void push_counted(node** head, std::uint64_t* count) {
  __transaction_atomic {
    node* n = new node;
    n->key = 1;
    n->next = *head;
    *head = n;
    *count += 1;
  }
}

bool pop_counted(node** head, std::uint64_t* count) {
  bool any = false;
  __transaction_atomic {
    node* n = *head;
    if (n != nullptr) {
      any = true;
      *head = n->next;
      *count -= n->key;
      delete n;
    }
  }
  return any;
}

bool counts(node* const* head, const std::uint64_t* count) {
  std::uint64_t sum = 0;
  bool right = false;
  __transaction_atomic {
    sum = 0;
    for (const node* n = *head; n != nullptr; n = n->next) {
      hesitate();
      sum += n->key;
    }
    right = sum == *count;
  }
  return right;
}

node* take(node** head) {
  node* n;
  __transaction_atomic {
    n = *head;
    if (n != nullptr) *head = n->next;
  }
  return n;
}

void give(node** head, node* n) {
  __transaction_atomic {
    n->next = *head;
    *head = n;
  }
}

void add_to_all(node* const* head) {
  __transaction_atomic {
    for (node* n = *head; n != nullptr; n = n->next) {
      n->key += 1;
      hesitate();
    }
  }
}

void raise_if_alone(std::uint64_t* own, const std::uint64_t* other) {
  __transaction_atomic {
    const std::uint64_t others = *other;
    hesitate();
    if (others == 0) *own = 1;
  }
}

bool lower(std::uint64_t* own, const std::uint64_t* other) {
  bool right;
  __transaction_atomic {
    right = *own == 0 || *other == 0;
    *own = 0;
  }
  return right;
}

void push_both(root* r, std::uint64_t* pair) {
  __transaction_atomic {
    pair[0] += 1;
    node* n = stele::itm::make<node>();
    n->key = 1;
    n->next = r->head;
    r->head = n;
    r->count += 1;
    pair[1] += 1;
  }
}

void copy_bytes(void* to, const void* from, std::size_t size) {
  __transaction_atomic {
    memcpy(to, from, size);
  }
}
void move_bytes(void* to, const void* from, std::size_t size) {
  __transaction_atomic {
    memmove(to, from, size);
  }
}
void set_bytes(void* to, int byte, std::size_t size, bool cancels) {
  __transaction_atomic {
    memset(to, byte, size);
    if (cancels) __transaction_cancel;
  }
}
void copy_struct(all_types* to, const all_types* from) {
  __transaction_atomic {
    *to = *from;
  }
}

void store_all_types(all_types* t, int n) {
  __transaction_atomic {
    t->u1 = static_cast<std::uint8_t>(n + 1);
    t->u2 = static_cast<std::uint16_t>(n + 2);
    t->u4 = static_cast<std::uint32_t>(n + 3);
    t->u8 = static_cast<std::uint64_t>(n) + 4;
    t->f = static_cast<float>(n) + 5;
    t->d = n + 6;
    t->e = n + 7;
    __real__ t->cf = static_cast<float>(n) + 8;
    __imag__ t->cf = static_cast<float>(n) + 9;
    __real__ t->cd = n + 10;
    __imag__ t->cd = n + 11;
    __real__ t->ce = n + 12;
    __imag__ t->ce = n + 13;
    for (int i = 0; i < 4; ++i) t->vector[i] = static_cast<float>(n + 14 + i);
  }
}

bool all_types_are(const all_types* t, int n) {
  bool right;
  __transaction_atomic {
    right = t->u1 == static_cast<std::uint8_t>(n + 1) &&
            t->u2 == static_cast<std::uint16_t>(n + 2) &&
            t->u4 == static_cast<std::uint32_t>(n + 3) &&
            t->u8 == static_cast<std::uint64_t>(n) + 4 && t->f == static_cast<float>(n) + 5 &&
            t->d == n + 6 && t->e == n + 7 && __real__ t->cf == static_cast<float>(n) + 8 &&
            __imag__ t->cf == static_cast<float>(n) + 9 && __real__ t->cd == n + 10 &&
            __imag__ t->cd == n + 11 && __real__ t->ce == n + 12 && __imag__ t->ce == n + 13;
    for (int i = 0; i < 4; ++i) right = right && t->vector[i] == static_cast<float>(n + 14 + i);
  }
  return right;
}

void store_uneven(uneven* u, std::uint64_t n) {
  __transaction_atomic {
    u->first = static_cast<char>(n);
    u->second = n * 0x0102030405060708u;
    u->third = static_cast<std::uint32_t>(n + 1);
  }
}
std::uint64_t sum_of_uneven(const uneven* u) {
  std::uint64_t sum;
  __transaction_atomic {
    sum = static_cast<std::uint64_t>(u->first) + u->second + u->third;
  }
  return sum;
}

void add_and_print(std::uint64_t* counter, std::uint64_t by, int (*print)(const char*)) {
  __transaction_relaxed {
    *counter += by;
    if (*counter % 2 == 0) print("even\n");
  }
}

void add_then_call(std::uint64_t* counter, std::uint64_t by, void (*call)()) {
  __transaction_relaxed {
    *counter += by;
    if (call != nullptr) call();
    *counter += by;
  }
}

int mode_inside(std::uint64_t* counter) {
  int mode;
  __transaction_atomic {
    *counter += 1;  // an empty block would be no transaction
    mode = _ITM_inTransaction();
  }
  return mode;
}

static int unsafe_calls = 0;
[[gnu::noinline]] static void unsafe_call() {
  asm volatile("incl %0" : "+m"(unsafe_calls));
}
int mode_when_irrevocable() {
  int mode;
  __transaction_relaxed {
    unsafe_call();
    mode = _ITM_inTransaction();
  }
  return mode;
}

typedef std::uint64_t (*adder)(std::uint64_t*) __attribute__((transaction_safe));
[[gnu::transaction_safe, gnu::noinline]] std::uint64_t add_one(std::uint64_t* c) {
  return *c += 1;
}
[[gnu::transaction_safe, gnu::noinline]] std::uint64_t add_ten(std::uint64_t* c) {
  return *c += 10;
}
adder volatile adders[2] = {add_one, add_ten};

std::uint64_t call_through_pointer(std::uint64_t* counter, bool other) {
  const adder f = adders[other];
  std::uint64_t value;
  __transaction_atomic {
    value = f(counter);
  }
  return value;
}

void act(std::uint64_t* counter, bool cancels, void (*on_commit)(void*), void (*on_undo)(void*),
         void* argument) {
  __transaction_atomic {
    *counter += 1;
    _ITM_addUserCommitAction(on_commit, 1, argument);
    _ITM_addUserUndoAction(on_undo, argument);
    if (cancels) __transaction_cancel;
  }
}

}  // namespace stele::testing::itm
