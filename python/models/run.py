# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains small models of many families beside PyTorch and JAX, and writes a table of them.

    python python/models/run.py [--only=NAME,...] [--out=docs/models.md] [--curves=FILE]

Each family runs in a process of its own with a time limit. It is exported and compiled for two
ranks, and trains 20 AdamW steps (rate 1e-3, decay 0.01 of tensors of rank 2 or more) on other batches
for each rank. The framework trains the same weights on the mean loss of the two. The table has the
largest relative difference of a loss, and of a weight to the largest weight of its tensor.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import json
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
STEPS, RANKS, RATE, DECAY = 20, 2, 1e-3, 0.01
LIMIT_SECONDS = 240


def draw(example: np.ndarray, rows: int, random) -> np.ndarray:
    """Returns a batch like ``example``, of ``rows`` rows: ids up to its largest, or normal floats."""
    shape = (rows, *example.shape[1:])
    if example.dtype.kind in "iu":
        return random.integers(0, int(example.max()) + 1, shape).astype(example.dtype)
    return random.standard_normal(shape).astype(example.dtype)


def torch_curve(module, loss, batches):
    """Returns the losses of PyTorch and the weights after the last step."""
    import torch

    named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
    groups = [{"params": [p for _, p in named if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    losses = []
    for batch in batches:
        halves = [[torch.from_numpy(np.split(a, RANKS)[rank].copy()) for a in batch]
                  for rank in range(RANKS)]
        optimizer.zero_grad()
        value = sum(loss(module, *half) for half in halves) / RANKS
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses, {n: p.detach().numpy() for n, p in module.named_parameters()}


def count_attention(model) -> tuple[int, int]:
    """Returns the numbers of attention ops and of softmaxes that were left, after Import."""
    from fsdp_mlir import tools

    done = subprocess.run([tools.find_tool("fsdp-compile"), "-", "--compile-to=import", "-o", "-"],
                          input=model.text, capture_output=True, text=True)
    return done.stdout.count(" = fsdp.attention "), done.stdout.count("fsdp.softmax")


def compare(model, curve, weights, batches) -> dict:
    """Compiles and trains ``model``; returns the row of the table."""
    import fsdp_mlir as fm

    row: dict = {"attention": count_attention(model)[0]}
    step = fm.compile(model, mesh=f"shard={RANKS}", optimizer=fm.AdamW(lr=RATE, weight_decay=DECAY))
    with step.train(weights="model", check_against_unsharded=True) as run:
        losses = [run.step(batch).loss for batch in batches]
        run.compare()
        after = dict(run.parameters())
    row["loss"] = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, curve))
    trained = [p.name for p in model.parameters if not p.frozen]
    row["weights"] = max(float(np.abs(after[n] - weights[n]).max()) /
                         max(float(np.abs(weights[n]).max()), 1e-3) for n in trained)
    row["losses"] = losses
    fm.compile(model, mesh=f"shard={RANKS}", param_dtype="bf16", no_code=True)
    row["bf16"] = True
    return row


def run_torch(name: str) -> dict:
    import torch

    import families
    import fsdp_mlir as fm

    torch.set_num_threads(1)
    kind, make = families.FAMILIES[name]
    module, example, loss = make()
    model = fm.export_torch(module, example, loss=loss, **families.OPTIONS.get(name, {}))
    random = np.random.default_rng(1)
    batches = [[draw(t.numpy(), RANKS * t.shape[0], random) for t in example]
               for _ in range(STEPS)]
    model = frozen_weights(model)
    curve, weights = torch_curve(module, loss, batches)
    return {"kind": kind, "route": "torch.export", "curve": curve,
            **compare(model, curve, weights, batches)}


def frozen_weights(model):
    """Returns the model with a copy of its weights, which training the module changes."""
    values = {name: np.array(value) for name, value in model.weights().items()}
    model.weights = lambda: values
    return model


def run_jax(name: str) -> dict:
    import jax

    import fsdp_mlir as fm
    import jax_families

    params, loss, example = jax_families.FAMILIES[name]()
    model = fm.export_jax(loss, params, *example)
    random = np.random.default_rng(1)
    batches = [[draw(np.asarray(a), RANKS * a.shape[0], random) for a in example]
               for _ in range(STEPS)]
    curve, weights = jax_families.train(params, loss, batches, RANKS, RATE, DECAY)
    return {"kind": "JAX", "route": "StableHLO", "curve": curve,
            **compare(model, curve, weights, batches)}


def child(name: str) -> int:
    """Runs one family and prints its row as JSON on the last line."""
    sys.path.insert(0, str(HERE))
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            row = run_jax(name[4:]) if name.startswith("jax:") else run_torch(name)
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"}
    print(json.dumps(row))
    return 0


def names() -> list[str]:
    sys.path.insert(0, str(HERE))
    import families
    import jax_families

    return [*families.FAMILIES, *(f"jax:{name}" for name in jax_families.FAMILIES)]


def run_family(name: str) -> dict:
    start = time.monotonic()
    try:
        done = subprocess.run([sys.executable, __file__, f"--child={name}"], capture_output=True,
                              text=True, timeout=LIMIT_SECONDS)
        last = done.stdout.strip().splitlines()[-1:] or [""]
        row = (json.loads(last[0]) if last[0].startswith("{") else
               {"error": f"ended with {done.returncode}: {done.stderr.strip()[-200:]}"})
    except subprocess.TimeoutExpired:
        row = {"error": f"more than {LIMIT_SECONDS} s"}
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def versions() -> str:
    found = []
    for package in ("torch", "transformers", "iree-base-compiler", "jax", "flax", "optax"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{package} {importlib.metadata.version(package)}")
    return ", ".join(found)


def page(rows: dict[str, dict]) -> str:
    """Returns the page as Markdown."""
    good = sum("error" not in row for row in rows.values())
    lines = [
        "<!-- Written by python/models/run.py. -->", "# Models", "",
        "For people who want to know whether their kind of model works: small models of "
        f"{len(rows)} families,", "two layers of width 64, exported from PyTorch or JAX, trained "
        f"{STEPS} AdamW steps on {RANKS} ranks.", "",
        f"{good} of {len(rows)} work. Differences are relative, in f32, to the framework's own "
        "training: the largest", "of a loss, and the largest of a weight to its tensor's largest "
        "weight. In every row without an error", "all values of all ranks were equal, bit for bit, "
        "to those of one unsharded rank, and the model", "compiled with `param_dtype=\"bf16\"`.",
        "", f"`python python/models/run.py`, {datetime.date.today()}: {versions()}.", "",
        "| family | kind | route | attention raised | loss | weights |", "|---|---|---|---|---|---|"]
    for name, row in rows.items():
        if "error" in row:
            text = row["error"].replace("|", "\\|")
            lines.append(f"| {name} | | | | {text} | |")
        else:
            lines.append(f"| {name.removeprefix('jax:')} | {row['kind']} | {row['route']} | "
                         f"{row['attention'] or '-'} | {row['loss']:.0e} | {row['weights']:.0e} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="families to run, separated by commas (default: all)")
    parser.add_argument("--out", help="page to write (default: print it)")
    parser.add_argument("--curves", help="JSON file of the framework's losses to write")
    parser.add_argument("--rows", help="JSON file of rows: families in it are not run again")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child)
    kept = pathlib.Path(options.rows) if options.rows else None
    rows = json.loads(kept.read_text()) if kept and kept.exists() else {}
    chosen = options.only.split(",") if options.only else names()
    for name in chosen:
        if name in rows:
            continue
        rows[name] = row = run_family(name)
        if kept:
            kept.write_text(json.dumps(rows))
        print(f"{name:16} {row['seconds']:6.1f} s  " +
              (row["error"] if "error" in row else
               f"attention {row['attention']}  loss {row['loss']:.1e}  weights {row['weights']:.1e}"),
              file=sys.stderr, flush=True)
    rows = {name: rows[name] for name in chosen}
    text = page(rows)
    pathlib.Path(options.out).write_text(text) if options.out else print(text)
    if options.curves:
        curves = {name: [round(v, 7) for v in row["curve"]] for name, row in rows.items()
                  if "curve" in row}
        pathlib.Path(options.curves).write_text(
            json.dumps({"versions": versions(), "steps": STEPS, "curves": curves}, indent=1))
    return 0 if all("error" not in row for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
