// The figures of the blurred-persistence evaluation that are not sweeps of throughput, and
// functions that all its figures share.
#pragma once

#include <bench/figures/sweep.h>

#include <filesystem>

namespace stele::bench {

// A mechanism, labelled with this project's name and the text's.
entry entry_of(const std::string& mechanism);

// The medium with that latency, under the options' charging rule.
std::string medium_of(const sweep_options& o, unsigned latency_ns);

// Removes a file in the destructor; the file need not exist.
struct scratch_file {
  std::string path;
  explicit scratch_file(std::string p) : path(std::move(p)) {}
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

// Figure 14 and table II. Errors: those of pools; not_found.
[[nodiscard]] result<> measure_recovery(const sweep_options& o, chart& into);
[[nodiscard]] result<> measure_warm_up(const sweep_options& o, chart& into);

}  // namespace stele::bench
