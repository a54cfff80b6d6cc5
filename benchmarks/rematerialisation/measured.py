#!/usr/bin/env python3
"""Whether recomputing costs what the plan says: steps of `auto` at 60 % of the arena beside steps that keep all.

    benchmarks/rematerialisation/measured.py [--share=0.6] [--rounds=8] [--ranks=1,2] [--cpu-time] [options of fsdp-modelgen]

Runs of both artifacts take turns, on as many processors as there are ranks, two steps each after one that is not counted.
Of all steps the fastest of each is taken: what else the machine does only adds. The planned ratio is that of the time that
kernels are estimated to take (docs/reference/explain.md: compute_seconds). `--cpu-time`, for a machine that does other things, too:
what ranks were on their processors.
"""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from commands import explain, run, run_steps

MODEL = ["gpt2", "--layers=6", "--hidden=256", "--heads=4", "--vocab=256", "--seq=256", "--batch=8"]


def compare(ranks, share, rounds, member):
    """Planned and measured ratio, and milliseconds of both."""
    options = [f"--mesh=shard={ranks}", "--threads-per-rank=1"]
    none = explain("model.mlir", *options, "--overlap")
    limit = int(none["memory"]["peak"] * share)
    limited = [*options, "--activation-checkpointing=auto", f"--memory-limit={limit}"]
    auto = explain("model.mlir", *limited, "--overlap")
    if auto is None:
        sys.exit(f"{ranks} ranks: nothing fits into {100 * share:.0f} % of the arena")
    run("fsdp-compile", "model.mlir", *options, "--overlap", "-o", "none.fsdp")
    run("fsdp-compile", "model.mlir", *limited, "--overlap", "-o", "auto.fsdp")
    fastest = {"none": float("inf"), "auto": float("inf")}
    for _ in range(rounds):
        for name in fastest:
            fastest[name] = min(fastest[name], *run_steps(f"{name}.fsdp", 2, cores=ranks, member=member))
    planned = auto["schedule"]["compute_seconds"] / none["schedule"]["compute_seconds"]
    return auto["memory"]["peak"] / none["memory"]["peak"], planned, fastest["none"], fastest["auto"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.6)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--cpu-time", action="store_true")
    arguments, model = parser.parse_known_args()
    model = model or MODEL
    flags = f"--share={arguments.share} --rounds={arguments.rounds}" + (" --cpu-time" if arguments.cpu_time else "")
    print(f"`benchmarks/rematerialisation/measured.py {flags} {' '.join(model)}`, {os.cpu_count()} cores\n")
    print("| ranks | arena, of none | step, none | step, auto | measured ratio | planned ratio | measured / planned |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run("fsdp-modelgen", *model, "-o", "model.mlir")
        for ranks in map(int, arguments.ranks.split(",")):
            arena, planned, none, auto = compare(ranks, arguments.share, arguments.rounds, "cpu_ms" if arguments.cpu_time else "step_ms")
            print(f"| {ranks} | {100 * arena:.1f} % | {none:.1f} ms | {auto:.1f} ms | {auto / none:.3f} | {planned:.3f} | "
                  f"{auto / none / planned:.3f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
