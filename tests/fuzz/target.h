// What a target does with an input. A target returns a sentence about a broken promise, or an empty
// string. A signal, a sanitizer report, an escaping exception and a hang break a promise too. A
// pool, tape, trace or machine may only reject an input with an error that has a sentence.
#pragma once

#include <tests/fuzz/mutate.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::fuzz {

using bytes = std::vector<std::byte>;

struct target {
  std::string name;
  std::function<std::string(std::span<const std::byte>)> run;
  std::function<void(bytes&, base::rng&, std::size_t most)> mutate;
  std::function<std::vector<bytes>()> seeds;  // made anew by each call
  std::size_t most_bytes;
  std::uint64_t inputs_in_ci;
};

// pool: checks, dumps, opens, changes, closes and reopens a pool file. kv, document, sqlite: read
// and change a store, a document, SQLite databases in a pool whose content is damaged. tape: reads,
// measures, simulates. trace: every format; the first byte chooses it. text: machine files, names
// of media, replay lines.
const std::vector<target>& targets();

std::string run_pool(std::span<const std::byte> input);
std::string run_kv(std::span<const std::byte> input);
std::string run_document(std::span<const std::byte> input);
std::string run_sqlite(std::span<const std::byte> input);
std::string run_tape(std::span<const std::byte> input);
std::string run_trace(std::span<const std::byte> input);
std::string run_text(std::span<const std::byte> input);

// More readers of a text's first line. The test adds the explorer's replay lines, because other
// programs do not link the explorer.
std::vector<std::function<std::string(const std::string&)>>& line_readers();

std::vector<bytes> pool_seeds();
std::vector<bytes> kv_seeds();
std::vector<bytes> document_seeds();
std::vector<bytes> sqlite_seeds();
std::vector<bytes> tape_seeds();
std::vector<bytes> trace_seeds();
std::vector<bytes> text_seeds();

// A directory of this process, in memory if possible; removed when the process ends.
const std::string& scratch();
// Writes a file with exactly this content.
void write_file(const std::string& path, std::span<const std::byte> content);

}  // namespace stele::fuzz
