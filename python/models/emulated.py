# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains small models of many families on emulated GPUs and on CPUs, and compares both.

    python python/models/emulated.py [--target=sm_90a] [--param-dtype=bf16] [--only=GPT2,jax:flax]

Each family runs in a process of its own, which has a time limit. This process exports the model, compiles it for two ranks and both targets, and
trains three steps with SGD (learning rate 0.1, momentum 0.9, gradients clipped to a norm of 1). The emulator checks each access, race and barrier
of the GPU's kernels. Differences from CPUs in f32 are the largest relative differences of a loss and of a gradient norm, and the largest difference
of a weight relative to the largest weight of its tensor. The table has these differences. With bf16, which rounds gradients that change the weights,
it has their multiples of the differences that CPUs in bf16 have from CPUs in f32.

Exit codes: 0 all differences are at most 2e-6 (bf16: all multiples at most 4), 1 one is larger or a family failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pathlib
import sys
import warnings

import numpy as np
from run import HERE, RANKS, export_family, names, run_family

STEPS = 3
MEASURES = ("loss", "norm", "weights")
LARGEST = {"f32": 2e-6, "bf16": 4}
# Differences below this one are rounding errors of f32.
NOISE = 1e-6


def train(model, batches, device: str, **options):
    """Returns the losses, the norms and the weights after the last step."""
    import fsdp_mlir as fm

    optimizer = fm.SGD(lr=0.1, momentum=0.9, clip_grad_norm=1.0)
    step = fm.compile(model, mesh=f"shard={RANKS}", optimizer=optimizer, **options)
    with step.train(weights="model", device=device) as run:
        results = [run.step(batch) for batch in batches]
        weights = {name: np.array(value, np.float64) for name, value in run.parameters()}
    return [r.loss for r in results], [r.grad_norm for r in results], weights


def differences(found, expected) -> dict:
    """Returns the differences of two results of train(), and the name of the farthest weight."""
    loss, norm = (np.abs(np.subtract(found[i], expected[i])) / np.maximum(np.abs(expected[i]), 1e-3)
                  for i in range(2))
    far = {name: np.abs(found[2][name] - weight).max() / max(np.abs(weight).max(), 1e-3)
           for name, weight in expected[2].items() if weight.size}
    # np.max() returns NaN if a value is NaN. Python's max() may return another value.
    return {"loss": float(loss.max()), "norm": float(norm.max()),
            "weights": float(np.max(list(far.values()))), "farthest": max(far, key=far.get)}


def compare(name: str, target: str, dtype: str) -> dict:
    """Returns the row of a family."""
    from fsdp_mlir import tools
    from initial import draw_batches, limits_of

    tool = pathlib.Path(tools.find_tool("fsdp-compile")).resolve()
    os.environ["FSDPRT_CUDA_LIBRARY"] = str(tool.parents[1] / "lib/libfsdp-emulated-cuda.so")
    os.environ["FSDPRT_EMULATED_CUDA_DEVICES"] = str(RANKS)
    model, arrays, *_ = export_family(name)
    batches = draw_batches(arrays, limits_of(arrays), RANKS, STEPS)
    exact = train(model, batches, "cpu")
    options = {} if dtype == "f32" else {"param_dtype": dtype}
    row = differences(train(model, batches, "cuda", target=target, **options), exact)
    if options:
        own = differences(train(model, batches, "cpu", **options), exact)
        row.update({key: row[key] / max(own[key], NOISE) for key in MEASURES})
    return row


def child(name: str, target: str, dtype: str) -> int:
    """Compares one family, and prints its row as JSON on the last line."""
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            row = compare(name, target, dtype)
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"}
    print(json.dumps(row))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_90a", help="sm_80 or sm_90a (default)")
    parser.add_argument("--param-dtype", default="f32", choices=LARGEST, help="f32 (default) or bf16")
    parser.add_argument("--only", help="families to run, separated by commas (default: all)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    arguments = options.target, options.param_dtype
    sys.path.insert(0, str(HERE))
    if options.child:
        return child(options.child, *arguments)
    chosen = options.only.split(",") if options.only else names()
    if unknown := sorted(set(chosen) - set(names())):
        parser.error(f"unknown family '{unknown[0]}'; expected {', '.join(names())}")
    print("| family | loss | norm | weights | farthest weight |", "|---|---|---|---|---|", sep="\n")
    passed = True
    for name in chosen:
        row = run_family([__file__, f"--child={name}", "--target", arguments[0], "--param-dtype", arguments[1]])
        measures = [row.get(key, np.inf) for key in MEASURES]
        is_near = all(m <= LARGEST[options.param_dtype] for m in measures)
        passed &= is_near
        text = row["error"].replace("|", "\\|") if "error" in row else row["farthest"]
        print(f"| {name}{'' if is_near else ' **FAILED**'} | {' | '.join(f'{m:.1g}' for m in measures)} | {text} |", flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
