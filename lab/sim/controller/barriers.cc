// Persist barriers: decides which writes may start before all writes ahead of a barrier are
// persistent.
//
// After Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual Persistency
// in Persistent Memory", 2015, section 3.3. Writes are told apart by address alone (log_ranges.h).
// - strict: a write starts when all writes of earlier epochs are persistent. The rules below allow
//   more writes to start.
// - rule 1: a log record need not wait at barriers. It must be persistent only before its commit
//   record, which waits.
// - rule 2: a commit record may pass its pre-commit barrier. It starts when all log records of the
//   epoch before its own are persistent and all epochs before that one are wholly persistent.
// Departures: two guards. Without them the paper's rules lose committed transactions once a log is
// truncated and reused.
// - Rule 1: a log record that passes a barrier waits for every earlier write to its own log's
//   commit record. Such a write may be a truncation, and before it is persistent a crash still
//   needs the records that would be overwritten.
// - Rule 2: only a commit-record write that follows a log record of its own log since the log's
//   last commit-record write is a commit. Any other is a truncation, which must not pass the data
//   whose records it gives up. (A truncation that comes after the next transaction's first record
//   looks like a commit; a log must be truncated before it is written again.)
// Two schedulers are wrong on purpose: bare (both rules without guards) and commit_first (a commit
// record does not wait for the log records of the epoch that it moves into).
#include <sim/controller/fr_fcfs.h>
#include <sim/controller/schedulers.h>

namespace stele::sim {
namespace {

struct barrier_rules {
  bool rule1 = false, rule2 = false;
  bool guarded = true;
  bool records_first = true;  // part of rule 2
};

template <unsigned Words>
class barrier_scheduler final : public fr_fcfs<Words> {
 public:
  barrier_scheduler(const channel_state& channel, const memory_config& c,
                    const epoch_tracker& stream, barrier_rules rules)
      : fr_fcfs<Words>(channel, c), stream_(stream), rules_(rules) {}
  void visit_state(archive& a) override { this->fr_fcfs_state(a); }

 protected:
  bool may_start(const entry& e) const override {
    const epoch_position& p = e.stream;
    if (stream_.persistent_before(p.epoch)) return true;
    if (p.origin.what == write_class::log_record) return rules_.rule1 && may_pass_barrier(p);
    return p.origin.what == write_class::commit_record && rules_.rule2 && may_commit_early(p);
  }

 private:
  bool may_pass_barrier(const epoch_position& record) const {
    return !rules_.guarded || stream_.commits_persistent_before(record);
  }
  bool may_commit_early(
      const epoch_position& commit) const {  // not the first epoch, which may_start allows
    return (!rules_.guarded || commit.after_records) &&
           stream_.persistent_before(commit.epoch - 1) &&
           (!rules_.records_first || stream_.records_persistent(commit.epoch - 1));
  }

  const epoch_tracker& stream_;
  barrier_rules rules_;
};

template <barrier_rules Rules>
std::unique_ptr<scheduler> make(const channel_state& channel, const memory_config& c,
                                const epoch_tracker& stream) {
  barrier_rules rules = Rules;
  rules.guarded = rules.guarded && c.guarded_rules;
  if (has_one_word(channel))
    return std::make_unique<barrier_scheduler<1>>(channel, c, stream, rules);
  return std::make_unique<barrier_scheduler<max_banks / 64>>(channel, c, stream, rules);
}

}  // namespace

std::unique_ptr<scheduler> make_strict(const channel_state& channel, const memory_config& c,
                                       const epoch_tracker& s) {
  return make<barrier_rules{}>(channel, c, s);
}
std::unique_ptr<scheduler> make_rule1(const channel_state& channel, const memory_config& c,
                                      const epoch_tracker& s) {
  return make<barrier_rules{.rule1 = true}>(channel, c, s);
}
std::unique_ptr<scheduler> make_rule2(const channel_state& channel, const memory_config& c,
                                      const epoch_tracker& s) {
  return make<barrier_rules{.rule2 = true}>(channel, c, s);
}
std::unique_ptr<scheduler> make_rules(const channel_state& channel, const memory_config& c,
                                      const epoch_tracker& s) {
  return make<barrier_rules{.rule1 = true, .rule2 = true}>(channel, c, s);
}
std::unique_ptr<scheduler> make_bare(const channel_state& channel, const memory_config& c,
                                     const epoch_tracker& s) {
  return make<barrier_rules{.rule1 = true, .rule2 = true, .guarded = false}>(channel, c, s);
}
std::unique_ptr<scheduler> make_commit_first(const channel_state& channel, const memory_config& c,
                                             const epoch_tracker& s) {
  return make<barrier_rules{.rule2 = true, .records_first = false}>(channel, c, s);
}

}  // namespace stele::sim
