// Every number (and a few words) that the evaluation of Hu, Ren, Badam, Shu, Moscibroda,
// "Log-Structured Non-Volatile Main Memory" (2017), section 5, states in its text, with the way to
// read the same from a chart measured here.
//
// The numbers are the authors', from their machine and settings; none is read off a plot. Names of
// systems there: base, 2L, 2L-GU, 2L-GU-C as here; LS is "all", LSC "busy", Mnm (Mnemosyne) "redo",
// MU (Mnmsyn-Undo) "undo".
#pragma once

#include <bench/figures/statement.h>

namespace stele::bench::stated {

using enum metric;
inline constexpr statement lsnvmm_statements[] = {
    {"4", "2L over base", "39.6 %, mean", "%", gain, "throughput", "2L", "base", ""},
    {"4", "2L-GU over 2L", "42.3 %, mean", "%", gain, "throughput", "2L-GU", "2L", ""},
    {"4", "2L-GU-C over 2L-GU", "30.1 %, mean", "%", gain, "throughput", "2L-GU-C", "2L-GU", ""},
    {"4", "2L-GU-C over base", "up to 268.6 %, mean 157.9 %", "%", gain, "throughput", "2L-GU-C",
     "base", ""},

    {"5", "node-cache hits", "92.2 %, mean", "%", value, "hit ratio", "2L-GU-C", "", ""},

    {"6", "4 threads: all over 2L-GU-C", "48.9 %", "%", gain, "", "all", "2L-GU-C", "4"},

    {"7", "1 thread: LS over redo", "37.3 %, mean", "%", gain, "one thread", "all", "redo", ""},
    {"7", "1 thread: LS over redo-published", "37.3 %, mean", "%", gain, "one thread", "all",
     "redo-published", ""},
    {"7", "1 thread: LS over undo-published", "66.1 %, mean", "%", gain, "one thread", "all",
     "undo-published", ""},
    {"7", "1 thread: LS over undo", "66.1 %, mean", "%", gain, "one thread", "all", "undo", ""},
    {"7", "1 thread, hash Ins: LS over redo", "89.6 %", "%", gain, "one thread", "all", "redo",
     "hash Ins"},
    {"7", "1 thread, hash Upd: LS over redo", "89.6 %", "%", gain, "one thread", "all", "redo",
     "hash Upd"},
    {"7", "1 thread, sps: LS over redo", "89.9 %", "%", gain, "one thread", "all", "redo", "sps"},
    {"7", "1 thread, hash Ins: LS over redo-published", "89.6 %", "%", gain, "one thread", "all",
     "redo-published", "hash Ins"},
    {"7", "1 thread, hash Upd: LS over redo-published", "89.6 %", "%", gain, "one thread", "all",
     "redo-published", "hash Upd"},
    {"7", "1 thread, sps: LS over redo-published", "89.9 %", "%", gain, "one thread", "all",
     "redo-published", "sps"},
    {"7", "1 thread, hash Ins: LS over undo", "118.2 %", "%", gain, "one thread", "all", "undo",
     "hash Ins"},
    {"7", "1 thread, hash Upd: LS over undo", "118.2 %", "%", gain, "one thread", "all", "undo",
     "hash Upd"},
    {"7", "1 thread, sps: LS over undo", "125.9 %", "%", gain, "one thread", "all", "undo", "sps"},
    {"7", "1 thread, kv Upd: LS over redo", "not well", "%", gain, "one thread", "all", "redo",
     "kv Upd"},
    {"7", "1 thread: LSC below LS", "4.1 %", "%", loss, "one thread", "busy", "all", ""},
    {"7", "4 threads: LS over redo", "44.7 %, mean", "%", gain, "four threads", "all", "redo", ""},
    {"7", "4 threads: LS over redo-published", "44.7 %, mean", "%", gain, "four threads", "all",
     "redo-published", ""},
    {"7", "4 threads: LS over undo-published", "80.8 %, mean", "%", gain, "four threads", "all",
     "undo-published", ""},
    {"7", "4 threads: LS over undo", "80.8 %, mean", "%", gain, "four threads", "all", "undo", ""},
    {"7", "4 threads: LSC below LS", "7.8 %", "%", loss, "four threads", "busy", "all", ""},

    {"8", "write traffic saved, of redo's", "82.8 %, mean", "%", loss, "write traffic", "all",
     "redo", ""},
    {"8", "write traffic saved, of undo's", "82.0 %, mean", "%", loss, "write traffic", "all",
     "undo", ""},
    {"8", "write traffic saved, of redo-published's", "82.8 %, mean", "%", loss, "write traffic",
     "all", "redo-published", ""},
    {"8", "write traffic saved, of undo-published's", "82.0 %, mean", "%", loss, "write traffic",
     "all", "undo-published", ""},
    {"8", "stored bytes saved, of redo-published's", "80.1 %, mean (dirty bytes)", "%", loss,
     "wear", "all", "redo-published", ""},
    {"8", "stored bytes saved, of undo-published's", "65.1 %, mean (dirty bytes)", "%", loss,
     "wear", "all", "undo-published", ""},
    {"8", "stored bytes saved, of redo's", "80.1 %, mean (dirty bytes)", "%", loss, "wear", "all",
     "redo", ""},
    {"8", "stored bytes saved, of undo's", "65.1 %, mean (dirty bytes)", "%", loss, "wear", "all",
     "undo", ""},

    {"9", "log_structured", "4.5 %, mean", "%", value, "fragmentation", "log_structured", "", ""},
    {"9", "log_structured on W1", "7.3 %", "%", value, "fragmentation", "log_structured", "", "W1"},
    {"9", "log_structured on W3", "0.6 %", "%", value, "fragmentation", "log_structured", "", "W3"},
    {"9", "jemalloc", "35.0 %, mean (NVML's)", "%", value, "fragmentation", "jemalloc", "", ""},

    {"10", "hash: MB a million updates, in the end", "more than 200 MB", "MB", value, "hash: rate",
     "separate", "", "16"},
    {"10", "rbtree: MB a million updates, in the end", "more than 200 MB", "MB", value,
     "rbtree: rate", "separate", "", "16"},
    {"10", "hash: separate logs over one, in the end", "more", "%", gain, "hash", "separate", "one",
     "16"},
    {"10", "rbtree: separate logs over one, in the end", "more, by more", "%", gain, "rbtree",
     "separate", "one", "16"},

    {"11", "128 B, 90 %, one cleaner: below no cleaning", "8 % or less", "%", loss,
     "128 B: throughput", "1 cleaner", "no cleaning", "90"},
    {"11", "128 B, 90 %, two cleaners: below no cleaning", "8 % or less", "%", loss,
     "128 B: throughput", "2 cleaners", "no cleaning", "90"},
    {"11", "1024 B, 90 %, one cleaner: below no cleaning", "8 % or less", "%", loss,
     "1024 B: throughput", "1 cleaner", "no cleaning", "90"},
    {"11", "1024 B, 90 %, two cleaners: below no cleaning", "8 % or less", "%", loss,
     "1024 B: throughput", "2 cleaners", "no cleaning", "90"},

    {"wear", "hash: the most written chunk, over that without levelling",
     "wear-levelling, no number", "", ratio, "hash", "levelled", "last", "most"},
    {"wear", "bptree: the most written chunk, over that without levelling",
     "wear-levelling, no number", "", ratio, "bptree", "levelled", "last", "most"},

    {"12", "10 GB of log, 128 B, 1 thread", "19.2 s", "s", value, "time", "128 B", "", "1"},
    {"12", "10 GB of log, 128 B, 8 threads", "3.0 s", "s", value, "time", "128 B", "", "8"},

    {"13", "DRAM over data, 128 B", "around 16.9 %", "%", value, "footprint", "content", "", "128"},
    {"13", "DRAM over all that the log holds, 128 B", "around 16.9 %", "%", value, "footprint",
     "live", "", "128"},
};

}  // namespace stele::bench::stated
