"""On a slow device: what a reader was told is there after a kill, whatever command it rests on."""

import os
import select
import time
import unittest

from beds import RedisCase

SLOW = os.environ.get("STELE_SLOW_SYNC", "")
MANY = [word for i in range(1500) for word in (f"many {i}", i)]

# What is there before; commands of clients of their own, none of which is waited for; what another client reads; and its answer if it
# sees the commands.
CASES = [
    ([("SET", "a", 1)], [("SET", "a", 2)], ("GET", "a"), b"2"),
    ([("SET", "a", 1)], [("RENAME", "a", "b")], ("GET", "b"), b"1"),
    ([("SET", "a", 1)], [("RENAME", "a", "b")], ("GET", "a"), None),
    ([("SET", "a", 1)], [("RENAMENX", "a", "b")], ("EXISTS", "b"), 1),
    ([("SET", "a", 1)], [("COPY", "a", "b")], ("GET", "b"), b"1"),
    ([("SET", "a", 1)], [("DEL", "a")], ("GET", "a"), None),
    ([("SET", "a", 1)], [("DEL", "a")], ("EXISTS", "a"), 0),
    ([("SET", "a", 1)], [("GETDEL", "a")], ("STRLEN", "a"), 0),
    ([("SET", "a", 1), ("SELECT", 1), ("SET", "a", 2)], [("SWAPDB", 0, 1)], ("GET", "a"), b"2"),
    ([("SET", "a", 1)], [("SWAPDB", 0, 1)], ("GET", "a"), None),
    ([("SET", "a", 1)], [("MOVE", "a", 1)], ("GET", "a"), None),
    ([("SET", "a", 1)], [("FLUSHDB",)], ("GET", "a"), None),
    ([("SET", "a", 1)], [("FLUSHALL",)], ("DBSIZE",), 0),
    ([("SET", "a", 1)], [("APPEND", "a", 1)], ("STRLEN", "a"), 2),
    ([("SET", "a", 1)], [("SETBIT", "a", 0, 1)], ("GETBIT", "a", 0), 1),
    ([("SET", "a", 1)], [("EXPIRE", "a", 1000)], ("TTL", "a"), 1000),
    ([("HSET", "h", "f", 1)], [("HSET", "h", "f", 2)], ("HGET", "h", "f"), b"2"),
    ([("HSET", "h", "f", 1)], [("HDEL", "h", "f")], ("HGET", "h", "f"), None),
    ([("RPUSH", "l", 1)], [("RPUSH", "l", 2)], ("LLEN", "l"), 2),
    ([("RPUSH", "l", 1)], [("LPOP", "l")], ("LLEN", "l"), 0),
    ([("SADD", "s", 1)], [("SADD", "s", 2)], ("SCARD", "s"), 2),
    ([("ZADD", "z", 1, "m")], [("ZINCRBY", "z", 1, "m")], ("ZSCORE", "z", "m"), b"2"),
    ([("ZADD", "z", 1, "m")], [("ZUNIONSTORE", "y", 1, "z")], ("ZCARD", "y"), 1),
    ([("PFADD", "p", 1)], [("PFADD", "p", 2)], ("PFCOUNT", "p"), 2),
    ([], [("MSET", *MANY), ("SET", "a", 1)], ("GET", "many 700"), b"700"),
    ([], [("MSET", *MANY), ("SET", "a", 1)], ("EXISTS", "many 1"), 1),
]


@unittest.skipUnless(SLOW, "STELE_SLOW_SYNC names no library")
class SlowDevice(RedisCase):
    def setUp(self):
        super().setUp()
        self.when = os.path.join(self.folder, "is slow")
        os.environ.update(LD_PRELOAD=SLOW, STELE_SLOW_SYNC_WHEN=self.when)
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("LD_PRELOAD", "STELE_SLOW_SYNC_WHEN")])

    def test_answers_rest_on_what_a_kill_leaves(self):
        early = 0
        for number, (before, commands, question, seen) in enumerate(CASES):
            server = self.server("size", "8M", "media", "file", name=f"pool {number}")
            r = server.client()
            for words in before:
                r(*words)
            with open(self.when, "w"):
                pass
            reader = server.client()
            reader("PING")
            for words in commands:
                server.client().send(*words)
                time.sleep(0.02)
            reader.send(*question)
            told = select.select([reader.socket], [], [], 0.04)[0]  # before the sync can have ended
            answer = reader.answer_or_error() if told else "no answer"
            server.kill()
            os.unlink(self.when)
            if answer == seen:
                early += 1
                server.start()
                found = server.client()(*question)
                self.assertEqual(found if question[0] != "TTL" else 1000 * (found > 0), seen, (commands, question))
        print(f"  {early} of {len(CASES)} answers came before the sync")


if __name__ == "__main__":
    unittest.main()
