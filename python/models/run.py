# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains small models of many families here and in PyTorch or JAX, and writes a table of results.

    python python/models/run.py --out=docs/models.md --curves=python/models/curves.json \\
        --ir=python/models/ir

Each family runs in a process of its own, which has a time limit. This process exports the model, compiles it for two ranks, and trains 20 steps
with AdamW (learning rate 1e-3, decay 0.01 of tensors of rank 2 or more). Each rank gets a different batch in each step. PyTorch or JAX trains from
the same initial weights on the mean loss of both ranks. --curves writes these losses. --ir writes the exported programs of some families, which
tests/test_models.py trains without PyTorch.

Exit codes: 0 all families passed, 1 a family failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gzip
import importlib.metadata
import io
import json
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
STEPS, RANKS, RATE, DECAY = 20, 2, 1e-3, 0.01
LIMIT_SECONDS = 240
# Largest relative difference of a loss from the framework's.
LARGEST_LOSS = 5e-5
# A gradient below this fraction of the model's largest gradient is taken as a rounding error.
NOISE = 1e-6
# Families whose programs are in python/models/ir. Their initial weights are drawn as in initial.py.
STORED = ("GPT2", "Llama", "Gemma2", "Bert", "T5", "ViT", "Mixtral", "LSTM", "jax:flax")


