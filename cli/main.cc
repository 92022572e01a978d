// The `stele` command: one subcommand a file in this folder.
#include <cli/command.h>

#include <exception>
#include <fmt/format.h>

int main(int argc, char** argv) {
  CLI::App app{"Stele: durable transactional memory. Start with `stele demo`."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "stele 0.1.0 (pool format 1, tape formats 1 and 2)");
  stele::cli::add_demo(app);
  stele::cli::add_compare(app);
  stele::cli::add_pool(app);
  stele::cli::add_crash(app);
  stele::cli::add_tape(app);
  stele::cli::add_sim(app);
  stele::cli::add_bench(app);
  stele::cli::add_figure(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();  // the sentence has been said
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    fmt::print(stderr, "stele: {}\n", e.what());
    return 1;
  }
  return 0;
}
