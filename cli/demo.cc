// stele demo: indexes a real text from two threads, kills the process with SIGKILL at a random
// moment, and recovers in a new process. Checks that every acknowledged line is there and that no
// transaction is torn. Then finishes the index and compares mechanisms.
#include <bench/compare.h>
#include <cli/command.h>
#include <cli/output.h>
#include <cli/scratch.h>
#include <cli/text_index.h>
#include <fmt/color.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <tx/inspect.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using clock = std::chrono::steady_clock;

// The stream for the text output: standard output, or standard error when JSON goes to standard
// output.
std::FILE* text_output = stdout;

struct options {
  std::string input, dir, json, mechanism = "default", media = "adr";
  std::uint64_t seed = 0;
  bool no_compare = false, wide = false;
};

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// Bold when standard output is a terminal.
std::string bold(const std::string& text) {
  return isatty(STDOUT_FILENO) != 0 ? fmt::format(fmt::emphasis::bold, "{}", text) : text;
}

void step(int number, const std::string& what) {
  fmt::print(text_output, "\n{}  {}\n", bold(fmt::format("{}", number)), what);
}

// A bar of 40 characters.
std::string bar(double share) {
  constexpr int width = 40;
  std::string out;
  for (int i = 0; i < width; ++i) out += i < share * width ? "█" : "░";
  return out;
}

// The process that indexes, with the lines that it acknowledged through its pipe, by thread.
struct indexer_process {
  pid_t pid = -1;
  int pipe = -1;
  acknowledged lines{};
};

indexer_process start_indexer(const options& o, const text& t, const std::string& pool) {
  int ends[2];
  if (::pipe(ends) != 0) fail("cannot make a pipe");
  std::fflush(nullptr);
  indexer_process d{::fork(), ends[0], {}};
  if (d.pid < 0) fail("cannot start a process");
  if (d.pid != 0) {
    ::close(ends[1]);
    return d;
  }
  ::close(ends[0]);
  const auto done =
      index_text(t, pool, o.mechanism, o.media, [&](unsigned thread, std::uint64_t line) {
        const acknowledgement a{thread, line};
        if (::write(ends[1], &a, sizeof a) != sizeof a) ::_exit(2);
      });
  if (!done) print_error("stele: {}\n", done.error().message);
  ::_exit(done ? 0 : 1);
}

