"""A child process that runs jobs, each with a time limit.

A child that gives no result in time, or that ends, is killed with its process group, and the next job gets a new one. So a kernel that hangs costs its
time limit, and one that ends the process costs the start of another. A process that cannot be killed (it waits in the driver) is left behind.
"""
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

from runs import KILL_SECONDS, die_with_parent

WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"


class Child:
    """Runs worker.py. `kind` and `what` are its arguments; `start_seconds` is the time limit of its start. No limit is larger than what `clock` has left."""

    def __init__(self, kind, what, start_seconds, clock):
        self.kind, self.what, self.start_seconds, self.clock = kind, str(what), start_seconds, clock
        self.process, self.about, self.starts = None, None, 0

    def begin(self):
        """Starts the process without waiting until it is ready. Does nothing if there is one."""
        if self.process:
            return
        reading, writing = os.pipe()
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, str(WORKER), str(writing), self.kind, self.what], stdin=subprocess.PIPE, stdout=self.errors,
                                        stderr=self.errors, pass_fds=[writing], start_new_session=True, preexec_fn=die_with_parent)
        os.close(writing)
        self.results, self.pending, self.is_ready = reading, b"", False
        self.starts += 1

    def run(self, job, seconds):
        """Runs a job and returns its result, {"status", "text", ...}. `seconds` limits the job, without the start of the process. The job is not run if
        the process does not start; the status is then "no start", and "final" says that another attempt would be in vain. With the status "hang",
        "waited" are the seconds after which the process was killed."""
        if problem := self.start():
            return {"status": "no start", **problem}
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return self.fail(self.cause_of_death(), "crash")
        return self.receive(seconds, "no result within {:.0f} s; its process was killed")

    def start(self):
        """Waits until the process is ready. Returns None, or {"text", "final"} if it failed."""
        self.begin()
        if self.is_ready:
            return None
        found = self.receive(self.start_seconds, "the process did not start within {:.0f} s")
        if "ready" in found:
            self.is_ready, self.about = True, found["ready"]
            return None
        self.end()
        return {"text": found.get("failed") or found["text"], "final": "failed" in found}

    def receive(self, seconds, late):
        """Returns the next line of the process, or a result with the status "hang" or "crash"."""
        seconds = min(seconds, self.clock.left())
        end = time.monotonic() + seconds
        while b"\n" not in self.pending:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.results], [], [], left)[0]:
                return {**self.fail(late.format(seconds), "hang"), "waited": seconds}
            data = os.read(self.results, 1 << 16)
            if not data:
                return self.fail(self.cause_of_death(), "crash")
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        found = json.loads(line)
        if found.pop("ends", False):
            if said := self.last_line():
                found["text"] += f"; {said}"
            self.end()
        return found

    def fail(self, text, status):
        self.end()
        return {"status": status, "text": text}

    def cause_of_death(self):
        """Describes how the process ended, with the last line that it wrote."""
        try:
            code = self.process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            return "its process closed its output"
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        said = self.last_line()
        return f"its process ended {how}" + (f": {said}" if said else "")

    def last_line(self):
        """Returns the last line that the process wrote to its output or standard error."""
        self.errors.seek(0)
        lines = [line for line in self.errors.read()[-4000:].decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""

    def end(self):
        """Kills the process, if there is one."""
        if not self.process:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(KILL_SECONDS)
        os.close(self.results)
        self.errors.close()
        self.process, self.is_ready = None, False
