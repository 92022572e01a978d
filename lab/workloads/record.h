// Records a workload's run on a tape: makes and fills a pool, runs operations with one transaction
// each, and removes the pool.
//
// Several threads run transactions in turn. So the tape depends on its parameters only, although
// each thread has its own log; the reader of the tape decides what overlaps in time. Each operation
// is between the marks invoked and returned.
#pragma once

#include <lab_media/tape.h>
#include <workloads/workload.h>

#include <functional>

namespace stele::workloads {

struct recording_options {
  std::string workload = "sps", mechanism;  // "": the library's default
  parameters content{.keys = 4096};
  std::uint64_t operations = 10'000;
  std::uint64_t seed = 1;  // of the operations
  unsigned threads = 1;
  bool record_bytes = true;  // stores with their bytes, and the pool's content at the start
  // True: the tape begins with the empty pool; false: with the filled pool.
  bool record_set_up = false;
  std::string dir = ".";  // directory of the pool
  // Makes a host's workload in place of the one of this name. The pool then has so many bytes, the
  // policy `external`, and logs for the host's larger transactions.
  std::function<result<std::unique_ptr<workloads::workload>>()> make_hosted = {};
  std::size_t hosted_pool_size = 0;
  std::function<bool()> cancelled = [] { return false; };
};

using tape_factory =
    std::function<result<std::unique_ptr<media::tape_writer>>(const media::tape_options&)>;

// Returns the finished tape that `make` began. Errors: those of pool and tape; invalid_argument.
[[nodiscard]] result<std::unique_ptr<media::tape_writer>> record(const recording_options& r,
                                                                 const tape_factory& make);

}  // namespace stele::workloads
