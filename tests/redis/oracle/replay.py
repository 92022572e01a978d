"""Files of events, and how a failing episode becomes a short one."""

import json
import time

from .session import Finding, StockFailed


def encoded(value):
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (list, tuple)):
        return [encoded(v) for v in value]
    return value


def words_of(words):
    return [w if isinstance(w, dict) else w.encode("latin-1") for w in words]


def inner_of(inner):
    return [(words_of(w), inner_of(i)) for w, i in inner]


def decoded(event):
    """As it was drawn: words are bytes, all else stays."""
    kind, *rest = event
    if kind in ("do", "guarded"):
        return [kind, rest[0], words_of(rest[1]), *map(inner_of, rest[2:])]
    if kind == "large":
        return [kind, words_of(rest[0])]
    if kind == "killed":
        return [kind, [words_of(w) for w in rest[0]], rest[1]]
    if kind == "torn":
        return [kind, rest[0], [words_of(w) for w in rest[1]], rest[2]]
    return event


def write(path, header, events):
    with open(path, "w") as out:
        for line in (header, *map(encoded, events)):
            out.write(json.dumps(line) + "\n")


def read(path):
    with open(path) as lines:
        header, *events = [json.loads(line) for line in lines if line.strip()]
    return header, [decoded(e) for e in events]


def trial(session, header, events):
    """What these events show, by signature."""
    found = {}
    try:
        session.begin(header)
        session.run(events)
    except Finding as difference:
        difference.seen_at = session.event  # for a client that waits, later than its command
        found[difference.signature()] = difference
    except StockFailed as why:
        session.not_compared += 1
        print(f"  not compared from event {session.event} on: {why}")
        session.forget()
        return {}
    return {**session.kept, **found}


class Reducer:
    """Delta debugging: leaves out parts of the events, halves first, while the rest shows the same kind of difference."""

    def __init__(self, session, header, found, seconds):
        self.session, self.header, self.signature = session, header, found.signature()
        self.until = time.monotonic() + seconds
        self.best = None

    def shows(self, events):
        found = trial(self.session, self.header, events).get(self.signature)
        self.best = found or self.best
        return found is not None

    def reduced(self, events):
        """The shortest that was found in time; None if the events do not show it again."""
        if not self.shows(events):
            return None
        shorter = events[:self.best.seen_at + 1]
        if self.shows(shorter):
            events = shorter
        part = max(len(events) // 2, 1)
        while time.monotonic() < self.until:
            at, shorter = 0, False
            while at < len(events) and time.monotonic() < self.until:
                rest = events[:at] + events[at + part:]
                if rest and self.shows(rest):
                    events, shorter = rest, True
                else:
                    at += part
            if part == 1 and not shorter:
                break
            part = max(part // 2, 1)
        return events

