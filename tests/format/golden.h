// The golden pools of tests/format/golden: a folder of files, and a manifest that describes the
// content of each.
//
// A file is text that changes in few lines when the pool changes little: `size BYTES`, then `OFFSET
// WORD WORD ...` in hexadecimal for words of 8 bytes that are not 0; `*N` repeats the word before
// it N times. The manifest has a JSON object for each pool: file, specimen, format version, version
// of the library that made it, whether it was left open, content.
#pragma once

#include <lab_media/tape.h>
#include <tests/format/specimens.h>

namespace stele::testing {

struct golden_pool {
  std::string file, name;  // `name` is that of the specimen
  std::uint32_t version = 0;
  bool left_open = false;
  std::string made_by, content;
  friend void PrintTo(const golden_pool& g, std::ostream* out) { *out << g.file; }
};

// Returns an empty list, with a sentence on standard error, when the manifest cannot be read.
std::vector<golden_pool> golden_pools(const std::string& folder);
const specimen* specimen_named(const std::string& name);
std::string plain(const std::string& file);  // only letters, digits and underscores

// A content as the manifest has it: all of it, or its beginning and its checksum.
std::string brief(const std::string& content);

std::string pack(std::span<const std::byte> bytes);
[[nodiscard]] result<std::vector<std::byte>> unpack(const std::string& path);
std::uint64_t bytes_of_folder(const std::string& folder);

// A tape with every kind of event, and the events of a tape as text.
std::vector<std::byte> make_tape();
std::string tape_text(std::span<const std::byte> tape);
[[nodiscard]] result<std::string> tape_content(const std::string& folder);

// Writes every specimen of today, the tape and the manifest. Entries of other format versions stay.
[[nodiscard]] result<> write_golden(const std::string& folder);

}  // namespace stele::testing
