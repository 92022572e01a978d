// The protocol of contenders in processes of their own, and what happens when such a process ends.
#include <bench/child_process.h>
#include <bench/contender_process.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <thread>

namespace stele::bench {
namespace {

using testing::HasSubstr;

TEST(contender_process, a_task_survives_the_way_to_the_process) {
  task t;
  t.workload = "hash";
  t.parameters.value_size = 64;
  t.parameters.keys = 12345;
  t.parameters.read_share = 0.1;
  t.parameters.choice = workloads::key_choice::zipf;
  t.parameters.zipf_theta = 0.7;
  t.parameters.seed = 3;
  t.ops_per_tx = 4;
  t.threads = 5;
  t.seed = 6;
  t.idle_share = 0.25;
  const auto there = task_from(words_of(t));
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(words_of(*there), words_of(t));
  EXPECT_EQ(there->parameters.choice, workloads::key_choice::zipf);
  EXPECT_EQ(there->parameters.read_share, 0.1);
  EXPECT_FALSE(task_from("task sps 8"));
}

TEST(contender_process, a_measurement_keeps_its_latencies) {
  measurement m;
  m.transactions = 1'000'000;
  m.seconds = 0.123456789;
  for (std::uint64_t ns = 1; ns < 1'000'000; ns = ns * 3 / 2 + 1)
    m.latency_ns.record(ns, ns % 7 + 1);
  const auto back = measurement_from(words_of(m));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->transactions, m.transactions);
  EXPECT_EQ(back->seconds, m.seconds);
  EXPECT_EQ(back->latency_ns.count(), m.latency_ns.count());
  for (const double percent : {1.0, 50.0, 99.9})
    EXPECT_EQ(back->latency_ns.percentile(percent), m.latency_ns.percentile(percent));
  EXPECT_FALSE(measurement_from("1 0.5 77-1"));
}

class stub final : public contender {
 public:
  std::string name() const override { return "stub"; }
  std::string media() const override { return "adr"; }
  durability_level durability() const override { return durability_level::none; }
  result<> set_up() override { return std::unexpected(error{errc::full, "no\nroom"}); }
  result<measurement> run(double seconds) override {
    measurement m;
    m.seconds = seconds;
    return m;
  }
  footprint space() override { return {4096, 0}; }
};

TEST(contender_process, serves_requests_until_the_socket_closes) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  int status = -1;
  std::thread served([&] {
    status = serve_contender(
        ends[1], [](const task&) -> contender_result { return std::make_unique<stub>(); });
  });
  {
    line_socket lines(ends[0]);
    const auto answer = [&](const std::string& request) {
      return lines.send(request) ? lines.receive().value_or("closed") : "closed";
    };
    EXPECT_THAT(answer("space"), HasSubstr("before the task"));
    EXPECT_EQ(answer(words_of(task{})), "ok");
    EXPECT_THAT(answer("set_up"), HasSubstr("no room"));
    EXPECT_EQ(answer("run 0.5"), "ok 0 0.5");
    EXPECT_EQ(answer("space"), "ok 4096");
    EXPECT_EQ(answer("check"), "ok");
    EXPECT_THAT(answer("dance"), HasSubstr("not understood: 'dance'"));
  }
  served.join();
  EXPECT_EQ(status, 0);
}

result<> set_up_of(const std::string& shell_command) {
  const auto made = make_contender_process(task{}, {"rival", "adr", durability_level::process},
                                           {"/bin/sh", {"-c", shell_command}, {"PATH=/bin"}, {}});
  return made->set_up();
}

TEST(contender_process, a_process_that_ends_leaves_its_last_words) {
  const auto ended = set_up_of("echo first; echo the pool is too small >&2; exit 3");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, errc::io);
  EXPECT_THAT(ended.error().message, HasSubstr("status 3"));
  EXPECT_THAT(ended.error().message, HasSubstr("'the pool is too small'"));
  EXPECT_THAT(set_up_of("kill -9 $$").error().message, HasSubstr("signal 9"));
}

TEST(contender_process, a_program_that_is_not_there_is_named) {
  const auto made = make_contender_process(task{}, {}, {"/nonesuch/program", {}, {}, {}});
  const auto started = made->set_up();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("/nonesuch/program"));
  EXPECT_THAT(started.error().message, HasSubstr("cannot be started"));
}

TEST(contender_process, removes_the_folder_of_its_files) {
  const std::string folder = testing::TempDir() + "contender-process";
  std::filesystem::create_directory(folder);
  make_contender_process(task{}, {}, {"/bin/true", {}, {}, folder});
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace stele::bench
