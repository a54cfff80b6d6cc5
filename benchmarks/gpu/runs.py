"""Runs fsdp-run on the GPU in a process with a time limit, and parses its output."""
import contextlib
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from bundle import BundleError

LINES = {"beside_bytes": r"^GPU memory besides the arenas, such as contexts and code: .*\((\d+) bytes\)",
         "planned_bytes": r"^memory planned: .*? per rank \((\d+) bytes\)",
         "measured_bytes": r"^memory measured: .*? per rank \((\d+) bytes, planned \d+\)",
         "grown_bytes": r"^GPU memory besides the arenas: grew by (-?\d+) bytes"}


class Clock:
    """Counts down the seconds that remain for one part of the suite."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(0.0, self.end - time.monotonic())


def run_process(words, seconds, environment=None):
    """Runs a command and returns (exit code, output, seconds). The exit code is None if the process and its children were killed at the time limit."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, **(environment or {})}, start_new_session=True)
    try:
        text, code = process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        text, code = process.communicate()[0], None
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
    """Runs the fsdp-run of a bundle."""

    def __init__(self, bundle, driver, folder):
        self.program, self.folder = pathlib.Path(bundle) / "fsdp-run", pathlib.Path(folder)
        self.environment = {"FSDPRT_CUDA_LIBRARY": driver}
        if find_cublaslt():
            self.environment["FSDPRT_CUBLASLT_LIBRARY"] = find_cublaslt()

    def run(self, artifact, options, seconds):
        """Runs fsdp-run and returns its results as a dict. The member "problem" of the dict describes a failure, or is None if the run succeeded."""
        metrics = self.folder / "run.jsonl"
        metrics.unlink(missing_ok=True)
        words = [self.program, artifact, "--device=cuda", f"--metrics={metrics}", *options]
        try:
            code, text, taken = run_process(words, max(seconds, 1), self.environment)
        except OSError as error:
            raise BundleError(f"{self.program}: expected a program for this machine: {error.strerror}") from None
        found = {"command": " ".join([pathlib.Path(artifact).name, *options]), "seconds": taken, "text": text, "steps": [], "problem": None}
        if metrics.exists():
            found["steps"] = [json.loads(line) for line in metrics.read_text().splitlines() if line.endswith("}")]
        for name, pattern in LINES.items():
            match = re.search(pattern, text, re.MULTILINE)
            found[name] = int(match.group(1)) if match else None
        if code is None:
            found["problem"] = f"killed at its time limit of {seconds:.0f} s"
        elif code:
            found["problem"] = f"exit code {code}: {last_line(text)}"
        return found


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines or ["no output"])[-1][:300]
