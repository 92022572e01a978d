"""Dicts and lists that live in a pool file, change in transactions, and are whole after any crash.

>>> import stele
>>> pool = stele.open(path, size="16M")            # `path` is any file name
>>> pool.root["people"] = {"ann": {"age": 41}}     # durable when this line has run
>>> with pool.transaction():                       # all of it or nothing
...     pool.root["people"]["ann"]["age"] += 1
...     pool.root["log"] = ["birthday"]
>>> pool.root["people"]["ann"]["age"]
42
>>> pool.close()

docs/guide/python.md says what survives, how threads share a pool, and what is stored how.
"""

import atexit as _atexit
import re as _re
import weakref as _weakref
from os import fspath as _fspath

from . import _containers, _stele, errors
from ._stele import Dict, List
from ._transaction import Transaction
from .errors import Error

__version__ = "0.1.0"
__all__ = ["open", "Pool", "Dict", "List", "Error", "errors"]

_open_pools = _weakref.WeakSet()
_units = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _bytes_of(size):
    if isinstance(size, int):
        return size
    found = _re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", size.strip(), _re.IGNORECASE)
    if not found:
        raise ValueError(f"{size!r} is no size; write bytes, or a text such as '64M'")
    return int(found[1]) * _units[found[2].upper()]


def open(path, size=None, *, mechanism="", media="auto", ordered=False):
    """Opens the pool at `path`; with `size` creates it first when the path is free.

    size: bytes, or a text such as "64M"; of an existing pool it is not looked at. mechanism, media: as in C++, the defaults
    are right. ordered: changes are atomic and in order, and durable with the next sync() or close().
    Raises a subclass of stele.Error.
    """
    pool = Pool(_stele.open(_fspath(path), 0 if size is None else _bytes_of(size), mechanism, media, ordered))
    _open_pools.add(pool)
    return pool


class Pool:
    """An open pool. Its use from several threads is fine; close() is for one. As a context manager it closes itself."""

    def __init__(self, core):
        self._core = core
        self.root = core.root()
        """The dict that everything in the pool is reached from."""

    def transaction(self, *, ordered=False):
        """A context manager: what happens to the pool inside is one transaction, durable when it has ended.

        An exception rolls all of it back, and goes on. One in another is a part of it. Other threads' changes wait until it has ended, as
        do their reads of what it has changed. It begins and ends in one thread, and must not be kept open over an `await` or a `yield`.
        """
        return Transaction(self._core, ordered)

    def sync(self):
        """Everything that has been changed before is durable when this returns."""
        self._core.sync()

    def close(self):
        """Everything is durable and the file is free for others. Once closed, a pool stays closed."""
        self._core.close()

    def check(self):
        """Goes through all values, and raises CorruptError when they contradict each other. Time goes with their number."""
        self._core.check()

    @property
    def closed(self):
        return self._core.closed()

    @property
    def path(self):
        return self._core.path()

    @property
    def durability(self):
        """What an acknowledged change survives: "power", "power, cache included", "process" or "none"."""
        return self._core.durability()

    @property
    def mechanism(self):
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
        return f"<stele.Pool {self.path!r}{', closed' if self.closed else ''}>"


@_atexit.register
def _close_all():
    for pool in list(_open_pools):
        try:
            pool.close()
        except Error:
            pass  # it stays as a crash would leave it, and the next open recovers it


_containers.complete(Dict, List)
