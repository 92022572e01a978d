"""The results of a sweep: a file of JSON lines, one a point. See docs/guide/lab-sweeps.md.

A finished point has its job and the report of `stele sim run --json`; a failed one has its job and the error's sentence. A line counts
when its end of line is there, so a file that was cut off in its last line is read without it.
"""

import contextlib
import fcntl
import json
import os

from .libraries import library

JOB_KEYS = ("machine", "settings", "design", "tape", "seed", "warm_up")
_axes = tuple(key for key in JOB_KEYS if key != "settings")


class SweepError(Exception):
    """What keeps a sweep from running, as a sentence."""


def read_lines(path, keys, text=None):
    """The objects of a file of JSON lines. Raises SweepError when one is not JSON or lacks a key."""
    if text is None:
        with open(path, "rb") as file:
            text = file.read()
    entries = []
    for number, line in enumerate(text[:text.rfind(b"\n") + 1].splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError as e:
            raise SweepError(f"{path}:{number}: not a line of JSON ({e})") from e
        missing = [key for key in keys if not isinstance(entry, dict) or key not in entry]
        if missing:
            raise SweepError(f"{path}:{number}: there is no {missing[0]!r}; a line has {', '.join(keys)}")
        entries.append(entry)
    return entries


def read_jobs(path):
    """The jobs of a list that `stele sim sweep --out` wrote, each once."""
    return list({identity(job): job for job in read_lines(path, JOB_KEYS)}.values())


def identity(job):
    return json.dumps(job)


class ResultsFile:
    """Results that this process alone appends to. A line is on the medium when append() returns."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            text = self._file.read()
            self.records = read_lines(path, ["job"], text)
            self._file.truncate(text.rfind(b"\n") + 1)
            self._sync_folder()
        except BlockingIOError as e:
            self._file.close()
            raise SweepError(f"{path}: another sweep is writing it; wait for its end, or name another --out") from e
        except BaseException:
            self._file.close()
            raise

    def _sync_folder(self):
        folder = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def append(self, record):
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records.append(record)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def _of_text(text):
    """The value of a failed point's setting, which has no machine to look it up in."""
    with contextlib.suppress(TypeError, ValueError):
        return json.loads(text)
    return text


def _setting(record, key):
    """The value that the machine had, whether or not the job set it."""
    value = record.get("result", {}).get("machine")
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        value = _of_text(record["job"]["settings"].get(key))
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def load(path):
    """The results of a sweep as a pandas.DataFrame, sorted by its axes: a column for each axis and each quantity.

    A column `error` has the sentences of points that failed. frame.attrs["axes"] names the axes, frame.attrs["units"] has the
    units of quantities.
    """
    pandas = library("pandas", "stele.lab.load")
    records = read_lines(path, ["job"])
    settings = list(dict.fromkeys(key for record in records for key in record["job"]["settings"]))
    axes, units, rows = [*_axes[:1], *settings, *_axes[1:]], {"simulated_ns": "ns"}, []
    for record in records:
        result = record.get("result", {})
        row = {key: record["job"][key] for key in _axes} | {key: _setting(record, key) for key in settings}
        row["simulated_ns"] = result.get("simulated_ns")
        for name, quantity in result.get("quantities", {}).items():
            row[name] = quantity["value"]
            units[name] = quantity["unit"]
        rows.append(row | {"error": record.get("error")})
    quantities = list(dict.fromkeys(name for row in rows for name in row if name not in axes and name != "error"))
    frame = pandas.DataFrame(rows, columns=[*axes, *quantities, "error"])
    if rows:
        numeric = pandas.api.types.is_numeric_dtype
        frame = frame.sort_values(axes, kind="stable", ignore_index=True, key=lambda c: c if numeric(c) else c.astype(str))
    frame.attrs.update(axes=axes, units=units)
    return frame
