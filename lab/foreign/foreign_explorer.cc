// The walk, the sample at each point, and the search for the smallest state; see
// foreign_explorer.h.
#include <base/check.h>
#include <base/rng.h>
#include <explore/state_sampler.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <foreign/foreign_explorer.h>
#include <media/os.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace stele::foreign {

using explore::line_size;

namespace {

constexpr std::uint64_t most_tries = 200;  // in each direction of the search for the smallest

// The lines of one crash point, with their numbers of options, and a choice among these.
struct choice {
  std::vector<std::uint32_t> lines;
  std::vector<std::uint64_t> options, chosen;

  explicit choice(const crash_walk& w) : lines(w.pending().begin(), w.pending().end()) {
    for (const std::uint32_t line : lines) options.push_back(w.options(line));
    chosen.assign(lines.size(), 0);
  }
  std::uint64_t all_of(std::size_t i) const { return options[i] - 1; }
  std::uint64_t base_of(std::size_t i, bool keeps) const { return keeps ? all_of(i) : 0; }
  std::size_t distance(bool keeps) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) n += chosen[i] != base_of(i, keeps);
    return n;
  }
  // How many lines tell the state: those that differ from the others, or all where none does.
  std::size_t told(bool keeps) const {
    const std::size_t n = distance(keeps);
    return n == 0 ? lines.size() : n;
  }
  bool tells_kept() const { return told(true) <= told(false); }
  std::size_t size() const { return std::min(told(true), told(false)); }
  state_line line_at(std::uint64_t point) const {
    state_line line{point, tells_kept(), {}};
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (chosen[i] != base_of(i, line.keeps_others))
        line.options[std::uint64_t{lines[i]} * line_size] = chosen[i];
    return line;
  }
  void put(crash_walk& w) const {
    for (std::size_t i = 0; i < lines.size(); ++i) w.choose(lines[i], chosen[i]);
  }
};

crash_image image_of(const crash_walk& w) {
  return {w.image(), w.image_size(), w.output()};
}

// Goes to a crash point and takes the choice of a line there.
result<choice> go_to(crash_walk& w, const state_line& line) {
  while (w.point() < line.point)
    if (!w.next())
      return base::fail(errc::invalid_argument,
                        fmt::format("the recording has {} crash points, and no point {}; is it the "
                                    "recording that the line was printed for?",
                                    w.point(), line.point));
  choice c(w);
  std::size_t found = 0;
  for (std::size_t i = 0; i < c.lines.size(); ++i) {
    const auto named = line.options.find(std::uint64_t{c.lines[i]} * line_size);
    c.chosen[i] = named == line.options.end() ? c.base_of(i, line.keeps_others) : named->second;
    found += named != line.options.end();
    if (c.chosen[i] >= c.options[i]) found = line.options.size() + 1;
  }
  if (found != line.options.size())
    return base::fail(errc::invalid_argument,
                      "the recording has no such state at this crash point; is it the recording "
                      "that the line was printed for?");
  c.put(w);
  return c;
}

class exploration {
 public:
  exploration(const trace& t, checker& c, const explore_settings& s)
      : trace_(t), checker_(c), settings_(s) {}

  result<findings> run();

 private:
  result<void> judge_whole_run();
  result<void> visit(crash_walk& w);
  result<void> judge(const crash_walk& w, const choice& c);
  void note(const state_line& line, std::size_t size, const judgement& seen);
  result<void> make_smaller();
  result<void> approach(crash_walk& w, choice& c, bool keeps);
  bool stopped() const { return found_.cancelled || found_.about >= settings_.max_violations; }
  // Whether a state violates in the way that is sought: a bug that is found often hides no other.
  bool is_sought(const judgement& seen) const {
    return !seen.consistent && seen.what.find(settings_.about) != seen.what.npos;
  }

  const trace& trace_;
  checker& checker_;
  const explore_settings& settings_;
  findings found_;
  std::unordered_set<std::uint64_t> judged_;
  std::size_t smallest_size_ = 0;
};

// What the program left without a crash must be consistent, or else the checker is wrong.
result<void> exploration::judge_whole_run() {
  crash_walk w(trace_);
  while (w.next() && !w.is_last()) {
  }
  found_.points_total = w.point();
  choice all(w);
  for (std::size_t i = 0; i < all.lines.size(); ++i) all.chosen[i] = all.all_of(i);
  all.put(w);
  const auto seen = checker_.judge(image_of(w));
  if (!seen) return std::unexpected(seen.error());
  if (!seen->could_run)
    return base::fail(errc::not_found, "the checker cannot be run (" + seen->what +
                                           "); check the "
                                           "command after --check");
  if (!seen->consistent)
    return base::fail(errc::invalid_argument,
                      "the checker rejects the pool as the program left it, without any crash (" +
                          seen->what + "); a checker ends with status 0 for a consistent pool");
  return {};
}

