// The interface between compiled atomic blocks and this library: the constants of the TM ABI.
//
// After Intel's "Transactional Memory ABI" 1.1 as GCC compiles to it (-fgnu-tm), with its names.
// Only constants that GCC uses, or that change a result, are listed.
#pragma once

#include <cstdint>

namespace stele::itm::abi {

// Properties of a block's code, an argument of _ITM_beginTransaction.
inline constexpr std::uint32_t instrumented_code = 0x0001;
inline constexpr std::uint32_t has_no_abort = 0x0008;
inline constexpr std::uint32_t does_go_irrevocable = 0x0040;

// What the block does next: the result of _ITM_beginTransaction.
inline constexpr std::uint32_t run_instrumented = 0x01;
inline constexpr std::uint32_t run_uninstrumented = 0x02;
inline constexpr std::uint32_t save_live_variables = 0x04;
inline constexpr std::uint32_t restore_live_variables = 0x08;
inline constexpr std::uint32_t abort_block = 0x10;

// The reason for a call of _ITM_abortTransaction.
inline constexpr std::uint32_t user_abort = 1;
inline constexpr std::uint32_t exception_block_abort = 8;
inline constexpr std::uint32_t outer_abort = 16;

// Results of _ITM_inTransaction.
inline constexpr int outside_transaction = 0;
inline constexpr int in_retryable_transaction = 1;
inline constexpr int in_irrevocable_transaction = 2;

inline constexpr std::uint32_t no_transaction_id = 1;
inline constexpr int version = 90;  // the version of GCC's own library

}  // namespace stele::itm::abi
