/* Which system calls concern the pool file, and what is recorded of them. */
#ifndef STELE_LAB_FOREIGN_SYSCALLS_H
#define STELE_LAB_FOREIGN_SYSCALLS_H

#include "pub_tool_basics.h"

extern const HChar* pool_path; /* NULL: the first file that is mapped shared and writable */

void before_syscall(ThreadId thread, UInt number, UWord* arguments, UInt count);
void after_syscall(ThreadId thread, UInt number, UWord* arguments, UInt count, SysRes result);

#endif
