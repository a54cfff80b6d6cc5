#!/usr/bin/env python3
"""Plots step time against memory for --activation-checkpointing=auto at several memory limits, and for the values `none` and `full`.

    benchmarks/rematerialisation/sweep.py [--out=docs/benchmarks] [options of fsdp-modelgen]

Reads only plans, and runs no step. A plan states the estimated time of a step on CPU ranks and the size of the arena, so the numbers are equal on every
machine. Writes a table and a plot (SVG). The default model is GPT-2 124M with 4 x 1024 tokens per rank on 4 ranks.
"""
import argparse
import json
import subprocess
import sys
import tempfile

SHARES = [1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.42, 0.4]


def explain(model, mesh, *options):
    words = ["fsdp-compile", model, f"--mesh={mesh}", "--overlap", "--explain=json", *options]
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode:
        return None
    plan = json.loads(out.stdout)
    return plan["memory"]["peak"], plan["schedule"]["scheduled_seconds"]


def plot(points, none, full, path):
    """Writes the plot. The x axis shows memory and the y axis shows time. Both axes are relative to the values without checkpointing."""
    left, top, width, height = 70, 20, 520, 300
    low, high = 0.3, 1.02
    most = max(time for _, time in points + [full]) / none[1] + 0.02

    def place(memory, time):
        return (left + width * (memory / none[0] - low) / (high - low),
                top + height * (1 - (time / none[1] - 0.98) / (most - 0.98)))

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 50}" '
           'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for tick in range(4, 11):
        x, _ = place(none[0] * tick / 10, none[1])
        svg.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">{tick * 10} %</text>')
    time = 1.0
    while time <= most:
        _, y = place(none[0], none[1] * time)
        svg.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{time:.2f}</text>')
        time += 0.05
    line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in points)
    svg.append(f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="2"/>')
    svg += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="#06c"/>'.format(*place(*point)) for point in points]
    for name, point in (("none", none), ("full", full)):
        x, y = place(*point)
        svg.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#c30"/><text x="{x:.1f}" y="{y - 10:.1f}" '
                   f'text-anchor="middle" fill="#c30">{name}</text>')
    svg.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">arena, of what keeps all</text>'
               f'<text x="16" y="{top + height / 2}" transform="rotate(-90 16 {top + height / 2})" '
               'text-anchor="middle">estimated time of a step</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(svg) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="docs/benchmarks", help="output folder (default: %(default)s)")
    parser.add_argument("--mesh", default="shard=4", help="default: %(default)s")
    parser.add_argument("--date", default="", help="date for the table")
    arguments, model = parser.parse_known_args()
    model = model or ["gpt2", "--seq=1024", "--batch=4"]
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/model.mlir"
        subprocess.run(["fsdp-modelgen", *model, "-o", path], check=True, stderr=subprocess.DEVNULL)
        none = explain(path, arguments.mesh)
        full = explain(path, arguments.mesh, "--activation-checkpointing=full")
        points = []
        rows = []
        for share in SHARES:
            limit = int(none[0] * share)
            point = explain(path, arguments.mesh, "--activation-checkpointing=auto", f"--memory-limit={limit}")
            rows.append((share, limit, point))
            if point:
                points.append(point)
        at_full = explain(path, arguments.mesh, "--activation-checkpointing=auto", f"--memory-limit={full[0]}")
        offloaded = explain(path, arguments.mesh, "--activation-checkpointing=auto", f"--memory-limit={full[0]}",
                            "--offload=activations")
    plot(points, none, full, arguments.out + "/rematerialisation.svg")
    with open(arguments.out + "/rematerialisation.md", "w") as file:
        write = lambda line="": print(line, file=file)
        write("# Time against memory\n")
        write("This page is for readers who choose `--activation-checkpointing` by time and memory of a step.")
        write(f"`benchmarks/rematerialisation/sweep.py --mesh={arguments.mesh} {' '.join(model)}`" +
              (f", {arguments.date}," if arguments.date else ""))
        write("plans with `--overlap`. Times are estimates for CPU ranks; they rank plans and are not forecasts.\n")
        write("![time against memory](rematerialisation.svg)\n")
        write("| `--activation-checkpointing` | limit | arena | of none | time | of none |")
        write("|---|---|---|---|---|---|")
        row = lambda name, limit, point: write(
            f"| {name} | {limit} | {point[0]} | {100 * point[0] / none[0]:.1f} % | {point[1]:.3f} s | {point[1] / none[1]:.3f} |")
        row("none", "", none)
        for share, limit, point in rows:
            if point:
                row(f"auto, {100 * share:.0f} %", limit, point)
            else:
                write(f"| auto, {100 * share:.0f} % | {limit} | does not fit | | | |")
        row("full", "", full)
        if at_full:
            row("auto, at the arena of full", full[0], at_full)
        if offloaded:
            row("the same with `--offload=activations`", full[0], offloaded)
            write(f"\nActivations that may stay on the host need not be recomputed: at the arena of `full` that takes\n"
                  f"{100 * (1 - offloaded[1] / full[1]):.1f} % less time than `full`. Copies are estimated at the bandwidth of memory.")


if __name__ == "__main__":
    sys.exit(main())
