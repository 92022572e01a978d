// The demo's job: an index of a text's words in a pool, resumable at any line, and the
// index_verification that it is right.
#pragma once

#include <stele/error.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::cli {

inline constexpr unsigned indexers = 2;  // threads; thread i takes the lines of number i modulo 2

struct text {
  std::string path, content;
  std::uint64_t bytes = 0, words = 0, distinct = 0;
  std::vector<std::string_view> lines;
};

// Reads `path`, or finds a text of at least 1 MB among the machine's own files when it is empty.
// Errors: not_found, invalid_argument (too short, or not text), io.
[[nodiscard]] result<text> read_text(const std::string& path);

struct acknowledgement {
  std::uint32_t thread;
  std::uint64_t line;  // how many lines of its own the thread had finished before this one
};
// Lines finished, by thread.
using acknowledged = std::array<std::uint64_t, indexers>;
acknowledged all_lines(const text& t);

// Indexes what the pool does not have yet, one transaction a line, from two threads; `told(thread,
// line)` is called after each commit has returned. Creates the pool when there is none.
[[nodiscard]] result<> index_text(const text& t, const std::string& pool,
                                  const std::string& mechanism, const std::string& media,
                                  const std::function<void(unsigned, std::uint64_t)>& acknowledge);

struct index_verification {
  std::uint64_t lines = 0, words = 0;  // in the index
  double open_seconds = 0;
};
// Opens the pool in a new process and checks it against the text: at least the acknowledged lines
// are there, at most one more a thread, and every word's count and last line are exactly what the
// lines there give. Errors: corrupt, with what is wrong.
[[nodiscard]] result<index_verification> verify_in_new_process(const text& t,
                                                               const std::string& pool,
                                                               const std::string& mechanism,
                                                               const std::string& media,
                                                               const acknowledged& lines);

}  // namespace stele::cli
