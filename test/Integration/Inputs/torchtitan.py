"""Llama 3.1 8B, 2 x 8192 tokens per rank, simulated beside what torchtitan measured on as many H100s.

The figures: github.com/pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md (2024-12-26), tables 1 and 3. The cluster
file says where its rates are from; none is from those tables.

usage: torchtitan.py CLUSTER.json
"""
import re
import subprocess
import sys

TOKENS = 2 * 8192
MEASURED = {8: (("FSDP", 5762), ("FSDP + torch.compile", 6667)), 128: (("FSDP", 5605), ("FSDP + torch.compile", 6514))}


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def simulate(ranks, cluster):
    """Seconds of compute, of all collectives in a row, of the step."""
    run("fsdp-compile", "llama.mlir", f"--mesh=shard={ranks}", "--param-dtype=bf16", "--reduce-dtype=f32", "--clip-grad-norm=1",
        "--activation-checkpointing=selective=contract+attention", "--overlap", "--cluster=" + cluster, "--no-code", "-o", "llama.fsdp")
    text = run("fsdp-run", "llama.fsdp", "--simulate=" + cluster)
    step = float(re.search(r"a step of ([0-9.]+) ms", text).group(1))
    compute = float(re.search(r"compute ([0-9.]+) ms", text).group(1))
    alone = sum(float(row) for row in re.findall(r"^ *[0-9.]+ +[0-9.]+ +([0-9.]+) +\d+ +[0-9,]+  ", text, re.M))
    return compute / 1e3, alone / 1e3, step / 1e3


run("fsdp-modelgen", "llama", "--hidden=4096", "--layers=32", "--heads=32", "--kv-heads=8", "--intermediate=14336", "--vocab=128256",
    "--seq=8192", "--batch=2", "-o", "llama.mlir")
steps, sums, rates = {}, {}, {}
for ranks, points in MEASURED.items():
    compute, communication, step = simulate(ranks, sys.argv[1])
    steps[ranks], sums[ranks] = step, compute + communication
    print(f"{ranks} ranks: compute {1e3 * compute:.0f} ms, communication {1e3 * communication:.0f} ms, a step of {1e3 * step:.0f} ms")
    for name, rate in points:
        seconds = TOKENS / rate
        rates.setdefault(name, []).append(rate)
        longer = max(compute, communication)
        if seconds < longer:
            sys.exit(f"{name}: measured {seconds} s, which is less than {longer} s")
        print(f"measured, {name}: {1e3 * seconds:.0f} ms, {seconds / longer:.2f} x the longer, {seconds / sums[ranks]:.2f} x the sum")
drop = lambda before, after: f"{100 * (after / before - 1):+.1f} %"
print(f"from 8 to 128: simulated {drop(steps[128], steps[8])}, with nothing hidden {drop(sums[128], sums[8])}; "
      f"measured {', '.join(drop(*pair) for pair in rates.values())}")
