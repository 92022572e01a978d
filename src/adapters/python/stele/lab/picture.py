"""Draws the results of a sweep: a quantity over an axis, one line a value of another axis.

Where several points share a place, because they differ in further axes, the line is their median and the band their range; the title
names these axes. So no point is left out and none is mistaken for all.
"""

import difflib

from .libraries import library


def _check(frame, column):
    if column not in frame.columns:
        near = difflib.get_close_matches(column, frame.columns, 1)
        raise KeyError(f"the results have no column {column!r}" + (f"; the nearest is {near[0]!r}" if near else ""))


def _varying(frame, used):
    return [axis for axis in frame.attrs["axes"] if axis not in used and frame[axis].nunique(dropna=False) > 1]


def _with_unit(frame, column):
    unit = frame.attrs["units"].get(column)
    return f"{column} ({unit})" if unit else column


def plot(frame, x, y, by=None):
    """A matplotlib Figure of column `y` over column `x`, one line a value of column `by`. `frame`: a result of load()."""
    figures = library("matplotlib.figure", "stele.lab.plot")
    for column in filter(None, (x, y, by)):
        _check(frame, column)
    drawn = frame[frame[y].notna()]
    figure = figures.Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, line in drawn.groupby(by) if by else [(y, drawn)]:
        at = line.groupby(x)[y].agg(["median", "min", "max"])
        axes.plot(at.index, at["median"], marker="o", label=str(name))
        axes.fill_between(at.index, at["min"], at["max"], alpha=0.2)
    others = _varying(drawn, (x, by))
    title = [f"median and range over {', '.join(others)}"] if others else []
    if len(drawn) < len(frame):
        title.append(f"{len(frame) - len(drawn)} points without a value")
    axes.set(title="; ".join(title), xlabel=_with_unit(frame, x), ylabel=_with_unit(frame, y))
    if (drawn[y] >= 0).all():
        axes.set_ylim(bottom=0)
    if by:
        axes.legend(title=by)
    return figure
