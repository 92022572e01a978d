"""Runs the points of a job list on Dask, on processes of this machine or on a cluster.

Invariants: a point is recorded at most once, by the process that called run(), and on the medium before it counts as finished. A
worker that dies costs nothing but time: its points run again, and the commands that it had started end with it. A point that fails by
itself is recorded with its error once it has failed in each of its tries.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from .libraries import library
from .results import ResultsFile, SweepError, identity, read_jobs

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _end_with_worker():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_point(job, command, folder):
    """Runs on a worker. Gives {"result": the report} or {"error": a sentence}. Raises OSError when the command cannot be started."""
    arguments = [command, "sim", "run", job["tape"], "--machine", job["machine"], "--design", job["design"], "--seed", str(job["seed"]),
                 "--warm-up", str(job["warm_up"]), "--json", "-"]
    for key, value in job["settings"].items():
        arguments += ["--set", f"{key}={value}"]
    done = subprocess.run(arguments, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          preexec_fn=_end_with_worker, start_new_session=True)  # its own session: ^C is for the sweep
    if done.returncode < 0:
        return {"error": f"{command} was ended by {signal.Signals(-done.returncode).name}"}
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"{command} ended with status {done.returncode}"]
        return {"error": said[-1].removeprefix("stele: ")}
    return {"result": json.loads(done.stdout)}


def find_command(command):
    """The stele-lab command: as given, from STELE_COMMAND, or on the path."""
    names = [command] if command else [os.environ.get("STELE_COMMAND"), "stele-lab", "stele"]
    for name in filter(None, names):
        if found := shutil.which(name):
            return os.path.abspath(found)
    raise SweepError(f"there is no command {command or 'stele-lab'}; build it (make build), then name it with --command")


class Progress:
    def __init__(self, count):
        self.count, self.finished, self.failed, self.watched = count, 0, 0, sys.stderr.isatty()
        self.show()

    def show(self):
        if self.watched:
            failed = f", {self.failed} failed" if self.failed else ""
            print(f"\r\033[K{self.finished + self.failed} of {self.count} points{failed}", end="", file=sys.stderr, flush=True)

    def say(self, sentence):
        print(("\r\033[K" if self.watched else "") + sentence, file=sys.stderr, flush=True)
        self.show()

    def clear(self):
        if self.watched:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Sweep:
    """The points of a list that are not in the results yet, on a Dask client."""

    def __init__(self, client, jobs, results, command, tries):
        self.distributed = library("distributed", "a sweep")
        self.client, self.results, self.command, self.tries = client, results, command, tries
        self.jobs, self.failures = {}, {}  # jobs of futures in flight; failures of a point
        self.progress = Progress(len(jobs))
        self.running = self.distributed.as_completed([self.submit(job) for job in jobs])

    def submit(self, job):
        future = self.client.submit(run_point, job, self.command, os.getcwd(), key=f"point-{uuid.uuid4()}", pure=False)
        self.jobs[future.key] = job
        return future

    def run(self):
        for future in self.running:
            job = self.jobs.pop(future.key)
            if future.status == "lost":  # finished, but the worker died before the result was read
                self.running.add(self.submit(job))
                continue
            outcome = self.outcome(future)
            if "error" in outcome:
                self.failed(job, outcome["error"])
            else:
                self.results.append({"job": job, **outcome})
                self.progress.finished += 1
            self.progress.show()
        self.progress.clear()

    def outcome(self, future):
        """What run_point() gave. Raises SweepError for what is no fault of the point."""
        try:
            return future.result()
        except self.distributed.scheduler.KilledWorker:
            return {"error": "its worker died again and again while the point was there"}
        except self.distributed.CancelledError as e:
            raise SweepError("the scheduler has gone, or gave a point up; run the sweep again to go on") from e
        except Exception as e:
            raise SweepError(f"a worker cannot run {self.command}: {e}") from e

    def failed(self, job, error):
        point = identity(job)
        self.failures[point] = self.failures.get(point, 0) + 1
        if self.failures[point] < self.tries:
            return self.running.add(self.submit(job))
        self.results.append({"error": error, "job": job})
        self.progress.failed += 1
        self.progress.say(f"a point failed: {error}\n  {point}")


def connect(workers, scheduler):
    """A Dask client of the scheduler at this address, or of so many processes of this machine. Closing it ends the processes."""
    distributed = library("distributed", "a sweep")
    if scheduler:
        try:
            return distributed.Client(scheduler)
        except (OSError, ValueError) as e:
            raise SweepError(f"no Dask scheduler answers at {scheduler}: {e}") from e
    return distributed.Client(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
                              local_directory=tempfile.gettempdir())


def run(job_list, out, workers=None, scheduler=None, command=None, tries=2):
    """Runs the points of `job_list` that the file `out` does not have, and appends them to it. Gives the number of failed points in it."""
    jobs, command = read_jobs(job_list), command if scheduler and command else find_command(command)
    with ResultsFile(out) as results:
        known = {identity(record["job"]) for record in results.records}
        left = [job for job in jobs if identity(job) not in known]
        before, count, begin = len(jobs) - len(left), workers or len(os.sched_getaffinity(0)), time.monotonic()
        if left:
            with connect(count, scheduler) as client:
                ready = time.monotonic()
                Sweep(client, left, results, command, tries).run()
                end = time.monotonic()
            where = f"on {scheduler}" if scheduler else f"with {count} worker{'s' if count > 1 else ''}"
            print(f"{len(left)} points in {end - ready:.1f} s {where}, {ready - begin:.1f} s to start; {before} were there before")
        else:
            print(f"all {before} points were there before")
        wanted = set(map(identity, jobs))
        return sum("error" in record and identity(record["job"]) in wanted for record in results.records)
