"""Events that are not compared answer by answer: memory limits, rights, payloads, times. Each says what must hold.

  ["probe", KEY, MUTATIONS]   the module restores a changed payload of its own: one answer, and whatever it takes can be read
  ["guarded", CLIENT, WORDS]  a user of some keys changes none but those
  ["memory", POLICY]          many values under a limit: refused, or older ones evicted, where stock does so
  ["full"]                    a pool that cannot grow, under allkeys-lru: new values come in for older ones
  ["large", WORDS]            one command on tens of megabytes; with --times: not much more of the processor than stock takes
"""

import fnmatch
import os
import time

from . import payload, state, wire
from .servers import Server

ALLOWED = ("*1", "by", "get", "limit", "store")  # what the user some_keys may use
PROBE = b"probe"
READS = [(b"TYPE",), (b"OBJECT", b"ENCODING"), (b"GET",), (b"GETRANGE", b"0", b"-1"), (b"HGETALL",), (b"HSCAN", b"0"), (b"LRANGE", b"0", b"-1"),
         (b"LINDEX", b"-1"), (b"LLEN",), (b"SMEMBERS",), (b"SSCAN", b"0"), (b"ZRANGE", b"0", b"-1", b"WITHSCORES"), (b"ZRANK", b"m1"),
         (b"ZRANGEBYSCORE", b"-inf", b"+inf"), (b"ZSCAN", b"0"), (b"SORT", b"ALPHA"), (b"DUMP",), (b"COPY", b"probe copy"), (b"LPOP", b"2"),
         (b"ZPOPMIN",), (b"APPEND", b"x"), (b"HSET", b"a", b"b"), (b"DEBUG", b"RELOAD")]
VALUES, VALUE_SIZE, LIMIT = 2000, 2000, 2 << 20
AT_ONCE = 20


class Limits:
    def do_probe(self, key, mutations):
        module = self.pair.module
        ask = self.control[module]
        dumped = self.of_server(module, lambda ask: ask.calls([(b"SELECT", b"0"), (b"DUMP", key.encode("latin-1"))])[1])
        if dumped[:1] != b"$" or dumped == b"$-1\r\n":
            return
        changed = payload.mutated(wire.text(wire.tree(dumped)[0]), mutations)
        words = (b"RESTORE", PROBE, b"0", changed, b"REPLACE")
        for asked in (words, *((r[0], PROBE, *r[1:]) if r[0] not in (b"OBJECT", b"DEBUG") else (*r, PROBE) if r[0] == b"OBJECT" else r for r in READS)):
            try:
                told = ask.call(*asked)
            except (wire.Gone, wire.Late) as why:
                self.failed(module, why, self.event, words)
            if asked is words and told[:1] == b"-":
                return
        self.of_server(module, lambda ask: ask.call("DEL", PROBE, "probe copy"))
        self.do_state()

    def do_guarded(self, number, words):
        """By the module first. Stock Redis 7.0 lets some through, so it gets only what the module has allowed."""
        client, module = self.clients[number], self.pair.module
        if client.rules != "some_keys" or client.was_reset or client.pending is not None or client.queue is not None:
            return
        if client.stock is None:
            self.open(client)
        self.do_state()  # reads both, so what has expired goes on both
        before = self.of_server(module, state.read)
        try:
            told = client.module.call(*words)
        except (wire.Gone, wire.Late) as why:
            self.failed(module, why, self.event, words)
        after = self.of_server(module, state.read)
        for where in set(before) | set(after):
            differs = state.difference({where: before.get(where)} if where in before else {}, {where: after.get(where)} if where in after else {})
            if differs and not any(fnmatch.fnmatchcase(where[1].decode("latin-1"), pattern) for pattern in ALLOWED):
                raise self.difference("rights", words, None, wire.show(told), f"a user of {' '.join(ALLOWED)} has changed {where[1]!r}")
        if not told.startswith(b"-NOPERM"):
            answer = client.stock.call(*words)
            if not self.is_same(words, answer, told):
                raise self.difference("answer", words, wire.show(answer), wire.show(told))

    def do_memory(self, policy):
        stock, module = [self.of_server(server, lambda ask: filled(ask, policy)) for server in (self.pair.stock, self.pair.module)]
        if (stock[0] > 0) != (module[0] > 0) or (stock[1] < VALUES) != (module[1] < VALUES):
            raise self.difference("memory", (policy.encode(),), "%d refused, %d keys" % stock, "%d refused, %d keys" % module)

    def do_full(self):
        """A server of its own."""
        module = self.pair.module
        if module.load[:1] != ["--loadmodule"]:
            return
        server = Server(self.pair.folder, f"full{time.monotonic_ns()}", module.program, module.load[1], ["size", "8M", "max_size", "8M"])
        try:
            server.start()
            ask = server.connect(60)
            ask.call("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru")
            told = ask.calls([("SET", f"key{i}", b"x" * 4000) for i in range(4000)])
            ask.close()
        finally:
            server.kill()
            os.unlink(os.path.join(server.folder, "pool"))
        refused = sum(t != b"+OK\r\n" for t in told[-100:])
        if refused:
            raise self.difference("memory", (b"full",), "evicts", f"{refused} of the last 100 values are refused: {wire.show(told[-1])}")

    def do_large(self, words):
        times = []
        for server in (self.pair.stock, self.pair.module):
            begun = server.seconds()
            self.of_server(server, lambda ask: ask.calls([(b"SELECT", b"0"), words]))
            times.append(server.seconds() - begun)
            self.of_server(server, lambda ask: ask.call("DEL", words[1]))
        if self.checks_times and times[1] > 0.3 and times[1] > 6 * times[0]:
            raise self.difference("slow", words, f"{times[0]:.2f} s", f"{times[1]:.2f} s")


def filled(ask, policy):
    """How many values were refused, and how many keys there are, at a limit of 2 MiB more than an empty server takes."""
    used = [line for line in wire.text(wire.tree(ask.calls([("FLUSHALL",), ("INFO", "memory")])[1])[0]).split(b"\r\n") if line.startswith(b"used_memory:")]
    ask.call("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", int(used[0][12:]) + LIMIT)
    refused = 0
    for first in range(0, VALUES, AT_ONCE):  # what a server has read of a client that waits counts, too
        refused += sum(t != b"+OK\r\n" for t in ask.calls([("SET", f"key{i}", b"x" * VALUE_SIZE) for i in range(first, first + AT_ONCE)]))
    keys = int(ask.call("DBSIZE")[1:])
    ask.calls([("CONFIG", "SET", "maxmemory", "0"), ("FLUSHALL",)])
    return refused, keys
