// The pages of docs/format as tests read them: headings, tables, examples.
//
// A table is found by its header row, an example by its indentation of four spaces. A test compares
// what the page says with the program: offsets and sizes with a struct, bits with a packed word,
// hexadecimal bytes and words with what an encoder has written. A table or example that is not on
// the page fails the test, and so does a row that the program does not have.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stele::testing {

using table_rows = std::vector<std::vector<std::string>>;  // cells, without spaces around them

class page {
 public:
  explicit page(const std::string& name) {
    std::ifstream in(STELE_SOURCE_DIR "/docs/format/" + name);
    for (std::string line; std::getline(in, line);) lines_.push_back(line);
    EXPECT_FALSE(lines_.empty()) << name;
  }

  // The part under a heading ("## Example"), up to the next heading of the same level.
  page section(const std::string& heading) const {
    const std::string level = heading.substr(0, heading.find(' ') + 1);
    page part;
    bool inside = false;
    for (const std::string& line : lines_) {
      if (line.starts_with(level)) inside = line == heading;
      if (inside) part.lines_.push_back(line);
    }
    EXPECT_FALSE(part.lines_.empty()) << "no heading " << heading;
    return part;
  }

  // The part before the first heading of the second level.
  page front() const {
    page part;
    for (const std::string& line : lines_) {
      if (line.starts_with("## ")) break;
      part.lines_.push_back(line);
    }
    return part;
  }

  // The rows of the first table whose header row begins with these cells ("| offset | size |"), or
  // of the first after `skipped` others.
  table_rows table(const std::string& header, unsigned skipped = 0) const {
    table_rows rows;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i].starts_with(header) || skipped-- != 0) continue;
      for (i += 2; i < lines_.size() && lines_[i].starts_with("|"); ++i)
        rows.push_back(cells_of(lines_[i]));
      break;
    }
    EXPECT_FALSE(rows.empty()) << "no table " << header;
    return rows;
  }

  // The lines of examples, without their indentation.
  std::vector<std::string> example() const {
    std::vector<std::string> all;
    for (const std::string& line : lines_)
      if (line.starts_with("    ")) all.push_back(line.substr(4));
    EXPECT_FALSE(all.empty()) << "no example";
    return all;
  }

  // The text with spaces for line ends, to search for sentences.
  std::string text() const {
    std::string all;
    for (const std::string& line : lines_) all += line + ' ';
    return all;
  }
  // The text between these two, which may span lines of the page.
  std::string between(std::string_view before, std::string_view after) const {
    const std::string all = text();
    const auto from = all.find(before);
    const auto to = from == all.npos ? from : all.find(after, from + before.size());
    EXPECT_NE(to, all.npos) << "not on the page: " << before << " ... " << after;
    if (to == all.npos) return {};
    return all.substr(from + before.size(), to - from - before.size());
  }

 private:
  page() = default;
  static std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    std::string cell;
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
        cell += line[++i];
      } else if (line[i] == '|') {
        const auto from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
        cells.push_back(from == cell.npos ? "" : cell.substr(from, to - from + 1));
        cell.clear();
      } else {
        cell += line[i];
      }
    }
    return cells;
  }

  std::vector<std::string> lines_;
};

// "56", "0x38" or a product, "7 x 8".
inline std::uint64_t number_in(const std::string& cell) {
  std::istringstream in(cell);
  std::uint64_t product = 1;
  for (std::string word; in >> word;)
    if (word != "x") product *= std::stoull(word, nullptr, 0);
  return product;
}

// Every number of a cell or sentence, in order; digits after a letter or in 0x do not count as one.
inline std::vector<std::uint64_t> numbers_in(const std::string& text) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < text.size();) {
    const auto is_alnum = [&](std::size_t at) {
      return std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    const std::size_t from = i;
    while (i < text.size() && is_alnum(i)) ++i;
    const std::string word = text.substr(from, i - from);
    if (!word.empty() && word.find_first_not_of("0123456789") == word.npos)
      all.push_back(std::stoull(word));
    if (word.empty()) ++i;
  }
  return all;
}

// "1 redo, 2 undo": the names by their numbers. A name ends at a comma, semicolon or colon.
inline std::map<std::uint64_t, std::string> names_in(const std::string& text) {
  std::map<std::uint64_t, std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find_first_of(",;:(", at);
    if (end == text.npos) end = text.size();
    std::istringstream in(text.substr(at, end - at));
    std::uint64_t number = 0;
    std::string name;
    if (in >> number && std::getline(in >> std::ws, name)) {
      name.erase(name.find_last_not_of(" .") + 1);
      names.emplace(number, name);
    }
    at = end + 1;
  }
  return names;
}

