"""Faults that the module has had, and how a difference shows each: what --until-found looks for in a module that has them."""

import re

FLOATS = {"incrbyfloat", "hincrbyfloat"}
RANGE = {"zadd", "zincrby"}
STORING = {"georadius", "georadiusbymember"}


def stack_bytes(found):
    stock, module = found.whole
    return found.kind in ("answer", "state") and "\\x" in module and "\\x" not in stock and len(re.findall("[0-9]{300}", module)) > 0


def not_read_back(found):
    return found.name in FLOATS and found.stock[:1] == "'" and "not a" in found.module and "float" in found.module


def out_of_range(found):
    return found.kind == "answer" and found.stock.startswith("-ERR") and "float" in found.stock and not found.module.startswith("-")


def minus_zero(found):
    return found.kind in ("answer", "state") and "'-0'" in f"{found.stock} {found.module}" and (found.stock or "").replace("'-0'", "'0'") == (found.module or "").replace("'-0'", "'0'")


def keeps_time(found, names, commands):
    """A destination that has a time in the module alone. Of a whole episode it could be any command's, of a reduced one it is plain."""
    if len(commands) > 12:
        return False
    told = f"{found.stock} {found.module}"
    timed = found.kind == "state" and "ends at" in (found.module or "") and "ends at" not in found.stock
    timed |= found.kind == "answer" and found.name in ("ttl", "pttl", "expiretime", "pexpiretime") and ":-1" in told
    return timed and any(c[0].decode("latin-1").lower() in names for c in commands)


def told_of(found):
    return b" ".join(w for w in found.words if isinstance(w, bytes)).decode("latin-1")


# Row of the list, fault, and whether a difference shows it: of the difference, the user's rules, and the commands that led to it.
FAULTS = (
    ("B8", "a blocked BLMOVE is answered and stays blocked", lambda f, r, c: f.kind == "count" and f.name == "blmove"),
    ("B8", "the same of BRPOPLPUSH", lambda f, r, c: f.kind == "count" and f.name == "brpoplpush"),
    ("B9", "a user of some keys ends or hangs the server by a wrong arity", lambda f, r, c: f.kind in ("ended", "hang") and r != "default" and f.name != "restore"),
    ("B9", "MULTI queues a wrong arity", lambda f, r, c: "wrong number" in (f.stock or "") and f.module == "+QUEUED"),
    ("B10", "RESTORE of a changed payload ends the server", lambda f, r, c: f.kind == "ended" and f.name == "restore"),
    ("B11", "INCRBYFLOAT stores bytes of the stack", lambda f, r, c: stack_bytes(f) and any(w[0].lower() == b"incrbyfloat" for w in c)),
    ("B11", "HINCRBYFLOAT stores bytes of the stack", lambda f, r, c: stack_bytes(f) and any(w[0].lower() == b"hincrbyfloat" for w in c)),
    ("B11", "floats of more than 255 characters are not read back", lambda f, r, c: not_read_back(f)),
    ("B11", "ZADD takes numbers out of range", lambda f, r, c: out_of_range(f) and f.name == "zadd"),
    ("B11", "ZINCRBY takes numbers out of range", lambda f, r, c: out_of_range(f) and f.name == "zincrby"),
    ("B11", "WEIGHTS take numbers out of range", lambda f, r, c: out_of_range(f) and f.name in ("zunion", "zinter", "zunionstore", "zinterstore")),
    ("B11", "-0 is kept, or lost", lambda f, r, c: minus_zero(f)),
    ("B12", "GEOSEARCHSTORE keeps the destination's time", lambda f, r, c: keeps_time(f, {"geosearchstore"}, c)),
    ("B12", "GEORADIUS STORE keeps the destination's time", lambda f, r, c: keeps_time(f, STORING, c)),
    ("B12", "SHUTDOWN NOSAVE in a busy script commits half of it", lambda f, r, c: f.kind == "torn" and told_of(f).startswith("shutdown")),
    ("B12", "DEBUG RELOAD in EXEC tears it", lambda f, r, c: f.kind == "torn" and "DEBUG RELOAD" in told_of(f)),
    ("B12", "SORT STORE without the right to the destination", lambda f, r, c: f.kind == "rights" and f.name == "sort"),
    ("B13", "noeviction never refuses", lambda f, r, c: f.kind == "memory" and "noeviction" in told_of(f)),
    ("B13", "allkeys policies evict nothing", lambda f, r, c: f.kind == "memory" and "allkeys" in told_of(f)),
    ("B13", "a full pool under allkeys-lru refuses all", lambda f, r, c: f.kind == "memory" and f.name == "full"),
    ("B14", "SETRANGE far behind the end takes long", lambda f, r, c: f.kind == "slow" and f.name == "setrange"),
    ("B14", "SETBIT far behind the end takes long", lambda f, r, c: f.kind == "slow" and f.name == "setbit"),
)


class Search:
    """Which of the faults were seen, and when first."""

    def __init__(self):
        self.seen = {}

    def note(self, found, header, events, when):
        """`when`: (seconds, commands)."""
        rules = "default"
        if 0 <= found.event < len(events) and events[found.event][0] == "do":
            rules = header["clients"][events[found.event][1]][0]
        commands = [e[2] for e in events[:found.event + 1] if e[0] == "do"]
        before = len(self.seen)
        for number, (_, _, shows) in enumerate(FAULTS):
            if number not in self.seen and shows(found, rules, commands):
                self.seen[number] = when
        return len(self.seen) > before

    def is_complete(self):
        return len(self.seen) == len(FAULTS)

    def table(self):
        lines = ["| row | fault | seconds | commands |", "|---|---|---|---|"]
        for number, (row, fault, _) in enumerate(FAULTS):
            seconds, commands = self.seen.get(number, (None, None))
            lines.append(f"| {row} | {fault} | {'not found' if seconds is None else f'{seconds:.1f}'} | {'' if commands is None else commands} |")
        return "\n".join(lines)
