// Every number that Zhao, Li, Yoon, Xie, Jouppi, "Kiln: Closing the Performance Gap Between Systems With and Without
// Persistence Support" (2013), sections 1 and 6, state in their text, with the way to read the same from a chart measured here.
//
// The numbers are the authors', of their simulator and benchmarks; none is read off a plot. Where the text leaves open whether
// fences cost something, or what a percentage is of, a number stands here once for each reading.
#pragma once

#include <bench/figures/statement.h>

namespace stele::bench::stated {

inline constexpr statement kiln_statements[] = {
    {"1", "small, fences wait: throughput over native", "0.53", "", metric::value, "small, fences wait", "persistent", "", "throughput"},
    {"1", "small, fences free: throughput over native", "0.53", "", metric::value, "small, fences cost nothing", "persistent", "", "throughput"},
    {"1", "large, fences wait: throughput over native", "0.53", "", metric::value, "large, fences wait", "persistent", "", "throughput"},
    {"1", "large, fences free: throughput over native", "0.53", "", metric::value, "large, fences cost nothing", "persistent", "", "throughput"},
    {"1", "small: memory reads", "60 % more", "%", metric::gain, "small, fences wait", "persistent", "native", "reads"},
    {"1", "small: memory writes", "180 % more", "%", metric::gain, "small, fences wait", "persistent", "native", "writes"},
    {"1", "small: memory traffic", "120 % more", "%", metric::gain, "small, fences wait", "persistent", "native", "traffic"},
    {"1", "large: memory reads", "60 % more", "%", metric::gain, "large, fences wait", "persistent", "native", "reads"},
    {"1", "large: memory writes", "180 % more", "%", metric::gain, "large, fences wait", "persistent", "native", "writes"},
    {"1", "large: memory traffic", "120 % more", "%", metric::gain, "large, fences wait", "persistent", "native", "traffic"},

    {"6", "small: STT-MRAM over SRAM", "0.91", "", metric::value, "small", "stt-mram", "", "mean"},
    {"6", "large: STT-MRAM over SRAM", "0.99", "", metric::value, "large", "stt-mram", "", "mean"},

    {"7", "small, fences wait: CRlog over Rlog", "38 %", "%", metric::gain, "small, fences wait", "crlog", "rlog", "16"},
    {"7", "small, fences wait: CUlog over Ulog", "33 %", "%", metric::gain, "small, fences wait", "culog", "ulog", "16"},
    {"7", "small, fences free: CRlog over Rlog", "38 %", "%", metric::gain, "small, fences cost nothing", "crlog", "rlog", "16"},
    {"7", "small, fences free: CUlog over Ulog", "33 %", "%", metric::gain, "small, fences cost nothing", "culog", "ulog", "16"},
    {"7", "large, fences wait: CRlog over Rlog", "31 %", "%", metric::gain, "large, fences wait", "crlog", "rlog", "16"},
    {"7", "large, fences wait: CUlog over Ulog", "28 %", "%", metric::gain, "large, fences wait", "culog", "ulog", "16"},
    {"7", "large, fences free: CRlog over Rlog", "31 %", "%", metric::gain, "large, fences cost nothing", "crlog", "rlog", "16"},
    {"7", "large, fences free: CUlog over Ulog", "28 %", "%", metric::gain, "large, fences cost nothing", "culog", "ulog", "16"},
    {"7", "small: traffic saved, CRlog", "28 %", "%", metric::loss, "small, fences wait, traffic", "crlog", "rlog", "mean"},
    {"7", "small: traffic saved, CUlog", "26 %", "%", metric::loss, "small, fences wait, traffic", "culog", "ulog", "mean"},
    {"7", "large: traffic saved, CRlog", "35 %", "%", metric::loss, "large, fences wait, traffic", "crlog", "rlog", "mean"},
    {"7", "large: traffic saved, CUlog", "37 %", "%", metric::loss, "large, fences wait, traffic", "culog", "ulog", "mean"},
    {"7", "small: traffic over native, CRlog", "up to over 50 % more", "%", metric::gain, "small, fences wait, traffic", "crlog", "native", "mean"},
    {"7", "small: traffic over native, CUlog", "up to over 50 % more", "%", metric::gain, "small, fences wait, traffic", "culog", "native", "mean"},

    {"8", "small, fences wait: CUlog, 2 threads", "below 38 %", "%", metric::value, "small, fences wait", "culog", "", "2"},
    {"8", "small, fences wait: CUlog, 16 threads", "up to 70 %", "%", metric::value, "small, fences wait", "culog", "", "16"},
    {"8", "large, fences wait: CUlog, 2 threads", "below 30 %", "%", metric::value, "large, fences wait", "culog", "", "2"},
    {"8", "large, fences wait: CUlog, 16 threads", "up to 50 %", "%", metric::value, "large, fences wait", "culog", "", "16"},
    {"8", "small, fences wait: CRlog, 2 threads", "around 25 %", "%", metric::value, "small, fences wait", "crlog", "", "2"},
    {"8", "small, fences wait: CRlog, 16 threads", "45 %", "%", metric::value, "small, fences wait", "crlog", "", "16"},
    {"8", "large, fences wait: CRlog, 2 threads", "around 25 %", "%", metric::value, "large, fences wait", "crlog", "", "2"},
    {"8", "large, fences wait: CRlog, 16 threads", "45 %", "%", metric::value, "large, fences wait", "crlog", "", "16"},
    {"8", "small, fences free: CUlog, 16 threads", "up to 70 %", "%", metric::value, "small, fences cost nothing", "culog", "", "16"},
    {"8", "small, fences free: CRlog, 16 threads", "45 %", "%", metric::value, "small, fences cost nothing", "crlog", "", "16"},

    {"9", "small: Kiln over native, 16 threads", "0.91", "", metric::value, "small, 16 threads", "kiln", "", "mean"},
    {"9", "large: Kiln over native, 16 threads", "0.88", "", metric::value, "large, 16 threads", "kiln", "", "mean"},
    {"9", "small: Kiln over CRlog", "1.6 times", "times", metric::ratio, "small, 16 threads", "kiln", "crlog", "mean"},
    {"9", "small: Kiln over CUlog", "3 times", "times", metric::ratio, "small, 16 threads", "kiln", "culog", "mean"},
    {"9", "large: Kiln over CRlog", "1.2 times", "times", metric::ratio, "large, 16 threads", "kiln", "crlog", "mean"},
    {"9", "large: Kiln over CUlog", "1.5 times", "times", metric::ratio, "large, 16 threads", "kiln", "culog", "mean"},
    {"9", "small: NV cache writes", "8 % more", "%", metric::gain, "small, cache", "kiln", "native", "writes"},
    {"9", "small: NV cache accesses", "5 % more", "%", metric::gain, "small, cache", "kiln", "native", "accesses"},
    {"9", "large: NV cache writes", "8 % more", "%", metric::gain, "large, cache", "kiln", "native", "writes"},
    {"9", "large: NV cache accesses", "5 % more", "%", metric::gain, "large, cache", "kiln", "native", "accesses"},
    {"9", "small: NV cache writes, CRlog over native", "2 times", "times", metric::ratio, "small, cache", "crlog", "native", "writes"},

    {"10", "small, 4 times: Kiln over native at 4 times", "0.92", "", metric::ratio, "small", "kiln", "native", "4"},
    {"10", "small, 4 times: Kiln over native at 1", "0.92", "", metric::value, "small", "kiln", "", "4"},
    {"10", "large, 4 times: Kiln over native at 4 times", "0.82", "", metric::ratio, "large", "kiln", "native", "4"},
    {"10", "large, 4 times: Kiln over native at 1", "0.82", "", metric::value, "large", "kiln", "", "4"},

    {"11", "small: Kiln's memory power below CRlog's", "up to 23 %", "%", metric::loss, "small", "kiln", "crlog", "memory"},
    {"11", "large: Kiln's memory power below CRlog's", "up to 23 %", "%", metric::loss, "large", "kiln", "crlog", "memory"},
    {"11", "small: Kiln's processor power over native's", "1.2 %", "%", metric::gain, "small", "kiln", "native", "processor"},
    {"11", "large: Kiln's processor power over native's", "1.2 %", "%", metric::gain, "large", "kiln", "native", "processor"},
    {"11", "small: Kiln's memory power over native's", "5 %", "%", metric::gain, "small", "kiln", "native", "memory"},
    {"11", "large: Kiln's memory power over native's", "5 %", "%", metric::gain, "large", "kiln", "native", "memory"},

    {"overflow", "one thread, up to 32 MB", "none", "%", metric::value, "share", "1", "", "32 MiB"},
    {"overflow", "several threads, 32 MB in all", "below 0.1 %", "%", metric::value, "share", "16", "", "32 MiB"},
    {"overflow", "several threads, 128 MB in all", "100 %", "%", metric::value, "share", "16", "", "128 MiB"},
};

}  // namespace stele::bench::stated
