#!/usr/bin/env python3
"""Compares the measured cost of recomputation with the planned cost. One measured artifact has no checkpointing. The other has activation
checkpointing `auto`, and its arena is limited to 60 %.

    benchmarks/rematerialisation/measured.py [--share=0.6] [--rounds=8] [--ranks=1,2] [--cpu-time] [options of fsdp-modelgen]

The runs of the two artifacts alternate. Each run uses one processor per rank, and takes two steps after a warm-up step. The fastest step of each
artifact is used, since other processes only add time. The planned ratio is the quotient of the artifacts' compute_seconds, which
docs/reference/explain.md describes. With `--cpu-time`, the CPU time of the ranks is measured instead of the elapsed time. This option is meant for
machines that other users share.
"""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from commands import explain, run, run_steps

MODEL = ["gpt2", "--layers=6", "--hidden=256", "--heads=4", "--vocab=256", "--seq=256", "--batch=8"]


def compare(ranks, share, rounds, member):
    """Returns the ratio of the arena sizes, the planned ratio of compute times, and the milliseconds of the fastest step of each artifact."""
    options = [f"--mesh=shard={ranks}", "--threads-per-rank=1"]
    none = explain("model.mlir", *options, "--overlap")
    limit = int(none["memory"]["peak"] * share)
    limited = [*options, "--activation-checkpointing=auto", f"--memory-limit={limit}"]
    auto = explain("model.mlir", *limited, "--overlap")
    if auto is None:
        sys.exit(f"{ranks} ranks: no plan fits into {100 * share:.0f} % of the arena; take a larger --share")
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
    parser.add_argument("--share", type=float, default=0.6, help="limit as a share of the arena (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: %(default)s)")
    parser.add_argument("--cpu-time", action="store_true", help="measure CPU time")
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
