/* A valgrind tool that records what a program does to a pool file which it has mapped: stores with
   their values, flushes, fences, syncs, and what it prints; ../trace_format.h has the format.

   A value is read from memory just after the store: valgrind runs one thread at a time. The file's
   content at the first mapping is recorded and taken as durable. Stores to private mappings, and by
   child processes, are not recorded. */
#include "../trace_format.h"
#include "mappings.h"
#include "recording.h"
#include "syscalls.h"
#include "vex_wrappers.h"

#include "libvex_guest_amd64.h"
#include "libvex_ir.h"
#include "pub_tool_basics.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"

static const HChar *output_path = NULL, *best_flush_name = "clwb";

static VG_REGPARM(2) void on_store(Addr at, SizeT size) {
  record_memory(foreign_store, at, size);
}
static VG_REGPARM(2) void on_stream(Addr at, SizeT size) {
  record_memory(foreign_stream, at, size);
}
static VG_REGPARM(2) void on_flush(Addr line, UWord kind) {
  mapped_part part;
  if (find_mapped(line, 1, &part)) record((UShort)kind, part.offset, NULL, 0);
}
static VG_REGPARM(0) void on_fence(void) {
  record_fence();
}

/* Of the call: it reads the registers that a stack is unwound from. */
static void reads_stack(IRDirty* call, const VexGuestLayout* layout) {
  const Int offsets[3] = {layout->offset_SP, layout->offset_IP, layout->offset_FP};
  const Int sizes[3] = {layout->sizeof_SP, layout->sizeof_IP, layout->sizeof_FP};
  call->nFxState = 3;
  VG_(memset)(&call->fxState, 0, sizeof call->fxState);
  for (Int i = 0; i < 3; ++i) {
    call->fxState[i].fx = Ifx_Read;
    call->fxState[i].offset = (UShort)offsets[i];
    call->fxState[i].size = (UShort)sizes[i];
  }
}

static IRExpr* assign(IRSB* out, IRType type, IRExpr* value) {
  const IRTemp t = newIRTemp(out->tyenv, type);
  addStmtToIRSB(out, IRStmt_WrTmp(t, value));
  return IRExpr_RdTmp(t);
}

static void call(IRSB* out, IRDirty* what, IRExpr* guard, const VexGuestLayout* layout) {
  if (guard != NULL) what->guard = guard;
  reads_stack(what, layout);
  addStmtToIRSB(out, IRStmt_Dirty(what));
}

static void add_fence(IRSB* out, const VexGuestLayout* layout) {
  call(out, unsafeIRDirty_0_N(0, "on_fence", VG_(fnptr_to_fnentry)(&on_fence), mkIRExprVec_0()),
       NULL, layout);
}

/* The call is made when the address is near a mapping; on_store finds out whether it is in it. */
static void add_store(IRSB* out, IRExpr* at, SizeT size, IRExpr* guard, Bool streamed,
                      const VexGuestLayout* layout) {
  const ULong reach = size - 1; /* a store that begins before the mapping may end in it */
  IRExpr* const begin =
      assign(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, mkIRExpr_HWord((HWord)&mapped_begin)));
  IRExpr* const length =
      assign(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, mkIRExpr_HWord((HWord)&mapped_size)));
  IRExpr* const last = assign(out, Ity_I64, IRExpr_Binop(Iop_Add64, at, mkIRExpr_HWord(reach)));
  IRExpr* const distance = assign(out, Ity_I64, IRExpr_Binop(Iop_Sub64, last, begin));
  IRExpr* near = assign(out, Ity_I1, IRExpr_Binop(Iop_CmpLT64U, distance, length));
  if (reach != 0) {
    IRExpr* const first = assign(out, Ity_I64, IRExpr_Binop(Iop_Sub64, at, begin));
    IRExpr* const also = assign(out, Ity_I1, IRExpr_Binop(Iop_CmpLT64U, first, length));
    near = assign(out, Ity_I1, IRExpr_Binop(Iop_Or1, near, also));
  }
  if (guard != NULL) near = assign(out, Ity_I1, IRExpr_Binop(Iop_And1, near, guard));
  const HChar* const name = streamed ? "on_stream" : "on_store";
  void* const function = VG_(fnptr_to_fnentry)(streamed ? (void*)&on_stream : (void*)&on_store);
  call(out, unsafeIRDirty_0_N(2, name, function, mkIRExprVec_2(at, mkIRExpr_HWord(size))), near,
       layout);
}

