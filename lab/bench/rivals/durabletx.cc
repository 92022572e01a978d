// One of the transactional memories of "Efficient Algorithms for Persistent Transactional Memory"
// (PPoPP 2021), from a checkout of pramalhe/durabletx: Quadra or Trinity.
//
// The build compiles this file once for each memory, whose header, namespace and class are macros.
// Each header keeps its pool in static variables, at fixed addresses, in files of fixed names and
// of a size that is a macro. Here the size comes from the environment, and the two system calls
// that name the files are replaced while the header is read: the files get no names, so that
// nothing is left when a process dies.
//
// Settings: the hash map is that of the checkout, TMHashMap. It starts with as many buckets as
// keys, so that it never grows; its hash of a number is the number, so that no two keys collide; an
// insertion searches twice. The ordered map is ours, because TMRedBlackTree of the checkout stores
// to every node of a path: it takes up to four times as long. Without a volatile replica a value
// is one word; with it, a value has any size. All pages are present before use.
#include <bench/rivals/durabletx.h>
#include <bench/rivals/red_black_tree.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <type_traits>

namespace stele::bench::durabletx {

void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(stderr);
  ::_exit(1);
}

inline std::string variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) give_up(std::string("the variable is not set: ") + name);
  return text;
}

// The size of the pool. Read before main.
inline std::size_t region_bytes() {
  static const std::size_t bytes = std::stoull(variable("STELE_REGION_BYTES"));
  return bytes;
}

// A file without a name, of the pool's size; its descriptor.
inline int unnamed_file() {
  const std::string dir = variable("STELE_REGION_DIR");
  const int fd = ::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) give_up("cannot make a file in " + dir + ": " + std::strerror(errno));
  if (const int why = ::posix_fallocate(fd, 0, static_cast<off_t>(region_bytes())); why != 0)
    give_up("no room for " + std::to_string(region_bytes()) + " bytes in " + dir + ": " +
            std::strerror(why));
  return fd;
}

}  // namespace stele::bench::durabletx

namespace STELE_PTM_NAMESPACE {
struct OpData;
[[noreturn]] void abortTx(OpData* transaction);  // a header repeats this without the attribute
}  // namespace STELE_PTM_NAMESPACE

#define PM_REGION_SIZE ::stele::bench::durabletx::region_bytes()
#define stat(path, buffer) (static_cast<void>(buffer), -1)
#define open(...) ::stele::bench::durabletx::unnamed_file()
#include STELE_PTM_HEADER
#undef open
#undef stat
#include <pdatastructures/TMHashMap.hpp>

namespace stele::bench::durabletx {
namespace {

namespace ptm = STELE_PTM_NAMESPACE;
using memory = ptm::STELE_PTM_CLASS;
template <class T>
using field = ptm::persist<T>;
using workloads::operation;
using kind = operation::kind;

#ifdef STELE_PTM_HAS_REPLICA  // addresses are of the replica, each 24 bytes of which are a line
constexpr bool has_replica = true;
std::uint64_t pool_offset(const void* at) {
  return static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(at) - ptm::VREGION_ADDR) / 24 *
         64;
}
#else
constexpr bool has_replica = false;
std::uint64_t pool_offset(const void* at) {
  return reinterpret_cast<std::uint64_t>(at) - PM_REGION_BEGIN;
}
#endif

template <class Body>
void update(bool sequential, Body& body) {
  sequential ? memory::updateTxSeq(body) : memory::updateTx(body);
}
template <class Body>
void read_only(bool sequential, Body& body) {
  sequential ? memory::readTxSeq(body) : memory::readTx(body);
}

template <std::size_t N>
struct bytes_of {
  std::uint64_t words[N / 8];
};
template <std::size_t N>
using value_of_size = std::conditional_t<N == 8, std::uint64_t, bytes_of<N>>;

template <class Value>
Value value_of(std::uint64_t word) {
  Value v;
  for (std::size_t i = 0; i < sizeof v; i += 8)
    std::memcpy(reinterpret_cast<char*>(&v) + i, &word, 8);
  return v;
}
template <class Value>
std::uint64_t first_word(const Value& v) {
  std::uint64_t word = 0;
  std::memcpy(&word, &v, sizeof word);
  return word;
}
template <class Value>
bool repeats_a_word(const Value& v) {
  const Value wanted = value_of<Value>(first_word(v));
  return std::memcmp(&v, &wanted, sizeof v) == 0;
}
// Reads all words, as a reader that copies the value.
template <class Value>
void use(const Value& v) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof v; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&v) + i, 8);
    sum += word;
  }
  asm volatile("" : : "r"(sum));
}

