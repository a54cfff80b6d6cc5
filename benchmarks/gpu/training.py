"""Checks training on the GPU: compares the GPU's losses with the CPU's, several ranks with one rank, and the used memory with the planned memory.

1. At each step, the losses of one rank on the GPU are within TOLERANCE of the CPU's losses. This holds with this project's GEMM kernels, with
   cuBLASLt, and as a CUDA graph.
2. Several ranks that share the GPU compute the same values, bit for bit, as one unsharded rank on the GPU (--check-against=unsharded). Their losses
   are within TOLERANCE of the losses of one rank with the same global batch.
3. In each run the arena has exactly the planned number of bytes. GPU memory beside the arenas is reported, and does not grow after the first step.
"""
import math

import models
from bundle import read_losses

TOLERANCE = 2e-2  # relative tolerance for bf16, as in the project's tests


def worst_difference(losses, expected):
    """Returns the largest relative difference of a loss, or infinity if the numbers of losses differ or a loss is not finite."""
    if len(losses) != len(expected) or not losses or any(each is None or not math.isfinite(each) for each in losses):
        return math.inf
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected))


def memory_problems(run):
    """Returns descriptions of what is wrong in the memory of a run that ended normally."""
    problems = []
    if run["planned_bytes"] is None or run["measured_bytes"] != run["planned_bytes"]:
        problems.append(f"the arena is {run['measured_bytes']} bytes, planned {run['planned_bytes']}")
    if run["beside_bytes"] is None:
        problems.append("fsdp-run did not report the GPU's memory beside the arenas")
    if run["grown_bytes"] != 0:
        problems.append(f"memory beside the arenas grew by {run['grown_bytes']} bytes after the first step")
    return problems


def describe(model, what, run, losses, expected):
    difference = worst_difference(losses, expected)
    problems = [run["problem"]] if run["problem"] else memory_problems(run)
    if not run["problem"] and not difference <= TOLERANCE:
        problems.append(f"losses differ by {difference:.3g} relative, allowed {TOLERANCE}")
    members = ("planned_bytes", "measured_bytes", "beside_bytes", "grown_bytes", "seconds", "command")
    return {"model": model["name"], "what": what, "difference": None if math.isinf(difference) else difference, "losses": losses,
            "problems": problems, **{name: run[name] for name in members}}


def checks_of(model):
    """Returns a tuple (name, ranks, gemm, options) for each run of a model, in the order in which the runs are made."""
    checks = []
    for ranks, gemm in models.variants(model):
        if ranks > 1:
            checks.append((f"{ranks} ranks", ranks, gemm, ["--check-against=unsharded"]))
            checks.append((f"{ranks} ranks, CUDA graph", ranks, gemm, ["--cuda-graph"]))
            continue
        checks.append((gemm, ranks, gemm, []))
        checks.append((f"{gemm}, CUDA graph", ranks, gemm, ["--cuda-graph"]))
    return checks


def check_model(runner, folder, chip, model, clock, report):
    """Yields a row for each run of a model that is compiled for a chip. The losses of one rank are compared with the CPU's losses. The losses of
    several ranks are compared with those of one rank."""
    cpu = read_losses(folder / f"{model['name']}.cpu.json", model["steps"])
    alone = None
    for what, ranks, gemm, options in checks_of(model):
        expected = cpu if ranks == 1 or alone is None else alone
        if clock.left() < 1:
            yield {"model": model["name"], "chip": chip, "what": what, "problems": ["not run: the time limit of this part is reached"]}
            continue
        run = runner.run(folder / chip / models.artifact_name(model, ranks, gemm), models.train_options(model, folder / models.TOKENS) + options, clock.left())
        losses = [step["loss"] for step in run["steps"]]
        row = {**describe(model, what, run, losses, expected), "chip": chip, "against": "CPU" if expected is cpu else "1 rank"}
        if "--check-against=unsharded" in options and not run["problem"]:
            row["equal_bits"] = "check against unsharded passed" in run["text"]
            row["problems"] += [] if row["equal_bits"] else ["fsdp-run did not report the check against one rank"]
        alone = losses if alone is None and not row["problems"] else alone
        yield row


def check_training(runner, bundle, wanted, chips, clock, say):
    """Checks each model and returns the report: the rows, and the number of failed rows."""
    rows = []
    for model in wanted:
        for chip in chips:
            for row in check_model(runner, bundle / "models", chip, model, clock, rows):
                rows.append(row)
                verdict = "; ".join(row["problems"]) or f"ok, losses within {row['difference']:.2g} of {row['against']}, arena as planned, grew by 0 bytes"
                say(f"{chip} training {row['model']}, {row['what']}: {verdict}")
    return {"rows": rows, "wrong": sum(bool(row["problems"]) for row in rows), "tolerance": TOLERANCE}
