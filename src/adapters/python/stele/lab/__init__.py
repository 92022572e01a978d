"""The lab's results as pandas data frames: what `stele compare`, `stele crash`, `stele sim` and the others write with --json.

    stele compare --workload hash --mechanisms default,redo,undo --json hash.json

    from stele import lab
    lab.frame("hash.json").set_index("system")["tx_per_s.median"].plot.barh()
    lab.run("crash", "mutants", "--mechanism", "redo")        # runs the command, and returns its frame

A report's list (rows, mutants, ...) becomes a row an entry; a report without one becomes a single row. What is nested has a column
named by its path: tx_per_s.median. Sweeps over many simulated machines: docs/guide/lab-sweeps.md, load() and plot(). The libraries that
the lab needs (stele[lab]) are imported when they are used.
"""

import json as _json
import os as _os
import shutil as _shutil
import subprocess as _subprocess

from .libraries import library as _library
from .picture import plot
from .results import load

_lists = ("rows", "mutants", "points", "runs", "results", "violations")


def read(source):
    """A report as plain Python values. `source`: a file's path, an open file, JSON text, or a result of read()."""
    if isinstance(source, (dict, list)):
        return source
    if hasattr(source, "read"):
        return _json.load(source)
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return _json.loads(source)
    with open(source, encoding="utf-8") as file:
        return _json.load(file)


def _flat(entry, path=""):
    if not isinstance(entry, dict):
        return {path or "value": entry}
    row = {}
    for name, value in entry.items():
        row.update(_flat(value, f"{path}.{name}" if path else name))
    return row


def rows(source, of=None):
    """The rows of frame(), as a list of dicts; works without pandas. `of`: the list of the report to take."""
    report = read(source)
    if isinstance(report, list):
        return [_flat(entry) for entry in report]
    if of is None:
        of = next((name for name in _lists if isinstance(report.get(name), list) and report[name]), None)
    if of is None:
        return [_flat({name: value for name, value in report.items() if not isinstance(value, list)})]
    if not isinstance(report.get(of), list):
        raise KeyError(f"the report has no list {of!r}; it has {', '.join(report)}")
    return [_flat(entry) for entry in report[of]]


def frame(source, of=None):
    """A report as a pandas.DataFrame. See rows()."""
    return _library("pandas", "stele.lab.frame").DataFrame(rows(source, of))


def run(*arguments, command=None):
    """Runs the stele command with these arguments and --json, and returns the frame of its report.

    command: where it is; otherwise the variable STELE_COMMAND says, or the path. Raises subprocess.CalledProcessError when the
    command ends with an error, as it does when what it checks does not hold.
    """
    where = command or _os.environ.get("STELE_COMMAND") or _shutil.which("stele")
    if where is None:
        raise FileNotFoundError("there is no stele command; build it (make build), or name it by STELE_COMMAND")
    done = _subprocess.run([where, *map(str, arguments), "--json", "-"], check=True, stdout=_subprocess.PIPE, text=True)
    return frame(done.stdout[done.stdout.index("{"):])
