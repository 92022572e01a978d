/* The pool is known by device and inode, from its first mapping on; see syscalls.h. */
#include "syscalls.h"

#include "../trace_format.h"
#include "mappings.h"
#include "recording.h"

#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

const HChar* pool_path = NULL;

enum { page_size = 4096, path_size = 4096, flag_sync = 4 /* MS_SYNC */ };
static Bool is_known = False;
static ULong pool_device = 0, pool_inode = 0;

static Bool is_pool(Int fd) {
  struct vg_stat s;
  return is_known && VG_(fstat)(fd, &s) == 0 && s.dev == pool_device && s.ino == pool_inode;
}

static void record_content(const HChar* path) {
  static UChar page[page_size];
  static const UChar zeros[page_size];
  const Int fd = VG_(fd_open)(path, VKI_O_RDONLY, 0);
  if (fd < 0) return;
  ULong offset = 0;
  for (Int n; (n = VG_(read)(fd, page, page_size)) > 0; offset += (ULong)n)
    if (VG_(memcmp)(page, zeros, (SizeT)n) != 0) record(foreign_content, offset, page, (UInt)n);
  VG_(close)(fd);
}

/* Of a file that is mapped shared: whether it is the pool, found now or before. */
static Bool find_pool(Int fd, Bool writable) {
  struct vg_stat s, named;
  if (is_known) return is_pool(fd);
  if (!writable || VG_(fstat)(fd, &s) != 0 || !VKI_S_ISREG(s.mode)) return False;
  if (pool_path != NULL) {
    const SysRes r = VG_(stat)(pool_path, &named);
    if (sr_isError(r) || named.dev != s.dev || named.ino != s.ino) return False;
  }
  HChar link[64], path[path_size];
  VG_(sprintf)(link, "/proc/self/fd/%d", fd);
  const SSizeT length = VG_(readlink)(link, path, path_size - 1);
  if (length <= 0) return False;
  path[length] = 0;
  is_known = True;
  pool_device = s.dev, pool_inode = s.ino;
  record(foreign_start, (ULong)s.size, path, (UInt)length);
  record_content(link);
  return True;
}

static void after_map(UWord* arguments, Addr at) {
  const Int flags = (Int)arguments[3], fd = (Int)arguments[4];
  remove_mapping(at, arguments[1]);
  const Bool shared = (flags & (VKI_MAP_SHARED | VKI_MAP_PRIVATE)) != VKI_MAP_PRIVATE;
  if (shared && (flags & VKI_MAP_ANONYMOUS) == 0 &&
      find_pool(fd, (arguments[2] & VKI_PROT_WRITE) != 0))
    add_mapping(at, arguments[1], arguments[5]);
}

static void after_remap(UWord* arguments, Addr at) {
  mapped_part part;
  const Bool was_pool = find_mapped(arguments[0], 1, &part);
  remove_mapping(arguments[0], arguments[1]);
  remove_mapping(at, arguments[2]);
  if (was_pool) add_mapping(at, arguments[2], part.offset);
}

static void record_sync(ULong offset, ULong size) {
  record(foreign_sync, offset, &size, sizeof size);
}

/* `bytes` went to the file at `offset`, or to standard output. */
static void after_write(Int fd, const void* bytes, SizeT size, Long offset) {
  if (fd == 1 && !is_pool(fd)) {
    record(foreign_output, 0, bytes, (UInt)size);
  } else if (is_pool(fd)) {
    record(foreign_store, (ULong)offset, bytes, (UInt)size);
  }
}

static void after_writev(Int fd, const struct vki_iovec* parts, SizeT count, SizeT written,
                         Long offset) {
  for (SizeT i = 0; i < count && written > 0; ++i) {
    const SizeT size = parts[i].iov_len < written ? parts[i].iov_len : written;
    after_write(fd, parts[i].iov_base, size, offset);
    written -= size;
    offset += (Long)size;
  }
}

/* Where a write of `size` bytes that has just ended began. */
static Long begin_of_write(Int fd, SizeT size) {
  return is_pool(fd) ? VG_(lseek)(fd, 0, VKI_SEEK_CUR) - (Long)size : 0;
}

/* The program is about to become another one, which is not recorded. */
void before_syscall(ThreadId thread, UInt number, UWord* arguments, UInt count) {
  (void)thread, (void)arguments, (void)count;
  if (number == __NR_execve) write_recording();
}

void after_syscall(ThreadId thread, UInt number, UWord* arguments, UInt count, SysRes result) {
  (void)thread, (void)count;
  if (sr_isError(result)) return;
  const UWord value = sr_Res(result);
  const Int fd = (Int)arguments[0];
  mapped_part part;
  switch (number) {
    case __NR_mmap:
      after_map(arguments, value);
      break;
    case __NR_munmap:
      remove_mapping(arguments[0], arguments[1]);
      break;
    case __NR_mremap:
      after_remap(arguments, value);
      break;
    case __NR_msync:
      if (find_mapped(arguments[0], arguments[1], &part) && (arguments[2] & flag_sync) != 0)
        record_sync(part.offset, part.size);
      break;
    case __NR_fsync:
    case __NR_fdatasync:
      if (is_pool(fd)) record_sync(0, ~0ull);
      break;
    case __NR_write:
      after_write(fd, (const void*)arguments[1], value, begin_of_write(fd, value));
      break;
    case __NR_pwrite64:
      after_write(fd, (const void*)arguments[1], value, (Long)arguments[3]);
      break;
    case __NR_writev:
      after_writev(fd, (const struct vki_iovec*)arguments[1], arguments[2], value,
                   begin_of_write(fd, value));
      break;
    case __NR_pwritev:
      after_writev(fd, (const struct vki_iovec*)arguments[1], arguments[2], value,
                   (Long)arguments[3]);
      break;
    default:
      break;
  }
}
