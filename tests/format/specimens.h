// Small pools of every current format, made by the library itself: one for each mechanism, closed
// and left open with records in its logs, and one for each thing that a pool may also have (block
// checksums, growth, spilled records, a checkpoint, several stores, documents, a plain root).
//
// Golden pools are specimens made by an earlier library; the fuzz targets start from today's. A
// specimen is made with a fixed id, by one thread, without background work. So the same code makes
// the same bytes, except for names of lists and dicts, which are random.
#pragma once

#include <stele/error.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stele::testing {

enum class content : std::uint8_t { store, document, plain };

struct specimen {
  std::string name, mechanism;
  content what = content::store;
  bool left_open = false;     // as a process leaves it that dies after the last commit
  bool sums = false;          // block checksums of home
  bool ordered = false;       // the last commits are ordered
  bool outgrows_log = false;  // the last transaction is longer than a log
  bool stores = false;        // several stores, items that expire
  std::size_t grown_to = 0;   // bytes; 0: it has not grown
  std::uint64_t checkpoint_commits = 0;
};

const std::vector<specimen>& specimens();

// Makes the pool; `dir` is for its file. Ends the program with a sentence when the pool cannot be
// made.
std::vector<std::byte> make(const specimen& s, const std::string& dir);

// The content of a pool file as text: keys and values, a document as JSON, or words. Recovers a
// private copy. Errors: those of opening; corrupt.
[[nodiscard]] result<std::string> content_text(const std::string& path);

}  // namespace stele::testing
