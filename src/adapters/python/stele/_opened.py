"""What an open pool and an open key-value store have in common."""

import atexit
import re
import weakref
from os import fsencode as _fsencode

from . import _stele
from ._stele import Transaction
from .errors import Error

_open = weakref.WeakSet()
_seconds_at_exit = 2  # that a transaction of a daemon thread has to end in
_units = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def bytes_of(size):
    if size is None:
        return 0
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", size.strip(), re.IGNORECASE)
    if not found:
        raise ValueError(f"{size!r} is no size; write bytes, or a text such as '64M'")
    return int(found[1]) * _units[found[2].upper()]


def options(size, mechanism, media, ordered, max_size, require, verify, timeout, read_only, pickle=False):
    """The arguments of stele.open and stele.KV, for the extension module."""
    return _stele.Options(bytes_of(size), mechanism, media, ordered, bytes_of(max_size), require, verify, timeout, read_only, pickle)


class Opened:
    """Transactions, what survives, figures, and the end. As a context manager it closes itself."""

    def __init__(self, core):
        self._core = core
        _open.add(self)

    def transaction(self, *, ordered=False, timeout=...):
        """A context manager: what happens to it inside is one transaction, durable when it has ended.

        An exception rolls all of it back, and goes on. One in another is a part of it. Other threads' changes wait until it has ended, as
        do their reads of what it has changed. It belongs to the thread and the asyncio task that began it: for others of the thread, the
        pool raises NestedError until it has ended. A thread that ends inside rolls it back.

        Of a pool that is open for reading only it is one state, fixed when it begins. CancelledError: that state is gone, since a process
        has opened the pool for writing meanwhile.

        timeout: seconds to wait until it can begin, then stele.errors.TimeoutError; None: for as long as it takes. Else that of open().
        """
        return Transaction(self._core, ordered, timeout)

    def sync(self):
        """Everything that has been changed before is durable when this returns."""
        self._core.sync()

    def close(self):
        """Everything is durable, and the file is free for others, also after an error. Once closed, a pool stays closed. Waits for other threads' transactions."""
        self._core.close()

    def check(self):
        """Verifies the whole pool: its heap, its checksums, and all values. Raises CorruptError. Time goes with the pool's size."""
        self._core.check()

    def grow(self, size):
        """Lengthens the pool to `size`, bytes or a text such as "1G". Others wait meanwhile. A pool with max_size does so by itself."""
        self._core.grow(bytes_of(size))

    def backup(self, path, progress=None):
        """Writes a copy of the pool, of one state, to `path`, where nothing may be. Others go on meanwhile.

        progress: called with bytes done and bytes in all; if it returns something false, the backup ends with CancelledError. Durable when
        it returns; after an error, or ^C, there is no file.
        """
        self._core.backup(_fsencode(path), progress)

    @property
    def closed(self):
        """Whether it has been closed."""
        return self._core.closed()

    @property
    def read_only(self):
        """Whether it was opened for reading only."""
        return self._core.reads_only()

    @property
    def path(self):
        """The name of the file, as it was opened by."""
        return self._core.path()

    @property
    def durability(self):
        """What an acknowledged change survives: "power", "power, cache included", "process" or "none"."""
        return self._core.durability()

    @property
    def mechanism(self):
        """The name of the persistence mechanism in use."""
        return self._core.mechanism()

    @property
    def space(self):
        """A dict: size_bytes, used_bytes, free_bytes, largest_free, log_bytes, fragmentation."""
        return self._core.space()

    @property
    def counters(self):
        """A dict of what the pool has done since it was opened: commits, aborts, reads, fences, flushed_lines, ..."""
        return self._core.counters()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def __repr__(self):
        return f"<stele.{type(self).__name__} {self.path!r}{', read only' if self.read_only else ''}{', closed' if self.closed else ''}>"


@atexit.register
def _close_all():
    for one in list(_open):
        try:
            one._core.close(_seconds_at_exit)
        except Error:
            pass  # it stays as a crash would leave it, and the next open recovers it
