// Making the volatile side of a log-structured pool from its chunks: map, chunk states, account of
// live and stale words.
//
// Reads only. In two phases, each in parallel, after Hu, Ren, Badam, Shu and Moscibroda,
// "Log-Structured Non-Volatile Main Memory" (2017), section 4.5: chunks are scanned and their
// entries dealt out by home address; then, for each part of home, the newest entry of each word is
// mapped. docs/protocol/log_structured.md, R1 to R4.
#pragma once

#include <pool/log_space.h>

#include <vector>

namespace stele::detail {

struct rebuilt {
  std::uint64_t newest = 0;  // version
  std::vector<std::uint64_t>
      words_to_zero;  // words to be zeroed: versions of blocks of transactions that did not commit,
                      // what headers of free chunks still say
};

// Into a space that is as constructed. Transactions up to `committed_through` are known to have
// committed. Errors: corrupt.
[[nodiscard]] result<rebuilt> rebuild(storage::log_space& space, std::uint64_t committed_through,
                                      unsigned threads);

// The map that a clean close left, from chunk `first` on: pairs of words, see
// docs/format/log-structured.md. Its chunks are free again. False: it is not whole; the space is to
// be constructed anew, and rebuilt. Errors: corrupt.
[[nodiscard]] result<bool> load_mapping(storage::log_space& space, std::uint32_t first,
                                        std::uint64_t version);
// Whether every chunk in use is whole: its header, its blocks up to the last one that can be told
// to have been there, and all that the map points to. What a crash cuts off at a chunk's end is no
// damage. Reads the whole log. Errors: corrupt. `closed`: the pool was closed; else a crash may
// have torn the header of a chunk that was being taken.
[[nodiscard]] result<> verify_log(const storage::log_space& space, bool closed);
// What load_mapping is to read.
std::vector<std::uint64_t> encode_mapping(const storage::log_space& space);

}  // namespace stele::detail
