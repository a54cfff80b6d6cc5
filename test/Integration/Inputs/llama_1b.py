"""Compares the simulated compute of a step of Llama 3.2 1B on 8 H200s with a model of torchtitan's kernels for the same step.

The model of torchtitan, with FSDP2 and torch.compile, is a lower bound: its products take the clocks of our kernels for the same
products in bf16, without an epilogue, since cuBLASLt's published rates are close to these. Its attention takes the clocks of our
attention. Its other kernels move the bytes of torchtitan_kernels.py at the full bandwidth of the memory. Each kernel takes the
cluster's launch time.

usage: llama_1b.py CLUSTER.json GEMM-GRID.py
"""
import contextlib
import importlib.util
import json
import re
import subprocess
import sys

import torchtitan_kernels

SEQUENCES, LENGTH, RANKS = 4, 2048, 8
MODEL = torchtitan_kernels.Model(SEQUENCES * LENGTH, 2048, 512, 8192, 128256, 16, False)


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def simulate(cluster):
    """Returns the milliseconds of compute, of attention, and the launches of attention in a step of this project."""
    run("fsdp-modelgen", "llama", f"--hidden={MODEL.D}", f"--layers={MODEL.LAYERS}", "--heads=32", "--kv-heads=8", f"--intermediate={MODEL.F}",
        f"--vocab={MODEL.V}", f"--seq={LENGTH}", f"--batch={SEQUENCES}", "-o", "llama.mlir")
    run("fsdp-compile", "llama.mlir", f"--mesh=shard={RANKS}", "--param-dtype=bf16", "--reduce-dtype=f32", "--clip-grad-norm=1", "--target=sm_90a",
        "--overlap", "--cluster=" + cluster, "--no-code", "-o", "llama.fsdp")
    text = run("fsdp-run", "llama.fsdp", "--simulate=" + cluster)
    compute = float(re.search(r"compute ([0-9.]+) ms", text).group(1))
    launches = int(re.search(r"kernels: ([0-9,]+) launches", text).group(1).replace(",", ""))
    attention = sum(float(ms) for ms in re.findall(r"^ *([0-9.]+) .* attention k_", text, re.M))
    return compute, attention, launches


def products():
    """Returns the transposes, the sizes and the number of runs of each product of a step."""
    m, rows = MODEL, []
    for k, n, runs in ((m.D, m.D, 2 * m.LAYERS), (m.D, m.K, 2 * m.LAYERS), (m.D, m.F, 2 * m.LAYERS), (m.F, m.D, m.LAYERS), (m.D, m.V, 1)):
        rows += [("nt", m.T, n, k, runs), ("nn", m.T, k, n, runs), ("tn", n, k, m.T, runs)]
    return rows


def product_milliseconds(grid, device):
    """Returns the milliseconds of all products, by the clocks of kernels without epilogues."""
    spec = importlib.util.spec_from_file_location("grid", grid)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = [(module.Kernel("bf16", transposes, m, n, k), runs) for transposes, m, n, k, runs in products()]
    with open("products.mlir", "w") as out, contextlib.redirect_stdout(out):
        for kernel in {kernel.name: kernel for kernel, _ in kernels}.values():
            kernel.write()
    table = [row.split() for row in run("fsdp-kernel-test", "products.mlir", "--target=sm_90a", "--emit=clocks").splitlines()[1:]]
    seconds = {}
    for row in table: # a kernel may have several launches
        name = next((kernel.name for kernel, _ in kernels if row and row[0].startswith(kernel.name)), None)
        if name:
            seconds[name] = seconds.get(name, 0) + device["launch_seconds"] + max(int(row[3]) / device["clocks_per_second"],
                                                                                  int(row[9]) / device["bytes_per_second"])
    return 1e3 * sum(runs * seconds[kernel.name] for kernel, runs in kernels)


def main(cluster, grid):
    device = json.load(open(cluster))["device"]
    compute, attention, launches = simulate(cluster)
    print(f"this project: {launches} launches, {compute:.1f} ms, of it attention {attention:.1f} ms")
    plain = product_milliseconds(grid, device)
    for optimizer in ("foreach", "fused"):
        beside = torchtitan_kernels.kernels(MODEL, RANKS, True, optimizer == "fused")
        moved = sum(kernel.bytes for kernel in beside)
        listed = 1e3 * (moved / device["bytes_per_second"] + sum(kernel.runs for kernel in beside) * device["launch_seconds"])
        total = plain + attention + listed
        print(f"torchtitan, AdamW with {optimizer}=True: products {plain:.1f} ms, attention {attention:.1f} ms, other kernels {moved / 1e9:.1f} GB, "
              f"{listed:.1f} ms: {total:.1f} ms, {total / compute:.3f} x this project")


main(*sys.argv[1:])
