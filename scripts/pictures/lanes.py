"""Draws lanes.svg. The picture shows the lanes (compute and channels) of a step with and without --overlap. The step is simulated by `fsdp-run
--simulate --trace`."""
import json
import re

from pictures.svg import Drawing, LINE
from pictures.tools import expect, root

CLUSTER = root / "examples/clusters/8xH100.json"
LANES = [("compute", "#ddaa33"), ("gather", "#44aa99"), ("reduce", "#aa4466"), ("copy", "#4477aa")]
WAIT = "#d0d7de"


def simulate(tools, model, name, *options):
    """Simulates a step. Returns the three times (step, compute, exposed) as texts in ms, and the slices [(lane, row, name, begin, end)] in
    microseconds."""
    tools.run("fsdp-compile", model, "--mesh=shard=8", "--param-dtype=bf16", tools.CPU, "--no-code", *options,
              "-o", f"{name}.fsdp")
    text = tools.run("fsdp-run", f"{name}.fsdp", f"--simulate={CLUSTER}", f"--trace={name}.json")
    summary = expect(re.search(r"simulated: a step of ([0-9.]+) ms.*\n *compute ([0-9.]+) ms, exposed communication "
                               r"([0-9.]+) ms", text), "simulated: a step of ... ms")
    slices = []
    for event in json.loads(tools.read(f"{name}.json"))["traceEvents"]:
        if event["ph"] == "X" and not event["name"].startswith("step "):
            lane, row = divmod(event["tid"], 1000)
            slices.append((lane, row if lane else 0, event["name"], event["ts"], event["ts"] + event["dur"]))
    return summary.groups(), join(expect(slices, "traceEvents"))


def join(slices):
    """Joins adjacent commands (launches, fills, copies) to a single slice, and returns all slices. The label of a joined slice is the number
    of its commands."""
    joined, commands = [], 0
    for lane, row, label, begin, end in sorted(slices, key=lambda each: (each[0], each[1], each[3], each[4])):
        if lane or label.startswith("wait "):
            if lane or end - begin > 0.01:
                joined.append((lane, row, label, begin, end))
                commands = 0
            continue
        if commands and begin - joined[-1][4] < 0.01:
            begin = joined.pop()[3]
        else:
            commands = 0
        commands += 1
        joined.append((lane, row, f"{commands} command{'s' * (commands > 1)}", begin, end))
    return joined


def panel(out, title, summary, slices, y, scale, left):
    """Draws the lanes of one step, beginning at y. Returns the y below the lanes."""
    step, compute, exposed = summary
    out.text(10, y + 14, title, 13, bold=True)
    out.text(left, y + 31, f"step {step} ms: compute {compute} ms, exposed communication {exposed} ms")
    y += 38
    for lane, (name, fill) in enumerate(LANES):
        mine = [each for each in slices if each[0] == lane]
        if not mine:
            continue
        out.text(left - 8, y + 15, name, 12, anchor="end")
        for row in sorted({each[1] for each in mine}):
            out.line([(left, y + 22), (990, y + 22)], LINE, 0.5)
            for _, at, label, begin, end in mine:
                if at != row:
                    continue
                colour = WAIT if label.startswith("wait ") else fill
                x, width = left + begin * scale, max((end - begin) * scale, 0.5)
                out.rect(x, y, max(width - 0.7, 0.5), 22, colour, tip=f"{label}: {begin / 1000:.3f} to {end / 1000:.3f} ms")
                out.label(x, y, width, 22, [label, label.split(" ")[-1] if lane else label.split(" ")[0]], colour, 10)
            y += 25
    return y


def draw(tools):
    model = tools.model("gpt.mlir", "gpt2", "--layers=3", "--hidden=1024", "--heads=16", "--vocab=8192", "--seq=1024",
                        "--batch=1")
    overlap = ["--overlap", f"--cluster={CLUSTER}"]
    runs = [("Without --overlap: each collective is waited for where it starts", []),
            ("--overlap: gathers start early, and reductions are waited for late", overlap),
            ("--overlap --offload=optimizer+activations: copies go to the host and back",
             [*overlap, "--offload=optimizer+activations"])]
    steps = [(title, simulate(tools, model, str(number), *options)) for number, (title, options) in enumerate(runs)]
    out = Drawing(1000, "Simulated lanes of a step with and without --overlap")
    left, right = 74, 985
    longest = max(each[-1] for _, (_, slices) in steps for each in slices)
    scale = (right - left) / longest
    out.text(10, 16, "A simulated step of a GPT of 3 layers, hidden size 1024, on 8 H100", 14, bold=True)
    y = out.legend(10, 28, [(LANES[0][1], "commands: kernels, fills, copies"), (WAIT, "wait"),
                            (LANES[1][1], "all-gather"), (LANES[2][1], "reduce-scatter, all-reduce"),
                            (LANES[3][1], "copy to the host or back")], right) + 4
    for title, (summary, slices) in steps:
        y = panel(out, title, summary, slices, y, scale, left) + 10
    for tick in range(0, int(longest), 500):
        x = left + tick * scale
        out.line([(x, y - 8), (x, y - 3)])
        out.text(x, y + 10, f"{tick / 1000:.1f} ms", 11, anchor="middle")
    return out
