"""Compares simulated steps of Llama 3.1 on meshes with the axes tensor and context with torchtitan's measurements on as many H100s.

Sources: github.com/pytorch/torchtitan, benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md (bfloat16, vanilla TP with norms on rows, torch.compile, selective
activation checkpointing for 8B and full for 70B; sequences of 8192 tokens: train_configs at commit 820504e), and table 2 of
llama3_h100_202412_torchtitan.md (Float8, full activation checkpointing). No rate of the cluster file comes from these tables. For Float8,
a second simulation has all products at twice the rate of bf16, as is the ratio of both peaks.

usage: torchtitan_axes.py CLUSTER.json
"""
import json
import re
import subprocess
import sys

import torchtitan_kernels

WIDTHS = {"8B": ("4096", "32", "32", "14336"), "70B": ("8192", "80", "64", "28672")}
# Model, mesh, ranks, sequences of a mesh coordinate, tokens of a sequence, checkpointing, tokens per second and rank, whether in Float8.
SELECTIVE = "selective=contract/2+attention"
POINTS = [("8B", "shard=8,tensor=8", 64, 12, 8192, SELECTIVE, 4378, False), ("70B", "shard=32,tensor=8", 256, 16, 8192, "full", 597.3, False),
          ("8B", "shard=8", 8, 1, 32768, "full", 3890, True), ("8B", "shard=4,context=2", 8, 1, 65536, "full", 2540, True),
          ("8B", "shard=2,context=4", 8, 1, 131072, "full", 1071, True), ("8B", "shard=1,context=8", 8, 1, 262144, "full", 548, True)]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def simulate(cluster):
    """Returns the seconds of a step, of products and attention, of other kernels, and of all collectives one after another."""
    text = run("fsdp-run", "llama.fsdp", "--simulate=" + cluster)
    step = float(re.search(r"a step of ([0-9.]+) ms", text).group(1))
    compute = float(re.search(r"compute ([0-9.]+) ms", text).group(1))
    slowed = re.search(r"compute includes ([0-9.]+) ms", text)
    products = sum(float(row) for row in re.findall(r"^ +([0-9.]+) .*  (?:contract|attention) k_", text, re.M))
    alone = sum(float(row) for row in re.findall(r"^ *[0-9.]+ +[0-9.]+ +([0-9.]+) +\d+ +[0-9,]+  ", text, re.M))
    return step / 1e3, products / 1e3, (compute - (float(slowed.group(1)) if slowed else 0) - products) / 1e3, alone / 1e3


def write(cluster, name, ranks=None, factor=1):
    """Writes a cluster with more nodes, or a larger rate of products."""
    changed = json.loads(json.dumps(cluster))
    if ranks:
        changed["links"][-1]["ranks"] = ranks
    if factor != 1:
        changed["device"]["kinds"]["contract"] = {"multiply_adds_per_second": factor * changed["device"]["bf16_multiply_adds_per_second"]}
    json.dump(changed, open(name, "w"))
    return name


cluster = json.load(open(sys.argv[1]))
device = cluster["device"]
wide = write(cluster, "wide.json", ranks=256)
fast = write(cluster, "fast.json", factor=2)
for name, mesh, ranks, batch, length, checkpointing, rate, is_float8 in POINTS:
    hidden, layers, heads, intermediate = WIDTHS[name]
    run("fsdp-modelgen", "llama", "--hidden=" + hidden, "--layers=" + layers, "--heads=" + heads, "--kv-heads=8", "--intermediate=" + intermediate,
        "--vocab=128256", f"--seq={length}", f"--batch={batch}", "-o", "llama.mlir")
    run("fsdp-compile", "llama.mlir", "--mesh=" + mesh, "--param-dtype=bf16", "--reduce-dtype=f32", "--clip-grad-norm=1", "--target-cpu=x86-64-v3",
        "--activation-checkpointing=" + checkpointing, "--overlap", *(["--sequence-parallel"] if "tensor" in mesh else []), "--cluster=" + wide, "--no-code", "-o", "llama.fsdp")
    parts = int((re.search(r"tensor=(\d+)", mesh) or re.search(r"context=(\d+)", mesh) or [0, "1"])[1])
    measured = batch * length / parts / rate
    step, products, others, alone = simulate(wide)
    ratio = measured / step
    text = f"simulated {1e3 * step:.0f} ms"
    if is_float8:
        twice = simulate(fast)[0]
        text += f", {1e3 * twice:.0f} ms with products at twice the rate; measured in Float8"
        bound = twice
    else:
        # With sequence-parallel norms and a loss in parts, each rank has 1/parts of the bytes of every kernel.
        model = torchtitan_kernels.Model(batch * length, int(hidden), 1024, int(intermediate), 128256, int(layers), True)
        beside = torchtitan_kernels.kernels(model, ranks // parts, True, True)
        listed = sum(kernel.bytes for kernel in beside) / parts / device["bytes_per_second"] + sum(kernel.runs for kernel in beside) * device["launch_seconds"]
        total = products + listed + alone
        text += (f" (products and attention {1e3 * products:.0f} ms, other kernels {1e3 * others:.0f} ms, communication {1e3 * alone:.0f} ms; "
                 f"with torchtitan's other kernels, {1e3 * listed:.0f} ms, and nothing hidden {1e3 * total:.0f} ms); measured")
        bound = step
    print(f"{name}, {mesh}, {batch} x {length}: {text} {1e3 * measured:.0f} ms, {ratio:.3f} x" + ("" if is_float8 else f", {measured / total:.3f} x the sum"))
    if measured < bound:
        sys.exit(f"measured {measured} s, which is less than {bound} s")
