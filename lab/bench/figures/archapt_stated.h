// Every number (and a few words) that Wu, Ren and Li, "Architecture-Aware, High Performance
// Transaction for Persistent Memory" (2019), sections II and V, state in their text about figures
// 2, 3, 6 to 9 and in table IV, with the way to read the same from a chart measured here.
//
// The numbers are the authors', from their machine and host systems; none is read off a plot.
// PMDK's undo logging is "undo". Mnemosyne's redo logging is "redo-async", because its flushes are
// asynchronous, and "redo" beside it.
#pragma once

#include <bench/figures/statement.h>

namespace stele::bench::stated {

using enum metric;
inline constexpr statement archapt_statements[] = {
    {"2", "undo: persistence, of the overhead", "56 to 78 %, mean 65 %", "%", value, "undo",
     "persistence", "", ""},
    {"2", "redo: persistence, of the overhead", "41 to 64 %, mean 51 %", "%", value, "redo",
     "persistence", "", ""},
    {"2", "redo-async: persistence, of the overhead", "41 to 64 %, mean 51 %", "%", value,
     "redo-async", "persistence", "", ""},
    {"2", "undo below none, throughput", "8 to 49 %", "%", loss, "throughput", "undo", "none", ""},
    {"2", "redo below none, throughput", "8 to 49 %", "%", loss, "throughput", "redo", "none", ""},
    {"2", "redo-async below none, throughput", "8 to 49 %", "%", loss, "throughput", "redo-async",
     "none", ""},

    {"3", "objects used at most twice, ycsb-a", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "ycsb-a"},
    {"3", "objects used at most twice, ycsb-b", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "ycsb-b"},
    {"3", "objects used at most twice, ycsb-c", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "ycsb-c"},
    {"3", "objects used at most twice, ycsb-d", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "ycsb-d"},
    {"3", "objects used at most twice, ycsb-f", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "ycsb-f"},
    {"3", "objects used at most twice, tpcc", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "tpcc"},
    {"3", "objects used at most twice, linkbench", "78 % (once or twice)", "%", value, "in sum",
     "at most twice", "", "linkbench"},
    {"3", "objects used twice or more, ycsb-e", "89 %", "%", value, "in sum", "twice or more", "",
     "ycsb-e"},

    {"6", "128 B: creating below flushing", "29 %", "%", loss, "time", "create", "flush", "128"},
    {"6", "2048 B: creating below flushing", "68 %", "%", loss, "time", "create", "flush", "2048"},
    {"6", "128 B: updating below flushing", "slightly above", "%", loss, "time", "update", "flush",
     "128"},
    {"6", "2048 B: updating below flushing", "63 %", "%", loss, "time", "update", "flush", "2048"},

    {"7", "archapt-undo over undo", "22 %, mean; up to 32 %", "%", gain, "", "archapt-undo", "undo",
     ""},
    {"7", "archapt-undo, told later, over undo", "22 %, mean; up to 32 %", "%", gain, "",
     "archapt-undo later", "undo", ""},
    {"7", "archapt-redo over redo-async", "16 %, mean", "%", gain, "", "archapt-redo", "redo-async",
     ""},
    {"7", "archapt-redo over redo", "16 %, mean", "%", gain, "", "archapt-redo", "redo", ""},
    {"7", "ycsb-c: archapt-undo over undo", "-3 % at the worst", "%", gain, "", "archapt-undo",
     "undo", "ycsb-c"},
    {"7", "ycsb-c: archapt-redo over redo", "-3 % at the worst", "%", gain, "", "archapt-redo",
     "redo", "ycsb-c"},

    {"8", "archapt-undo below undo", "8 %, mean", "%", loss, "99th percentile", "archapt-undo",
     "undo", ""},
    {"8", "archapt-undo, told later, below undo", "8 %, mean", "%", loss, "99th percentile",
     "archapt-undo later", "undo", ""},
    {"8", "archapt-undo, told later, until told, below undo", "8 %, mean", "%", loss,
     "99th percentile, until answered", "archapt-undo later", "undo", ""},
    {"8", "archapt-redo below redo-async", "9 %, mean", "%", loss, "99th percentile",
     "archapt-redo", "redo-async", ""},
    {"8", "archapt-redo below redo", "9 %, mean", "%", loss, "99th percentile", "archapt-redo",
     "redo", ""},

    {"9", "undo: flushes saved by archapt-undo", "66 %, mean, both techniques", "%", loss,
     "flushed", "archapt-undo", "undo", ""},
    {"9", "undo: flushes saved, told later", "66 %, mean, both techniques", "%", loss, "flushed",
     "archapt-undo later", "undo", ""},
    {"9", "undo: of all lines with the log's, told later", "66 %, mean, both techniques", "%",
     value, "saved, with the log's lines", "archapt-undo later / undo", "", ""},
    {"9", "redo: of all lines with the log's", "similar", "%", value, "saved, with the log's lines",
     "archapt-redo / redo", "", ""},
    {"9", "undo: flushes saved, told later and coalescing", "66 %, mean, both techniques", "%",
     loss, "flushed", "archapt-undo later, coalescing", "undo", ""},
    {"9", "redo: flushes saved by archapt-redo", "similar", "%", loss, "flushed", "archapt-redo",
     "redo", ""},
    {"9", "ycsb-e: flushes saved, told later", "less than on others", "%", loss, "flushed",
     "archapt-undo later", "undo", "ycsb-e"},

    {"IV", "ycsb-a, lru: inconsistent", "901 objects in 100 crashes", "lines", value,
     "archapt-undo later, 44 KiB, lru", "inconsistent", "", "ycsb-a"},
    {"IV", "ycsb-a, plru: inconsistent", "776", "lines", value, "archapt-undo later, 44 KiB, plru",
     "inconsistent", "", "ycsb-a"},
    {"IV", "ycsb-a, bip: inconsistent", "88", "lines", value, "archapt-undo later, 44 KiB, bip",
     "inconsistent", "", "ycsb-a"},
    {"IV", "ycsb-a, random: inconsistent", "1435", "lines", value,
     "archapt-undo later, 44 KiB, random", "inconsistent", "", "ycsb-a"},
    {"IV", "lru: not corrected", "0", "lines", value, "archapt-undo later, 44 KiB, lru",
     "uncorrectable", "", ""},
    {"IV", "plru: not corrected", "0", "lines", value, "archapt-undo later, 44 KiB, plru",
     "uncorrectable", "", ""},
    {"IV", "bip: not corrected", "0", "lines", value, "archapt-undo later, 44 KiB, bip",
     "uncorrectable", "", ""},
    {"IV", "random: not corrected", "0", "lines", value, "archapt-undo later, 44 KiB, random",
     "uncorrectable", "", ""},
};

}  // namespace stele::bench::stated
