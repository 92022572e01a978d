// Tables of clones beside shared objects that come and go.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <utility>

extern "C" {
void _ITM_registerTMCloneTable(void* entries, std::size_t count);
void _ITM_deregisterTMCloneTable(void* entries);
void* _ITM_getTMCloneSafe(void* function);
}

namespace stele::testing::itm {
namespace {

std::array<char, 4> functions, clones;  // their addresses only

// A table of its own pages, as a shared object has it.
class loaded_table {
 public:
  loaded_table()
      : entries_(static_cast<entry*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < functions.size(); ++i)
      entries_[i] = {&functions[functions.size() - 1 - i], &clones[clones.size() - 1 - i]};
    _ITM_registerTMCloneTable(entries_, functions.size());
  }
  ~loaded_table() {
    _ITM_deregisterTMCloneTable(entries_);
    ::munmap(entries_, size);
  }
  loaded_table(const loaded_table&) = delete;
  loaded_table& operator=(const loaded_table&) = delete;

  // As when a reader is in the middle of it while the object is unloaded.
  void make_inaccessible() const { ASSERT_EQ(::mprotect(entries_, size, PROT_NONE), 0); }

 private:
  using entry = std::pair<void*, void*>;
  static constexpr std::size_t size = 4096;
  entry* const entries_;
};

// Each reader looked into the objects' own tables, also while they were unmapped.
TEST(itm_clones, are_looked_up_in_no_memory_of_a_shared_object) {
  for (int loads = 0; loads < 3; ++loads) {
    const loaded_table table;
    table.make_inaccessible();
    for (std::size_t i = 0; i < functions.size(); ++i)
      EXPECT_EQ(_ITM_getTMCloneSafe(&functions[i]), &clones[i]);
  }
}

TEST(itm_clones, of_an_unloaded_object_are_none) {
  {
    const loaded_table table;
  }
  EXPECT_DEATH((void)_ITM_getTMCloneSafe(&functions[0]), "without a transactional clone");
}

}  // namespace
}  // namespace stele::testing::itm
