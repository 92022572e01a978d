// Every number (and a few words) that the evaluation of Lu, Shu and Sun, "Blurred Persistence:
// Efficient Transactions in Persistent Memory" (2016), section 5, states in its text, with the way
// to read the same from a chart measured here.
//
// The numbers are the authors', from their machine and settings; none is read off a plot. Where the
// text does not say how a percentage is computed, the number is listed here once for each reading.
// Charts name systems by this project's mechanisms.
#pragma once

#include <bench/figures/statement.h>

#include <array>

namespace stele::bench::stated {

// BPPM and the systems compared with it, by the names of the text and of this project.
struct system_name {
  const char *mechanism, *text;
};
inline constexpr system_name systems[] = {{"none", "NP"},
                                          {"base", "BASE"},
                                          {"redo", "MNE"},
                                          {"redo-async", "MNE-ASYNC"},
                                          {"redo-published", "MNE as published"},
                                          {"xil", "BP(XIL)"},
                                          {"vcbp", "BP(VCBP)"},
                                          {"blurred", "BPPM"},
                                          {"adaptive", "BPPM-A"}};

using enum metric;
inline constexpr statement statements[] = {
    {"9", "base below none", "62.1 %", "%", loss, "throughput", "base", "none", ""},
    {"9", "blurred over base", "56.3 % to 143.7 %, mean 86.3 %", "%", gain, "throughput", "blurred",
     "base", ""},
    {"9", "xil over base", "9.7 % to 50.5 %, mean 21.3 %", "%", gain, "throughput", "xil", "base",
     ""},
    {"9", "vcbp over base", "52.2 % to 84.8 %, mean 63.5 %", "%", gain, "throughput", "vcbp",
     "base", ""},
    {"9", "blurred over redo", "as high as 74.6 %, on average", "%", gain, "throughput", "blurred",
     "redo", ""},
    {"9", "blurred over redo-published", "as high as 74.6 %, on average", "%", gain, "throughput",
     "blurred", "redo-published", ""},
    {"9", "blurred, whole cache, over base", "56.3 % to 143.7 %, mean 86.3 %", "%", gain,
     "throughput", "blurred whole", "base", ""},
    {"9", "vcbp, whole cache, over base", "52.2 % to 84.8 %, mean 63.5 %", "%", gain, "throughput",
     "vcbp whole", "base", ""},
    {"9", "blurred, whole cache, over redo-published", "as high as 74.6 %, on average", "%", gain,
     "throughput", "blurred whole", "redo-published", ""},
    {"9", "blurred's part of the gap to none", "almost half", "%", gap_closed, "throughput",
     "blurred", "base", ""},

    {"10", "hash: blurred's saving of time beyond none's", "about 40 %", "%", overhead_saved,
     "hash", "blurred", "base", ""},
    {"10", "hash: blurred's part of the gap to none", "about 40 %", "%", gap_closed, "hash",
     "blurred", "base", ""},
    {"10", "hash: blurred's saving of time", "about 40 %", "%", time_saved, "hash", "blurred",
     "base", ""},
    {"10", "rbtree: blurred's saving of time beyond none's", "about 43 %", "%", overhead_saved,
     "rbtree", "blurred", "base", ""},
    {"10", "rbtree: blurred's part of the gap to none", "about 43 %", "%", gap_closed, "rbtree",
     "blurred", "base", ""},
    {"10", "rbtree: blurred's saving of time", "about 43 %", "%", time_saved, "rbtree", "blurred",
     "base", ""},
    {"10", "hash, whole cache: blurred's saving of time", "about 40 %", "%", time_saved, "hash",
     "blurred whole", "base", ""},
    {"10", "rbtree, whole cache: blurred's saving of time", "about 43 %", "%", time_saved, "rbtree",
     "blurred whole", "base", ""},
    {"10", "hash: aborts with 4 threads, blurred", "about 1 %", "%", value, "hash aborts",
     "blurred", "", "4"},
    {"10", "hash: aborts with 8 threads, blurred", "over 50 %", "%", value, "hash aborts",
     "blurred", "", "8"},

    {"11", "8 B: blurred's saving of time", "39.7 %", "%", time_saved, "throughput", "blurred",
     "base", "8"},
    {"11", "8 B: blurred's saving of time beyond none's", "39.7 %", "%", overhead_saved,
     "throughput", "blurred", "base", "8"},
    {"11", "8 B: blurred's part of the gap to none", "39.7 %", "%", gap_closed, "throughput",
     "blurred", "base", "8"},
    {"11", "4096 B: blurred's saving of time", "23.0 %", "%", time_saved, "throughput", "blurred",
     "base", "4096"},
    {"11", "4096 B: blurred's saving of time beyond none's", "23.0 %", "%", overhead_saved,
     "throughput", "blurred", "base", "4096"},
    {"11", "4096 B: blurred's part of the gap to none", "23.0 %", "%", gap_closed, "throughput",
     "blurred", "base", "4096"},
    {"11", "4096 B, with runs: blurred's saving of time", "23.0 %", "%", time_saved, "throughput",
     "blurred-runs", "base", "4096"},
    {"11", "4096 B, with runs: blurred's saving of time beyond none's", "23.0 %", "%",
     overhead_saved, "throughput", "blurred-runs", "base", "4096"},
    {"11", "8 B, whole cache: blurred's saving of time", "39.7 %", "%", time_saved, "throughput",
     "blurred whole", "base", "8"},
    {"11", "4096 B, whole cache: blurred's saving of time", "23.0 %", "%", time_saved, "throughput",
     "blurred whole", "base", "4096"},

    {"12", "none, most over least", "almost constant", "", extent, "throughput", "none", "", ""},
    {"12", "base, most over least", "improves smoothly", "", extent, "throughput", "base", "", ""},
    {"12", "redo, most over least", "improves smoothly", "", extent, "throughput", "redo", "", ""},
    {"12", "blurred, most over least", "improves smoothly", "", extent, "throughput", "blurred", "",
     ""},
    {"12", "blurred, whole cache, most over least", "improves smoothly", "", extent, "throughput",
     "blurred whole", "", ""},

    {"13", "each workload, most over least", "changes slightly", "", extent, "throughput", "", "",
     ""},
    {"13", "each workload, whole cache, most over least", "changes slightly", "", extent,
     "throughput, whole cache", "", "", ""},

    {"14", "recovery with 0.1 MB of log", "3.2 us", "us", value, "recovery", "recovery", "", "0.1"},
    {"14", "recovery with 2 MB of log", "49.8 us", "us", value, "recovery", "recovery", "", "2"},

    {"14", "2 MB: recovery of sps over hash", "close", "", ratio, "each workload", "sps", "hash",
     "2"},
    {"14", "2 MB: recovery of rbtree over hash", "close", "", ratio, "each workload", "rbtree",
     "hash", "2"},
    {"14", "2 MB: recovery of bptree over hash", "close", "", ratio, "each workload", "bptree",
     "hash", "2"},
    {"14", "2 MB: recovery of kv over hash", "close", "", ratio, "each workload", "kv", "hash",
     "2"},
    {"14", "reading alone with 0.1 MB of log", "3.2 us", "us", value, "recovery", "reading", "",
     "0.1"},
    {"14", "reading alone with 2 MB of log", "49.8 us", "us", value, "recovery", "reading", "",
     "2"},

    {"15", "blurred over redo", "consistently better", "%", gain, "throughput", "blurred", "redo",
     ""},
    {"15", "blurred over redo-published", "consistently better", "%", gain, "throughput", "blurred",
     "redo-published", ""},
    {"15", "blurred over redo-async", "consistently better", "%", gain, "throughput", "blurred",
     "redo-async", ""},
    {"15", "blurred, whole cache, over redo", "consistently better", "%", gain, "throughput",
     "blurred whole", "redo", ""},
    {"15", "blurred, whole cache, over redo-published", "consistently better", "%", gain,
     "throughput", "blurred whole", "redo-published", ""},
    {"15", "blurred, whole cache, over redo-async", "consistently better", "%", gain, "throughput",
     "blurred whole", "redo-async", ""},
    {"15", "no idle time: redo-async over redo", "poorer", "%", gain, "throughput", "redo-async",
     "redo", "0"},

    {"16", "35 ns: blurred over base", "74.1 %", "%", gain, "throughput", "blurred", "base", "35"},
    {"16", "2000 ns: blurred over base", "3 times", "times", ratio, "throughput", "blurred", "base",
     "2000"},
    {"16", "2000 ns: vcbp over base", "nearly 5 times", "times", ratio, "throughput", "vcbp",
     "base", "2000"},
    {"16", "35 ns: blurred over base, whole cache", "74.1 %", "%", gain, "throughput",
     "blurred whole", "base", "35"},
    {"16", "2000 ns: blurred over base, whole cache", "3 times", "times", ratio, "throughput",
     "blurred whole", "base", "2000"},
    {"16", "2000 ns: vcbp over base, whole cache", "nearly 5 times", "times", ratio, "throughput",
     "vcbp whole", "base", "2000"},
    {"16", "2000 ns: blurred over vcbp, whole cache", "poorer", "%", gain, "throughput",
     "blurred whole", "vcbp whole", "2000"},
    {"16", "2000 ns: blurred over vcbp", "poorer", "%", gain, "throughput", "blurred", "vcbp",
     "2000"},

    {"17", "sps, 1000 ns: blurred over vcbp", "better", "%", gain, "sps", "blurred", "vcbp",
     "1000"},
    {"17", "sps, 2000 ns: blurred over vcbp", "better, by little", "%", gain, "sps", "blurred",
     "vcbp", "2000"},
    {"17", "hash, 1000 ns: blurred over vcbp", "worse", "%", gain, "hash", "blurred", "vcbp",
     "1000"},
    {"17", "hash, 2000 ns: blurred over vcbp", "worse", "%", gain, "hash", "blurred", "vcbp",
     "2000"},
    {"17", "rbtree, 1000 ns: blurred over vcbp", "worse", "%", gain, "rbtree", "blurred", "vcbp",
     "1000"},
    {"17", "rbtree, 2000 ns: blurred over vcbp", "worse", "%", gain, "rbtree", "blurred", "vcbp",
     "2000"},
    {"17", "bptree, 1000 ns: blurred over vcbp", "worse", "%", gain, "bptree", "blurred", "vcbp",
     "1000"},
    {"17", "bptree, 2000 ns: blurred over vcbp", "worse", "%", gain, "bptree", "blurred", "vcbp",
     "2000"},
    {"17", "kv, 1000 ns: blurred over vcbp", "worse", "%", gain, "kv", "blurred", "vcbp", "1000"},
    {"17", "kv, 2000 ns: blurred over vcbp", "worse", "%", gain, "kv", "blurred", "vcbp", "2000"},
    {"17", "each workload: adaptive over the better of both", "the best of the three", "%", gain,
     "", "adaptive", "better of both", ""},
    {"17", "sps, 1000 ns, whole cache: blurred over vcbp", "better", "%", gain, "sps",
     "blurred whole", "vcbp whole", "1000"},
    {"17", "sps, 2000 ns, whole cache: blurred over vcbp", "better, by little", "%", gain, "sps",
     "blurred whole", "vcbp whole", "2000"},
    {"17", "hash, 1000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "hash",
     "blurred whole", "vcbp whole", "1000"},
    {"17", "hash, 2000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "hash",
     "blurred whole", "vcbp whole", "2000"},
    {"17", "rbtree, 1000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "rbtree",
     "blurred whole", "vcbp whole", "1000"},
    {"17", "rbtree, 2000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "rbtree",
     "blurred whole", "vcbp whole", "2000"},
    {"17", "bptree, 1000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "bptree",
     "blurred whole", "vcbp whole", "1000"},
    {"17", "bptree, 2000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "bptree",
     "blurred whole", "vcbp whole", "2000"},
    {"17", "kv, 1000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "kv", "blurred whole",
     "vcbp whole", "1000"},
    {"17", "kv, 2000 ns, whole cache: blurred over vcbp", "worse", "%", gain, "kv", "blurred whole",
     "vcbp whole", "2000"},
    {"17", "each workload, whole cache: adaptive over the better of both", "the best of the three",
     "%", gain, "", "adaptive whole", "better of both whole", ""},
};

// Table II: milliseconds of warm-up; a row for each latency, a column for each workload.
inline constexpr std::array<const char*, 5> workloads = {"sps", "hash", "rbtree", "bptree", "kv"};
inline constexpr std::array<unsigned, 5> latencies_ns = {35, 95, 150, 1000, 2000};
inline constexpr double warm_up_ms[latencies_ns.size()][workloads.size()] = {
    {39, 49, 35, 112, 216},
    {53, 49, 56, 112, 202},
    {52, 52, 50, 110, 210},
    {62, 51, 60, 126, 229},
    {62, 72, 74, 128, 245}};

}  // namespace stele::bench::stated
