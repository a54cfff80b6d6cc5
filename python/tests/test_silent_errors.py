# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes that an exporter could ignore are refused or reported, or train as in PyTorch.

Runs ``python/models/silent_errors.py`` for one model. Skipped if torch is not installed.
"""

import pathlib

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("iree.compiler")

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
PLANTS = ("detach", "padding", "tied", "frozen", "buffer", "unused", "no_grad", "ignored",
          "one_tensor", "rule", "dropout", "out_of_range")


@pytest.fixture
def silent_errors(monkeypatch):
    monkeypatch.syspath_prepend(str(MODELS))
    return pytest.importorskip("silent_errors")


def test_all_plants_are_tested(silent_errors):
    assert tuple(silent_errors.PLANTS) == PLANTS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("planted", PLANTS)
def test_nothing_is_silent(silent_errors, planted):
    found = silent_errors.outcome("LSTM" if planted == "unused" else "Bert", planted)
    assert not found.startswith("SILENT"), found
    if planted in ("rule", "out_of_range"):
        assert found.startswith("refused")


@pytest.mark.filterwarnings("ignore")
def test_a_lost_change_is_noticed(silent_errors, monkeypatch):
    """Compiles the module as it was before the change, instead of the changed module. The
    comparison must then fail."""
    import copy

    import torch

    plain = {}

    def planted(module, batch):
        plain["module"] = copy.deepcopy(module)
        silent_errors.hook(silent_errors.largest(module, torch.nn.Linear),
                           lambda y: 0.5 * y + 0.5 * y.detach())

    import fsdp_mlir as fm

    export = fm.export_torch
    monkeypatch.setitem(silent_errors.PLANTS, "lost", planted)
    monkeypatch.setattr(fm, "export_torch",
                        lambda module, *rest, **options: export(plain["module"], *rest, **options))
    assert silent_errors.outcome("Bert", "lost").startswith("SILENT")
