"""Compares the simulation of Llama 3.1 8B, 2 x 8192 tokens per rank, with torchtitan's measurements on as many H100s.

Source: github.com/pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md (2024-12-26), tables 1 and 3. The cluster
file names the sources of its rates. No rate there, and no number in torchtitan_kernels.py, comes from those tables.

usage: torchtitan.py CLUSTER.json [--table]
"""
import itertools
import json
import re
import subprocess
import sys

import torchtitan_kernels

TOKENS = torchtitan_kernels.LLAMA_8B.T
ATTENTION = torchtitan_kernels.attention(torchtitan_kernels.LLAMA_8B, 8192, 1)
MEASURED = {8: (("FSDP", 5762), ("FSDP + torch.compile", 6667), ("FSDP + torch.compile + Float8", 8532)),
            128: (("FSDP", 5605), ("FSDP + torch.compile", 6514), ("FSDP + torch.compile + Float8", 8380))}


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def simulate(ranks, cluster):
    """Returns the seconds of compute, of the products of layers, of those of the head, of all collectives one after another, of gathers of layers, and of
    the step. The first three are those of kernels on all multiprocessors."""
    run("fsdp-compile", "llama.mlir", f"--mesh=shard={ranks}", "--param-dtype=bf16", "--reduce-dtype=f32", "--clip-grad-norm=1", "--target-cpu=x86-64-v3",
        "--activation-checkpointing=selective=contract/2+attention", "--overlap", "--cluster=" + cluster, "--no-code", "-o", "llama.fsdp")
    text = run("fsdp-run", "llama.fsdp", "--simulate=" + cluster)
    step = float(re.search(r"a step of ([0-9.]+) ms", text).group(1))
    # Without the time for which collectives occupy multiprocessors.
    slowed = re.search(r"compute includes ([0-9.]+) ms", text)
    compute = float(re.search(r"compute ([0-9.]+) ms", text).group(1)) - float(slowed.group(1) if slowed else 0)
    alone = [(float(time), what) for time, what in re.findall(r"^ *[0-9.]+ +[0-9.]+ +([0-9.]+) +\d+ +[0-9,]+  (.*)", text, re.M)]
    products = [(float(time), what) for time, what in re.findall(r"^ +([0-9.]+) .*  contract k_(.*)", text, re.M)]
    head = sum(time for time, what in products if "lm_head" in what)
    return [time / 1e3 for time in (compute, sum(time for time, _ in products) - head, head, sum(time for time, _ in alone),
                                    sum(time for time, what in alone if what.startswith("all_gather model.layers")), step)]


def recomputed():
    """Returns the products of a layer that the backward recomputes, by their parameters."""
    step = re.search(r"\nprogram 'step'.*?(?=\nprogram )", run("fsdp-run", "llama.fsdp", "--dump"), re.S).group(0)
    layer = "model.layers.1."
    calls = re.findall(r"launch +(k_\w+) .*; contract " + re.escape(layer) + r"(\w+\.\w+)_proj\.weight$", step, re.M)
    return sorted({name.split(".")[1] for kernel, name in calls if calls.count((kernel, name)) > 1})


def seconds(kernels, device):
    return sum(kernel.bytes / device["bytes_per_second"] + kernel.runs * device["launch_seconds"] for kernel in kernels)


def show(kernels, device):
    for group, rows in itertools.groupby(kernels, lambda kernel: kernel.group):
        rows = list(rows)
        print(f"  {group}: {sum(row.bytes for row in rows) / 1e9:.1f} GB, {1e3 * seconds(rows, device):.1f} ms")
        for row in rows if "--table" in sys.argv else ():
            print(f"    {row.what} ({row.source}): {row.runs} runs, {row.bytes / 1e9:.2f} GB")


run("fsdp-modelgen", "llama", "--hidden=4096", "--layers=32", "--heads=32", "--kv-heads=8", "--intermediate=14336", "--vocab=128256",
    "--seq=8192", "--batch=2", "-o", "llama.mlir")
device = json.load(open(sys.argv[1]))["device"]
steps, ours, sums, rates = {}, {}, {}, {}
for ranks, points in MEASURED.items():
    compute, layers, head, communication, gathers, step = simulate(ranks, sys.argv[1])
    steps[ranks], ours[ranks] = step, compute + communication
    print(f"{ranks} ranks: compute {1e3 * compute:.0f} ms, of it products {1e3 * (layers + head):.0f} ms; torchtitan's attention {1e3 * ATTENTION:.0f} ms; "
          f"communication {1e3 * communication:.0f} ms, a step of {1e3 * step:.0f} ms; computed again: {', '.join(recomputed())}")
    for name, rate in points:
        is_float8 = "Float8" in name
        beside = torchtitan_kernels.kernels(torchtitan_kernels.LLAMA_8B, ranks, "compile" in name, is_float8=is_float8)
        # Float8 has twice the rate of bf16, and shards that are cast before they are gathered have half of the bytes.
        listed = (layers / 2 if is_float8 else layers) + head + ATTENTION + seconds(beside, device)
        waited = communication - (gathers / 2 if is_float8 else 0)
        measured, longer = TOKENS / rate, max(0 if is_float8 else compute, listed, waited)
        rates.setdefault(name, []).append(rate)
        sums.setdefault(name, []).append(listed + waited)
        print(f"{name}: products, attention and the list {1e3 * listed:.0f} ms, with communication {1e3 * sums[name][-1]:.0f} ms; "
              f"measured {1e3 * measured:.0f} ms, {measured / longer:.2f} x the longer, {measured / sums[name][-1]:.3f} x the sum, "
              f"{measured / (sums[name][-1] - ATTENTION * (1 - torchtitan_kernels.SDPA)):.3f} x the sum with attention of flash-attention")
        show(beside, device)
        if measured < longer:
            sys.exit(f"{name}: measured {measured} s, which is less than {longer} s")
        if not 1 / 1.1 < measured / sums[name][-1] < 1.1:
            sys.exit(f"{name}: expected {sums[name][-1]} s within 10 % of the measured {measured} s")
change = lambda before, after: f"{100 * (before / after - 1):+.1f} %"
print(f"from 8 to 128: simulated {change(steps[8], steps[128])}, with nothing hidden {change(ours[8], ours[128])}; "
      + "; ".join(f"{name} {change(*sums[name])} with the list and nothing hidden, measured {change(*rates[name][::-1])}" for name in sums))
for before, after in zip(*([TOKENS / rate for _, rate in MEASURED[ranks]] for ranks in (8, 128))):
    hidden = 100 * (ours[8] / ours[128] - 1)
    if abs(hidden - 100 * (before / after - 1)) > 1:
        sys.exit(f"from 8 to 128: {hidden} %, measured {100 * (before / after - 1)} %")
names = [name for name, _ in MEASURED[8]]
for index, ranks in enumerate(MEASURED):
    measured = [TOKENS / rate for _, rate in MEASURED[ranks]]
    print(f"what torch.compile saves on {ranks} ranks: by the list {1e3 * (sums[names[0]][index] - sums[names[1]][index]):.0f} ms, "
          f"measured {1e3 * (measured[0] - measured[1]):.0f} ms")
