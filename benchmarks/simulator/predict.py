#!/usr/bin/env python3
"""Compares step times that are measured on this machine with the step times that `fsdp-run --simulate` predicts. The rates for the simulation are
measured with another model.

    benchmarks/simulator/predict.py [--build=build] [--steps=12] [--table=FILE.md] [--date=DATE] [--cluster=FILE.json] [--ranks=1,2]
                                    [--cpu-time]

 1. Calibrate for one rank and for two: a small GPT is trained with a trace. The fastest run of each command is used, since other processes only add
    time. The rate of a kind of kernel is the sum of the work of all its commands divided by the sum of their times. The time between commands is taken
    as launch time. The rates of links are measured by cpu_collectives. In a step, a unit is gathered twice and reduced once. The rate of a link is
    therefore taken from the mean time of two all-gathers and a reduce-scatter, at the measured size that is nearest to the size of the unit.
 2. With these rates, simulate steps of models that have another depth, width, sequence length or family.
 3. Measure the fastest and the median step of the same models, on one processor per rank.

`--cluster` writes the last simulated cluster to a file. With `--cpu-time`, the CPU time of the ranks is measured instead of the elapsed time. This
option is meant for machines that other users share. CPU time does not contain the time in which a rank sleeps while it waits. It is therefore more
reliable for one rank than for two.
"""
import argparse
import collections
import json
import os
import re
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from commands import explain, run, run_steps, trace_steps

CALIBRATION = ["gpt2", "--layers=4", "--hidden=256", "--heads=4", "--vocab=512", "--seq=256", "--batch=4"]
PREDICTED = [
    ("GPT, 12 layers of 384, 2 x 256 tokens", ["gpt2", "--layers=12", "--hidden=384", "--heads=6", "--vocab=512", "--seq=256", "--batch=2"]),
    ("GPT, 6 layers of 512, 4 x 128 tokens", ["gpt2", "--layers=6", "--hidden=512", "--heads=8", "--vocab=1024", "--seq=128", "--batch=4"]),
    ("Llama, 6 layers of 384, 2 x 256 tokens", ["llama", "--layers=6", "--hidden=384", "--heads=6", "--vocab=1024", "--seq=256", "--batch=2"]),
]
Trace = collections.namedtuple("Trace", "commands launch_seconds")  # commands is a list of (kind, kernel, bytes, seconds)


def trace_commands(artifact, ranks, steps, cpu_time):
    """Returns the trace of a step's commands. The seconds of a command are the mean, over the ranks, of the time of its fastest run. If `cpu_time` is
    set, the seconds are the mean over all runs, because the trace does not show which runs were interrupted by another process."""
    times, slices = trace_steps(artifact, steps, cores=ranks, member="cpu_ms")
    compute = min(event["tid"] for event in slices)
    lanes = collections.defaultdict(list)  # the commands that ran in each (rank, step)
    spans = {}
    for event in sorted((event for event in slices if event["tid"] == compute), key=lambda event: event["ts"]):
        if event["name"].startswith("step "):
            spans[event["pid"], int(event["name"][5:])] = event["dur"]
        else:
            lanes[event["pid"], event["args"]["step"]].append(event)
    if cpu_time:  # Scales the times of each step's commands so that their sum is the CPU time of the step.
        for (rank, step), lane in lanes.items():
            part = min(times[step - 2] / ranks / (spans[rank, step] / 1e3), 1)
            spans[rank, step] *= part
            for event in lane:
                event["dur"] *= part
    choose = statistics.mean if cpu_time else min
    commands, gaps = [], []
    for index in range(len(next(iter(lanes.values())))):
        first = next(iter(lanes.values()))[index]
        least = [choose(lane[index]["dur"] for (rank, _), lane in lanes.items() if rank == each) for each in range(ranks)]
        arguments = first["args"]
        commands.append((arguments.get("kind", first["name"].split(" ")[0]), arguments.get("kernel", ""), arguments.get("bytes", 0),
                         statistics.mean(least) / 1e6))
    for key, lane in lanes.items():
        gaps.append((spans[key] - sum(event["dur"] for event in lane)) / len(lane) / 1e6)
    return Trace(commands, max(min(gaps), 0))


def products_of(artifact):
    """Returns the number of multiply-adds of each kernel by the kernel's name."""
    found = re.findall(r"^ *kernel \d+ '(\w+)' .*; (\d+) multiply-adds", run("fsdp-run", artifact, "--dump"), re.M)
    return {name: int(count) for name, count in found}


