// Every number that Sun, Lu and Shu, "DP2: Reducing Transaction Overhead with Differential and Dual
// Persistency in Persistent Memory" (2015), sections 2.3 and 4, state in their text, with the way
// to read the same from a chart measured here.
//
// The numbers are the authors', from their machine and settings; none is read off a plot. The text
// does not say how many threads the traces of figures 5 and 8 have: each number is listed here for
// one thread and for four.
#pragma once

#include <bench/figures/statement.h>

namespace stele::bench::stated {

inline constexpr statement dp2_statements[] = {
    {"2", "log and data, by workload", "52.2 % to 66.2 %", "%", metric::value, "workloads",
     "persist", "", ""},
    {"2", "log, by workload", "27.8 % to 44.3 %, mean 36.5 %", "%", metric::value, "workloads",
     "log", "", ""},
    {"2", "log, by value size", "mean 38.4 %", "%", metric::value, "value sizes", "log", "", ""},

    {"5", "1 KiB, one thread: rule 1", "41 %", "%", metric::gain, "one thread", "rule1", "strict",
     "1024"},
    {"5", "1 KiB, one thread: rule 2", "1 %", "%", metric::gain, "one thread", "rule2", "strict",
     "1024"},
    {"5", "1 KiB, one thread: both rules", "44 %", "%", metric::gain, "one thread", "rules",
     "strict", "1024"},
    {"5", "1 KiB, four threads: rule 1", "41 %", "%", metric::gain, "four threads", "rule1",
     "strict", "1024"},
    {"5", "1 KiB, four threads: rule 2", "1 %", "%", metric::gain, "four threads", "rule2",
     "strict", "1024"},
    {"5", "1 KiB, four threads: both rules", "44 %", "%", metric::gain, "four threads", "rules",
     "strict", "1024"},
    {"5", "1 KiB, without truncations: rule 1", "41 %", "%", metric::gain,
     "one thread, without truncations (loses data)", "rule1", "strict", "1024"},
    {"5", "1 KiB, without truncations and guards: rule 1", "41 %", "%", metric::gain,
     "one thread, without truncations and guards (loses data)", "rule1", "strict", "1024"},
    {"5", "1 KiB, without truncations and guards: rule 2", "1 %", "%", metric::gain,
     "one thread, without truncations and guards (loses data)", "rule2", "strict", "1024"},
    {"5", "1 KiB, without truncations and guards: both rules", "44 %", "%", metric::gain,
     "one thread, without truncations and guards (loses data)", "rules", "strict", "1024"},
    {"5", "without truncations and guards: both rules, mean", "33 %", "%", metric::gain,
     "one thread, without truncations and guards (loses data)", "rules", "strict", ""},
    {"5", "one thread: both rules, mean", "33 %", "%", metric::gain, "one thread", "rules",
     "strict", ""},
    {"5", "four threads: both rules, mean", "33 %", "%", metric::gain, "four threads", "rules",
     "strict", ""},

    {"6", "8 B: both rules", "unpredictable", "%", metric::gain, "8 B", "rules", "strict", ""},
    {"6", "256 B: both rules", "grows with threads", "%", metric::gain, "256 B", "rules", "strict",
     ""},
    {"6", "1024 B: both rules", "grows with threads", "%", metric::gain, "1024 B", "rules",
     "strict", ""},
    {"6", "4096 B: both rules", "grows with threads", "%", metric::gain, "4096 B", "rules",
     "strict", ""},

    {"7", "10^4 s over 10^7 s", "24 % in the mean", "%", metric::gain, "throughput", "1e+04",
     "1e+07", ""},

    {"8", "one thread: rule 1", "50 % in the mean", "%", metric::gain, "one thread", "rule1 dual",
     "strict", ""},
    {"8", "one thread: rule 2", "35 % in the mean", "%", metric::gain, "one thread", "rule2 dual",
     "strict", ""},
    {"8", "one thread: both rules", "53 % in the mean", "%", metric::gain, "one thread",
     "rules dual", "strict", ""},
    {"8", "four threads: rule 1", "50 % in the mean", "%", metric::gain, "four threads",
     "rule1 dual", "strict", ""},
    {"8", "four threads: rule 2", "35 % in the mean", "%", metric::gain, "four threads",
     "rule2 dual", "strict", ""},
    {"8", "four threads: both rules", "53 % in the mean", "%", metric::gain, "four threads",
     "rules dual", "strict", ""},

    {"8", "one thread, truncations as data: rule 1", "50 % in the mean", "%", metric::gain,
     "one thread, truncations kept as data", "rule1 dual", "strict", ""},
    {"8", "one thread, truncations as data: rule 2", "35 % in the mean", "%", metric::gain,
     "one thread, truncations kept as data", "rule2 dual", "strict", ""},
    {"8", "one thread, truncations as data: both rules", "53 % in the mean", "%", metric::gain,
     "one thread, truncations kept as data", "rules dual", "strict", ""},
    {"8", "four threads, truncations as data: rule 1", "50 % in the mean", "%", metric::gain,
     "four threads, truncations kept as data", "rule1 dual", "strict", ""},
    {"8", "four threads, truncations as data: rule 2", "35 % in the mean", "%", metric::gain,
     "four threads, truncations kept as data", "rule2 dual", "strict", ""},
    {"8", "four threads, truncations as data: both rules", "53 % in the mean", "%", metric::gain,
     "four threads, truncations kept as data", "rules dual", "strict", ""},

    {"9", "8 B: ETL-Tornbit over ETL-Base", "10 %", "%", metric::gain, "throughput", "tornbit",
     "base", "8"},
    {"9", "64 B: ETL-Tornbit over ETL-Base", "14 %", "%", metric::gain, "throughput", "tornbit",
     "base", "64"},
    {"9", "ETL-Tornbit over ETL-Base", "5 % in the mean", "%", metric::gain, "throughput",
     "tornbit", "base", ""},
    {"9", "Dual-P over ETL-Base", "24 % in the mean", "%", metric::gain, "throughput", "dual",
     "base", ""},
    {"9", "Dual-P over ETL-Tornbit", "better at each size", "%", metric::gain, "throughput", "dual",
     "tornbit", ""},
    {"9", "NVRAM-DP over ETL-Base", "43 % in the mean", "%", metric::gain, "throughput", "both",
     "base", ""},

    {"10", "NVRAM-DP over ETL-Base", "20 % in the mean, most on sps", "%", metric::gain,
     "throughput", "both", "base", ""},
    {"10", "NVRAM-DP over ETL-Tornbit", "better on each", "%", metric::gain, "throughput", "both",
     "tornbit", ""},
    {"10", "fences wait: NVRAM-DP over ETL-Base", "20 % in the mean", "%", metric::gain,
     "fences wait, throughput", "both", "base", ""},
    {"10", "fences wait, processor 34 %: NVRAM-DP over ETL-Base", "20 % in the mean", "%",
     metric::gain, "fences wait, processor 34 %, throughput", "both", "base", ""},
    {"10", "fences wait, processor 41 %: NVRAM-DP over ETL-Base", "20 % in the mean", "%",
     metric::gain, "fences wait, processor 41 %, throughput", "both", "base", ""},
    {"10", "fences wait, processor 48 %: NVRAM-DP over ETL-Base", "20 % in the mean", "%",
     metric::gain, "fences wait, processor 48 %, throughput", "both", "base", ""},

    {"endurance", "writes that go to logs", "2/3 (66.7 %)", "%", metric::value, "lifetime",
     "log share", "", ""},
    {"endurance", "longer, by equation (1)", "47 %", "%", metric::value, "lifetime", "equation", "",
     ""},
    {"endurance", "longer, by iterations saved", "47 %", "%", metric::value, "lifetime",
     "iterations", "", ""},
};

}  // namespace stele::bench::stated
