"""The key-value store: bytes under bytes, in the order of the keys' bytes."""

from collections import abc as _abc
from os import fspath as _fspath

from . import _stele
from ._opened import Opened as _Opened
from ._opened import options as _options

_page_items = 256


class KV(_Opened):
    """An embedded key-value store in a pool file.

    >>> import stele
    >>> with stele.KV(path, size="16M") as kv:
    ...     kv["user/2"] = "ben"                    # texts are stored as UTF-8; bytes come back
    ...     with kv.transaction():                  # both or none
    ...         kv[b"user/1"] = b"ann"
    ...         kv[b"user/3"] = b"cleo"
    ...     print(kv["user/1"], len(kv), "user/9" in kv, kv.get("user/9"))
    ...     print(list(kv.keys("user/2")))
    b'ann' 3 False None
    [b'user/2', b'user/3']

    Keys have 1 to 65,536 bytes. Every operation is a transaction; transactions, threads and errors are as with pools. len() counts.
    """

    def __init__(self, path, size=None, *, mechanism="", media="auto", ordered=False, max_size=None, require="", verify="auto", timeout=None, read_only=False):
        self._kv = _stele.KVBase(_fspath(path), _options(size, mechanism, media, ordered, max_size, require, verify, timeout, read_only))
        super().__init__(self._kv._core)
        self.get = self._kv.get

    def __getitem__(self, key):
        return self._kv[key]

    def __setitem__(self, key, value):
        self._kv[key] = value

    def __delitem__(self, key):
        del self._kv[key]

    def __contains__(self, key):
        return key in self._kv

    def __len__(self):
        return len(self._kv)

    def items(self, start=b"", stop=b""):
        """Goes over the pairs with start <= key < stop in order; an empty stop has no bound.

        Takes pages of 256, each of one state, and holds no transaction in between: an item that is there all the time is met once.
        """
        page = self._kv._page(start, stop, _page_items)
        while page:
            yield from page
            if len(page) < _page_items:
                return
            page = self._kv._page(page[-1][0] + b"\0", stop, _page_items)

    def keys(self, start=b"", stop=b""):
        """As items(): the keys."""
        return (key for key, _ in self.items(start, stop))

    def values(self, start=b"", stop=b""):
        """As items(): the values."""
        return (value for _, value in self.items(start, stop))

    def __iter__(self):
        return self.keys()

    def get_many(self, keys):
        """The values of all keys, of one state, in a list; None for a key that is not there. Faster than one by one."""
        return self._kv.get_many(keys)

    def pop(self, key, *default):
        """Takes the item out and gives its value."""
        with self.transaction():
            value = self._kv.get(key)
            if value is not None:
                del self._kv[key]
                return value
        if default:
            return default[0]
        raise KeyError(key)

    def update(self, other=(), /, **more):
        """Sets all items of a mapping, or pairs, in one transaction."""
        with self.transaction():
            for key, value in {**dict(other), **more}.items():
                self._kv[key] = value


_abc.Mapping.register(KV)
