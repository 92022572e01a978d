// First-ready, first-come-first-served (Rixner et al., "Memory access scheduling", 2000). Of the
// commands that the rules allow soonest, a command that moves data comes first, then the command of
// the oldest request.
//
// In a bank, requests for the open row pass older requests. Once `starvation_limit` requests have
// passed the channel's oldest request, only the oldest is served. That counts requests of one kind;
// the age limit holds over both: the oldest request that has waited for it has its bank for itself,
// and once its bank is ready, no other request of the channel is served before it. Reads come
// before writes until the write queue fills to write_drain_from; then writes come first, until the
// queue falls to write_drain_to; a write at the age limit begins that too. While no read waits for
// its row to be opened, writes are served too. A row that was opened for a request is not closed
// before that request is served, whichever kind comes first by then (unless for a request at the
// age limit), and is served before others that could be served at the same time. If writing cells
// keeps a bank busy (a pulse), banks without a request of the preferred kind serve the other kind
// meanwhile; otherwise they do not, because the bus would turn too often. Barriers are ignored; a
// derived scheduler that follows them says which writes may start.
#pragma once

#include <sim/controller/scheduler.h>

#include <typeinfo>

namespace stele::sim {

// For channels of at most 64 banks a word.
template <unsigned Words>
class fr_fcfs : public scheduler {
 public:
  fr_fcfs(const channel_state& channel, const memory_config& c);

  decision next(picoseconds now) final;
  bool enqueued(const entry& e) final;
  void bank_changed(unsigned bank) final { stale_[0].insert(bank), stale_[1].insert(bank); }
  void order_changed() final { stale_[1] = banks::all(); }
  void about_to_issue(const entry& e) final;
  // A derived class without a visit_state() of its own may have members that this one does not
  // know.
  void visit_state(archive& a) override {
    typeid(*this) == typeid(fr_fcfs) ? fr_fcfs_state(a) : scheduler::visit_state(a);
  }

 protected:
  void fr_fcfs_state(archive& a);  // channel_state.cc
  virtual bool may_start(const entry&) const { return true; }

 private:
  using banks = bank_words<Words>;

  void update_drain_mode(picoseconds now);
  bool can_start(const entry& e) const {
    return e.req.kind == access::read || (e.older == no_entry && may_start(e));
  }
  // The next command of a bank. Kept while the bank does not change: most banks have not changed
  // when the next command is chosen.
  struct candidate {
    std::uint64_t rank = 0;  // lowest first: data moves before row commands, then by arrival
    picoseconds ready = 0;   // when the rules of the bank's own node allow it
    entry_index entry = no_entry;
    command what = command::activate;
  };
  [[gnu::always_inline]] entry_index pick(access kind, unsigned bank) const;
  void update_candidates(access kind);
  decision single_decision(access kind, picoseconds now) const;
  decision decision_for(entry_index i, picoseconds now) const;
  decision starved_decision(access kind, const banks& among, picoseconds now) const;
  entry_index find_oldest_at_age_limit(picoseconds now);
  void improve(banks usable, picoseconds now, decision& best);
  template <class Above>
  [[gnu::always_inline]] decision best_of(access kind, const banks& among, picoseconds now,
                                          const Above& above) const;
  [[gnu::always_inline]] decision best_of(access kind, const banks& among, picoseconds now) const;
  [[gnu::always_inline]] banks consider(access kind, const banks& among, const banks& usable,
                                        picoseconds now, decision& best);
  bool starving(access kind) const;  // whether the oldest request could start

  const channel_state& channel_;
  unsigned drain_from_, drain_to_, starvation_limit_;
  picoseconds age_limit_;
  picoseconds next_at_age_limit_ = 0;  // no request is at the age limit before it
  bool pulsed_;
  bool draining_ = false;
  std::array<std::vector<candidate>, 2> candidates_;  // by kind and bank
  std::array<banks, 2> has_candidate_, stale_;  // banks with a candidate; with an outdated one
  std::array<banks, 2> moves_data_;             // candidates that move data; others may be outdated
  std::array<unsigned, 2> bypassed_{};          // requests that have passed the oldest one
};

extern template class fr_fcfs<1>;
extern template class fr_fcfs<max_banks / 64>;
using fr_fcfs_scheduler = fr_fcfs<max_banks / 64>;  // for any channel

// Whether a scheduler of one word will do.
inline bool has_one_word(const channel_state& channel) noexcept {
  return channel.open_row.size() <= 64;
}

}  // namespace stele::sim