// Runs the operations of a transaction on Derived, by read() and change().
template <class Derived>
class structure_of : public structure {
 public:
  structure_of(std::uint64_t keys, bool sequential) : keys_(keys), sequential_(sequential) {}

  void apply(const operation* operations, std::size_t count) final {
    auto& self = static_cast<Derived&>(*this);
    struct {
      const operation* first;
      const operation* end;
    } const range = {operations, operations + count};
    auto body = [&self, &range] {
      for (const operation* op = range.first; op != range.end; ++op)
        op->what == kind::read ? self.read(*op) : self.change(*op);
    };
    bool reads = true;
    for (const operation* op = range.first; op != range.end; ++op)
      reads = reads && op->what == kind::read;
    reads ? read_only(sequential_, body) : update(sequential_, body);
  }
  bool set_up() final {
    auto& self = static_cast<Derived&>(*this);
    auto body = [&self] { self.make(); };
    update(sequential_, body);
    return self.made();
  }
  bool is_valid() final {
    auto& self = static_cast<Derived&>(*this);
    bool valid = true;
    auto body = [&self, &valid] { valid = self.all_valid(); };
    read_only(sequential_, body);
    return valid;
  }
  std::uint64_t digest() override { return 0; }
  std::uint64_t space_bytes() final {
    void* fresh = nullptr;
    auto body = [&fresh] { fresh = memory::tmMalloc(std::size_t{5} << 20); };
    update(sequential_, body);
    return fresh == nullptr ? region_bytes() : pool_offset(fresh);
  }

 protected:
  const std::uint64_t keys_;
  const bool sequential_;
};

template <class Value>
class array_of_elements final : public structure_of<array_of_elements<Value>> {
 public:
  using structure_of<array_of_elements>::structure_of;
  using structure_of<array_of_elements>::keys_;

  void make() {
    elements_ = static_cast<field<Value>*>(memory::tmMalloc(keys_ * sizeof(field<Value>)));
  }
  bool made() const { return elements_ != nullptr; }
  void change(const operation& op) {
    if (op.what == kind::put) {
      elements_[op.a] = value_of<Value>(op.b);
      return;
    }
    const Value a = elements_[op.a], b = elements_[op.b];
    elements_[op.a] = b;
    elements_[op.b] = a;
  }
  void read(const operation& op) {
    const Value v = elements_[op.a];
    use(v);
  }
  bool all_valid() {
    for (std::uint64_t i = 0; i < keys_; ++i) {
      const Value v = elements_[i];
      if (!repeats_a_word(v)) return false;
    }
    return true;
  }
  std::uint64_t digest() override {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < keys_; ++i) {
      const Value v = elements_[i];
      sum += first_word(v) * (first_word(v) | 1);
    }
    return sum;
  }

 private:
  field<Value>* elements_ = nullptr;
};

template <class Value>
class hash_map final : public structure_of<hash_map<Value>> {
  using map_type = TMHashMap<std::uint64_t, Value, memory, ptm::persist>;

 public:
  using structure_of<hash_map>::structure_of;
  using structure_of<hash_map>::keys_;

  void make() {
    std::uint64_t buckets = 1;
    while (buckets < keys_) buckets *= 2;
    map_ = memory::template tmNew<map_type>(buckets);
  }
  bool made() const { return map_ != nullptr; }
  void change(const operation& op) {
    Value unused;
    if (op.what == kind::toggle && map_->innerRemove(op.a, unused, false)) return;
    map_->innerPut(op.a, value_of<Value>(op.b), unused, false);
  }
  void read(const operation& op) {
    Value v;
    if (map_->innerGet(op.a, v, true)) use(v);
  }
  bool all_valid() {
    Value v;
    for (std::uint64_t key = 0; key < keys_; ++key)
      if (map_->innerGet(key, v, true) && !repeats_a_word(v)) return false;
    return true;
  }

