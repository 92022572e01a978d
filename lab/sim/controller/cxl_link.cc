// The way of a request: for a credit, over the link, into the device, and its answer back.
#include <base/check.h>
#include <sim/controller/cxl_link.h>

namespace stele::sim {

cxl_link::cxl_link(event_queue& events, const memory_config& c, cxl_device& device)
    : events_(events),
      device_(device),
      latency_(from_ns(c.cxl_latency_ns)),
      flit_time_(from_ns(c.cxl_flit_bytes / c.cxl_bytes_per_ns)),
      slots_of_flit_(c.cxl_flit_bytes == 68 ? 4 : 15),
      credits_(c.cxl_queue_entries),
      gpf_(c.cxl_gpf) {}

std::size_t cxl_link::allocate() {
  if (free_.empty()) free_.push_back(entries_.size()), entries_.emplace_back();
  const std::size_t i = free_.back();
  free_.pop_back();
  entries_[i] = {};
  entries_[i].used = true;
  return i;
}

void cxl_link::submit(picoseconds now, const request& r) {
  const std::size_t i = allocate();
  entries_[i].req = r;
  entries_[i].submitted = now;
  ++outstanding_;
  waiting_.push_back(i);
  send_waiting(now);
}

void cxl_link::barrier(picoseconds now) {
  const std::size_t i = allocate();
  entries_[i].barrier = true;
  waiting_.push_back(i);
  send_waiting(now);
}

// Returns when the receiver has the message. Messages of a direction arrive in order.
picoseconds cxl_link::send(lane& l, picoseconds now, unsigned slots) noexcept {
  const picoseconds begin = std::max(now, l.free_at), taken = slots * flit_time_ / slots_of_flit_;
  const unsigned flits = (slots + slots_of_flit_ - 1) / slots_of_flit_;
  l.free_at = begin + taken;
  l.busy += taken;
  if (slots != 0) l.last_arrival = std::max(l.last_arrival, begin + flits * flit_time_ + latency_);
  return std::max(l.last_arrival, now);
}

void cxl_link::send_waiting(picoseconds now) {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    entry& e = entries_[waiting_.front()];
    if (!e.barrier && credits_ == 0) return;
    unsigned slots = 0;
    if (!e.barrier) {
      --credits_;
      credit_wait_.add(now - e.submitted);
      slots = e.req.kind == access::write ? data_slots : message_slots;
    }
    e.where = place::to_device;
    events_.schedule(send(to_device_, now, slots), *this,
                     argument(waiting_.front(), event::arrived));
  }
}

void cxl_link::arrive(std::size_t i, picoseconds now) {
  if (entries_[i].barrier) {
    entries_[i].used = false;
    free_.push_back(i);
    return device_.deliver_barrier();
  }
  entries_[i].where = place::in_device;
  entries_[i].arrived = now;
  request r = entries_[i].req;
  if (gpf_ && r.kind == access::write) answer(i, now, message_slots);
  r.reply_to = this;
  r.token = argument(i, event::completed);
  device_.deliver(now, r);
}

void cxl_link::complete(std::size_t i, picoseconds now) {
  if (entries_[i].req.kind == access::read) return answer(i, now, data_slots);
  if (!gpf_) return answer(i, now, message_slots);
  events_.schedule(now + latency_, *this, argument(i, event::credited));
}

void cxl_link::answer(std::size_t i, picoseconds now, unsigned slots) {
  events_.schedule(send(to_host_, now, slots), *this, argument(i, event::answered));
}

// The requester may submit again when it is called; requests that wait for the credit go first.
void cxl_link::finish(std::size_t i, event part, picoseconds now) {
  entry& e = entries_[i];
  const bool write = e.req.kind == access::write, apart = gpf_ && write;
  const request r = e.req;
  if (part == event::answered) {
    (write ? write_latency_ : read_latency_).add(now - e.submitted);
    e.answered = true;
    e.req.reply_to = nullptr;  // what waited for it is gone
  }
  if (part == event::credited || !apart) ++credits_, e.credited = true;
  if (e.answered && e.credited) {
    e.used = false;
    free_.push_back(i);
    --outstanding_;
  }
  send_waiting(now);
  if (part == event::answered && r.reply_to != nullptr) r.reply_to->handle(now, r.token);
}

void cxl_link::handle(picoseconds now, std::uint64_t what) {
  const std::size_t i = what >> 2;
  switch (const auto e = static_cast<event>(what & 3)) {
    case event::arrived:
      return arrive(i, now);
    case event::completed:
      return complete(i, now);
    case event::answered:
    case event::credited:
      return finish(i, e, now);
  }
}

write_place cxl_link::place_of_write(std::uint64_t address) const noexcept {
  const entry* found = nullptr;
  for (const entry& e : entries_) {
    if (!e.used || e.barrier || e.answered || e.req.kind != access::write ||
        e.req.address != address)
      continue;
    if (found != nullptr) return write_place::unknown;
    found = &e;
  }
  if (found == nullptr) return write_place::unknown;
  if (found->where != place::in_device) return write_place::on_link;
  return gpf_ ? write_place::flushed_by_device : write_place::unknown;
}

void cxl_link::add_to(memory_statistics& s) const {
  s.link_read_latency.add(read_latency_), s.link_write_latency.add(write_latency_);
  s.link_credit_wait.add(credit_wait_);
  s.link_to_device_ps += to_device_.busy, s.link_to_host_ps += to_host_.busy;
}

result<void> check_link(const memory_config& c) {
  if (c.cxl_flit_bytes == 0) return {};
  if (c.cxl_flit_bytes != 68 && c.cxl_flit_bytes != 256)
    return base::fail(errc::invalid_argument,
                      "memory: cxl_flit_bytes is " + std::to_string(c.cxl_flit_bytes) +
                          "; CXL has flits of 68 and of 256 bytes, and 0 is a local memory");
  if (!(c.cxl_bytes_per_ns > 0))
    return base::fail(errc::invalid_argument,
                      "memory: cxl_bytes_per_ns is not above 0, so nothing would cross the link; "
                      "give the bytes a nanosecond of each direction");
  if (c.cxl_queue_entries == 0)
    return base::fail(errc::invalid_argument,
                      "memory: cxl_queue_entries is 0, so the device would admit nothing; give at "
                      "least 1");
  if (!(c.cxl_latency_ns >= 0 && c.cxl_latency_ns < 1e9 &&
        c.cxl_flit_bytes / c.cxl_bytes_per_ns < 1e9))
    return base::fail(errc::invalid_argument,
                      "memory: cxl_latency_ns or the time of a flit is negative or above a second; "
                      "give a shorter latency, or more cxl_bytes_per_ns");
  return {};
}

}  // namespace stele::sim
