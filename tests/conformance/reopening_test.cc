// The content of a pool when it is opened again: after a close or after its process died, by the
// same mechanism or another.
//
// A child process works on the pool, reports each acknowledged commit to its parent, and dies by
// _exit or SIGKILL. A pair of words in different lines is equal after every commit, so half a
// transaction is noticed.
#include <base/mutant.h>
#include <fcntl.h>
#include <media/os.h>
#include <sys/stat.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>

namespace stele::testing {
namespace {

struct state {
  field<std::uint64_t> first;
  field<std::uint64_t> filler[40];
  field<std::uint64_t> last;
  // Each commit makes a new object and destroys the previous one.
  field<field<std::uint64_t>*> latest;
};

// Commits n: both words and the object hold it.
result<> commit_number(const pool<state>& p, std::uint64_t n) {
  return const_cast<pool<state>&>(p).update([&](state& s) {
    s.first = n;
    for (std::size_t i = 0; i < n % 40; ++i) s.filler[i] = n;
    destroy(s.latest.load());
    auto* fresh = make<field<std::uint64_t>>();
    *fresh = n;
    s.latest = fresh;
    s.last = n;
  });
}

// The number of the pool's state; fails the test when the state is not complete.
std::uint64_t number_of(const pool<state>& p) {
  auto got = p.read([](const state& s) -> result<std::uint64_t> {
    const std::uint64_t n = s.first;
    if (s.last != n) return std::unexpected(error{errc::corrupt, "the pair differs"});
    if (n != 0 && *s.latest.load() != n)
      return std::unexpected(error{errc::corrupt, "the object differs"});
    return n;
  });
  EXPECT_TRUE(succeeds(got));
  EXPECT_EQ(audit(p).used_blocks, got.value_or(0) == 0 ? 1u : 2u)
      << "a block is lost, or one too many is there";
  return got.value_or(~0u);
}

void die_after(const setting& s, const std::string& path, std::uint64_t commits) {
  child worker([&](const word_sender& send) {
    auto p = open_pool<state>(path, s.options());
    const std::uint64_t begin = number_of(p);
    for (std::uint64_t n = begin + 1; n <= begin + commits; ++n)
      if (commit_number(p, n)) send(n);
    ::_exit(0);  // no destructor, no close
  });
  worker.drain(0);
  ASSERT_EQ(worker.wait(), 0);
}

class reopening : public on_every_setting {};

TEST_P(reopening, a_closed_pool_holds_what_it_held) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    for (std::uint64_t n = 1; n <= 20; ++n) {
      auto p = open_pool<state>(dir.file("pool"), s.options());
      ASSERT_EQ(number_of(p), n - 1);
      ASSERT_TRUE(succeeds(commit_number(p, n)));
      if (n % 2 == 0) {
        ASSERT_TRUE(succeeds(p.close()));
        EXPECT_TRUE(fails_with(commit_number(p, 99), errc::invalid_argument))
            << "a closed pool takes no transaction";
        EXPECT_TRUE(succeeds(p.close())) << "closing twice is nothing";
      }
    }
  });
}

