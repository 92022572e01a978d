// Reads and writes tests/format/golden.
#include <base/checksum.h>
#include <fmt/format.h>
#include <format/pool_layout.h>
#include <tests/format/golden.h>
#include <tests/fuzz/image.h>
#include <tests/fuzz/target.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace stele::testing {

namespace {

constexpr std::size_t words_of_line = 8;
constexpr const char* library_version = "0.1.0";

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_text(const std::string& path, const std::string& text) {
  fuzz::write_file(path, std::as_bytes(std::span(text)));
}

nlohmann::json manifest_of(const std::string& folder) {
  return nlohmann::json::parse(read_text(folder + "/manifest.json"), nullptr, false);
}

std::unexpected<error> damaged(const std::string& path) {
  return std::unexpected(
      error{errc::corrupt,
            path + " is not a golden file: `size BYTES`, then lines of `OFFSET WORD ...`"});
}

}  // namespace

std::string brief(const std::string& content) {
  constexpr std::size_t most = 1000;
  if (content.size() <= most) return content;
  std::string padded = content;
  padded.resize((padded.size() + 7) / 8 * 8);
  base::checksum sum(content.size());
  sum.add(padded.data(), padded.size());
  return fmt::format("{}... {} bytes, checksum {:x}", content.substr(0, 200), content.size(),
                     sum.value());
}

std::string pack(std::span<const std::byte> bytes) {
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  const fuzz::image all(copy);
  std::string text = fmt::format("size {}", bytes.size());
  std::size_t on_line = 0, repeats = 0;
  std::uint64_t before = 0;
  const auto end_repeat = [&] {
    if (repeats != 0) text += fmt::format(" *{}", repeats);
    repeats = 0;
  };
  bool going_on = false;
  for (std::uint64_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = all.word(at);
    if (going_on && word == before && word != 0) {
      ++repeats;
      continue;
    }
    end_repeat();
    const bool follows = going_on && word != 0 && on_line < words_of_line;
    if (word != 0)
      text += follows ? fmt::format(" {:x}", word) : fmt::format("\n{:x} {:x}", at, word);
    on_line = follows ? on_line + 1 : 1;
    going_on = word != 0;
    before = word;
  }
  end_repeat();
  return text + "\n";
}

result<std::vector<std::byte>> unpack(const std::string& path) {
  std::istringstream lines(read_text(path));
  std::string word;
  std::size_t size = 0;
  if (!(lines >> word >> size) || word != "size" || size > (std::size_t{1} << 24))
    return damaged(path);
  std::vector<std::byte> bytes(size);
  const fuzz::image all(bytes);
  lines.ignore();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint64_t at = 0, last = 0;
    if (!(words >> std::hex >> at)) return damaged(path);
    while (words >> word) {
      const bool repeat = word.front() == '*';
      if (!repeat) last = std::stoull(word, nullptr, 16);
      for (std::uint64_t n = repeat ? std::stoull(word.substr(1)) : 1; n-- > 0; at += 8)
        all.put(at, last);
    }
  }
  return bytes;
}

std::vector<golden_pool> golden_pools(const std::string& folder) {
  std::vector<golden_pool> all;
  const auto manifest = manifest_of(folder);
  if (manifest.is_discarded())
    return fmt::print(stderr, "{}/manifest.json cannot be read\n", folder), all;
  for (const auto& p : manifest.at("pools"))
    all.push_back({p.at("file"), p.at("specimen"), p.at("format_version"), p.at("left_open"),
                   p.at("made_by"), p.at("content")});
  return all;
}

const specimen* specimen_named(const std::string& name) {
  const auto found = std::ranges::find(specimens(), name, &specimen::name);
  return found == specimens().end() ? nullptr : &*found;
}

std::string plain(const std::string& file) {
  std::string name = file;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

std::uint64_t bytes_of_folder(const std::string& folder) {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) sum += entry.file_size();
  return sum;
}

std::vector<std::byte> make_tape() {
  const auto tape = media::tape_writer::to_memory({.pool_size = 8192,
                                                   .home_offset = 4096,
                                                   .log_offset = 1024,
                                                   .log_size = 1024,
                                                   .commit_offset = 64,
                                                   .commit_size = 128,
                                                   .mark_pointers = true});
  const std::uint64_t value = 42;
  using media::tape_op;
  tape->event(tape_op::image, 0, 4096, 8, &value);
  tape->event(tape_op::invoked, 0, 1, 0);
  tape->event(tape_op::tx_begin, 0, 1, media::tape_ordered_flag);
  tape->event(tape_op::load, 0, 4096, 8);
  tape->pointer_load(0, 4104, 8);
  tape->event(tape_op::compute, 0, 100, 0);
  for (const tape_op op : {tape_op::store, tape_op::stream})
    tape->event(op, 1, 1024 + 64, 8, &value);
  tape->event(tape_op::flush, 1, 4096, 64);
  tape->event(tape_op::fence, 1, 0, 0);
  tape->event(tape_op::bulk, 2, 4096, 4096);
  tape->event(tape_op::tx_commit, 0, 1, 0);
  tape->event(tape_op::tx_abort, 1, 2, 0);
  tape->event(tape_op::returned, 0, 1, 0);
  (void)tape->finish();
  return {tape->memory().begin(), tape->memory().end()};
}

std::string tape_text(std::span<const std::byte> tape) {
  auto reader = media::tape_reader::from_memory(tape);
  if (!reader) return reader.error().message;
  std::string text;
  for (auto e = reader->next();; e = reader->next()) {
    if (!e) return e.error().message;
    if (!*e) return text;
    text += fmt::format("{} {} {} {} {}{}{};", name_of((*e)->op), name_of((*e)->tag), (*e)->thread,
                        (*e)->address, (*e)->length, (*e)->loads_pointer ? " pointer" : "",
                        (*e)->bytes.empty() ? "" : " bytes");
  }
}

result<std::string> tape_content(const std::string& folder) {
  const auto manifest = manifest_of(folder);
  if (manifest.is_discarded())
    return std::unexpected(error{errc::corrupt, "the manifest cannot be read"});
  return manifest.at("tape").at("content").get<std::string>();
}

result<> write_golden(const std::string& folder) {
  auto manifest = manifest_of(folder);
  nlohmann::json pools = nlohmann::json::array();
  if (!manifest.is_discarded())
    for (const auto& p : manifest.at("pools"))
      if (p.at("format_version") != format::pool_version) pools.push_back(p);
  for (const specimen& s : specimens()) {
    const auto bytes = make(s, fuzz::scratch());
    const std::string file = fmt::format("{}-v{}.golden", s.name, format::pool_version),
                      pool = fuzz::scratch() + "/written";
    fuzz::write_file(pool, bytes);
    const auto content = content_text(pool);
    if (!content) return std::unexpected(content.error());
    write_text(folder + "/" + file, pack(bytes));
    pools.push_back({{"file", file},
                     {"specimen", s.name},
                     {"format_version", format::pool_version},
                     {"made_by", library_version},
                     {"left_open", s.left_open},
                     {"content", brief(*content)}});
  }
  write_text(folder + "/tape.golden", pack(make_tape()));
  const nlohmann::json all = {
      {"pools", pools},
      {"tape", {{"made_by", library_version}, {"content", tape_text(make_tape())}}}};
  write_text(folder + "/manifest.json", all.dump(1) + "\n");
  return {};
}

}  // namespace stele::testing
