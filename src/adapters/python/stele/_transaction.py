"""The context manager of transactions."""


class Transaction:
    """What `with pool.transaction()` holds."""

    __slots__ = ("_core", "_how")

    def __init__(self, core, ordered=False, timeout=...):
        self._core = core
        self._how = (ordered,) if timeout is ... else (ordered, timeout)

    def __enter__(self):
        self._core.begin(*self._how)

    def __exit__(self, kind, value, trace):
        self._core.end(kind is not None)
