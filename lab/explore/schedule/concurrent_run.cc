// The threads of a run, and the marks on its tape.
#include <base/check.h>
#include <explore/schedule/concurrent_run.h>
#include <explore/schedule/reader_beside.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stele/snapshot.h>
#include <tx/open.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <ranges>
#include <thread>

namespace stele::explore {

using base::fail;
using media::tape_mark;

// What the threads share; one runs at a time.
struct concurrent_runner::progress {
  std::uint32_t invoked = 0, ended = 0, acknowledged = 0;
  bool ordered = false;
  std::unique_ptr<reader_beside> reader;  // with concurrency_plan::attached
};

concurrent_runner::concurrent_runner(subject& s, const concurrency_plan& o)
    : subject_(s), concurrency_(o) {
  const plan& p = s.run_plan();
  base::rng random(p.seed);
  for (std::uint64_t i = 0; i < p.operations; ++i) sequential_.push_back(s.workload().draw(random));
  for (unsigned i = 0; i < p.threads * o.each; ++i)
    concurrent_.push_back(s.workload().draw(random));
}

result<concurrent_run> concurrent_runner::make(schedule::strategy& chooser, std::uint64_t limit,
                                               std::function<void(const std::string&)> stuck) {
  concurrent_run made;
  made.operations = concurrent_;
  made.before.assign(concurrent_.size(), 0);
  progress p;
  p.ordered = subject_.run_plan().sync_every != 0;
  schedule::begin(chooser, concurrency_.points, limit, std::move(stuck));
  auto tape =
      subject_.record_with(concurrency_.background, [&](hashed_image&) { return run(made, p); });
  schedule::end();
  if (!tape) made.problem = tape.error().message;
  if (tape) made.tape = std::move(*tape);
  return made;
}

result<> concurrent_runner::run(concurrent_run& made, progress& p) {
  workloads::workload& w = subject_.workload();
  w.set_commit_durability(durability::durable);
  for (auto& op : sequential_) {
    const auto done = w.apply({&op, 1});
    if (!done && done.error().code != errc::full) return done;
    if (!done) op.what = workloads::operation::kind::read;
  }
  w.set_commit_durability(p.ordered ? durability::ordered : durability::durable);
  // This thread was alone: else the first of the others would spend its choices on taking its bias.
  if (const auto entered = w.core().enter_without_bias()) w.core().leave(**entered);
  detail::reader_service service(w.core());
  if (concurrency_.attached) {
    auto reader = reader_beside::attach(subject_, service);
    if (!reader) return std::unexpected(reader.error());
    p.reader = std::move(*reader);
  }
  w.core().mechanism().note(0, tape_mark::tx_begin, 0);
  {
    const plan& of = subject_.run_plan();
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < of.threads; ++t)
      threads.emplace_back([&, t] { apply_share(t, made, p); });
    for (const std::string_view works :
         std::views::split(concurrency_.beside, '|') | std::views::transform([](auto&& part) {
           return std::string_view(part.begin(), part.end());
         }))
      threads.emplace_back([&, works] { work_beside(works, made, p); });
    schedule::enable_choices(true);
    threads.clear();
    schedule::enable_choices(false);
  }
  p.reader.reset();
  if (!made.problem.empty()) return {};
  auto& core = w.core();
  if (auto synced = sync(p); !synced) return synced;
  const auto digest = w.digest();
  if (!digest)
    return fail(digest.error().code, "the structure is broken: " + digest.error().message);
  made.digest = *digest;
  return core.close();
}

