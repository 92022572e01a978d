"""What the tests of the Python package share: a directory for pools, and Python processes that work on them."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import stele


class PoolCase(unittest.TestCase):
    """Has a directory for pools, in memory where the machine has such."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="stele-python-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(shutil.rmtree, self.directory)

    def path(self, name="pool"):
        return os.path.join(self.directory, name)

    def open(self, name="pool", size="8M", **options):
        pool = stele.open(self.path(name), size=size, **options)
        self.addCleanup(lambda: pool.closed or pool.close())
        return pool

    def open_kv(self, name="kv", size="8M", **options):
        kv = stele.KV(self.path(name), size=size, **options)
        self.addCleanup(lambda: kv.closed or kv.close())
        return kv

    def start(self, program, *arguments, stdin=False):
        """A Python process that runs the program's text; its standard output can be read, and its standard input be written if asked for."""
        process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE if stdin else None, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        return process
