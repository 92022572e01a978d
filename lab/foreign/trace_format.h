/* The recording of a program that maps a pool file: what recorder/stele_main.c writes and trace.cc
   reads.

   A file is a sequence of events, each a head and `length` bytes. It begins with `foreign_start`,
   whose bytes are the pool's path, and the pool's content at that moment. Numbers are
   little-endian. A reader refuses a file that ends within an event; one without `foreign_end` was
   cut off. Plain C: the recorder is no C++. */
#ifndef STELE_LAB_FOREIGN_TRACE_FORMAT_H
#define STELE_LAB_FOREIGN_TRACE_FORMAT_H

enum foreign_event_kind {
  foreign_start = 1,     /* offset: the file's size; bytes: its path */
  foreign_content,       /* bytes that are not all zero, durable from the start */
  foreign_store,         /* bytes at offset */
  foreign_stream,        /* non-temporal store of bytes at offset */
  foreign_flush,         /* clwb or clflushopt of the line at offset */
  foreign_ordered_flush, /* clflush of the line at offset, ordered with all stores */
  foreign_fence,         /* sfence, mfence, or a locked instruction */
  foreign_sync,          /* msync or fsync; offset, and the bytes are an 8-byte size */
  foreign_output,        /* bytes that the program wrote to its standard output */
  foreign_site,          /* site: a number; bytes: the stack that it stands for, a frame a line */
  foreign_end            /* the program ended */
};

#define FOREIGN_MAGIC 0x31465453u /* "STF1" */

struct foreign_event {
  unsigned magic;
  unsigned short kind;
  unsigned short thread;
  unsigned site; /* where in the program; 0: not known */
  unsigned length;
  unsigned long long offset;
};

#endif
