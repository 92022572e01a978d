// A checker of strict serializability for histories of list appends, after Kingsbury and Alvaro,
// "Elle: Inferring Isolation Anomalies from Experimental Observations" (2020).
//
// A transaction appends unique elements to lists and reads lists. A list may have dropped a prefix,
// so a read has the index of its first element and the elements from there on. Elements are unique
// and appends keep order, so the reads show the order of all versions. From that follow all
// dependencies: ww, wr and rw edges. Real time adds an edge from each transaction that had returned
// to each that was invoked after. The history is strictly serializable if that graph has no cycle,
// if nothing aborted or intermediate is read (G1a, G1b) and if no append is lost or doubled. No
// other order needs to be tried, because the reads fix the order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stele::testing {

struct list_access {
  std::uint32_t list = 0;
  bool append = false;
  std::uint64_t element = 0;            // appended
  std::uint64_t first = 0;              // read: the index of the first element seen
  std::vector<std::uint64_t> elements;  // read: from that index to the end
};

struct transaction_record {
  std::int64_t invoked = 0, returned = 0;  // one clock for all threads
  bool committed = false;
  std::vector<list_access> accesses;
};

// One sentence for each anomaly, at most `limit`; empty when the history is strictly serializable.
std::vector<std::string> anomalies_of(const std::vector<transaction_record>& history,
                                      std::size_t limit = 10);

}  // namespace stele::testing
