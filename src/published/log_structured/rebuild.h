// Rebuilds the volatile side of a log-structured pool from its chunks: home map, chunk states,
// counts of live and stale words.
//
// Only reads. Works in two phases, each in parallel, after Hu, Ren, Badam, Shu and Moscibroda,
// "Log-Structured Non-Volatile Main Memory" (2017), section 4.5: first, chunks are scanned and
// their entries dealt out by home address; then, for each part of home, the newest entry of each
// word is mapped. docs/protocol/log_structured.md, R1 to R4.
#pragma once

#include <published/log_structured/log_space.h>

#include <vector>

namespace stele::detail {

struct rebuilt {
  std::uint64_t newest = 0;  // newest version
  // Words to be zeroed: the versions of blocks of transactions that did not commit, and what the
  // headers of free chunks still hold.
  std::vector<std::uint64_t> words_to_zero;
};

// Rebuilds into a space that was just constructed. Transactions up to `committed_through` are known
// to have committed. Errors: corrupt.
[[nodiscard]] result<rebuilt> rebuild(storage::log_space& space, std::uint64_t committed_through,
                                      unsigned threads);

// Loads the mapping that a clean close left, from chunk `first` on: pairs of words, see
// docs/format/log-structured.md. Its chunks become free. False: the mapping is not whole; construct
// the space anew and rebuild it. Errors: corrupt.
[[nodiscard]] result<bool> load_mapping(storage::log_space& space, std::uint32_t first,
                                        std::uint64_t version);
// Checks that every chunk in use is whole: its header, its blocks up to the last one that is known
// to have been there, and all that the map points to. What a crash cuts off at a chunk's end is no
// damage. Reads the whole log. `closed`: the pool was closed; otherwise a crash may have torn the
// header of a chunk that was being taken. Errors: corrupt.
[[nodiscard]] result<> verify_log(const storage::log_space& space, bool closed);
// The mapping in the form that load_mapping() reads.
std::vector<std::uint64_t> encode_mapping(const storage::log_space& space);

}  // namespace stele::detail
