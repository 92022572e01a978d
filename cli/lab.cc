// `stele-lab`: the subcommands of `stele` and those of the laboratory: crash explorer, tapes,
// simulator, benchmarks, figures.
#include <cli/command.h>
#include <cli/output.h>
#include <stele/published.h>

int main(int argc, char** argv) {
  stele::cli::prepare_process();
  stele::use_published();
  CLI::App app{"Stele: durable transactional memory. Start with `stele demo`."};
  stele::cli::add_demo(app);
  stele::cli::add_compare(app);
  stele::cli::add_pool(app);
  stele::cli::add_kv(app);
  stele::cli::add_sqlite(app);
  stele::cli::add_crash(app);
  stele::cli::add_tape(app);
  stele::cli::add_sim(app);
  stele::cli::add_bench(app);
  stele::cli::add_figure(app);
  stele::cli::add_report(app);
  return stele::cli::run(app, argc, argv, STELE_VERSION);
}
