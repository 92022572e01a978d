"""A server whose pool has grown by itself starts again after a clean end."""

import signal

from beds import RedisCase, Server

CHUNK, PAGE = 16384, 4096  # of pools from 4 MiB on


class Growth(RedisCase):
    def test_with_each_room_behind_the_last_chunk(self):
        for size in range(4 << 20, (4 << 20) + CHUNK, PAGE):
            with self.subTest(size=size):
                server = self.server("size", str(size), "verify", "always", name=f"pool-{size}")
                r = server.client()
                for n in range(160):
                    r("SET", f"k{n}", "x" * 100_000)
                for n in range(0, 160, 2):
                    r("SET", f"k{n}", "y" * 90_000)
                server.kill(signal.SIGTERM)
                server.start()
                r = server.client()
                self.assertEqual(r("DBSIZE"), 160)
                self.assertEqual([r("STRLEN", f"k{n}") for n in range(2)], [90_000, 100_000])
                server.kill()

    def test_with_what_a_server_does_by_default(self):
        server = self.server()
        r = server.client()
        for n in range(1000):
            r("SET", f"k{n}", "x" * 100_000)
        server.kill(signal.SIGTERM)
        server.start()
        self.assertEqual(server.client()("DBSIZE"), 1000)

    def test_verification_is_an_argument(self):
        server = Server(self.folder, "verify", "perhaps")
        self.addCleanup(server.kill)
        server.start(expects=False)
        self.assertIn("give auto, always or never", server.text())
