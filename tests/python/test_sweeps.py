"""Sweeps over many simulated machines: job lists, what a killed sweep and a killed worker leave, failing points, frames, plots, and the guide.

A command that writes down each start and holds some points back until it is told makes the moments of the kills the same in every run.
"""

import doctest
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
from unittest import mock

from stele import lab
from stele.lab.results import JOB_KEYS, ResultsFile, read_jobs
from stele.lab.sweep import connect

COMMAND = os.environ.get("STELE_COMMAND", "")
LIBRARIES = all(map(importlib.util.find_spec, ("distributed", "pandas", "matplotlib")))
AXES = ("--over", "l3.ways=4,16", "--over", "nonvolatile_memory.ranks=1,2", "--designs", "kiln,rlog")
HELD = "l3.ways=16"  # in the command line of each point that the command holds back
MOST_SECONDS = 120  # for what ends at once unless it is wrong


def until(condition):
    end = time.monotonic() + MOST_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("what the test waits for does not happen")
        time.sleep(0.02)


def runs(pid):
    """Whether a process runs. One that has ended stays in /proc until its parent, which may be a container's first process, asks for it."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@unittest.skipUnless(COMMAND, "STELE_COMMAND does not name the command")
class SweepCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tapes = tempfile.mkdtemp(prefix="stele-sweep-")
        cls.addClassCleanup(shutil.rmtree, cls.tapes)
        for seed, name in enumerate(("a.tape", "b.tape"), 1):
            subprocess.run([COMMAND, "tape", "record", "--kind", "native", "--workload", "hash", "--threads", "2", "--keys", "64", "--operations", "20", "--costs", "1",
                            "1", "1", "1", "--seed", str(seed), os.path.join(cls.tapes, name)], check=True)

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="stele-sweep-")
        self.addCleanup(shutil.rmtree, self.directory)
        for name in os.listdir(self.tapes):
            os.link(os.path.join(self.tapes, name), self.path(name))

    def path(self, name):
        return os.path.join(self.directory, name)

    def stele(self, *arguments):
        return subprocess.run([COMMAND, *arguments], cwd=self.directory, capture_output=True, text=True, timeout=MOST_SECONDS)

    def list_jobs(self, *arguments):
        done = self.stele("sim", "sweep", *arguments, "--out", "jobs.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def lines(self, name):
        with open(self.path(name)) as file:
            return [json.loads(line) for line in file]

    def start(self, *arguments):
        environment = dict(os.environ, TMPDIR=self.directory)
        process = subprocess.Popen([sys.executable, "-m", "stele.lab", *arguments], cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        return process

    def run_lab(self, *arguments):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=MOST_SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class JobLists(SweepCase):
    def test_has_every_combination_once(self):
        said = self.list_jobs("--set", "cores.count=4", "--over", "l3.ways=4,8,16", "--over", "l3.replacement=lru,random", "--designs", "kiln,rlog", "--tapes",
                              "a.tape,b.tape", "--seed", "7", "--warm-up", "3")
        self.assertEqual(said, "24 points in jobs.jsonl\n")
        jobs = self.lines("jobs.jsonl")
        self.assertEqual(jobs[0], {"machine": "kiln", "settings": {"cores.count": "4", "l3.ways": "4", "l3.replacement": "lru"}, "design": "kiln",
                                   "tape": "a.tape", "seed": 7, "warm_up": 3})
        points = {(job["settings"]["l3.ways"], job["settings"]["l3.replacement"], job["design"], job["tape"]) for job in jobs}
        self.assertEqual(points, {(w, r, d, t) for w in ("4", "8", "16") for r in ("lru", "random") for d in ("kiln", "rlog") for t in ("a.tape", "b.tape")})
        self.assertEqual(len(jobs), 24)

    def test_a_wrong_point_leaves_no_list(self):
        for wrong, sentence in ((("--over", "l3.ways=4,8", "--over", "l3.waiys=4"), "there is no key 'l3.waiys'; the nearest right one is 'l3.ways'"),
                                (("--over", "l3.ways=4,x"), "l3.ways=x"),
                                (("--over", "l3.nonvolatile=true,false", "--designs", "rlog,kiln"), 'the point kiln, {"l3.nonvolatile":"false"}'),
                                (("--over", "l3.ways=4,8,4"), "the values of l3.ways: '4' is given twice"),
                                (("--over", "l3.ways=4", "--set", "l3.ways=8"), "the keys of the sweep: 'l3.ways' is given twice"),
                                (("--over", "design.name=kiln,rlog"), "--designs"),
                                (("--over", "l3.ways=4", "--tapes", "none.tape"), "cannot read the tape none.tape")):
            done = self.stele("sim", "sweep", "a.tape", *wrong, "--out", "jobs.jsonl")
            self.assertEqual((done.returncode, done.stdout), (1, ""), wrong)
            self.assertIn(sentence, done.stderr)
            self.assertFalse(os.path.exists(self.path("jobs.jsonl")), wrong)

    def test_several_axes_without_a_list_are_refused(self):
        done = self.stele("sim", "sweep", "a.tape", "--over", "l3.ways=4", "--over", "l2.ways=4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--out FILE", done.stderr)


class Points(unittest.TestCase):
    def test_are_told_apart_by_each_key_of_a_job(self):
        job = {"machine": "kiln", "settings": {"l3.ways": "4"}, "design": "kiln", "tape": "a.tape", "seed": 1, "warm_up": 0}
        others = {"machine": "dp2", "settings": {"l3.ways": "8"}, "design": "rlog", "tape": "b.tape", "seed": 2, "warm_up": 5}
        self.assertEqual(tuple(job), JOB_KEYS)
        jobs = [job] + [job | {key: value} for key, value in others.items()]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for each in jobs + jobs:
                file.write(json.dumps(each) + "\n")
            file.flush()
            self.assertEqual(read_jobs(file.name), jobs)


@unittest.skipUnless(LIBRARIES, "dask.distributed, pandas and matplotlib are not installed (tools/deps --deep)")
class Sweeps(SweepCase):
    def setUp(self):
        super().setUp()
        self.command = self.path("command")
        with open(self.command, "w") as file:
            file.write(f'#!/bin/sh\necho "$$ $PPID $*" >>started\ncase "$*" in *{HELD}*) while [ ! -e go ]; do sleep 0.02; done;; esac\n'
                       f'exec {shlex.quote(COMMAND)} "$@"\n')
        os.chmod(self.command, 0o755)
        self.list_jobs("a.tape", *AXES)
        self.sweep = ("sweep", "jobs.jsonl", "--out", "results.jsonl", "--command", self.command, "--workers", "2")

    def started(self):
        """The starts of the command, each as its process, the worker's and its arguments."""
        if not os.path.exists(self.path("started")):
            return []
        with open(self.path("started")) as file:
            return [(int(pid), int(worker), arguments) for pid, worker, arguments in (line.split(" ", 2) for line in file.read().splitlines())]

    def release(self):
        with open(self.path("go"), "w"):
            pass

    def finished(self):
        return self.lines("results.jsonl") if os.path.exists(self.path("results.jsonl")) else []

    def held(self):
        return [start for start in self.started() if HELD in start[2]]

    def expect_every_point_once(self):
        self.assertCountEqual([record["job"] for record in self.lines("results.jsonl")], self.lines("jobs.jsonl"))

    def test_a_killed_sweep_goes_on_where_it_was(self):
        first = self.start(*self.sweep)
        until(lambda: self.held() and len(self.finished()) >= 2)
        first.kill()
        first.wait()
        until(lambda: not any(runs(pid) for start in self.started() for pid in start[:2]))  # workers and their commands
        before, starts = self.lines("results.jsonl"), self.started()
        self.assertLess(len(before), 8)
        with open(self.path("results.jsonl"), "a") as file:
            file.write('{"job": {"machine": "ki')  # as a write that was cut off
        self.release()
        second = self.run_lab(*self.sweep)
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertEqual(self.lines("results.jsonl")[:len(before)], before)
        self.expect_every_point_once()
        self.assertEqual(len(self.started()) - len(starts), 8 - len(before))
        third = self.run_lab(*self.sweep)
        self.assertEqual((third.returncode, third.stdout), (0, "all 8 points were there before\n"), third.stderr)

    def test_a_killed_worker_loses_no_point(self):
        sweep = self.start(*self.sweep)
        until(self.held)
        pid, worker, arguments = self.held()[0]
        self.assertNotEqual(worker, sweep.pid)
        os.kill(worker, signal.SIGKILL)
        until(lambda: not runs(pid))  # the command of a dead worker ends
        self.release()
        _, said = sweep.communicate(timeout=MOST_SECONDS)
        self.assertEqual(sweep.returncode, 0, said)
        self.expect_every_point_once()
        self.assertEqual([start[2] for start in self.started()].count(arguments), 2)
        self.assertFalse([record for record in self.finished() if "error" in record])

    def test_a_failing_point_is_recorded_after_its_tries(self):
        self.release()
        jobs = self.lines("jobs.jsonl")
        jobs[2]["tape"] = "none.tape"
        with open(self.path("jobs.jsonl"), "w") as file:
            file.writelines(json.dumps(job) + "\n" for job in jobs)
        first = self.run_lab(*self.sweep, "--tries", "3")
        self.assertEqual(first.returncode, 1, first.stderr)
        self.assertIn("1 points of results.jsonl failed", first.stderr)
        self.assertEqual(sum("none.tape" in start[2] for start in self.started()), 3)
        self.expect_every_point_once()
        failed = [record for record in self.finished() if "error" in record]
        self.assertEqual(failed, [{"error": "cannot read the tape none.tape: No such file or directory", "job": jobs[2]}])

        again = self.run_lab(*self.sweep)
        self.assertEqual(again.returncode, 1, "failed points count when they were there before")
        self.assertEqual(len(self.started()), 7 + 3)
        frame = lab.load(self.path("results.jsonl"))
        self.assertEqual(list(frame[frame.simulated_ns.isna()].error), [failed[0]["error"]])
        self.assertEqual(sorted(frame["l3.ways"]), [4] * 4 + [16] * 4)
        lab.plot(frame, "l3.ways", "simulated_ns", "design")

        os.link(self.path("a.tape"), self.path("none.tape"))
        subprocess.run(["sed", "-i", '/^{"error"/d', self.path("results.jsonl")], check=True)  # as the guide says
        repaired = self.run_lab(*self.sweep)
        self.assertEqual(repaired.returncode, 0, repaired.stderr)
        self.assertEqual(len(self.started()), 7 + 3 + 1)
        self.expect_every_point_once()

    def test_a_cluster_runs_it_and_frames_and_plots_come_of_it(self):
        import distributed
        self.release()
        self.list_jobs("a.tape", "--over", "l3.ways=4", "--designs", "native")
        more = self.lines("jobs.jsonl")
        self.list_jobs("--set", "cores.count=16", "--tapes", "a.tape,b.tape", *AXES)
        with open(self.path("jobs.jsonl"), "a") as file:
            file.write(json.dumps(more[0]) + "\n")  # lists are joined; this one leaves two keys to the machine
        with distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=None) as cluster:
            done = self.run_lab("sweep", "jobs.jsonl", "--out", "results.jsonl", "--scheduler", cluster.scheduler_address, "--command", COMMAND)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_every_point_once()
        frame = lab.load(self.path("results.jsonl"))
        axes = ["machine", "cores.count", "l3.ways", "nonvolatile_memory.ranks", "design", "tape", "seed", "warm_up"]
        self.assertEqual((list(frame.columns[:len(axes)]), frame.attrs["axes"]), (axes, axes))
        self.assertEqual(list(frame["cores.count"]), [8] + [16] * 16)
        self.assertEqual(list(frame["l3.ways"]), [4] + [4] * 8 + [16] * 8)
        alone = json.loads(self.stele("sim", "run", "b.tape", "--set", "cores.count=16", "--set", "l3.ways=16", "--set", "nonvolatile_memory.ranks=2", "--design",
                                      "rlog", "--json", "-").stdout)
        row = frame.iloc[-1]
        self.assertEqual((row["l3.ways"], row["nonvolatile_memory.ranks"], row.design, row.tape), (16, 2, "rlog", "b.tape"))
        self.assertEqual({name: row[name] for name in alone["quantities"]}, {name: q["value"] for name, q in alone["quantities"].items()})
        self.expect_plots()

    def expect_plots(self):
        plot = ("plot", "results.jsonl", "--x", "l3.ways", "--y", "rate.transactions", "--by", "design", "--out")
        for name in ("one.svg", "two.svg"):
            done = self.run_lab(*plot, name)
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("one.svg")) as one, open(self.path("two.svg")) as two:
            text = one.read()
            self.assertEqual(text, two.read())
        self.assertTrue(xml.etree.ElementTree.fromstring(text).tag.endswith("svg"))
        self.assertIn("median and range over cores.count, nonvolatile_memory.ranks, tape", text)  # matplotlib writes each text as a comment too
        self.assertIn("rate.transactions (1/s)", text)
        done = self.run_lab(*plot[:5], "rate.transaction", *plot[6:], "three.svg")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no column 'rate.transaction'; the nearest is 'rate.transactions'", done.stderr)

    def test_refuses_in_sentences(self):
        with ResultsFile(self.path("results.jsonl")):
            done = self.run_lab(*self.sweep)
        self.assertEqual(done.returncode, 2)
        self.assertIn("another sweep is writing it", done.stderr)
        with open(self.path("results.jsonl"), "w") as file:
            file.write("{}\n")
        self.assertIn("results.jsonl:1: there is no 'job'", self.run_lab(*self.sweep).stderr)
        self.assertIn("there is no command nowhere", self.run_lab(*self.sweep[:4], "--command", "nowhere").stderr)
        with open(self.path("jobs.jsonl"), "a") as file:
            file.write("{nothing\n")
        self.assertIn("jobs.jsonl:9: not a line of JSON", self.run_lab(*self.sweep).stderr)
        self.assertEqual(self.started(), [])


