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

from os import fsencode as _fsencode

from . import _containers, _stele, errors
from ._opened import Opened as _Opened
from ._opened import options as _options
from ._stele import Dict, List
from .errors import Error
from .kv import KV

__version__ = "0.1.0"
__all__ = ["open", "Pool", "Dict", "List", "KV", "Error", "errors"]


def open(path, size=None, *, mechanism="", media="auto", ordered=False, max_size=None, require="", verify="auto", timeout=None, read_only=False, pickle=False):
    """Opens the pool at `path`; with `size` creates it first when the path is free.

    size: bytes, or a text such as "64M"; of an existing pool it is not looked at. mechanism, media: as in C++, the defaults
    are right. ordered: changes are atomic and in order, and durable with the next sync() or close(). max_size: a full pool grows by itself
    up to so many bytes. require: "power" or "process", what changes must survive, else the pool is not opened. verify: "always" or "never",
    whether opening verifies the values by their checksums; "auto" does in pools of up to 256 MiB.
    timeout: seconds that a change or a read waits for other threads' transactions, then stele.errors.TimeoutError; None: as long as they take.
    read_only: only reads, beside the process that has the pool open for writing, if one has; of the other options only timeout counts then.
    pickle: values of other types are stored as pickles. Loading one runs the code that it names: only for pools that nobody else writes.
    Raises a subclass of stele.Error.
    """
    return Pool(_stele.open(_fsencode(path), _options(size, mechanism, media, ordered, max_size, require, verify, timeout, read_only, pickle)))


class Pool(_Opened):
    """An open pool, as open() gives it. Several threads may use it. As a context manager it closes itself."""

    def __init__(self, core):
        super().__init__(core)
        self.root = core.root()
        """The dict from which everything in the pool is reached."""


_containers.complete(Dict, List)
