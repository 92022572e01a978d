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

namespace stele::sim {

class fr_fcfs_scheduler : public scheduler {
 public:
  fr_fcfs_scheduler(const channel_state& channel, const memory_config& c);

  decision next(picoseconds now) final;
  bool enqueued(const entry& e) final;
  void bank_changed(unsigned bank) final {
    stale_[0] |= bank_bit(bank), stale_[1] |= bank_bit(bank);
  }
  void order_changed() final { stale_[1] = ~std::uint64_t{0}; }
  void about_to_issue(const entry& e) final;

 protected:
  virtual bool may_start(const entry&) const { return true; }

 private:
  void update_drain_mode(picoseconds now);
  bool can_start(const entry& e) const {
    return e.req.kind == access::read || (e.older == no_entry && may_start(e));
  }
  // The next command of a bank. Kept while the bank does not change: most banks have not changed
  // when the next command is chosen.
  struct candidate {
    std::uint64_t rank = 0;  // lowest first: data moves before row commands, then by arrival
    entry_index entry = no_entry;
    command what = command::activate;
  };
  entry_index pick(access kind, unsigned bank) const;
  candidate candidate_of(entry_index i) const;
  void update_candidates(access kind);
  decision single_decision(access kind, picoseconds now) const;
  decision decision_for(entry_index i, picoseconds now) const;
  decision starved_decision(access kind, std::uint64_t banks, picoseconds now) const;
  entry_index oldest_at_age_limit(picoseconds now) const;
  void improve(std::uint64_t usable, picoseconds now, decision& best);
  decision best_of(access kind, std::uint64_t banks, picoseconds now);
  void update_ready(unsigned k, picoseconds now);
  std::uint64_t consider(access kind, std::uint64_t banks, std::uint64_t usable, picoseconds now,
                         decision& best);
  bool starving(access kind) const;  // whether the oldest request could start

  const channel_state& channel_;
  unsigned drain_from_, drain_to_, starvation_limit_;
  picoseconds age_limit_;
  bool pulsed_;
  bool draining_ = false;
  std::array<std::vector<candidate>, 2> candidates_;  // by kind and bank
  std::array<std::vector<picoseconds>, 2>
      ready_at_;  // when the rules of the bank's own node allow it
  std::array<std::uint64_t, 2> has_candidate_{},
      stale_{};                                // banks with a candidate; with an outdated one
  std::array<std::uint64_t, 2> moves_data_{};  // candidates that move data; others may be outdated
  std::array<std::uint64_t, 2> ready_{};       // candidates whose ready_at_ has passed
  std::array<picoseconds, 2> next_ready_{never, never};  // a lower bound of ready_at_ of the others
  std::array<unsigned, 2> next_ready_bank_{};            // the bank of next_ready_
  std::array<unsigned, 2> bypassed_{};                   // requests that have passed the oldest one
};

}  // namespace stele::sim
