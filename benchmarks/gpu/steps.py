"""Times training steps of several contenders: fsdp-mlir with each GEMM backend, with and without a CUDA graph, and PyTorch compiled and eager.

Each contender runs in several turns. A turn is a process with a time limit, and during a turn no other contender uses the GPU. All contenders take
their first turn before any contender takes its second. The steps of fsdp-mlir are timed one by one. The time of a step begins when the inputs are on
the host and ends when the loss is on the host. PyTorch's steps of a turn are timed as one interval, so the host does not wait between these steps.
"""
import json
import statistics
import sys

import models
from runs import last_line, run_process

WARM = 3                # untimed warm-up steps of fsdp-mlir in a turn
PROCESS_SECONDS = 420   # time limit of a turn, most of which PyTorch uses to compile
SPENT = "the time limit of this part is reached"
GOAL = 1.1              # required ratio of fsdp-mlir's speed to compiled PyTorch's speed
PEAKS = (("H100 PCIe", 756), ("H100 NVL", 835), ("H100", 989), ("H200", 989), ("GH200", 989), ("H800", 989), ("A100", 312), ("A800", 312), ("B200", 2250), ("L40S", 362))
PEERS = {"PyTorch compile": "compile", "PyTorch eager": "eager"}


def peak_of(device):
    """Returns the TFLOP/s of dense bf16 products according to the GPU's data sheet, or None for an unknown GPU."""
    return next((peak for name, peak in PEAKS if name in device), None)


class Ours:
    """A contender that runs the steps of an artifact, with or without a CUDA graph."""

    def __init__(self, runner, artifact, chip, gemm, graph, steps):
        self.runner, self.artifact, self.chip = runner, artifact, chip
        self.options = [f"--steps={WARM + steps}"] + (["--cuda-graph"] if graph else [])
        self.name = f"ours, {gemm}{', CUDA graph' if graph else ''}"

    def turn(self, seconds):
        run = self.runner.run(self.artifact, self.options, seconds)
        times = [step["step_ms"] for step in run["steps"][WARM:]]
        problem = run["problem"] or (None if times else "fsdp-run reported no step")
        return {"ms": times, "problem": problem, "peak_bytes": run["measured_bytes"]}


class Peer:
    """A contender that runs the steps in PyTorch."""

    chip = ""

    def __init__(self, script, model, name, how, device, steps):
        self.name, self.words = name, [sys.executable, script, model, f"--how={how}", f"--device={device}", f"--steps={steps}"]

    def turn(self, seconds):
        code, text, _ = run_process(self.words, max(seconds, 1))
        try:
            found = json.loads(text.strip().splitlines()[-1])
        except (ValueError, IndexError):
            found = {}
        if code is None:
            found["problem"] = f"killed at its time limit of {seconds:.0f} s"
        elif "missing" in found:
            found["problem"] = found["missing"]
        elif code or "ms" not in found:
            found["problem"] = f"exit code {code}: {last_line(text)}"
        return {"ms": [], "problem": None, "peak_bytes": None, **found}


def contenders(runner, arguments, chips, model):
    path = runner.folder / f"{model['name']}.json"
    path.write_text(json.dumps(model))
    artifact = lambda chip, gemm: arguments.bundle / "models" / chip / models.artifact_name(model, 1, gemm)
    ours = [Ours(runner, artifact(chip, gemm), chip, gemm, graph, arguments.steps) for chip in chips for gemm in model["gemm"] for graph in (True, False)]
    return ours + [Peer(arguments.bundle / "torch_steps.py", path, name, how, arguments.torch_device, arguments.steps) for name, how in PEERS.items()]


def summarise(model, each, times, problem, peak_bytes, peak):
    tokens = models.tokens_per_step(model)
    row = {"model": model["name"], "who": each.name, "chip": each.chip, "ms": None, "turns": times, "problem": problem, "peak_bytes": peak_bytes}
    flat = sorted(ms for turn in times for ms in turn)
    if flat:
        row["ms"] = statistics.median(flat)
        row["spread"] = (flat[-1 - len(flat) // 10] - flat[len(flat) // 10]) / row["ms"]
        row["tokens_per_second"] = tokens / row["ms"] * 1e3
        row["tflops"] = models.flops_per_token(model) * tokens / row["ms"] / 1e9
        row["utilisation"] = row["tflops"] / peak if peak else None
    return row


def add_ratios(rows):
    """Stores in each row the ratios of the row's speed to the speed of each PyTorch contender."""
    peers = {row["who"]: row["ms"] for row in rows if row["who"] in PEERS and row["ms"]}
    for row in rows:
        row["ratios"] = {who: ms / row["ms"] for who, ms in peers.items() if row["ms"] and row["who"] not in PEERS}


def time_model(everybody, model, turns, clock, peak, say):
    """Returns a row of results for each contender. If a contender fails in a turn, it is not run in the following turns."""
    times, problems, bytes_, longest = ({each: start() for each in everybody} for start in (list, type(None), type(None), float))
    for number in range(turns):
        for each in everybody:
            if problems[each]:
                continue
            left = clock.left()
            if left < max(1, longest[each]):
                problems[each] = f"{len(times[each])} of {turns} turns: {SPENT}"
                continue
            found = each.turn(min(PROCESS_SECONDS, left))
            longest[each] = max(longest[each], left - clock.left())
            problems[each], bytes_[each] = found["problem"], found["peak_bytes"]
            if found["ms"] and not found["problem"]:
                times[each].append(found["ms"])
            took = f"{statistics.median(found['ms']):.2f} ms" if found["ms"] else ""
            say(f"{model['name']}, {each.name}, turn {number + 1}: {found['problem'] or took}")
    rows = [summarise(model, each, times[each], problems[each], bytes_[each], peak) for each in everybody]
    add_ratios(rows)
    return rows


def is_wrong(row):
    """Returns true if the row is that of an artifact that failed. An artifact has not failed if it was not run because of the time limit."""
    return row["who"] not in PEERS and bool(row["problem"]) and not row["problem"].endswith(SPENT)


def time_steps(runner, arguments, wanted, chips, device, clock, say):
    """Times all contenders for each model, and returns the report."""
    peak, rows = peak_of(device), []
    for model in wanted:
        rows += time_model(contenders(runner, arguments, chips, model), model, arguments.turns, clock, peak, say)
    return {"rows": rows, "peak": peak, "turns": arguments.turns, "wrong": sum(is_wrong(row) for row in rows)}


def worst_ratio(rows):
    """For each pair of a model and a PyTorch contender, finds the highest ratio of all artifacts. Returns (ratio, row, peer) of the pair with the
    lowest of these ratios, or None if there are no ratios."""
    best = {}
    for row in rows:
        for who, ratio in row["ratios"].items():
            key = (row["model"], who)
            if key not in best or ratio > best[key][0]:
                best[key] = (ratio, row, who)
    return min(best.values(), key=lambda each: each[0]) if best else None
