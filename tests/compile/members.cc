// What an object in a pool may hold, one case for each number. A case without a comment compiles;
// the others are refused, and the compiler's message holds what the comment names.
#include <stele/coalescing.h>
#include <stele/map.h>
#include <stele/memory.h>
#include <stele/pool.h>
#include <stele/string.h>
#include <stele/vector.h>

#include <array>
#include <atomic>
#include <string>
#include <utility>

using stele::field;

template <class Root>
void opens() {
  static_cast<void>(stele::pool<Root>::open("pool"));
}

struct item {
  field<int> first;
  field<item*> second;
};
struct unsafe {
  field<int> first;
  int second;
};
struct made_with {
  explicit made_with(int v) : value(v) {}
  field<int> value;
};
struct no_word_for_it {
  stele::string text;
};

#if CASE == 0
void use() {
  struct root {
    using pool_resident = void;
    field<std::uint64_t> words[100'000];
    item links[3];
    std::array<field<int>, 7> numbers;
    stele::map<stele::string, stele::vector<int>> lists;
    stele::string names[4];
    stele::plain<double> hint;
  };
  opens<root>();
  stele::make<made_with>(1);
  stele::make_array<char>(100);
}
#elif CASE == 1   // plain member; field<T>; int
void use() {
  struct root {
    field<item*> head;
    int size;
  };
  opens<root>();
}
#elif CASE == 2   // plain pointer; field<T\*>; item ?\*
void use() {
  struct root {
    item* head;
  };
  opens<root>();
}
#elif CASE == 3   // plain member; unsafe; outer
void use() {
  struct outer {
    item fine;
    unsafe wrong;
  };
  stele::make<outer>();
}
#elif CASE == 4   // plain member; unsafe
void use() {
  struct outer {
    item fine;
    unsafe wrong[2];
  };
  stele::make_array<outer>(3);
}
#elif CASE == 5   // std types; basic_string
void use() {
  struct root {
    using pool_resident = void;
    std::string name;
  };
  opens<root>();
}
#elif CASE == 6   // std types; atomic
void use() {
  struct root {
    field<int> n;
    std::atomic<int> hits;
  };
  opens<root>();
}
#elif CASE == 7   // std types; pair
void use() {
  struct root {
    std::pair<field<int>, field<int>> n;
  };
  opens<root>();
}
#elif CASE == 8   // pool_resident; made_with
void use() {
  struct root {
    made_with n;
  };
  opens<root>();
}
#elif CASE == 9   // pool_resident; no_word_for_it
void use() {
  struct root {
    using pool_resident = void;
    no_word_for_it note;
  };
  opens<root>();
}
#elif CASE == 10  // pool_resident; no_word_for_it
void use() {
  struct root {
    using pool_resident = void;
    stele::vector<no_word_for_it> notes;
  };
  opens<root>();
}
#elif CASE == 11  // plain member; unsigned
void use() {
  struct root {
    field<int> n;
    unsigned bits : 3;
  };
  opens<root>();
}
#elif CASE == 12  // plain member; entry
void use() {
  struct entry {
    using pool_resident = void;
    stele::string name;
    int age;
  };
  struct root {
    using pool_resident = void;
    stele::vector<entry> entries;
  };
  [](root& r) { r.entries.emplace_back(); };
}
#elif CASE == 16  // plain member; entry
void use() {
  struct entry {
    using pool_resident = void;
    item x;
    int n;
  };
  struct root {
    using pool_resident = void;
    stele::map<int, stele::queue<entry>> entries;
  };
  [](root& r) { r.entries[0].emplace(); };
}
#elif CASE == 13  // plain member; tail
void use() {
  struct tail {
    field<std::uint64_t> words[900];
    int n;
  };
  opens<tail>();
}
#elif CASE == 14  // plain member; unsafe
void use() {
  stele::coalescing_memory::make<unsafe>();
}
#elif CASE == 15  // plain member; derived
void use() {
  struct base {};
  struct derived : base {
    long n;
  };
  opens<derived>();
}
#else
#error there is no such case
#endif
