# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains small models of many families on emulated GPUs and on CPUs, and compares both.

    python python/models/emulated.py [--target=sm_90a] [--param-dtype=bf16] [--only=GPT2,jax:flax]

Each family runs in a process of its own, which has a time limit. This process exports the model, compiles it for two ranks and both targets, and
trains three steps with SGD (learning rate 0.1, momentum 0.9, gradients clipped to a norm of 1). The emulator checks each access, race and barrier
of the GPU's kernels. Prints a table with the largest relative differences of a loss and of a gradient norm, and the largest difference of a weight
relative to the largest weight of its tensor.

Exit codes: 0 every difference is at most 2e-6 (with bf16: 2e-2), 1 a difference is larger or a family failed, 2 bad usage.
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
from run import HERE, RANKS, export_family, names, number, run_family

STEPS = 3
LARGEST = {"f32": 2e-6, "bf16": 2e-2}


def train(model, batches, device: str, **options):
    """Returns the losses, the norms and the weights after the last step."""
    import fsdp_mlir as fm

    optimizer = fm.SGD(lr=0.1, momentum=0.9, clip_grad_norm=1.0)
    step = fm.compile(model, mesh=f"shard={RANKS}", optimizer=optimizer, **options)
    with step.train(weights="model", device=device) as run:
        results = [run.step(batch) for batch in batches]
        weights = {name: np.array(value, np.float64) for name, value in run.parameters()}
    return [r.loss for r in results], [r.grad_norm for r in results], weights


def difference(values, expected) -> float:
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(values, expected, strict=True))


def compare(name: str, target: str, dtype: str) -> dict:
    """Returns the row of a family."""
    from fsdp_mlir import tools
    from initial import draw_batches, limits_of

    tool = pathlib.Path(tools.find_tool("fsdp-compile")).resolve()
    os.environ["FSDPRT_CUDA_LIBRARY"] = str(tool.parents[1] / "lib/libfsdp-emulated-cuda.so")
    os.environ["FSDPRT_EMULATED_CUDA_DEVICES"] = str(RANKS)
    model, arrays, *_ = export_family(name)
    batches = draw_batches(arrays, limits_of(arrays), RANKS, STEPS)
    options = {} if dtype == "f32" else {"param_dtype": dtype}
    losses, norms, weights = train(model, batches, "cpu", **options)
    found = train(model, batches, "cuda", target=target, **options)
    far = {n: float(np.abs(found[2][n] - w).max() / max(np.abs(w).max(), 1e-3))
           for n, w in weights.items() if w.size}
    return {"loss": difference(found[0], losses), "norm": difference(found[1], norms),
            "weights": max(far.values()), "farthest": max(far, key=far.get)}


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
        measures = [row.get(key, np.inf) for key in ("loss", "norm", "weights")]
        is_near = max(measures) <= LARGEST[options.param_dtype]
        passed &= is_near
        text = row["error"].replace("|", "\\|") if "error" in row else row["farthest"]
        print(f"| {name}{'' if is_near else ' **FAILED**'} | {' | '.join(map(number, measures))} | {text} |", flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
