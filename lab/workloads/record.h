// A workload's run on a tape: a pool is made and filled, operations follow one a transaction, and
// the pool is removed again.
//
// Several threads take turns transaction by transaction, so that the tape is a function of its
// parameters although each thread has a log of its own; what overlaps in time is for the reader of
// the tape to decide. Each operation stands between the marks invoked and returned.
#pragma once

#include <media/tape.h>
#include <workloads/workload.h>

#include <functional>

namespace stele::workloads {

struct recording_options {
  std::string workload = "sps", mechanism;  // "": the library's default
  parameters content{.keys = 4096};
  std::uint64_t operations = 10'000;
  std::uint64_t seed = 1;  // of the operations
  unsigned threads = 1;
  bool record_bytes = true;  // stores with what they store, and the pool's content at the beginning
  bool record_set_up = false;  // the tape begins with the empty pool, else with the filled one
  std::string dir = ".";       // where the pool is
  std::function<bool()> cancelled = [] { return false; };
};

using tape_factory =
    std::function<result<std::unique_ptr<media::tape_writer>>(const media::tape_options&)>;

// The finished tape that `make` began. Errors: those of the pool and of the tape; invalid_argument.
[[nodiscard]] result<std::unique_ptr<media::tape_writer>> record(const recording_options& r,
                                                                 const tape_factory& make);

}  // namespace stele::workloads
