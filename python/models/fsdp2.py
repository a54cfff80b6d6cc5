# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains GPT-2 and Llama with this project and with PyTorch's fully_shard on two gloo processes.

    python python/models/fsdp2.py [--steps=50] [--bf16]

This project and PyTorch use the same weights and tokens. Both train with AdamW, clip gradients at a
norm of 1, and increase the learning rate over 10 steps. A weight decay of 0.1 applies to tensors of
rank 2 or more. For each model, prints the largest relative difference of a loss and of a gradient
norm. The exit code is 1 if losses differ by more than 1e-5, or norms by more than 1e-4.

With --bf16, param_dtype is bf16 in this project and in PyTorch. PyTorch then trains twice: once
with attention computed by products and softmax, and once with a fused attention kernel. The
distance of two runs is the largest difference of their losses. The exit code is 1 if the run of
this project has a larger distance to the nearer PyTorch run than the PyTorch runs to each other.
The root mean square of each bf16 run's differences from PyTorch in f32 is its rounding noise.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import warnings
from typing import NoReturn

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
RANKS, RATE, DECAY, CLIP, WARMUP = 2, 1e-3, 0.1, 1.0, 10
MODELS = ("GPT2", "Llama")


def rate(step: int) -> float:
    """Returns the learning rate of the step number `step`. The first step has the number 1."""
    return RATE * min(1.0, step / WARMUP)


def build(name: str):
    sys.path.insert(0, str(HERE))
    import families

    module, example, loss = families.FAMILIES[name][1]()
    random = np.random.default_rng(3)
    rows = RANKS * example[0].shape[0]
    draw = lambda: [random.integers(1, families.VOCABULARY, (rows, families.SEQUENCE))
                    for _ in example]
    return module, example, loss, draw


def peer(name: str, kind: str, rank: int, steps: int, port: int, out: str) -> NoReturn:
    """Trains with fully_shard, in one of the processes. The process of rank 0 writes the losses and
    gradient norms.

    ``kind`` is f32, math or flash. If ``kind`` is math or flash, PyTorch trains in bf16 and uses
    its attention kernel ``kind``.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=RANKS)
    module, _, loss, draw = build(name)
    layers = [m for n, m in module.named_modules() if n.rpartition(".")[2].isdigit()]
    policy = MixedPrecisionPolicy(None if kind == "f32" else torch.bfloat16)
    kernels = {"math": [SDPBackend.MATH], "flash": [SDPBackend.FLASH_ATTENTION],
               "f32": [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]}[kind]
    for layer in layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(module, mp_policy=policy)
    parameters = list(module.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
         {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}], lr=RATE)
    losses, norms = [], []
    for step in range(1, steps + 1):
        batch = [torch.from_numpy(np.split(a, RANKS)[rank].copy()) for a in draw()]
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.zero_grad()
        with sdpa_kernel(kernels):
            value = loss(module, *batch)
            value.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        norm = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        optimizer.step()
        mean = value.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / RANKS)
        norms.append(norm)
    if rank == 0:
        pathlib.Path(out).write_text(json.dumps([losses, norms]))
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    # A normal exit could abort because of the threads of gloo.
    os._exit(0)


def fully_sharded(name: str, steps: int, kind: str) -> tuple[list[float], list[float]]:
    """Returns the losses and gradient norms of training with fully_shard."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "curve.json")
        peers = [subprocess.Popen([sys.executable, __file__, "--peer", name, kind, str(rank),
                                   str(steps), str(port), out]) for rank in range(RANKS)]
        codes = [process.wait(timeout=600) for process in peers]
        if any(codes):
            raise RuntimeError(f"{name}: fully_shard ended with {codes}")
        return tuple(json.loads(pathlib.Path(out).read_text()))


def own(name: str, steps: int, kind: str) -> tuple[list[float], list[float]]:
    """Returns the losses and gradient norms of training with this project."""
    import fsdp_mlir as fm

    module, example, loss, draw = build(name)
    model = fm.export_torch(module, example, loss=loss)
    narrow = {} if kind == "f32" else {"param_dtype": "bf16", "reduce_dtype": "bf16",
                                             "output_dtype": "bf16"}
    step = fm.compile(model, mesh=f"shard={RANKS}", **narrow,
                      optimizer=fm.AdamW(lr=RATE, weight_decay=DECAY, clip_grad_norm=CLIP))
    with step.train(weights=module) as run:
        metrics = [run.step(draw(), lr=rate(number)) for number in range(1, steps + 1)]
    return [m.loss for m in metrics], [m.grad_norm for m in metrics]


def worst(a: list[float], b: list[float]) -> float:
    """Returns the largest relative difference between elements at the same index, or NaN if an element is NaN."""
    return float(np.max([abs(x - y) / abs(y) for x, y in zip(a, b, strict=True)]))


def noise(a: list[float], b: list[float]) -> float:
    """Returns the root mean square of the relative differences between elements at the same index."""
    return (sum((x / y - 1) ** 2 for x, y in zip(a, b, strict=True)) / len(a)) ** 0.5


def compare(name: str, steps: int) -> bool:
    losses, norms = own(name, steps, "f32")
    expected_losses, expected_norms = fully_sharded(name, steps, "f32")
    loss, norm = worst(losses, expected_losses), worst(norms, expected_norms)
    print(f"{name}: {steps} steps, losses {expected_losses[0]:.4f} to {expected_losses[-1]:.4f}: "
          f"they differ by {loss:.1e}, norms by {norm:.1e}")
    return loss <= 1e-5 and norm <= 1e-4


def compare_bf16(name: str, steps: int) -> bool:
    losses, _ = own(name, steps, "bf16")
    math, _ = fully_sharded(name, steps, "math")
    flash, _ = fully_sharded(name, steps, "flash")
    mine, theirs = min(worst(losses, math), worst(losses, flash)), worst(math, flash)
    print(f"{name}: {steps} steps in bf16, losses {math[0]:.4f} to {math[-1]:.4f}: they differ by "
          f"{mine:.1e}, the two of PyTorch by {theirs:.1e}")
    exact, _ = fully_sharded(name, steps, "f32")
    print(f"{name}: rounding noise {noise(losses, exact):.1e}, of PyTorch {noise(math, exact):.1e} "
          f"(math) and {noise(flash, exact):.1e} (flash)")
    return mine <= theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--bf16", action="store_true", help="compare training in bf16")
    parser.add_argument("--peer", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.peer:
        name, kind, rank, steps, port, out = options.peer
        peer(name, kind, int(rank), int(steps), int(port), out)
    fits = [compare_bf16(name, options.steps) if options.bf16 else compare(name, options.steps)
            for name in MODELS]
    return int(not all(fits))


if __name__ == "__main__":
    sys.exit(main())
