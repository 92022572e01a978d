"""SQLite databases in pools, by Python's own sqlite3: docs/guide/sqlite.md.

>>> import stele.sqlite
>>> db = stele.sqlite.connect(path, size="16M")     # an ordinary sqlite3.Connection
>>> with db:
...     _ = db.execute("create table people(name, age)")
...     _ = db.execute("insert into people values ('ann', 41)")
>>> db.execute("select age from people").fetchone()
(41,)
>>> db.close()
"""

import os as _os
import sqlite3 as _sqlite3
from urllib.parse import quote as _quote
from urllib.parse import urlencode as _urlencode

_name = "libstele_sqlite.so"
_loaded = False


def library():
    """The path of libstele_sqlite.so: beside this package (a wheel), in the build folder, else its name, for the system's folders."""
    package = _os.path.dirname(_os.path.abspath(__file__))
    build = _os.path.dirname(_os.path.dirname(package))
    for folder in (package, build):
        if _os.path.exists(_os.path.join(folder, _name)):
            return _os.path.join(folder, _name)
    return _name


def _preloaded():
    """The module's function that returns its last error, if LD_PRELOAD has loaded the module; else None."""
    try:
        import ctypes

        last_error = ctypes.CDLL(None).stele_sqlite_error
    except (ImportError, OSError, AttributeError):
        return None
    last_error.restype = ctypes.c_char_p
    return last_error


def _load_and_ask():
    """Loads the module, unless it is preloaded, and returns the sentence of its last error in this process, which may be empty."""
    memory = _sqlite3.connect(":memory:")  # a preloaded module is ready after this
    try:
        if not hasattr(memory, "enable_load_extension"):
            last_error = _preloaded()
            if last_error is not None:
                return _os.fsdecode(last_error())
            raise _sqlite3.NotSupportedError(
                "this Python's sqlite3 cannot load extensions, so it cannot load libstele_sqlite.so; use a Python that was built with "
                "--enable-loadable-sqlite-extensions, or start this one with LD_PRELOAD=" + library()
            )
        memory.enable_load_extension(True)
        try:
            memory.execute("select load_extension(?, 'sqlite3_stelesqlite_init')", (library(),))
        except _sqlite3.OperationalError as e:
            raise _sqlite3.OperationalError(
                f"{library()} cannot be loaded: {e}; install Stele with SQLite's headers (Debian: libsqlite3-dev) present, or build it"
            ) from e
        return memory.execute("select stele_error()").fetchone()[0]
    finally:
        memory.close()


def load():
    """Makes the VFS `stele` known to Python's SQLite. connect() does it. Raises sqlite3.NotSupportedError, sqlite3.OperationalError."""
    global _loaded
    if not _loaded:
        _load_and_ask()
    _loaded = True


def connect(path, *, size=None, max_size=None, mechanism=None, media=None, database=None, verify=None, read_only=False, **options):
    """Opens the database in the pool at `path`, which is created when the path is free; returns a sqlite3.Connection.

    size: of a new pool, bytes or a text such as "64M". max_size: it grows by itself up to so many bytes. mechanism, media: as in
    stele.open. database: the database of the pool, else "main". verify: as in stele.open. read_only: opens nothing for writing, and creates nothing.
    All else is passed to sqlite3.connect. Raises sqlite3.Error that says why. For later errors of the connection that sentence is in
    SQLite's log, and in `PRAGMA stele_error`.
    """
    load()
    given = {"size": size, "max_size": max_size, "mechanism": mechanism, "media": media, "database": database, "verify": verify}
    parameters = {"vfs": "stele", **{name: value for name, value in given.items() if value is not None}}
    if read_only:
        parameters["mode"] = "ro"
    name = _quote(_os.path.abspath(_os.fsdecode(path)))
    try:
        return _sqlite3.connect(f"file:{name}?{_urlencode(parameters, quote_via=_quote)}", uri=True, **options)
    except _sqlite3.Error as e:
        e.args = (f"{e}: {_load_and_ask()}",)
        raise
