// The table of targets.
#include <base/scratch_directory.h>
#include <tests/fuzz/target.h>

#include <cstdio>
#include <fstream>

namespace stele::fuzz {

namespace {

constexpr std::string_view words_of_texts[] = {"base = ",
                                               "\"kiln.toml\"",
                                               "[l3]",
                                               "[[nonvolatile_memory.timing]]",
                                               "ways = ",
                                               "0x",
                                               "1e308",
                                               "-1",
                                               "18446744073709551615",
                                               "at=1:0.255",
                                               "ops=",
                                               "mutant=none",
                                               "pcm:",
                                               "waits",
                                               "nan",
                                               "true",
                                               "[1, 2]",
                                               "\n",
                                               "#"};
constexpr std::string_view words_of_traces[] = {" READ ",
                                                " WRITE ",
                                                "0x",
                                                "LD ",
                                                "ST ",
                                                " R ",
                                                " W ",
                                                "\n",
                                                "\r\n",
                                                "18446744073709551615",
                                                "ffffffffffffffff",
                                                "I  ",
                                                " L ",
                                                ",4096"};

void mutate_text(bytes& b, base::rng& random, std::size_t most) {
  mutate_bytes(b, random, most, words_of_texts);
}
void mutate_trace(bytes& b, base::rng& random, std::size_t most) {
  mutate_bytes(b, random, most, words_of_traces);
}
void mutate_tape(bytes& b, base::rng& random, std::size_t most) {
  mutate_bytes(b, random, most);
}

}  // namespace

const std::string& scratch() {
  static const base::scratch_directory directory;
  return directory.path().native();
}

void write_file(const std::string& path, std::span<const std::byte> content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
}

const std::vector<target>& targets() {
  static const std::vector<target> all = {
      {"pool", run_pool, mutate_pool, pool_seeds, 256 << 10, 30'000},
      {"kv", run_kv, mutate_kv, kv_seeds, 256 << 10, 2'000},
      {"redis", run_redis, mutate_kv, redis_seeds, 512 << 10, 12'000},
      {"document", run_document, mutate_document, document_seeds, 256 << 10, 2'000},
#ifdef STELE_HAVE_SQLITE
      {"sqlite", run_sqlite, mutate_sqlite, sqlite_seeds, 1 << 20, 2'000},
#endif
      {"tape", run_tape, mutate_tape, tape_seeds, 256 << 10, 3'000},
      {"trace", run_trace, mutate_trace, trace_seeds, 16 << 10, 20'000},
      {"text", run_text, mutate_text, text_seeds, 16 << 10, 10'000},
  };
  return all;
}

}  // namespace stele::fuzz
