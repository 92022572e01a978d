// Fills a pool, and runs its operations under the recorder.
#include <fmt/format.h>
#include <lab_media/lab_medium.h>
#include <tx/open.h>
#include <unistd.h>
#include <workloads/record.h>
#include <workloads/tpcc.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace stele::workloads {
namespace {

// The log of the calling thread's transactions, which it keeps: there is one for each thread.
result<unsigned> own_log(detail::runtime& core) {
  const auto entered = core.enter_without_bias();
  if (!entered) return std::unexpected(entered.error());
  const unsigned log = (*entered)->tx->log();
  core.leave(**entered);
  return log;
}

result<> perform(workload& w, const operation& op, std::uint64_t number) {
  const auto log = own_log(w.core());
  if (!log) return std::unexpected(log.error());
  w.core().mechanism().note(*log, media::tape_mark::invoked, number);
  auto done = w.apply({&op, 1});
  w.core().mechanism().note(*log, media::tape_mark::returned, number);
  return done;
}

// A thread that ends gives up its log, so all threads stay until the last operation is done. The
// first thread fills the structure, so that a reader does not let its operations overlap with that.
result<> take_turns(workload& w, const recording_options& r) {
  base::rng random(r.seed);
  result<> outcome;
  std::atomic<std::uint64_t> turn{0};
  auto work = [&](unsigned me) {
    if (me == 0 && r.record_set_up) outcome = w.set_up();
    for (std::uint64_t now = turn.load(); now < r.operations; now = turn.load()) {
      if (now % r.threads != me) {
        turn.wait(now);
        continue;
      }
      const operation op = w.draw(random);
      if (outcome && !r.cancelled()) outcome = perform(w, op, now);
      turn.store(now + 1);
      turn.notify_all();
    }
  };
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < r.threads; ++t) workers.emplace_back(work, t);
  workers.clear();
  return outcome;
}

pool_options options_of(const recording_options& r, const std::string& mechanism) {
  pool_options p;
  // The transaction that makes a warehouse logs all its tables.
  const std::size_t tables_bytes =
      r.workload == "tpcc" ? 2 * tpcc::live_bytes(tpcc::shape(r.content)) : 0;
  p.create_size = tables_bytes + r.content.keys * (r.content.value_size + 128) * 2 +
                  (std::size_t{4} << 20) + r.threads * (std::size_t{1} << 19);
  p.engine.log_count = r.threads + 1;  // one more for the thread that fills
  p.engine.log_size = std::size_t{1} << 16;
  if (r.make_hosted) {
    p.create_size = r.hosted_pool_size;
    p.engine.log_size = std::size_t{1} << 20;
    p.policy = concurrency::external;
  }
  p.engine.mechanism = mechanism;
  p.engine.media = "adr";
  p.engine.background = false;
  return p;
}

result<> fill(workload& w, const std::string& path, const pool_options& options) {
  auto handle = detail::pool_handle::open(path, options, w.root_size());
  if (!handle) return std::unexpected(handle.error());
  w.attach(std::move(*handle));
  auto filled = w.set_up();
  w.detach();
  return filled;
}

result<detail::pool_handle> open_recorded(workload& w, const std::string& path,
                                          const detail::mechanism_entry& m,
                                          const pool_options& options, const recording_options& r,
                                          const tape_factory& make,
                                          std::unique_ptr<media::tape_writer>& tape) {
  auto file = storage::pool_file::open(path, m.map, 0);
  if (!file) return std::unexpected(file.error());
  media::tape_options shape = media::tape_options_of(file->header(), m.logs);
  shape.record_bytes = r.record_bytes;
  shape.record_loads = true;
  auto made = make(shape);
  if (!made) return std::unexpected(made.error());
  tape = std::move(*made);
  if (r.record_bytes) tape->image(file->base(), file->header().size);
  const detail::media_choice media = media::on_tape(*tape, {.background = false});
  auto opened =
      detail::open_on(std::make_unique<detail::pool_state>(std::move(*file)), media, m, options);
  if (!opened) return std::unexpected(opened.error());
  return detail::pool_handle::from_runtime(std::move(*opened), w.root_size());
}

result<std::unique_ptr<media::tape_writer>> record_at(const std::string& path, workload& w,
                                                      const recording_options& r,
                                                      const tape_factory& make) {
  const auto mechanism = detail::find_mechanism(r.mechanism);
  if (!mechanism) return std::unexpected(mechanism.error());
  const pool_options options = options_of(r, (*mechanism)->name);
  if (auto created = storage::pool_file::create(
          path, {options.create_size, options.engine.log_size, options.engine.log_count, "recorded",
                 (*mechanism)->home});
      !created)
    return std::unexpected(created.error());
  if (!r.record_set_up)
    if (auto filled = fill(w, path, options); !filled) return std::unexpected(filled.error());
  std::unique_ptr<media::tape_writer> tape;
  auto handle = open_recorded(w, path, **mechanism, options, r, make, tape);
  if (!handle) return std::unexpected(handle.error());
  w.attach(std::move(*handle));
  auto done = take_turns(w, r);
  w.detach();
  if (!done) return std::unexpected(done.error());
  if (auto finished = tape->finish(); !finished) return std::unexpected(finished.error());
  return tape;
}

}  // namespace

result<std::unique_ptr<media::tape_writer>> record(const recording_options& r,
                                                   const tape_factory& make) {
  auto w = r.make_hosted ? r.make_hosted() : make_workload(r.workload, r.content);
  if (!w) return std::unexpected(w.error());
  static std::atomic<unsigned> made{0};
  const std::string path = fmt::format("{}/tape-{}-{}.stele", r.dir, ::getpid(), made++);
  auto tape = record_at(path, **w, r, make);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return tape;
}

}  // namespace stele::workloads
