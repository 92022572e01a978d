"""The key-value store: bytes under bytes, in the order of the keys' bytes."""

from collections import abc as _abc
from datetime import timedelta as _timedelta
from os import fsencode as _fsencode

from . import _stele
from ._opened import Opened as _Opened
from ._opened import options as _options

_removed_at_once = 1000  # expired items


def _milliseconds(time):
    """Milliseconds of seconds, a timedelta, or a datetime (since 1970); None of None."""
    if time is None:
        return None
    if isinstance(time, _timedelta):
        time = time.total_seconds()
    elif hasattr(time, "timestamp"):
        time = time.timestamp()
    return max(-(2**63), min(2**63 - 1, -int(-time * 1000 // 1)))  # rounded up


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
        self._kv = _stele.KVBase(_fsencode(path), _options(size, mechanism, media, ordered, max_size, require, verify, timeout, read_only))
        self._begin()

    def _begin(self):
        super().__init__(self._kv.core)
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

    def items(self, start=b"", stop=b"", *, prefix=b"", reverse=False):
        """Iterates over the pairs with start <= key < stop (an empty stop is no bound) whose key begins with prefix, in ascending or descending order.

        Takes pages, each of one state, and holds no transaction in between: an item that is there all the time is met once.
        """
        start, stop = self._kv.bounds(start, stop, prefix)
        ends = False
        while not ends:
            page, ends = self._kv.page(start, stop, reverse)
            yield from page
            if page and reverse:
                stop = page[-1][0]
            elif page:
                start = page[-1][0] + b"\0"

    def keys(self, start=b"", stop=b"", *, prefix=b"", reverse=False):
        """As items(): the keys."""
        return (key for key, _ in self.items(start, stop, prefix=prefix, reverse=reverse))

    def values(self, start=b"", stop=b"", *, prefix=b"", reverse=False):
        """As items(): the values."""
        return (value for _, value in self.items(start, stop, prefix=prefix, reverse=reverse))

    def __reversed__(self):
        return self.keys(reverse=True)

    def __iter__(self):
        return self.keys()

    def get_many(self, keys):
        """The values of all keys, in one state, in a list; None for an absent key. Faster than one by one."""
        return self._kv.get_many(keys)

    def pop(self, key, *default):
        """Removes the item and returns its value."""
        with self.transaction():
            value = self._kv.get(key)
            if value is not None:
                del self._kv[key]
                return value
        if default:
            return default[0]
        raise KeyError(key)

    def put_many(self, pairs):
        """Sets the values of all pairs of key and value, in their order, in one transaction; all or, after an error, none."""
        pairs = [(key, value) for key, value in pairs]
        self._kv.put_many(tuple(key for key, _ in pairs), tuple(value for _, value in pairs))

    def update(self, other=(), /, **more):
        """Sets all items of a mapping, or pairs, in one transaction."""
        self.put_many({**dict(other), **more}.items())

    def put(self, key, value, *, ttl=None, until=None):
        """Sets the value; with ttl or until the item expires, after so many seconds or a timedelta, or at a time, in seconds since 1970 or a datetime.

        From then on it is not there, by the system's clock. Setting the value in another way takes the time away; modify, add and put_if keep it.
        """
        if ttl is not None and until is not None:
            raise TypeError("put takes ttl or until, not both")
        self._kv.put(key, value, _milliseconds(ttl), _milliseconds(until))

    def expiry(self, key):
        """The expiry time of the item, in seconds since 1970; None if it never expires or does not exist."""
        when = self._kv.expiry(key)
        return None if when is None else when / 1000

    def remove_expired(self, limit=None):
        """Removes items that have expired, at most so many, the earliest first, and returns how many. Changes of the store also remove them, a few at a time."""
        removed = step = _removed_at_once
        total = 0
        while removed == step and (limit is None or total < limit):
            step = _removed_at_once if limit is None else min(_removed_at_once, limit - total)
            removed = self._kv.remove_expired(step)
            total += removed
        return total

    def modify(self, key, change):
        """Sets the value to change(value), in one transaction. None stands for an absent key. Keeps the expiry time of the item."""
        with self.transaction():
            after = change(self._kv.get(key))
            now = self._kv.get(key)  # the function may have set it
            if after is not None:
                self._kv.put_if(key, now, after)
            elif now is not None:
                del self._kv[key]

    def put_if(self, key, expected, value):
        """Sets the value if it is `expected` now (None: if the key is absent), and returns whether it was set."""
        return self._kv.put_if(key, expected, value)

    def add(self, key, n=1):
        """Adds n to a counter and returns the sum. A counter is a value of eight bytes, little-endian, with a sign; a missing key counts as 0."""
        return self._kv.add(key, n)

    def open_store(self, name, *, create=True):
        """The store of this name in the same pool, as another KV; create makes it if it is missing. Not inside a transaction.

        Stores of a pool share its transactions: a `with` of one may change all of them. Closing one closes the pool.
        """
        store = KV.__new__(KV)
        store._kv = self._kv.open_store(name, create)
        store._begin()
        return store

    def stores(self):
        """The names of the pool's stores, in order, as bytes."""
        return self._kv.stores()

    def drop_store(self, name):
        """Drops the store of this name with all its items. KV objects of it can no longer be used. Not inside a transaction."""
        self._kv.drop_store(name)

    @property
    def name(self):
        """The name of the store, as bytes; empty for the pool's first one."""
        return self._kv.name

    def statistics(self):
        """A dict of the store's figures: items, key_bytes, value_bytes, item_space, ..., expired_items. Its time is proportional to the number of items."""
        return self._kv.statistics()


_abc.Mapping.register(KV)
