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
    """Returns the seconds of a step, of products and attention, and of other kernels. Then those of gathers and of scatters over the axis tensor, each
    alone, of all collectives over it, of all others, and for which others are waited for."""
    text = run("fsdp-run", "llama.fsdp", "--simulate=" + cluster)
    step = float(re.search(r"a step of ([0-9.]+) ms", text).group(1))
    compute = float(re.search(r"compute ([0-9.]+) ms", text).group(1))
    slowed = re.search(r"compute includes ([0-9.]+) ms", text)
    products = sum(float(row) for row in re.findall(r"^ +([0-9.]+) .*  (?:contract|attention) k_", text, re.M))
    rows = [(float(exposed), float(alone), int(runs), what) for exposed, alone, runs, what in
            re.findall(r"^ *([0-9.]+) +[0-9.]+ +([0-9.]+) +(\d+) +[0-9,]+  (.*)", text, re.M)]
    each = [sum(alone / runs for _, alone, runs, what in rows if what.startswith(kind + " over tensor")) for kind in ("all_gather", "reduce_scatter")]
    tensor = sum(alone for _, alone, _, what in rows if "over tensor" in what)
    others = [(exposed, alone) for exposed, alone, _, what in rows if "over tensor" not in what]
    times = [step, products, compute - (float(slowed.group(1)) if slowed else 0) - products, *each, tensor,
             sum(alone for _, alone in others), sum(exposed for exposed, _ in others)]
    return [time / 1e3 for time in times]


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
    width, layers, heads, intermediate = WIDTHS[name]
    run("fsdp-modelgen", "llama", "--hidden=" + width, "--layers=" + layers, "--heads=" + heads, "--kv-heads=8", "--intermediate=" + intermediate,
        "--vocab=128256", f"--seq={length}", f"--batch={batch}", "-o", "llama.mlir")
    run("fsdp-compile", "llama.mlir", "--mesh=" + mesh, "--param-dtype=bf16", "--reduce-dtype=f32", "--clip-grad-norm=1", "--target-cpu=x86-64-v3",
        "--activation-checkpointing=" + checkpointing, "--overlap", *(["--sequence-parallel"] if "tensor" in mesh else []), "--cluster=" + wide, "--no-code", "-o", "llama.fsdp")
    parts = int((re.search(r"tensor=(\d+)", mesh) or re.search(r"context=(\d+)", mesh) or [0, "1"])[1])
    measured = batch * length / parts / rate
    step, products, others, _, scatter, tensor, shard, exposed = simulate(wide)
    ratio = measured / step
    text = f"simulated {1e3 * step:.0f} ms"
    if is_float8:
        twice = simulate(fast)[0]
        text += f", {1e3 * twice:.0f} ms with products at twice the rate; measured in Float8"
        bound = twice
    else:
        # Collectives over the axis tensor are waited for at once. Hidden ones keep multiprocessors busy. Full checkpointing scatters attention again.
        model = torchtitan_kernels.Model(batch * length, int(width), 1024, int(intermediate), 128256, int(layers), True)
        beside = torchtitan_kernels.tensor_kernels(model, ranks // parts, parts, checkpointing == "full")
        listed = sum(kernel.bytes / device["bytes_per_second"] + kernel.runs * device["launch_seconds"] for kernel in beside)
        tensor += model.LAYERS * scatter if checkpointing == "full" else 0
        busy = (shard - exposed) * cluster["links"][-1]["multiprocessors"] / device["multiprocessors"]
        total, hidden = products + listed + tensor + shard, products + listed + tensor + exposed + busy
        text += (f" (products and attention {1e3 * products:.0f} ms, other kernels {1e3 * others:.0f} ms); with torchtitan's other kernels, {1e3 * listed:.0f} ms, "
                 f"axis tensor, {1e3 * tensor:.0f} ms, and axis shard, {1e3 * shard:.0f} ms: {1e3 * total:.0f} ms, if the latter is hidden {1e3 * hidden:.0f} ms; measured")
        bound = step
    print(f"{name}, {mesh}, {batch} x {length}: {text} {1e3 * measured:.0f} ms, {ratio:.3f} x" + ("" if is_float8 else f", {measured / total:.3f} x the sum, {measured / hidden:.3f} x if hidden"))
    if not is_float8 and not 1 / 1.1 < measured / total < 1.1:
        sys.exit(f"expected {total} s within 10 % of the measured {measured} s")
    if measured < bound:
        sys.exit(f"measured {measured} s, which is less than {bound} s")
