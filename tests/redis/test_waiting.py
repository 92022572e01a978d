"""Clients that wait for a key: each gets one answer, the one that a server without the module gives."""

import itertools
import time
import unittest

from beds import RedisCase, ServerError

LIST, RANKING = ("RPUSH", "key", "one", "two"), ("ZADD", "key", 1, "one", 2, "two")
# What a client sends, and what it waits for: in `key`, perhaps beside another.
WAITS = (
    (("BLPOP", "key"), LIST), (("BRPOP", "other", "key"), LIST), (("BLPOP", "key", "other"), LIST),
    (("BLMOVE", "key", "to", "LEFT", "RIGHT"), LIST), (("BLMOVE", "key", "key", "RIGHT", "LEFT"), LIST),
    (("BRPOPLPUSH", "key", "to"), LIST),
    (("BLMPOP", "TIMEOUT", 2, "other", "key", "RIGHT", "COUNT", 2), LIST), (("BLMPOP", "TIMEOUT", 1, "key", "LEFT"), LIST),
    (("BZPOPMIN", "key", "other"), RANKING), (("BZPOPMAX", "other", "key"), RANKING),
    (("BZMPOP", "TIMEOUT", 2, "other", "key", "MAX", "COUNT", 3), RANKING),
)
# What others do meanwhile. FILL makes what the client waits for.
FILL = "FILL"
EVENTS = (
    ["FILL"], ["FILL other"], ["SET key x"], ["HSET key a 1"], ["SADD key a"], ["XADD key 1-1 a 1"], ["PFADD key a"],
    ["SET key x", "DEL key", "FILL"], ["SET key x", "SET key y", "DEL key", "FILL"], ["SET other x", "FILL"],
    ["XADD other 1-1 a 1", "FILL"], ["SET key x", "FILL other"], ["SET to x", "FILL"], ["XADD to 1-1 a 1", "FILL"],
    ["SET key x PX 1", "SLEEP", "FILL"], ["SET to x PX 1", "SLEEP", "FILL"], ["FILL made", "RENAME made key"],
    ["SET made x", "RENAME made key"], ["FILL made", "COPY made key"], ["SET key x", "FILL made", "COPY made key REPLACE"],
    ["SELECT 1", "FILL", "MOVE key 0", "SELECT 0"], ["SELECT 1", "FILL", "SWAPDB 0 1", "SELECT 0"],
    ["SELECT 1", "SET key x", "SWAPDB 0 1", "SELECT 0"], ["FLUSHALL"], ["FILL made", "SORT made STORE key ALPHA"],
    ["ZADD made 1 a", "ZUNIONSTORE key 1 made"], ["ZADD made 1 a", "ZRANGESTORE key made 0 -1"], ["SADD made a", "SUNIONSTORE key made"],
    ["GEOADD made 1 1 a", "GEOSEARCHSTORE key made FROMLONLAT 1 1 BYRADIUS 1 km"], ["SET made x", "BITOP NOT key made"],
    ["MULTI", "FILL", "DEL key", "EXEC"], ["MULTI", "SET key x", "DEL key", "FILL", "EXEC"], ["MULTI", "FILL", "SET to x", "EXEC"],
    ["MULTI", "FILL", "FILL other", "EXEC"], ["MULTI", "FILL other", "FILL", "EXEC"], ["MULTI", "FILL", "DEL key", "SET key x", "EXEC"],
    ["MULTI", "FILL", "RENAME key made", "EXEC"], ["MULTI", "SET key x", "FILL other", "EXEC"], ["SCRIPT FILL"],
    ["SCRIPT FILL DEL"], ["SCRIPT SET"], ["UNBLOCK TIMEOUT"], ["UNBLOCK ERROR"], ["SET key x", "UNBLOCK TIMEOUT"],
    ["SET key x", "SET to x", "UNBLOCK ERROR"], ["DUMPED FILL"], ["DUMPED SET"], ["FILL", "FILL"],
)
SCRIPTS = {"FILL": "redis.call(unpack(ARGV))", "FILL DEL": "redis.call(unpack(ARGV)) redis.call('del', 'key')",
           "SET": "redis.call('set', 'key', 'x')"}


