// What compiled atomic blocks and this library tell each other: the numbers of the TM ABI.
//
// After Intel's "Transactional Memory ABI" 1.1 as GCC compiles to it (-fgnu-tm); names as there.
// Only what GCC uses or what changes an answer is named.
#pragma once

#include <cstdint>

namespace stele::itm::abi {

// Of the code of a block, told to _ITM_beginTransaction.
inline constexpr std::uint32_t instrumented_code = 0x0001;
inline constexpr std::uint32_t uninstrumented_code = 0x0002;
inline constexpr std::uint32_t has_no_abort = 0x0008;
inline constexpr std::uint32_t does_go_irrevocable = 0x0040;

// What the block is to do next: _ITM_beginTransaction's answer.
inline constexpr std::uint32_t run_instrumented = 0x01;
inline constexpr std::uint32_t run_uninstrumented = 0x02;
inline constexpr std::uint32_t save_live_variables = 0x04;
inline constexpr std::uint32_t restore_live_variables = 0x08;
inline constexpr std::uint32_t abort_block = 0x10;

// Why _ITM_abortTransaction is called.
inline constexpr std::uint32_t user_abort = 1;
inline constexpr std::uint32_t exception_block_abort = 8;
inline constexpr std::uint32_t outer_abort = 16;

// _ITM_inTransaction's answers.
inline constexpr int outside_transaction = 0;
inline constexpr int in_retryable_transaction = 1;
inline constexpr int in_irrevocable_transaction = 2;

inline constexpr std::uint32_t no_transaction_id = 1;
inline constexpr int version = 90;  // what GCC's own library calls itself

}  // namespace stele::itm::abi
