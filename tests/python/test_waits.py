"""No thread waits with the interpreter's lock held: what would stand still is run beside processes that attach, and under a watch."""

import os
import shutil
import subprocess
import sys
import unittest

from beds import PoolCase

HERE = os.path.dirname(os.path.abspath(__file__))
WATCH = os.environ.get("STELE_GIL_WATCH", "")


class Waits(PoolCase):
    def run_beside_readers(self, scenario, kind):
        environment = dict(os.environ, LD_PRELOAD=WATCH) if WATCH else None
        try:
            ran = subprocess.run([sys.executable, os.path.join(HERE, "waits.py"), scenario, kind, self.directory], timeout=120, env=environment,
                                 capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            self.fail("it hangs")
        self.assertEqual(ran.returncode, 0, ran.stderr)

    @unittest.skipUnless(WATCH, "STELE_GIL_WATCH names no library")
    def test_the_watch_sees_a_wait(self):
        module = self.path("_stele.copy.so")
        shutil.copy(WATCH, module)
        for loader, status in (("CDLL", 0), ("PyDLL", 86)):  # without the interpreter's lock, and with it
            ran = subprocess.run([sys.executable, "-c", f"import ctypes, sys; ctypes.{loader}(sys.argv[1]).gil_watch_wait()", module],
                                 env=dict(os.environ, LD_PRELOAD=WATCH), capture_output=True, text=True, timeout=60)
            self.assertEqual((ran.returncode, "sched_yield" in ran.stderr), (status, status != 0), ran.stderr)

    def test_documents_are_read_while_a_with_waits_for_the_reader(self):
        self.run_beside_readers("with", "documents")

    def test_a_store_is_read_while_a_with_waits_for_the_reader(self):
        self.run_beside_readers("with", "kv")

    def test_documents_beside_processes_that_attach(self):
        self.run_beside_readers("all", "documents")

    def test_a_store_beside_processes_that_attach(self):
        self.run_beside_readers("all", "kv")
