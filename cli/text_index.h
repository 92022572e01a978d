// The demo's workload: an index of a text's words in a pool. Indexing can resume at any line. A
// verification compares the index with the text.
#pragma once

#include <stele/error.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::cli {

inline constexpr unsigned indexers = 2;  // threads; thread i indexes line n when n modulo 2 is i

struct text {
  std::string path, content;
  std::uint64_t bytes = 0, words = 0, distinct = 0;
  std::vector<std::string_view> lines;
};

// Reads `path`. If `path` is empty, finds a text of at least 1 MB among the machine's own files.
// Errors: not_found, invalid_argument (too short, or not text), io.
[[nodiscard]] result<text> read_text(const std::string& path);

struct acknowledgement {
  std::uint32_t thread;
  std::uint64_t line;  // how many lines the thread had finished before this line
};
// The number of finished lines, by thread.
using acknowledged = std::array<std::uint64_t, indexers>;
acknowledged all_lines(const text& t);

// Indexes the lines that the pool does not have yet, from two threads, with one transaction for
// each line. Calls acknowledge(thread, line) after each commit has returned. Creates the pool when
// there is none.
[[nodiscard]] result<> index_text(const text& t, const std::string& pool,
                                  const std::string& mechanism, const std::string& media,
                                  const std::function<void(unsigned, std::uint64_t)>& acknowledge);

struct index_verification {
  std::uint64_t lines = 0, words = 0;  // in the index
  double open_seconds = 0;
};
// Opens the pool in a new process and checks it against the text. At least the acknowledged lines
// must be there, and at most one more line for each thread. The count and the last line of every
// word must be exactly those of the lines in the index. Errors: corrupt, with a sentence that says
// what is wrong.
[[nodiscard]] result<index_verification> verify_in_new_process(const text& t,
                                                               const std::string& pool,
                                                               const std::string& mechanism,
                                                               const std::string& media,
                                                               const acknowledged& lines);

}  // namespace stele::cli
