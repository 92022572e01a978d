// `stele`: the command for users of pools. One subcommand a file in this folder.
#include <cli/command.h>
#include <cli/output.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stele/published.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace {

constexpr std::array<std::string_view, 7> lab_commands = {"crash",  "tape",   "sim",     "bench",
                                                          "figure", "report", "artefact"};

// Whether the command line names a subcommand or a medium of the laboratory.
bool is_lab_command(int argc, char** argv) {
  if (argc > 1 && std::ranges::find(lab_commands, std::string_view(argv[1])) != lab_commands.end())
    return true;
  return std::any_of(argv + 1, argv + argc, [](std::string_view word) {
    word.remove_prefix(word.starts_with("--media=") ? 8 : 0);
    return word.starts_with("delayed:") || word.starts_with("pcm:");
  });
}

}  // namespace

int main(int argc, char** argv) {
  stele::cli::prepare_process();
  stele::use_published();
  if (stele::cli::is_crash_command(argc, argv))
    return stele::cli::exec_beside(stele::cli::crash_program, argv);
  if (is_lab_command(argc, argv)) return stele::cli::exec_beside("stele-lab", argv);
  CLI::App app{"Stele: durable transactional memory. Start with `stele demo`."};
  stele::cli::add_demo(app);
  stele::cli::add_compare(app);
  stele::cli::add_pool(app);
  stele::cli::add_kv(app);
  stele::cli::add_sqlite(app);
  stele::cli::add_manual(app, STELE_VERSION);
  app.footer(fmt::format("Of the laboratory, where stele-lab is beside this program: {}.",
                         fmt::join(lab_commands, ", ")));
  return stele::cli::run(app, argc, argv, STELE_VERSION);
}
