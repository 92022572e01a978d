// Shared by the tests of the memory: a memory with its event queue, requests by bank and row, and a
// record of completions, writes and commands.
#pragma once

#include <gtest/gtest.h>
#include <sim/config_file.h>
#include <sim/controller/controller.h>

#include <map>

namespace stele::sim {

// configs/NAME.toml
inline machine_config machine_of(const std::string& name) {
  auto loaded = load_machine(STELE_SOURCE_DIR "/lab/configs/" + name + ".toml");
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(*loaded);
}

// No timing rules and no latencies: each test adds those that it tests.
inline memory_config plain_memory() {
  memory_config c;
  c.capacity_bytes = std::uint64_t{1} << 26;
  c.row_bytes = 1024;
  c.banks = 4;
  c.starvation_limit = 1000;
  return c;
}

class memory_fixture final : public event_handler, public write_observer, public command_observer {
 public:
  explicit memory_fixture(const memory_config& c,
                          controller_mutant mutant = controller_mutant::none) {
    auto made = make_memory(events, c, mutant);
    if (!made) throw std::runtime_error(made.error().message);
    memory = std::move(*made);
    memory->observe(this);
    memory->observe_commands(this);
  }

  std::uint64_t address(unsigned bank, std::uint32_t row, unsigned column = 0) const {
    return memory->address_map().address_of({0, bank, row}, column);
  }
  // Returns the request's token: requests are numbered from 0.
  unsigned submit(access kind, std::uint64_t at) {
    request r;
    r.address = at;
    r.kind = kind;
    r.reply_to = this;
    r.token = asked++;
    memory->submit(events.now(), r);
    return static_cast<unsigned>(r.token);
  }
  unsigned read(unsigned bank, std::uint32_t row, unsigned column = 0) {
    return submit(access::read, address(bank, row, column));
  }
  unsigned write(unsigned bank, std::uint32_t row, unsigned column = 0) {
    return submit(access::write, address(bank, row, column));
  }
  void barrier() { memory->barrier(events.now(), 0); }

  void run() {
    while (!events.empty()) events.step();
  }
  // Handles all events up to and at `when`, and advances the time to `when`.
  void run_until(picoseconds when) {
    events.schedule(when, *this, clock);
    while (!events.empty() && events.next() <= when) events.step();
  }
  memory_statistics statistics() { return memory->statistics(events.now()); }

  void handle(picoseconds now, std::uint64_t token) override {
    if (token == clock) return;
    completed.emplace(static_cast<unsigned>(token), now);
    order.push_back(static_cast<unsigned>(token));
  }
  void persisted(const write_report& r) override {
    written[static_cast<unsigned>(r.req.token)] = r;
  }
  void issued(const command_report& r) override { commands.push_back(r); }

  static constexpr std::uint64_t clock = ~std::uint64_t{0};
  event_queue events;
  std::unique_ptr<memory_system> memory;
  std::uint64_t asked = 0;
  std::map<unsigned, picoseconds> completed;  // by token
  std::vector<unsigned> order;                // tokens, in the order of completion
  std::map<unsigned, write_report> written;   // by token
  std::vector<command_report> commands;
};

}  // namespace stele::sim
