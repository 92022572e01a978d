// What the figures of the architecture-aware evaluation share: the mixes, their task, the systems,
// and what is due.
//
// Data is to the cache that the queue stands for as in the text (10 GB to 19.25 MB), and all logs
// together are as large as the data: a column leaves the queue long before its log is cut, and a
// matrix is stored to more than once in between. Shorter logs are cut while most matrices have one
// dirty object, which is fewer lines than their checksums.
#pragma once

#include <bench/figures/sweep.h>

#include <array>
#include <span>

namespace stele::bench::archapt {

inline constexpr const char* medium = "delayed:150";
inline constexpr double data_over_cache = 10e9 / 19.25e6;  // in the text

struct mix {
  const char* name;
  std::size_t value_bytes;
  bool writes;
};
inline constexpr std::array<mix, 8> mixes = {{{"ycsb-a", 1024, true},
                                              {"ycsb-b", 1024, true},
                                              {"ycsb-c", 1024, false},
                                              {"ycsb-d", 1024, true},
                                              {"ycsb-e", 1024, true},
                                              {"ycsb-f", 1024, true},
                                              {"tpcc", 512, true},
                                              {"linkbench", 1024, true}}};
std::vector<mix> mixes_that_write();
std::vector<std::string> names_of(std::span<const mix> all);

// One operation a transaction, keys by Zipf; pools with room for content, checksums and logs.
task task_on(const sweep_options& o, const mix& m, unsigned threads);
std::string sizes_of(const task& t);  // for a note

// The systems side by side, by the names that claims know.
namespace system {
inline constexpr const char *none = "none", *undo = "undo", *redo = "redo", *async = "redo-async";
inline constexpr const char *undo_archapt = "archapt-undo", *redo_archapt = "archapt-redo";
// Commits that are ordered: the thread goes on after the logical commit, and the client is told
// after the physical one.
inline constexpr const char* undo_later = "archapt-undo later";
// Never: what is put off is flushed, in the truncation, and nothing skipped. Always: where it does
// not pay, too.
inline constexpr const char *undo_never = "undo later, never", *undo_always = "undo later, always";
inline constexpr const char *undo_coalescing = "undo, coalescing",
                            *later_coalescing = "archapt-undo later, coalescing",
                            *redo_coalescing = "archapt-redo, coalescing";
inline constexpr const char *redo_never = "redo, never", *redo_always = "redo, always";
}  // namespace system
entry entry_of(const char* system);
std::vector<entry> entries_of(std::initializer_list<const char*> systems);

// At each x the median of `a` over that of `b`.
struct pair {
  const char *a, *b;
};
panel ratios_of(const panel& p, std::span<const pair> pairs, std::string name);

// What the project asks of a ratio on each mix and in the mean, as a note that says whether it is
// met.
struct requirement {
  pair what;
  std::optional<double> least_mean, least;  // of throughputs
  std::optional<double> most_mean = {};     // of latencies
};
std::string verdict_of(const panel& ratios, const requirement& d);

// For charts that have them.
inline constexpr const char* later_note =
    "later: archapt-undo whose transactions are ordered; a thread goes on after the logical "
    "commit, its client would be told after the physical one, and a "
    "run ends with a sync, in its time. All others are durable when they return";
inline constexpr const char* never_note =
    "never, always: archapt with skipping never, and wherever it can; else where it pays";

series values_of(std::string name, std::vector<std::optional<double>> values);

// Errors of all: those of what is measured; cancelled.
[[nodiscard]] result<> measure_overhead(const sweep_options& o, chart& into);    // figure 2
[[nodiscard]] result<> measure_reuse(const sweep_options& o, chart& into);       // 3
[[nodiscard]] result<> measure_checksums(const sweep_options& o, chart& into);   // 6
[[nodiscard]] result<> measure_throughput(const sweep_options& o, chart& into);  // 7
[[nodiscard]] result<> measure_tail(const sweep_options& o, chart& into);        // 8
[[nodiscard]] result<> measure_flushes(const sweep_options& o, chart& into);     // 9
[[nodiscard]] result<> measure_crashes(const sweep_options& o, chart& into);     // table IV

}  // namespace stele::bench::archapt
