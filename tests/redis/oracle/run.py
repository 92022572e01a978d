"""The command: options, episodes, reports."""

import argparse
import os
import random
import shutil
import statistics
import sys
import time

from . import replay, scenarios, wire
from .faults import Search
from .grammar import Grammar
from .judge import Judge, command_line
from .servers import Pair
from .session import Session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
STEPS_IN_AN_EPISODE = 200
MOST_LOOKED_AT = 12  # differences of one signature: a state may have got so by one fault or another
MOST_TOLD = 25  # events of a reduced episode; the file has all


def options_of(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "libstele_redis.so"), help="none: a second stock server, which tries this program itself")
    parser.add_argument("--module-args", default="size 16M", help="arguments of the module after the pool")
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--episode", type=int, default=0, help="the first episode")
    parser.add_argument("--steps", type=int, default=0, help="commands; 0: until the seconds have passed")
    parser.add_argument("--seconds", type=float, default=0, help="0: until the steps are done")
    parser.add_argument("--findings", type=int, default=1, help="how many differences end the run")
    parser.add_argument("--reduce", type=float, default=20, help="seconds to shorten a failing episode")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "redis-differential"), help="of the files for --replay")
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--times", action="store_true", help="also a command on tens of megabytes that takes more than six times what stock takes of the processor")
    parser.add_argument("--longest", action="store_true", help="only times how long the longest strings hold each server: medians of five, in turns")
    parser.add_argument("--until-found", action="store_true", help="runs until each fault of oracle/faults.py was seen, or the seconds have passed; prints when")
    options = parser.parse_args()
    if not options.steps and not options.seconds:
        options.seconds = 60
    options.module = None if options.module == "none" else os.path.abspath(options.module)
    return options


def told_words(words):
    return " ".join(repr(w)[1:] if isinstance(w, bytes) and not w.isalnum() else w.decode() if isinstance(w, bytes) else str(w) for w in words)


def tell(found):
    print(f"  {found.kind}: {told_words(found.words)[:300] or 'the whole state'}")
    for side, told in (("stock", found.stock), ("module", found.module)):
        if told is not None:
            print(f"    {side:6} {told}")
    if found.note:
        print("    " + found.note.replace("\n", "\n    "))


def tell_events(header, events):
    for event in events[:MOST_TOLD]:
        if event[0] == "do":
            rules, protocol = header["clients"][event[1]]
            print(f"    {event[1]} ({rules}, RESP{protocol})  {told_words(event[2])[:400]}")
        else:
            print("    " + str(event)[:400])


class Run:
    def __init__(self, options, pair):
        self.options, self.pair = options, pair
        self.judge = Judge()
        self.session = Session(pair, self.judge)
        self.session.scripts = scenarios.SCRIPTS
        self.session.checks_times = options.times or options.until_found
        self.grammar = Grammar()
        self.findings = self.unconfirmed = 0
        self.known = {}  # how often each signature was met
        self.begun = time.monotonic()
        self.aside = 0.0  # seconds that were spent on reports
        self.search = Search() if options.until_found else None

    def seconds(self):
        return time.monotonic() - self.begun - self.aside

    def goes_on(self):
        o = self.options
        if self.search:
            return self.seconds() < o.seconds and not self.search.is_complete()
        return (not o.steps or self.session.commands < o.steps) and (not o.seconds or self.seconds() < o.seconds) and self.findings < o.findings

    def missing_commands(self):
        """Commands of the module that nothing here sends."""
        self.session.begin({"clients": []})
        own = {name.decode().removeprefix("stele.") for name in self.session.own_commands(self.pair.module)}
        return sorted(own - set(self.grammar.by_name) - scenarios.ELSEWHERE)

    def episodes(self):
        number = self.options.episode
        while self.goes_on():
            header, events = scenarios.episode(self.grammar, self.options.seed, number, STEPS_IN_AN_EPISODE)
            found = replay.trial(self.session, header, events)
            for signature, difference in found.items():
                self.known[signature] = self.known.get(signature, 0) + 1
                if self.known[signature] <= (MOST_LOOKED_AT if self.search and difference.kind in ("state", "torn", "answer") else 1):
                    aside = time.monotonic()
                    (self.look if self.search else self.report)(difference, header, events, number)
                    self.aside += time.monotonic() - aside
            number += 1
        return number - self.options.episode

    def look(self, found, header, events, number):
        """Which fault a difference shows; where that is not plain, what is left of the episode may tell."""
        when = self.seconds(), self.session.commands
        if self.search.note(found, header, events, when) or found.kind not in ("state", "answer", "torn"):
            return
        commands = self.session.commands
        reducer = replay.Reducer(self.session, header, found, 5)
        short = reducer.reduced(events)
        if short is not None:
            self.search.note(reducer.best, header, short, when)
        self.session.commands = commands

    def report(self, found, header, events, number):
        commands = self.session.commands
        print(f"seed {self.options.seed}, episode {number}, event {found.event}, after {self.seconds():.1f} s:", flush=True)
        tell(found)
        quick = Session(self.pair, self.judge, limit=3)
        quick.scripts, quick.checks_times = scenarios.SCRIPTS, self.session.checks_times
        self.session.forget()
        reducer = replay.Reducer(quick, header, found, self.options.reduce)
        short = reducer.reduced(events)
        quick.forget()
        os.makedirs(self.options.folder, exist_ok=True)
        path = os.path.join(self.options.folder, f"seed{self.options.seed}-episode{number}.json")
        replay.write(path, header, short or events)
        if short is None:
            self.unconfirmed += found.kind != "slow"  # other programs may have taken the time
            print(f"  not shown again by the episode alone; all of it: --replay {path}", flush=True)
        else:
            self.findings += 1
            print(f"  {len(short)} events show it: --replay {path}")
            tell_events(header, short)
            tell(reducer.best)
        self.session.commands = commands
        sys.stdout.flush()


