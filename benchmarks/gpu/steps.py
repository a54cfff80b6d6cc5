"""Times training steps. The contenders are fsdp-mlir (each GEMM backend, with and without a CUDA graph) and PyTorch (compiled and eager).

Each contender runs in several turns. A turn is a process with a time limit, and during a turn no other contender uses the GPU. The steps of fsdp-mlir are
timed one by one. The time of a step begins when the inputs are on the host and ends when the loss is on the host. PyTorch's steps of a turn are timed as
one interval, so the host does not wait between these steps.
"""
import json
import statistics
import sys

import models
from runs import last_line, run_process

WARM = 3                # untimed warm-up steps of fsdp-mlir in a turn
GOAL = 1.1              # required ratio of fsdp-mlir's speed to compiled PyTorch's speed
PEAKS = (("H100 PCIe", 756), ("H100 NVL", 835), ("H100", 989), ("H200", 989), ("GH200", 989), ("H800", 989), ("A100", 312), ("A800", 312), ("B200", 2250), ("L40S", 362))
PEERS = {"PyTorch compile": "compile", "PyTorch eager": "eager"}


def peak_of(device):
    """Returns the TFLOP/s of dense bf16 products according to the GPU's data sheet, or None for an unknown GPU."""
    return next((peak for name, peak in PEAKS if name in device), None)


def summary_of(model, times, peak):
    """Returns the members of a row that follow from the milliseconds of steps. `peak` is the TFLOP/s of the data sheet, or None."""
    flat, tokens = sorted(times), models.tokens_per_step(model)
    ms = statistics.median(flat)
    tflops = models.flops_per_token(model) * tokens / ms / 1e9
    return {"ms": ms, "spread": (flat[-1 - len(flat) // 10] - flat[len(flat) // 10]) / ms, "times": times, "tokens_per_second": tokens / ms * 1e3, "tflops": tflops,
            "utilisation": tflops / peak if peak else None}


def time_artifact(runner, job, seconds, peak):
    """Runs steps of an artifact, with or without a CUDA graph, and returns the members of a row."""
    run = runner.run(job["artifact"], [f"--steps={WARM + job['steps']}"] + (["--cuda-graph"] if job["graph"] else []), seconds)
    times = [step["step_ms"] for step in run["steps"][WARM:]]
    row = {"status": run["status"], "text": run["problem"] or "", "waited": run["waited"], "peak_bytes": run.get("measured_bytes")}
    if run["problem"]:
        return row
    return {**row, **summary_of(job["model"], times, peak)} if times else {**row, "status": "error", "text": "fsdp-run reported no step"}


def time_torch(runner, bundle, job, seconds, peak):
    """Runs the steps in PyTorch, and returns the members of a row."""
    path = runner.folder / f"{job['model']['name']}.json"
    path.write_text(json.dumps(job["model"]))
    code, text, _ = run_process([sys.executable, bundle / "torch_steps.py", path, f"--how={job['how']}", f"--steps={job['steps']}"], seconds)
    try:
        found = json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        found = {}
    if code is None:
        return {"status": "hang", "text": f"killed at its time limit of {seconds:.0f} s", "waited": seconds}
    if "missing" in found:
        return {"status": "absent", "text": found["missing"]}
    if code or "ms" not in found:
        return {"status": "crash" if code and code < 0 else "error", "text": f"exit code {code}: {last_line(text)}"}
    return {"status": "ok", "text": "", "peak_bytes": found["peak_bytes"], "software": found["software"], **summary_of(job["model"], found["ms"], peak)}
