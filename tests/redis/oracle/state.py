"""All that a server has: each key of each database, with its type, its value and when it ends."""

from . import wire

DATABASES = 4
LATER_MS = 1500
READS = {b"+string": (b"GET",), b"+hash": (b"HGETALL",), b"+list": (b"LRANGE", b"0", b"-1"), b"+set": (b"SMEMBERS",),
         b"+zset": (b"ZRANGE", b"0", b"-1", b"WITHSCORES"), b"+stream": (b"XRANGE", b"-", b"+")}


def read(connection):
    """{(database, key): (type, value, when)}, by a connection of the default user, in RESP2."""
    state = {}
    asked = [words for db in range(DATABASES) for words in ((b"SELECT", b"%d" % db), (b"KEYS", b"*"))]
    for db, told in enumerate(connection.calls(asked)[1::2]):
        keys = [wire.text(n) for n in wire.elements(told)]
        if not keys:
            continue
        told = connection.calls([(b"SELECT", b"%d" % db), *[(name, key) for key in keys for name in (b"TYPE", b"PEXPIRETIME")]])[1:]
        kinds = [t.strip() for t in told[::2]]
        values = connection.calls([(READS[kind][0], key, *READS[kind][1:]) if kind in READS else (b"TYPE", key) for kind, key in zip(kinds, keys)])
        for key, kind, when, value in zip(keys, kinds, told[1::2], values):
            if kind != b"+none":
                # Stock keeps the sign of a zero only in a sorted set that has long or many elements.
                value = value.replace(b"\r\n$2\r\n-0\r\n", b"\r\n$1\r\n0\r\n") if kind == b"+zset" else value
                state[db, key] = kind, unordered(kind, value), int(when[1:])
    return state


def let_go(connection):
    """Deletes what has expired, which DBSIZE counts until a command meets it: KEYS passes over it, SCAN deletes it."""
    for db in range(DATABASES):
        cursor = b"0"
        while True:
            cursor = wire.text(wire.elements(connection.calls([(b"SELECT", b"%d" % db), (b"SCAN", cursor, b"COUNT", b"1000")])[1])[0])
            if cursor == b"0":
                break


def unordered(kind, value):
    if kind not in (b"+set", b"+hash") or value[:1] != b"*":
        return value
    nodes = wire.tree(value)[0][1]
    return sorted(zip(nodes[::2], nodes[1::2]) if kind == b"+hash" else nodes)


def difference(stock, module, later_ms=LATER_MS):
    """The first key that differs, as (database, key, what stock has, what the module has); None: no key."""
    for where in sorted(set(stock) | set(module)):
        a, b = stock.get(where), module.get(where)
        if a is None or b is None or a[:2] != b[:2] or (a[2] < 0) != (b[2] < 0) or abs(a[2] - b[2]) > later_ms:
            return where[0], where[1], a, b
    return None


def aspect(stock, module):
    """In what two entries differ, roughly."""
    kinds = [entry[0][1:].decode() if entry else "none" for entry in (stock, module)]
    timed = stock and module and stock[:2] == module[:2]
    return " ".join(kinds) + (" time" if timed else "")


def show(entry, most=300):
    if entry is None:
        return "no such key"
    kind, value, when = entry
    told = wire.show(value, most) if isinstance(value, bytes) else repr(value)[:most]
    return f"{kind[1:].decode()} {told}" + (f", ends at {when}" if when >= 0 else "")
