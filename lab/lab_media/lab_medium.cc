// Names of the laboratory's media, and its mechanisms on them; registered before main().
#include <fmt/format.h>
#include <format/slot_log.h>
#include <lab_media/lab_medium.h>
#include <mechanism_list.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace stele::detail {

// Each is defined in a file made from on_lab_media.cc.in.
#define STELE_DECLARE(id) std::unique_ptr<engine> lab_##id(pool_state&, const media_choice&);
STELE_EACH_MECHANISM(STELE_DECLARE)
#undef STELE_DECLARE

}  // namespace stele::detail

namespace stele::media {

namespace {

using detail::media_choice;

media_choice choose(const lab_medium& medium, const detail::engine_tuning& tuning = {}) {
  return {.what = media_choice::kind::lab,
          .lab = std::make_shared<const lab_medium>(medium),
          .tuning = tuning};
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

// Takes the text up to the next colon off it.
std::string_view next_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(':'));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

// One of the words that may follow NS[:GBPS], each once.
bool parse_delay_option(std::string_view word, delay& d, std::set<std::string_view>& had) {
  constexpr std::string_view cache = "cache=";
  if (!had.insert(word.substr(0, word.find('='))).second) return false;
  if (word == "stream=once" || word == "standalone") return true;
  return word.starts_with(cache) && parse_number(word.substr(cache.size()), d.cache_bytes_per_ns) &&
         d.cache_bytes_per_ns > 0;
}

// Parses what follows "delayed:", NS[:GBPS][:OPTION]... Nullopt: it is none. Errors: options that
// exclude each other.
result<std::optional<delay>> parse_delay(std::string_view text) {
  if (text.ends_with(':')) return std::nullopt;
  delay d;
  std::set<std::string_view> had;
  if (!parse_number(next_word(text), d.latency_ns) || d.latency_ns > 1'000'000) return std::nullopt;
  if (std::string_view rest = text;
      !rest.empty() && parse_number(next_word(rest), d.bytes_per_ns)) {
    if (!(d.bytes_per_ns > 0)) return std::nullopt;
    text = rest;
  }
  while (!text.empty())
    if (!parse_delay_option(next_word(text), d, had)) return std::nullopt;
  const bool once = had.contains("stream"), standalone = had.contains("standalone");
  if (once && standalone)
    return base::fail(errc::invalid_argument,
                      "stream=once and standalone are two rules for the latencies of a fence; "
                      "choose one of them");
  if (once && d.bytes_per_ns != 0)
    return base::fail(errc::invalid_argument,
                      "with a bandwidth all lines of a fence share one latency, streamed ones too; "
                      "leave out stream=once, or choose standalone, or leave out the bandwidth");
  if (once) d.rule = charging::streams_once;
  if (standalone) d.rule = charging::each_run;
  return d;
}

// Parses what follows "pcm:", ORDER[:LOG_SPEEDUP][:waits][:slower=TIMES].
bool parse_pcm(std::string_view text, pcm_model& model) {
  if (text.ends_with(':')) return false;
  const std::string_view order = next_word(text);
  model.rules = order == "rules";
  if (!model.rules && order != "strict") return false;
  constexpr std::string_view slower = "slower=";
  if (!text.empty() && !text.starts_with("waits") && !text.starts_with(slower) &&
      (!parse_number(next_word(text), model.log_speedup) ||
       !(model.log_speedup >= 1 && model.log_speedup <= 100)))
    return false;
  model.waits = text.substr(0, text.find(':')) == "waits";
  if (model.waits) next_word(text);
  if (text.empty()) return true;
  return text.starts_with(slower) && parse_number(text.substr(slower.size()), model.slower) &&
         model.slower >= 1 && model.slower <= 1000;
}

result<std::optional<media_choice>> parse(std::string_view specification) {
  constexpr std::string_view delayed = "delayed:", pcm = "pcm:";
  lab_medium m;
  if (specification.starts_with(delayed)) {
    const auto d = parse_delay(specification.substr(delayed.size()));
    if (!d)
      return base::fail(d.error().code,
                        fmt::format("medium {}: {}", specification, d.error().message));
    if (!*d) return std::nullopt;
    m.latency_model = **d;
    auto chosen = choose(m, {.media_latency_ns = m.latency_model.latency_ns});
    chosen.emulates_whole_cache = m.latency_model.cache_bytes_per_ns != 0;
    return chosen;
  }
  m.what = lab_medium::kind::pcm;
  if (specification.starts_with(pcm) && parse_pcm(specification.substr(pcm.size()), m.pcm))
    return choose(m);
  return std::nullopt;
}

std::map<std::string, engine_maker*, std::less<>>& makers() {
#define STELE_MAKER(id) {#id, detail::lab_##id},
  static std::map<std::string, engine_maker*, std::less<>> all = {
      STELE_EACH_MECHANISM(STELE_MAKER)};
#undef STELE_MAKER
  return all;
}

std::unique_ptr<detail::engine> make(std::string_view mechanism, detail::pool_state& state,
                                     const media_choice& choice) {
  std::string id(mechanism);
  std::ranges::replace(id, '-', '_');
  const auto found = makers().find(id);
  return found != makers().end() ? found->second(state, choice) : nullptr;
}

result<detail::recorded_medium> record(const std::string& path, const detail::pool_state& state,
                                       detail::log_kind logs, const detail::engine_tuning& tuning) {
  auto tape = tape_writer::to_file(path, tape_options_of(state.file.header(), logs));
  if (!tape) return std::unexpected(tape.error());
  (*tape)->image(state.file.base(), state.file.header().size);
  std::shared_ptr<tape_writer> shared = std::move(*tape);
  return detail::recorded_medium{on_tape(*shared, tuning), shared};
}

const detail::lab_media registration = {
    .names =
        "delayed:NS or delayed:NS:GBPS (latency up to 1000000 ns), followed by :stream=once if the "
        "streamed lines of a fence pay one latency together, by :standalone if each run of "
        "adjacent lines pays one, and by :cache=GBPS if the whole cache can be written back at "
        "once, or pcm:strict or pcm:rules, "
        "followed by :SPEEDUP of writes to logs (1 to 100), :waits and :slower=TIMES of the "
        "processor (1 to 1000) if so wished",
    .parse = parse,
    .record = record,
    .make = make,
};
[[maybe_unused]] const bool registered = (detail::register_lab_media(registration), true);

}  // namespace

void add_lab_mechanism(const char* id, engine_maker* make) {
  makers().emplace(id, make);
}

tape_options tape_options_of(const format::pool_header& h, detail::log_kind logs) {
  tape_options shape{.pool_size = h.size,
                     .home_offset = h.home_offset,
                     .log_offset = h.log_offset,
                     .log_size = h.log_size};
  if (logs == detail::log_kind::ordered_writes)
    shape.commit_offset = format::slot_commits_offset,
    shape.commit_size = format::slot_commits_size;
  return shape;
}

pcm_layout pcm_layout_of(const format::pool_header& h, detail::log_kind logs) {
  if (logs == detail::log_kind::chunks) return {};
  const tape_options shape = tape_options_of(h, logs);
  return {shape.log_offset, shape.log_size, shape.home_offset, shape.commit_offset,
          shape.commit_size};
}

media_choice on_tape(tape_writer& tape, const detail::engine_tuning& tuning) {
  return choose({.what = lab_medium::kind::recording, .tape = &tape}, tuning);
}
media_choice on_image(image_view& image, const detail::engine_tuning& tuning) {
  return choose({.what = lab_medium::kind::image, .image = &image}, tuning);
}
media_choice on_recorded_image(tape_writer& tape, image_view& image,
                               const detail::engine_tuning& tuning) {
  return choose({.what = lab_medium::kind::recording_image, .tape = &tape, .image = &image},
                tuning);
}
media_choice on_observed_file(store_observer& observer, const detail::engine_tuning& tuning) {
  return choose({.what = lab_medium::kind::observed_file, .observer = &observer}, tuning);
}

}  // namespace stele::media