struct place {
  std::uint64_t offset, size;
  bool operator==(const place&) const = default;
  friend void PrintTo(const place& p, std::ostream* out) {
    *out << p.size << " bytes at " << p.offset;
  }
};
using places = std::map<std::string, place>;

// A member of a struct, for places.
#define STELE_PLACE(type, field)                 \
  {                                              \
    #field, {                                    \
      offsetof(type, field), sizeof(type::field) \
    }                                            \
  }

// The places of the fields in rows "offset | size | field | ...".
inline places places_in(const table_rows& rows) {
  places all;
  for (const auto& row : rows)
    if (!row.at(2).empty()) all[row[2]] = {number_in(row[0]), number_in(row[1])};
  return all;
}

// Rows "offset | size | field | ...". The fields are those of the program, and all rows together
// are the bytes from 0 to `size`, in order. Rows without a field are padding.
inline void expect_places(const table_rows& rows, places fields, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const auto& row : rows) {
    ASSERT_GE(row.size(), 3u);
    const place told{number_in(row[0]), number_in(row[1])};
    EXPECT_EQ(told.offset, end) << "gap or overlap before the row of " << row[2];
    end = told.offset + told.size;
    if (row[2].empty()) continue;
    const auto field = fields.find(row[2]);
    ASSERT_NE(field, fields.end()) << "no field " << row[2];
    EXPECT_EQ(told, field->second) << row[2];
    fields.erase(field);
  }
  EXPECT_EQ(end, size);
  for (const auto& [name, at] : fields) ADD_FAILURE() << name << " is not on the page";
}

// "12-43" or "11": a word with these bits set.
inline std::uint64_t bits_in(const std::string& cell) {
  const auto ends = numbers_in(cell);
  if (ends.empty() || ends.size() > 2 || ends.back() > 63 || ends.front() > ends.back()) {
    ADD_FAILURE() << "not bits: " << cell;
    return 0;
  }
  return (~std::uint64_t{0} >> (63 - ends.back())) & (~std::uint64_t{0} << ends.front());
}

// Rows "bits | field | ...", compared with the bits that each field has in the program. All rows
// together are the bits of `whole`, none twice. Rows without a field are zero bits.
inline void expect_bits(const table_rows& rows, std::map<std::string, std::uint64_t> fields,
                        std::uint64_t whole = ~std::uint64_t{0}) {
  std::uint64_t seen = 0;
  for (const auto& row : rows) {
    ASSERT_GE(row.size(), 2u);
    const std::uint64_t told = bits_in(row[0]);
    EXPECT_EQ(told & seen, 0u) << "bits that another row has too: " << row[0];
    seen |= told;
    if (row[1].empty()) continue;
    const auto field = fields.find(row[1]);
    ASSERT_NE(field, fields.end()) << "no field " << row[1];
    EXPECT_EQ(told, field->second) << row[1];
    fields.erase(field);
  }
  EXPECT_EQ(seen, whole);
  for (const auto& [name, bits] : fields) ADD_FAILURE() << name << " is not on the page";
}

// The digits of a line of an example: after the label, up to three spaces.
inline std::string digits_of(const std::string& line, const std::string& label) {
  const auto from = line.find_first_not_of(' ', label.size());
  return from == line.npos ? "" : line.substr(from, line.find("   ", from) - from);
}

// The bytes of a line of an example: pairs of hexadecimal digits after `label`, up to what is none.
inline std::vector<unsigned> bytes_in(const std::string& line, const std::string& label = "") {
  std::istringstream in(digits_of(line, label));
  std::vector<unsigned> bytes;
  for (std::string two;
       in >> two && two.size() == 2 && two.find_first_not_of("0123456789abcdefABCDEF") == two.npos;)
    bytes.push_back(static_cast<unsigned>(std::stoul(two, nullptr, 16)));
  return bytes;
}

// Compares a line of an example with the bytes at `at`.
inline void expect_bytes(const std::string& line, const std::string& label, const void* at,
                         std::size_t count) {
  const auto told = bytes_in(line, label);
  ASSERT_EQ(told.size(), count) << line;
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_EQ(told[i], static_cast<const unsigned char*>(at)[i]) << "byte " << i << " of " << line;
}

// The words of a line of an example after `label`, each as four groups of four digits.
inline std::vector<std::uint64_t> words_in(const std::string& line, const std::string& label) {
  std::istringstream in(digits_of(line, label));
  std::vector<std::uint64_t> words;
  std::string digits;
  for (std::string four;
       in >> four && four.size() == 4 && four.find_first_not_of("0123456789abcdef") == four.npos;) {
    digits += four;
    if (digits.size() < 16) continue;
    words.push_back(std::stoull(digits, nullptr, 16));
    digits.clear();
  }
  EXPECT_TRUE(digits.empty()) << line;
  return words;
}

}  // namespace stele::testing