TEST_P(reopening, a_pool_whose_process_died_holds_every_acknowledged_commit) {
  if (std::get<0>(GetParam()) == "none") GTEST_SKIP() << "none promises nothing after a crash";
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    std::uint64_t expected = 0;
    for (const std::uint64_t commits : {1u, 5u, 100u, 0u, 700u}) {
      die_after(s, dir.file("pool"), commits);
      expected += commits;
      if (commits == 5) continue;  // the next process recovers it
      auto p = open_pool<state>(dir.file("pool"), s.options());
      ASSERT_EQ(number_of(p), expected);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(all, reopening,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::ValuesIn(all_media())),
                         setting_name);

class handing_over : public ::testing::TestWithParam<std::string> {};

// Every mechanism takes over from every other one, which closed the pool or died with it, on the
// same or another medium.
TEST_P(handing_over, every_other_mechanism_goes_on_where_this_one_ended) {
  for (const std::string& next : all_mechanisms())
    for (const bool dies : {false, true}) {
      if ((dies && GetParam() == "none") || !share_pools(GetParam(), next)) continue;
      SCOPED_TRACE(next + (dies ? " after a crash" : " after a close"));
      scratch_directory dir;
      std::uint64_t n = 0;
      for (const char* media : {"process", "file", "adr"}) {
        const setting from{GetParam(), media}, to{next, media};
        if (dies) {
          die_after(from, dir.file("pool"), 150);
          n += 150;
        } else {
          auto p = open_pool<state>(dir.file("pool"), from.options());
          for (int i = 0; i < 150; ++i) ASSERT_TRUE(succeeds(commit_number(p, ++n)));
        }
        auto p = open_pool<state>(dir.file("pool"), to.options());
        ASSERT_EQ(number_of(p), n);
        for (int i = 0; i < 150; ++i) ASSERT_TRUE(succeeds(commit_number(p, ++n)));
      }
      ASSERT_EQ(number_of(open_pool<state>(dir.file("pool"), setting{"", "process"}.options())), n);
    }
}

TEST_P(handing_over, this_one_may_die_in_a_pool_that_default_made) {
  if (GetParam() == "none" || !share_pools(GetParam(), "default"))
    GTEST_SKIP() << "it promises nothing, or has pools of another kind";
  scratch_directory dir;
  const std::string path = dir.file("pool");
  {
    auto made = open_pool<state>(path, setting{"default", "process"}.options());
  }
  for (std::uint64_t n : {150, 300}) {
    die_after({GetParam(), "process"}, path, 150);
    ASSERT_EQ(number_of(open_pool<state>(path, setting{"default", "process"}.options())), n);
  }
}

// The alignment gives each a chunk of its own, which is free with it.
struct alignas(128) many_words {
  field<std::uint64_t> of[368];
};
struct holder {
  field<many_words*> kept[8];
};

// Allocates objects and writes this many words of each; the other words keep their old content.
void take(pool<holder>& p, std::size_t words) {
  ASSERT_TRUE(succeeds(p.update([&](holder& h) {
    for (auto& kept : h.kept) {
      auto* const fresh =
          static_cast<many_words*>(detail::allocate(sizeof(many_words), alignof(many_words)));
      for (std::size_t i = 0; i < words; ++i) fresh->of[i] = 7 * i + 1;
      kept = fresh;
    }
  })));
}
void free_all(pool<holder>& p) {
  ASSERT_TRUE(succeeds(p.update([](holder& h) {
    for (auto& kept : h.kept) detail::deallocate(kept.load()), kept = nullptr;
  })));
}

// In one session a mechanism writes to chunks and frees them, then closes or dies. In the next,
// `default` allocates those chunks and writes few words. Returns whether the check then finds no
// damage.
bool is_no_damage_what_was_freed(const std::string& mechanism, bool dies) {
  scratch_directory dir;
  const auto open = [&](const std::string& by) {
    pool_options o = setting{by, "process"}.options();
    o.engine.block_checksums = checksums::on;
    return open_pool<holder>(dir.file("pool"), o);
  };
  {
    auto created = open("default");
  }
  const auto use = [&] {
    auto p = open(mechanism);
    take(p, std::size(many_words{}.of));
    free_all(p);
    if (dies) ::_exit(0);
  };
  if (dies) {
    child worker([&](const word_sender&) { use(); });
    EXPECT_EQ(worker.wait(), 0);
  } else {
    use();
  }
  {
    auto p = open("default");
    take(p, 1);
  }
  return detail::check_pool(dir.file("pool")).has_value();
}

TEST_P(handing_over, what_this_one_freed_is_no_damage_when_default_takes_it) {
  if (!share_pools(GetParam(), "default")) GTEST_SKIP() << "it has pools of another kind";
  EXPECT_TRUE(is_no_damage_what_was_freed(GetParam(), false)) << "closed";
  if (GetParam() == "none") return;  // it promises nothing after a crash
  EXPECT_TRUE(is_no_damage_what_was_freed(GetParam(), true)) << "died";
}

TEST(handing_over_sums, of_free_chunks_that_stay_are_noticed) {
  if (known_of({"archapt-undo"}).empty()) GTEST_SKIP() << "needs stele::published";
  base::planted_mutant = base::mutant::sums_free_stay;
  EXPECT_FALSE(is_no_damage_what_was_freed("archapt-undo", false));
  base::planted_mutant = base::mutant::none;
}

INSTANTIATE_TEST_SUITE_P(all, handing_over, ::testing::ValuesIn(all_mechanisms()),
                         [](const auto& one) { return "from_" + plain_name(one); });

// A record longer than its log lies in chunks of the heap; recovery must find it there.
class crash_with_spilled_records : public ::testing::TestWithParam<std::string> {};

TEST_P(crash_with_spilled_records, keeps_acknowledged_commits) {
  struct wide {
    field<std::uint64_t> words[4096];
  };
  for (const char* media : {"process", "file", "adr"}) {
    SCOPED_TRACE(media);
    scratch_directory dir;
    auto options = setting{GetParam(), media}.options(2u << 20);
    options.engine.log_size = 4096, options.engine.log_count = 2;
    child worker([&](const word_sender& send) {
      auto p = open_pool<wide>(dir.file("pool"), options);
      for (std::uint64_t n = 1; n <= 20; ++n) {
        auto done = p.update([&](wide& w) {
          for (std::size_t i = 0; i < (n % 3 == 0 ? 10u : 4096u); ++i) w.words[i] = n;
        });
        if (done) send(n);
      }
      ::_exit(0);
    });
    ASSERT_EQ(worker.drain(0), 20u);
    ASSERT_EQ(worker.wait(), 0);
    auto p = open_pool<wide>(dir.file("pool"), options);
    auto right = p.read([](const wide& w) {
      for (std::size_t i = 0; i < 4096; ++i)
        if (w.words[i] != 20) return false;
      return true;
    });
    EXPECT_TRUE(right.value_or(false));
    EXPECT_EQ(audit(p).used_blocks, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(all, crash_with_spilled_records, ::testing::ValuesIn(durable_mechanisms()),
                         plain_name);

// Opening reserves the file's space again only where some is missing: in memory the system looks at
// each page of the file for that. What readers share lies on no such device.
class counts_reservations final : public media::os::syscall_hook {
 public:
  explicit counts_reservations(const std::string& folder) {
    struct stat status = {};
    EXPECT_EQ(::stat(folder.c_str(), &status), 0);
    device_ = status.st_dev;
    media::os::install_hook(this);
  }
  ~counts_reservations() override { media::os::install_hook(nullptr); }
  void after(const media::os::request& r) noexcept override {
    struct stat status = {};
    if (r.what == media::os::call::fallocate && ::fstat(r.fd, &status) == 0 &&
        status.st_dev == device_)
      ++count;
  }
  unsigned count = 0;

 private:
  dev_t device_ = 0;
};

TEST(space_of_a_pool, is_reserved_again_only_where_it_is_missing) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  if (!path.starts_with("/dev/shm")) GTEST_SKIP() << "needs a memory file system";
  const auto opened_with_reservations = [&] {
    const counts_reservations seen(dir.file(""));
    auto p = open_pool<state>(path, {.create_size = 1u << 20});
    EXPECT_TRUE(succeeds(commit_number(p, number_of(p) + 1)));
    return seen.count;
  };
  EXPECT_EQ(opened_with_reservations(), 1u) << "a new file";
  EXPECT_EQ(opened_with_reservations(), 0u);
  {
    const int fd = ::open(path.c_str(), O_RDWR);
    struct stat status = {};
    ASSERT_EQ(::fstat(fd, &status), 0);
    ASSERT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          status.st_size / 4096 * 4096 - 8192, 8192),
              0);
    ::close(fd);
  }
  EXPECT_EQ(opened_with_reservations(), 1u) << "a file with a hole";
  EXPECT_EQ(opened_with_reservations(), 0u);
}

}  // namespace
}  // namespace stele::testing
