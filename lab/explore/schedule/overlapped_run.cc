// The threads of a run, and their marks on its tape.
#include <base/check.h>
#include <explore/schedule/overlapped_run.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <tx/open.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <thread>

namespace stele::explore {

using base::fail;
using media::mark;

// What the threads know of each other; one runs at a time.
struct overlapped_runs::progress {
  std::uint32_t invoked = 0, ended = 0, acknowledged = 0;
  bool ordered = false;
};

overlapped_runs::overlapped_runs(subject& s, const overlap& o) : subject_(s), overlap_(o) {
  const plan& p = s.named_by();
  base::rng random(p.seed);
  for (std::uint64_t i = 0; i < p.operations; ++i) first_.push_back(s.workload().draw(random));
  for (unsigned i = 0; i < p.threads * o.each; ++i) together_.push_back(s.workload().draw(random));
}

result<overlapped> overlapped_runs::make(schedule::strategy& who, std::uint64_t limit,
                                         std::function<void(const std::string&)> stuck) {
  overlapped made;
  made.operations = together_;
  made.before.assign(together_.size(), 0);
  progress p;
  p.ordered = subject_.named_by().sync_every != 0;
  schedule::begin(who, overlap_.points, limit, std::move(stuck));
  auto tape = subject_.record_with(overlap_.background, [&](hashed_image&) { return run(made, p); });
  schedule::end();
  if (!tape) made.problem = tape.error().message;
  if (tape) made.tape = std::move(*tape);
  return made;
}

result<> overlapped_runs::run(overlapped& made, progress& p) {
  workloads::workload& w = subject_.workload();
  w.commit_as(durability::durable);
  for (const auto& op : first_)
    if (auto done = w.apply({&op, 1}); !done && done.error().code != errc::full) return done;
  w.commit_as(p.ordered ? durability::ordered : durability::durable);
  w.core().mechanism().note(0, mark::tx_begin, 0);
  {
    const plan& of = subject_.named_by();
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < of.threads; ++t) threads.emplace_back([&, t] { apply_share(t, made, p); });
    if (!overlap_.beside.empty()) threads.emplace_back([&] { work_beside(made, p); });
    schedule::ask(true);
    threads.clear();
    schedule::ask(false);
  }
  if (!made.problem.empty()) return {};
  auto& core = w.core();
  if (auto synced = sync(p); !synced) return synced;
  const auto digest = w.digest();
  if (!digest) return fail(digest.error().code, "the structure is broken: " + digest.error().message);
  made.digest = *digest;
  return core.close();
}

void overlapped_runs::apply_share(unsigned thread, overlapped& made, progress& p) {
  auto& engine = subject_.workload().core().mechanism();
  const auto lane = static_cast<unsigned>(thread % subject_.named_by().log_count);
  for (unsigned n = thread * overlap_.each; n < (thread + 1) * overlap_.each && made.problem.empty(); ++n) {
    engine.note(lane, mark::invoked, n);
    p.invoked |= 1u << n;
    const std::uint32_t ended = made.before[n] = p.ended;
    auto& op = made.operations[n];
    // Looked at before the transaction begins; and one thread runs at a time.
    subject_.workload().commit_as(ordered(thread, p) ? durability::ordered : durability::durable);
    const auto done = subject_.workload().apply({&op, 1});
    if (!done && done.error().code != errc::full) {
      made.problem = fmt::format("operation {} of the run itself failed: {}", n, done.error().message);
      return;
    }
    if (!done) op.what = workloads::operation::kind::read;
    p.ended |= 1u << n;
    if (ordered(thread, p))
      engine.note(lane, mark::tx_commit, n);
    else
      acknowledge(p.ordered ? ended | 1u << n : 1u << n, p);  // and the ordered ones before it
    const std::uint64_t every = subject_.named_by().sync_every;
    if (p.ordered && (n + 1) % every == 0)
      if (auto synced = sync(p); !synced) made.problem = "a sync failed: " + synced.error().message;
  }
}

// What had ended when it began is durable when it returns.
result<> overlapped_runs::sync(progress& p) {
  const std::uint32_t ended = p.ended;
  auto& core = subject_.workload().core();
  if (auto synced = detail::sync_pool(core); !synced) return synced;
  acknowledge(ended, p);
  return {};
}

bool overlapped_runs::ordered(unsigned thread, const progress& p) const noexcept {
  return p.ordered && !(overlap_.mixed && thread % 2 != 0);
}

void overlapped_runs::acknowledge(std::uint32_t which, progress& p) {
  for (std::uint32_t left = which & ~p.acknowledged; left != 0; left &= left - 1)
    subject_.workload().core().mechanism().note(0, mark::returned, static_cast<unsigned>(std::countr_zero(left)));
  p.acknowledged |= which;
}

void overlapped_runs::work_beside(overlapped& made, progress& p) {
  std::string_view left = overlap_.beside;
  while (!left.empty() && made.problem.empty()) {
    const auto end = std::min(left.find('+'), left.size());
    const std::string_view work = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    const auto done = do_beside(work, made, p);
    if (!done && done.error().code != errc::unsupported && done.error().code != errc::full)
      made.problem = fmt::format("{} beside the operations failed: {}", work, done.error().message);
  }
}

result<> overlapped_runs::do_beside(std::string_view work, overlapped& made, progress& p) {
  auto& core = subject_.workload().core();
  if (work == "check") return detail::check_storage(core);
  if (work == "sync") return sync(p);
  if (work == "backup") return back_up(made, p);
  if (work == "grow") return detail::grow(core, core.state().file.header().size + subject_.named_by().pool_size / 4);
  if (work == "read") return read(made, p);
  return fail(errc::invalid_argument,
              fmt::format("nothing is known of '{}' beside operations; choose check, sync, backup, grow or read", work));
}

result<> overlapped_runs::read(overlapped& made, progress& p) {
  overlapped::observation o;
  o.must = p.ended;
  const auto seen = subject_.workload().digest();
  if (!seen) return fail(seen.error().code, "what a reader saw is broken: " + seen.error().message);
  o.digest = *seen;
  o.may = p.invoked;
  made.seen.push_back(o);
  return {};
}

result<> overlapped_runs::back_up(overlapped& made, progress& p) {
  overlapped::copy copy;
  copy.must = p.ended;
  const std::string path = fmt::format("/dev/shm/stele-copy-{}", ::getpid());
  const auto done = detail::back_up(subject_.workload().core(), path, {});
  copy.may = p.invoked;
  if (!done) return done;
  copy.bytes.resize(std::filesystem::file_size(path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = ::pread(fd, copy.bytes.data(), copy.bytes.size(), 0);
  ::close(fd);
  ::unlink(path.c_str());
  if (got != static_cast<ssize_t>(copy.bytes.size())) return fail(errc::io, "the copy cannot be read back");
  made.copies.push_back(std::move(copy));
  return {};
}

}  // namespace stele::explore
