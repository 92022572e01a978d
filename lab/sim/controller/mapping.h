// Maps addresses to the channel, bank and row that hold a line.
//
// A mapping names the fields of an address from the most to the least significant, joined by '-':
// row, rank, bank_group, bank, column, channel. Without bank_group, bank stands for both, with the
// group in its lowest bits. channel counts the channels of all controllers. Every size is a power
// of two, so each field is a run of bits. The bits within a line are below the last field.
// With bank_hash the row's bits, in groups as wide as a channel's bank number, are added to that
// number without carry: lines that are a power of two apart lie in different banks.
// Nonvolatile memory begins at address 0 and volatile memory at volatile_memory_at, a multiple of
// any capacity. Addresses beyond the capacity wrap around: two lines may share a device place, but
// stay separate lines.
#pragma once

#include <sim/config.h>
#include <stele/error.h>

#include <cstdint>

namespace stele::sim {

struct device_address {
  unsigned channel = 0;
  unsigned bank = 0;  // of the channel: (rank * groups + group) * banks + bank
  std::uint32_t row = 0;
};

class mapping {
 public:
  [[nodiscard]] static result<mapping> parse(const memory_config& c);

  device_address locate(std::uint64_t address) const noexcept {
    const auto bank = (rank_.of(address) << group_and_bank_bits_) |
                      (group_.of(address) << bank_.bits) | bank_.of(address);
    const auto row = static_cast<std::uint32_t>(row_.of(address));
    return {static_cast<unsigned>(channel_.of(address)), static_cast<unsigned>(bank) ^ hash(row),
            row};
  }

  // The address of the line `column` at a place: the inverse of locate().
  std::uint64_t address_of(const device_address& p, unsigned column) const noexcept {
    const std::uint64_t bank = p.bank ^ hash(p.row);
    return row_.put(p.row) | column_.put(column) | channel_.put(p.channel) | bank_.put(bank) |
           group_.put(bank >> bank_.bits) | rank_.put(bank >> group_and_bank_bits_);
  }

  // The number of the line in its row.
  unsigned column_of(std::uint64_t address) const noexcept {
    return static_cast<unsigned>(column_.of(address));
  }

 private:
  struct field {
    unsigned shift = 0, bits = 0;
    std::uint64_t mask() const noexcept { return (std::uint64_t{1} << bits) - 1; }
    std::uint64_t of(std::uint64_t address) const noexcept { return address >> shift & mask(); }
    std::uint64_t put(std::uint64_t value) const noexcept { return (value & mask()) << shift; }
  };

  [[nodiscard]] result<void> lay_out(const memory_config& c);
  // What is added to the bank number of a line in this row.
  unsigned hash(std::uint32_t row) const noexcept {
    if (hash_bits_ == 0) return 0;
    unsigned sum = 0;
    for (; row != 0; row >>= hash_bits_) sum ^= row;
    return sum & ((1u << hash_bits_) - 1);
  }

  field row_, rank_, group_, bank_, column_, channel_;
  unsigned group_and_bank_bits_ = 0;
  unsigned hash_bits_ = 0;  // 0: no hash
};

}  // namespace stele::sim
