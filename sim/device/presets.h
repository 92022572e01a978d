// Devices as publications and standards give them, as configurations.
#pragma once

#include <sim/config.h>

namespace stele::sim {

// DDR4 (JEDEC JESD79-4), 8 Gb chips, x8, one rank of 4 groups of 4 banks, a channel of 8 bytes; 17-17-17 and 15-15-15.
memory_config ddr4_2400();
memory_config ddr4_2133();

// Zhao, Li, Yoon, Xie, Jouppi, "Kiln: Closing the Performance Gap Between Systems With and Without Persistence Support",
// 2013, table 2: row hit 25 ns, row conflict 65 ns (read) and 76 ns (write), energy a bit. The paper does not say how the
// times divide: here 20 ns close a row, 20 ns open one, 25 ns move the line, and 11 ns more put it in the cells; nor how
// wide the channel is: here a line takes it for 5 ns (12.8 GB/s).
memory_config stt_mram_kiln();

// Sun, Lu, Shu, "DP2", 2015, sections 2.2 and 4.2.1: 4 ranks of 8 banks, 32 writes queued a bank, 250 ns an iteration,
// 5.7 iterations a 64-byte row, retention's speed-ups. The paper models writes only, and no bus for them; reads here take
// the 55 ns of a row's activation and the 12.5 ns of its column that Lee, Ipek, Mutlu, Burger, "Architecting Phase Change
// Memory as a Scalable DRAM Alternative", 2009, use, and the channel for 5 ns. A row is a line, closed after each access.
// Lines go to banks in turn, so a log lies spread over all of them.
memory_config pcm_dp2();

}  // namespace stele::sim
