// The configuration of a simulated machine. Every time, size and energy has its unit in its name.
//
// Machine files use the same names as keys (docs/format/machine.md). sim/config_keys.cc has the
// bounds of each value and does not compile while a field of this file is missing there. The
// defaults describe no particular machine; the presets in configs/ carry the tables of
// publications.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stele::sim {

struct core_config {
  unsigned count = 8, threads_per_core = 2;
  double clock_ghz = 2.5;
  unsigned issue_width = 4;            // instructions per cycle
  unsigned window_instructions = 128;  // issued and not yet retired
  unsigned outstanding_misses = 10;    // of a hardware thread: loads waiting for a line
  // of a hardware thread: retired stores that wait for their line
  unsigned store_buffer_entries = 36;
};

struct cache_config {
  std::uint64_t size_bytes = 0;  // of one cache
  unsigned ways = 8;
  std::string replacement = "lru";  // lru, plru, bip, random
  double read_latency_ns = 1, write_latency_ns = 1;
  unsigned banks = 1;  // each serves one access at a time (shared caches)
  unsigned request_queue_entries = 16;
  // Kiln's FIFO of lines written by transactions in flight
  unsigned persistence_queue_entries = 16;
  bool nonvolatile = false;
  double read_energy_nj = 0, write_energy_nj = 0;  // for one access
};

// Of each hardware thread, in its second level (sim/cache/prefetcher.h).
struct prefetch_config {
  std::string kind = "none";  // none, next-line, stride
  unsigned degree = 1;        // lines read at a time
  unsigned distance = 1;      // lines, or strides, from the access to the first of them
  unsigned entries = 64;      // of the table of strides
};

// Translation buffers of each core, and its walks of page tables (sim/core/tlb.h).
struct tlb_config {
  unsigned l1_entries = 0;  // 0: addresses are translated at no cost
  unsigned l1_ways = 4;
  unsigned l2_entries = 0;  // 0: no second level
  unsigned l2_ways = 8;
  double l2_latency_ns = 0;  // of a hit in the second level
  std::uint64_t page_bytes = 4096;
  unsigned walk_levels = 4;  // loads of a walk
};

struct crossbar_config {
  double latency_ns = 2;     // one way
  double bytes_per_ns = 32;  // of each port
};

// After command `preceding` at a node of `level`, command `following` at this node waits for the
// latency.
struct timing_rule {
  std::string level;                 // channel, rank, other_ranks, bank_group, bank
  std::string preceding, following;  // activate, precharge, read, write, refresh, any
  double latency_ns = 0;
  unsigned window = 1;  // counts from the oldest of this many preceding commands (tFAW: 4)
};

struct retention_row {
  double retention_s = 0, speedup = 1;  // of a write
};