result<findings> exploration::run() {
  const auto begun = std::chrono::steady_clock::now();
  if (const auto sound = judge_whole_run(); !sound) return std::unexpected(sound.error());
  crash_walk w(trace_);
  while (!stopped() && w.next()) {
    found_.points = w.point();
    if (const auto visited = visit(w); !visited) return std::unexpected(visited.error());
  }
  if (const auto waited = checker_.wait_for_all(); !waited) return std::unexpected(waited.error());
  found_.ended_early = found_.about >= settings_.max_violations;
  if (found_.about != 0 && !found_.cancelled)
    if (const auto smaller = make_smaller(); !smaller) return std::unexpected(smaller.error());
  found_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return found_;
}

result<void> exploration::visit(crash_walk& w) {
  choice c(w);
  explore::state_sampler sampler(c.options, settings_.bound, base::mix(settings_.seed + w.point()));
  found_.sampled_points += !sampler.exhaustive();
  std::vector<std::uint64_t> chosen(c.chosen);
  for (std::uint64_t k = 0; k < sampler.count() && !stopped(); ++k) {
    sampler.select(k, chosen);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] != c.chosen[i]) w.choose(c.lines[i], c.chosen[i] = chosen[i]);
    const std::uint64_t said = checker_.reads_output() ? base::mix(w.output().size() + 1) : 0;
    if (!judged_.insert(w.image().hash().all ^ said).second) {
      ++found_.repeated;
      continue;
    }
    if (const auto done = judge(w, c); !done) return done;
    if (settings_.progress) settings_.progress(found_);
    found_.cancelled = settings_.cancelled && settings_.cancelled();
  }
  return {};
}

result<void> exploration::judge(const crash_walk& w, const choice& c) {
  ++found_.states;
  return checker_.begin(
      image_of(w), [this, line = c.line_at(w.point()), size = c.size()](const judgement& seen) {
        if (!seen.consistent) note(line, size, seen);
      });
}

void exploration::note(const state_line& line, std::size_t size, const judgement& seen) {
  ++found_.violating;
  ++found_.complaints[seen.what];
  if (!is_sought(seen) || (found_.about++ != 0 && size >= smallest_size_)) return;
  found_.smallest = line;
  found_.what = seen.what;
  smallest_size_ = size;
}

// Gives lines the content that they have when everything is kept, or lost, as long as the state
// violates: first many at a time, then ever fewer, as delta debugging does (Zeller, Hildebrandt,
// Simplifying and Isolating Failure-Inducing Input, 2002).
result<void> exploration::approach(crash_walk& w, choice& c, bool keeps) {
  std::uint64_t tries = 0;
  for (std::size_t count = c.lines.size(); count != 0; count /= 2)
    for (std::size_t i = 0; i < c.lines.size() && tries < most_tries; i += count) {
      choice trial = c;
      for (std::size_t k = i; k < std::min(i + count, c.lines.size()); ++k)
        trial.chosen[k] = c.base_of(k, keeps);
      if (trial.chosen == c.chosen) continue;
      trial.put(w);
      ++tries, ++found_.tried;
      const auto seen = checker_.judge(image_of(w));
      if (!seen) return std::unexpected(seen.error());
      if (is_sought(*seen)) c = trial, found_.what = seen->what;
    }
  return {};
}

result<void> exploration::make_smaller() {
  crash_walk w(trace_);
  auto c = go_to(w, found_.smallest);
  if (!c) return std::unexpected(c.error());
  choice kept = *c, lost = *c;
  const std::string what = found_.what;
  if (const auto done = approach(w, kept, true); !done) return done;
  std::string what_of_kept = std::exchange(found_.what, what);
  if (const auto done = approach(w, lost, false); !done) return done;
  // Which stores must be lost says more than which must be kept.
  const choice& best = kept.size() <= lost.size() ? kept : lost;
  if (&best == &kept) found_.what = what_of_kept;
  best.put(w);
  found_.smallest = best.line_at(w.point());
  found_.place = w.place();
  const bool all_alike = found_.smallest.options.empty();
  for (std::size_t i = 0; i < best.lines.size(); ++i)
    for (const auto& o : w.outcomes(best.lines[i], best.chosen[i]))
      if (all_alike || o.kept != found_.smallest.keeps_others) found_.differing.push_back(o);
  return {};
}

result<void> write_image(const std::string& path, const crash_walk& w) {
  const int fd = media::os::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const bool is_written =
      fd >= 0 &&
      media::os::write_all(fd, w.image().data(), static_cast<std::size_t>(w.image_size()), 0);
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (!is_written) return base::fail_errno(errc::io, "write " + path, number);
  return {};
}

}  // namespace

result<findings> explore(const trace& t, checker& c, const explore_settings& s) {
  return exploration(t, c, s).run();
}

result<replayed> replay(const trace& t, checker& c, const state_line& line,
                        const std::string& image) {
  crash_walk w(t);
  const auto there = go_to(w, line);
  if (!there) return std::unexpected(there.error());
  if (!image.empty())
    if (const auto written = write_image(image, w); !written)
      return std::unexpected(written.error());
  const auto seen = c.judge(image_of(w));
  if (!seen) return std::unexpected(seen.error());
  replayed r{*seen, w.place(), {}, {}};
  for (std::size_t i = 0; i < there->lines.size(); ++i)
    for (const auto& o : w.outcomes(there->lines[i], there->chosen[i]))
      (o.kept ? r.kept : r.lost).push_back(o);
  return r;
}

}  // namespace stele::foreign
