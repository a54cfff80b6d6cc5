"""Compares simulated steps of Llama 3.1 on meshes with the axes tensor and context with torchtitan's measurements on as many H100s.

Sources: github.com/pytorch/torchtitan, benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md (bfloat16, vanilla TP with norms on rows, torch.compile, selective
activation checkpointing for 8B and full for 70B; sequences of 8192 tokens: train_configs at commit 820504e), and table 2 of
llama3_h100_202412_torchtitan.md (Float8, full activation checkpointing). No rate of the cluster file or of torchtitan_kernels.py comes from these
tables. Products in Float8 have twice the rate of bf16, as the peaks do (torchao eab345c: torchao/float8/roofline_utils.py).

usage: torchtitan_axes.py CLUSTER.json
"""
import json
import re
import subprocess
import sys
from collections import namedtuple

import torchtitan_kernels

WIDTHS = {"8B": ("4096", "32", "32", "14336"), "70B": ("8192", "80", "64", "28672")}
# Model, mesh, ranks, sequences of a mesh coordinate, tokens of a sequence, checkpointing, tokens per second and rank, whether in Float8.
SELECTIVE = "selective=contract/2+attention"
POINTS = [("8B", "shard=8,tensor=8", 64, 12, 8192, SELECTIVE, 4378, False), ("70B", "shard=32,tensor=8", 256, 16, 8192, "full", 597.3, False),
          ("8B", "shard=8", 8, 1, 32768, "full", 3890, True), ("8B", "shard=4,context=2", 8, 1, 65536, "full", 2540, True),
          ("8B", "shard=2,context=4", 8, 1, 131072, "full", 1071, True), ("8B", "shard=1,context=8", 8, 1, 262144, "full", 548, True)]

# Seconds of a simulated step: the whole step; products of layers; products of the head; scatters over the axis tensor; all collectives over this
# axis; gathers of layers over shards; all collectives over shards, each alone; the time for which the step waits for the last.
Simulated = namedtuple("Simulated", "step layers head scatter tensor gathers shard exposed")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def simulate(cluster):
    text = run("fsdp-run", "llama.fsdp", "--simulate=" + cluster)
    step = float(re.search(r"a step of ([0-9.]+) ms", text).group(1))
    products = [(float(time), what) for time, what in re.findall(r"^ +([0-9.]+) .*  contract k_(.*)", text, re.M)]
    head = sum(time for time, what in products if "lm_head" in what)
    rows = [(float(exposed), float(alone), int(runs), what) for exposed, alone, runs, what in
            re.findall(r"^ *([0-9.]+) +[0-9.]+ +([0-9.]+) +(\d+) +[0-9,]+  (.*)", text, re.M)]
    total = lambda part: sum(alone for _, alone, _, what in rows if part in what)
    others = [(exposed, alone) for exposed, alone, _, what in rows if " over " not in what]
    return Simulated(*(time / 1e3 for time in (
        step, sum(time for time, _ in products) - head, head, sum(alone / runs for _, alone, runs, what in rows if what.startswith("reduce_scatter over tensor")),
        total("over tensor"), total("all_gather model.layers"), sum(alone for _, alone in others), sum(exposed for exposed, _ in others))))


def write(cluster, name, ranks=None, factor=1):
    """Writes a cluster with more nodes, or a larger rate of products."""
    changed = json.loads(json.dumps(cluster))
    if ranks:
        changed["links"][-1]["ranks"] = ranks
    if factor != 1:
        changed["device"]["kinds"]["contract"] = {"multiply_adds_per_second": factor * changed["device"]["bf16_multiply_adds_per_second"]}
    json.dump(changed, open(name, "w"))
    return name


def seconds(cluster, steps, sent):
    """Returns the seconds of a collective over NVLink by the fastest protocol, as the simulator does."""
    bases = {protocol["name"]: protocol["seconds"] for protocol in cluster["protocols"]}
    return min(bases[protocol["name"]] + steps * protocol["seconds"] + sent / protocol["bytes_per_second"] for protocol in cluster["links"][0]["protocols"])


def over_context(cluster, m, context):
    """Returns the seconds of the collectives over the axis context. Forward and backward gather keys and values of all heads in bf16. The backward passes
    their gradients on in f32 once a block. A wait follows each in the compiled layer (torch/distributed/_functional_collectives.py:
    _maybe_wrap_tensor), and Inductor does not move it (torch/_inductor/config.py: reorder_for_compute_comm_overlap)."""
    gather = seconds(cluster, context - 1, (context - 1) * 2 * 2 * m.T * m.D)
    return m.LAYERS * (2 * gather + context * seconds(cluster, 1, 2 * 4 * m.T * m.D)) if context > 1 else 0


