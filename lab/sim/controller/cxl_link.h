// A memory behind CXL.mem: the link between processor and device, and the device's request queue.
//
// The numbers of flits are those of the Compute Express Link Specification, revision 3.1 (2023):
// a flit of 68 bytes has four slots of 16 bytes (section 4.2), one of 256 bytes has fifteen
// (section 4.3). A request to read and the completion of a write take one slot; a request to write
// and the data of a read take a header's and four of data. Simplification: flits are packed without
// gaps, so a message occupies its direction for its slots' share of a flit; its receiver has it
// when whole flits that hold it could have come, because their CRC is at the end. Credits and
// barriers ride in flits that are sent anyhow; nothing is retried.
//
// A request leaves with a credit, which stands for an entry of the device's queue: the device gives
// it back when it has completed the request. Requests leave in order; so do persist barriers.
// With GPF (global persistent flush, section 9.8) a write is persistent when the device has it: the
// device's energy suffices to empty its queue. Otherwise it is when it is in the cells. It is
// acknowledged then.
#pragma once

#include <sim/config.h>
#include <sim/controller/memory.h>
#include <sim/controller/statistics.h>

#include <deque>

namespace stele::sim {

// Where a write is that has not been acknowledged. unknown: in a channel, or several of the line.
enum class write_place : std::uint8_t { unknown, on_link, flushed_by_device };

class cxl_device {
 public:
  virtual void deliver(picoseconds now, const request& r) = 0;
  virtual void deliver_barrier() = 0;

 protected:
  ~cxl_device() = default;
};

class cxl_link final : public event_handler {
 public:
  // Precondition: c.cxl_flit_bytes is 68 or 256, c.cxl_bytes_per_ns above 0.
  cxl_link(event_queue& events, const memory_config& c, cxl_device& device);

  void submit(picoseconds now, const request& r);
  void barrier(picoseconds now);
  bool has_room() const noexcept { return waiting_.empty() && credits_ != 0; }
  // Requests without an answer, and those that the device has acknowledged and not completed.
  std::size_t outstanding() const noexcept { return outstanding_; }
  write_place place_of_write(std::uint64_t address) const noexcept;
  // What was submitted, of a request that the device has under this token.
  const request& submitted(std::uint64_t token) const noexcept { return entries_[token >> 2].req; }
  void add_to(memory_statistics& s) const;

  void handle(picoseconds now, std::uint64_t what) override;

  // channel_state.cc
  void name_parts(archive& a);
  // Reading, precondition: nothing was submitted.
  void visit_state(archive& a);

 private:
  enum class event : std::uint8_t { arrived, completed, answered, credited };
  enum class place : std::uint8_t { host, to_device, in_device };
  struct entry {
    request req;
    picoseconds submitted = 0, arrived = 0;
    place where = place::host;
    bool barrier = false, used = false, answered = false, credited = false;
    void visit_state(archive& a);
  };
  // One direction.
  struct lane {
    picoseconds free_at = 0, last_arrival = 0, busy = 0;
    void visit_state(archive& a) { a(free_at, last_arrival, busy); }
  };
  static constexpr unsigned message_slots = 1, data_slots = 5;

  bool takes(std::uint64_t what) const noexcept;
  std::size_t allocate();
  picoseconds send(lane& l, picoseconds now, unsigned slots) noexcept;
  void send_waiting(picoseconds now);
  void arrive(std::size_t i, picoseconds now);
  void complete(std::size_t i, picoseconds now);
  void answer(std::size_t i, picoseconds now, unsigned slots);
  void finish(std::size_t i, event part, picoseconds now);
  static std::uint64_t argument(std::size_t i, event e) noexcept {
    return i << 2 | static_cast<std::uint64_t>(e);
  }

  event_queue& events_;
  cxl_device& device_;
  picoseconds latency_, flit_time_;
  unsigned slots_of_flit_, credits_;
  bool gpf_;
  lane to_device_, to_host_;
  std::deque<std::size_t> waiting_;  // for a credit
  std::vector<entry> entries_;
  std::vector<std::size_t> free_;
  std::size_t outstanding_ = 0;
  span_statistics read_latency_, write_latency_, credit_wait_;
};

// Errors: invalid_argument, when the keys of a link contradict each other.
[[nodiscard]] result<void> check_link(const memory_config& c);

}  // namespace stele::sim
