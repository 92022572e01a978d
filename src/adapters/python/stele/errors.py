"""What the library refuses, as exceptions: Error, with a subclass for each code of <stele/error.h>.

>>> import stele
>>> try:
...     stele.open("/nowhere/at/all")
... except stele.errors.NotFoundError as e:
...     print(e.code)
not_found
"""


class Error(Exception):
    """An error of the library. `code` is its short name, the message says what, where and what to do."""

    code = "error"


class InvalidArgumentError(Error, ValueError):
    code = "invalid_argument"


class NotFoundError(Error):
    code = "not_found"


class ExistsError(Error):
    code = "exists"


class PermissionDeniedError(Error):
    code = "permission"


class ReadOnlyError(Error):
    code = "read_only"


class InUseError(Error):
    """Another process, or this one, has the pool open."""

    code = "in_use"


class NotAPoolError(Error):
    code = "not_a_pool"


class VersionError(Error):
    code = "version"


class CorruptError(Error):
    code = "corrupt"


class LostError(Error):
    code = "lost"


class LayoutError(Error):
    """The pool holds data of another kind."""

    code = "layout"


class FullError(Error):
    """The pool has no room left; the transaction was rolled back."""

    code = "full"


class DeviceError(Error):
    code = "io"


class UnsupportedError(Error):
    code = "unsupported"


class NestedError(Error):
    """A transaction on another pool is running in this thread."""

    code = "nested"


class CancelledError(Error):
    code = "cancelled"


class PoisonedError(Error):
    """An earlier write failed, or this is a fork of the process that opened the pool: open it again."""

    code = "poisoned"


_classes = {c.code: c for c in Error.__subclasses__()}


def by_code(code):
    """The class of a code's errors."""
    return _classes.get(code, Error)
