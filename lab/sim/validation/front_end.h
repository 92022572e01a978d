// What both programs share: reads a trace in DRAMsim3's format, submits its requests as
// sim/memory_run.cc does, and measures latencies at the same places.
//
// In each cycle, first at most one request is submitted, then the memory advances by a cycle. A
// latency counts from the cycle of the submission to that in which the memory reports completion.
// After the last request the memory advances until every read, and every write that it will report,
// is complete.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_map>

namespace validation {

struct request {
  std::uint64_t address = 0, cycle = 0;
  bool writes = false;
};

struct latency_sum {
  std::uint64_t count = 0, cycles = 0;
  double mean() const { return count == 0 ? 0 : double(cycles) / double(count); }
};

// Memory: bool submit(const request&), false when it has no room; void advance(), which calls
// completed() of this front end.
template <class Memory>
class front_end {
 public:
  front_end(const char* trace, unsigned reads_in_flight) : trace_(trace), limit_(reads_in_flight) {
    if (!trace_) fail(std::string("cannot read the trace ") + trace);
  }

  void completed(std::uint64_t address, bool writes) {
    const auto found = submitted_[writes].find(address);
    if (found == submitted_[writes].end()) fail("a request completed that was not submitted");
    latency_sum& of = writes ? write : read;
    ++of.count;
    of.cycles += now - found->second;
    submitted_[writes].erase(found);
    finished = now;
  }

  void run(Memory& memory) {
    request next;
    for (bool more = fetch(next); more || unfinished() != 0; ++now) {
      if (more && next.cycle <= now && may_submit(next)) {
        // A write may complete while it is submitted.
        const auto entry = submitted_[next.writes].emplace(next.address, now);
        if (memory.submit(next))
          more = fetch(next);
        else
          submitted_[next.writes].erase(entry);
      }
      memory.advance();
    }
  }

  latency_sum read, write;
  std::uint64_t now = 0, finished = 0;

 private:
  [[noreturn]] static void fail(const std::string& sentence) {
    std::cerr << sentence << "\n";
    std::exit(1);
  }
  bool fetch(request& r) {
    std::string word;
    if (!(trace_ >> std::hex >> r.address >> word >> std::dec >> r.cycle)) return false;
    r.writes = word == "WRITE";
    return true;
  }
  std::size_t unfinished() const { return submitted_[0].size() + submitted_[1].size(); }
  bool may_submit(const request& r) const {
    return r.writes || limit_ == 0 || submitted_[0].size() < limit_;
  }

  std::ifstream trace_;
  std::size_t limit_;
  // by address, the cycle of the submission; reads, writes
  std::unordered_multimap<std::uint64_t, std::uint64_t> submitted_[2];
};

}  // namespace validation