@unittest.skipUnless(LIBRARIES, "dask.distributed, pandas and matplotlib are not installed (tools/deps --deep)")
class Guide(SweepCase):
    def test_what_it_shows_runs(self):
        with open(os.path.join(os.environ["STELE_SOURCE_DIR"], "docs/guide/lab-sweeps.md"), encoding="utf-8") as file:
            page = file.read()
        path = os.pathsep.join((os.path.dirname(COMMAND), os.path.dirname(sys.executable), os.environ["PATH"]))
        shell = "\n".join(re.findall(r"^```sh\n(.*?)^```", page, re.S | re.M))
        self.assertGreater(shell.count("\n"), 5)
        environment = dict(os.environ, PATH=path, TMPDIR=self.directory)
        del environment["STELE_COMMAND"]
        done = subprocess.run(["sh", "-ec", shell], cwd=self.directory, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(os.path.getsize(self.path("ways.svg")), 1000)
        python = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.S | re.M))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)
        example = doctest.DocTestParser().get_doctest(python, {}, "lab-sweeps.md", "lab-sweeps.md", 0)
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(example)
        self.assertEqual((runner.failures, runner.tries > 3), (0, True))


class Libraries(unittest.TestCase):
    def test_an_absent_one_is_named_when_it_is_needed(self):
        with mock.patch.dict(sys.modules, {"distributed": None, "pandas": None, "matplotlib": None, "matplotlib.figure": None}):
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                lab.load("no file")
            with self.assertRaisesRegex(ImportError, "pip install matplotlib"):
                lab.plot(None, "x", "y")
            with self.assertRaisesRegex(ImportError, r"pip install 'dask\[distributed\]'"):
                connect(1, None)


if __name__ == "__main__":
    unittest.main()
