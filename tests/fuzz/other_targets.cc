// The targets for tapes, traces, machine files, lines, and names of media.
#include <fmt/format.h>
#include <lab_media/dirtiness.h>
#include <sim/config_file.h>
#include <sim/feed/convert.h>
#include <sim/feed/feed.h>
#include <sim/feed/write_trace.h>
#include <sim/machine.h>
#include <stele/kv.h>
#include <tests/fuzz/target.h>
#include <tx/mechanism/catalog.h>

#include <unistd.h>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::fuzz {

namespace {

bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}
std::string text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}
std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void read_steps(std::span<const std::byte> tape) {
  auto reader = media::tape_reader::from_memory(tape);
  if (!reader) return;
  sim::write_trace steps(std::move(*reader));
  for (auto s = steps.next(); s && *s; s = steps.next()) {
  }
}

void read_by_thread(std::span<const std::byte> tape) {
  auto feed = sim::feed::over(tape, 4);
  if (!feed) return;
  for (unsigned t = 0; t < feed->threads(); ++t)
    while (!feed->next(t).empty()) {
    }
}

// Stops the run after some checks of its stop condition: a hostile tape may have many idle cycles.
void simulate(const std::string& path) {
  static const auto machine =
      sim::load_machine(std::string(STELE_SOURCE_DIR) + "/lab/configs/ddr4-2400.toml");
  if (!machine) return;
  unsigned looks = 0;
  (void)sim::run_machine(*machine, {.tape = path, .commands = {}, .progress = {}, .cancelled = [&] {
                                      return ++looks > 64;
                                    }});
}

}  // namespace

// The work grows with the bytes that the events claim.
std::string run_tape(std::span<const std::byte> input) {
  constexpr std::uint64_t little = 16 << 20;
  std::uint64_t events = 0, claimed = 0;
  if (auto reader = media::tape_reader::from_memory(input))
    for (auto e = reader->next(); e && *e; e = reader->next()) ++events, claimed += (*e)->length;
  if (events > input.size() / sizeof(media::tape_record))
    return "a tape has more events than bytes for them";
  if (claimed > little) return "";
  if (auto reader = media::tape_reader::from_memory(input))
    (void)media::dirtiness_of(*reader, [] { return false; });
  read_steps(input);
  read_by_thread(input);
  const std::string path = scratch() + "/tape";
  write_file(path, input);
  simulate(path);
  return "";
}

std::string run_trace(std::span<const std::byte> input) {
  static const auto formats = sim::trace_formats();
  if (input.empty()) return "";
  const std::string path = scratch() + "/trace";
  write_file(path, input.subspan(1));
  const auto tape = media::tape_writer::to_memory(sim::converted_shape);
  const auto done =
      sim::convert_trace(formats[static_cast<std::size_t>(input[0]) % formats.size()], path, *tape);
  if (!done) return done.error().message.empty() ? "a trace is refused without a sentence" : "";
  if (!tape->finish()) return "a converted tape cannot be finished";
  auto reader = media::tape_reader::from_memory(tape->memory());
  std::uint64_t events = 0;
  auto e = reader->next();
  for (; e && *e; e = reader->next()) ++events;
  return e && events == done->events ? "" : "a converted tape does not read back";
}

std::vector<std::function<std::string(const std::string&)>>& line_readers() {
  static std::vector<std::function<std::string(const std::string&)>> all;
  return all;
}

std::string run_text(std::span<const std::byte> input) {
  const std::string text = text_of(input);
  if (const auto machine = sim::parse_machine(text, scratch() + "/machine.toml"); machine) {
    const auto again = sim::parse_machine(sim::toml_of(*machine), "echo");
    if (!again || sim::toml_of(*again) != sim::toml_of(*machine))
      return "a machine's echo is another machine";
  }
  const std::string line = text.substr(0, text.find('\n'));
  for (const auto& read : line_readers())
    if (std::string broken = read(line); !broken.empty()) return broken;
  (void)detail::parse_media(line);
  return "";
}

std::vector<bytes> tape_seeds() {
  std::vector<bytes> all;
  for (const char* mechanism : {"default", "base", "blurred"}) {
    const std::string pool = scratch() + "/taped", tape = scratch() + "/seed-tape";
    std::filesystem::remove(pool);
    {
      auto store = kv::open(pool, {.create_size = 64 << 10,
                                   .engine = {.mechanism = mechanism,
                                              .media = "adr",
                                              .log_size = 4096,
                                              .log_count = 2,
                                              .tape = tape,
                                              .background = false}});
      if (!store) continue;
      for (int i = 0; i < 4; ++i) (void)store->put(fmt::format("key {}", i), "value");
      (void)store->close();
    }
    all.push_back(bytes_of(read_file(tape)));
  }
  const auto bare = media::tape_writer::to_memory({.pool_size = 8192,
                                                   .home_offset = 4096,
                                                   .log_offset = 0,
                                                   .log_size = 0,
                                                   .record_bytes = false,
                                                   .mark_pointers = true});
  for (std::uint64_t i = 0; i < 8; ++i)
    bare->event(media::tape_op::store, 0, 4096 + 64 * i, 8), bare->pointer_load(1, 4096, 8),
        bare->event(media::tape_op::compute, 1, 100, 0);
  (void)bare->finish();
  all.emplace_back(bare->memory().begin(), bare->memory().end());
  return all;
}

std::vector<bytes> trace_seeds() {
  static constexpr std::array<std::string_view, 7> texts = {
      "\0==1== Lackey\nI  04001000,3\n S 1fff000758,8\n L 00ff,16\n M 10,4\nI  1,1\n",
      "\1"
      "3 20734016\n1 20846400 8841280\n",
      "\2"
      "0x12345680 R\n0x4cbd56c0 W\n",
      "\3LD 12345678\nST 0xABCDEF\n",
      "\4"
      "0x1a2b3c40 READ 10\n0x1a2b3c80 WRITE 20\n",
      "\5"
      "10 R 0x1000 00112233445566778899 0\n12 W 2000 FF 1\n",
      "\5NVMV1\n10 R 0x1000 00 FF 0\n"};
  std::vector<bytes> all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string text(1, static_cast<char>(std::min<std::size_t>(i, 5)));
    text += texts[i].empty() || i == 0
                ? std::string_view(
                      "==1== Lackey\nI  04001000,3\n S 1fff000758,8\n L 00ff,16\n M 10,4\nI  1,1\n")
                : texts[i].substr(1);
    all.push_back(bytes_of(text));
  }
  return all;
}

std::vector<bytes> text_seeds() {
  std::vector<bytes> all;
  for (const char* name : {"kiln", "dp2", "ddr4-2400"})
    all.push_back(
        bytes_of(read_file(std::string(STELE_SOURCE_DIR) + "/lab/configs/" + name + ".toml")));
  for (const char* line :
       {"run redo/sps ops=60 threads=2 mutant=redo_no_data_fence at=37:0.3.255,4:1 recovery-ops=1",
        "cache undo/churn policy=plru cache-lines=8 ways=2 at=17:812,90125:33",
        "controller base/sps scheduler=bare_rule1 expired=1 at=17:812",
        "schedules default/sps sync-every=8 points=stores decisions=12:1,40:0 at=9:1.0"})
    all.push_back(bytes_of(line));
  all.push_back(bytes_of("pcm:rules:1.7:waits"));
  all.push_back(bytes_of("delayed:100:2.5"));
  return all;
}

}  // namespace stele::fuzz
