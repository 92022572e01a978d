// Ramulator 2 behind the front end: ramulator2 CONFIGURATION TRACE READS_IN_FLIGHT FIELD...
// Prints latencies in cycles, and Ramulator's own statistics.
//
// A field is "shift:bits" of an address; rank, bank group, bank, row and column in this order. The
// memory gets places, not addresses, because Ramulator has few mappings of its own. A write
// completes with its command.
#include "front_end.h"

#include <ramulator/base/config.h>
#include <ramulator/base/factory.h>
#include <ramulator/frontend/i_frontend.h>
#include <ramulator/memory_system/i_memory_system.h>

#include <cstdio>
#include <vector>

namespace {

struct field {
  unsigned shift = 0, bits = 0;
};

class memory {
 public:
  memory(const char* configuration, std::vector<field> fields, validation::front_end<memory>& front)
      : fields_(std::move(fields)), front_(front) {
    const auto parsed = Ramulator::Config::parse_config_file(configuration);
    requester_ = Ramulator::Factory::create_frontend(parsed);
    system_ = Ramulator::Factory::create_memory_system(parsed);
    requester_->connect_memory_system(system_);
    system_->connect_frontend(requester_);
  }

  bool submit(const validation::request& r) {
    Ramulator::Request one(place_of(r.address), r.writes ? Ramulator::Request::Type::Write
                                                         : Ramulator::Request::Type::Read);
    one.addr = Ramulator::Addr_t(r.address);
    one.source_id = 0;
    one.size_bytes = system_->get_tx_bytes();
    one.callback = [this, r](Ramulator::Request&) { front_.completed(r.address, r.writes); };
    return system_->send(one);
  }
  void advance() { system_->tick(); }
  void print() {
    requester_->finalize();
    system_->finalize();
    system_->print_stats(std::cout);
  }

 private:
  Ramulator::AddrVec_t place_of(std::uint64_t address) const {
    Ramulator::AddrVec_t place{0};
    for (const field& f : fields_)
      place.push_back(int(address >> f.shift & ((std::uint64_t{1} << f.bits) - 1)));
    return place;
  }

  std::vector<field> fields_;
  validation::front_end<memory>& front_;
  Ramulator::IFrontEnd* requester_;
  Ramulator::IMemorySystem* system_;
};

}  // namespace

int main(int count, char** words) {
  std::vector<field> fields;
  for (int i = 4; i < count; ++i) {
    field f;
    if (std::sscanf(words[i], "%u:%u", &f.shift, &f.bits) == 2) fields.push_back(f);
  }
  if (fields.size() != 5) {
    std::cerr
        << "usage: ramulator2 CONFIGURATION TRACE READS_IN_FLIGHT RANK GROUP BANK ROW COLUMN\n";
    return 2;
  }
  validation::front_end<memory> front(words[2], unsigned(std::strtoul(words[3], nullptr, 10)));
  memory system(words[1], fields, front);
  front.run(system);
  system.print();
  std::cout << "{\"read_latency\": " << front.read.mean()
            << ", \"write_latency\": " << front.write.mean() << ", \"cycles\": " << front.finished
            << "}\n";
}