 private:
  map_type* map_ = nullptr;  // in the pool
};

template <class Value>
struct tree_node {
  field<std::uint64_t> key;
  field<Value> value;
  field<std::uint64_t> up;  // the parent's address; lowest bit set when this node is red
  field<tree_node*> child[2];

  tree_node(std::uint64_t k, const Value& v, const tree_node* parent) : key(k), value(v) {
    up = reinterpret_cast<std::uint64_t>(parent) | 1;
    child[0] = nullptr;
    child[1] = nullptr;
  }
};

template <class Value>
class ordered_map final : public structure_of<ordered_map<Value>>,
                          red_black_tree<ordered_map<Value>, tree_node<Value>> {
  using node = tree_node<Value>;
  using tree = red_black_tree<ordered_map<Value>, node>;
  friend tree;

 public:
  using structure_of<ordered_map>::structure_of;
  using structure_of<ordered_map>::keys_;

  void make() {
    root_ = static_cast<field<node*>*>(memory::tmMalloc(sizeof(field<node*>)));
    if (root_ != nullptr) *root_ = nullptr;
  }
  bool made() const { return root_ != nullptr; }
  void change(const operation& op) {
    const auto at = tree::position_of(op.a);
    if (at.found == nullptr) {
      const Value v = value_of<Value>(op.b);
      tree::insert(memory::template tmNew<node>(op.a, v, at.parent), at.parent);
    } else if (op.what == kind::toggle) {
      tree::erase(at.found);
      memory::tmDelete(at.found);
    }
  }
  void read(const operation& op) {
    const auto at = tree::position_of(op.a);
    if (at.found == nullptr) return;
    const Value v = at.found->value;
    use(v);
  }
  bool all_valid() {
    for (std::uint64_t key = 0; key < keys_; ++key) {
      const auto at = tree::position_of(key);
      if (at.found == nullptr) continue;
      const Value v = at.found->value;
      if (!repeats_a_word(v)) return false;
    }
    return tree::is_valid();
  }

 private:
  static std::uint64_t key(const node* n) { return n->key; }
  static node* child(const node* n, bool side) { return n->child[side]; }
  static node* parent(const node* n) {
    return reinterpret_cast<node*>(std::uint64_t{n->up} & ~std::uint64_t{1});
  }
  static bool red(const node* n) { return (n->up & 1) != 0; }
  node* top() const { return *root_; }
  static void set_child(node* n, bool side, node* c) { n->child[side] = c; }
  static void set_parent(node* n, node* p) {
    n->up = reinterpret_cast<std::uint64_t>(p) | (n->up & 1);
  }
  static void set_red(node* n, bool) { n->up = n->up ^ 1; }
  void set_top(node* n) { *root_ = n; }

  field<node*>* root_ = nullptr;  // in the pool
};

template <std::size_t N>
std::unique_ptr<structure> make_sized(const std::string& workload, std::uint64_t keys,
                                      std::size_t value_size, bool sequential) {
  using value = value_of_size<N>;
  if constexpr (has_replica && N < 4096)
    if (value_size != N) return make_sized<2 * N>(workload, keys, value_size, sequential);
  if (workload == "sps") return std::make_unique<array_of_elements<value>>(keys, sequential);
  if (workload == "hash") return std::make_unique<hash_map<value>>(keys, sequential);
  return std::make_unique<ordered_map<value>>(keys, sequential);
}

}  // namespace

std::unique_ptr<structure> make_structure(const std::string& workload, std::uint64_t keys,
                                          std::size_t value_size, bool sequential) {
  return make_sized<8>(workload, keys, value_size, sequential);
}
std::string memory_name() {
  return memory::className();
}

}  // namespace stele::bench::durabletx
