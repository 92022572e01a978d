// stele-foreign, the program that `stele-lab crash foreign` executes: records a program that does
// not link Stele, and judges the crash states of its pool with the user's checker.
#include <cli/command.h>
#include <cli/output.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <foreign/foreign_report.h>
#include <foreign/recorder.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

namespace stele::cli {
namespace {

namespace fs = std::filesystem;
using namespace foreign;

struct options {
  record_settings what;
  check_settings check;
  explore_settings how;
  std::string recording, line, image, json, dir = folder_in_memory();
  double timeout_s = 30;
};

std::FILE* text_output(const options& o) {
  return o.json == "-" ? stderr : stdout;
}

std::string replay_command(const options& o, const std::string& recording, const state_line& line) {
  return fmt::format("stele-lab crash foreign --trace {} --check {} --replay '{}'",
                     shell_quoted(recording), shell_quoted(o.check.command), line.text());
}

void show_progress(const findings& f) {
  print_error("\r\033[K{}/{} crash points, {} states, {} violations", f.points, f.points_total,
              f.states, f.violating);
}

trace read_trace(const options& o, const std::string& path) {
  trace t = value_or_fail(trace::read(path));
  if (!t.has_pool())
    fail(o.what.pool.empty()
             ? "the program mapped no file shared and writable; name its pool by --pool, and give "
               "the program itself, not a script that starts it"
             : fmt::format("the program did not map {}; is it the file that it opens? Give the "
                           "program itself, not a script that starts it",
                           o.what.pool));
  return t;
}

checker make_checker(options& o, const trace& t) {
  o.check.image_name = fs::path(t.pool()).filename();
  o.check.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(o.timeout_s * 1000));
  return value_or_fail(checker::make(o.check));
}

// The recording is kept if the user named a file, or if a violation was found: a replay reads it.
std::string keep_recording(const options& o, const findings& f) {
  if (!o.recording.empty() || f.violating == 0) return o.recording;
  const fs::path kept =
      fs::temp_directory_path() / fmt::format("stele-foreign-{}.trace", ::getpid());
  std::error_code failed;
  fs::copy_file(o.what.recording, kept, fs::copy_options::overwrite_existing, failed);
  if (failed) fail(fmt::format("copy the recording to {}: {}", kept.string(), failed.message()));
  return kept;
}

void run_replay(options& o) {
  if (o.recording.empty()) fail("--replay needs the recording: name it by --trace FILE");
  const state_line line = value_or_fail(state_line::parse(o.line));
  const trace t = read_trace(o, o.recording);
  checker c = make_checker(o, t);
  const replayed r = value_or_fail(replay(t, c, line, o.image));
  fmt::print(text_output(o), "{}", text_of(r, t));
  if (!o.json.empty()) write_json(o.json, json_of(r, t));
  if (!r.seen.consistent) throw CLI::RuntimeError(1);
}

void explore_program(options& o) {
  const std::string folder = enter_scratch(o.dir);
  o.what.folder = o.check.folder = folder;
  o.what.tool_folder = fs::read_symlink("/proc/self/exe").parent_path() / "valgrind";
  if (!o.line.empty()) return run_replay(o);
  o.what.recording = o.recording.empty() ? folder + "/trace" : fs::absolute(o.recording).string();
  const bool interactive = isatty(STDERR_FILENO) != 0;
  if (interactive) print_error("recording {} under valgrind", fmt::join(o.what.program, " "));
  const std::string ended = value_or_fail(record(o.what));
  if (interactive) print_error("\r\033[K");
  if (!ended.empty()) print_error("stele: {}; what it did until then is explored\n", ended);
  const trace t = read_trace(o, o.what.recording);
  checker c = make_checker(o, t);
  if (interactive) o.how.progress = show_progress;
  o.how.cancelled = interrupted;
  const findings f = value_or_fail(foreign::explore(t, c, o.how));
  if (interactive) print_error("\r\033[K");
  const std::string replayable = replay_command(o, keep_recording(o, f), f.smallest);
  fmt::print(text_output(o), "{}: {}{}", t.pool(), text_of(f, t, replayable),
             f.cancelled ? "(interrupted)\n" : "");
  if (f.sampled_points != 0)
    fmt::print(text_output(o), "  sampled with --bound {} --seed {}\n", o.how.bound, o.how.seed);
  if (!o.json.empty()) write_json(o.json, json_of(f, t, replayable));
  if (f.violating != 0) throw CLI::RuntimeError(1);
  if (f.cancelled) throw CLI::RuntimeError(130);
}

void add_exploring_options(CLI::App& app, options& o) {
  app.add_option("--bound", o.how.bound,
                 "states a crash point; where there are more they are sampled")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", o.how.seed, "of the sample")->capture_default_str();
  app.add_option("--violations", o.how.max_violations, "end after so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--about", o.how.about,
                 "search the smallest of the violations whose checker says this, and count "
                 "only these for --violations");
  o.check.jobs = std::max(1u, std::thread::hardware_concurrency());
  app.add_option("--jobs", o.check.jobs, "checkers that run at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--timeout", o.timeout_s,
                 "seconds; a checker that runs longer has found a "
                 "violation")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

void add_options(CLI::App& app, options& o) {
  app.add_option("program", o.what.program, "what is run, with its arguments, after --");
  app.add_option("--check", o.check.command,
                 "the command that judges an image: exit status 0 means consistent; {} is the "
                 "image's path, {output} a file with what the program had printed")
      ->required();
  app.add_option("--pool", o.what.pool,
                 "the file that is explored; default: the first that is mapped shared");
  app.add_option("--flush", o.what.flush, "the best flush that the program is told of")
      ->capture_default_str()
      ->check(CLI::IsMember({"clwb", "clflushopt", "clflush"}));
  add_exploring_options(app, o);
  app.add_option("--trace", o.recording, "keep the recording in FILE; the one that --replay reads");
  app.add_option("--replay", o.line, "judge one state again: the line, in quotes");
  app.add_option("--image", o.image, "with --replay: write the state's bytes to FILE");
  app.add_option("--dir", o.dir, "where the images are")->capture_default_str();
  app.add_option("--json", o.json, "write the findings to FILE; - is standard output");
}

}  // namespace
}  // namespace stele::cli

int main(int argc, char** argv) {
  stele::cli::prepare_process();
  CLI::App app{"Stele's crash explorer of other programs.", "stele-lab crash"};
  CLI::App* const foreign =
      app.add_subcommand("foreign", "the crash states of a program that does not link Stele");
  stele::cli::options o;
  stele::cli::add_options(*foreign, o);
  foreign->callback([&o] { stele::cli::explore_program(o); });
  return stele::cli::run(app, argc, argv, STELE_VERSION);
}
