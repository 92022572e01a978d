// The requests of one channel: waiting for admission, queued, and in service.
//
// A queued request is in two lists, both in order of arrival: the requests of its kind in the
// channel, and those of its kind in its bank. Lists are links within one array of entries, so
// nothing is allocated once the array has grown to the load. Each of several queued writes to one
// line links to the next older one; only a write without an older one may start.
#pragma once

#include <sim/controller/bank_set.h>
#include <sim/controller/epoch_tracker.h>
#include <sim/controller/line_index.h>
#include <sim/controller/mapping.h>
#include <sim/time.h>

#include <array>

namespace stele::sim {

struct entry {
  request req;
  std::uint64_t number = 0;  // order of arrival in the channel
  picoseconds arrived = 0, started = 0;
  std::uint32_t row = 0;
  std::uint16_t bank = 0;
  bool activated = false, precharged = false;        // a command was issued for this request
  entry_index next = no_entry, previous = no_entry;  // in the channel
  entry_index next_in_bank = no_entry, previous_in_bank = no_entry;  // in the bank
  entry_index older = no_entry, younger = no_entry;                  // queued writes to the line
  epoch_position stream;
  void visit_state(archive& a, unsigned banks);
};

struct entry_list {
  entry_index head = no_entry, tail = no_entry;
  unsigned size = 0;
};

class request_queue {
 public:
  explicit request_queue(unsigned banks)
      : banks_{std::vector<entry_list>(banks), std::vector<entry_list>(banks)} {}

  const entry& operator[](entry_index i) const noexcept { return entries_[i]; }
  entry& operator[](entry_index i) noexcept { return entries_[i]; }

  // Queued requests.
  const entry_list& of(access kind) const noexcept { return all_[index(kind)]; }
  const entry_list& of(access kind, unsigned bank) const noexcept {
    return banks_[index(kind)][bank];
  }
  const bank_set& banks_with(access kind) const noexcept { return occupied_[index(kind)]; }
  bool empty() const noexcept { return all_[0].size + all_[1].size == 0; }
  entry_index youngest_write(std::uint64_t line) const noexcept { return lines_.find(line); }

  entry_index allocate() {
    if (free_ == no_entry) {
      entries_.emplace_back();
      return static_cast<entry_index>(entries_.size() - 1);
    }
    const entry_index i = free_;
    free_ = entries_[i].next;
    entries_[i] = entry{};
    return i;
  }
  void release(entry_index i) noexcept {
    entries_[i].next = free_;
    free_ = i;
  }

  void enqueue(entry_index i) {
    entry& e = entries_[i];
    const unsigned k = index(e.req.kind);
    append<&entry::next, &entry::previous>(all_[k], i);
    append<&entry::next_in_bank, &entry::previous_in_bank>(banks_[k][e.bank], i);
    occupied_[k].insert(e.bank);
    if (e.req.kind == access::write) join_line(i);
  }

  void dequeue(entry_index i) {
    const entry& e = entries_[i];
    const unsigned k = index(e.req.kind);
    take<&entry::next, &entry::previous>(all_[k], i);
    take<&entry::next_in_bank, &entry::previous_in_bank>(banks_[k][e.bank], i);
    if (banks_[k][e.bank].size == 0) occupied_[k].erase(e.bank);
    if (e.req.kind == access::write) leave_line(i);
  }

  // All requests, and which are queued; those in front of the queue are the channel's to link.
  // Reading, precondition: there are none. (channel_state.cc)
  void visit_state(archive& a);
  std::size_t entries() const noexcept { return entries_.size(); }
  // From `head` on, by `next`.
  std::vector<entry_index> list_of(entry_index head) const;
  // For each entry: whether it is neither free nor queued.
  std::vector<bool> not_queued() const;
  bool has(access kind, unsigned bank, entry_index i) const;

 private:
  static unsigned index(access kind) noexcept { return static_cast<unsigned>(kind); }

  void join_line(entry_index i) {
    const std::uint64_t line = entries_[i].req.address;
    const entry_index before = lines_.find(line);
    entries_[i].older = before;
    if (before != no_entry) entries_[before].younger = i;
    lines_.put(line, i);
  }
  void leave_line(entry_index i) {
    const entry& e = entries_[i];
    if (e.younger != no_entry)
      entries_[e.younger].older = no_entry;
    else
      lines_.erase(e.req.address);
  }

  template <auto Next, auto Previous>
  void append(entry_list& l, entry_index i) {
    entries_[i].*Next = no_entry;
    entries_[i].*Previous = l.tail;
    (l.tail == no_entry ? l.head : entries_[l.tail].*Next) = i;
    l.tail = i;
    ++l.size;
  }
  template <auto Next, auto Previous>
  void take(entry_list& l, entry_index i) {
    const entry_index next = entries_[i].*Next, previous = entries_[i].*Previous;
    (previous == no_entry ? l.head : entries_[previous].*Next) = next;
    (next == no_entry ? l.tail : entries_[next].*Previous) = previous;
    --l.size;
  }

  std::vector<entry> entries_;
  entry_index free_ = no_entry;
  std::array<entry_list, 2> all_;
  std::array<std::vector<entry_list>, 2> banks_;
  std::array<bank_set, 2> occupied_;
  line_index lines_;
};

}  // namespace stele::sim
