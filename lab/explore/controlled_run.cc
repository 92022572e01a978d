// Applies a tape's writes to memory.
#include <explore/controlled_run.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stele::explore {

using media::tape_op;
using sim::trace_step;
using step_kind = sim::trace_step::kind;

// A write's content is the line as the program sees it at the flush.
result<> controlled_run::tape_changed(subject& s) {
  contents_.clear();
  hashed_image seen = s.empty_image();
  seen.assign(initial_);
  auto reader = media::tape_reader::from_memory(tape_);
  header_ = reader->header();
  while (auto event = *reader->next()) {
    const bool stores = event->op == tape_op::store || event->op == tape_op::stream;
    if (stores && !event->bytes.empty())
      std::memcpy(seen.data() + event->address, event->bytes.data(), event->bytes.size());
    const auto lines = sim::lines_written_by(*event);
    for (std::uint64_t i = 0; i < lines.count; ++i)
      std::memcpy(contents_.emplace_back().data(), seen.line(lines.first + i), line_size);
  }
  return compute_overlaps(s);
}

sim::write_trace controlled_run::trace() const {
  return sim::write_trace(std::move(*media::tape_reader::from_memory(tape_)));
}

result<> controlled_run::compute_overlaps(subject& s) {
  overlaps overlap(history.operations.size());
  std::vector<std::uint64_t> running;
  sim::write_trace steps = trace();
  for (;;) {
    const auto step = steps.next();
    if (!step) return std::unexpected(step.error());
    if (!*step) break;
    if ((*step)->what == step_kind::began)
      overlap[(*step)->number] = running, running.push_back((*step)->number);
    if ((*step)->what == step_kind::ended) std::erase(running, (*step)->number);
  }
  allowed_ = std::make_unique<consistent_cuts>(s.workload(), history.operations, overlap);
  return {};
}

void controlled_run::rewind() {
  work.assign(initial_);
  operations_.assign(history.operations.size(), {});
  acknowledged_ = invoked_ = position_;
  acknowledged_out_of_order_.clear();
  writes_persisted = 0;
}

void controlled_run::submitted(const trace_step& s) {
  if (s.what == step_kind::began) invoked_ = s.number + 1;
  if (s.operation == trace_step::outside) return;
  progress& p = operations_[s.operation];
  if (s.what == step_kind::write) p.writes.push_back({s.address, s.number, false}), ++p.pending;
  if (s.what == step_kind::ended) p.ended = true, acknowledge();
}

void controlled_run::persisted(const trace_step& s) {
  work.put(s.address / line_size, contents_[s.number].data());
  ++writes_persisted;
  if (s.operation == trace_step::outside) return;
  progress& p = operations_[s.operation];
  std::ranges::find(p.writes, s.number, &line_write::number)->persistent = true;
  --p.pending;
  acknowledge();
}

void controlled_run::expire_logs(std::uint64_t seed) {
  base::rng random(seed);
  const std::uint64_t one_of = std::uint64_t{2} << random() % 6;
  for (std::uint64_t line = header_.log_offset / line_size; line < header_.home_offset / line_size;
       ++line) {
    if (random() % one_of != 0) continue;
    line_content& kept = expired_.emplace_back(line, line_content{}).second;
    std::memcpy(kept.data(), work.line(line), line_size);
    line_content held = kept;
    for (std::uint64_t words = 1 + random() % 8; words != 0; --words) held[random() % 8] = random();
    work.put(line, held.data());
  }
}

void controlled_run::put_logs_back() {
  for (const auto& [line, content] : expired_) work.put(line, content.data());
  expired_.clear();
}

// An operation without writes is acknowledged only with those before it: alone it leaves no trace.
void controlled_run::acknowledge() {
  while (acknowledged_ < operations_.size() && operations_[acknowledged_].acknowledged())
    ++acknowledged_;
  acknowledged_out_of_order_.clear();
  for (std::uint64_t n = acknowledged_; n < invoked_; ++n)
    if (operations_[n].acknowledged() && !operations_[n].writes.empty())
      acknowledged_out_of_order_.push_back(n);
}

std::string controlled_run::violation_of(const judge::judgement& a) const {
  const verdict& v = image_judge.verdict_of(a);
  if (!v.problem.empty()) return v.problem;
  if (allowed_->allows(v.digest, acknowledged_, acknowledged_out_of_order_, invoked_)) return "";
  const std::ptrdiff_t position = history.find(v.digest);
  if (position < 0) return "what was recovered is no state that the run may have left";
  return fmt::format(
      "the state after {} operations was recovered, when {} and {} later ones had been "
      "acknowledged and {} invoked",
      position, acknowledged_, acknowledged_out_of_order_.size(), invoked_);
}

const char* controlled_run::part_of(std::uint64_t address) const noexcept {
  if (address >= header_.home_offset) return "home";
  if (address < header_.log_offset) return "header";
  const std::uint64_t in_log = (address - header_.log_offset) % header_.log_size;
  return in_log - header_.commit_offset < header_.commit_size ? "commit" : "log";
}

// Explains the operations that are persistent in part, and their neighbours.
std::string controlled_run::explanation() const {
  std::string text = fmt::format(
      "crash after {} writes; {} operations and {} later ones are acknowledged, {} invoked\n",
      writes_persisted, acknowledged_, acknowledged_out_of_order_.size(), invoked_);
  for (std::uint64_t n = acknowledged_ - (acknowledged_ > position_); n < invoked_; ++n) {
    const progress& p = operations_[n];
    if (p.pending == p.writes.size() && n > acknowledged_) continue;
    text += fmt::format("  operation {}:", n);
    for (const line_write& w : p.writes)
      text +=
          fmt::format(" {} {:#x}{}", part_of(w.address), w.address, w.persistent ? "" : " LOST");
    text += '\n';
  }
  return text;
}

}  // namespace stele::explore
