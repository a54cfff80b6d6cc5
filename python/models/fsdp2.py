# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains GPT-2 and Llama beside fully_shard of PyTorch on two gloo processes.

    python python/models/fsdp2.py [--steps=50]

Both take the same weights and tokens, AdamW with decay 0.1 of tensors of rank 2 or more, clipping at
norm 1 and a warm-up of 10 steps. Prints, for each model, the largest relative difference of a loss
and of a gradient norm. Exit code 1 if a loss differs by more than 1e-5 or a norm by more than 1e-4.
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

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
RANKS, RATE, DECAY, CLIP, WARMUP = 2, 1e-3, 0.1, 1.0, 10
MODELS = ("GPT2", "Llama")


def rate(step: int) -> float:
    """Returns the learning rate of a step, from 1."""
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


def peer(name: str, rank: int, steps: int, port: int, out: str) -> int:
    """Is one process of fully_shard; that of rank 0 writes losses and norms."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=RANKS)
    module, _, loss, draw = build(name)
    layers = [m for n, m in module.named_modules() if n.rpartition(".")[2].isdigit()]
    for layer in layers:
        fully_shard(layer)
    fully_shard(module)
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
    dist.destroy_process_group()
    return 0


def fully_sharded(name: str, steps: int) -> tuple[list[float], list[float]]:
    """Returns losses and gradient norms of fully_shard."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "curve.json")
        peers = [subprocess.Popen([sys.executable, __file__, "--peer", name, str(rank), str(steps),
                                   str(port), out]) for rank in range(RANKS)]
        codes = [process.wait(timeout=600) for process in peers]
        if any(codes):
            raise RuntimeError(f"{name}: fully_shard ended with {codes}")
        return tuple(json.loads(pathlib.Path(out).read_text()))


def own(name: str, steps: int) -> tuple[list[float], list[float]]:
    """Returns losses and gradient norms of this project."""
    import fsdp_mlir as fm

    module, example, loss, draw = build(name)
    model = fm.export_torch(module, example, loss=loss)
    step = fm.compile(model, mesh=f"shard={RANKS}",
                      optimizer=fm.AdamW(lr=RATE, weight_decay=DECAY, clip_grad_norm=CLIP))
    with step.train(weights=module) as run:
        metrics = [run.step(draw(), lr=rate(number)) for number in range(1, steps + 1)]
    return [m.loss for m in metrics], [m.grad_norm for m in metrics]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--peer", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.peer:
        name, rank, steps, port, out = options.peer
        return peer(name, int(rank), int(steps), int(port), out)
    worst = lambda a, b: max(abs(x - y) / abs(y) for x, y in zip(a, b))
    failed = False
    for name in MODELS:
        losses, norms = own(name, options.steps)
        expected_losses, expected_norms = fully_sharded(name, options.steps)
        loss, norm = worst(losses, expected_losses), worst(norms, expected_norms)
        failed |= loss > 1e-5 or norm > 1e-4
        print(f"{name}: {options.steps} steps, losses {expected_losses[0]:.4f} to "
              f"{expected_losses[-1]:.4f}: they differ by {loss:.1e}, norms by {norm:.1e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
