// Passes a tape's events to the cache model.
#include <explore/cached_run.h>
#include <fmt/format.h>

namespace stele::explore {

using media::tape_event;
using media::tape_op;

// The events refer to bytes of tape_.
result<> cached_run::tape_changed(subject&) {
  events.clear();
  auto reader = media::tape_reader::from_memory(tape_);
  while (auto event = *reader->next()) events.push_back(*event);
  return {};
}

void cached_run::rewind(cache_model& cache, std::uint64_t seed) {
  work.assign(initial_);
  cache.start(work, seed);
  acknowledged_ = invoked_ = position_;
}

void cached_run::play(cache_model& cache, const tape_event& e) {
  switch (e.op) {
    case tape_op::store:
      return cache.store(e.address, e.bytes);
    case tape_op::stream:
      return cache.stream(e.thread, e.address, e.bytes);
    case tape_op::flush:
      return cache.flush(e.thread, e.address, e.length);
    case tape_op::fence:
      return cache.fence(e.thread);
    case tape_op::bulk:
      return cache.bulk(e.address, e.length);
    case tape_op::invoked:
      invoked_ = e.address + 1;
      return;
    case tape_op::returned:
      acknowledged_ = e.address + 1;
      return;
    default:
      return;
  }
}

std::string cached_run::violation_of(const cache_model& cache, const judge::judgement& a) const {
  return image_judge.violation_of(image_judge.verdict_of(a), history, acknowledged_, invoked_,
                                  [&] { return stale(cache); });
}

std::vector<std::uint32_t> cached_run::stale(const cache_model& cache) const {
  std::vector<std::uint32_t> lines;
  for (std::size_t line = 0; line < work.size() / line_size; ++line)
    if (std::memcmp(cache.visible(line), work.line(line), line_size) != 0)
      lines.push_back(static_cast<std::uint32_t>(line));
  return lines;
}

std::string cached_run::explanation(const cache_model& cache, std::uint64_t event) const {
  std::string text = event == events.size()
                         ? "crash at the end"
                         : fmt::format("crash before event '{}' of thread {}",
                                       media::name_of(events[event].op), events[event].thread);
  text +=
      fmt::format(", with {} operations acknowledged and {} invoked\n", acknowledged_, invoked_);
  for (std::size_t line = 0; line < work.size() / line_size; ++line) {
    std::uint64_t seen[8], there[8];
    std::memcpy(seen, cache.visible(line), sizeof seen);
    std::memcpy(there, work.line(line), sizeof there);
    for (std::size_t w = 0; w < 8; ++w)
      if (seen[w] != there[w])
        text += fmt::format("  LOST {:#x} = {:#018x}; memory has {:#018x}\n",
                            line * line_size + w * 8, seen[w], there[w]);
  }
  return text;
}

}  // namespace stele::explore
