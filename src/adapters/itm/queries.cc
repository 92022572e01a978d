// Functions of the TM ABI besides loads and stores: versions, ids, user actions.
#include <adapters/itm/abi.h>
#include <adapters/itm/block.h>

#include <cstdio>
#include <cstdlib>

using stele::itm::block;
namespace abi = stele::itm::abi;

namespace {

block* running() noexcept {
  block* const b = block::current();
  return b != nullptr && b->running() ? b : nullptr;
}

}  // namespace

extern "C" {

int _ITM_versionCompatible(int version) {
  return version == abi::version;
}
const char* _ITM_libraryVersion() {
  return "libstele_itm, TM ABI 0.90";
}

std::uint32_t _ITM_getTransactionId() {
  return running() != nullptr ? running()->id() : abi::no_transaction_id;
}
int _ITM_getThreadnum() {
  return static_cast<int>(block::of_this_thread().thread_number());
}
int _ITM_inTransaction() {
  const block* const b = running();
  if (b == nullptr) return abi::outside_transaction;
  return b->irrevocable() ? abi::in_irrevocable_transaction : abi::in_retryable_transaction;
}

// Actions belong to the outermost block. Commit actions run in order after its commit. Undo actions
// run in reverse order when the code that registered them is rolled back; an undo action must not
// run a block.
void _ITM_addUserCommitAction(void (*run)(void*), std::uint32_t, void* argument) {
  stele::itm::guarded([&] { running()->on_commit(run, argument); });
}
void _ITM_addUserUndoAction(void (*run)(void*), void* argument) {
  stele::itm::guarded([&] { running()->on_undo(run, argument); });
}

// Unused references need no action here.
void _ITM_dropReferences(void*, std::size_t) {}

[[noreturn]] void _ITM_error(const void*, int code) {
  std::fprintf(stderr, "stele: the compiler's code reports an error of an atomic block (%d)\n",
               code);
  std::abort();
}
}
