"""The command: options, episodes, reports."""

import argparse
import os
import random
import sys
import time

from . import replay, scenarios
from .grammar import Grammar
from .judge import Judge, command_line
from .servers import Pair
from .session import Finding, Session, StockFailed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
STEPS_IN_AN_EPISODE = 200


def options_of(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "libstele_redis.so"))
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
    options = parser.parse_args()
    if not options.steps and not options.seconds:
        options.seconds = 60
    options.module = os.path.abspath(options.module)
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
    for event in events:
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
        self.grammar = Grammar()
        self.findings = self.unconfirmed = self.stock_failures = 0
        self.begun = time.monotonic()
        self.aside = 0.0  # seconds that were spent on reports

    def seconds(self):
        return time.monotonic() - self.begun - self.aside

    def goes_on(self):
        o = self.options
        return (not o.steps or self.session.commands < o.steps) and (not o.seconds or self.seconds() < o.seconds) and self.findings < o.findings

    def episodes(self):
        number = self.options.episode
        while self.goes_on():
            header, events = scenarios.episode(self.grammar, self.options.seed, number, STEPS_IN_AN_EPISODE)
            try:
                self.session.begin(header)
                self.session.run(events)
            except Finding as found:
                aside = time.monotonic()
                self.report(found, header, events, number)
                self.aside += time.monotonic() - aside
            except StockFailed as why:
                self.stock_failures += 1
                print(f"episode {number}: stock Redis failed, so nothing was compared: {why}")
                self.session.forget()
            number += 1
        return number - self.options.episode

    def report(self, found, header, events, number):
        commands = self.session.commands
        print(f"seed {self.options.seed}, episode {number}, event {found.event}, after {self.seconds():.1f} s:", flush=True)
        tell(found)
        quick = Session(self.pair, self.judge, patience=3)
        self.session.forget()
        reducer = replay.Reducer(quick, header, found, self.options.reduce)
        short = reducer.reduced(events)
        quick.forget()
        os.makedirs(self.options.folder, exist_ok=True)
        path = os.path.join(self.options.folder, f"seed{self.options.seed}-episode{number}.json")
        replay.write(path, header, short or events)
        if short is None:
            self.unconfirmed += 1
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
    with Pair(options.module, options.module_args.split(), options.server) as pair:
        if options.replay:
            return replay_file(options, pair)
        print(f"seed {options.seed}, module {options.module} {options.module_args}", flush=True)
        run = Run(options, pair)
        episodes = run.episodes()
        seconds = run.seconds()
        print(f"{run.session.commands} commands in {episodes} episodes, {seconds:.1f} s, {run.session.commands / max(seconds, 0.01):.0f} a second: "
              f"{run.findings} differences, {run.unconfirmed} not shown again, {run.stock_failures} episodes that stock Redis did not end")
        return 1 if run.findings or run.unconfirmed else 0


def replay_file(options, pair):
    header, events = replay.read(options.replay)
    session = Session(pair, Judge())
    try:
        session.begin(header)
        session.run(events)
    except Finding as found:
        tell(found)
        return 1
    print(f"{len(events)} events: no difference")
    return 0
