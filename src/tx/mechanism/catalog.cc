// The table of mechanisms, and the names of media.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tx/mechanism/catalog.h>
#include <tx/mechanism/on_media/makers.h>

#include <charconv>

namespace stele::detail {

namespace {

std::vector<mechanism_entry>& table() {
  static std::vector<mechanism_entry> all = {
      {"default", "one streamed record and one fence a commit, none an ordered one; home written back in the background", log_kind::torn_bit, make_fused, storage::map_kind::shared},
      {"none", "no persistence: the ceiling", log_kind::none, make_none, storage::map_kind::shared},
      {"base", "log, commit record, home, cut: a fence after each", log_kind::ordered_writes, make_base_log, storage::map_kind::shared},
      {"redo", "torn-bit redo log, home written back in the commit", log_kind::torn_bit, make_redo, storage::map_kind::shared},
      {"redo-async", "torn-bit redo log, home written back in the background", log_kind::torn_bit, make_redo_async, storage::map_kind::shared},
      {"xil", "execution in log; home written back in the commit", log_kind::by_head, make_xil, storage::map_kind::shared},
      {"vcbp", "volatile checkpoint with bulk persistence, over a streamed log", log_kind::torn_bit, make_vcbp, storage::map_kind::shared},
      {"blurred", "execution in log and volatile checkpoint", log_kind::by_head, make_blurred, storage::map_kind::shared},
      {"adaptive", "blurred or vcbp, whichever is better on this medium and workload", log_kind::by_head, make_adaptive, storage::map_kind::shared},
      {"undo", "torn-bit undo log, home written back in the commit", log_kind::torn_bit, make_undo, storage::map_kind::shared},
      {"archapt-undo", "undo log; home flushed late or, covered by checksums, not at all", log_kind::archapt_undo, make_archapt_undo, storage::map_kind::shared, format::home_kind::in_place, true},
      {"archapt-redo", "redo log; home flushed late or, covered by checksums, not at all", log_kind::archapt_redo, make_archapt_redo, storage::map_kind::shared, format::home_kind::in_place, true},
      {"log_structured", "the log is the only home: one fence a commit, cleaning in the background", log_kind::chunks, make_log_structured, storage::map_kind::shared, format::home_kind::log},
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
