// Strict serializability: four threads append to a few lists and read them, and the history is
// checked afterwards.
//
// In the pool a list is an array of fields, or a chain of nodes. The nodes are destroyed when the
// list is cut, so memory of a node gets another use while readers walk. A million transactions by
// default; STELE_TRANSACTIONS sets another count. STELE_SEED repeats a run's choices, but not its
// schedule.
#include <base/rng.h>
#include <tests/conformance/history_checker.h>
#include <tests/conformance/pools.h>

#include <chrono>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::size_t list_count = 6, longest = 12;
constexpr unsigned thread_count = 4;

struct array_list {
  field<std::uint64_t> first, length;
  field<std::uint64_t> elements[longest];

  void read_to(list_access& a) const {
    a.first = first;
    for (std::uint64_t i = 0, n = length; i < n; ++i) a.elements.push_back(elements[i]);
  }
  void append(std::uint64_t element) {
    if (length == longest) first += longest, length = 0;
    elements[length] = element;
    length += 1;
  }
};

struct node {
  field<std::uint64_t> element;
  field<node*> next;
  field<std::uint64_t> padding[20];  // several lines
};

struct node_list {
  field<std::uint64_t> first, length;
  field<node*> head, last;

  void read_to(list_access& a) const {
    a.first = first;
    for (const node* n = head; n != nullptr; n = n->next) a.elements.push_back(n->element);
  }
  void cut() {
    for (node* n = head; n != nullptr;) {
      node* const next = n->next;
      destroy(n);
      n = next;
    }
    first += length;
    length = 0;
    head = nullptr, last = nullptr;
  }
  void append(std::uint64_t element) {
    if (length == longest) cut();
    node* const n = make<node>();
    n->element = element;
    if (node* const before = last)
      before->next = n;
    else
      head = n;
    last = n;
    length += 1;
  }
};

template <class List>
struct lists {
  List list[list_count];
};

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

template <class List>
list_access read_list(const lists<List>& root, std::uint32_t which) {
  list_access a{.list = which, .elements = {}};
  root.list[which].read_to(a);
  return a;
}

// Reads a full list before it is cut, so that every element is seen.
template <class List>
void append_to(lists<List>& root, std::uint32_t which, std::uint64_t element,
               std::vector<list_access>& accesses) {
  if (root.list[which].length == longest) accesses.push_back(read_list(root, which));
  root.list[which].append(element);
  accesses.push_back({which, true, element, 0, {}});
}

// One thread's transactions: a third of them read several lists, the others mix reads and appends;
// a few are rolled back.
template <class List>
void work(pool<lists<List>>& p, std::uint64_t seed, unsigned thread, std::size_t count,
          unsigned ordered_in_8, std::vector<transaction_record>& history) {
  base::rng random(seed + thread);
  for (std::size_t i = 0; i < count; ++i) {
    transaction_record t;
    const std::uint64_t choices = random();
    t.invoked = now();
    if (choices % 3 == 0) {
      t.committed =
          p.read([&](const lists<List>& root) {
             t.accesses.clear();
             for (unsigned k = 0; k < 3; ++k)
               t.accesses.push_back(read_list(
                   root, static_cast<std::uint32_t>((choices >> (8 + 8 * k)) % list_count)));
           }).has_value();
    } else {
      t.committed =
          p.update(
               [&](lists<List>& root) {
                 t.accesses.clear();
                 for (unsigned k = 0; k < 3; ++k) {
                   const auto which =
                       static_cast<std::uint32_t>((choices >> (8 + 8 * k)) % list_count);
                   if ((choices >> (40 + k) & 1) != 0)
                     t.accesses.push_back(read_list(root, which));
                   else
                     append_to(root, which, ((i * thread_count + thread) << 2 | k) + 1, t.accesses);
                 }
                 if (choices >> 58 == 0) cancel("one in 64");
               },
               (choices >> 48) % 8 < ordered_in_8 ? durability::ordered : durability::durable)
              .has_value();
    }
    t.returned = now();
    history.push_back(std::move(t));
  }
}

