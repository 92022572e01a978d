/* Writes events; ../trace_format.h. Nothing is written before begin_recording, nor in a child
 * process. */
#ifndef STELE_LAB_FOREIGN_RECORDING_H
#define STELE_LAB_FOREIGN_RECORDING_H

#include "pub_tool_basics.h"

void begin_recording(const HChar* path);
void record(UShort kind, ULong offset, const void* bytes, UInt length);
/* What is mapped of [at, at + size), as it is in memory now. */
void record_memory(UShort kind, Addr at, SizeT size);
void record_fence(void);
void write_recording(void); /* what is buffered */
void end_recording(void);
void forget_recording(ThreadId thread);

#endif
