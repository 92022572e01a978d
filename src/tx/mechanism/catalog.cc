// Every mechanism compiled for every medium, and the table of their names.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tx/mechanism/catalog.h>

#include <charconv>
#include <media/banked.h>
#include <media/eadr.h>
#include <media/file.h>
#include <media/image.h>
#include <media/process.h>
#include <media/recording.h>
#include <media/witnessed.h>
#include <format/ordered_log.h>
#include <tx/mechanism/archapt.h>
#include <tx/mechanism/base.h>
#include <tx/mechanism/blurred.h>
#include <tx/mechanism/fused.h>
#include <tx/mechanism/log_structured.h>
#include <tx/mechanism/none.h>
#include <tx/mechanism/redo.h>
#include <tx/mechanism/redo_async.h>
#include <tx/mechanism/undo.h>

namespace stele::detail {

namespace {

template <template <class> class Mechanism, class Media, class... SharedArguments>
std::unique_ptr<engine> build(pool_state& state, const media_choice& choice, SharedArguments&&... arguments) {
  auto shared = std::make_unique<typename Media::shared>(std::forward<SharedArguments>(arguments)...);
  auto made = std::make_unique<Mechanism<Media>>(state, std::move(shared));
  made->set_up(choice.tuning);
  return made;
}

// A controller tells logs from data by address; only logs of ordered writes have lines of their own for commit records.
template <template <class> class Mechanism>
media::pcm_layout pcm_layout_of(const format::pool_header& h) {
  media::pcm_layout layout{.log_offset = h.log_offset, .log_size = h.log_size, .home_offset = h.home_offset};
  if (std::is_same_v<Mechanism<media::adr>, base_log<media::adr>>) layout.commit_offset = format::ordered_commits_at, layout.commit_size = format::ordered_commits_size;
  return layout;
}

template <template <class> class Mechanism>
std::unique_ptr<engine> build_on(pool_state& state, const media_choice& choice) {
  using kind = media_choice::kind;
  using media::adr, media::eadr, media::process, media::file, media::delayed, media::banked, media::recording, media::image, media::witnessed;
  switch (choice.what) {
#ifndef STELE_SCHEDULED  // the program that explores schedules has the explorer's media alone
    case kind::adr: return build<Mechanism, adr>(state, choice);
    case kind::eadr: return build<Mechanism, eadr>(state, choice);
    case kind::process: return build<Mechanism, process>(state, choice);
    case kind::file: return build<Mechanism, file>(state, choice, state.file.region());
    case kind::delayed: return build<Mechanism, delayed<adr>>(state, choice, typename delayed<adr>::shared{{}, choice.delay});
    case kind::pcm: {
      const auto& h = state.file.header();
      return build<Mechanism, banked<adr>>(state, choice, state.file.base(), choice.pcm, pcm_layout_of<Mechanism>(h), 2 * h.log_count + 2);
    }
    case kind::recording: return build<Mechanism, recording<adr>>(state, choice, *choice.tape, state.file.region());
#else
    case kind::adr: case kind::eadr: case kind::process: case kind::file: case kind::delayed: case kind::pcm: case kind::recording: return nullptr;
#endif
    case kind::image: return build<Mechanism, image>(state, choice, *choice.image);
    case kind::recording_image:
      return build<Mechanism, recording<image>>(state, choice, *choice.tape, state.file.region(), *choice.image);
    case kind::witnessed_file: return build<Mechanism, witnessed<file>>(state, choice, *choice.witness, state.file.region());
  }
  return nullptr;
}

std::vector<mechanism_entry>& table() {
  static std::vector<mechanism_entry> all = {
      {"default", "one streamed record and one fence a commit, none an ordered one; home written back in the background", log_kind::torn_bit, build_on<fused>, storage::map_kind::shared},
      {"none", "no persistence: the ceiling", log_kind::none, build_on<none>, storage::map_kind::shared},
      {"base", "log, commit record, home, cut: a fence after each", log_kind::ordered_writes, build_on<base_log>, storage::map_kind::shared},
      {"redo", "torn-bit redo log, home written back in the commit", log_kind::torn_bit, build_on<redo>, storage::map_kind::shared},
      {"redo-async", "torn-bit redo log, home written back in the background", log_kind::torn_bit, build_on<redo_async>, storage::map_kind::shared},
      {"xil", "execution in log; home written back in the commit", log_kind::by_head, build_on<xil>, storage::map_kind::shared},
      {"vcbp", "volatile checkpoint with bulk persistence, over a streamed log", log_kind::torn_bit, build_on<vcbp>, storage::map_kind::shared},
      {"blurred", "execution in log and volatile checkpoint", log_kind::by_head, build_on<blurred>, storage::map_kind::shared},
      {"adaptive", "blurred or vcbp, whichever is better on this medium and workload", log_kind::by_head, build_on<adaptive>, storage::map_kind::shared},
      {"undo", "torn-bit undo log, home written back in the commit", log_kind::torn_bit, build_on<undo>, storage::map_kind::shared},
      {"archapt-undo", "undo log; home flushed late or, covered by checksums, not at all", log_kind::archapt_undo, build_on<archapt_undo>, storage::map_kind::shared, format::home_kind::in_place, true},
      {"archapt-redo", "redo log; home flushed late or, covered by checksums, not at all", log_kind::archapt_redo, build_on<archapt_redo>, storage::map_kind::shared, format::home_kind::in_place, true},
      {"log_structured", "the log is the only home: one fence a commit, cleaning in the background", log_kind::chunks, build_on<log_structured>, storage::map_kind::shared, format::home_kind::log},
  };
  return all;
}

std::string& default_name() {
  static std::string name = "default";
  return name;
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

// The rest of a specification: ORDER[:LOG_SPEEDUP][:waits]
bool parse_pcm(std::string_view text, media::pcm_model& model) {
  if (text.ends_with(':')) return false;
  const auto next = [&text] {
    const std::string_view word = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
  };
  const std::string_view order = next();
  model.rules = order == "rules";
  if (!model.rules && order != "strict") return false;
  if (!text.empty() && text != "waits" && (!parse_number(next(), model.log_speedup) || !(model.log_speedup >= 1 && model.log_speedup <= 100))) return false;
  model.waits = text == "waits";
  return text.empty() || model.waits;
}

}  // namespace

const std::vector<mechanism_entry>& mechanisms() { return table(); }

const std::string& default_mechanism() noexcept { return default_name(); }
void set_default_mechanism(std::string name) { default_name() = std::move(name); }

result<const mechanism_entry*> find_mechanism(std::string_view name) {
  if (name.empty()) name = default_name();
  std::vector<std::string> names;
  for (const mechanism_entry& m : table()) {
    if (m.name == name) return &m;
    names.push_back(m.name);
  }
  return base::fail(errc::not_found, fmt::format("there is no mechanism named '{}'; choose one of {}", name, fmt::join(names, ", ")));
}

const mechanism_entry* recoverer_of(log_kind logs) {
  for (const mechanism_entry& m : table())
    if (m.logs == logs && logs != log_kind::none) return &m;
  return nullptr;
}

void register_mechanism(mechanism_entry entry) { table().push_back(std::move(entry)); }

result<media_choice> parse_media(std::string_view specification) {
  using kind = media_choice::kind;
  auto choice = [](kind k) { return media_choice{.what = k}; };
  if (specification == "adr") return choice(kind::adr);
  if (specification == "eadr") return choice(kind::eadr);
  if (specification == "process") return choice(kind::process);
  if (specification == "file") return choice(kind::file);
  if (specification.starts_with("delayed:")) {
    media_choice c = choice(kind::delayed);
    std::string_view rest = specification.substr(8);
    const auto colon = rest.find(':');
    const bool latency = parse_number(rest.substr(0, colon), c.delay.latency_ns) && c.delay.latency_ns <= 1'000'000;
    const bool bandwidth = colon == std::string_view::npos || (parse_number(rest.substr(colon + 1), c.delay.bytes_per_ns) && c.delay.bytes_per_ns > 0);
    if (latency && bandwidth) return c;
  }
  if (specification.starts_with("pcm:")) {
    media_choice c = choice(kind::pcm);
    if (parse_pcm(specification.substr(4), c.pcm)) return c;
  }
  return base::fail(errc::invalid_argument,
                    fmt::format("there is no medium '{}'; choose adr, eadr, process, file, delayed:NS or delayed:NS:GBPS (latency up to 1000000 ns), or "
                                "pcm:strict or pcm:rules, followed by :SPEEDUP of writes to logs (1 to 100) and by :waits if so wished",
                                specification));
}

}  // namespace stele::detail