template <class List>
std::vector<std::string> run_round(const setting& s, std::uint64_t seed, std::size_t count,
                                   unsigned ordered_in_8) {
  scratch_directory dir;
  auto p = open_pool<lists<List>>(dir.file("pool"), s.options(2u << 20));
  std::vector<transaction_record> histories[thread_count], whole;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < thread_count; ++t)
    threads.emplace_back(
        [&, t] { work(p, seed, t, count / thread_count, ordered_in_8, histories[t]); });
  for (auto& t : threads) t.join();
  for (auto& h : histories) std::ranges::move(h, std::back_inserter(whole));
  transaction_record last{.invoked = now(), .accesses = {}};
  last.committed = p.read([&](const lists<List>& root) {
                      last.accesses.clear();
                      for (std::uint32_t l = 0; l < list_count; ++l)
                        last.accesses.push_back(read_list(root, l));
                    }).has_value();
  last.returned = now();
  whole.push_back(std::move(last));
  (void)audit(p);
  EXPECT_GT(std::ranges::count_if(whole, &transaction_record::committed),
            static_cast<std::ptrdiff_t>(whole.size() * 9 / 10))
      << "too few to mean anything";
  return anomalies_of(whole);
}

struct share {
  setting where;
  unsigned thousandths;       // of all transactions
  unsigned ordered_in_8 = 0;  // of eight commits, how many are ordered
};

class serializability : public ::testing::TestWithParam<share> {};

TEST_P(serializability, histories_of_list_appends_are_strictly_serializable) {
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  const std::size_t all =
      count_from("STELE_TRANSACTIONS", 1'000'000) * GetParam().thousandths / 1000;
  constexpr std::size_t round = 40'000;
  for (std::size_t done = 0; done < all; done += round) {
    const std::size_t now_count = std::min(round, all - done);
    const auto& [where, thousandths, ordered_in_8] = GetParam();
    const auto wrong = (done / round) % 2 == 0
                           ? run_round<node_list>(where, seed + done, now_count, ordered_in_8)
                           : run_round<array_list>(where, seed + done, now_count, ordered_in_8);
    for (const std::string& sentence : wrong) ADD_FAILURE() << sentence;
    ASSERT_TRUE(wrong.empty());
  }
}

constexpr auto stm = concurrency::stm, single_writer = concurrency::single_writer;
const share shares[] = {
    {{"redo-async", "process", stm}, 400},
    {{"redo-async", "adr", stm}, 100},
    {{"redo", "adr", stm}, 80},
    {{"undo", "process", stm}, 80},
    {{"base", "eadr", stm}, 80},
    {{"redo-async", "delayed:100", stm}, 40},
    {{"redo-async", "file", stm}, 40},
    {{"none", "process", stm}, 40},
    {{"redo-async", "process", single_writer}, 100},
    {{"undo", "adr", single_writer}, 40},
    {{"base", "process", single_writer}, 40},
    {{"none", "process", single_writer}, 40},
    {{"default", "process", stm}, 80},
    {{"default", "process", stm}, 80, 8},
    {{"default", "adr", stm}, 80, 5},
    {{"default", "file", stm}, 80, 5},
    {{"default", "adr", single_writer}, 80, 5},
    {{"adaptive", "process", stm}, 40},
};

std::string share_name(const ::testing::TestParamInfo<share>& info) {
  const setting& s = info.param.where;
  std::string name = s.mechanism + "_on_" + s.media + "_by_" + name_of(s.policy);
  if (info.param.ordered_in_8 != 0)
    name += "_ordered_" + std::to_string(info.param.ordered_in_8) + "_in_8";
  std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(all, serializability, ::testing::ValuesIn(shares), share_name);

}  // namespace
}  // namespace stele::testing
