"""Runs the tools of compute-sanitizer on small kernels and models. Each run has a time limit."""
import shutil
import sys

import models
from runs import last_line, run_process

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 9  # exit code with which a run ends if a tool reports an error
SECONDS = 600


def command(tool, *words):
    return ["compute-sanitizer", f"--tool={tool}", "--target-processes=all", f"--error-exitcode={FOUND}", *words]


def verdict(words, clock, environment=None):
    """Runs a command and returns (clean, message). `clean` is True if the tool found no error, False if it found one, and None if the run did not
    finish."""
    seconds = min(SECONDS, clock.left())
    if seconds < 1:
        return None, "not run: the time limit of this part is reached"
    code, text, _ = run_process(words, seconds, environment)
    if code is None:
        return None, f"stopped after {seconds:.0f} s"
    return (True, "nothing found") if code == 0 else (False, f"exit code {code}: {text[-2000:] if code == FOUND else last_line(text)}")


def sanitize(arguments, runner, has_kernels, wanted, chips, clock, say):
    """Runs all tools and returns a row per run: {"tool", "what", "clean", "text"}."""
    if not shutil.which("compute-sanitizer"):
        say("compute-sanitizer: not installed")
        return [{"tool": "compute-sanitizer", "what": "all", "clean": None, "text": "not installed"}]
    rows = []
    for tool in TOOLS:
        jobs = [("kernels", command(tool, sys.executable, str(arguments.bundle / "run_all"), f"--bundle={arguments.bundle}", "--parts=kernels", "--groups=tiny",
                                    f"--out={arguments.out}", f"--driver={arguments.driver}"), None)] if has_kernels else []
        for model in wanted:
            for chip in chips:
                for ranks, gemm in models.variants(model):
                    artifact = arguments.bundle / "models" / chip / models.artifact_name(model, ranks, gemm)
                    jobs.append((artifact.name, command(tool, str(runner.program), str(artifact), "--device=cuda", "--timeout-seconds=300",
                                                        *models.train_options(model, arguments.bundle / "models" / models.TOKENS)), runner.environment))
        for what, words, environment in jobs:
            clean, text = verdict(words, clock, environment)
            rows.append({"tool": tool, "what": what, "clean": clean, "text": text})
            say(f"compute-sanitizer {tool} {what}: {text.splitlines()[-1]}")
    return rows
