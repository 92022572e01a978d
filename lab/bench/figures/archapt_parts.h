// Shared by the figures of the architecture-aware evaluation: the mixes, their task, the systems,
// and the requirements.
//
// The ratio of data to the cache that the queue models is the text's (10 GB to 19.25 MB), and all
// logs together are as large as the data. A column then leaves the queue long before its log is
// truncated, and a matrix is stored to more than once in between. Shorter logs are truncated while
// most matrices have one dirty object, which has fewer lines than their checksums.
#pragma once

#include <bench/figures/sweep.h>

#include <array>
#include <span>

namespace stele::bench::archapt {

// On Redis the medium is that of a server's pool, which has no delays.
bool is_on_redis(const sweep_options& o);
const char* medium_of(const sweep_options& o);
inline constexpr double data_over_cache = 10e9 / 19.25e6;  // of the text

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

// One operation per transaction, keys by Zipf; pools with room for content, checksums and logs.
task task_on(const sweep_options& o, const mix& m, unsigned threads);
std::string sizes_of(const task& t);  // text for a note

// The compared systems, by the names that claims use.
namespace system {
inline constexpr const char *none = "none", *undo = "undo", *redo = "redo", *async = "redo-async";
// Each write logged by itself, as the text's bases do.
inline constexpr const char *undo_published = "undo-published", *redo_published = "redo-published";
inline constexpr const char *undo_archapt = "archapt-undo", *redo_archapt = "archapt-redo";
// Ordered commits: the thread continues after the logical commit, and the client is told after the
// physical one.
inline constexpr const char* undo_later = "archapt-undo later";
// Deferred lines are flushed in the truncation and none is skipped, unless the name says: where
// skipping is seen to pay, or always, even where it does not.
inline constexpr const char *undo_pays = "undo later, skips", *undo_always = "undo later, always";
inline constexpr const char *undo_coalescing = "undo, coalescing",
                            *later_coalescing = "archapt-undo later, coalescing",
                            *redo_coalescing = "archapt-redo, coalescing";
inline constexpr const char *redo_pays = "redo, skips", *redo_always = "redo, always";
}  // namespace system
entry entry_of(const char* system);
std::vector<entry> entries_of(std::initializer_list<const char*> systems);

// At each x, the median of `a` divided by that of `b`.
struct pair {
  const char *a, *b;
};
panel ratios_of(const panel& p, std::span<const pair> pairs, std::string name);

// Whether both systems of a ratio were measured anywhere.
bool is_measured(const panel& ratios, const pair& of);

// The project's requirement for a ratio on each mix and in the mean. verdict_of makes a note that
// says whether it is met.
struct requirement {
  pair what;
  std::optional<double> least_mean, least;  // for throughputs
  std::optional<double> most_mean = {};     // for latencies
};
std::string verdict_of(const panel& ratios, const requirement& d);

// Notes for charts with these systems.
inline constexpr const char* later_note =
    "later: archapt-undo whose transactions are ordered; a thread goes on after the logical "
    "commit, its client would be told after the physical one, and a "
    "run ends with a sync, in its time. All others are durable when they return";
inline constexpr const char* skipping_note =
    "skips, always: archapt with skipping where it is seen to pay, and wherever it can; the others "
    "flush late, each line once, and skip none, which is the default";

series values_of(std::string name, std::vector<std::optional<double>> values);

// Errors of all: those of the measurements; cancelled.
[[nodiscard]] result<> measure_overhead(const sweep_options& o, chart& into);    // figure 2
[[nodiscard]] result<> measure_reuse(const sweep_options& o, chart& into);       // 3
[[nodiscard]] result<> measure_checksums(const sweep_options& o, chart& into);   // 6
[[nodiscard]] result<> measure_throughput(const sweep_options& o, chart& into);  // 7
[[nodiscard]] result<> measure_tail(const sweep_options& o, chart& into);        // 8
[[nodiscard]] result<> measure_flushes(const sweep_options& o, chart& into);     // 9
[[nodiscard]] result<> measure_crashes(const sweep_options& o, chart& into);     // table IV

}  // namespace stele::bench::archapt
