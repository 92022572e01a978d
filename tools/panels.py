"""The panels of a figure drawn with matplotlib, for tools/plot and tools/report; and a panel as SVG inside a page.

Measured series are solid, with the 95 % interval of each point; numbers that the publication states are dashed. Whoever imports
this has made sure that matplotlib is there.
"""

import io
import math
import re
import textwrap
import xml.etree.ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK = "#010203"  # in a page's pictures: the colour of the page's text
SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"


def values(panel, series, key):
    """The series' values along the panel's axis; NaN where nothing was measured."""
    found = {point["x"]: point[key] for point in series["points"]}
    return [found.get(x, math.nan) for x in panel["xs"]]


def errors(panel, series):
    """How far the 95 % interval of each point reaches below and above it; nothing where it is unknown."""
    known = {point["x"]: point.get("interval") or {"low": point["median"], "high": point["median"]} for point in series["points"]}
    found = [(m, known.get(x, {"low": m, "high": m})) for x, m in zip(panel["xs"], values(panel, series, "median"))]
    return [[max(m - i["low"], 0) for m, i in found], [max(i["high"] - m, 0) for m, i in found]]


def measured(panel):
    """The series with any point; an interrupted chart may have others."""
    return [series for series in panel["series"] if series["points"]]


def colours(panel):
    """The colour of each label, by the order of the series; more than twenty take turns."""
    labels = list(dict.fromkeys(series["label"] for series in measured(panel)))
    colour = matplotlib.colormaps["tab10" if len(labels) <= 10 else "tab20"]
    return {label: matplotlib.colors.to_hex(colour(i % colour.N)) for i, label in enumerate(labels)}


def draw_bars(axes, panel, ink):
    shown, colour = measured(panel), colours(panel)
    width = 0.8 / max(1, len(shown))
    for i, series in enumerate(shown):
        at = [x + (i + 0.5) * width - 0.4 for x in range(len(panel["xs"]))]
        axes.bar(at, values(panel, series, "median"), width, label=series["label"], color=colour[series["label"]],
                 hatch="//" if series["stated"] else None, yerr=errors(panel, series), error_kw={"elinewidth": 0.6, "ecolor": ink})


def draw_lines(axes, panel):
    colour = colours(panel)
    at = range(len(panel["xs"]))
    for series in measured(panel):
        own = colour[series["label"]]
        if series["stated"]:
            axes.plot(at, values(panel, series, "median"), "--x", color=own, linewidth=1, label=series["label"] + " (stated)")
        else:
            axes.errorbar(at, values(panel, series, "median"), errors(panel, series), color=own, marker="o", markersize=3,
                          linewidth=1.2, elinewidth=0.6, label=series["label"])


def spans_decades(panel):
    medians = [p["median"] for s in panel["series"] for p in s["points"]]
    return bool(medians) and min(medians) > 0 and max(medians) > 30 * min(medians)


def fold(text, width):
    return textwrap.fill(str(text), width)


def add_ticks(axes, labels):
    """Labels that would overlap are turned."""
    axes.set_xticks(range(len(labels)), labels)
    if sum(len(str(label)) + 2 for label in labels) > 48:
        for label in axes.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def draw(axes, panel, ink="black"):
    """All of a panel but its name and its legend."""
    if panel["bars"]:
        draw_bars(axes, panel, ink)
    else:
        draw_lines(axes, panel)
    add_ticks(axes, panel["xs"])
    axes.set_xlabel(fold(panel["x"], 60), fontsize=8)
    axes.set_ylabel(fold(panel["y"], 44), fontsize=8)
    axes.tick_params(labelsize=7)
    axes.yaxis.get_offset_text().set_fontsize(7)
    medians = [p["median"] for s in panel["series"] for p in s["points"]]
    if spans_decades(panel):
        axes.set_yscale("log")
    elif not medians or min(medians) >= 0:
        axes.set_ylim(bottom=0)


def in_page(element, prefix):
    """The element and those below it without namespaces; only ids that something refers to stay, with the prefix."""
    text = xml.etree.ElementTree.tostring(element, encoding="unicode")
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
    used = {a or b for a, b in used}
    for one in element.iter():
        one.tag = one.tag.replace(f"{{{SVG}}}", "")
        link = one.attrib.pop(LINK, None)
        if link:
            one.set("href", "#" + prefix + link[1:])
        name = one.attrib.pop("id", None)
        if name in used:
            one.set("id", prefix + name)
        for key, value in one.attrib.items():
            value = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number.group()):.2f}", value)
            one.set(key, re.sub(r"url\(#", f"url(#{prefix}", value).replace(INK, "currentColor"))
        if one.tag != "text":
            one.text = (one.text or "").strip()
        one.tail = (one.tail or "").strip()
    return element


def svg_of(panel, prefix, title):
    """A panel as an <svg> element of an HTML page: its text is text, in the page's colour; no id is that of another picture."""
    settings = {name: INK for name in ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "hatch.color")}
    settings.update({"svg.fonttype": "none", "svg.hashsalt": "stele", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"]})
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(4.1, 2.7), layout="constrained")
        axes = figure.add_subplot()
        draw(axes, panel, INK)
        axes.set_ylabel(fold(panel["y"], 34), fontsize=8)
        written = io.BytesIO()
        FigureCanvasSVG(figure)
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    root = xml.etree.ElementTree.fromstring(written.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.split("}")[-1] in ("metadata", "style"):
                parent.remove(child)
    root = in_page(root, prefix)
    root.attrib = {"viewBox": root.get("viewBox"), "role": "img", "aria-label": title}
    return xml.etree.ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
