// A checker of strict serializability for histories of list appends, after Kingsbury and Alvaro,
// "Elle: Inferring Isolation Anomalies from Experimental Observations" (2020).
//
// A transaction appends unique elements to lists and reads lists; a list may have dropped a prefix,
// so a read gives the index of its first element and the elements from there on. Because elements
// are unique and appends keep order, the reads give away the order of all versions, and with it
// every dependency: ww, wr and rw edges, to which real time adds one from each transaction that had
// returned to each that was invoked after. The history is strictly serializable if that graph has
// no cycle, nothing aborted or intermediate is read (G1a, G1b) and no append is lost or doubled.
// Not checked: whether another order could explain the reads; the order is given, so none can.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stele::testing {

struct list_access {
  std::uint32_t list = 0;
  bool append = false;
  std::uint64_t element = 0;            // appended
  std::uint64_t first = 0;              // read: index of the first element seen
  std::vector<std::uint64_t> elements;  // read: from there to the end
};

struct transaction_record {
  std::int64_t invoked = 0, returned = 0;  // one clock for all threads
  bool committed = false;
  std::vector<list_access> accesses;
};

// One sentence an anomaly; empty when the history is strictly serializable. At most `limit` are
// told.
std::vector<std::string> anomalies_of(const std::vector<transaction_record>& history,
                                      std::size_t limit = 10);

}  // namespace stele::testing
