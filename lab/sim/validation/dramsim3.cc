// DRAMsim3 behind the front end: dramsim3 CONFIGURATION TRACE READS_IN_FLIGHT FOLDER. Prints the
// read latency and the cycles; DRAMsim3 writes its own statistics to the folder.
//
// Writes complete as soon as they are accepted, so their latency is DRAMsim3's own statistic.
#include "front_end.h"

#include <dramsim3.h>

#include <memory>

namespace {

class memory {
 public:
  memory(const char* configuration, const char* folder, validation::front_end<memory>& front)
      : system_(dramsim3::GetMemorySystem(
            configuration, folder, [&front](std::uint64_t a) { front.completed(a, false); },
            [&front](std::uint64_t a) { front.completed(a, true); })) {}

  bool submit(const validation::request& r) {
    return system_->WillAcceptTransaction(r.address, r.writes) &&
           system_->AddTransaction(r.address, r.writes);
  }
  void advance() { system_->ClockTick(); }
  void print() const { system_->PrintStats(); }

 private:
  std::unique_ptr<dramsim3::MemorySystem> system_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::cerr << "usage: dramsim3 CONFIGURATION TRACE READS_IN_FLIGHT FOLDER\n";
    return 2;
  }
  validation::front_end<memory> front(words[2], unsigned(std::strtoul(words[3], nullptr, 10)));
  memory system(words[1], words[4], front);
  front.run(system);
  system.print();
  std::cout << "{\"read_latency\": " << front.read.mean() << ", \"cycles\": " << front.finished
            << "}\n";
}
