"""Methods that an open pool and an open key-value store share."""

import atexit
import re
import weakref
from os import fsencode as _fsencode

from . import _stele
from ._stele import Transaction
from .errors import Error

_open = weakref.WeakSet()
_seconds_at_exit = 2  # for a transaction of a daemon thread to end
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
    """Transactions, durability, counters and closing. As a context manager it closes itself."""

    def __init__(self, core):
        self._core = core
        _open.add(self)

    def transaction(self, *, ordered=False, timeout=...):
        """A context manager: all changes inside are one transaction, durable when the `with` has ended.

        An exception rolls all of it back, and goes on. One in another is a part of it. Other threads' changes wait until it has ended, as
        do their reads of what it has changed. It belongs to the thread and the asyncio task that began it: for others of the thread, the
        pool raises NestedError until it has ended. A thread that ends inside rolls it back.

        Of a pool that is open for reading only it is one state, fixed when it begins. CancelledError: that state is gone, since a process
        has opened the pool for writing meanwhile.

        timeout: seconds to wait until it can begin, then stele.errors.TimeoutError; None: for as long as it takes. Else that of open().
        """
        return Transaction(self._core, ordered, timeout)

    def sync(self):
        """Makes all earlier changes durable."""
        self._core.sync()

    def close(self):
        """Makes all changes durable and releases the file, also after an error. Waits for other threads' transactions. A closed pool stays closed."""
        self._core.close()

    def check(self):
        """Verifies the whole pool: its heap, its checksums, and all values. Raises CorruptError. Its time is proportional to the pool's size."""
        self._core.check()

    def grow(self, size):
        """Lengthens the pool to `size`, bytes or a text such as "1G". Other threads wait meanwhile. A pool with max_size grows by itself."""
        self._core.grow(bytes_of(size))

    def backup(self, path, progress=None):
        """Writes a copy of the pool, of one state, to `path`, where no file may be. Other threads go on meanwhile.

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
        """The name by which the file was opened."""
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
        """A dict of the pool's counters since it was opened: commits, aborts, reads, fences, flushed_lines, ..."""
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
            pass  # the pool stays as after a crash, and the next open recovers it