def torch_curve(module, loss, batches):
    """Trains with PyTorch. Returns the losses, the final weights, and the largest absolute gradient of each parameter."""
    import torch

    named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
    groups = [{"params": [p for _, p in named if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    losses, largest = [], {n: 0.0 for n, _ in named}
    for batch in batches:
        halves = [[torch.from_numpy(np.split(a, RANKS)[rank].copy()) for a in batch]
                  for rank in range(RANKS)]
        optimizer.zero_grad()
        value = sum(loss(module, *half) for half in halves) / RANKS
        value.backward()
        for n, p in named:
            if p.grad is not None:
                largest[n] = max(largest[n], float(p.grad.abs().max()))
        optimizer.step()
        losses.append(float(value.detach()))
    return losses, {n: p.detach().numpy() for n, p in module.named_parameters()}, largest


def count_attention(model) -> tuple[int, int]:
    """Compiles the model up to the stage Import. Returns the number of attention ops and the number of softmax ops that are not part of attention."""
    from fsdp_mlir import tools

    done = subprocess.run([tools.find_tool("fsdp-compile"), "-", "--compile-to=import", "-o", "-"],
                          input=model.text, capture_output=True, text=True)
    return done.stdout.count(" = fsdp.attention "), done.stdout.count(" = fsdp.softmax ")


def train(model, batches) -> tuple[list[float], dict[str, np.ndarray]]:
    """Trains with RANKS ranks and with one unsharded rank, and checks that both compute the same values. Returns the losses and the weights."""
    import fsdp_mlir as fm

    step = fm.compile(model, mesh=f"shard={RANKS}", optimizer=fm.AdamW(lr=RATE, weight_decay=DECAY))
    with step.train(weights="model", check_against_unsharded=True) as run:
        losses = [run.step(batch).loss for batch in batches]
        run.compare()
        return losses, dict(run.parameters())


def compare(model, curve, weights, largest, batches) -> dict:
    """Compiles and trains ``model``. Returns the row of the table for this model."""
    import fsdp_mlir as fm

    raised, left = count_attention(model)
    losses, after = train(model, batches)
    # Tensors whose gradients are only rounding errors are not compared, because AdamW scales such gradients to steps of full size in any direction.
    least = NOISE * max(largest.values())
    chosen = [p.name for p in model.parameters if not p.frozen and largest.get(p.name, 0) > least]
    far = {n: float(np.abs(after[n] - weights[n]).max()) / max(float(np.abs(weights[n]).max()), 1e-3)
           for n in chosen}
    row = {"attention": raised, "softmax": left, "losses": losses,
           "loss": float(np.max([abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, curve)])),
           "weights": float(np.max(list(far.values()))), "farthest": max(far, key=far.get),
           "noise": sum(not p.frozen for p in model.parameters) - len(chosen)}
    try:
        fm.compile(model, mesh=f"shard={RANKS}", param_dtype="bf16")
        row["bf16"] = "yes"
    except fm.CompileError as error:
        row["bf16"] = "no: " + first_line(error)
    return row


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:300]


def export_family(name: str):
    """Exports a family. Returns the model, arrays with the shapes, types and largest ids of the batch of one rank, and what the framework
    needs to train: the module or the parameters, the example, and the loss. The model keeps the initial weights.
    """
    import fsdp_mlir as fm
    from initial import set_weights

    if name.startswith("jax:"):
        import jax_families

        params, loss, example = jax_families.FAMILIES[name[4:]]()
        if name in STORED:
            params = jax_families.set_weights(params)
        model = fm.export_jax(loss, params, *example)
        return frozen_weights(model), [np.asarray(a) for a in example], params, example, loss
    import families

    module, example, loss = families.FAMILIES[name][1]()
    if name in STORED:
        set_weights(module)
    model = fm.export_torch(module, example, loss=loss, **families.OPTIONS.get(name, {}))
    tensors = example.values() if isinstance(example, dict) else example
    return frozen_weights(model), [t.numpy() for t in tensors], module, example, loss


def run_torch(name: str) -> dict:
    import torch

    import families
    from initial import draw_batches, limits_of

    torch.set_num_threads(1)
    model, arrays, module, example, loss = export_family(name)
    limits = limits_of(arrays)
    batches = draw_batches(arrays, limits, RANKS, STEPS)
    route = "torch.export, " + getattr(getattr(module, "config", None), "_attn_implementation", "-")
    if isinstance(example, dict):  # The module itself computes its loss.
        loss = lambda m, *batch: m(**dict(zip(example, batch))).loss
    curve, weights, largest = torch_curve(module, loss, batches)
    return {"kind": families.FAMILIES[name][0], "route": route.removesuffix(", -"), "curve": curve,
            "limits": limits, **compare(model, curve, weights, largest, batches)}


def frozen_weights(model):
    """Copies the model's weights, because training changes the weights of its module."""
    values = {name: np.array(value) for name, value in model.weights().items()}
    model.weights = lambda: values
    return model


def run_jax(name: str) -> dict:
    import jax_families
    from initial import draw_batches, limits_of

    model, arrays, params, _, loss = export_family(name)
    limits = limits_of(arrays)
    batches = draw_batches(arrays, limits, RANKS, STEPS)
    curve, weights, largest = jax_families.train(params, loss, batches, RANKS, RATE, DECAY)
    return {"kind": "JAX", "route": "StableHLO", "curve": curve, "limits": limits,
            **compare(model, curve, weights, largest, batches)}


def child(name: str) -> int:
    """Exports and trains one family, and prints its row of the table as JSON on the last line."""
    sys.path.insert(0, str(HERE))
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            row = run_jax(name) if name.startswith("jax:") else run_torch(name)
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {first_line(error)}"}
    print(json.dumps(row))
    return 0


def names() -> list[str]:
    sys.path.insert(0, str(HERE))
    import families
    import jax_families

    return [*families.FAMILIES, *(f"jax:{name}" for name in jax_families.FAMILIES)]


def how(code: int) -> str:
    """Returns a text that says how a process ended: the exit code of the process, or the signal that killed the process."""
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def run_family(command: list[str]) -> dict:
    """Runs a command that prints the row of a family as JSON on its last line. Returns the row, or a row with the reason why there is none."""
    start = time.monotonic()
    try:
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        last = done.stdout.strip().splitlines()[-1:] or [""]
        row = (json.loads(last[0]) if last[0].startswith("{") else
               {"error": f"ended by {how(done.returncode)}: {done.stderr.strip()[-200:]}"})
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


def number(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-")


def attention(row: dict) -> str:
    if row["softmax"]:
        return f"{row['attention']}, {row['softmax']} left as softmax"
    return str(row["attention"]) if row["attention"] else "-"


def works(row: dict) -> bool:
    """Returns true if a family trained like in its framework and compiles with bf16. A loss of NaN counts as a failure."""
    return "error" not in row and row["loss"] <= LARGEST_LOSS and row["bf16"] == "yes"


def page(rows: dict[str, dict]) -> str:
    """Returns the page docs/models.md as Markdown."""
    good = sum(works(row) for row in rows.values())
    noisy: dict[int, list[str]] = {}
    for name, row in rows.items():
        if row.get("noise"):
            noisy.setdefault(row["noise"], []).append(name)
    lines = [
        "<!-- Written by python/models/run.py. -->", "# Models", "",
        "This page is for people who want to know whether their kind of model works. Small models "
        "of", f"{len(rows)} families, two layers of width 64, were exported from PyTorch or JAX. "
        f"They trained {STEPS} AdamW", f"steps on {RANKS} ranks. Each rank has its own batches. "
        "The learning rate is 1e-3; weights of", "tensors of rank 2 or more decay by 0.01.", "",
        f"**{good} of {len(rows)} work.**", "",
        "| column | meaning |", "|---|---|",
        "| route | way of export; for models of transformers their implementation of attention |",
        "| attention | attention ops after Import, `fsdp.attention`; - where none was found |",
        "| loss | largest relative difference of a step's loss to the framework's own training, f32 |",
        "| weights | largest difference of a weight after the last step, relative to the largest "
        "weight of its tensor |",
        "| sharded = unsharded | all losses, norms, parameters and moments of all ranks equal those "
        "of one unsharded rank, bit for bit |",
        "| bf16 | compiles with `param_dtype=\"bf16\"` |", ""]
    if noisy:
        lines += [
            "The column of weights leaves out tensors whose gradient consists of rounding errors: "
            "below", f"{number(NOISE)} of the model's largest gradient. AdamW normalises these "
            "errors to steps of full size in", "any direction. Most of the tensors left out are "
            "biases of keys.", "", "| families | tensors left out |", "|---|---|",
            *(f"| {', '.join(sorted(names))} | {count} |" for count, names in sorted(noisy.items())),
            ""]
    lines += [
        *textwrap.wrap(f"Versions: {versions()}.", 100), "The page is written by `python python/models/run.py "
        f"--out=docs/models.md`, on {datetime.date.today()}.", "",
        "| family | kind | route | attention | loss | weights | sharded = unsharded | bf16 |",
        "|---|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        shown = name.removeprefix("jax:")
        if "error" in row:
            text = row["error"].replace("|", "\\|")
            lines.append(f"| {shown} | {row.get('kind', '')} | | fails: {text} | | | | |")
        else:
            lines.append(f"| {shown} | {row['kind']} | {row['route']} | {attention(row)} | "
                         f"{number(row['loss'])} | {number(row['weights'])} | yes | {row['bf16']} |")
    return "\n".join(lines) + "\n"


def write_curves(path: pathlib.Path, rows: dict[str, dict]) -> None:
    """Writes the losses of PyTorch or JAX, with one family per line.

    For the families STORED, also writes the limits below which the ids of batches are drawn.
    """
    lines = [f" {json.dumps(name)}: {json.dumps([round(v, 7) for v in row['curve']])}"
             for name, row in rows.items() if "curve" in row]
    limits = {name: rows[name]["limits"] for name in STORED if "limits" in rows.get(name, {})}
    path.write_text('{"versions": ' + json.dumps(versions()) + f',\n"steps": {STEPS}, '
                    f'"ranks": {RANKS}, "rate": {RATE}, "decay": {DECAY},\n'
                    f'"limits": {json.dumps(limits)},\n"curves": {{\n'
                    + ",\n".join(lines) + "\n}}\n")


def store_programs(folder: pathlib.Path) -> None:
    """Writes the exported programs of the families STORED, compressed and without source locations."""
    from fsdp_mlir import tools

    folder.mkdir(exist_ok=True)
    for name in STORED:
        model, *_ = export_family(name)
        plain = subprocess.run([tools.find_tool("fsdp-opt"), "-"], input=model.text, check=True,
                               capture_output=True, text=True).stdout
        with open(folder / f"{name.replace(':', '-')}.mlir.gz", "wb") as file:
            file.write(gzip.compress(plain.encode(), 9, mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="families to run, separated by commas (default: all)")
    parser.add_argument("--out", help="page to write (default: print it)")
    parser.add_argument("--curves", help="JSON file of the framework's losses to write")
    parser.add_argument("--ir", help="folder of exported programs to write, which the tests read")
    parser.add_argument("--rows", help="JSON file of rows: families in it are not run again")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child)
    kept = pathlib.Path(options.rows) if options.rows else None
    rows = json.loads(kept.read_text()) if kept and kept.exists() else {}
    chosen = options.only.split(",") if options.only else names()
    if unknown := sorted(set(chosen) - set(names())):
        parser.error(f"unknown family '{unknown[0]}'; expected {', '.join(names())}")
    for name in chosen:
        if name in rows:
            continue
        rows[name] = row = run_family([__file__, f"--child={name}"])
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
        write_curves(pathlib.Path(options.curves), rows)
    if options.ir:
        store_programs(pathlib.Path(options.ir))
    return 0 if all("error" not in row and row["loss"] <= LARGEST_LOSS for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
