"""python -m stele.lab: runs a sweep, and plots its results. See docs/guide/lab-sweeps.md."""

import argparse
import sys

from . import load
from .picture import plot
from .results import SweepError
from .sweep import run


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def arguments():
    parser = argparse.ArgumentParser(prog="python -m stele.lab", description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    sweep = commands.add_parser("sweep", help="run the points of a job list that are not in the results yet")
    sweep.add_argument("jobs", help="what stele sim sweep --out wrote")
    sweep.add_argument("--out", required=True, help="the results, one line a point")
    place = sweep.add_mutually_exclusive_group()
    place.add_argument("--workers", type=positive, help="processes on this machine; default: one a processor")
    place.add_argument("--scheduler", metavar="ADDRESS", help="instead: the Dask scheduler of a cluster, as in tcp://host:8786")
    sweep.add_argument("--command", help="the path of stele-lab; default: STELE_COMMAND, or what is on the path")
    sweep.add_argument("--tries", type=positive, default=2, help="of a point that fails; default: %(default)s")
    drawn = commands.add_parser("plot", help="draw a quantity of the results over an axis")
    drawn.add_argument("results")
    drawn.add_argument("--x", required=True, help="an axis, such as l3.ways")
    drawn.add_argument("--y", required=True, help="a quantity, such as rate.transactions")
    drawn.add_argument("--by", help="an axis with a line for each value, such as design")
    drawn.add_argument("--out", required=True, help="the picture: .svg, .pdf or .png")
    return parser.parse_args()


def sweep(given):
    failed = run(given.jobs, given.out, given.workers, given.scheduler, given.command, given.tries)
    if failed:
        print(f"stele.lab: {failed} points of {given.out} failed; delete their lines (\"error\") to run them again", file=sys.stderr)
    return 1 if failed else 0


def draw(given):
    picture = plot(load(given.results), given.x, given.y, given.by)
    import matplotlib
    with matplotlib.rc_context({"svg.hashsalt": "stele"}):  # the same results make the same bytes
        picture.savefig(given.out, metadata={"Date": None} if given.out.endswith(".svg") else None)
    return 0


def main():
    given = arguments()
    try:
        return sweep(given) if given.what == "sweep" else draw(given)
    except KeyboardInterrupt:
        print("stele.lab: interrupted; what was finished is kept, run the sweep again to go on", file=sys.stderr)
        return 130
    except (ImportError, SweepError, OSError, KeyError, ValueError) as e:
        print(f"stele.lab: {e.args[0] if isinstance(e, KeyError) else e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