void concurrent_runner::apply_share(unsigned thread, concurrent_run& made, progress& p) {
  auto& core = subject_.workload().core();
  auto& engine = core.mechanism();
  const auto lane = static_cast<unsigned>(thread % subject_.run_plan().log_count);
  for (unsigned n = thread * concurrency_.each;
       n < (thread + 1) * concurrency_.each && made.problem.empty(); ++n) {
    engine.note(lane, tape_mark::invoked, n);
    p.invoked |= 1u << n;
    const std::uint32_t ended = made.before[n] = p.ended;
    auto& op = made.operations[n];
    // Safe: the transaction reads it when it begins, and one thread runs at a time.
    subject_.workload().set_commit_durability(ordered(thread, n, p) ? durability::ordered
                                                                    : durability::durable);
    workloads::operation_cancelled = false;
    const auto done = subject_.workload().apply({&op, 1});
    if (!done && done.error().code != errc::full) {
      made.problem =
          fmt::format("operation {} of the run itself failed: {}", n, done.error().message);
      return;
    }
    if (!done) op.what = workloads::operation::kind::read;
    p.ended |= 1u << n;
    if (ordered(thread, n, p)) {
      engine.note(lane, tape_mark::tx_commit, n);
      if (concurrency_.told) acknowledge_when_told(n, p);
    } else if (done && !only_reads(op) && !workloads::operation_cancelled) {
      acknowledge(p.ordered ? ended | 1u << n : 1u << n, p);  // with the ordered ones before it
    }
    const std::uint64_t every = subject_.run_plan().sync_every;
    if (p.ordered && (n + 1) % every == 0)
      if (auto synced = sync(p); !synced) made.problem = "a sync failed: " + synced.error().message;
  }
}

// Operations that had ended when the sync began are durable when it returns.
result<> concurrent_runner::sync(progress& p) {
  const std::uint32_t ended = p.ended;
  if (auto synced = subject_.workload().sync(); !synced) return synced;
  acknowledge(ended, p);
  return {};
}

// A durable update makes earlier commits durable, also if it stores nothing.
result<> concurrent_runner::update_nothing(progress& p) {
  const std::uint32_t ended = p.ended;
  auto done = detail::run_transaction(subject_.workload().core(), true, durability::durable, [] {});
  if (done) acknowledge(ended, p);
  return done;
}

bool concurrent_runner::ordered(unsigned thread, unsigned operation,
                                const progress& p) const noexcept {
  return p.ordered && !(concurrency_.mixed && thread % 2 != 0) &&
         !(concurrency_.last_durable && (operation + 1) % concurrency_.each == 0);
}

void concurrent_runner::acknowledge(std::uint32_t which, progress& p) {
  for (std::uint32_t left = which & ~p.acknowledged; left != 0; left &= left - 1)
    subject_.workload().core().mechanism().note(0, tape_mark::returned,
                                                static_cast<unsigned>(std::countr_zero(left)));
  p.acknowledged |= which;
}

// The newest commit may be one of another thread: then the callback comes later.
void concurrent_runner::acknowledge_when_told(unsigned operation, progress& p) {
  auto& core = subject_.workload().core();
  core.notify_when_durable(core.newest_commit(), [this, operation, &p](const result<>& durable) {
    if (durable) acknowledge(1u << operation, p);
  });
}

void concurrent_runner::work_beside(std::string_view left, concurrent_run& made, progress& p) {
  std::vector<held_snapshot> held;
  while (!left.empty() && made.problem.empty()) {
    const auto end = std::min(left.find('+'), left.size());
    const std::string_view work = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    const auto done = do_beside(work, made, p, held);
    if (!done && done.error().code != errc::unsupported && done.error().code != errc::full)
      made.problem = fmt::format("{} beside the operations failed: {}", work, done.error().message);
  }
  if (const auto done = release_snapshots(subject_.workload(), held); !done && made.problem.empty())
    made.problem = "a snapshot that was held failed: " + done.error().message;
}

result<> concurrent_runner::do_beside(std::string_view work, concurrent_run& made, progress& p,
                                      std::vector<held_snapshot>& held) {
  auto& core = subject_.workload().core();
  if (work == "check") return detail::check_storage(core);
  if (work == "sync") return sync(p);
  if (work == "backup") return back_up(made, p);
  if (work == "grow")
    return detail::grow(core, core.state().file.header().size + subject_.run_plan().pool_size / 4);
  if (work == "read") return read(made, p);
  if (work == "update") return update_nothing(p);
  if (work == "snapshot") return read_snapshot(made, p);
  if (work == "hold") return hold_snapshot(made, p, held);
  if (work == "other") return read_elsewhere(made, p, false);
  if (work == "other-at-once") return read_elsewhere(made, p, true);
  return fail(
      errc::invalid_argument,
      fmt::format(
          "nothing is known of '{}' beside operations; "
          "choose check, sync, backup, grow, read, update, snapshot, hold, other or other-at-once",
          work));
}

