"""What a child saves (BGSAVE, a full sync, an AOF rewrite) is what there was when it began, whatever commands run meanwhile. What a server
loads is kept, or refused."""

import os
import shutil
import signal
import tempfile
import time
import unittest

from beds import MODULE, PROGRAM, RedisCase, ServerGone
from oracle import draw, grammar, servers, state

COMMANDS = 300  # before the child begins, and while it saves
EPISODES = int(os.environ.get("STELE_REDIS_CHILDREN", "6"))


@unittest.skipUnless(MODULE and os.path.exists(MODULE), "the module is not built")
@unittest.skipUnless(shutil.which(PROGRAM), f"there is no {PROGRAM}")
class Children(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stele-redis-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.seed = int(os.environ.get("STELE_SEED", "1"))
        self.forms = grammar.Grammar()
        self.beside = 0  # episodes in which the child saved until all commands had run

    def server(self, name):
        server = servers.Server(self.folder, name, PROGRAM, MODULE, ("size", "16M"))
        self.addCleanup(server.kill)
        return server

    def commands(self, rng):
        """Such as change or read values: of one client, and complete in themselves."""
        made = []
        while len(made) < COMMANDS:
            words = self.forms.some(rng)
            ends_child = words[0].lower() == b"flushall"
            if not ends_child and words[0].lower() not in grammar.BLOCKING and all(isinstance(w, bytes) for w in words):
                made.append(words)
        return made

    def saved(self, rng, name):
        """What a server has when its child begins, and what another one loads of the file."""
        server = self.server(name)
        server.start()
        ask = server.connect(30)
        ask.calls(self.commands(rng))
        ask.calls([("SELECT", 0), *[("SET", f"other {i}", i) for i in range(40)]])  # so that the child takes a second
        then = state.read(ask)
        ask.calls([("SELECT", 0), ("CONFIG", "SET", "rdb-key-save-delay", 25_000)])  # microseconds
        self.assertIn(b"started", ask.call("BGSAVE"))
        ask.calls(self.commands(rng))
        self.beside += b"rdb_bgsave_in_progress:1" in ask.call("INFO", "persistence")
        while b"rdb_bgsave_in_progress:1" in ask.call("INFO", "persistence"):
            time.sleep(0.02)
        self.assertIn(b"rdb_last_bgsave_status:ok", ask.call("INFO", "persistence"))
        ask.close()
        server.kill()
        other = self.server(name + " loaded")
        shutil.copy(os.path.join(server.folder, "dump.rdb"), other.folder)
        other.start()
        loaded = other.connect(30)
        found = state.read(loaded)
        loaded.close()
        other.kill()
        return then, found

    def test_save_what_was_there_when_they_began(self):
        for episode in range(EPISODES):
            seed = f"{self.seed} {episode}"
            then, found = self.saved(draw.Draw(seed), f"server {episode}")
            self.assertIsNone(state.difference(then, found), f"STELE_SEED={self.seed}, episode {episode}")
        self.assertGreater(self.beside, 0, "no child saved as long as commands ran")


class Hidden(RedisCase):
    """Commands that tell the elements of a value of Redis' own, which rename-command has taken away."""

    FILL = {"GET": ("SET", "text", "x"), "HGETALL": ("HSET", "hash", "f", "v"), "LRANGE": ("RPUSH", "list", 1, 2), "SMEMBERS": ("SADD", "set", 1),
            "ZRANGE": ("ZADD", "ranking", 1, "m")}

    def test_a_loaded_file_is_refused_and_kept(self):
        plain = self.server(pool=False, name="plain").client()
        for words in self.FILL.values():
            plain(*words)
        plain("SAVE")
        for name, (_, key, *_) in self.FILL.items():
            server = self.server("size", "8M", name=name)
            server.kill()
            os.unlink(server.pool)
            server.options = ("--rename-command", name, "")
            server.start(expects=False)
            self.assertEqual(server.process.wait(20), 1, name)
            self.assertIn(f"takes no {name}; start it without a rename-command of that", server.text())
            server.kill()
            server.options = ()
            r = server.start().client()
            self.assertEqual(r("EXISTS", key), 1, key)
            self.assertIn(b"stele_durable_keys:5\r\n", r("INFO", "stele"))
            server.kill()

    def test_a_lent_value_is_kept(self):
        server = self.server("size", "8M")
        r = server.client()
        r("GEOADD", "places", 1, 1, "a", 2, 2, "b")
        server.kill(signal.SIGTERM)
        server.options = ("--rename-command", "ZRANGE", "")
        r = server.start().client()
        with self.assertRaises(ServerGone):
            r("GEOADD", "places", 3, 3, "a")
        server.kill()
        self.assertIn("takes no ZRANGE", server.text())
        server.options = ()
        self.assertEqual(server.start().client()("ZRANGE", "places", 0, -1), [b"a", b"b"])


if __name__ == "__main__":
    unittest.main()