def main(text):
    options = options_of(text)
    if options.seed is None:
        options.seed = random.randrange(1 << 30)
    if not shutil.which(options.server):
        print(f"there is no {options.server}", file=sys.stderr)
        return 77  # ctest takes it for skipped
    with Pair(options.module, options.module_args.split(), options.server) as pair:
        if options.longest:
            return time_longest(pair)
        if options.replay:
            return replay_file(options, pair)
        print(f"seed {options.seed}, module {options.module} {options.module_args}", flush=True)
        run = Run(options, pair)
        if missing := run.missing_commands():
            print(f"oracle/commands.txt has no form of {', '.join(missing)}")
            return 1
        episodes = run.episodes()
        seconds = run.seconds()
        if run.search:
            print(run.search.table())
            return 0 if run.search.is_complete() else 1
        print(f"{run.session.commands} commands in {episodes} episodes, {seconds:.1f} s, {run.session.commands / max(seconds, 0.01):.0f} a second: "
              f"{run.findings} differences, {run.unconfirmed} not shown again, {run.session.not_compared} episodes not compared to their end")
        return 1 if run.findings or run.unconfirmed else 0


def time_longest(pair, rounds=5):
    last = (512 << 20) - 1  # byte of a string
    print("command                       stock s  module s  ratio")
    for words in (("SETRANGE", "k", last, "x"), ("SETBIT", "k", 8 * last + 7, 1), ("APPEND", "k", "x" * (64 << 20)), ("SET", "k", "x" * (64 << 20))):
        took = {}
        for server in rounds * (pair.stock, pair.module):
            asking = server.connect(120)
            begun = time.monotonic()
            told = asking.call(*words)
            took.setdefault(server.name, []).append(time.monotonic() - begun)
            if told[:1] == b"-":
                sys.exit(f"{server.name}: {wire.show(told)}")
            asking.call("DEL", "k")
            asking.close()
        stock, module = (statistics.median(took[s.name]) for s in (pair.stock, pair.module))
        size = len(words[-1]) if words[0] in ("APPEND", "SET") else words[2]
        print(f"{f'{words[0]} {size}':28} {stock:8.3f}  {module:8.3f}  {module / stock:5.1f}", flush=True)
    return 0


def replay_file(options, pair):
    header, events = replay.read(options.replay)
    session = Session(pair, Judge())
    session.scripts, session.checks_times = scenarios.SCRIPTS, options.times
    found = replay.trial(session, header, events)
    for difference in found.values():
        tell(difference)
    if not found:
        print(f"{len(events)} events: no difference")
    return 1 if found else 0
