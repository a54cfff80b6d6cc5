"""Draws arena.svg. The picture shows the offset and the lifetime of every buffer in the arena of a rank, over the commands of a step.

Buffers, lifetimes and commands are read from the page that `fsdp-compile --report` writes.
"""
import json

from pictures.svg import CATEGORIES, Drawing, LINE, size
from pictures.tools import expect


def read_report(page):
    """Returns the JSON object in the line `const plan = {...};` of a report page."""
    start = page.find("const plan = ")
    expect(start >= 0, "const plan = {...}")
    return json.JSONDecoder().raw_decode(page, start + len("const plan = "))[0]


def draw(tools):
    model = tools.model("gpt.mlir", "gpt2", "--layers=2", "--hidden=32", "--heads=2", "--vocab=64", "--seq=32",
                        "--batch=2")
    tools.run("fsdp-compile", model, "--mesh=shard=4", tools.CPU, "--report=plan.html")
    plan = read_report(tools.read("plan.html"))
    arena, last = plan["memory"]["peak"], len(plan["moments"]) - 1
    out = Drawing(1000, "The arena of a rank over one step")
    left, right, height = 74, 985, 430
    out.text(10, 16, f"The arena of one of 4 ranks over a step ({size(arena)}): a GPT of 2 layers, hidden size 32", 14,
             bold=True)
    used = {category for _, category, *_ in plan["buffers"]}
    top = out.legend(10, 30, [(fill, f"{name} {size(plan['memory'][name])}") for name, fill in CATEGORIES.items()
                              if name in used], right) + 22

    def x(command):
        return left + (right - left) * command / last

    def y(offset):
        return top + height * (1 - offset / arena)
    for tick in range(0, arena, arena // 4 >> 14 << 14):
        out.line([(left, y(tick)), (right, y(tick))], LINE, 0.5)
        out.text(left - 6, y(tick) + 4, f"{tick >> 10} KiB", 11, anchor="end")
    for label, category, count, offset, first, end in plan["buffers"]:
        begin, until = (0, last) if first < 0 else (first, end + 1)
        wide, tall = x(until) - x(begin), y(offset) - y(offset + count)
        when = "always" if first < 0 else f"commands {first} to {end}"
        fill = CATEGORIES[category]
        out.rect(x(begin), y(offset + count), max(wide, 0.8), max(tall - 0.4, 0.4), fill,
                 tip=f"{label} ({category}): {count} bytes at offset {offset}, {when}")
        out.label(x(begin), y(offset + count), wide, tall, label, fill, 10)
    for command in range(0, last + 1, 10):
        out.line([(x(command), top + height), (x(command), top + height + 4)], LINE)
        out.text(x(command), top + height + 17, str(command), 11, anchor="middle")
    out.text((left + right) / 2, top + height + 34, "number of the command", 12, anchor="middle")
    peak = plan["moment_of_peak"]
    at = x(peak["command"] + 0.5)
    for edge, way in ((top, -1), (top + height, 1)):
        out.line([(at, edge + way * 9), (at, edge)], "#d1242f", 3)
    out.text(at, top - 13, f"most is alive at command {peak['command']} ({peak['label']}): {size(peak['bytes'])}", 12,
             anchor="middle")
    return below_axis(out, plan, x, left, top + height + 44)


def below_axis(out, plan, x, left, y):
    """Draws the phases and the collectives of the step."""
    labels = [(command[0], command[2]) for command in plan["commands"]]
    loss = expect([number for number, label in labels if "targets" in label], "a launch that reads targets")[0]
    reduced = [number for number, label in labels if label.startswith("reduce_scatter")][-1]
    bounds = [0, loss + 1, reduced + 1, len(plan["moments"]) - 1]
    for name, begin, end in zip(("forward and loss", "backward", "update"), bounds, bounds[1:]):
        out.box(x(begin) + 1, y, x(end) - x(begin) - 2, 19, name, "#c9d1d9")
    out.text(left - 6, y + 14, "part", 11, anchor="end")
    y += 25
    for kind, name in (("all_gather", "gathers"), ("reduce_scatter", "reductions")):
        fill = CATEGORIES["gathered" if kind == "all_gather" else "staging"]
        out.text(left - 6, y + 12, name, 11, anchor="end")
        units, last = [], 0  # the units of adjacent collectives, which are printed as one text
        for command, label in [each for each in labels if each[1].startswith(kind)] + [(len(plan["moments"]), "")]:
            if units and command > last + 1:
                out.text(x(last + 1) + 3, y + 12, ", ".join(units), 11)
                units = []
            if label:
                out.rect(x(command), y, x(1) - x(0) - 0.5, 15, fill, tip=f"command {command}: {label}")
                units.append(label.split(" ")[1])
                last = command
        y += 19
    out.text(left, y + 12, "A size in the legend is the most of that kind at one moment.", 11)
    return out