def split(mesh):
    """Returns the ranks of the axis tensor or context."""
    return int((re.search(r"(?:tensor|context)=(\d+)", mesh) or [0, 1])[1])


def torchtitan(cluster, name, mesh, ranks, batch, length, checkpointing, is_float8, simulated):
    """Returns the seconds of torchtitan's parts: products, attention, its other kernels, collectives over tensor or context, those over shards, and the
    part of these that our schedule does not hide, with the time for which hidden ones slow kernels down."""
    device, (width, layers, _, intermediate) = cluster["device"], WIDTHS[name]
    is_context, is_full, parts = "tensor" not in mesh, checkpointing == "full", split(mesh)
    context = parts if is_context else 1
    m = torchtitan_kernels.Model(batch * length // context, int(width), 1024, int(intermediate), 128256, int(layers), True)
    attention = torchtitan_kernels.attention(m, length, 1 + is_full, 1 if is_context else parts, context)
    beside = torchtitan_kernels.context_kernels(m, ranks, context) if is_context else torchtitan_kernels.tensor_kernels(m, ranks // parts, parts, is_full)
    listed = sum(kernel.bytes / device["bytes_per_second"] + kernel.runs * device["launch_seconds"] for kernel in beside)
    # Full checkpointing scatters attention again.
    across = over_context(cluster, m, context) if is_context else simulated.tensor + (m.LAYERS * simulated.scatter if is_full else 0)
    # Shards that are cast to f8 before they are gathered have half of the bytes. The latency of 64 gathers remains.
    shard = simulated.shard - (simulated.gathers / 2 if is_float8 and context < ranks else 0)
    busy = (simulated.shard - simulated.exposed) * cluster["links"][-1]["multiprocessors"] / device["multiprocessors"]
    return [simulated.layers / (1979 / 989 if is_float8 else 1) + simulated.head, attention, listed, across, shard, simulated.exposed + busy]


cluster = json.load(open(sys.argv[1]))
wide = write(cluster, "wide.json", ranks=256)
fast = write(cluster, "fast.json", factor=2)
for name, mesh, ranks, batch, length, checkpointing, rate, is_float8 in POINTS:
    width, layers, heads, intermediate = WIDTHS[name]
    run("fsdp-modelgen", "llama", "--hidden=" + width, "--layers=" + layers, "--heads=" + heads, "--kv-heads=8", "--intermediate=" + intermediate,
        "--vocab=128256", f"--seq={length}", f"--batch={batch}", "-o", "llama.mlir")
    run("fsdp-compile", "llama.mlir", "--mesh=" + mesh, "--param-dtype=bf16", "--reduce-dtype=f32", "--clip-grad-norm=1", "--target-cpu=x86-64-v3",
        "--activation-checkpointing=" + checkpointing, "--overlap", *(["--sequence-parallel"] if "tensor" in mesh else []), "--cluster=" + wide, "--no-code", "-o", "llama.fsdp")
    measured, simulated = batch * length / split(mesh) / rate, simulate(wide)
    bound = simulate(fast).step if is_float8 else simulated.step
    *times, exposed = torchtitan(cluster, name, mesh, ranks, batch, length, checkpointing, is_float8, simulated)
    total, hidden = sum(times), sum(times[:-1]) + exposed
    published = total - times[1] * (1 - torchtitan_kernels.SDPA)
    print(f"{name}, {mesh}, {batch} x {length}: simulated {1e3 * simulated.step:.0f} ms"
          + (f", {1e3 * bound:.0f} ms with products at twice the rate; torchtitan in Float8: " if is_float8 else "; torchtitan: ")
          + "products {:.0f} ms, attention {:.0f} ms, other kernels {:.0f} ms, axis {} {:.0f} ms, axis shard {:.0f} ms: ".format(
              *(1e3 * time for time in times[:3]), "tensor" if "tensor" in mesh else "context", *(1e3 * time for time in times[3:]))
          + f"{1e3 * total:.0f} ms" + ("" if is_float8 else f", if the latter is hidden {1e3 * hidden:.0f} ms")
          + f"; measured {1e3 * measured:.0f} ms, {measured / simulated.step:.3f} x, {measured / total:.3f} x the sum"
          + ("" if is_float8 else f", {measured / hidden:.3f} x if hidden") + f"; {measured / published:.3f} x the sum with attention of flash-attention")
    # With more than two blocks of keys, steps take longer than the sources explain.
    low, high = (1.1, 1.4) if "context" in mesh and split(mesh) > 2 else (1 / 1.1, 1.1)
    if not all(low < measured / time < high for time in ([total] if is_float8 else [total, hidden])):
        sys.exit(f"expected the measured {measured} s to be {low:.3f} to {high:.3f} of {total} s, and of {hidden} s if shards are hidden")
    if measured < bound:
        sys.exit(f"measured {measured} s, which is less than {bound} s")
