/* What the intermediate code of valgrind does not say of an instruction: whether a store is
   non-temporal, which flush it is, whether a fence orders stores. Read from the instruction's
   bytes. */
#ifndef STELE_LAB_FOREIGN_INSTRUCTION_H
#define STELE_LAB_FOREIGN_INSTRUCTION_H

#include "pub_tool_basics.h"

typedef enum { plain, non_temporal, load_fence, clflush, clflushopt, clwb } instruction_kind;

/* Reads no byte behind the instruction. */
instruction_kind kind_of_instruction(const UChar* bytes);

/* Of a flush: its length in bytes, and which of them is ModRM. */
UInt length_of_flush(const UChar* bytes);
UInt mod_rm_of_flush(const UChar* bytes);

#endif
