"""The parts of the differential fuzzer: sequences by seed, answers counted and compared, files for --replay."""

import os
import tempfile
import unittest

from oracle import payload, replay, scenarios, session, wire
from oracle.grammar import Grammar
from oracle.judge import Judge


class Sequences(unittest.TestCase):
    def test_a_seed_gives_the_same_episode(self):
        words_of = Grammar()
        for number in range(20):
            self.assertEqual(scenarios.episode(words_of, 7, number, 100), scenarios.episode(words_of, 7, number, 100))
        self.assertNotEqual(scenarios.episode(words_of, 7, 0, 100), scenarios.episode(words_of, 8, 0, 100))

    def test_a_file_has_the_same_events(self):
        words_of = Grammar()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "episode.json")
            for number in range(100):
                header, events = scenarios.episode(words_of, 7, number, 100)
                replay.write(path, header, events)
                read = replay.read(path)
                self.assertEqual([list(c) for c in header["clients"]], read[0]["clients"])
                self.assertEqual(replay.encoded(events), replay.encoded(read[1]))
                self.assertEqual([e[2] for e in events if e[0] == "do"], [e[2] for e in read[1] if e[0] == "do"])


class Answers(unittest.TestCase):
    def test_ends_of_replies(self):
        for reply in (b"+OK\r\n", b"$-1\r\n", b"$2\r\n\r\n\r\n", b"*2\r\n:1\r\n*0\r\n", b"*-1\r\n", b"%1\r\n+a\r\n~1\r\n_\r\n", b",1.5\r\n",
                      b"|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n"):
            for size in range(len(reply)):
                self.assertEqual(wire.end_of(reply[:size], 0), -1)
            self.assertEqual(wire.end_of(reply + b"+next\r\n", 0), len(reply))
        with self.assertRaises(ValueError):
            wire.end_of(b"garbage\r\n", 0)

    def test_an_answer_too_many_is_the_command_s_that_gave_it(self):
        batch = session.Batch([(0, [b"GET", b"a"], ()), (1, [b"SET", b"a"], ()), (2, [b"GET", b"b"], ())])
        batch.marks, batch.sent = [b"$1\r\n1\r\n", None, b"$1\r\n2\r\n"], 5
        self.assertEqual(batch.parted([b":1\r\n", batch.marks[0], b":2\r\n", b":3\r\n", batch.marks[2]]), [[b":1\r\n"], [b":2\r\n"], [b":3\r\n"]])
        self.assertEqual(batch.parted([b":1\r\n", b":9\r\n", batch.marks[0], b":2\r\n", batch.marks[2]]), [[b":1\r\n", b":9\r\n"], [b":2\r\n"], []])

    def test_what_is_the_same(self):
        judge = Judge()
        one, other = b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", b"*2\r\n$1\r\nb\r\n$1\r\na\r\n"
        self.assertTrue(judge.same([b"SMEMBERS", b"t"], one, other))
        self.assertFalse(judge.same([b"LRANGE", b"l", b"0", b"-1"], one, other))
        self.assertFalse(judge.same([b"HGETALL", b"h"], one, other))
        in_exec = [([b"SMEMBERS", b"t"], ()), ([b"GET", b"a"], ())]
        self.assertTrue(judge.same([b"EXEC"], b"*2\r\n" + one + b":1\r\n", b"*2\r\n" + other + b":1\r\n", in_exec))
        self.assertFalse(judge.same([b"EXEC"], b"*2\r\n" + one + b":1\r\n", b"*2\r\n" + other + b":2\r\n", in_exec))
        self.assertTrue(judge.same([b"TTL", b"a"], b":99\r\n", b":100\r\n"))
        self.assertFalse(judge.same([b"TTL", b"a"], b":-1\r\n", b":100\r\n"))
        self.assertFalse(judge.same([b"GET", b"a"], b"$-1\r\n", b"*-1\r\n"))

    def test_no_line_covers_a_command(self):
        for rule in Judge().rules:
            self.assertFalse(rule.stock == "*" and rule.module == "*", rule.reason)

    def test_checksums(self):
        self.assertEqual(payload.sealed(b"123456789")[-8:], (0xE9C6D914C4B8D9CA).to_bytes(8, "little"))  # as Redis' crc64.c says


if __name__ == "__main__":
    unittest.main()
