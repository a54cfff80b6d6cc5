"""Runs a command and kills each child process that it starts. Exits with the command's exit code."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

process = subprocess.Popen(sys.argv[1:])
children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
while process.poll() is None:
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # a process that ended meanwhile
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
    time.sleep(0.002)
sys.exit(process.returncode)
