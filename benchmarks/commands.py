"""What benchmarks in Python share: commands, steps of a run, traces of them."""
import json
import os
import shutil
import subprocess
import sys


def run(*words, cores=0):
    """What a command says; on the first `cores` processors that this process may use (0: on all)."""
    if cores and shutil.which("taskset"):
        words = ("taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores])), *words)
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(words)}: {out.stderr}")
    return out.stdout + out.stderr


def explain(model, *options):
    """The plan of a model as docs/reference/explain.md describes it; None where it does not fit."""
    words = ["fsdp-compile", model, "--explain=json", *options]
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode == 1:
        return None
    if out.returncode:
        sys.exit(f"{' '.join(words)}: {out.stderr}")
    return json.loads(out.stdout)


def run_steps(artifact, steps, *options, cores=0, member="step_ms"):
    """A member of the metrics of each step but the first: milliseconds by the clock, or cpu_ms, those of all ranks together."""
    run("fsdp-run", artifact, "--overfit", f"--steps={steps + 1}", "--val-batches=0", "--metrics=steps.jsonl", *options, cores=cores)
    return [json.loads(line)[member] for line in open("steps.jsonl")][1:]


def trace_steps(artifact, steps, *options, cores=0, member="step_ms"):
    """Of a run with a trace: what run_steps returns, and the slices of these steps, in which pid is the rank."""
    times = run_steps(artifact, steps, "--trace=trace.json", f"--trace-steps={steps}", *options, cores=cores, member=member)
    return times, [event for event in json.load(open("trace.json"))["traceEvents"] if event["ph"] == "X"]
