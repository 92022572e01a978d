"""A stock server and one with the module, in one private folder, by Unix sockets."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from . import wire

# Both have the same. Payloads are checked on both, since stock Redis crashes on unchecked ones.
OPTIONS = ("--port", "0", "--save", "", "--enable-debug-command", "yes", "--sanitize-dump-payload", "yes", "--databases", "4",
           "--maxmemory-eviction-tenacity", "100", "--busy-reply-threshold", "100", "--loglevel", "notice")
# A stock server in the place of the module's is to lose nothing by a kill.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: whatever ends the fuzzer


class Server:
    def __init__(self, folder, name, program, module=None, arguments=()):
        self.name, self.program = name, program
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        self.socket = os.path.join(self.folder, "socket")
        self.log = os.path.join(self.folder, "log")
        self.load = list(arguments) if module is None else ["--loadmodule", module, "path", os.path.join(self.folder, "pool"), *arguments]
        self.process = None

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        command = [self.program, "--unixsocket", self.socket, "--dir", self.folder, "--logfile", self.log, *OPTIONS, *self.load]
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=end_with_parent)
        until = time.monotonic() + 30
        while time.monotonic() < until and self.process.poll() is None:
            try:
                asking = self.connect(5)
                told = asking.call("PING")
                asking.close()
                if told == b"+PONG\r\n":
                    return
            except (OSError, wire.Gone, wire.Late):
                pass
            time.sleep(0.005)
        raise RuntimeError(f"the {self.name} server does not start: {self.tail()}")

    def connect(self, limit):
        return wire.Connection(self.socket, limit)

    def has_ended(self, limit=0.0):
        """How it ended, or None while it runs."""
        if self.process is None:
            return "was killed"
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"

    def seconds(self):
        """What it has taken of the processors."""
        with open(f"/proc/{self.process.pid}/stat") as told:
            fields = told.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def tail(self, lines=8):
        """What the log says of an end: the lines of a crash report that name the place, or its last ones."""
        try:
            with open(self.log, errors="replace") as log:
                told = log.read()[-60000:].splitlines()
        except FileNotFoundError:
            return "no log"
        named = [line for line in told if re.search(r"libstele_redis\.so\(|crashed by signal|ASSERTION|Internal error|Terminating|^stele: ", line)]
        return "\n".join((named or told)[-lines:])


class Pair:
    """Both servers. Used with `with`: they end whatever happens, and the folder goes."""

    def __init__(self, module, arguments, program="redis-server"):
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = tempfile.mkdtemp(prefix="stele-differential-", dir=base)
        self.stock = Server(self.folder, "stock", program)
        self.module = Server(self.folder, "module", program, module, arguments if module else DURABLE)

    def __enter__(self):
        try:
            self.stock.start()
            self.module.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in (self.stock, self.module):
            server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
