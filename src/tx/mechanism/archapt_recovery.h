// The part of archapt's recovery that runs before anything changes: which matrices are covered, and
// what in them must be restored. docs/protocol/archapt.md, R2.
#pragma once

#include <pool/heap.h>
#include <stele/error.h>
#include <tx/log/record.h>
#include <tx/parity/parity_area.h>

#include <unordered_map>
#include <vector>

namespace stele::detail {

// The old values of words in home, from the records of the logs, by matrix.
class old_values {
 public:
  explicit old_values(const parity_area& area) : area_(area) {}

  // Adds a record's old values; called in order of TxID. Errors: corrupt, for a run outside home.
  [[nodiscard]] result<> add(const storage::pool_file& file, std::span<const std::uint64_t> runs,
                             std::uint64_t epoch);
  // Adds those of records of kind undo_with_epoch; `words` has the payloads.
  template <class Records>
  [[nodiscard]] result<> add_records(const storage::pool_file& file, const Records& records,
                                     std::span<const std::uint64_t> words) {
    for (const auto& r : records)
      if (r.kind == format::record_kind::undo_with_epoch)
        if (auto added = add(file, words.subspan(r.first, r.words), r.front); !added) return added;
    return {};
  }
  // Rolls a matrix's content back to an epoch: each word gets its oldest value since then.
  void roll_back_to(std::uint64_t number, std::uint64_t epoch, matrix& content) const noexcept;

 private:
  struct old_word {
    std::uint8_t line, word, mask;
    std::uint64_t epoch, value;
  };
  const parity_area& area_;
  std::unordered_map<std::uint64_t, std::vector<old_word>> words_;
};

struct covered_home {
  struct line {
    std::uint64_t offset;
    format::line_words content;
  };
  std::vector<std::uint64_t> matrices;  // the covered ones
  std::vector<line> restored;  // lines that differ from what their block says, with what it says
  std::vector<std::uint64_t> lost;  // offsets of stale lines that cannot be restored
  // Lines that are not as their block says, even with the logs' old values restored.
  std::uint64_t stale = 0;
  std::uint64_t newest_epoch = 0;  // of any block
};

// Ignores blocks of epochs before `first`. Errors: corrupt, for an epoch that no program reaches.
[[nodiscard]] result<covered_home> find_covered(const parity_area& area, std::uint64_t first,
                                                const old_values& olds);

// The newest epoch of a block that counts; 0: there is none. Errors: as above.
[[nodiscard]] result<std::uint64_t> newest_epoch(const parity_area& area, std::uint64_t first);

// An error that names the objects that the lost lines belong to.
std::unexpected<error> report_loss(const storage::pool_file& file, const storage::heap& heap,
                                   const covered_home& found);

}  // namespace stele::detail
