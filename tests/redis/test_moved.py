"""The server's pool is removed, renamed or replaced: it answers to no change that nobody would find again, and says why."""

import os
import shutil
import time

from beds import RedisCase, ServerError, ServerGone


def replace(path):
    shutil.copyfile(path, path + ".new")
    os.replace(path + ".new", path)


MOVES = {"removed": os.remove, "renamed": lambda path: os.rename(path, path + ".old"), "replaced": replace}


class Moved(RedisCase):
    def changed_until_refused(self, server, r):
        """The values that may be there: what was acknowledged last, and one whose client was told nothing. Why there is no later one."""
        number, until = 0, time.monotonic() + 20
        while time.monotonic() < until:
            try:
                r("SET", "after", number + 1)
            except (ServerError, ServerGone) as error:
                told = [number] if isinstance(error, ServerError) else [number, number + 1]
                return [str(n).encode() if n else None for n in told], f"{error} {server.text()}"
            number += 1
            time.sleep(0.02)
        self.fail("changes are acknowledged for ever")

    def test_takes_no_change_a_second_later(self):
        for media in ("process", "file"):
            for name, move in MOVES.items():
                with self.subTest(name, media=media):
                    server = self.server("size", "8M", "media", media, name=f"{media} {name}")
                    r = server.client()
                    r("SET", "before", 1)
                    move(server.pool)
                    possible, why = self.changed_until_refused(server, r)
                    self.assertIn("while it was open", why)
                    server.kill()
                    if name != "renamed":
                        continue
                    os.rename(server.pool + ".old", server.pool)
                    server.start()
                    r = server.client()
                    self.assertEqual(r("GET", "before"), b"1")
                    self.assertIn(r("GET", "after"), possible)
