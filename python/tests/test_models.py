# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported models of several families follow the losses of PyTorch and JAX.

The programs (models/ir) and the losses (models/curves.json) were written by ``python/models/run.py``, so these
tests need neither framework. The weights and the batches are drawn as models/initial.py describes.
"""

import gzip
import importlib.util
import json
import pathlib
import sys

import numpy as np
import pytest

import fsdp_mlir as fm
from fsdp_mlir import tools

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
STORED = json.loads((MODELS / "curves.json").read_text())
NAMES = sorted(STORED["limits"])
# Allowed relative differences between losses, for families with a larger tolerance than the other
# families. AdamW amplifies rounding errors in tensors whose gradient is nearly 0.
TOLERANCE = {"T5": 5e-5}
DTYPES = {"i64": np.int64, "i32": np.int32, "f32": np.float32}

_spec = importlib.util.spec_from_file_location("initial", MODELS / "initial.py")
initial = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(initial)


def start(model, ranks, target="cpu", **options):
    """Compiles the model for AdamW and returns a run with the initial weights."""
    weights = {p.name: initial.value(p.name, p.shape) for p in model.parameters}
    optimizer = fm.AdamW(lr=STORED["rate"], weight_decay=STORED["decay"])
    step = fm.compile(model, mesh=f"shard={ranks}", optimizer=optimizer, target=target)
    return step.train(weights=weights, **options)


def draw_batches(model, limits, ranks, steps):
    examples = [np.empty(i.shape, DTYPES[i.dtype]) for i in model.inputs]
    return initial.draw_batches(examples, limits, ranks, steps)


def train(model, limits, ranks):
    """Trains the stored number of steps, compares with unsharded training, and returns the losses."""
    with start(model, ranks, check_against_unsharded=True) as run:
        losses = [run.step(batch).loss
                  for batch in draw_batches(model, limits, ranks, STORED["steps"])]
        run.compare()
    return losses


def largest_difference(losses, expected):
    """Returns the largest relative difference, or NaN if a loss is NaN."""
    return np.max([abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, expected, strict=True)])


def load(name, folder):
    path = folder / "model.mlir"
    path.write_bytes(gzip.decompress((MODELS / "ir" / f"{name.replace(':', '-')}.mlir.gz").read_bytes()))
    return fm.Model.load(path)


def test_programs_are_stored():
    assert len(NAMES) >= 9
    assert {p.name.removesuffix(".mlir.gz") for p in (MODELS / "ir").iterdir()} == {
        name.replace(":", "-") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_losses_follow_the_framework(name, tmp_path):
    losses = train(load(name, tmp_path), STORED["limits"][name], STORED["ranks"])
    expected = STORED["curves"][name]
    assert largest_difference(losses, expected) < TOLERANCE.get(name, 5e-6)
    assert losses[-1] != losses[0], "the weights changed"


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_losses_on_emulated_gpus_follow_the_framework(name, tmp_path, monkeypatch):
    library = pathlib.Path(tools.find_tool("fsdp-compile")).resolve().parents[1] / "lib/libfsdp-emulated-cuda.so"
    if not library.exists():
        pytest.skip("needs libfsdp-emulated-cuda.so of a build folder")
    ranks, steps = STORED["ranks"], 3
    monkeypatch.setenv("FSDPRT_CUDA_LIBRARY", str(library))
    monkeypatch.setenv("FSDPRT_EMULATED_CUDA_DEVICES", str(ranks))
    model = load(name, tmp_path)
    with start(model, ranks, target="sm_90a", device="cuda") as run:
        losses = [run.step(batch).loss
                  for batch in draw_batches(model, STORED["limits"][name], ranks, steps)]
    assert largest_difference(losses, STORED["curves"][name][:steps]) < TOLERANCE.get(name, 5e-6)


def test_a_wrong_weight_is_noticed(tmp_path, monkeypatch):
    """Checks that the losses differ by more than the tolerance if one element of one weight is wrong."""
    value = initial.value

    def changed(name, shape):
        values = value(name, shape)
        if name.endswith("ln_f.bias"):
            values.flat[0] += 1.0
        return values

    monkeypatch.setattr(initial, "value", changed)
    losses = train(load("GPT2", tmp_path), STORED["limits"]["GPT2"], STORED["ranks"])
    assert largest_difference(losses, STORED["curves"]["GPT2"]) > 5e-6


@pytest.mark.parametrize("name", ["Llama", "ViT"])
def test_exports_of_today_follow_the_stored_losses(name, monkeypatch):
    """Checks that models which are exported with the installed PyTorch have the stored losses too."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("iree.compiler")
    monkeypatch.syspath_prepend(str(MODELS))
    families = pytest.importorskip("families")
    module, example, loss = families.FAMILIES[name][1]()
    model = fm.export_torch(module, example, loss=loss, **families.OPTIONS.get(name, {}))
    losses = train(model, STORED["limits"][name], STORED["ranks"])
    assert largest_difference(losses, STORED["curves"][name]) < 5e-6
    sys.modules.pop("families", None)
