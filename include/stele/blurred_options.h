// Options of the mechanisms that execute in the log (xil, blurred, adaptive), for
// engine_options::tuning.
//
//   stele::use_published();  // stele/published.h
//   stele::pool_options options{.create_size = 64 << 20, .engine = {.mechanism = "blurred"}};
//   options.engine.tuning.of<stele::blurred_options>().runs = true;
//   auto pool = stele::pool<counter>::open("counter.stele", options);
//
// Each session may choose them anew: recovery reads logs of either kind.
#pragma once

namespace stele {

// Lu, Shu and Sun, "Blurred Persistence" (2016), sections 3.2 and 4.2.1.
struct blurred_options {
  // Stores to adjacent words share a record: 7 words in a line of log instead of 4. The paper has a
  // record for each word. docs/format/blocks.md, runs.
  bool runs = false;
  // The log of an aborted transaction has an abort record in at least one of so many blocks. A
  // multiple of 4 from 4 to 1024; open() fails otherwise (errc::invalid_argument). A commit flushes
  // the lines of earlier abort records: more of them with a smaller interval.
  unsigned abort_interval = 64;
};

}  // namespace stele