// Reads `lines` acknowledgements, then kills the process. Then reads the acknowledgements that were
// still in the pipe.
void kill_at(indexer_process& d, std::uint64_t lines) {
  acknowledgement a{};
  std::uint64_t seen = 0;
  while (seen < lines && ::read(d.pipe, &a, sizeof a) == sizeof a)
    d.lines[a.thread] = a.line + 1, ++seen;
  ::kill(d.pid, SIGKILL);
  while (::read(d.pipe, &a, sizeof a) == sizeof a) d.lines[a.thread] = a.line + 1;
  ::close(d.pipe);
  int status = 0;
  ::waitpid(d.pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    fail("the indexing process failed before it could be killed");
}

void compare(const options& o, nlohmann::json& out) {
  bench::comparison c;
  c.what.workload = "hash";
  c.what.policy = concurrency::single_writer;
  c.what.media = o.media;
  c.what.dir = o.dir;
  c.what.parameters.keys = std::size_t{1} << 18;
  c.mechanisms = {"none", "base", "undo", "redo", "redo-async", "blurred", "default"};
  c.rivals = bench::rivals_for(c.what.workload);
  c.runs = 5;
  c.seconds = 0.25;
  c.cancelled = interrupted;
  const auto report = bench::compare(c);
  if (!report) fail(report.error());
  fmt::print(text_output, "{}",
             bench::table_of(*report, "none",
                             o.wide ? bench::table_width::wide : bench::table_width::narrow));
  out["comparison"] = bench::json_of(*report);
}

void finish_index(const options& o, const text& t, const std::string& pool) {
  step(4, "Finish the job.");
  const auto begin = clock::now();
  if (const auto done = index_text(t, pool, o.mechanism, o.media, [](unsigned, std::uint64_t) {});
      !done)
    fail(done.error());
  const acknowledged all = all_lines(t);
  const auto final_check = verify_in_new_process(t, pool, o.mechanism, o.media, all);
  if (!final_check) fail(final_check.error());
  fmt::print(text_output,
             "     {}  {} lines, {} words, in {:.1f} s more; checked again, all there\n", bar(1),
             final_check->lines, final_check->words, seconds_since(begin));
  const auto sound = detail::check_pool(pool);
  if (!sound) fail(sound.error());
  fmt::print(text_output, "     {} blocks of the heap in use, and used and free tile it\n",
             sound->heap.used_blocks);
}

void run(options& o) {
  o.dir = enter_scratch(!o.dir.empty() ? o.dir : folder_in_memory());
  if (o.seed == 0) o.seed = static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
  const std::string pool = o.dir + "/demo.stele";
  if (o.json == "-") text_output = stderr;
  nlohmann::json out;
  fmt::print(text_output, "{}\n", bold("Stele: an index that survives kill -9"));

  const auto t = read_text(o.input);
  if (!t) fail(t.error());
  step(1, fmt::format("Read {}: {:.1f} MB, {} lines, {} words, {} of them different.", t->path,
                      static_cast<double>(t->bytes) / 1e6, t->lines.size(), t->words, t->distinct));
  step(2, fmt::format(
              "Index it into {} from two threads: one durable transaction a line ({}, media {}).",
              pool, o.mechanism, o.media));
  base::rng random(o.seed);
  const std::uint64_t kill_after_lines = t->lines.size() / 5 + random.below(t->lines.size() / 2);
  indexer_process d = start_indexer(o, *t, pool);
  auto begin = clock::now();
  kill_at(d, kill_after_lines);
  const std::uint64_t acknowledged_lines = d.lines[0] + d.lines[1];
  fmt::print(
      text_output,
      "     {}  killed with SIGKILL after {} lines were acknowledged ({:.0f} lines/s, seed {})\n",
      bar(static_cast<double>(acknowledged_lines) / static_cast<double>(t->lines.size())),
      acknowledged_lines, static_cast<double>(acknowledged_lines) / seconds_since(begin), o.seed);

  step(3, "Open it in a new process.");
  if (const auto info = detail::info_of(pool); info && info->left_open)
    fmt::print(text_output, "     the pool says that nobody closed it; recovery reads its logs\n");
  const auto verification = verify_in_new_process(*t, pool, o.mechanism, o.media, d.lines);
  if (!verification) fail(verification.error());
  fmt::print(
      text_output,
      "     recovered and opened in {:.1f} ms; {} lines are in the index, {} were acknowledged\n",
      verification->open_seconds * 1e3, verification->lines, acknowledged_lines);
  fmt::print(text_output,
             "     every one of {} words has exactly the count and last line that those lines "
             "give: nothing lost, nothing torn\n",
             verification->words);

  finish_index(o, *t, pool);
  out["text"] = {{"path", t->path},
                 {"bytes", t->bytes},
                 {"lines", t->lines.size()},
                 {"distinct_words", t->distinct}};
  out["crash"] = {{"acknowledged_lines", acknowledged_lines},
                  {"recovered_lines", verification->lines},
                  {"open_ms", verification->open_seconds * 1e3},
                  {"seed", o.seed}};
  if (!o.no_compare) {
    step(5,
         "What durability costs here: hash map, one insert or delete a transaction, one thread, "
         "runs in turn.\n");
    compare(o, out);
  }
  if (!o.json.empty()) write_json(o.json, out);
}

}  // namespace

void add_demo(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* command =
      app.add_subcommand("demo", "index a real text, be killed, recover, finish, compare");
  command->add_option("--input", o->input,
                      "a text of at least 1 MB; default: one of this machine's own files");
  command->add_option("--dir", o->dir,
                      "where the pool is created and removed again; default /dev/shm");
  command->add_option("--mechanism", o->mechanism, "as in `stele compare`")->capture_default_str();
  command->add_option("--media", o->media, "as in `stele compare`")->capture_default_str();
  command->add_option("--seed", o->seed, "of the moment of death; default: the clock");
  command->add_flag("--no-compare", o->no_compare, "leave the comparison out");
  command->add_flag("--wide", o->wide, "all columns of the comparison");
  command->add_option("--json", o->json, "write the figures to FILE");
  command->callback([o] { run(*o); });
}

}  // namespace stele::cli
