"""Starts and checks the processes of the rows of scripts/fault-matrix.

A row starts a job of some ranks, causes a fault, and checks the messages of the job's processes:

  1. Job.start() starts the ranks. Every process has the environment variable FSDP_FAULT_ROW.
  2. The row causes the fault, and stores the time.
  3. Job.named() waits until each surviving process has printed the expected line. This function returns the seconds from the fault until the last of
     these processes printed the line.
  4. Job.codes() waits for the end of the processes and compares their exit codes with the expected ones.
  5. Bench.expect_clean() finds processes that have the environment variable and still run. The function also finds files whose names are in
     no message.

By means of the variable, all processes of a row (ranks, launchers and hosts) are found in /proc.
"""
import ctypes
import dataclasses
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from typing import Callable

MARK = "FSDP_FAULT_ROW"
WAIT = 120  # seconds after which a process that has not ended is reported as hanging


class Failed(Exception):
    """Is raised if a row failed. `why` is the reason. `slow` is true if the row only exceeded its time limit and nothing else was wrong."""

    def __init__(self, why, slow=False):
        super().__init__(why)
        self.slow = slow


@dataclasses.dataclass
class Row:
    name: str
    group: str
    planted: str  # Description of the fault, for the table.
    expected: str  # Description of the expected exit code and message, for the table.
    run: Callable  # (Bench) -> seconds, or None if there is nothing to measure.
    limit: float = 0  # Limit for the seconds that `run` returns; 0 means that there is no limit.
    needs: str = ""  # Requirement of the row: "mpi", "root" or "".
    short: bool = False  # True if --only=short runs the row.