class Waiting(RedisCase):
    def answer(self, ask, *words):
        try:
            return ask(*words)
        except ServerError as error:
            return "error", str(error).split()[0]

    def run_event(self, r, line, fill, waits):
        """One line of EVENTS. `waits`: the number of the client that waits."""
        first, _, rest = line.partition(" ")
        if first == "SLEEP":
            time.sleep(0.01)
        elif first == FILL:
            self.answer(r, fill[0], rest or "key", *fill[2:])
        elif first == "SCRIPT":
            self.answer(r, "EVAL", SCRIPTS[rest], 0, *fill)
        elif first == "UNBLOCK":
            self.answer(r, "CLIENT", "UNBLOCK", waits, rest)
        elif first == "DUMPED":
            self.answer(r, *(("SET", "made", "x") if rest == "SET" else (fill[0], "made", *fill[2:])))
            self.answer(r, "RESTORE", "key", 0, r("DUMP", "made"))
        else:
            self.answer(r, *line.split())

    def told(self, server, clients, words, events, fill, more=0):
        """What each of the clients that wait is told, and of a command that it sends afterwards; and what is left."""
        r = clients[0]
        r("FLUSHALL")
        waiting = clients[1:2 + more]
        numbers = [w("CLIENT", "ID") for w in waiting]
        for count, w in enumerate(waiting, 1):
            w.send(*words)
            self.until_blocked(r, count)
        for line in events:
            self.run_event(r, line, fill, numbers[0])
        r("PING")
        answers = []
        for number, w in zip(numbers, waiting):
            waited = r("CLIENT", "UNBLOCK", number)
            answers.append((waited, self.answer(w.answer), self.answer(w, "ECHO", "the next answer")))
        left = [(name, self.answer(r, "TYPE", name)) for name in sorted(r("KEYS", "*"))]
        return answers, left

    def until_blocked(self, r, count):
        end = time.monotonic() + 20
        while b"blocked_clients:%d\r\n" % count not in r("INFO", "clients"):
            self.assertLess(time.monotonic(), end, "no client waits")

    def beside(self, *arguments):
        servers = self.server("size", "8M", *arguments), self.server(pool=False, name="plain")
        return [(s, [s.client() for _ in range(3)]) for s in servers]

    def compare(self, *arguments, events=EVENTS, more=(0,)):
        beds = self.beside(*arguments)
        for (words, fill), lines, m in itertools.product(WAITS, events, more):
            words = ["0" if word == "TIMEOUT" else word for word in words]
            if words[1] != "0":
                words.append("0")
            ours, theirs = (self.told(*bed, words, lines, fill, m) for bed in beds)
            self.assertEqual(ours, theirs, f"{words} beside {lines}, {m + 1} wait")

    def test_get_one_answer_whatever_becomes_of_the_key(self):
        self.compare()

    def test_get_it_in_the_order_in_which_they_came(self):
        self.compare(events=[e for e in EVENTS if any(FILL in line for line in e)], more=(1,))

    def test_get_it_where_answers_wait_for_a_sync(self):
        self.compare("media", "file", events=[["FILL"], ["SET key x"], ["SET key x", "DEL key", "FILL"], ["SET to x", "FILL"],
                                              ["MULTI", "FILL", "SET to x", "EXEC"], ["SET key x", "UNBLOCK ERROR"]])

    def test_get_it_where_they_may_not_wait(self):
        beds = self.beside()
        for (words, _), before in itertools.product(WAITS, ((), ("SET", "key", "x"), ("SET", "other", "x"))):
            words = ["0.01" if word == "TIMEOUT" else word for word in words]
            if words[1] != "0.01":
                words.append("0.01")
            told = []
            for _, (r, *_) in beds:
                r("FLUSHALL")
                if before:
                    r(*before)
                r("MULTI")
                r(*words)
                answers = [self.raw(r, "EXEC"), self.raw(r, *words), self.raw(r, "EVAL", "return redis.pcall(unpack(ARGV))", 0, *words)]
                told.append((answers, r("ECHO", "next")))
            self.assertEqual(*told, (words, before))

    def raw(self, r, *words):
        """The first bytes of the answer: what kind of nothing it is."""
        r.send(*words)
        kind = r.read.peek(5)[:5]
        self.answer(r.answer)
        return kind


if __name__ == "__main__":
    unittest.main()