struct memory_config {
  std::string technology = "dram";                 // dram, stt-mram, pcm
  unsigned controllers = 1, channels = 1;          // channels of each controller
  unsigned ranks = 1, bank_groups = 1, banks = 8;  // bank_groups of a rank, banks of a group
  std::uint64_t row_bytes = 8192;
  std::uint64_t capacity_bytes = std::uint64_t{2} << 30;  // of the whole memory
  // address bits, most significant first (sim/controller/mapping.h)
  std::string mapping = "row-rank-bank-column-channel";
  bool bank_hash = false;  // the bank depends on the row too
  // fr-fcfs, fcfs, strict, rule1, rule2, rules, ideal; wrong on purpose: bare, commit_first
  std::string scheduler = "fr-fcfs";
  bool guarded_rules = true;  // rules 1 and 2 with the guards of sim/controller/barriers.cc
  unsigned read_queue_entries = 64, write_queue_entries = 64;  // for each channel
  // writes queued for a bank; 0: limited by the channel's queue only
  unsigned bank_queue_entries = 0;
  double write_drain_from = 0.8, write_drain_to = 0.3;  // shares of the write queue
  unsigned starvation_limit = 64;                       // row hits that may pass an older request
  // A request that has waited so long comes before all younger ones, of either kind; 0: none does.
  double age_limit_ns = 1000;
  bool open_page = true;
  bool staggered_refresh = false;  // ranks are due one after another, not at the same time
  // A cycle of the controller. The memory's times are whole cycles: rounded up, refresh intervals
  // down. 0: times as they are given.
  double clock_ns = 0;
  double read_latency_ns = 0;   // from the column command to the last byte at the controller
  double write_latency_ns = 0;  // from the column command to the last byte in the row buffer
  double write_pulse_ns = 0;    // from then until the cells hold the data
  // A row goes to the cells when it is closed, if it was written. Otherwise each write does.
  bool write_back_rows = false;
  // all-bank: of a rank; same-bank: of the banks of one number in all its bank groups, in turn
  std::string refresh = "all-bank";
  double refresh_interval_ns = 0, refresh_time_ns = 0;  // of a rank's refreshes; 0: no refresh
  std::vector<timing_rule> timing;
  // pcm: a write takes iterations * iteration_ns, divided by the speed-up of the retention that its
  // data needs.
  double iteration_ns = 250, iterations = 5.7;
  std::vector<retention_row> retention;
  double data_retention_s = 1e7, log_retention_s = 1e7;
  std::string truncation_retention = "log";  // log, data: which of the two a truncation gets
  double endurance_writes = 0;               // until a cell has worn out; 0: wear is not counted
  double row_buffer_read_pj_per_bit = 0, row_buffer_write_pj_per_bit = 0, array_read_pj_per_bit = 0,
         array_write_pj_per_bit = 0;
  // Currents of a device of DRAM, as JEDEC's data sheets have them (energy/memory_energy.h).
  double vdd_v = 0;
  unsigned devices = 8;  // of a rank
  double idd0_ma = 0, idd2n_ma = 0, idd3n_ma = 0, idd4r_ma = 0, idd4w_ma = 0, idd5b_ma = 0;
  bool idd3n_all_banks = false;  // idd3n is drawn with all rows open, with fewer in proportion less
  // Behind CXL.mem (sim/controller/cxl_link.h).
  unsigned cxl_flit_bytes = 0;      // 68 or 256; 0: a local memory
  double cxl_bytes_per_ns = 0;      // of each direction
  double cxl_latency_ns = 0;        // one way, besides the time of flits
  unsigned cxl_queue_entries = 64;  // requests that the device takes: credits
  bool cxl_gpf = false;             // a write is persistent when the device has it
};

struct design_config {
  std::string name = "native";    // native, rlog, ulog, crlog, culog, kiln
  std::string order = "strong";   // strong, relaxed: the order of commits (kiln)
  std::string isolation = "htm";  // htm, mutex, none
  unsigned htm_retries = 8;       // aborts before the lock is taken
  unsigned transaction_ids = 256;
  // kiln: a thread that has the lock keeps it until its transaction is durable; if false, until the
  // transaction's last instruction
  bool lock_until_durable = false;
  double overflow_at = 0.8;             // share of the request queue
  double overflow_interrupt_ns = 2000;  // the cost of taking the fall-back path once
  // logs: a fence stops the thread until the writes before it are durable; if false, fences only
  // order, at no cost
  bool fences_wait = true;
  // a fence that is a persist barrier stops the thread too, until its writes are persistent
  bool barriers_wait = false;
  std::uint64_t log_bytes = std::uint64_t{4} << 20;  // for each thread; a full log is truncated
  bool log_lines_fetched = false;  // a log line is read from memory before its first store
};

struct machine_config {
  std::string name, source;          // the machine, and the publication whose tables it carries
  std::vector<std::string> plugins;  // shared objects with more schedulers, devices, designs
  core_config cores;
  cache_config l1{.size_bytes = std::uint64_t{32} << 10};
  cache_config l2{
      .size_bytes = std::uint64_t{256} << 10, .read_latency_ns = 4, .write_latency_ns = 4};
  cache_config l3{.size_bytes = std::uint64_t{8} << 20,
                  .ways = 16,
                  .read_latency_ns = 10,
                  .write_latency_ns = 10,
                  .banks = 8,
                  .persistence_queue_entries = 128};
  prefetch_config prefetch;
  tlb_config tlb;
  crossbar_config crossbar;
  memory_config nonvolatile_memory, volatile_memory;
  design_config design;
  double processor_dynamic_peak_w = 0;
};

}  // namespace stele::sim
