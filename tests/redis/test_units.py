"""An EXEC and a script are there after a restart as a whole or not at all, however the server ends."""

import os
import resource
import time
import unittest

from beds import RedisCase, ServerError, ServerGone

BUSY = "local t = redis.call('time') while true do local u = redis.call('time') if u[1] - t[1] > {} then break end end "


class Units(RedisCase):
    def busy_server(self, *arguments):
        return self.server("size", "8M", *arguments, options=("--busy-reply-threshold", "20", "--enable-debug-command", "yes"))

    def until_busy(self, r):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                r("GET", "a")
            except ServerError as error:
                if str(error).startswith("BUSY"):
                    return
            time.sleep(0.01)
        self.fail("the server is not busy")

    def test_a_script_that_a_shutdown_ends_is_not_there(self):
        change = "redis.call('set', 'a', 'half') redis.call('del', 'list') redis.call('set', 'new', 1) "
        library = f"#!lua name=m\nredis.register_function('f', function() {change} {BUSY.format(30)} end)"
        for media in ("adr", "file"):
            server = self.busy_server("media", media)
            for begins in (("EVAL", change + BUSY.format(30), 0), ("MULTI",), ("FCALL", "f", 0)):
                r, other = server.client(), server.client()
                r("SET", "a", "whole")
                r("RPUSH", "list", "x")
                r("DEL", "new", "before")
                r("FUNCTION", "LOAD", "REPLACE", library)
                if begins == ("MULTI",):
                    r("MULTI")
                    r("SET", "before", 1)
                    r("EVAL", change + BUSY.format(30), 0)
                    begins = ("EXEC",)
                r.send(*begins)
                self.until_busy(other)
                other.send("SHUTDOWN", "NOSAVE")
                server.process.wait(20)
                self.assertEqual(server.process.returncode, 0)
                server.kill()
                r = server.start().client()
                self.assertEqual([r("GET", "a"), r("LLEN", "list"), r("EXISTS", "new", "before")], [b"whole", 1, 0], (media, begins))
                r("DEL", "list")
            server.kill()

    def test_an_exec_is_durable_though_a_stream_has_expired(self):
        """The stream, which is Redis' own, was taken for a key of the pool that nobody waits for."""
        r = self.server("size", "8M", "media", "file").client()  # a commit waits for a sync

        def syncs():
            return int(next(line for line in r("INFO", "everything").decode().splitlines() if line.startswith("stele_syncs")).partition(":")[2])

        for streams in range(3):
            for i in range(streams):
                r("XADD", f"s{i}", "*", "a", "b")
                r("PEXPIRE", f"s{i}", 5)
            end = time.monotonic() + 20
            while r("EXISTS", "s0", "s1") and time.monotonic() < end:
                time.sleep(0.01)
            r("SET", "k", "v")
            self.assertEqual(r("GET", "k"), b"v")
            r("MULTI")
            r("DEL", "k")
            self.assertEqual(r("EXEC"), [1])
            before = syncs()  # else the GET, which rests on the EXEC, waits for one
            self.assertIsNone(r("GET", "k"))
            self.assertEqual(syncs(), before, f"{streams} streams: the answer of the EXEC came before it was durable")

    def test_a_script_of_a_user_without_rights_can_be_killed(self):
        server = self.busy_server()
        r, user = server.client(), server.client()
        r("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-script", "-function")
        user("AUTH", "u", "x")
        user.send("EVAL", "while true do end", 0)
        self.until_busy(r)
        with self.assertRaisesRegex(ServerError, "BUSY"):
            r("FUNCTION", "KILL")  # it is no function
        self.assertEqual(r("SCRIPT", "KILL"), "OK")
        with self.assertRaisesRegex(ServerError, "Script killed"):
            user.answer()
        with self.assertRaisesRegex(ServerError, "not allowed from script"):
            user("EVAL", "return redis.call('script', 'kill')", 0)

    def test_a_reload_within_an_exec_is_part_of_it(self):
        server = self.busy_server()
        r = server.client()
        for i in range(1000):  # more than are one unit of a load
            r("SET", f"k{i}", "before")
        r("MULTI")
        r("SET", "k1", "after")
        r("DEBUG", "RELOAD")
        r("SET", "k2", "after")
        r("EVAL", BUSY.format(30), 0)
        r.send("EXEC")
        self.until_busy(server.client())
        server.kill()
        r = server.start().client()
        self.assertEqual([r("GET", "k1"), r("GET", "k2"), r("DBSIZE")], [b"before", b"before", 1000])
        r("MULTI")
        r("SET", "k1", "after")
        r("DEBUG", "RELOAD")
        r("SET", "k2", "after")
        self.assertEqual(r("EXEC"), ["OK", "OK", "OK"])
        server.kill()
        r = server.start().client()
        self.assertEqual([r("GET", "k1"), r("GET", "k2"), r("GET", "k999"), r("DBSIZE")], [b"after", b"after", b"before", 1000])

    def test_a_reload_that_is_killed_leaves_all_keys(self):
        server = self.server("size", "64M", options=("--enable-debug-command", "yes"))
        r = server.client()
        keys = 30000
        r("EVAL", f"for i = 1, {keys} do redis.call('SET', 'k' .. i, i) end return 1", 0)
        for pause in (0.02, 0.04, 0.06, 0.08, 0.1):
            r.send("DEBUG", "RELOAD")
            time.sleep(pause)
            server.kill()
            r = server.start().client()
            self.assertEqual([r("DBSIZE"), r("GET", "k1"), r("GET", f"k{keys}")], [keys, b"1", str(keys).encode()], pause)
        self.assertEqual(r("DEBUG", "RELOAD"), "OK")
        r("DEL", "k1")
        server.kill()
        r = server.start().client()
        self.assertEqual([r("DBSIZE"), r("GET", "k2")], [keys - 1, b"2"])

    def test_an_exec_before_a_busy_script_that_only_reads_is_kept(self):
        """Both are read in one turn of the server, and the answer to the EXEC leaves while the script runs."""
        library = f"#!lua name=m\nredis.register_function{{function_name='f', callback=function() {BUSY.format(3)} end, flags={{'no-writes'}}}}"
        server = self.busy_server()
        for number, script in enumerate((("EVAL", BUSY.format(3), 0), ("EVAL_RO", BUSY.format(3), 0), ("FCALL_RO", "f", 0))):
            r, other, sleeping = server.client(), server.client(), server.client()
            r("FUNCTION", "LOAD", "REPLACE", library)
            r("MULTI")
            r("SET", f"k{number}", 1)
            sleeping.send("DEBUG", "SLEEP", "0.3")
            time.sleep(0.1)
            r.send("EXEC")
            time.sleep(0.02)
            other.send(*script)
            try:
                told = r.answer()
            except ServerGone:
                told = None
            server.kill()
            r = server.start().client()
            if told is not None:
                self.assertEqual(r("GET", f"k{number}"), b"1", script)

    def debugged(self, server, mode):
        """What a debugger is answered for a script that sets a key."""
        debugger = server.client()
        self.assertEqual(debugger("SCRIPT", "DEBUG", mode), "OK")
        debugger.send("EVAL", "return redis.call('SET', 'a', 'debugged')", 0)
        debugger.answer()  # where it has stopped
        debugger.send("continue")
        self.assertEqual(debugger.answer(), ["<endsession>"])
        return str(debugger.answer_or_error())

    def test_a_script_that_is_debugged_in_a_child_uses_no_keys(self):
        server = self.server("size", "8M")
        r = server.client()
        r("SET", "a", "before")
        self.assertIn("use SCRIPT DEBUG SYNC", self.debugged(server, "YES"))
        self.assertEqual(r("GET", "a"), b"before")
        self.assertEqual(self.debugged(server, "SYNC"), "OK")
        self.assertEqual(r("GET", "a"), b"debugged")
        server.kill()
        self.assertEqual(server.start().client()("GET", "a"), b"debugged")

    def test_a_server_that_cannot_write_says_so_in_its_log(self):
        log = os.path.join(self.folder, "server.log")
        server = self.server("size", "8M", "media", "file", options=("--logfile", log), largest_file=1 << 30)  # ignores SIGXFSZ
        r = server.client()
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (32 << 10, 32 << 10))
        with self.assertRaises(ServerGone):
            for i in range(10000):
                r("SET", f"k{i}", "x" * 10000)
        self.assertEqual(server.process.wait(20), 1)
        with open(log) as text:
            self.assertRegex(text.read(), "<(stele|module)> stele: .*so the server ends.*")


if __name__ == "__main__":
    unittest.main()
