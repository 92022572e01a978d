/* A buffer, the file behind it, and which stacks the file has already; see recording.h. */
#include "recording.h"

#include "../trace_format.h"
#include "mappings.h"

#include "pub_tool_debuginfo.h"
#include "pub_tool_execontext.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"

enum {
  buffer_size = 1 << 20,
  most_frames = 8,
  text_size = 2048,
  high_descriptor = 1000,
  most_threads = 4096
};
static HChar buffer[buffer_size];
static UInt used = 0;
static Int file = -1;
static UChar unfenced[most_threads]; /* a flush or a stream since the last fence */

/* By a stack's number: whether its text is written. */
static UChar* known_sites = NULL;
static UInt known_size = 0;

/* A high number, where few programs look. */
void begin_recording(const HChar* path) {
  const Int low = VG_(fd_open)(path, VKI_O_CREAT | VKI_O_WRONLY | VKI_O_TRUNC, 0600);
  if (low < 0) {
    VG_(umsg)("stele: %s cannot be written\n", path);
    VG_(exit)(1);
  }
  const SysRes high = VG_(dup2)(low, high_descriptor);
  file = sr_isError(high) ? low : high_descriptor;
  if (file != low) VG_(close)(low);
}

void write_recording(void) {
  for (UInt done = 0; file >= 0 && done < used;) {
    const Int n = VG_(write)(file, buffer + done, (Int)(used - done));
    if (n <= 0) {
      VG_(umsg)("stele: the recording cannot be written; is its disk full?\n");
      VG_(exit)(1);
    }
    done += (UInt)n;
  }
  used = 0;
}

static void append(const void* bytes, UInt length) {
  const HChar* from = bytes;
  while (length > 0) {
    if (used == buffer_size) write_recording();
    const UInt take = length < buffer_size - used ? length : buffer_size - used;
    VG_(memcpy)(buffer + used, from, take);
    used += take, from += take, length -= take;
  }
}

static void append_event(UShort kind, UInt site, ULong offset, const void* bytes, UInt length) {
  const struct foreign_event head = {FOREIGN_MAGIC, kind,   (UShort)VG_(get_running_tid)(),
                                     site,          length, offset};
  append(&head, sizeof head);
  append(bytes, length);
}

static Bool is_new(UInt site) {
  if (site >= known_size) {
    const UInt larger = site * 2;
    known_sites = VG_(realloc)("stele.sites", known_sites, larger);
    VG_(memset)(known_sites + known_size, 0, larger - known_size);
    known_size = larger;
  }
  const Bool found = known_sites[site] == 0;
  known_sites[site] = 1;
  return found;
}

/* Returns how many bytes it took; none where there is no room. */
static UInt append_text(HChar* to, UInt room, const HChar* text, HChar end) {
  const UInt size = (UInt)VG_(strlen)(text);
  if (size + 1 > room) return 0;
  VG_(memcpy)(to, text, size);
  to[size] = end;
  return size + 1;
}

/* The number of the running thread's stack, whose text is written before the first event with it.
 */
static UInt site_here(void) {
  ExeContext* const stack = VG_(record_ExeContext)(VG_(get_running_tid)(), 0);
  const UInt site = VG_(get_ECU_from_ExeContext)(stack);
  if (!is_new(site)) return site;
  HChar text[text_size];
  UInt length = 0;
  Addr frames[most_frames];
  const UInt count =
      VG_(get_StackTrace)(VG_(get_running_tid)(), frames, most_frames, NULL, NULL, 0);
  for (UInt i = 0; i < count; ++i) {
    const DiEpoch epoch = VG_(get_ExeContext_epoch)(stack);
    const Addr at = frames[i] - (i == 0 ? 0 : 1);
    const HChar* object;
    if (!VG_(get_objname)(epoch, at, &object)) break; /* below the program's first frame */
    length += append_text(text + length, text_size - length, object, '\t');
    length +=
        append_text(text + length, text_size - length, VG_(describe_IP)(epoch, at, NULL), '\n');
  }
  append_event(foreign_site, site, 0, text, length);
  return site;
}

void record(UShort kind, ULong offset, const void* bytes, UInt length) {
  if (file < 0) return;
  const Bool has_site = kind != foreign_start && kind != foreign_content && kind != foreign_end &&
                        VG_(get_running_tid)() != VG_INVALID_THREADID;
  const UInt site = has_site ? site_here() : 0;
  if ((kind == foreign_flush || kind == foreign_stream) && VG_(get_running_tid)() < most_threads)
    unfenced[VG_(get_running_tid)()] = 1;
  append_event(kind, site, offset, bytes, length);
}

/* A fence orders only what the thread has flushed or streamed. */
void record_fence(void) {
  const ThreadId thread = VG_(get_running_tid)();
  const Bool orders = thread >= most_threads || unfenced[thread] != 0;
  if (!orders) return;
  if (thread < most_threads) unfenced[thread] = 0;
  record(foreign_fence, 0, NULL, 0);
}

void record_memory(UShort kind, Addr at, SizeT size) {
  mapped_part part;
  const Addr end = at + size;
  while (at < end && find_mapped(at, end - at, &part)) {
    record(kind, part.offset, (const void*)part.begin, (UInt)part.size);
    at = part.begin + part.size;
  }
}

void end_recording(void) {
  record(foreign_end, 0, NULL, 0);
  write_recording();
}

void forget_recording(ThreadId thread) {
  (void)thread;
  used = 0;
  file = -1;
}
