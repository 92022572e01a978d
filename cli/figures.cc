// Measures figures one by one or as a set, and writes their files.
#include <bench/figures/archapt.h>
#include <bench/figures/blurred.h>
#include <bench/figures/dp2.h>
#include <bench/figures/kiln.h>
#include <bench/figures/lsnvmm.h>
#include <bench/figures/origin.h>
#include <bench/figures/verdicts.h>
#include <cli/command.h>
#include <cli/figures.h>
#include <cli/output.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

namespace stele::cli {
namespace {

namespace fs = std::filesystem;

constexpr evaluation all_evaluations[] = {
    {"blurred", "Lu, Shu and Sun, \"Blurred Persistence\" (2016), section 5",
     "size of the key space; default: 2^18, where values are large 2^15, with --quick 2^14",
     bench::blurred_figures, bench::measure_blurred, nullptr, bench::blurred_charges,
     bench::blurred_figures},
    {"lsnvmm",
     "Hu, Ren, Badam, Shu, Moscibroda, \"Log-Structured Non-Volatile Main Memory\" (2017), section "
     "5",
     "size of the key space, half of it filled; default: 2^18, figure 10 2^16, with --quick 2^14",
     bench::lsnvmm_figures, bench::measure_lsnvmm, nullptr, bench::lsnvmm_charges,
     bench::lsnvmm_timed_figures},
    {"archapt",
     "Wu, Ren and Li, \"Architecture-Aware, High Performance Transaction for Persistent Memory\" "
     "(2019), sections II and V",
     "records, and rows of stock; default: 2^16, with --quick 2^12", bench::archapt_figures,
     bench::measure_archapt, bench::archapt_hosted_figures},
    {"dp2",
     "Sun, Lu, Shu, \"DP2: Reducing Transaction Overhead with Differential and Dual Persistency in "
     "Persistent Memory\" (2015), section 4",
     "size of the key space of what is emulated; default: 2^15, with --quick 2^14",
     bench::dp2_figures, bench::measure_dp2, nullptr, bench::dp2_charges, bench::dp2_timed_figures},
    {"kiln", "Zhao, Li, Yoon, Xie, Jouppi, \"Kiln\" (2013), sections 1 and 6",
     "size of the key space of small elements; default: 2^20, with --quick 2^12",
     bench::kiln_figures, bench::measure_kiln}};

// --- what a figure was measured with ---

nlohmann::json settings_json(const figure& f, const figure_options& o) {
  return {{"quick", o.quick},       {"runs", o.sweep.runs},
          {"keys", o.keys},         {"seed", o.sweep.seed},
          {"seeds", o.sweep.seeds}, {"host", f.host},
          {"charge", f.charge},     {"dir", !o.dir.empty() ? o.dir : folder_in_memory()}};
}

// The command that measures this figure with these settings.
std::string command_of(const figure& f, const figure_options& o) {
  std::string words = fmt::format("stele figure {} --figure {}", f.of->name, f.number);
  if (!f.host.empty()) words += " --host " + f.host;
  if (!f.charge.empty()) words += " --charge " + f.charge;
  if (o.quick) words += " --quick";
  if (o.runs != 0) words += fmt::format(" --runs {}", o.runs);
  if (o.keys != 0) words += fmt::format(" --keys {}", o.keys);
  if (o.seeds != 0) words += fmt::format(" --seeds {}", o.seeds);
  if (o.sweep.seed != 1) words += fmt::format(" --seed {}", o.sweep.seed);
  if (!o.dir.empty()) words += " --dir " + o.dir;
  return words + " --out " + (o.out.empty() ? "figures" : o.out);
}

nlohmann::json origin_json(const figure& f, const figure_options& o) {
  static const nlohmann::json machine = bench::machine_json(),
                              build = bench::build_json(STELE_VERSION);
  return {{"machine", machine}, {"build", build}, {"settings", settings_json(f, o)}};
}

// The seconds that the figure in the file took, if it is complete and has this origin.
std::optional<double> seconds_of_kept(const fs::path& file, const nlohmann::json& origin) {
  std::ifstream in(file);
  const auto found = nlohmann::json::parse(in, nullptr, false);
  if (!found.is_object() || found.value("complete", nlohmann::json()) != true) return std::nullopt;
  const auto had = found.value("origin", nlohmann::json());
  for (const auto& [key, part] : origin.items())
    if (!had.is_object() || had.value(key, nlohmann::json()) != part) return std::nullopt;
  const auto seconds = had.value("seconds", nlohmann::json());
  return seconds.is_number() ? seconds.get<double>() : 0;
}

// --- files ---

void write_whole(const fs::path& file, const std::string& text) {
  output out(file.string());
  out.write(text);
  out.keep();
}

// tools/plot prints the reason when it cannot draw.
void draw(const std::string& json_file, const std::string& picture) {
  if (run_program({STELE_PLOT, json_file, picture}) == -1)
    print_error("no picture {}: cannot run {}; the table and the JSON file are complete\n", picture,
                STELE_PLOT);
}

void write_files(const figure& f, const figure_options& o, const measured_figure& m) {
  const std::string stem = (fs::path(o.out) / f.name()).string();
  write_whole(stem + ".txt", bench::table_of(m.chart));
  write_whole(stem + ".json",
              m.json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
  draw(stem + ".json", stem + ".png");
}

// --- progress ---

bool on_terminal() {
  return isatty(STDERR_FILENO) != 0;
}

// What fits one line: the rest of a longer one could not be rewritten.
std::string clipped(const std::string& line) {
  winsize w{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1;
  return line.substr(0, known ? w.ws_col - 1u : 79u);
}

// On a terminal, one line that is rewritten; elsewhere, one line for each figure.
std::function<void(const std::string&)> progress_of(const std::string& place) {
  if (!on_terminal()) {
    print_error("figure {} ...\n", place);
    return [](const std::string&) {};
  }
  return [place](const std::string& what) {
    print_error("\r\033[K{}", clipped(fmt::format("figure {}: {}", place, what)));
  };
}

std::string minutes(double seconds) {
  const auto s = static_cast<unsigned>(seconds + 0.5);
  return s < 60 ? fmt::format("{} s", s) : fmt::format("{} min {:02} s", s / 60, s % 60);
}

using clock = std::chrono::steady_clock;
double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// --- a set ---

void add_figures(const evaluation& of, const std::string& host, std::vector<figure>& to) {
  for (std::string& number : host.empty() ? of.figures() : of.hosted_figures(host))
    to.push_back({&of, std::move(number), host});
}
// Those that are timed, under each charging rule but the first.
void add_charged_figures(const evaluation& of, std::vector<figure>& to) {
  if (of.charges == nullptr) return;
  for (const bench::charge_rule& rule : of.charges().subspan(1))
    for (std::string& number : of.timed_figures())
      to.push_back({&of, std::move(number), "", rule.name});
}

// Measures the figures of a set one after the other, and keeps account of their times.
class set_run {
 public:
  set_run(figure_options o, bool again, std::size_t figures)
      : o_(std::move(o)), again_(again), figures_(figures) {}

  void measure_or_keep(const figure& f) {
    ++begun_;
    if (times_.empty() || times_.back().evaluation != f.of->name)
      times_.push_back({f.of->name, 0, 0, 0, 0});
    const std::string stem = (fs::path(o_.out) / f.name()).string();
    const auto kept = again_ ? std::nullopt : seconds_of_kept(stem + ".json", origin_json(f, o_));
    if (!kept) return measure_one(f);
    if (!fs::exists(stem + ".png")) draw(stem + ".json", stem + ".png");
    count(times_.back().kept, f, *kept, ", kept");
  }

  void print_times() const {
    for (const account& t : times_)
      fmt::print("{:<12} {:>21}; {} measured, {} kept, {} failed\n", t.evaluation,
                 minutes(t.seconds), t.measured, t.kept, t.failed);
    fmt::print("{:<12} {:>21}\n", "this command", minutes(seconds_since(begin_)));
  }
  bool whole() const noexcept { return whole_; }

 private:
  struct account {
    std::string evaluation;
    double seconds;  // of figures measured and kept
    unsigned measured, kept, failed;
  };

  void measure_one(const figure& f) {
    const auto m = measure(f, o_,
                           fmt::format("{} ({} of {}, {} so far)", f.name(), begun_, figures_,
                                       minutes(seconds_since(begin_))));
    whole_ = whole_ && m && m->chart.complete;
    if (!m) {
      ++times_.back().failed;
      return;
    }
    count(times_.back().measured, f, m->json["origin"]["seconds"],
          m->chart.complete ? "" : ", interrupted: measured in part");
  }

  void count(unsigned& in, const figure& f, double seconds, const char* how) {
    ++in;
    times_.back().seconds += seconds;
    fmt::print("{:<20} {:>13}{}\n", f.name(), minutes(seconds), how);
    std::fflush(stdout);
  }

  const figure_options o_;
  const bool again_;
  const std::size_t figures_;
  std::size_t begun_ = 0;
  bool whole_ = true;
  const clock::time_point begin_ = clock::now();
  std::vector<account> times_;
};

}  // namespace

std::span<const evaluation> evaluations() noexcept {
  return all_evaluations;
}

std::string figure::name() const {
  std::string name = fmt::format("{}-{}", of->name, number);
  for (const std::string& part : {host, charge})
    if (!part.empty()) name += "-" + part;
  return name;
}

void add_options(CLI::App& command, figure_options& o) {
  command.add_flag("--quick", o.quick,
                   "short runs on small structures: to see that it works, not to quote");
  command
      .add_option(
          "--runs", o.runs,
          "runs of which the median counts, where time is measured; default: 5, with --quick 3")
      ->check(CLI::Range(1, 1000));
  command
      .add_option("--seeds", o.seeds,
                  "seeds of which the median counts, where a figure is a function of the seed; "
                  "default: 5, with --quick 2")
      ->check(CLI::Range(1, 1000));
  command.add_option("--seed", o.sweep.seed, "of content and operations")->capture_default_str();
  command.add_option("--dir", o.dir, "where pools are created; default /dev/shm");
}

void prepare(figure_options& o) {
  if (o.quick) bench::make_quick(o.sweep);
  if (o.runs != 0) o.sweep.runs = o.runs;
  if (o.seeds != 0) o.sweep.seeds = o.seeds;
  if (o.keys != 0)
    o.sweep.keys = o.sweep.large_keys = o.sweep.kiln_keys = o.sweep.archapt_keys = o.keys;
  std::error_code problem;
  if (!o.out.empty()) fs::create_directories(o.out, problem);
  if (problem) fail(fmt::format("--out {}: {}", o.out, problem.message()));
  if (!o.out.empty() && ::access(o.out.c_str(), W_OK) != 0)
    fail(fmt::format("--out {}: this user may not write there; choose another folder", o.out));
  o.sweep.dir = enter_scratch(!o.dir.empty() ? o.dir : folder_in_memory());
  o.sweep.cancelled = interrupted;
}

std::optional<measured_figure> measure(const figure& f, const figure_options& o,
                                       const std::string& place) {
  bench::sweep_options sweep = o.sweep;
  sweep.host = f.host;
  sweep.charge = f.charge;
  sweep.progress = progress_of(place);
  nlohmann::json origin = origin_json(f, o);
  origin["date"] = bench::date_now();
  origin["command"] = command_of(f, o);
  const bench::load_meter load;
  const auto begin = clock::now();
  auto c = f.of->measure(f.number, sweep);
  origin["seconds"] = seconds_since(begin);
  if (on_terminal()) print_error("\r\033[K");
  if (!c) {
    print_error("stele: figure {}: {}\n", f.name(), c.error().message);
    return std::nullopt;
  }
  bench::set_load(*c, load.since());
  measured_figure m{std::move(*c), {}};
  m.json = bench::json_of(m.chart);
  m.json["origin"] = std::move(origin);
  if (!o.out.empty()) write_files(f, o, m);
  return m;
}

void add_options(CLI::App& command, figure_set& set) {
  std::vector<std::string> names;
  for (const evaluation& e : all_evaluations) names.emplace_back(e.name);
  set.names = {"blurred", "lsnvmm", "archapt"};
  command
      .add_option("evaluations", set.names,
                  "which: blurred, lsnvmm, archapt (the default: more than an hour on two cores); "
                  "dp2, kiln (simulated: some hours more)")
      ->check(CLI::IsMember(names));
  command.add_flag("--hosts", set.hosts,
                   "archapt's figures with the hosts sqlite and redis too; takes 5 GB of memory");
  command.add_flag("--charges", set.charges,
                   "the timed figures under each charging rule too (--charge of figure blurred, "
                   "lsnvmm, dp2), in files of their own");
  command.add_flag("--again", set.again,
                   "measure figures too that the folder has from the same build, machine and "
                   "settings");
  add_options(command, set.each);
}

std::vector<figure> figures_of(const figure_set& set) {
  std::vector<figure> figures;
  for (const evaluation& e : all_evaluations) {
    if (std::ranges::find(set.names, e.name) == set.names.end()) continue;
    add_figures(e, "", figures);
    if (set.charges) add_charged_figures(e, figures);
    if (!set.hosts || e.hosted_figures == nullptr) continue;
    for (const char* host : {"sqlite", "redis"}) add_figures(e, host, figures);
  }
  if (set.claimed)
    std::erase_if(figures, [](const figure& f) {
      return bench::unmeasured_verdicts(f.of->name, f.number).empty();
    });
  return figures;
}

bool measure(const figure_set& set) {
  figure_options o = set.each;
  prepare(o);
  const std::vector<figure> figures = figures_of(set);
  set_run run(o, set.again, figures.size());
  for (const figure& f : figures)
    if (!interrupted()) run.measure_or_keep(f);
  run.print_times();
  return run.whole() && !interrupted();
}

int run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  // In a group of its own, which a terminal's interrupt does not reach.
  posix_spawnattr_t apart;
  posix_spawnattr_init(&apart);
  posix_spawnattr_setflags(&apart, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  int status = 0;
  const int failed = posix_spawn(&child, arguments[0], nullptr, &apart, arguments.data(), environ);
  posix_spawnattr_destroy(&apart);
  if (failed != 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace stele::cli
