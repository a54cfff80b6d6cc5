"""Runs fsdp-run on the GPU in a process with a time limit, and parses its output."""
import contextlib
import ctypes
import glob
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HANGS = 4           # exit code of fsdp-run if a rank makes no progress; the message says between which commands
SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl
KILL_SECONDS = 10  # how long a killed process is waited for
LINES = {"beside_bytes": r"^GPU memory besides the arenas, such as contexts and code: .*\((\d+) bytes\)",
         "planned_bytes": r"^memory planned: .*? per rank \((\d+) bytes\)",
         "measured_bytes": r"^memory measured: .*? per rank \((\d+) bytes, planned \d+\)",
         "grown_bytes": r"^GPU memory besides the arenas: grew by (-?\d+) bytes"}


def die_with_parent():
    """Lets the kernel kill the calling process when its parent ends. A process that hangs would otherwise keep the GPU."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def run_process(words, seconds, environment=None):
    """Runs a command and returns (exit code, output, seconds). The exit code is None if the process and its children were killed at the time limit."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, **(environment or {})}, start_new_session=True, preexec_fn=die_with_parent)
    text = ""
    try:
        text, code = process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that waits in the driver may not end
            text = process.communicate(timeout=KILL_SECONDS)[0]
        code = None
    return code, text, time.monotonic() - began


def find_cublaslt():
    """Searches for cuBLASLt in the environment, in PyTorch's packages and in CUDA's folders, in this order. Returns its path, or None if it was not
    found. The dynamic loader does not search PyTorch's packages."""
    if "FSDPRT_CUBLASLT_LIBRARY" in os.environ:
        return os.environ["FSDPRT_CUBLASLT_LIBRARY"]
    places = [f"{folder}/nvidia/{package}/lib" for folder in sys.path for package in ("cu13", "cublas")]
    for place in places + ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"]:
        for number in (13, 12):
            found = glob.glob(f"{place}/libcublasLt.so.{number}")
            if found:
                return found[0]
    return None


class Runner:
    """Runs the fsdp-run of a bundle. Its files are written to a temporary folder."""

    def __init__(self, bundle, driver):
        self.program, self.temporary = pathlib.Path(bundle) / "fsdp-run", tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.environment = {"FSDPRT_CUDA_LIBRARY": driver}
        if find_cublaslt():
            self.environment["FSDPRT_CUBLASLT_LIBRARY"] = find_cublaslt()

    def run(self, artifact, options, seconds):
        """Runs fsdp-run and returns its results as a dict. The member "problem" of the dict describes a failure, or is None if the run succeeded."""
        metrics = self.folder / "run.jsonl"
        metrics.unlink(missing_ok=True)
        words = [self.program, artifact, "--device=cuda", f"--metrics={metrics}", f"--timeout-seconds={max(1, seconds / 2):.0f}", *options]
        try:
            code, text, taken = run_process(words, seconds, self.environment)
        except OSError as error:
            return {"problem": f"{self.program}: expected a program for this machine: {error.strerror}", "status": "error", "waited": 0, "text": "", "steps": []}
        found = {"command": " ".join([pathlib.Path(artifact).name, *options]), "seconds": taken, "text": text, "steps": [], "problem": None, "status": "ok", "waited": 0}
        if metrics.exists():
            found["steps"] = [json.loads(line) for line in metrics.read_text().splitlines() if line.endswith("}")]
        for name, pattern in LINES.items():
            match = re.search(pattern, text, re.MULTILINE)
            found[name] = int(match.group(1)) if match else None
        if code is None:
            found["problem"], found["status"], found["waited"] = f"killed at its time limit of {seconds:.0f} s", "hang", seconds
        elif code:
            found["problem"], found["status"] = f"exit code {code}: {last_line(text)}", "crash" if code < 0 else "hang" if code == HANGS else "error"
            found["waited"] = math.inf
        return found


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines or ["no output"])[-1][:300]
