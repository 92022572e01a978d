/* Makes valgrind decode clflushopt and clwb, and name them among its processor's features.

   The linker puts these functions in place of libvex's (--wrap). The decoder gets a clflushopt or a
   clwb as the clflush that it resembles: prefix 66 becomes 3E, which has no meaning, and the
   operation 7. stele_main.c reads from the program's own bytes which flush it was. libvex widens a
   flushed line to 256 bytes; its address is rounded to 64 here. */
#include "vex_wrappers.h"

#include "libvex.h"
#include "libvex_guest_amd64.h"
#include "pub_tool_libcassert.h"

enum { line_size = 64, room = 48 };

instruction_kind best_flush = clwb;

/* libvex's DisResult, which passes through: sixteen bytes in two registers. */
typedef struct {
  ULong low, high;
} decoded;

#define DECODER_PARAMETERS                                                                     \
  IRSB *block, const UChar *bytes, Long delta, Addr at, VexArch arch, const VexArchInfo *info, \
      const VexAbiInfo *abi, VexEndness endness, Bool tells_unknown
decoded __real_disInstr_AMD64(DECODER_PARAMETERS);
decoded __wrap_disInstr_AMD64(DECODER_PARAMETERS);

/* The flush at `bytes` as a clflush of the same length. */
static void copy_as_clflush(UChar* copy, const UChar* bytes) {
  const UInt length = length_of_flush(bytes);
  UInt i = 0;
  for (; bytes[i] != 0x0F; ++i) copy[i] = bytes[i] == 0x66 ? 0x3E : bytes[i];
  for (; i < length; ++i) copy[i] = bytes[i];
  copy[mod_rm_of_flush(bytes)] |= 7 << 3;
}

/* The flush's address is in the statement that puts it into the guest's CMSTART. */
static void narrow_to_line(IRSB* block) {
  for (Int i = block->stmts_used - 1; i >= 0; --i) {
    const IRStmt* const s = block->stmts[i];
    if (s->tag != Ist_Put || s->Ist.Put.offset != offsetof(VexGuestAMD64State, guest_CMSTART))
      continue;
    IRExpr* const rounded = s->Ist.Put.data;
    tl_assert(rounded->tag == Iex_Binop && rounded->Iex.Binop.op == Iop_And64);
    rounded->Iex.Binop.arg2 = IRExpr_Const(IRConst_U64(~(ULong)(line_size - 1)));
    return;
  }
}

decoded __wrap_disInstr_AMD64(DECODER_PARAMETERS) {
  const instruction_kind kind = kind_of_instruction(bytes + delta);
  if (kind != clflush && kind != clflushopt && kind != clwb)
    return __real_disInstr_AMD64(block, bytes, delta, at, arch, info, abi, endness, tells_unknown);
  UChar copy[room] = {0};
  copy_as_clflush(copy, bytes + delta);
  const decoded result = __real_disInstr_AMD64(block, copy - delta, delta, at, arch, info, abi,
                                               endness, tells_unknown);
  narrow_to_line(block);
  return result;
}

/* CPUID, leaf 7: libpmem and others ask it which flush there is. */
static ULong features(UInt leaf, UInt part) {
  if (leaf != 7 || part != 0 || best_flush == clflush) return 0;
  return 1u << 23 | (best_flush == clwb ? 1u << 24 : 0);
}

void __real_amd64g_dirtyhelper_CPUID_avx2(VexGuestAMD64State*, ULong, ULong, ULong);
void __wrap_amd64g_dirtyhelper_CPUID_avx2(VexGuestAMD64State*, ULong, ULong, ULong);
void __wrap_amd64g_dirtyhelper_CPUID_avx2(VexGuestAMD64State* guest, ULong f16c, ULong rdrand,
                                          ULong rdseed) {
  const UInt leaf = (UInt)guest->guest_RAX, part = (UInt)guest->guest_RCX;
  __real_amd64g_dirtyhelper_CPUID_avx2(guest, f16c, rdrand, rdseed);
  guest->guest_RBX |= features(leaf, part);
}

#define WRAP_FEATURES(NAME)                                                  \
  void __real_amd64g_dirtyhelper_CPUID_##NAME(VexGuestAMD64State*);          \
  void __wrap_amd64g_dirtyhelper_CPUID_##NAME(VexGuestAMD64State*);          \
  void __wrap_amd64g_dirtyhelper_CPUID_##NAME(VexGuestAMD64State* guest) {   \
    const UInt leaf = (UInt)guest->guest_RAX, part = (UInt)guest->guest_RCX; \
    __real_amd64g_dirtyhelper_CPUID_##NAME(guest);                           \
    guest->guest_RBX |= features(leaf, part);                                \
  }
WRAP_FEATURES(avx_and_cx16)
WRAP_FEATURES(sse42_and_cx16)
