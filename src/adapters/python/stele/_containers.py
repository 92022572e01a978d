"""Methods that dicts and lists of a pool share with Python's own, made of the operations of the extension module.

Whatever iterates works on a copy of one state (keys, or values, which may be live dicts and lists): no transaction stays open
between two steps of a loop, and changes during the loop are not seen.
"""

import operator
from collections import abc

from ._stele import Transaction
from .errors import Error


class _Keys(abc.KeysView):
    __slots__ = ()

    def __iter__(self):
        return iter(self._mapping._keys())

    def __reversed__(self):
        return reversed(self._mapping._keys())


class _Items(abc.ItemsView):
    __slots__ = ()

    def __iter__(self):
        return iter(self._mapping._items())

    def __reversed__(self):
        return reversed(self._mapping._items())


class _Values(abc.ValuesView):
    __slots__ = ()

    def __iter__(self):
        return iter([v for _, v in self._mapping._items()])

    def __reversed__(self):
        return reversed([v for _, v in self._mapping._items()])


def _plain(value):
    return value.copy() if hasattr(value, "_same") else value


def _equal(self, other):
    if type(other) is type(self) and self._same(other):
        return True
    if not isinstance(other, (dict, list, type(self))):
        return NotImplemented
    return self.copy() == _plain(other)


def _keys(self):
    """The keys, in the order of insertion."""
    return _Keys(self)


def _items(self):
    """The pairs of key and value, in the order of insertion."""
    return _Items(self)


def _values(self):
    """The values, in the order of insertion."""
    return _Values(self)


def _count(self, value):
    """How many items equal value."""
    return self.copy().count(_plain(value))


def _update(self, other=(), /, **more):
    """Sets all items of a dict, a mapping, or pairs, in one transaction."""
    if hasattr(other, "_same"):
        other = other.copy()
    self._update({**dict(other), **more})


def _index(self, value, start=0, stop=None):
    """The index of the first item that equals value. Raises ValueError."""
    return self.copy().index(_plain(value), start, *(() if stop is None else (stop,)))


def _remove(self, value):
    """Deletes the first item that equals value. Raises ValueError."""
    with Transaction(self._pool()):
        del self[self.index(value)]


def _reverse(self):
    """Reverses the order of the items, in one transaction."""
    with Transaction(self._pool()):
        self[:] = self.copy()[::-1]


def _sort(self, *, key=None, reverse=False):
    """Sorts the items as list.sort does, in one transaction. If a comparison raises, nothing has changed."""
    with Transaction(self._pool()):
        before = self.copy()
        ordered = sorted(before, key=key, reverse=reverse)
        if key is not None and self.copy() != before:
            raise ValueError("the list was changed while it was sorted")
        self[:] = ordered


def _add_in_place(self, values):
    self.extend(values)
    return self


def _add(self, other):
    return self.copy() + _plain(other) if isinstance(other, (list, type(self))) else NotImplemented


def _add_to(self, other):
    return other + self.copy() if isinstance(other, list) else NotImplemented


def _compare(how):
    def compare(self, other):
        return how(self.copy(), _plain(other)) if isinstance(other, (list, type(self))) else NotImplemented

    return compare


def _repeat(self, times):
    return self.copy() * times


def _repeat_in_place(self, times):
    with Transaction(self._pool()):
        self[:] = self.copy() * times
    return self


def _unite(self, other):
    return self.copy() | _plain(other) if isinstance(other, (dict, type(self))) else NotImplemented


def _unite_to(self, other):
    return other | self.copy() if isinstance(other, dict) else NotImplemented


def _unite_in_place(self, other):
    self.update(other)
    return self


def _repr(name, self):
    try:
        return f"stele.{name}({self.copy()!r})"
    except Error as e:  # the pool is closed, or the container was destroyed
        return f"<stele.{name}: {e}>"


def complete(dict_class, list_class):
    """Adds the methods that are not in the extension module to both classes."""
    for c in (dict_class, list_class):
        c.__eq__ = _equal
        c.__ne__ = lambda self, other: not self == other
        c.__hash__ = None
        c.__copy__ = c.copy
        c.__deepcopy__ = lambda self, memo: self.copy()
    dict_class.__iter__ = lambda self: iter(self._keys())
    dict_class.__reversed__ = lambda self: reversed(self._keys())
    dict_class.keys = _keys
    dict_class.items = _items
    dict_class.values = _values
    dict_class.update = _update
    dict_class.__or__ = _unite
    dict_class.__ror__ = _unite_to
    dict_class.__ior__ = _unite_in_place
    dict_class.__repr__ = lambda self: _repr("Dict", self)
    list_class.__iter__ = lambda self: iter(self[:])
    list_class.__reversed__ = lambda self: reversed(self[:])
    list_class.__contains__ = lambda self, value: _plain(value) in self.copy()
    list_class.index = _index
    list_class.count = _count
    list_class.remove = _remove
    list_class.reverse = _reverse
    list_class.sort = _sort
    list_class.__add__ = _add
    list_class.__radd__ = _add_to
    list_class.__iadd__ = _add_in_place
    list_class.__mul__ = list_class.__rmul__ = _repeat
    list_class.__imul__ = _repeat_in_place
    for name in ("lt", "le", "gt", "ge"):
        setattr(list_class, f"__{name}__", _compare(getattr(operator, name)))
    list_class.__repr__ = lambda self: _repr("List", self)
    abc.MutableMapping.register(dict_class)
    abc.MutableSequence.register(list_class)
