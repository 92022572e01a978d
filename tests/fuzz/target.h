// What is done with an input. A target returns the promise that was broken, as a sentence, or
// nothing; a signal, a report of a sanitizer, an exception that gets out and a hang break one too.
// What a pool, tape, trace or machine may say of an input is an error with a sentence.
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
  std::function<std::vector<bytes>()> seeds;  // made anew each time
  std::size_t most_bytes;
  std::uint64_t inputs_in_ci;
};

// pool: a pool file is checked, dumped, opened, changed, closed and opened again. kv: a store of
// damaged content is read and changed. tape: read, measured, simulated. trace: each format, named
// by the first byte. text: machine files, names of media, replay lines.
const std::vector<target>& targets();

std::string run_pool(std::span<const std::byte> input);
std::string run_kv(std::span<const std::byte> input);
std::string run_tape(std::span<const std::byte> input);
std::string run_trace(std::span<const std::byte> input);
std::string run_text(std::span<const std::byte> input);

// What else reads a text's first line; the explorer's replay lines are added by the test, as the
// other programs are without it.
std::vector<std::function<std::string(const std::string&)>>& line_readers();

std::vector<bytes> pool_seeds();
std::vector<bytes> kv_seeds();
std::vector<bytes> tape_seeds();
std::vector<bytes> trace_seeds();
std::vector<bytes> text_seeds();

// A directory of this process, in memory where there is such; goes with the process.
const std::string& scratch();
// Makes the file hold these bytes.
void write_file(const std::string& path, std::span<const std::byte> content);

}  // namespace stele::fuzz
