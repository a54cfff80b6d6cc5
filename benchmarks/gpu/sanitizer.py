"""Runs a tool of compute-sanitizer on small kernels and models."""
import shutil
import sys

import models
from runs import last_line, run_process

FOUND = 9  # exit code with which a run ends if a tool reports an error


def sanitize(runner, options, job, seconds):
    """Runs one tool on the tiny kernels or on a tiny model, and returns the members of its row."""
    if not shutil.which("compute-sanitizer"):
        return {"status": "absent", "text": "compute-sanitizer is not installed"}
    words = ["compute-sanitizer", f"--tool={job['tool']}", "--target-processes=all", f"--error-exitcode={FOUND}"]
    environment = {}
    if job["artifact"]:
        text = models.train_options(job["model"], options.bundle / "models" / models.TOKENS)
        words += [str(runner.program), job["artifact"], "--device=cuda", f"--timeout-seconds={seconds:.0f}", *text]
        environment = runner.environment
    else:
        out = runner.folder / f"sanitizer-{job['tool']}"
        words += [sys.executable, str(options.bundle / "run_all"), f"--bundle={options.bundle}", "--parts=checks", f"--out={out}", f"--driver={options.driver}",
                  f"--minutes={seconds / 60}", "--time-factor=4", "--groups=tiny"]
    code, text, _ = run_process(words, seconds, environment)
    if code is None:
        return {"status": "hang", "text": f"killed at its time limit of {seconds:.0f} s", "waited": seconds}
    if code == 0:
        return {"status": "ok", "text": "nothing found"}
    return {"status": "wrong" if code == FOUND else "error", "text": f"exit code {code}: {text[-1500:] if code == FOUND else last_line(text)}"}
