"""A Redis server with the module, and a client: what the tests of this folder need."""

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

MODULE = os.environ.get("STELE_REDIS_MODULE", "")
ALL_MECHANISMS = os.environ.get("STELE_REDIS_ALL", "")  # the laboratory's module
PROGRAM = os.environ.get("STELE_REDIS_SERVER", "redis-server")  # or that of a relative, as valkey-server


class ServerGone(Exception):
    pass


class ServerError(Exception):
    pass


class Client:
    """Commands and answers of one connection, in Redis' protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.read = self.socket.makefile("rb")

    def close(self):
        self.read.close()
        self.socket.close()

    def send(self, *words):
        parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))

    def answer(self):
        line = self.read.readline()
        if not line.endswith(b"\r\n"):
            raise ServerGone
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise ServerError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            text = self.read.read(int(rest) + 2)
            if len(text) != int(rest) + 2:
                raise ServerGone
            return text[:-2]
        if rest == b"-1" or kind == b"_":
            return None
        if kind in b",#(":  # of the newer protocol: a double, a truth, a large number
            return rest
        told = [self.answer_or_error() for _ in range(int(rest) * (2 if kind == b"%" else 1))]
        for error in told:
            if isinstance(error, ServerError):
                raise error
        return told

    def answer_or_error(self):
        try:
            return self.answer()
        except ServerError as error:
            return error

    def answers(self, lines):
        """Sends all commands at once. Their answers; an error is one too."""
        for words in lines:
            self.send(*words)
        return [self.answer_or_error() for _ in lines]

    def __call__(self, *words):
        try:
            self.send(*words)
            return self.answer()
        except OSError:
            raise ServerGone from None


class Server:
    """A restart takes another port, unless others know the server by its port."""

    ports = 20000, 30000  # below those that Linux gives to clients

    def __init__(self, folder, *arguments, pool=True, module=None, options=(), name="pool", largest_file=None, keeps_port=False):
        self.folder, self.arguments, self.options, self.largest_file = folder, arguments, options, largest_file
        self.port, self.keeps_port, self.module = None, keeps_port, module
        self.pool = os.path.join(folder, name) if pool else None
        self.log = os.path.join(folder, f"{name}.log")
        self.process = None
        self.clients = []

    def limit_files(self):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so the call fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest_file, self.largest_file))

    def start(self, expects=True):
        command, is_known = None, self.port is not None
        for _ in range(20):  # another program may take the port
            if not self.keeps_port or self.port is None:
                self.port = random.randrange(*self.ports)
            command = [PROGRAM, "--port", str(self.port), "--save", "", "--dir", self.folder, *self.options]
            if self.pool:
                command += ["--loadmodule", self.module or MODULE, "path", self.pool, *self.arguments]
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                preexec_fn=self.limit_files if self.largest_file else None)
            for _ in range(500):
                if self.process.poll() is not None:
                    break
                try:
                    with contextlib.closing(Client(self.port)) as asking:
                        asking("PING")
                        if b"process_id:%d\r" % self.process.pid in asking("INFO", "server"):  # not another's port
                            return self
                    time.sleep(0.02)
                except (OSError, ServerGone, ServerError):
                    time.sleep(0.02)
            if not expects:
                return self
            self.kill()
            if "Address already in use" not in self.text():
                break
            if not is_known:
                self.port = None
            time.sleep(0.05)
        raise AssertionError(f"the server does not start: {self.text()[-2000:]}")

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def failed_assertions(self):
        return [line for line in self.text().splitlines() if "assertion failed:" in line] if os.path.exists(self.log) else []

    def client(self):
        client = Client(self.port)
        self.clients.append(client)
        return client

    def kill(self, how=signal.SIGKILL):
        while self.clients:
            self.clients.pop().close()
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None


@unittest.skipUnless(MODULE and os.path.exists(MODULE), "the module is not built")
@unittest.skipUnless(shutil.which(PROGRAM), f"there is no {PROGRAM}")
class RedisCase(unittest.TestCase):
    where = "/dev/shm" if os.path.isdir("/dev/shm") else None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stele-redis-", dir=self.where)
        if not os.environ.get("STELE_REDIS_KEEP"):
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def server(self, *arguments, **more):
        server = Server(self.folder, *arguments, **more)
        self.addCleanup(lambda: self.assertEqual(server.failed_assertions(), []))
        self.addCleanup(server.kill)
        return server.start()
