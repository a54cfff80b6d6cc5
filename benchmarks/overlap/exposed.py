#!/usr/bin/env python3
"""Measures how long two ranks wait for their collectives, with and without the schedule of fsdp-compile --overlap.

    benchmarks/overlap/exposed.py [--tries=6] [options of fsdp-modelgen]    prints one line
    benchmarks/overlap/exposed.py --table=FILE.md [--date=DATE]            writes a table of both models below

 1. Measure the compute time of a step. This run has no schedule, and the bandwidth of its links is not limited.
 2. Choose the bandwidth at which the communication of a rank takes PART of the compute time. Scale the rates of the device in the cluster file until
    the compiler's estimate of the compute time equals the measured time.
 3. Measure steps with that bandwidth, first without a schedule and then with one. Each wait counts with its shortest duration in any step, because
    other processes delay different ranks in different steps. Repeat all of the above until a try hides 80 % of the waits, and report the best try.

Also prints a lower bound of the time that commands wait for collectives. The bound holds for all schedules that keep the order of the compute commands and run each collective between the
definition of its operands and the first use of its result (lib/Analysis/Timeline.cpp).
"""
import argparse
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from commands import explain, run, trace_steps

PART = 0.3  # communication time divided by compute time
BYTES = ["gpt2", "--layers=12", "--hidden=256", "--heads=4", "--vocab=256", "--seq=256", "--batch=2"]
TABLE = [
    ("12 layers, 256 channels, bytes; 2 x 256 tokens", BYTES),
    ("GPT-2 124M, tied root of 50,257 rows; 1 x 256 tokens", ["gpt2", "--seq=256", "--batch=1"]),
]
OPTIONS = ["--mesh=shard=2", "--optimizer=sgd"]


def measure(artifact, *options):
    """Returns the milliseconds of the fastest step, and the sum of the shortest durations of its waits in milliseconds. Both times are means over the
    ranks."""
    times, slices = trace_steps(artifact, 6, *options)
    steps = {}  # (rank, step) -> durations of the waits, in the order of the program
    for event in sorted(slices, key=lambda event: event["ts"]):
        if event["name"].startswith("wait "):
            steps.setdefault((event["pid"], event["args"]["step"]), []).append(event["dur"] / 1e3)
    ranks = {rank for rank, _ in steps}
    shortest = [min(durations) for rank in ranks for durations in zip(*(waits for key, waits in steps.items() if key[0] == rank), strict=True)]
    return min(times), sum(shortest) / len(ranks)


def attempt(sent):
    """Makes one try. Returns four times in milliseconds per step: the compute time, the waits without a schedule, the waits with a schedule, and the
    lower bound of the waits."""
    step, waited = measure("plain.fsdp")
    compute = (step - waited) / 1e3
    links = sent / (PART * compute)
    # Initial rates of the device. The loop below scales these rates until the estimated compute time of a step equals the measured time.
    device = {"f32_multiply_adds_per_second": 1e11, "bf16_multiply_adds_per_second": 2e11, "bytes_per_second": 1.5e10, "launch_seconds": 1e-6}
    cluster = {"name": "here", "device": device, "links": [{"name": "slow", "bytes_per_second": links, "seconds": 1e-5}]}
    for correction in range(2):
        json.dump(cluster, open("cluster.json", "w"))
        schedule = explain("gpt.mlir", *OPTIONS, "--overlap", "--cluster=cluster.json")["schedule"]
        factor = schedule["compute_seconds"] / compute
        for name in device:
            device[name] *= factor if name != "launch_seconds" else 1 / factor
    json.dump(cluster, open("cluster.json", "w"))
    run("fsdp-compile", "gpt.mlir", *OPTIONS, "--overlap", "--cluster=cluster.json", "-o", "ahead.fsdp")
    _, without = measure("plain.fsdp", f"--link-bandwidth={links:.0f}")
    _, ahead = measure("ahead.fsdp", f"--link-bandwidth={links:.0f}")
    return 1e3 * compute, without, ahead, 1e3 * (schedule["bound_seconds"] - schedule["compute_seconds"])


def best_of(model, tries):
    """Returns the result of the try in which the schedule hides the largest share of the waits. Works in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run("fsdp-modelgen", *model, "-o", "gpt.mlir")
        run("fsdp-compile", "gpt.mlir", *OPTIONS, "-o", "plain.fsdp")
        plan = explain("gpt.mlir", *OPTIONS)
        sent = sum(row["wire_bytes"] for row in plan["communication"])
        best = None
        for _ in range(tries):
            found = attempt(sent)
            if best is None or found[2] / found[1] < best[2] / best[1]:
                best = found
            if best[2] < 0.2 * best[1]:
                break
        os.chdir("/")
        return best


def write_table(path, tries, date):
    with open(path, "w") as file:
        write = lambda line="": print(line, file=file, flush=True)
        write("# Communication beside compute\n")
        write(f"`benchmarks/overlap/exposed.py --table=docs/benchmarks/overlap.md --tries={tries}`" + (f", {date}" if date else "") + f", {os.cpu_count()} cores.")
        write(f"Two ranks (`local`), f32, SGD, on links so slow (`--link-bandwidth`) that what a rank sends takes {100 * PART:.0f} % of the time that it computes.")
        write("Both programs in one run; each wait at its shortest in six steps. The last column is what no schedule of these commands can pass")
        write("([how](../../lib/Analysis/Timeline.cpp)).\n")
        write("| model | compute | exposed without a schedule | with `--overlap` | hidden | no schedule leaves less than |")
        write("|---|---|---|---|---|---|")
        for name, model in TABLE:
            compute, without, ahead, bound = best_of(model, tries)
            write(f"| {name} | {compute:.0f} ms | {without:.1f} ms | {ahead:.1f} ms | {100 - 100 * ahead / without:.0f} % | {bound:.1f} ms |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=6, help="most tries (default: %(default)s)")
    parser.add_argument("--table", metavar="FILE", help="write a table of both models")
    parser.add_argument("--date", default="", help="date for the table")
    arguments, model = parser.parse_known_args()
    if arguments.table:
        return write_table(os.path.abspath(arguments.table), arguments.tries, arguments.date)
    _, without, ahead, bound = best_of(model or BYTES, arguments.tries)
    print(f"exposed without a schedule {without:.1f} ms, with {ahead:.1f} ms: {100 - 100 * ahead / without:.0f} % less; "
          f"no schedule can leave less than {bound:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
