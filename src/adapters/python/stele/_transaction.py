"""The context manager of transactions."""


class Transaction:
    """What `with pool.transaction()` holds."""

    __slots__ = ("_core", "_ordered")

    def __init__(self, core, ordered):
        self._core = core
        self._ordered = ordered

    def __enter__(self):
        self._core.begin(self._ordered)

    def __exit__(self, kind, value, trace):
        self._core.end(kind is not None)
