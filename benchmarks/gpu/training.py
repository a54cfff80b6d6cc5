"""Checks training on the GPU: compares losses of the GPU with losses of the CPU, several ranks with one rank, and used memory with planned memory.

1. At each step, the losses of one rank on the GPU are within TOLERANCE of the CPU's losses. This must hold with this project's GEMM kernels, with
   cuBLASLt, and with a CUDA graph.
2. Several ranks that share the GPU compute the same values, bit for bit, as one unsharded rank on the GPU (--check-against=unsharded). Their losses
   are within TOLERANCE of the losses of one rank with the same global batch.
3. In each run the arena has exactly the planned number of bytes. GPU memory beside the arenas is reported, and does not grow after the first step.
"""
import math

import models
from bundle import read_losses

TOLERANCE = 2e-2  # relative tolerance for bf16, as in the project's tests


def worst_difference(losses, expected):
    """Returns the largest relative difference between the losses of a step, or infinity if the numbers of losses differ or a loss is not finite."""
    if len(losses) != len(expected) or not losses or any(each is None or not math.isfinite(each) for each in losses):
        return math.inf
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected))


def memory_problems(run):
    """Returns descriptions of the memory errors of a run that ended normally."""
    problems = []
    if run["planned_bytes"] is None or run["measured_bytes"] != run["planned_bytes"]:
        problems.append(f"the arena is {run['measured_bytes']} bytes, planned {run['planned_bytes']}")
    if run["beside_bytes"] is None:
        problems.append("fsdp-run did not report the GPU's memory beside the arenas")
    if run["grown_bytes"] != 0:
        problems.append(f"memory beside the arenas grew by {run['grown_bytes']} bytes after the first step")
    return problems


def check_training(runner, folder, job, seconds, alone):
    """Runs a training job and returns the members of its row. `folder` has the losses of the CPU. `alone` has the losses of one rank by (chip, model), which
    those of several ranks are compared with; a run of one rank adds its own."""
    model, chip, options = job["model"], job["chip"], job["options"]
    expected = read_losses(folder / f"{model['name']}.cpu.json", model["steps"])
    run = runner.run(job["artifact"], models.train_options(model, folder / models.TOKENS) + options, seconds)
    losses = [step["loss"] for step in run["steps"]]
    row = {"losses": losses, "text": run["problem"] or "", "status": run["status"], "waited": run["waited"],
           **{name: run.get(name) for name in ("planned_bytes", "measured_bytes", "beside_bytes", "grown_bytes", "command")}}
    if run["problem"]:
        return row
    row["against"] = "CPU"
    if job["ranks"] > 1 and (chip, model["name"]) in alone:
        expected, row["against"] = alone[chip, model["name"]], "1 rank"
    problems = memory_problems(run)
    difference = worst_difference(losses, expected)
    row["difference"] = None if math.isinf(difference) else difference
    if not difference <= TOLERANCE:
        problems.append(f"losses differ by {difference:.3g} relative from those of {row['against']}, allowed {TOLERANCE}")
    if "--check-against=unsharded" in options:
        row["equal_bits"] = "check against unsharded passed" in run["text"]
        problems += [] if row["equal_bits"] else ["fsdp-run did not report the check against one rank"]
    if not problems and job["ranks"] == 1:
        alone.setdefault((chip, model["name"]), losses)
    row["status"] = "wrong" if problems else "ok"
    row["text"] = "; ".join(problems) or f"losses within {difference:.2g} of {row['against']}, arena as planned, grew by 0 bytes"
    return row
