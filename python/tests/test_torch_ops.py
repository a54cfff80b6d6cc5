# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of PyTorch that need decompositions of the exporter train as in PyTorch.

Each op stands between a layer and the loss of a small module, which takes one step of SGD on two
ranks, here and in torch. Skipped where torch is not installed.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("iree.compiler")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import fsdp_mlir as fm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
aten = torch.ops.aten
OPS: dict = {}


class Around(nn.Module):
    """An op after a layer: features of 2 x 8 x 16, all between -1 and 1."""

    def __init__(self, op, *parts):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(16, 16)
        self.parts = nn.ModuleList(parts)
        object.__setattr__(self, "op", op)

    def forward(self, x):
        return self.op(torch.tanh(self.linear(x)), *self.parts)


def square_loss(module, x):
    y = module(x)
    return (y * y * torch.linspace(1, 2, y.numel()).view(y.shape)).mean()


def train_both(module):
    """Takes one step here and in torch, and compares the loss and all weights."""
    model = fm.export_torch(module, (torch.zeros(2, 8, 16),), loss=square_loss)
    step = fm.compile(model, mesh="shard=2", optimizer=fm.SGD(lr=1.0))
    batch = torch.randn((4, 8, 16), generator=torch.Generator().manual_seed(1))
    with step.train(weights="model", check_against_unsharded=True) as run:
        found = run.step((batch,)).loss
        run.compare()
        after = dict(run.parameters())
    value = sum(square_loss(module, batch[2 * r:2 * r + 2]) for r in range(2)) / 2
    assert found == pytest.approx(value.item(), rel=1e-5)
    value.backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 1e-4
        expected = (parameter - parameter.grad).detach().numpy()
        np.testing.assert_allclose(after[name], expected, rtol=0, atol=2e-6, err_msg=name)
    return model


def op(function):
    OPS[function.__name__] = function
    return function


def image(x):
    return x.reshape(x.shape[0], 2, 8, 8)


for _mode in ("bilinear", "bicubic"):
    OPS[f"{_mode}_size"] = lambda x, m=_mode: F.interpolate(image(x), size=(5, 11), mode=m)
    OPS[f"{_mode}_scale"] = lambda x, m=_mode: F.interpolate(image(x), scale_factor=1.7, mode=m)
    OPS[f"{_mode}_aligned"] = lambda x, m=_mode: F.interpolate(
        image(x), size=(5, 11), mode=m, align_corners=True)
    OPS[f"{_mode}_antialias"] = lambda x, m=_mode: F.interpolate(
        image(x), size=(5, 11), mode=m, antialias=True)
    OPS[f"{_mode}_default"] = lambda x, m=_mode: getattr(aten, f"upsample_{m}2d").default(
        image(x), [5, 11], False, 0.6, 1.4)
    OPS[f"{_mode}_antialias_default"] = lambda x, m=_mode: getattr(
        aten, f"_upsample_{m}2d_aa").default(image(x), [5, 11], False)


@op
def upsample_module(x):
    return nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)(image(x))


@op
def uneven_average(x):
    return F.adaptive_avg_pool2d(image(x), (3, 5))


@op
def larger_average(x):
    return F.adaptive_avg_pool2d(image(x), (11, 4))


@op
def uneven_average_1d(x):
    return F.adaptive_avg_pool1d(x, 5)


@op
def uneven_average_3d(x):
    return F.adaptive_avg_pool3d(x.reshape(-1, 2, 4, 4, 4), (3, 2, 5))


@op
def uneven_maxima(x):
    return F.adaptive_max_pool2d(F.relu(image(x)), (3, 5))


@op
def fold(x):
    return nn.Fold((5, 5), (2, 2))(x.reshape(-1, 8, 16))


@op
def fold_apart(x):
    return F.fold(x.reshape(-1, 8, 16), (6, 6), (2, 2), padding=1, stride=2)


@op
def fold_dilated(x):
    return F.fold(x.reshape(-1, 8, 16), (6, 6), (2, 2), dilation=2)


@op
def unfold_and_fold(x):
    parts = F.unfold(image(x), (3, 3), padding=1, stride=2)
    return F.fold(parts * parts, (8, 8), (3, 3), padding=1, stride=2)


@pytest.mark.parametrize("name", OPS)
def test_an_op_trains_as_in_torch(name):
    train_both(Around(OPS[name]))