template <class Read>
result<> concurrent_runner::observe(Read&& read, concurrent_run& made, const progress& p) {
  concurrent_run::observation o;
  o.must = p.ended;
  const auto seen = read();
  if (!seen) return fail(seen.error().code, "what a reader saw is broken: " + seen.error().message);
  o.digest = *seen;
  o.may = p.invoked;
  made.seen.push_back(o);
  return {};
}

result<> concurrent_runner::read(concurrent_run& made, progress& p) {
  return observe([&] { return subject_.workload().digest(); }, made, p);
}

// Several reads of one snapshot: they see one state, which the pool had when it was taken.
result<> concurrent_runner::read_snapshot(concurrent_run& made, progress& p) {
  concurrent_run::observation o;
  o.must = p.ended;
  const auto held = detail::take_snapshot(subject_.workload().core());
  if (!held) return std::unexpected(held.error());
  o.may = p.invoked;
  for (int i = 0; i < 3; ++i) {
    const auto seen = held->read([&] { return subject_.workload().digest(); });
    if (!seen)
      return fail(seen.error().code, "what a snapshot shows is broken: " + seen.error().message);
    if (i != 0 && o.digest != *seen)
      return fail(errc::corrupt, "two reads of one snapshot saw different states");
    o.digest = *seen;
    made.seen.push_back(o);
  }
  return {};
}

// Taken and read now; release_snapshots() reads it again, when what follows has been done.
result<> concurrent_runner::hold_snapshot(concurrent_run& made, progress& p,
                                          std::vector<held_snapshot>& held) {
  concurrent_run::observation o;
  o.must = p.ended;
  auto taken = detail::take_snapshot(subject_.workload().core());
  if (!taken) return std::unexpected(taken.error());
  o.may = p.invoked;
  const auto seen = taken->read([&] { return subject_.workload().digest(); });
  if (!seen) return std::unexpected(seen.error());
  o.digest = *seen;
  made.seen.push_back(o);
  held.push_back({std::move(*taken), o.digest});
  return {};
}

result<> concurrent_runner::release_snapshots(workloads::workload& w,
                                              std::vector<held_snapshot>& held) {
  for (const auto& s : held) {
    const auto seen = s.at.read([&] { return w.digest(); });
    if (!seen) return std::unexpected(seen.error());
    if (*seen != s.digest)
      return fail(errc::corrupt, "it shows another state than when it was taken");
  }
  held.clear();
  return {};
}

result<> concurrent_runner::read_elsewhere(concurrent_run& made, progress& p, bool at_once) {
  const auto read_by = [&](reader_beside& reader) {
    return observe([&] { return at_once ? reader.digest_at_once() : reader.digest(); }, made, p);
  };
  if (p.reader != nullptr) return read_by(*p.reader);
  detail::reader_service service(subject_.workload().core());
  auto reader = reader_beside::attach(subject_, service);
  if (!reader) return std::unexpected(reader.error());
  if (auto seen = read_by(**reader); !seen) return seen;
  return read_by(**reader);
}

result<> concurrent_runner::back_up(concurrent_run& made, progress& p) {
  concurrent_run::backup copy;
  copy.must = p.ended;
  const std::string path = fmt::format("/dev/shm/stele-copy-{}-{}", ::getpid(), ++copies_);
  const auto done = detail::back_up(subject_.workload().core(), path, {});
  copy.may = p.invoked;
  if (!done) return done;
  copy.bytes.resize(std::filesystem::file_size(path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = ::pread(fd, copy.bytes.data(), copy.bytes.size(), 0);
  ::close(fd);
  ::unlink(path.c_str());
  if (got != static_cast<ssize_t>(copy.bytes.size()))
    return fail(errc::io, "the copy cannot be read back");
  made.backups.push_back(std::move(copy));
  return {};
}

}  // namespace stele::explore
