// `stele-lab`: the subcommands of `stele` and those of the laboratory: tapes, simulator,
// benchmarks, figures, and the crash explorer, which is a program of its own (crash.cc).
#include <cli/command.h>
#include <cli/output.h>
#include <stele/published.h>

int main(int argc, char** argv) {
  stele::cli::prepare_process();
  stele::use_published();
  if (stele::cli::is_crash_command(argc, argv))
    return stele::cli::exec_beside(stele::cli::crash_program, argv);
  CLI::App app{"Stele: durable transactional memory. Start with `stele demo`."};
  stele::cli::add_demo(app);
  stele::cli::add_compare(app);
  stele::cli::add_pool(app);
  stele::cli::add_kv(app);
  stele::cli::add_sqlite(app);
  stele::cli::add_tape(app);
  stele::cli::add_sim(app);
  stele::cli::add_bench(app);
  stele::cli::add_figure(app);
  stele::cli::add_report(app);
  stele::cli::add_artefact(app);
  app.footer("The crash explorer is a command of its own beside this program: crash.");
  return stele::cli::run(app, argc, argv, STELE_VERSION);
}
