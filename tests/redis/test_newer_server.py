"""Commands that the module does not know: of a server that is newer, or that has given them other names."""

import os
import shutil
import time
import unittest

import beds
from beds import RedisCase, ServerError

NEWER = os.environ.get("STELE_REDIS_NEWER_SERVER", "valkey-server")


class Known(RedisCase):
    def test_all_commands_of_this_server_are(self):
        self.assertNotIn("are refused", self.server("size", "8M").text())

    def test_other_names_are_refused_at_load_if_they_write_values_of_the_pool(self):
        for names, loads in ((("HSET", "HFUTURE"), False), (("SETEX", "FUTURE", "PFADD", "PFFUTURE"), False), (("HSET", ""), True),
                             (("FLUSHALL", "WIPE", "KEYS", "", "RENAME", "NAMED", "XADD", "STREAM"), True)):
            options = [word for i in range(0, len(names), 2) for word in ("--rename-command", *names[i:i + 2])]
            server = beds.Server(self.folder, "size", "8M", options=options, name="-".join(names))
            self.addCleanup(server.kill)
            server.start(expects=loads)
            if not loads:
                self.assertRegex(server.text(), f"stele: the setting rename-command gives other names to .*{names[0].lower()}")
                continue
            r = server.client()
            r("SET", "text", "x")
            if "WIPE" in names:  # Redis tells what these have done
                r("NAMED", "text", "other")
                server.kill()
                r = server.start().client()
                self.assertEqual(r("GET", "other"), b"x")
                r("WIPE")
                server.kill()
                self.assertEqual(server.start().client()("DBSIZE"), 0)

    def test_values_that_come_with_a_slot_are_kept(self):
        plain, server = self.server(pool=False, name="plain").client(), self.server("size", "8M")
        plain("RPUSH", "list", 1, 2)
        r = server.client()
        self.assertEqual(r("RESTORE-ASKING", "list", 100000000, plain("DUMP", "list")), "OK")
        self.assertEqual(r("LRANGE", "list", 0, -1), [b"1", b"2"])
        server.kill()
        r = server.start().client()
        self.assertEqual(r("LRANGE", "list", 0, -1), [b"1", b"2"])
        self.assertGreater(r("TTL", "list"), 0)


@unittest.skipUnless(shutil.which(NEWER), f"there is no {NEWER}")
class NewerServer(RedisCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, beds, "PROGRAM", beds.PROGRAM)
        beds.PROGRAM = NEWER

    def test_what_is_acknowledged_is_kept(self):
        server = self.server("size", "8M")
        self.assertRegex(server.text(), "stele: this server is (Valkey|Redis) .*the module knows the commands of Redis 7.0")
        r = server.client()
        r("HSET", "hash", "f", "v")
        r("SET", "text", "x")
        for words in (("HSETEX", "new", "EX", 1000, "FIELDS", 1, "f", "v"), ("HSETEX", "hash", "EX", 1000, "FIELDS", 1, "f", "w"),
                      ("HEXPIRE", "hash", 1000, "FIELDS", 1, "f"), ("HGETDEL", "hash", "FIELDS", 1, "f"), ("HTTL", "hash", "FIELDS", 1, "f"),
                      ("MSETEX", 1, "new", "x"), ("DELIFEQ", "text", "x"), ("SET", "text", "y", "IFEQ", "x")):
            try:
                r(*words)
                self.fail(f"{words} is acknowledged")
            except ServerError as error:
                self.assertRegex(str(error), "is refused: the module knows|newer than the module|unknown command", words)
        left = sorted(r("KEYS", "*"))
        server.kill()
        r = server.start().client()
        self.assertEqual(sorted(r("KEYS", "*")), left)
        self.assertEqual([r("HGETALL", "hash"), r("GET", "text")], [[b"f", b"v"], b"x"])

    def test_a_replica_ends_rather_than_differ(self):
        master, replica = self.server(pool=False, name="master"), self.server("size", "8M")
        r, other = master.client(), replica.client()
        other("REPLICAOF", "127.0.0.1", master.port)
        while b"master_link_status:up" not in other("INFO", "replication"):
            time.sleep(0.05)
        r("HSETEX", "new", "FIELDS", 1, "f", "v")
        replica.process.wait(20)
        self.assertIn("HSETEX is refused", replica.text())

    def test_keys_of_other_types_are_answered(self):
        r = self.server("size", "8M").client()
        r("XADD", "stream", "1-1", "a", "b")
        for words in (("GETSET", "stream", "x"), ("GETDEL", "stream"), ("GET", "stream"), ("LPUSH", "stream", "x")):
            with self.assertRaisesRegex(ServerError, "^WRONGTYPE"):
                r(*words)


if __name__ == "__main__":
    unittest.main()
