// stele_itm_compare: compares field<T> and atomic blocks, with runs taken in turn; prints a table
// or JSON.
#include <bench/compare.h>
#include <bench/itm/contender.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

namespace {

using namespace stele::bench;

stele::result<report> compare_one(comparison c, const std::string& workload,
                                  const std::string& mechanism) {
  c.what.workload = workload;
  std::vector<std::unique_ptr<contender>> both;
  for (auto make : {make_stele, make_itm}) {
    auto made = make(c.what, mechanism);
    if (!made) return std::unexpected(std::move(made.error()));
    both.push_back(std::move(*made));
  }
  return compare(std::move(both), c);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "field<T> and atomic blocks of g++ -fgnu-tm side by side, on one pool format, mechanism and "
      "medium");
  comparison c;
  c.limits = false;
  c.what.dir = "/dev/shm";
  std::vector<std::string> workloads = {"sps", "rbtree"};
  std::string mechanism = "default";
  bool json = false;
  app.add_option("--workload", workloads, "sps, rbtree")->capture_default_str();
  app.add_option("--mechanism", mechanism, "of both")->capture_default_str();
  app.add_option("--media", c.what.media, "as stele compare has it")->capture_default_str();
  app.add_option("--dir", c.what.dir, "where the pools go")->capture_default_str();
  app.add_option("--threads", c.what.threads)->capture_default_str();
  app.add_option("--keys", c.what.parameters.keys, "elements, or keys")->capture_default_str();
  app.add_option("--read-share", c.what.parameters.read_share, "of the operations")
      ->capture_default_str();
  app.add_option("--runs", c.runs)->capture_default_str();
  app.add_option("--seconds", c.seconds, "of each run")->capture_default_str();
  app.add_flag("--json", json, "for programs");
  CLI11_PARSE(app, argc, argv);
  nlohmann::json all;
  for (const std::string& workload : workloads) {
    const auto done = compare_one(c, workload, mechanism);
    if (!done) return fmt::print(stderr, "{}\n", done.error().message), 1;
    if (json)
      all[workload] = json_of(*done);
    else
      fmt::print("{}, {} keys, {} thread(s)\n{}\n", workload, c.what.parameters.keys,
                 c.what.threads, table_of(*done, mechanism, stele::bench::table_width::wide));
  }
  if (json) fmt::print("{}\n", all.dump(2));
  return 0;
}
