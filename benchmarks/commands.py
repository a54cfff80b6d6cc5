"""Functions shared by the Python benchmarks: they run commands, and read the metrics and the trace of training steps."""
import json
import os
import shutil
import subprocess
import sys


def run(*words, cores=0):
    """Runs a command on the first `cores` available processors, or on all if `cores` is 0. Returns the output of the command. Exits if the command
    fails."""
    if cores and shutil.which("taskset"):
        words = ("taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores])), *words)
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(words)}: {out.stderr}")
    return out.stdout + out.stderr


def explain(model, *options):
    """Returns the plan of a model (docs/reference/explain.md), or None if no plan is within the memory limit."""
    words = ["fsdp-compile", model, "--explain=json", *options]
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode == 1:
        return None
    if out.returncode:
        sys.exit(f"{' '.join(words)}: {out.stderr}")
    return json.loads(out.stdout)


def run_steps(artifact, steps, *options, cores=0, member="step_ms"):
    """Trains `steps` + 1 steps. Returns the metric `member` of each step except the first: step_ms, or cpu_ms (the sum of the CPU times of the
    ranks)."""
    run("fsdp-run", artifact, "--overfit", f"--steps={steps + 1}", "--val-batches=0", "--metrics=steps.jsonl", *options, cores=cores)
    return [json.loads(line)[member] for line in open("steps.jsonl")][1:]


def trace_steps(artifact, steps, *options, cores=0, member="step_ms"):
    """Runs steps with a trace. Returns the result of run_steps and the events of the trace that have a duration. The member "pid" of an event is its
    rank."""
    times = run_steps(artifact, steps, "--trace=trace.json", f"--trace-steps={steps}", *options, cores=cores, member=member)
    return times, [event for event in json.load(open("trace.json"))["traceEvents"] if event["ph"] == "X"]
