"""The library's errors as exceptions: Error, with a subclass for each code of <stele/error.h>.

>>> import stele
>>> try:
...     stele.open("/nowhere/at/all")
... except stele.errors.NotFoundError as e:
...     print(e.code)
not_found
"""

import builtins


class Error(Exception):
    """An error of the library. `code` is its short name, the message says what, where and what to do."""

    code = "error"


class InvalidArgumentError(Error, ValueError):
    """A value that the call does not take."""

    code = "invalid_argument"


class NotFoundError(Error):
    """No such file or directory, or the object's container or store was destroyed."""

    code = "not_found"


class ExistsError(Error):
    """Creating would overwrite something."""

    code = "exists"


class PermissionDeniedError(Error):
    """The operating system refuses."""

    code = "permission"


class ReadOnlyError(Error):
    """A change where only reading is possible."""

    code = "read_only"


class InUseError(Error):
    """Another process, or this one, has the pool open."""

    code = "in_use"


class NotAPoolError(Error):
    """The file is no pool."""

    code = "not_a_pool"


class VersionError(Error):
    """A pool of another version of the format."""

    code = "version"


class CorruptError(Error):
    """The pool contradicts itself: restore it from a copy."""

    code = "corrupt"


class LostError(Error):
    """Committed data could not be restored after a crash, by a mechanism that flushes less."""

    code = "lost"


class LayoutError(Error):
    """The pool holds data of another kind."""

    code = "layout"


class FullError(Error):
    """The pool has no room left; the transaction was rolled back."""

    code = "full"


class DeviceError(Error):
    """The device or the operating system failed."""

    code = "io"


class UnsupportedError(Error):
    """This machine, or the medium, cannot do it."""

    code = "unsupported"


class NestedError(Error):
    """A transaction on another pool, or of another asyncio task, is running in this thread."""

    code = "nested"


class CancelledError(Error):
    """The transaction was rolled back before its end."""

    code = "cancelled"


class TimeoutError(Error, builtins.TimeoutError):
    """Other threads' transactions lasted longer than the time limit of this one."""

    code = "timeout"


class PoisonedError(Error):
    """An earlier write failed, or this is a fork of the process that opened the pool: open it again."""

    code = "poisoned"


class ConflictError(Error):
    """The transaction conflicted with another one and was rolled back; run it again."""

    code = "conflict"


_classes = {c.code: c for c in Error.__subclasses__()}


def by_code(code):
    """The class of a code's errors."""
    return _classes.get(code, Error)