def calibrate_device(ranks, steps, cpu_time):
    run("fsdp-modelgen", *CALIBRATION, "-o", "small.mlir")
    run("fsdp-compile", "small.mlir", f"--mesh=shard={ranks}", "--threads-per-rank=1", "-o", "small.fsdp")
    trace, products = trace_commands("small.fsdp", ranks, steps, cpu_time), products_of("small.fsdp")
    sums = collections.defaultdict(lambda: [0, 0, 0])  # for each kind of kernel: seconds, bytes and multiply-adds
    for kind, kernel, moved, seconds in trace.commands:
        if kind != "wait":
            sums[kind] = [a + b for a, b in zip(sums[kind], (seconds, moved, products.get(kernel, 0)))]
    kinds = {}
    for kind, (seconds, moved, count) in sums.items():
        if seconds > 0 and count > 0:
            kinds[kind] = {"multiply_adds_per_second": count / seconds}
        elif seconds > 0 and moved > 0:
            kinds[kind] = {"bytes_per_second": moved / seconds}
    products_rate = max(rates.get("multiply_adds_per_second", 0) for rates in kinds.values())
    return {"f32_multiply_adds_per_second": products_rate, "bf16_multiply_adds_per_second": products_rate,
            "bytes_per_second": max(rates.get("bytes_per_second", 0) for rates in kinds.values()),
            "launch_seconds": trace.launch_seconds, "kinds": kinds}


def calibrate_links(build):
    """Returns {bytes of a unit: description of the simulated link, whose rate holds for units of this size}."""
    sizes = [4, 1024, 4096, 16384]
    seconds = collections.defaultdict(dict)
    for line in run(f"{build}/bin/cpu_collectives", "local", *map(str, sizes), cores=2).splitlines():
        kind, mebibytes, gigabytes = line.split()
        seconds[float(mebibytes) * 2**20][kind] = float(mebibytes) * 2**20 / (float(gigabytes) * 1e9)
    step = {size: (2 * times["all_gather"] + times["reduce_scatter"]) / 3 for size, times in seconds.items()}
    base = step[4 * 1024]
    return {size: {"name": "memory", "seconds": base, "bytes_per_second": size / 2 / (time - base)}
            for size, time in step.items() if size > 4 * 1024}


def predict(model, ranks, device, links):
    """Returns the simulated seconds of a step."""
    options = [f"--mesh=shard={ranks}", "--threads-per-rank=1"]
    run("fsdp-modelgen", *model, "-o", "model.mlir")
    run("fsdp-compile", "model.mlir", *options, "-o", "model.fsdp")
    unit = max(entry["gathered_bytes"] for entry in explain("model.mlir", *options)["units"])
    link = links[min(links, key=lambda size: abs(size - unit))]
    with open("here.json", "w") as file:
        json.dump({"name": "this machine", "device": device, "links": [link]}, file, indent=2)
    return float(re.search(r"a step of ([0-9.]+) ms", run("fsdp-run", "model.fsdp", "--simulate=here.json")).group(1)) / 1e3


def measure(ranks, steps, cpu_time):
    """Trains `steps` steps. Returns the seconds of the fastest step and of the median step."""
    times = run_steps("model.fsdp", steps, cores=ranks, member="cpu_ms" if cpu_time else "step_ms")
    each = [time / 1e3 / (ranks if cpu_time else 1) for time in times]
    return min(each), statistics.median(each)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=12, help="measured steps (default: %(default)s)")
    parser.add_argument("--table", metavar="FILE", help="output file (default: standard output)")
    parser.add_argument("--date", default="", help="date for the table")
    parser.add_argument("--cluster", metavar="FILE", help="write the last cluster to this file")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: %(default)s)")
    parser.add_argument("--cpu-time", action="store_true", help="measure CPU time")
    arguments = parser.parse_args()
    out = open(arguments.table, "w") if arguments.table else sys.stdout
    build, kept = os.path.abspath(arguments.build), arguments.cluster and os.path.abspath(arguments.cluster)
    write = lambda line="": print(line, file=out, flush=True)
    write("# Simulated and measured steps\n")
    write("This page is for readers who compare simulated with measured steps on CPU ranks.")
    write(f"`benchmarks/simulator/predict.py --steps={arguments.steps} --ranks={arguments.ranks}{' --cpu-time' if arguments.cpu_time else ''}`" + (f", {arguments.date}" if arguments.date else "") +
          ",")
    write(f"{os.cpu_count()} cores, one for each rank. Kernels have the rates by kind of\n`{' '.join(CALIBRATION)}` on as many ranks,")
    write("and links those of `cpu_collectives local`. Nothing is taken from the models below." +
          ("\nTimes are CPU times of a rank, because the machine was shared." if arguments.cpu_time else "") + "\n")
    write("| model | ranks | simulated | measured: fastest | median | fastest / simulated | median / simulated |")
    write("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        links = calibrate_links(build)
        for ranks in map(int, arguments.ranks.split(",")):
            device = calibrate_device(ranks, arguments.steps, arguments.cpu_time)
            for name, model in PREDICTED:
                seconds = predict(model, ranks, device, links)
                least, median = measure(ranks, arguments.steps, arguments.cpu_time)
                write(f"| {name} | {ranks} | {1e3 * seconds:.1f} ms | {1e3 * least:.1f} ms | {1e3 * median:.1f} ms | "
                      f"{least / seconds:.3f} | {median / seconds:.3f} |")
        if kept:
            with open("here.json") as source, open(kept, "w") as target:
                target.write(source.read())
        os.chdir("/")


if __name__ == "__main__":
    sys.exit(main())
