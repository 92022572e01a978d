// Values and lines as text; the fields of a plan.
#include <base/check.h>
#include <explore/mutant_table.h>
#include <explore/replay_line.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <ranges>

namespace stele::explore {

namespace {

constexpr std::string_view a_mechanism = "the name of a mechanism";

// Removes the front of a text up to a separator, and the separator; returns the front.
std::string_view take_front(std::string_view& text, char separator) noexcept {
  const std::size_t size = std::min(text.find(separator), text.size());
  const std::string_view front = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return front;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) parts.push_back(take_front(text, separator));
  return parts;
}

// Where a word is among words separated by |.
std::optional<std::size_t> place_of(std::string_view word, std::string_view words) {
  const auto all = split(words, '|');
  const auto place = std::ranges::find(all, word) - all.begin();
  return std::cmp_less(place, all.size()) ? std::optional<std::size_t>(place) : std::nullopt;
}

// The words as a sentence names them.
std::string one_of(std::string_view words) {
  const auto all = split(words, '|');
  if (all.size() == 1) return std::string(words);
  return fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

template <class Value>
void append(std::string& line, const Value& value, const value_range& range) {
  if constexpr (std::is_same_v<Value, base::mutant>)
    line += name_of(value);
  else if constexpr (std::is_enum_v<Value>)
    line += split(range.words, '|')[static_cast<std::size_t>(value)];
  else if constexpr (std::is_unsigned_v<Value>)
    line += fmt::format_int(std::uint64_t{value}).c_str();
  else if constexpr (std::is_convertible_v<Value, std::string_view>)
    line += value;
  else
    for (std::size_t i = 0; i < value.size(); ++i) {
      if constexpr (std::is_same_v<Value, std::vector<std::uint64_t>>) {
        if (i > 0) line += '.';
        append(line, value[i], range);
      } else {
        const auto& [first, second] = value[i];
        if (i > 0) line += ',';
        append(line, first, range);
        line += ':';
        append(line, second, range);
      }
    }
}

template <class Value>
bool read(std::string_view text, Value& value, const value_range& range) {
  if constexpr (std::is_same_v<Value, base::mutant>) {
    const auto known = mutant_named(text);
    value = known.value_or(value);
    return known.has_value();
  } else if constexpr (std::is_unsigned_v<Value>) {
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    value = static_cast<Value>(number);
    return problem == std::errc{} && end == text.data() + text.size() && number >= range.least &&
           number <= std::min<std::uint64_t>(range.most, std::numeric_limits<Value>::max());
  } else if constexpr (std::is_enum_v<Value> || std::is_convertible_v<Value, std::string_view>) {
    const auto place = place_of(text, range.words);
    if constexpr (std::is_enum_v<Value>)
      value = static_cast<Value>(place.value_or(0));
    else  // a string_view outlives the text
      value = place ? split(range.words, '|')[*place] : text;
    return place || (std::is_same_v<Value, std::string> && range.words.empty());
  } else if constexpr (std::is_same_v<Value, std::vector<std::uint64_t>>) {
    return std::ranges::all_of(split(text, '.'), [&](std::string_view part) {
      return read(part, value.emplace_back(), range);
    });
  } else {
    return std::ranges::all_of(split(text, ','), [&](std::string_view pair) {
      auto& [first, second] = value.emplace_back();
      return pair.contains(':') && read(take_front(pair, ':'), first, {}) &&
             read(pair, second, range);
    });
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view white_space = " \t\n";
  std::vector<std::string_view> words;
  for (std::size_t end = 0, begin = 0;
       (begin = line.find_first_not_of(white_space, end)) != std::string_view::npos;) {
    end = std::min(line.find_first_of(white_space, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
  return words;
}

std::unexpected<error> refuse(const std::vector<std::string_view>& words, std::size_t place,
                              std::string_view sentence) {
  return base::fail(
      errc::invalid_argument,
      place < words.size()
          ? fmt::format("word {} of the replay line, '{}': {}", place + 1, words[place], sentence)
          : fmt::format("the replay line ends before word {}: {}", place + 1, sentence));
}

}  // namespace

void append_value(std::string& line, const line_field& f) {
  std::visit([&](const auto* value) { append(line, *value, f.range); }, f.value);
}
bool read_value(std::string_view text, const line_field& f) {
  return std::visit([&](auto* value) { return read(text, *value, f.range); }, f.value);
}

std::string form_of(const line_field& f) {
  if (!f.form.empty()) return std::string(f.form);
  if (!f.range.words.empty()) return one_of(f.range.words);
  if (std::holds_alternative<bool*>(f.value)) return "0 or 1";
  if (f.range.most != value_range{}.most)
    return fmt::format("a number from {} to {}", f.range.least, f.range.most);
  return f.range.least == 0 ? "a number" : "a number, not 0";
}

line_fields fields_of(plan& p) {
  return {
      {"ops", &p.operations, "operations, one a transaction"},
      {"keys", &p.keys, "size of the key space", {.least = 1}},
      {"value-size", &p.value_size, "bytes", {.least = 1}},
      {"threads", &p.threads, "threads, in turns but for schedules", {.least = 1, .most = 64}},
      {"seed", &p.seed, "of content, operations and samples"},
      {"pool-size", &p.pool_size, "bytes"},
      {"logs", &p.log_count, "how many logs", {.least = 1}},
      {"log-size", &p.log_size, "bytes of each log; small ones wrap often"},
      {"further", &p.further_operations, "operations applied to a recovered pool", {.most = ~0u}},
      {"mutant",
       &p.mutant,
       "plant this bug",
       {},
       "the name of a mutant; `stele crash mutants` lists them"},
      {"reopen",
       &p.reopen,
       "the mechanism that opens the pool after a crash; default: the same",
       {},
       a_mechanism},
      {"made-for",
       &p.created_for,
       "the mechanism that the pool is created for; default: the same",
       {},
       a_mechanism},
      {"sync-every", &p.sync_every,
       "ordered commits, a sync after so many operations; 0: durable ones"},
      {"warm-up", &p.warm_up, "transactions in each mode before adaptive chooses"},
      {"runs", &p.runs, "execution in log: adjacent words share a record"},
      {"abort-interval",
       &p.abort_interval,
       "execution in log: blocks of an aborted transaction with at least one abort record",
       {.least = 4, .most = 1024}},
      {"cache-bytes", &p.cache_bytes,
       "archapt: what the queue of lines used last takes the cache for; short, so that lines "
       "are skipped"},
      {"coalesce", &p.coalesce, "the structure in coalescing memory"},
      {"halves", &p.halves, "archapt: sums of the odd half of each row and column too"},
      {"checkpoint-commits", &p.checkpoint_commits,
       "archapt: commits from one checkpoint to the next; 0: none"},
      {"shared-log", &p.shared_log, "default: all threads commit in one log, as on a file"},
      {"one-writer", &p.one_writer, "the policy single_writer instead of stm"},
      {"sums", &p.block_checksums,
       "the pool has sums of home's blocks, which are judged at each opening"},
      {"chunk-shift", &p.chunk_shift,
       "size of the pool's chunks, in bits; 0: as the library chooses"},
      {"reopen-after", &p.reopen_after,
       "operations after which the pool is closed and opened again; 0: it is open throughout"},
      {"grow-every", &p.grow_every, "operations after which the pool grows; 0: it does not"},
      {"earlier-version", &p.earlier_version,
       "the pool is of version 1, and no program has opened it yet"},
      {"whole-cache", &p.whole_cache,
       "bulk persistence of the whole cache, not of the lines that logs name"},
      {"omitted-fence", &p.omitted_fence, "", {}, "a fence's place, as in bulk.h:149:truncate"},
  };
}

line_fields fields_of_files(plan& p) {
  return {
      {"media",
       &p.media,
       "what the power fails on: memory, by lines; file, a real pool file, by sectors that no "
       "write or sync has made durable",
       {.words = "memory|file"}},
      {"fail-call", &p.fail_call,
       "on a file: the call of this number, of those that the fault can strike, is struck; 0: "
       "none"},
      {"fault",
       &p.fault,
       "what strikes it: refused, write_back (failed, told once, the pages lost), "
       "short_write, interrupted",
       {.words = file_fault_names}},
  };
}

line_fields joined(std::initializer_list<line_fields> parts) {
  line_fields all;
  for (const line_fields& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

result<std::string_view> engine_of(std::string_view line, std::string_view allowed) {
  const auto words = words_of(line);
  if (!words.empty() && place_of(words[0], allowed)) return words[0];
  return refuse(words, 0, "the first word is the engine, here " + one_of(allowed));
}

std::string replay_command(std::string_view line) {
  return fmt::format("stele crash replay \"{}\"", line);
}

std::string format_fields(std::string_view engine, const plan& p, const line_fields& fields,
                          const line_fields& defaults) {
  std::string line = fmt::format("{} {}/{}", engine, p.mechanism, p.workload), value, usual;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    value.clear(), usual.clear();
    append_value(value, fields[i]);
    append_value(usual, defaults[i]);
    if (value == usual) continue;
    line.append(1, ' ').append(fields[i].name).append(1, '=').append(value);
  }
  return line;
}

result<> parse_fields(std::string_view line, std::string_view engine, plan& p,
                      const line_fields& fields) {
  if (auto right = engine_of(line, engine); !right) return std::unexpected(right.error());
  const auto words = words_of(line);
  std::string_view workload = words.size() > 1 ? words[1] : "";
  p.mechanism = take_front(workload, '/'), p.workload = workload;
  if (p.mechanism.empty() || workload.empty())
    return refuse(words, 1, "the second word is MECHANISM/WORKLOAD, as in redo/sps");
  std::vector<bool> given(fields.size());
  for (std::size_t i = 2; i < words.size(); ++i) {
    std::string_view value = words[i];
    const std::string_view name = take_front(value, '=');
    const auto f = std::ranges::find(fields, name, &line_field::name);
    if (f == fields.end())
      return refuse(
          words, i,
          fmt::format("{} has no field '{}'; it has {}", engine, name,
                      fmt::join(fields | std::views::transform(&line_field::name), ", ")));
    if (given[static_cast<std::size_t>(f - fields.begin())])
      return refuse(words, i, fmt::format("'{}' stands in the line before; leave one out", name));
    if (value.empty())
      return refuse(words, i,
                    fmt::format("the value is missing; write {}=, then {}", name, form_of(*f)));
    if (!read_value(value, *f)) return refuse(words, i, "the value must be " + form_of(*f));
    given[static_cast<std::size_t>(f - fields.begin())] = true;
  }
  return {};
}

}  // namespace stele::explore