static void add_flush(IRSB* out, instruction_kind kind, const VexGuestLayout* layout) {
  IRExpr* const line =
      assign(out, Ity_I64, IRExpr_Get(offsetof(VexGuestAMD64State, guest_CMSTART), Ity_I64));
  const UWord event = kind == clflush ? foreign_ordered_flush : foreign_flush;
  call(out,
       unsafeIRDirty_0_N(2, "on_flush", VG_(fnptr_to_fnentry)(&on_flush),
                         mkIRExprVec_2(line, mkIRExpr_HWord(event))),
       NULL, layout);
}

static void add_statement(IRSB* out, IRStmt* s, instruction_kind kind,
                          const VexGuestLayout* layout) {
  const Bool streamed = kind == non_temporal;
  if (s->tag == Ist_CAS) add_fence(out, layout); /* a locked instruction: fence, then store */
  addStmtToIRSB(out, s);
  switch (s->tag) {
    case Ist_MBE:
      if (kind != load_fence) add_fence(out, layout);
      break;
    case Ist_Store:
      add_store(out, s->Ist.Store.addr,
                (SizeT)sizeofIRType(typeOfIRExpr(out->tyenv, s->Ist.Store.data)), NULL, streamed,
                layout);
      break;
    case Ist_StoreG: {
      const IRStoreG* const g = s->Ist.StoreG.details;
      add_store(out, g->addr, (SizeT)sizeofIRType(typeOfIRExpr(out->tyenv, g->data)), g->guard,
                streamed, layout);
      break;
    }
    case Ist_CAS: {
      const IRCAS* const c = s->Ist.CAS.details;
      const SizeT size = (SizeT)sizeofIRType(typeOfIRExpr(out->tyenv, c->dataLo));
      add_store(out, c->addr, c->dataHi == NULL ? size : 2 * size, NULL, False, layout);
      break;
    }
    case Ist_Dirty: {
      const IRDirty* const d = s->Ist.Dirty.details;
      if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
        add_store(out, d->mAddr, (SizeT)d->mSize, d->guard, streamed, layout);
      break;
    }
    default:
      break;
  }
}

static IRSB* instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                        const VexGuestExtents* extents, const VexArchInfo* arch_info,
                        IRType guest_word, IRType host_word) {
  (void)closure, (void)extents, (void)arch_info;
  tl_assert(guest_word == Ity_I64 && host_word == Ity_I64);
  IRSB* const out = deepCopyIRSBExceptStmts(in);
  instruction_kind kind = plain;
  for (Int i = 0; i < in->stmts_used; ++i) {
    IRStmt* const s = in->stmts[i];
    if (s == NULL || s->tag == Ist_NoOp) continue;
    if (s->tag == Ist_IMark)
      kind = kind_of_instruction((const UChar*)(Addr)(s->Ist.IMark.addr + s->Ist.IMark.delta));
    add_statement(out, s, kind, layout);
  }
  if (in->jumpkind == Ijk_InvalICache && (kind == clflush || kind == clflushopt || kind == clwb))
    add_flush(out, kind, layout);
  return out;
}

static Bool take_option(const HChar* argument) {
  return VG_STR_CLO(argument, "--output", output_path) ||
         VG_STR_CLO(argument, "--pool", pool_path) ||
         VG_STR_CLO(argument, "--flush", best_flush_name);
}

static void print_usage(void) {
  VG_(printf)(
      "    --output=FILE             where the recording is written\n"
      "    --pool=FILE               the mapped file; default: the first one\n"
      "    --flush=clwb|clflushopt|clflush  the best flush that there is\n");
}

static void print_debug_usage(void) {
  VG_(printf)("    (none)\n");
}

static void after_options(void) {
  if (output_path == NULL) {
    VG_(umsg)("stele: --output=FILE is missing\n");
    VG_(exit)(1);
  }
  best_flush = VG_STREQ(best_flush_name, "clflush")      ? clflush
               : VG_STREQ(best_flush_name, "clflushopt") ? clflushopt
                                                         : clwb;
  begin_recording(output_path);
}

static void at_end(Int status) {
  (void)status;
  end_recording();
}

static void after_kernel_write(CorePart part, ThreadId thread, Addr at, SizeT size) {
  (void)part, (void)thread;
  if (size != 0) record_memory(foreign_store, at, size);
}

static void prepare(void) {
  VG_(details_name)("stele");
  VG_(details_version)("1");
  VG_(details_description)("records stores to a pool file");
  VG_(details_copyright_author)("Part of Stele.");
  VG_(details_bug_reports_to)("the makers of Stele");
  VG_(basic_tool_funcs)(after_options, instrument, at_end);
  VG_(needs_command_line_options)(take_option, print_usage, print_debug_usage);
  VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
  VG_(track_post_mem_write)(after_kernel_write);
  VG_(atfork)(NULL, NULL, forget_recording);
}

VG_DETERMINE_INTERFACE_VERSION(prepare)