def environ(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def arguments(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def state(pid):
    """Returns the letter that /proc gives for the state of a process, and the name of the process. The letter is Z if there is no process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "Z", ""
    return text[text.rfind(")") + 2], text[text.find("(") + 1:text.rfind(")")]


class Process:
    """A running command. Each line of its output is stored together with the time at which the line was read."""

    def __init__(self, command, env, cwd):
        self.command = command
        self.begun = time.monotonic()
        self.popen = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, errors="replace")
        self.lines, self.news = [], threading.Condition()
        self.ended = None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.popen.stdout:
            with self.news:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.news.notify_all()
        with self.news:
            self.ended = time.monotonic()
            self.news.notify_all()

    def output(self):
        with self.news:
            return "\n".join(line for _, line in self.lines)

    def when(self, pattern, seconds=WAIT, since=0.0):
        """Returns the time of the first line that matches the pattern and was read at or after `since`. Returns None if there is no such line within
        `seconds`."""
        until, at, begin = time.monotonic() + seconds, 0, None
        with self.news:
            while begin is None:
                for arrived, line in self.lines[at:]:
                    if arrived >= since and re.search(pattern, line):
                        return arrived
                at = len(self.lines)
                if self.ended is not None or time.monotonic() > until:
                    return None
                self.news.wait(0.2)

    def wait(self, seconds=WAIT):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


class Job:
    """The processes of one run. `how` states how the ranks are started: threads, processes (--processes), env (with the environment variables of
    torchrun) or mpi."""

    def __init__(self, bench, how, ranks=2, port=None, **variables):
        self.bench, self.how, self.ranks = bench, how, ranks
        self.slow = ""  # description of a message that was printed too late
        self.port = port or free_port()
        self.variables = variables
        self.processes = {}  # Maps a rank to its process. The key -1 maps to a command that starts all ranks.

    def start(self, *options, artifact=None, each=None, only=None, world=None, number=None):
        """Starts ranks with options of fsdp-run. each[r] has further settings of rank r. `only` lists the ranks to start. number[r] and world[r], if
        they are given, replace the rank and the number of ranks that process r receives."""
        each, number, world = each or {}, number or {}, world or {}
        artifact = artifact or f"m{self.ranks}.fsdp"
        run = [self.bench.tool("fsdp-run"), artifact, *options]
        if self.how == "threads":
            self._begin(-1, run)
        elif self.how == "processes":
            self._begin(-1, run + ["--processes"])
        elif self.how == "mpi":
            command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
            for rank in range(self.ranks):
                mine = [artifact if "artifact" not in each.get(rank, {}) else each[rank]["artifact"]]
                line = [self.bench.tool("fsdp-run"), *mine, *options, *each.get(rank, {}).get("options", [])]
                command += ([":"] if rank else []) + ["-n", "1", *self._with(each.get(rank, {})), *line]
            self._begin(-1, command)
        else:
            for rank in only if only is not None else range(self.ranks):
                own = each.get(rank, {})
                line = [self.bench.tool("fsdp-run"), own.get("artifact", artifact), *options, *own.get("options", [])]
                self._begin(rank, line, RANK=str(number.get(rank, rank)), WORLD_SIZE=str(world.get(rank, self.ranks)),
                            MASTER_ADDR="localhost", MASTER_PORT=str(self.port), **own.get("env", {}))
        return self

    @staticmethod
    def _with(own):
        return ["env", *(f"{k}={v}" for k, v in own["env"].items())] if "env" in own else []

    def _begin(self, rank, command, **variables):
        env = {**self.bench.env, **self.variables, **variables}
        self.processes[rank] = Process(command, env, self.bench.folder)
        self.bench.processes.append(self.processes[rank])

    def reach(self, pattern=r"^step +1/"):
        """Waits until some process has printed a line that matches the pattern. The run has then begun."""
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            for process in self.processes.values():
                if process.when(pattern, 0.05) is not None:
                    time.sleep(0.1)
                    return self
            if all(process.ended is not None for process in self.processes.values()):
                break
        raise Failed(f"expected '{pattern}' before the fault, found:\n{self.output()}")

    def pid(self, rank):
        """Returns the id of the process of a rank."""
        if rank in self.processes:
            return self.processes[rank].popen.pid
        for pid in self.bench.marked():
            own = f"--launched-rank={rank}" in arguments(pid)
            over_mpi = f"OMPI_COMM_WORLD_RANK={rank}".encode() in environ(pid) and state(pid)[1] == "fsdp-run"
            if own or over_mpi:
                return pid
        raise Failed(f"rank {rank} has no process:\n{self.output()}")

    def early_pid(self, rank):
        """Waits until the process of a rank exists, and returns its id."""
        until = time.monotonic() + WAIT
        while time.monotonic() < until and any(process.ended is None for process in self.processes.values()):
            try:
                return self.pid(rank)
            except Failed:
                time.sleep(0.005)
        return self.pid(rank)

    def named(self, pattern, since, limit, but=()):
        """Waits until all processes have printed a line that matches the pattern. Does not wait for the ranks `but`. Returns the seconds from `since`
        until the last of these lines was printed."""
        last = since
        for rank, process in self.processes.items():
            if rank in but:
                continue
            at = process.when(pattern, since=0)
            if at is None:
                raise Failed(f"rank {rank}: expected '{pattern}', found:\n{process.output()}" if rank >= 0 else
                             f"expected '{pattern}', found:\n{process.output()}")
            last = max(last, at)
        if limit and last - since > limit:
            self.slow = f"named after {last - since:.2f} s, limit {limit} s"
        return last - since

    def codes(self, expected, but=()):
        """Waits until all processes have ended. Checks the exit codes of all processes except the ranks `but`."""
        expected = expected if isinstance(expected, tuple) else (expected,)
        for rank, process in self.processes.items():
            code = process.wait()
            if code is None:
                raise Failed(f"rank {rank} did not end within {WAIT} s:\n{process.output()}")
            if rank not in but and code not in expected:
                raise Failed(f"rank {rank}: expected exit code {expected}, found {code}:\n{process.output()}")
        return self

    def check(self, code, pattern, since, limit=0, but=(), files=()):
        """Checks, in this order, the message, the exit codes, whether processes or files are left, and the time limit. Returns the seconds from
        `since` until the message was printed."""
        seconds = self.named(pattern, since, limit, but)
        self.finish(code, but, files)
        return seconds

    def finish(self, code, but=(), files=()):
        """Checks the exit codes, and whether processes or files are left. Raises Failed if a message was printed after its time limit."""
        self.codes(code, but)
        self.bench.expect_clean(files)
        if self.slow:
            raise Failed(self.slow, slow=True)

    def output(self):
        return "\n".join(f"[{rank}] {process.output()}" for rank, process in self.processes.items())


def end_of(pid, seconds=WAIT):
    """Waits until a process has ended, and returns the time. The process need not be a child of this process."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return time.monotonic()
    try:
        if not select.select([handle], [], [], seconds)[0]:
            raise Failed(f"process {pid} did not end")
        return time.monotonic()
    finally:
        os.close(handle)


def send(pid, number):
    """Sends a signal to a process. Returns the time."""
    now = time.monotonic()
    os.kill(pid, number)
    return now


class Bench:
    """The work folder, with artifacts and inputs that are copied to the folder of each row."""

    def __init__(self, build, work):
        self.build, self.work = pathlib.Path(build), pathlib.Path(work)
        self.source = self.work / "inputs"
        self.folder, self.env, self.processes = None, None, []
        self.number = 0

    def tool(self, name):
        return str(self.build / "bin" / name)

    def library(self, name):
        return str(self.build / "lib" / name)

    def call(self, *command, cwd=None, code=0, env=None):
        """Runs a command, checks its exit code, and returns its output."""
        done = subprocess.run(command, cwd=cwd or self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600,
                              env={**(self.env or os.environ), **(env or {})})
        if done.returncode != code:
            raise Failed(f"expected exit code {code} of {' '.join(command)}, found {done.returncode}:\n{done.stdout}")
        return done.stdout

    def fsdp_run(self, *options, **how):
        return self.call(self.tool("fsdp-run"), *options, **how)

    def prepare(self):
        """Compiles the artifacts and writes the texts, weights and saves that the rows use."""
        here = self.source
        if (here / "s2/latest").exists():  # written by an earlier run with --work
            return
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        self.call(self.tool("fsdp-modelgen"), "llama", "--layers=2", "--hidden=48", "--heads=4", "--kv-heads=2",
                  "--intermediate=80", "--vocab=97", "--seq=11", "--batch=2", "-o", "m.mlir", cwd=here)
        for ranks in (2, 3):
            self.call(self.tool("fsdp-compile"), "m.mlir", f"--mesh=shard={ranks}", "-o", f"m{ranks}.fsdp", cwd=here)
        self.call(self.tool("fsdp-compile"), "m.mlir", "--mesh=shard=2", "--beta1=0.8", "-o", "other2.fsdp", cwd=here)
        for name, factor in (("a.txt", 7), ("b.txt", 11)):
            (here / name).write_bytes(bytes((i * i * factor + i // 5) % 97 for i in range(5000)))
        for seed in (1, 2):
            self.call(self.tool("fsdp-run"), "m2.fsdp", "--steps=2", "--text=a.txt", f"--seed={seed}",
                      f"--export=w{seed}.st", f"--save=s{seed}", cwd=here)

    def open(self, name):
        """Makes a folder for a row, with copies of all inputs."""
        self.number += 1
        self.folder = self.work / f"{self.number:03d}-{re.sub('[^a-z0-9]+', '-', name)}"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.source, self.folder)
        (self.folder / "tmp").mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "SLURM_", "FSDP", "MASTER_"))
                and k not in ("RANK", "WORLD_SIZE")}
        self.env = {**kept, MARK: f"{os.getpid()}.{self.number}", "TMPDIR": str(self.folder / "tmp"),
                    "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        self.processes = []
        self.before = self._files()

    def _files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}

    def marked(self):
        """Returns the ids of the row's processes that have not ended."""
        mark = f"{MARK}={self.env[MARK]}".encode()
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if state(pid)[0] not in "ZX" and mark in environ(pid)]

    def kept(self, path):
        self.before |= {str(each.relative_to(self.folder)) for each in [self.folder / path, *(self.folder / path).rglob("*")]}

    def expect_clean(self, files=()):
        """Raises Failed if a process of the row still runs. Also raises Failed if a file is left whose name is in no message and matches none of
        the patterns `files`."""
        # If a run has bad input, its host process runs for 3 more seconds, in which it sends the error to ranks that connect late.
        until = time.monotonic() + 4
        while (left := self.marked()) and time.monotonic() < until:
            time.sleep(0.02)
        if left:
            raise Failed("left behind: " + ", ".join(f"process {pid} ({state(pid)[1]}, state {state(pid)[0]})"
                                                     for pid in left))
        said = "\n".join(process.output() for process in self.processes)
        stray = [name for name in sorted(self._files() - self.before)
                 if not any(re.fullmatch(pattern, name) for pattern in files) and os.path.basename(name) not in said
                 and not name.startswith("tmp/ompi.")]
        if stray:
            raise Failed("left behind: " + ", ".join(stray))

    def close(self, keep=False):
        """Kills the remaining processes of the row, and removes its folder."""
        for pid in self.marked():
            for number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
        for process in self.processes:
            process.wait()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def is_root():
    return os.geteuid() == 0


def has_mpi(build):
    return bool(shutil.which("mpirun")) and (pathlib.Path(build) / "lib/fsdprt_mpi.so").exists()


def in_own_mounts():
    """Returns true if this process may create a mount namespace."""
    return ctypes.CDLL(None).unshare is not None and is_root()
