"""Compares the times of collectives of activations on the cluster 4x2 (pairs of ranks at 4 GB/s and 2 us, all at 0.5 GB/s and 10 us) with closed
forms. A rank of a ring of n sends rounds * bytes * (n - 1) / n bytes. It shares the links of `below` ranks of the ring in the same pair."""
import json
import re
import subprocess
import sys

LAYERS, BATCH, SEQ, HIDDEN, HEADS, KV_HEADS = 3, 2, 32, 64, 4, 2
ROW = re.compile(r"^ +[0-9.]+ +[0-9.]+ +([0-9.]+) +(\d+) +([\d,]+)  (\w+) over (\w+)$", re.M)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ring(size, ranks, stride, rounds):
    below = max(1, min(ranks, 2 // stride))  # ranks of the ring in a pair
    if below == ranks:
        return rounds * ((ranks - 1) * 2e-6 + size * (ranks - 1) / ranks / 4e9)
    across = -(-ranks // below) - 1
    inside = ranks - 1 - across
    return rounds * (inside * 2e-6 + across * 10e-6 + size * (ranks - 1) / ranks / (0.5e9 * below))


for mesh in ["tensor=2", "shard=4,tensor=2", "context=2", "shard=2,context=4", "context=4,tensor=2"]:
    sizes = {name: int(ranks) for name, ranks in (axis.split("=") for axis in mesh.split(","))}
    context, tensor = sizes.get("context", 1), sizes.get("tensor", 1)
    tokens = BATCH * SEQ * 4
    keys = tokens * HIDDEN // HEADS * KV_HEADS // tensor
    # Forward and backward: an all-reduce for attention and one for the MLP, of f32; keys and values.
    expected = {}
    if tensor > 1:
        expected["all_reduce", "tensor"] = 4 * LAYERS, tokens * HIDDEN // context, ring(tokens * HIDDEN // context, tensor, 1, 2)
    if context > 1:
        expected["all_gather", "context"] = 2 * LAYERS, keys, ring(keys, context, tensor, 1)
        # One kernel computes the gradients of keys and values, so both start as one launch.
        expected["reduce_scatter", "context"] = 2 * LAYERS, keys, ring(2 * keys, context, tensor, 1) / 2
    run("fsdp-compile", "llama.mlir", f"--mesh={mesh}", "--cluster=cluster.json", "--overlap", "--no-code", "-o", "a.fsdp")
    report = run("fsdp-run", "a.fsdp", "--simulate=cluster.json")
    found = {(kind, axis): (float(alone) / 1e3, int(runs), int(total.replace(",", ""))) for alone, runs, total, kind, axis in ROW.findall(report)}
    for (kind, axis), (runs, size, seconds) in expected.items():
        alone, found_runs, total = found[kind, axis]
        # Norms and losses add a few numbers over the same axes. A row is printed in us.
        scalars = found_runs - runs
        small = ring(4, sizes[axis], tensor if axis == "context" else 1, 2)
        if not 0 <= scalars <= 3 or not 0 <= total - runs * size <= 16 * scalars:
            sys.exit(f"{mesh}: {kind} over {axis}: expected {runs} runs of {size} bytes, found {found_runs} of {total} in all\n{report}")
        if abs(alone - runs * seconds - scalars * small) > 1.5e-6:
            sys.exit(f"{mesh}: {kind} over {axis}: expected {runs * seconds + scalars * small} s, found {alone} s\n{report}")
        print(f"{mesh}: {runs} x {kind} over {axis} of {size} bytes: {seconds * 1e6:.3f} us each")
    # The schedule of the compiler estimates the same program, with other rules for hidden latencies.
    schedule = json.loads(run("fsdp-compile", "llama.mlir", f"--mesh={mesh}", "--cluster=cluster.json", "--overlap", "--explain=json"))["schedule"]
    simulated = float(re.search(r"a step of ([0-9.]+) ms", report)[1]) / 1e3
    if abs(schedule["scheduled_seconds"] / simulated - 1) > 0.05:
        sys.exit(f"{mesh}: the schedule takes {schedule['scheduled_seconds']} s, the simulator {simulated} s")
